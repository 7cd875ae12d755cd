//! Answers for the API, in short steps on a connection of their own: nothing here is on the way of a delivery.

mod listing;
mod views;

use redis::Value;
use teimoso_delivery::model::{AttemptNumber, AttemptRecord, ContentType, DeliveryId, EventId, Key, Millis};
use teimoso_delivery::store::{AttemptView, Counts, DeliveryView, EventView, Stats, StoreError};

pub(crate) use listing::{deliveries, events};

use crate::codec::{self, EventHead, Tried, key_text};
use crate::entry::{Entry, Read};
use crate::public::{self, Wanted};
use crate::reply::{array, bytes, exactly, number, some_bytes, some_number};
use crate::scripts::STATS;
use crate::shared::Shared;

/// Attempts shown of one delivery at most.
const MOST_ATTEMPTS: u32 = 1_000;

/// The event with this id and its key: by our id, or the one accepted last under a caller's.
async fn find_event(shared: &Shared, id: &EventId) -> Result<Option<(Key, EventView)>, StoreError> {
    let found = match id {
        EventId::Own(_) => {
            let Some(key) = shared.ids().event_key(id) else { return Ok(None) };
            views::events(shared, "events", &[key_text(key)]).await?
        }
        EventId::Named(text) => views::events(shared, "named", &[text.to_string()]).await?,
    };
    // Our id of an event whose caller brought one was never given out.
    Ok(found.into_iter().find(|(_, view)| view.id == *id))
}

pub(crate) async fn event(shared: &Shared, id: EventId) -> Result<Option<EventView>, StoreError> {
    for _ in 0..LOOKS {
        if let Some((_, view)) = find_event(shared, &id).await? {
            return Ok(Some(view));
        }
        if let Some(standing) = public::find(shared, &Wanted::Event(&id)).await? {
            return Ok(Some(standing.event(shared)));
        }
    }
    Ok(None)
}

pub(crate) async fn payload(
    shared: &Shared,
    id: EventId,
) -> Result<Option<(ContentType, bytes::Bytes)>, StoreError> {
    let Some((key, _)) = find_event(shared, &id).await? else {
        let found = public::find(shared, &Wanted::Event(&id)).await?;
        return Ok(found.map(|standing| (ContentType::default(), standing.payload())));
    };
    let mut ask = redis::cmd("HGET");
    ask.arg(shared.keys.own("events")).arg(key_text(key));
    let Some(record) = bytes(shared.reads.command(&ask).await?)? else { return Ok(None) };
    let (event, _) = codec::decode_event(&record, key, shared.ids()).map_err(|_| damaged())?;
    Ok(Some((event.content_type, event.payload)))
}

pub(crate) async fn delivery(shared: &Shared, id: DeliveryId) -> Result<Option<DeliveryView>, StoreError> {
    let Some(key) = shared.key_of(id) else { return Ok(None) };
    for _ in 0..LOOKS {
        if let Some(one) = views::deliveries(shared, &[key_text(key)]).await?.pop() {
            return Ok(Some(one.view));
        }
        if let Some(standing) = public::find(shared, &Wanted::Key(key)).await? {
            return Ok(Some(standing.delivery(shared)));
        }
    }
    Ok(None)
}

pub(crate) async fn attempts(shared: &Shared, id: DeliveryId) -> Result<Vec<AttemptView>, StoreError> {
    let Some(wanted) = shared.key_of(id) else { return Ok(Vec::new()) };
    let key = key_text(wanted);
    let Some(one) = views::deliveries(shared, std::slice::from_ref(&key)).await?.pop() else {
        let found = public::find(shared, &Wanted::Key(wanted)).await?;
        return Ok(found.map_or_else(Vec::new, |standing| standing.attempts(shared)));
    };
    let views::Delivery { view, head, last, .. } = one;
    let mut found = Vec::new();
    let before = tried_before(shared, &key, &head).await?;
    for record in earlier_attempts(shared, &key, view.attempts).await?.into_iter().chain([last]) {
        // None of its attempts left a record.
        if record.is_empty() {
            continue;
        }
        found.push(codec::decode_attempt(&record).map_err(|_| damaged())?);
    }
    let known: Vec<AttemptNumber> = found.iter().map(|record| record.number).collect();
    found.extend(before.into_iter().filter(|record| !known.contains(&record.number)));
    found.sort_by_key(|record| record.number);
    let shown = |record| {
        let EventHead { content_type, headers, .. } = head.clone();
        AttemptView { record, event_id: view.event_id.clone(), content_type, headers }
    };
    Ok(found.into_iter().map(shown).collect())
}

