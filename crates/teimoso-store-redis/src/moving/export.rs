//! Moving out.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

use redis::{Value, cmd};
use teimoso_delivery::model::{Application, EventId, Key, LaneKey, LaneRecord, Millis, PauseWhy};
use teimoso_delivery::store::{
    Closing, DeliveryParcel, EventName, EventParcel, LaneParcel, NameParcel, Origin, Page, Parcel,
    StoreError, StoreErrorKind,
};

use super::public;
use crate::codec::{self, DeliveryRecord, JobRecord, Reader, Unreadable, key_text, parse_key};
use crate::ingress;
use crate::reply::{array, bytes, exactly, natural, number, some_bytes, some_number};
use crate::scripts::MOVE;
use crate::shared::Shared;

/// Events of one page.
const EVENTS: usize = 64;
/// Of everything smaller.
const STEP: usize = 200;

fn failed(sentence: &str) -> StoreError {
    StoreError::new(StoreErrorKind::Failed, sentence)
}

pub(super) fn damaged(_: Unreadable) -> StoreError {
    failed(
        "a record in redis cannot be read: it is damaged, or a newer teimoso wrote it; `teimoso doctor` names it",
    )
}

pub(crate) async fn page(shared: &Shared, cursor: Option<String>) -> Result<Page<Parcel>, StoreError> {
    let Some(cursor) = cursor else { return beginning(shared).await };
    let (phase, place) = cursor.split_at_checked(1).unwrap_or_default();
    let index = || place.parse::<usize>().map_err(|_| failed("the cursor is none of an export"));
    match phase {
        "e" => events(shared, place).await,
        "w" => public::waiting(shared, index()?).await,
        "b" => public::buried(shared, index()?).await,
        "n" => names(shared, place).await,
        "j" => jobs(shared).await,
        _ => Err(failed("the cursor is none of an export")),
    }
}

/// What is ready in the public keys is adopted first, as any worker does.
async fn beginning(shared: &Shared) -> Result<Page<Parcel>, StoreError> {
    while ingress::adopt(shared).await? > 0 {}
    public::begin(shared).await?;
    let mut data = vec![Parcel::Origin(Origin { salt: shared.ids().salt() })];
    data.extend(lanes(shared).await?);
    Ok(Page { data, next_cursor: Some("e-".to_owned()) })
}

async fn lanes(shared: &Shared) -> Result<Vec<Parcel>, StoreError> {
    let (mut found, mut cursor) = (BTreeSet::new(), "0".to_owned());
    let mut parcels = Vec::new();
    loop {
        let (members, next) = scan(shared, "lane_names", &cursor).await?;
        // A scan may show one twice.
        let fresh: Vec<Vec<u8>> =
            members.into_iter().map(|(id, _)| id).filter(|id| found.insert(id.clone())).collect();
        let mut call = shared.call(&MOVE);
        call.arg("remembered");
        for id in &fresh {
            call.arg(id.as_slice());
        }
        let mut answer = array(shared.reads.call(&call).await?)?.into_iter();
        while let (Some(name), Some(why), Some(until), Some(allowance), Some(openings)) =
            (answer.next(), answer.next(), answer.next(), answer.next(), answer.next())
        {
            let Some(key) = lane_key(&some_bytes(name)?) else { continue };
            let until = Millis::new(natural(&until)?);
            let not_before = match some_number(&why)? {
                1 => Some((until, PauseWhy::RetryAfter)),
                2 => Some((until, PauseWhy::Breaker)),
                _ => None,
            };
            let allowance = NonZeroU32::new(natural(&allowance)?);
            let record = LaneRecord { not_before, allowance, openings: natural(&openings)? };
            parcels.push(Parcel::Lane(LaneParcel { key, record }));
        }
        match next {
            Some(next) => cursor = next,
            None => return Ok(parcels),
        }
    }
}

/// A step of a scan: members with what stands beside each, and where to go on.
type Scanned = (Vec<(Vec<u8>, Vec<u8>)>, Option<String>);

