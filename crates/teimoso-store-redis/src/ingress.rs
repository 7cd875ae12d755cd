//! Adoption: what anybody pushed becomes a delivery in the lane of its URL, so that a destination that hangs at the
//! head of the ready list starves nobody; and what a delivery becomes when it goes back (S2.1, S2.9).

use std::sync::Arc;

use bytes::Bytes;
use teimoso_delivery::model::{DeadReason, EventId, Key, NextWhy, PolicyName, Progress};
use teimoso_delivery::store::{Next, Settlement, StoreError};

use crate::codec::{Adoption, Tried, decode_attempt, derived_key, encode_adopted, key_text, tried_with};
use crate::entry::{Entry, Mark, Read, edited, kept_raw};
use crate::reply::{array, exactly, some_bytes, some_number};
use crate::scripts::{ADOPT, Call, TAKE};
use crate::shared::Shared;

/// Entries of one step.
const MOST_ENTRIES: u32 = 250;
/// Bytes of one step, beyond its last entry.
const MOST_BYTES: u32 = 2 << 20;
/// How long an entry is kept from others while it is read.
const LEASE_MS: u32 = 10_000;

/// How entries of the ready list are judged.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    /// Longer ones are dead letters.
    pub(crate) most_bytes: usize,
    /// Their policy; `None` is the server's.
    pub(crate) policy: Option<PolicyName>,
    /// With so many attempts an entry of the ready list is a replay.
    pub(crate) attempts: u32,
}

/// A leased delivery that goes back to the public keys when it waits or dies.
#[derive(Debug)]
pub(crate) struct Held {
    /// The text it came in with.
    pub(crate) raw: Bytes,
    pub(crate) event: Key,
    pub(crate) id: EventId,
}

/// Takes one step's entries and adopts them; how many there were.
pub(crate) async fn adopt(shared: &Shared) -> Result<usize, StoreError> {
    let entropy = &shared.entropy;
    let mut take = shared.call(&TAKE);
    take.arg(format!("{:016x}{:016x}", entropy.next_u64(), entropy.next_u64()));
    take.number(MOST_ENTRIES).number(MOST_BYTES).number(LEASE_MS);
    let mut taken = array(shared.work.call(&take).await?)?.into_iter();
    let mut entries = Vec::new();
    while let (Some(token), Some(entry)) = (taken.next(), taken.next()) {
        entries.push((some_bytes(token)?, some_bytes(entry)?));
    }
    if entries.is_empty() {
        return Ok(0);
    }
    let mut call = shared.call(&ADOPT);
    call.number(entries.len() as u64);
    for (token, entry) in &entries {
        call.arg(&token[..]);
        judge(&mut call, entry, shared);
    }
    let [bell, _adopted] = exactly::<2>(shared.work.call(&call).await?)?;
    shared.wake.hear(some_number(&bell)?);
    Ok(entries.len())
}

fn judge(call: &mut Call, bytes: &Bytes, shared: &Shared) {
    let now = shared.clock.now().get();
    if bytes.len() > shared.ingress.most_bytes {
        return bury(call, dead_text(bytes, DeadReason::TooLarge, now));
    }
    match Entry::read(bytes) {
        Read::Event(entry) => adopt_one(call, bytes, &entry, &shared.ingress),
        Read::Malformed => bury(call, kept_raw(bytes, DeadReason::Malformed, now)),
        Read::KeptRaw => bury(call, bytes.to_vec()),
    }
}

/// Too large for a delivery, and yet kept as what it is.
fn dead_text(bytes: &[u8], reason: DeadReason, now: u64) -> Vec<u8> {
    match Entry::read(bytes) {
        Read::Event(entry) => {
            let mark = Mark { motivo: Some(reason.name().to_owned()), morto_em: Some(now), ..entry.mark };
            edited(bytes, entry.attempts, &mark)
        }
        _ => kept_raw(bytes, reason, now),
    }
}

/// As a dead letter, with this text.
pub(crate) fn bury(call: &mut Call, text: Vec<u8>) {
    call.arg("dead").arg(text);
    for _ in 0..7 {
        call.arg("");
    }
}

