//! A person's orders about an entry of a public key: it is taken out there and adopted in one step, or not at all.

use redis::{cmd, pipe};
use teimoso_delivery::model::{DeadReason, DeliveryState, Key, NextWhy};
use teimoso_delivery::store::{CancelOutcome, ReplayFilter, RetryOutcome, StoreError};

use super::standing::{Found, Place};
use super::{Standing, Wanted, find, standing, walk};
use crate::codec::{key_text, replay_item};
use crate::entry::{Entry, Mark, Read, edited, kept_raw};
use crate::ingress::{self, Start};
use crate::reply::{array, exactly, natural, some_bytes, some_number};
use crate::scripts::ADOPT;
use crate::shared::Shared;

/// What came of an order.
pub(crate) enum Ordered<T> {
    Done(T),
    /// It is there, and went elsewhere before the order did anything.
    Gone,
    Unknown,
}

pub(crate) async fn cancel(shared: &Shared, key: Key) -> Result<Ordered<CancelOutcome>, StoreError> {
    let Some(standing) = find(shared, &Wanted::Key(key)).await? else { return Ok(Ordered::Unknown) };
    if let Place::Buried { .. } = standing.found.place {
        return Ok(Ordered::Done(CancelOutcome::AlreadyFinal(DeliveryState::Dead)));
    }
    let no_event = no_event(&standing.found);
    let entry = standing.found.entry().unwrap_or(&no_event);
    let start = Start { why: NextWhy::Retry, ..start_of(entry) };
    Ok(done(adopt(shared, &standing, "cancelled", entry, start).await?, CancelOutcome::Cancelled))
}

pub(crate) async fn retry(shared: &Shared, key: Key) -> Result<Ordered<RetryOutcome>, StoreError> {
    let Some(standing) = find(shared, &Wanted::Key(key)).await? else { return Ok(Ordered::Unknown) };
    let Some(entry) = standing.found.entry() else {
        return Ok(match standing.found.place {
            // As what it is when its time comes.
            Place::Waiting { .. } => done(bury(shared, &standing).await?, RetryOutcome::Due),
            Place::Buried { .. } => Ordered::Done(RetryOutcome::NotAllowed(DeliveryState::Dead)),
        });
    };
    let start = Start { budget_from: entry.attempts, first: 0, why: NextWhy::Replay };
    Ok(done(adopt(shared, &standing, "event", entry, start).await?, RetryOutcome::Due))
}

fn done<T>(moved: bool, outcome: T) -> Ordered<T> {
    if moved { Ordered::Done(outcome) } else { Ordered::Gone }
}

/// What is no event has no address, and everything is its body.
fn no_event(found: &Found) -> Entry {
    Entry { url: String::new(), id: None, body: 0..found.text.len(), attempts: 0, mark: Mark::default() }
}

fn start_of(entry: &Entry) -> Start {
    let mark = &entry.mark;
    let budget_from = mark.desde.unwrap_or(0).min(entry.attempts);
    Start { budget_from, first: mark.primeira.unwrap_or(0), why: NextWhy::Retry }
}

/// Where the script takes an entry from.
fn source(found: &Found) -> Vec<u8> {
    let place = match found.place {
        Place::Waiting { .. } => b"w",
        Place::Buried { .. } => b"m",
    };
    [&place[..], &found.text].concat()
}

/// Whether it was still there.
async fn adopt(
    shared: &Shared,
    standing: &Standing,
    what: &str,
    entry: &Entry,
    start: Start,
) -> Result<bool, StoreError> {
    let mut call = shared.call(&ADOPT);
    call.number(1u8).arg(source(&standing.found));
    let key = key_text(standing.key);
    ingress::add_entry(&mut call, what, &standing.found.text, entry, start, &key, &shared.ingress);
    run(shared, &call).await
}

async fn bury(shared: &Shared, standing: &Standing) -> Result<bool, StoreError> {
    let now = shared.clock.now().get();
    let mut call = shared.call(&ADOPT);
    call.number(1u8).arg(source(&standing.found));
    ingress::bury(
        &mut call,
        match standing.found.read {
            Read::KeptRaw => standing.found.text.to_vec(),
            _ => kept_raw(&standing.found.text, DeadReason::Malformed, now),
        },
    );
    run(shared, &call).await
}

/// Not on the link that repeats: a second call would not find what the first one took.
async fn run(shared: &Shared, call: &crate::scripts::Call) -> Result<bool, StoreError> {
    let [bell, adopted] = exactly::<2>(shared.accepts.call(call).await?)?;
    shared.wake.hear(some_number(&bell)?);
    Ok(some_number(&adopted)? == 1)
}

/// Counts the dead letters a replay takes, oldest first, and appends them to the job's `list`. What is no event is none
/// of them: it would be one of the dead again.
pub(crate) async fn list_buried(
    shared: &Shared,
    filter: &ReplayFilter,
    list: Option<(&str, u64)>,
) -> Result<u64, StoreError> {
    let buried = shared.keys.buried();
    let end: usize =
        natural::<i64>(&shared.reads.command(cmd("LLEN").arg(&buried)).await?)?.unsigned_abs() as usize;
    let (mut from, mut count) = (0, 0);
    while from < end {
        let last = (from + walk::STEP).min(end) - 1;
        let texts = array(shared.reads.command(cmd("LRANGE").arg(&buried).arg(from).arg(last)).await?)?;
        let mut found = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            let found_here = walk::read(some_bytes(text)?, Place::Buried { index: from + index });
            found.push((walk::Cursor::buried(), found_here));
        }
        from = last + 1;
        let now = shared.clock.now().get();
        let named = standing::named(shared, found).await?;
        let items: Vec<Vec<u8>> = named
            .iter()
            .filter(|(_, one)| takes(filter, shared, one))
            .filter_map(|(_, one)| item(one, now))
            .collect();
        count += items.len() as u64;
        if let (Some((list, seconds)), false) = (list, items.is_empty()) {
            let mut append = pipe();
            append.cmd("RPUSH").arg(list).arg(&items);
            append.cmd("EXPIRE").arg(list).arg(seconds);
            shared.accepts.pipeline(&append).await?;
        }
    }
    Ok(count)
}

fn takes(filter: &ReplayFilter, shared: &Shared, one: &Standing) -> bool {
    filter.takes(one.reason(), one.delivery(shared).created_at)
}

/// The text itself, as no event in Redis has another name; and as it goes back, where that must say that it was dead.
fn item(one: &Standing, now: u64) -> Option<Vec<u8>> {
    let entry = one.found.entry()?;
    let chave = Some(key_text(one.key));
    let mark = Mark { chave, morto_em: entry.mark.morto_em.or(Some(now)), ..entry.mark.clone() };
    let again = (mark != entry.mark).then(|| edited(&one.found.text, entry.attempts, &mark));
    Some(replay_item(&one.found.text, again.as_deref()))
}