async fn scan(shared: &Shared, hash: &str, cursor: &str) -> Result<Scanned, StoreError> {
    let mut ask = cmd("HSCAN");
    ask.arg(shared.keys.own(hash)).arg(cursor).arg("COUNT").arg(STEP);
    let [next, members] = exactly::<2>(shared.reads.command(&ask).await?)?;
    let next = String::from_utf8_lossy(&some_bytes(next)?).into_owned();
    let (mut members, mut pairs) = (array(members)?.into_iter(), Vec::new());
    while let (Some(member), Some(beside)) = (members.next(), members.next()) {
        pairs.push((some_bytes(member)?.to_vec(), some_bytes(beside)?.to_vec()));
    }
    Ok((pairs, (next != "0").then_some(next)))
}

/// Application, line feed, address.
fn lane_key(name: &[u8]) -> Option<LaneKey> {
    let (application, address) = std::str::from_utf8(name).ok()?.split_once('\n')?;
    Some(LaneKey { application: Application::parse(application).ok()?, address: address.into() })
}

async fn hmget(shared: &Shared, hash: &str, fields: &[String]) -> Result<Vec<Value>, StoreError> {
    if fields.is_empty() {
        return Ok(Vec::new());
    }
    let mut ask = cmd("HMGET");
    ask.arg(shared.keys.own(hash)).arg(fields);
    array(shared.reads.command(&ask).await?)
}

async fn events(shared: &Shared, from: &str) -> Result<Page<Parcel>, StoreError> {
    let mut range = cmd("ZRANGEBYLEX");
    range.arg(shared.keys.own("order:events")).arg(from).arg("+").arg("LIMIT").arg(0).arg(EVENTS);
    let keys = array(shared.reads.command(&range).await?)?;
    let keys = keys.into_iter().map(|key| parse_key(&some_bytes(key)?).map_err(damaged));
    let keys = keys.collect::<Result<Vec<Key>, StoreError>>()?;
    let Some(last) = keys.last() else {
        return Ok(Page { data: Vec::new(), next_cursor: Some("w0".to_owned()) });
    };
    let next_cursor = Some(format!("e({}", key_text(*last)));
    let texts: Vec<String> = keys.iter().copied().map(key_text).collect();
    let records = hmget(shared, "events", &texts).await?;
    let after: Vec<String> = keys.iter().map(|key| key_text(delivery_key(*key))).collect();
    let mut deliveries = deliveries(shared, &after).await?;
    let mut data = Vec::new();
    for (key, record) in keys.into_iter().zip(records) {
        let Some(record) = bytes(record)? else { continue };
        let (event, _) = codec::decode_event(&record, key, shared.ids()).map_err(damaged)?;
        let deliveries = deliveries.remove(&key).into_iter().collect();
        data.push(Parcel::Event(Box::new(EventParcel { key, event, deliveries })));
    }
    Ok(Page { data, next_cursor })
}

/// An event's delivery has the key after its own.
pub(super) fn delivery_key(event: Key) -> Key {
    Key::from_raw(event.raw().saturating_add(1)).unwrap_or(event)
}

/// The deliveries that are there, by their event.
async fn deliveries(shared: &Shared, keys: &[String]) -> Result<HashMap<Key, DeliveryParcel>, StoreError> {
    let (mut found, mut wanted) = (Vec::new(), Vec::new());
    for (text, record) in keys.iter().zip(hmget(shared, "deliveries", keys).await?) {
        let Some(record) = bytes(record)? else { continue };
        let record = DeliveryRecord::decode(&record).map_err(damaged)?;
        wanted.extend((1..=record.progress.attempts).map(|number| format!("{text}:{number}")));
        found.push((parse_key(text.as_bytes()).map_err(damaged)?, record));
    }
    let mut attempts = HashMap::new();
    for some in wanted.chunks(STEP) {
        for (field, attempt) in some.iter().zip(hmget(shared, "attempts", some).await?) {
            // A number that was settled without a record has none.
            let Some(attempt) = bytes(attempt)? else { continue };
            attempts.insert(field.clone(), codec::decode_attempt(&attempt).map_err(damaged)?);
        }
    }
    let lanes: Vec<String> = found.iter().map(|(_, record)| record.lane.to_string()).collect();
    let names = hmget(shared, "lane_names", &lanes).await?;
    let now = shared.clock.now();
    let mut parcels = HashMap::new();
    for ((key, record), name) in found.into_iter().zip(names) {
        let lane = bytes(name)?.and_then(|name| lane_key(&name));
        let lane =
            lane.ok_or_else(|| failed("a delivery's lane is unknown; `teimoso doctor --heal` finds it"))?;
        let text = key_text(key);
        let numbers = 1..=record.progress.attempts;
        let parcel = DeliveryParcel {
            key,
            lane,
            state: record.state,
            progress: record.progress,
            due: record.due,
            reason: record.reason,
            finished_at: record.finished_at,
            attempts: numbers.filter_map(|number| attempts.remove(&format!("{text}:{number}"))).collect(),
        };
        parcels.insert(record.event, parcel.at_rest(record.cancel_wished, now));
    }
    Ok(parcels)
}

