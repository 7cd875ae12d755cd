//! What is kept of the attempts of an event that waits or is dead in a public key: numbers, in its `_wh`.
//!
//! An attempt is `[number, started in ms, status or 0, kind of error or 0, fate, decision]`; kinds, fates and decisions
//! are the numbers that every store keeps for them. Deliberately absent: what was answered, timings, who was talked to.

use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize};
use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, DecisionName, ErrorKind, Millis, PhaseTimings, fate_tag,
};

/// The last so many attempts are kept.
pub(crate) const MOST_TRIED: usize = 20;

/// One attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Tried(u32, u64, u16, u8, u8, u8);

impl Tried {
    pub(crate) fn new(record: &AttemptRecord) -> Self {
        Self(
            record.number.get(),
            record.started_at.get(),
            record.status.unwrap_or(0),
            record.error_kind.map_or(0, ErrorKind::tag),
            fate_tag::of(record.fate),
            record.decision.tag(),
        )
    }

    /// From 1; 0 when somebody else wrote it.
    pub(crate) const fn number(&self) -> u32 {
        self.0
    }

    /// What is left of the attempt. The kind of its error is all that is known of the error.
    pub(crate) fn record(&self) -> AttemptRecord {
        let Self(number, started, status, kind, fate, decision) = *self;
        let (status, error_kind) = (Some(status).filter(|status| *status > 0), ErrorKind::from_tag(kind));
        AttemptRecord {
            number: AttemptNumber::after(number.saturating_sub(1)),
            started_at: Millis::new(started),
            fate: fate_tag::to(fate),
            status,
            error_kind,
            error: error_kind.filter(|_| status.is_none()).map(|kind| kind.name().into()),
            decision: DecisionName::from_tag(decision).unwrap_or(DecisionName::GiveUp),
            wait: None,
            peer: None,
            timings: PhaseTimings { total: Duration::ZERO, ..PhaseTimings::default() },
            response: None,
        }
    }
}

/// The attempts so far with some more, of each number the first, and of all the last few.
pub(crate) fn tried_with(so_far: &[Tried], more: impl Iterator<Item = Tried>) -> Vec<Tried> {
    let mut all = so_far.to_vec();
    for one in more {
        if !all.iter().any(|known| known.number() == one.number()) {
            all.push(one);
        }
    }
    all.sort_by_key(Tried::number);
    all.split_off(all.len().saturating_sub(MOST_TRIED))
}

/// What anybody may have changed: of another shape it is nothing, and the rest of `_wh` stands.
pub(crate) fn lenient<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Tried>, D::Error> {
    let value = serde_json::Value::deserialize(deserializer)?;
    let read: Vec<Tried> = serde_json::from_value(value).unwrap_or_default();
    Ok(tried_with(&[], read.into_iter().filter(|one| one.number() > 0)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn an_attempt_leads_back_through_its_text(
            number in 1u32.., started in 0u64..1 << 47, status in 0u16..600, kind in 0u8..=15, decision in 0u8..3,
        ) {
            let tried = Tried(number, started, status, kind, 40, decision);
            let text = serde_json::to_string(&tried).unwrap();
            prop_assert_eq!(serde_json::from_str::<Tried>(&text).ok(), Some(tried));
            prop_assert_eq!(Tried::new(&tried.record()), tried);
        }
    }

    #[test]
    fn the_last_twenty_are_kept_each_once_and_in_order() {
        let of = |number| Tried(number, 0, 503, 14, 30, 1);
        let all = tried_with(&[of(3), of(2)], (2..40).map(of));
        assert_eq!(all.iter().map(Tried::number).collect::<Vec<_>>(), (20..40).collect::<Vec<_>>());
    }
}
