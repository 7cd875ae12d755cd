//! Moving out.

use std::collections::{BTreeSet, HashMap};
use std::num::NonZeroU32;

use bytes::Bytes;
use redis::{Value, cmd};
use teimoso_delivery::model::{
    Application, AttemptRecord, EventId, Key, LaneKey, LaneRecord, Millis, PauseWhy,
};
use teimoso_delivery::store::{
    Closing, Counts, DeliveryParcel, EventName, EventParcel, LaneParcel, NameParcel, Origin, Page, Parcel,
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
        "e" => events(shared, index()?).await,
        "o" => old_events(shared, place).await,
        "w" => public::waiting(shared, index()?).await,
        "b" => public::buried(shared, index()?).await,
        "n" => names(shared, place).await,
        "j" => jobs(shared).await,
        _ => Err(failed("the cursor is none of an export")),
    }
}

/// What is ready in the public keys is adopted first, as any worker does.
async fn beginning(shared: &Shared) -> Result<Page<Parcel>, StoreError> {
    if let Some(outlying) = &shared.outlying {
        let mut counts = Counts::default();
        outlying.count(shared, &mut counts).await?;
        if counts.accepted > 0 {
            return Err(failed(
                "in a redis cluster what lies in espera and mortos is on other servers and does not move: replay or \
                 remove it first",
            ));
        }
    }
    while ingress::adopt(shared).await? > 0 {}
    public::begin(shared).await?;
    let mut data = vec![Parcel::Origin(Origin { salt: shared.ids().salt() })];
    data.extend(lanes(shared).await?);
    Ok(Page { data, next_cursor: Some("e0".to_owned()) })
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

/// In the order in which they came; those beside the list come last.
async fn events(shared: &Shared, from: usize) -> Result<Page<Parcel>, StoreError> {
    let mut range = cmd("LRANGE");
    range.arg(shared.keys.own("order:events")).arg(from).arg(from + EVENTS - 1);
    let texts = texts(shared.reads.command(&range).await?)?;
    if texts.is_empty() {
        return Ok(Page { data: Vec::new(), next_cursor: Some("o-".to_owned()) });
    }
    // The list may name what came back and stands beside it.
    let mut beside = cmd("ZMSCORE");
    beside.arg(shared.keys.own("order:old")).arg(&texts);
    let beside = array(shared.reads.command(&beside).await?)?;
    let listed = texts.iter().zip(beside).filter(|(_, beside)| *beside == Value::Nil);
    let listed: Vec<String> = listed.map(|(text, _)| text.clone()).collect();
    let next_cursor = Some(format!("e{}", from + EVENTS));
    Ok(Page { data: event_parcels(shared, &listed).await?, next_cursor })
}

async fn old_events(shared: &Shared, from: &str) -> Result<Page<Parcel>, StoreError> {
    let mut range = cmd("ZRANGEBYLEX");
    range.arg(shared.keys.own("order:old")).arg(from).arg("+").arg("LIMIT").arg(0).arg(EVENTS);
    let texts = texts(shared.reads.command(&range).await?)?;
    let next_cursor = Some(texts.last().map_or_else(|| "w0".to_owned(), |last| format!("o({last}")));
    Ok(Page { data: event_parcels(shared, &texts).await?, next_cursor })
}

fn texts(value: Value) -> Result<Vec<String>, StoreError> {
    let text = |value| Ok(String::from_utf8_lossy(&some_bytes(value)?).into_owned());
    array(value)?.into_iter().map(text).collect()
}

/// An event's record with its delivery's, if it has one of its own.
struct Found {
    key: Key,
    record: Bytes,
    delivery: Option<DeliveryRecord>,
}

/// What is there of these; one that is named and gone is passed over.
async fn event_parcels(shared: &Shared, keys: &[String]) -> Result<Vec<Parcel>, StoreError> {
    let (records, deliveries) =
        (hmget(shared, "events", keys).await?, hmget(shared, "deliveries", keys).await?);
    let mut found = Vec::new();
    for ((text, record), delivery) in keys.iter().zip(records).zip(deliveries) {
        let Some(record) = bytes(record)? else { continue };
        let delivery = match bytes(delivery)? {
            Some(delivery) => Some(DeliveryRecord::decode(&delivery).map_err(damaged)?),
            None => DeliveryRecord::never_claimed(&record).map_err(damaged)?,
        };
        found.push(Found { key: parse_key(text.as_bytes()).map_err(damaged)?, record, delivery });
    }
    let mut attempts = earlier_attempts(shared, &found).await?;
    let lanes: Vec<String> =
        found.iter().filter_map(|one| Some(one.delivery.as_ref()?.lane.to_string())).collect();
    let mut names = hmget(shared, "lane_names", &lanes).await?.into_iter();
    let mut parcels = Vec::new();
    for Found { key, record, delivery } in found {
        let (event, _) = codec::decode_event(&record, key, shared.ids()).map_err(damaged)?;
        let mut deliveries = Vec::new();
        if let Some(record) = delivery {
            let lane = bytes(names.next().unwrap_or(Value::Nil))?.and_then(|name| lane_key(&name));
            let lane =
                lane.ok_or_else(|| failed("a delivery's lane is unknown; `teimoso doctor --heal` finds it"))?;
            let earlier = attempts.remove(&key).unwrap_or_default();
            deliveries.push(delivery_parcel(shared, key, &record, lane, earlier)?);
        }
        parcels.push(Parcel::Event(Box::new(EventParcel { key, event, deliveries })));
    }
    Ok(parcels)
}

fn delivery_parcel(
    shared: &Shared,
    event: Key,
    record: &DeliveryRecord,
    lane: LaneKey,
    mut attempts: Vec<AttemptRecord>,
) -> Result<DeliveryParcel, StoreError> {
    if !record.last.is_empty() {
        attempts.push(codec::decode_attempt(&record.last).map_err(damaged)?);
    }
    let parcel = DeliveryParcel {
        key: codec::delivery_key(event),
        lane,
        state: record.state,
        progress: record.progress,
        due: record.due,
        reason: record.reason,
        finished_at: record.finished_at,
        attempts,
    };
    Ok(parcel.at_rest(record.cancel_wished, shared.clock.now()))
}

/// Attempts before each delivery's last, which is in its record.
async fn earlier_attempts(
    shared: &Shared,
    found: &[Found],
) -> Result<HashMap<Key, Vec<AttemptRecord>>, StoreError> {
    let mut wanted = Vec::new();
    for Found { key, delivery, .. } in found {
        let last = delivery.as_ref().map_or(0, |delivery| delivery.progress.attempts);
        wanted.extend((1..last).map(|number| (*key, format!("{}:{number}", key_text(*key)))));
    }
    let mut attempts: HashMap<Key, Vec<AttemptRecord>> = HashMap::new();
    for some in wanted.chunks(STEP) {
        let fields: Vec<String> = some.iter().map(|(_, field)| field.clone()).collect();
        for ((key, _), attempt) in some.iter().zip(hmget(shared, "attempts", &fields).await?) {
            // A number that was settled without a record has none.
            let Some(attempt) = bytes(attempt)? else { continue };
            attempts.entry(*key).or_default().push(codec::decode_attempt(&attempt).map_err(damaged)?);
        }
    }
    Ok(attempts)
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
        // The list names events; the delivery before the next one is the last that was seen.
        data.push(Parcel::Replay(job.parcel(parse_key(&key).map_err(damaged)?, left)));
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