async fn names(shared: &Shared, cursor: &str) -> Result<Page<Parcel>, StoreError> {
    let (members, next) = scan(shared, "names", cursor).await?;
    let data = members.iter().filter_map(|(name, value)| name_parcel(name, value).ok());
    let data = data.map(Parcel::Name).collect();
    let next_cursor = Some(next.map_or_else(|| "j".to_owned(), |next| format!("n{next}")));
    Ok(Page { data, next_cursor })
}

fn name_parcel(name: &[u8], value: &[u8]) -> Result<NameParcel, Unreadable> {
    let name = std::str::from_utf8(name).map_err(|_| Unreadable)?;
    let (kind, rest) = name.split_at_checked(1).ok_or(Unreadable)?;
    let (application, text) = rest.split_once('\n').ok_or(Unreadable)?;
    let name = match kind {
        "i" => EventName::Id(text.into()),
        "k" => EventName::Key(codec::unhex(text).ok_or(Unreadable)?),
        _ => return Err(Unreadable),
    };
    // event, fingerprint, remembered until, deliveries; then the caller's id
    let mut reader = Reader::new(value);
    let event = parse_key(reader.take(15)?)?;
    let fingerprint = reader.take(16)?.try_into().map_err(|_| Unreadable)?;
    let until = Millis::new(reader.u64()?);
    reader.u16()?;
    let id = std::str::from_utf8(reader.rest()).map_err(|_| Unreadable)?;
    let event_id = EventId::named(id).is_ok().then(|| id.into());
    let application = Application::parse(application).map_err(|_| Unreadable)?;
    Ok(NameParcel { application, name, fingerprint, event, event_id, until })
}

/// The last page.
async fn jobs(shared: &Shared) -> Result<Page<Parcel>, StoreError> {
    let (mut jobs, mut cursor) = (std::collections::BTreeMap::new(), "0".to_owned());
    loop {
        let (members, next) = scan(shared, "jobs", &cursor).await?;
        jobs.extend(members);
        match next {
            Some(next) => cursor = next,
            None => break,
        }
    }
    let mut data = Vec::new();
    for (key, record) in jobs {
        let text = String::from_utf8_lossy(&key).into_owned();
        let job = JobRecord::decode(&record).map_err(damaged)?;
        let mut ask = cmd("LINDEX");
        ask.arg(shared.keys.own(&format!("job:{text}"))).arg(0);
        let left = bytes(shared.reads.command(&ask).await?)?.and_then(|left| parse_key(&left).ok());
        let seen = left.and_then(|left| Key::from_raw(left.raw() - 1));
        data.push(Parcel::Replay(job.parcel(parse_key(&key).map_err(damaged)?, seen)));
    }
    data.push(Parcel::End(closing(shared).await?));
    Ok(Page { data, next_cursor: None })
}

async fn closing(shared: &Shared) -> Result<Closing, StoreError> {
    let ask = |hash: String, field: &str| {
        let mut ask = cmd("HGET");
        ask.arg(hash).arg(field);
        ask
    };
    let expunged = shared.reads.command(&ask(shared.keys.own("counts"), "expunged")).await?;
    let expunged = number(&expunged)?.and_then(|count| u64::try_from(count).ok()).unwrap_or(0);
    let last = bytes(shared.reads.command(&ask(shared.keys.meta(), "last_key")).await?)?;
    let last = last.and_then(|last| parse_key(&last).ok());
    // Keys that entries of the public keys got for the move are later than any other.
    Ok(Closing { expunged, last_key: last.max(public::last_key(shared)) })
}