/// What the text of an event that came in through the public keys says of its attempts.
async fn tried_before(
    shared: &Shared,
    key: &str,
    head: &EventHead,
) -> Result<Vec<AttemptRecord>, StoreError> {
    if !head.is_adopted() {
        return Ok(Vec::new());
    }
    let mut ask = redis::cmd("HGET");
    ask.arg(shared.keys.own("events")).arg(key);
    let Some(record) = bytes(shared.reads.command(&ask).await?)? else { return Ok(Vec::new()) };
    let key = codec::parse_key(key.as_bytes()).map_err(|_| damaged())?;
    let (_, text) = codec::decode_event(&record, key, shared.ids()).map_err(|_| damaged())?;
    Ok(match text.as_deref().map(Entry::read) {
        Some(Read::Event(entry)) => entry.mark.tentou.iter().map(Tried::record).collect(),
        _ => Vec::new(),
    })
}

/// What moves between ours and the public keys while it is looked for is looked for again.
const LOOKS: usize = 2;

/// The records of all attempts but the last, which is with its delivery.
async fn earlier_attempts(
    shared: &Shared,
    key: &str,
    attempts: u32,
) -> Result<Vec<bytes::Bytes>, StoreError> {
    if attempts < 2 {
        return Ok(Vec::new());
    }
    let mut ask = redis::cmd("HMGET");
    ask.arg(shared.keys.own("attempts"));
    for number in 1..=attempts.min(MOST_ATTEMPTS) {
        ask.arg(format!("{key}:{number}"));
    }
    let mut found = Vec::new();
    for record in array(shared.reads.command(&ask).await?)? {
        // A number that was settled without a record has none.
        found.extend(bytes(record)?);
    }
    Ok(found)
}

pub(crate) async fn stats(shared: &Shared) -> Result<Stats, StoreError> {
    let answers = shared.reads.call(&shared.call(&STATS)).await?;
    let [counted, head, lanes, public @ ..] = exactly::<7>(answers)?;
    let (mut counts, bytes) = counts(array(counted)?)?;
    count_public(&mut counts, &public)?;
    if let Some(outlying) = &shared.outlying {
        outlying.count(shared, &mut counts).await?;
    }
    let oldest = array(head)?.get(1).map(number).transpose()?.flatten();
    let oldest = oldest.map(|due| Millis::new(u64::try_from(due).unwrap_or(0)));
    let now = shared.clock.now();
    Ok(Stats {
        counts,
        oldest_due: oldest.filter(|due| *due <= now),
        lanes: u64::try_from(some_number(&lanes)?).unwrap_or(0),
        bytes,
    })
}

/// What is in the public keys is kept there by whoever pushed it: it is counted where it stands.
fn count_public(counts: &mut Counts, [ready, waiting, buried, taken]: &[Value; 4]) -> Result<(), StoreError> {
    let length = |value| some_number(value).map(|length| u64::try_from(length).unwrap_or(0));
    let (pending, scheduled, dead) = (length(ready)? + length(taken)?, length(waiting)?, length(buried)?);
    counts.accepted += pending + scheduled + dead;
    counts.pending += pending;
    counts.scheduled += scheduled;
    counts.dead += dead;
    Ok(())
}

fn counts(values: Vec<Value>) -> Result<(Counts, u64), StoreError> {
    let (mut counts, mut bytes) = (Counts::default(), 0);
    let mut values = values.into_iter();
    while let (Some(name), Some(count)) = (values.next(), values.next()) {
        let count = u64::try_from(some_number(&count)?).unwrap_or(0);
        match &*some_bytes(name)? {
            b"accepted" => counts.accepted = count,
            b"pending" => counts.pending = count,
            b"in_flight" => counts.in_flight = count,
            b"scheduled" => counts.scheduled = count,
            b"delivered" => counts.delivered = count,
            b"dead" => counts.dead = count,
            b"cancelled" => counts.cancelled = count,
            b"expunged" => counts.expunged = count,
            b"bytes" => bytes = count,
            // Of a newer version.
            _ => {}
        }
    }
    Ok((counts, bytes))
}

/// A record that cannot be read where one was asked for.
fn damaged() -> StoreError {
    StoreError::new(
        teimoso_delivery::store::StoreErrorKind::Failed,
        "a record in redis cannot be read: it is damaged, or a newer teimoso wrote it",
    )
}
