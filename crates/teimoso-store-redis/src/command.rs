//! A person's orders: cancel, retry, replay jobs.

use std::time::Duration;

use bytes::Bytes;
use redis::{Value, cmd, pipe};
use teimoso_delivery::model::{DeliveryId, DeliveryState, Key, ReplayId};
use teimoso_delivery::store::{
    CancelOutcome, MAX_REPLAY_RATE_PER_SECOND, NewReplay, Replay, ReplayFilter, ReplayState, RetryOutcome,
    StoreError,
};

use crate::codec::{self, DeliveryRecord, JobRecord, key_text};
use crate::public::{self, Ordered};
use crate::reply::{array, exactly, some_bytes, some_number, unexpected};
use crate::scripts::{JOB, ORDER};
use crate::shared::{Shared, bell};

/// Dead letters looked at in one step.
const STEP: usize = 500;
/// What was prepared for a job that never began is forgotten after this.
const PREPARED: Duration = Duration::from_secs(3_600);

enum Outcome {
    Done,
    Wished,
    Refused(DeliveryState),
    Unknown,
}

async fn order(shared: &Shared, what: &str, id: DeliveryId) -> Result<Outcome, StoreError> {
    let Some(key) = shared.key_of(id) else { return Ok(Outcome::Unknown) };
    let mut call = shared.call(&ORDER);
    call.arg(what).arg(key_text(key));
    let [rung, outcome, state] = exactly::<3>(shared.reads.call(&call).await?)?;
    shared.wake.hear(bell(&rung)?);
    Ok(match some_number(&outcome)? {
        0 => Outcome::Done,
        1 => Outcome::Wished,
        2 => {
            let state = u8::try_from(some_number(&state)?).ok().and_then(DeliveryState::from_tag);
            Outcome::Refused(state.ok_or_else(unexpected)?)
        }
        _ => Outcome::Unknown,
    })
}

/// What moves between ours and the public keys while it is looked for is looked for again so often.
const TRIES: usize = 3;

pub(crate) async fn cancel(shared: &Shared, id: DeliveryId) -> Result<CancelOutcome, StoreError> {
    for _ in 0..TRIES {
        match order(shared, "cancel", id).await? {
            Outcome::Done => return Ok(CancelOutcome::Cancelled),
            Outcome::Wished => return Ok(CancelOutcome::Requested),
            Outcome::Refused(state) => return Ok(CancelOutcome::AlreadyFinal(state)),
            Outcome::Unknown => {}
        }
        let Some(key) = shared.key_of(id) else { break };
        if let Ordered::Done(outcome) = public::cancel(shared, key).await? {
            return Ok(outcome);
        }
    }
    Ok(CancelOutcome::NotFound)
}

pub(crate) async fn retry(
    shared: &Shared,
    id: DeliveryId,
    explicit: bool,
) -> Result<RetryOutcome, StoreError> {
    let what = if explicit { "replay" } else { "retry" };
    for _ in 0..TRIES {
        match order(shared, what, id).await? {
            Outcome::Done | Outcome::Wished => return Ok(RetryOutcome::Due),
            Outcome::Refused(state) => return Ok(RetryOutcome::NotAllowed(state)),
            Outcome::Unknown => {}
        }
        let Some(key) = shared.key_of(id) else { break };
        if let Ordered::Done(outcome) = public::retry(shared, key).await? {
            return Ok(outcome);
        }
    }
    Ok(RetryOutcome::NotFound)
}

// ---- replay jobs

/// Lists what the job is to replay, in steps, beside everything else; then begins it in one step.
pub(crate) async fn start_replay(shared: &Shared, order: NewReplay) -> Result<Replay, StoreError> {
    let rate = order.rate.clamp(1, MAX_REPLAY_RATE_PER_SECOND);
    let prepared = format!("job:prepared:{:016x}", shared.entropy.next_u64());
    let list = (!order.dry_run).then(|| shared.keys.own(&prepared));
    let public = list.as_deref().map(|list| (list, PREPARED.as_secs()));
    let estimated = gather(shared, &order.filter, None, list.as_deref()).await?
        + public::list_buried(shared, &order.filter, public).await?;
    if order.dry_run {
        let now = shared.clock.now();
        return Ok(Replay {
            id: None,
            state: ReplayState::Finished,
            filter: order.filter,
            rate,
            estimated,
            done: 0,
            failed: 0,
            created_at: now,
            finished_at: Some(now),
        });
    }
    let mut call = shared.call(&JOB);
    call.arg("start").arg(prepared).arg(codec::encode_order(&order, rate));
    // Not on the link that repeats: a second call would begin a second job.
    changed(shared, shared.accepts.call(&call).await?)?.ok_or_else(unexpected)
}