fn adopt_one(call: &mut Call, bytes: &Bytes, entry: &Entry, rules: &Rules) {
    let mark = &entry.mark;
    let start = match entry.attempts {
        0 => Start { budget_from: 0, first: 0, why: NextWhy::First },
        attempts if starts_over(entry, rules) => {
            Start { budget_from: attempts, first: 0, why: NextWhy::Replay }
        }
        attempts => Start {
            budget_from: mark.desde.unwrap_or(0).min(attempts),
            first: mark.primeira.unwrap_or(0),
            why: NextWhy::Retry,
        },
    };
    let key = match &mark.chave {
        Some(key) => key.clone(),
        // It waited or died elsewhere, and was shown by this one.
        None if entry.attempts > 0 => key_text(derived_key(bytes)),
        None => String::new(),
    };
    add_entry(call, "event", bytes, entry, start, &key, rules);
}

/// How an adopted event's delivery begins.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    pub(crate) budget_from: u32,
    /// When this budget's first attempt started, in ms; 0 when there was none.
    pub(crate) first: u64,
    pub(crate) why: NextWhy,
}

/// What the script is told of one: whether it is to be attempted (`event`) or is `cancelled`, and what it is.
pub(crate) fn add_entry(
    call: &mut Call,
    what: &str,
    bytes: &Bytes,
    entry: &Entry,
    start: Start,
    key: &str,
    rules: &Rules,
) {
    let (lane, origin) = lane_of(&entry.url);
    let adoption =
        Adoption { id: entry.id.as_ref(), url: &entry.url, policy: rules.policy.as_ref(), body: &entry.body };
    call.arg(what).arg(lane).arg(origin).arg(encode_adopted(&adoption, bytes));
    call.number(entry.attempts).number(start.budget_from).number(start.first).number(start.why.tag());
    call.arg(key);
}

/// A death mark, or as many attempts as a budget has: somebody put it back by hand.
fn starts_over(entry: &Entry, rules: &Rules) -> bool {
    let spent = entry.attempts.saturating_sub(entry.mark.desde.unwrap_or(0));
    entry.mark.morto_em.is_some() || spent >= rules.attempts
}

/// The lane's address, and the one it has when there are too many lanes: the text without its query, and its origin.
pub(crate) fn lane_of(url: &str) -> (&str, &str) {
    let lane = url.split(['?', '#']).next().unwrap_or(url);
    let authority = lane.find("://").map_or(0, |at| at + 3);
    let end = lane[authority..].find('/').map_or(lane.len(), |at| authority + at);
    (lane, &lane[..end])
}

/// The text with which a settled delivery goes back; empty when it does not. `last` is the record of its last attempt
/// before this one, of this stay; it may be empty.
pub(crate) fn text_for(settlement: &Settlement, held: Option<&Arc<Held>>, last: &[u8]) -> Vec<u8> {
    let Some(held) = held else { return Vec::new() };
    let Progress { attempts, budget_from, first_attempt_at, .. } = settlement.progress;
    let id = matches!(held.id, EventId::Own(_)).then(|| held.id.to_string());
    let mark = Mark {
        id,
        chave: Some(key_text(held.event)),
        desde: Some(budget_from).filter(|from| *from > 0),
        tentou: tried(&held.raw, last, settlement),
        ..Mark::default()
    };
    match settlement.next {
        Next::Scheduled { .. } => {
            let primeira = first_attempt_at.map(|at| at.get());
            edited(&held.raw, attempts, &Mark { primeira, ..mark })
        }
        Next::Dead(reason) => {
            let (motivo, morto_em) = (Some(reason.name().to_owned()), Some(settlement.at.get()));
            edited(&held.raw, attempts, &Mark { motivo, morto_em, ..mark })
        }
        Next::Delivered | Next::Released => Vec::new(),
    }
}

/// What the text says of its attempts so far, and those since.
fn tried(raw: &[u8], last: &[u8], settlement: &Settlement) -> Vec<Tried> {
    let so_far = match Entry::read(raw) {
        Read::Event(entry) => entry.mark.tentou,
        Read::Malformed | Read::KeptRaw => Vec::new(),
    };
    let last = decode_attempt(last).ok();
    let more = last.iter().chain(settlement.record.as_deref());
    tried_with(&so_far, more.map(Tried::new))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lane_is_a_url_without_its_query() {
        for (url, lane, origin) in [
            ("http://a:1/b?c=/d", "http://a:1/b", "http://a:1"),
            ("http://a#x", "http://a", "http://a"),
            ("no url at all", "no url at all", "no url at all"),
            ("", "", ""),
            ("x://", "x://", "x://"),
        ] {
            assert_eq!(lane_of(url), (lane, origin), "{url}");
        }
    }
}
