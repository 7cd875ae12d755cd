//! The way through both keys, in steps: what waits, due last first; then what died, last first. Cursors say what comes
//! next in a way that what others take away at the far ends does not shift.

use bytes::Bytes;
use redis::cmd;
use teimoso_delivery::model::Millis;
use teimoso_delivery::store::StoreError;

use super::standing::{Found, Place};
use crate::entry::Entry;
use crate::reply::{array, natural, some_bytes, unexpected};
use crate::shared::Shared;

/// Entries of one step: each may be a megabyte.
pub(super) const STEP: usize = 32;

/// Where to go on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Cursor {
    /// With the entries of this score, past so many of them; `None` is the highest.
    Waiting(Option<(f64, usize)>),
    /// Below this place of the list; `None` is its end.
    Buried(Option<usize>),
}

impl Cursor {
    /// From the first that waits.
    pub(crate) const fn waiting() -> Self {
        Self::Waiting(None)
    }

    /// From the first that is dead.
    pub(crate) const fn buried() -> Self {
        Self::Buried(None)
    }

    pub(crate) const fn is_buried(self) -> bool {
        matches!(self, Self::Buried(_))
    }

    pub(crate) fn text(self) -> String {
        match self {
            Self::Waiting(None) => "w".to_owned(),
            Self::Waiting(Some((score, past))) => format!("w{score}:{past}"),
            Self::Buried(None) => "m".to_owned(),
            Self::Buried(Some(below)) => format!("m{below}"),
        }
    }

    /// The cursor with this text; `None` when it is none of these.
    pub(crate) fn read(text: &str) -> Option<Self> {
        if let Some(place) = text.strip_prefix('m') {
            return if place.is_empty() {
                Some(Self::buried())
            } else {
                Some(Self::Buried(Some(place.parse().ok()?)))
            };
        }
        let place = text.strip_prefix('w')?;
        if place.is_empty() {
            return Some(Self::waiting());
        }
        let (score, past) = place.split_once(':')?;
        let score = score.parse().ok().filter(|score: &f64| !score.is_nan())?;
        Some(Self::Waiting(Some((score, past.parse().ok()?))))
    }
}

/// What one step found, each with the cursor that begins with it; and where to go on.
pub(super) struct Step {
    pub(super) found: Vec<(Cursor, Found)>,
    pub(super) next: Option<Cursor>,
}

pub(super) async fn step(shared: &Shared, cursor: Cursor) -> Result<Step, StoreError> {
    match cursor {
        Cursor::Waiting(from) => waiting(shared, from).await,
        Cursor::Buried(below) => buried(shared, below).await,
    }
}

async fn waiting(shared: &Shared, from: Option<(f64, usize)>) -> Result<Step, StoreError> {
    let (mut score, mut past) = from.unwrap_or((f64::INFINITY, 0));
    let mut ask = cmd("ZREVRANGEBYSCORE");
    ask.arg(shared.keys.waiting()).arg(score_text(score)).arg("-inf").arg("WITHSCORES");
    ask.arg("LIMIT").arg(past).arg(STEP);
    let mut answer = array(shared.reads.command(&ask).await?)?.into_iter();
    let mut found = Vec::new();
    while let (Some(text), Some(due)) = (answer.next(), answer.next()) {
        let (text, due) = (some_bytes(text)?, some_bytes(due)?);
        let due: f64 =
            std::str::from_utf8(&due).ok().and_then(|due| due.parse().ok()).ok_or_else(unexpected)?;
        if due < score {
            (score, past) = (due, 0);
        }
        // Scores are anybody's: what is below zero is overdue, as what is far too high waits for ever.
        let place = Place::Waiting { due: Millis::new(due as u64) };
        found.push((Cursor::Waiting(Some((score, past))), read(text, place)));
        past += 1;
    }
    let is_last = found.len() < STEP;
    Ok(Step {
        found,
        next: Some(if is_last { Cursor::buried() } else { Cursor::Waiting(Some((score, past))) }),
    })
}

/// As Redis reads it.
fn score_text(score: f64) -> String {
    if score == f64::INFINITY { "+inf".to_owned() } else { score.to_string() }
}

async fn buried(shared: &Shared, below: Option<usize>) -> Result<Step, StoreError> {
    let list = shared.keys.buried();
    let below = match below {
        Some(below) => below,
        None => natural::<i64>(&shared.reads.command(cmd("LLEN").arg(&list)).await?)?.unsigned_abs() as usize,
    };
    let Some(last) = below.checked_sub(1) else { return Ok(Step { found: Vec::new(), next: None }) };
    let first = below.saturating_sub(STEP);
    let texts = array(shared.reads.command(cmd("LRANGE").arg(&list).arg(first).arg(last)).await?)?;
    let texts = texts.into_iter().map(some_bytes).collect::<Result<Vec<_>, _>>()?;
    let found = texts.into_iter().enumerate().rev().map(|(index, text)| {
        let index = first + index;
        (Cursor::Buried(Some(index + 1)), read(text, Place::Buried { index }))
    });
    Ok(Step { found: found.collect(), next: (first > 0).then_some(Cursor::Buried(Some(first))) })
}

pub(super) fn read(text: Bytes, place: Place) -> Found {
    let read = Entry::read(&text);
    Found { text, place, read }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_cursor_leads_back(score: f64, past: usize, below: usize) {
            prop_assume!(!score.is_nan());
            let all = [
                Cursor::waiting(), Cursor::Waiting(Some((score, past))), Cursor::buried(), Cursor::Buried(Some(below)),
            ];
            for cursor in all {
                prop_assert_eq!(Cursor::read(&cursor.text()), Some(cursor));
            }
        }

        #[test]
        fn any_text_is_a_cursor_or_none(text in "[wmd]?[0-9:.eiNaf-]{0,12}") {
            if let Some(cursor) = Cursor::read(&text) {
                prop_assert_eq!(Cursor::read(&cursor.text()), Some(cursor));
            }
        }
    }
}