/// Counts what the filter takes behind `seen`, oldest first, and appends it to `list`.
pub(crate) async fn gather(
    shared: &Shared,
    filter: &ReplayFilter,
    seen: Option<Key>,
    list: Option<&str>,
) -> Result<u64, StoreError> {
    let mut from = seen.map_or_else(|| "-".to_owned(), |seen| format!("({}", key_text(seen)));
    let mut found = 0;
    loop {
        let mut range = cmd("ZRANGEBYLEX");
        range.arg(shared.keys.own("order:dead")).arg(&from).arg("+").arg("LIMIT").arg(0).arg(STEP);
        let keys = array(shared.reads.command(&range).await?)?;
        let keys = keys.into_iter().map(some_bytes).collect::<Result<Vec<_>, _>>()?;
        let Some(last) = keys.last() else { return Ok(found) };
        from = format!("({}", String::from_utf8_lossy(last));
        let mut records = cmd("HMGET");
        records.arg(shared.keys.own("deliveries"));
        for key in &keys {
            records.arg(&key[..]);
        }
        let records = array(shared.reads.command(&records).await?)?;
        let taken: Vec<&[u8]> = keys
            .iter()
            .zip(records)
            .filter(|(key, record)| takes(filter, key, record))
            .map(|(key, _)| &key[..])
            .collect();
        found += taken.len() as u64;
        if let (Some(list), false) = (list, taken.is_empty()) {
            // Nor here: an item would be listed twice.
            let mut append = pipe();
            append.cmd("RPUSH").arg(list).arg(&taken);
            append.cmd("EXPIRE").arg(list).arg(PREPARED.as_secs());
            shared.accepts.pipeline(&append).await?;
        }
    }
}

fn takes(filter: &ReplayFilter, key: &[u8], record: &Value) -> bool {
    let Value::BulkString(record) = record else { return false };
    let record = DeliveryRecord::decode(&Bytes::copy_from_slice(record));
    let (Ok(key), Ok(record)) = (codec::parse_key(key), record) else { return false };
    record.reason.is_some_and(|reason| filter.takes(reason, key.at()))
}

/// What the script that changes jobs answers.
fn changed(shared: &Shared, value: Value) -> Result<Option<Replay>, StoreError> {
    let mut values = array(value)?.into_iter();
    shared.wake.hear(bell(&values.next().ok_or_else(unexpected)?)?);
    let (Some(key), Some(record)) = (values.next(), values.next()) else { return Ok(None) };
    let key = codec::parse_key(&some_bytes(key)?).map_err(|_| unexpected())?;
    view(shared, key, &some_bytes(record)?).map(Some)
}

fn view(shared: &Shared, key: Key, record: &[u8]) -> Result<Replay, StoreError> {
    let job = JobRecord::decode(record).map_err(|_| unexpected())?;
    Ok(job.view(shared.ids().replay(key)))
}

pub(crate) async fn replay(shared: &Shared, id: ReplayId) -> Result<Option<Replay>, StoreError> {
    let Some(key) = shared.ids().replay_key(id) else { return Ok(None) };
    let mut ask = cmd("HGET");
    ask.arg(shared.keys.own("jobs")).arg(key_text(key));
    match shared.reads.command(&ask).await? {
        Value::Nil => Ok(None),
        record => view(shared, key, &some_bytes(record)?).map(Some),
    }
}

pub(crate) async fn cancel_replay(shared: &Shared, id: ReplayId) -> Result<Option<Replay>, StoreError> {
    let Some(key) = shared.ids().replay_key(id) else { return Ok(None) };
    let mut call = shared.call(&JOB);
    call.arg("stop").arg(key_text(key));
    changed(shared, shared.reads.call(&call).await?)
}
