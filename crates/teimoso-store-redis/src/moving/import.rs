//! Moving in.

use std::num::NonZeroU32;

use redis::Value;
use teimoso_delivery::model::{DeadReason, IdSpace, Key, Millis, Mode, PauseWhy};
use teimoso_delivery::store::{
    Closing, DeliveryParcel, EventName, EventParcel, LaneParcel, NameParcel, NewReplay, Origin, Parcel,
    ReplayParcel, ReplayState, StoreError, StoreErrorKind,
};

use super::lane_name;
use crate::codec::{self, encode_attempt, key_text};
use crate::command::gather;
use crate::scripts::{Call, MOVE};
use crate::shared::Shared;

/// Parcels of one script …
const MOST: usize = 50;
/// … and about how many bytes of payload.
const BYTES: usize = 1 << 20;

/// Keeps parcels in their order, a few of a kind in one script.
pub(crate) async fn import(shared: &Shared, parcels: Vec<Parcel>) -> Result<(), StoreError> {
    let mut batch = Batch { shared, open: None, count: 0, bytes: 0 };
    for parcel in &parcels {
        match parcel {
            Parcel::Origin(origin) => {
                batch.flush().await?;
                begin(shared, *origin).await?;
            }
            Parcel::Lane(lane) => add_lane(batch.of("lanes", 0).await?, lane),
            Parcel::Event(event) => {
                check_mode(shared, event)?;
                let call = batch.of("events", event.event.payload.len()).await?;
                add_event(call, event, shared.ids());
            }
            Parcel::Name(name) => add_name(batch.of("names", 0).await?, name),
            Parcel::Replay(replay) => {
                batch.flush().await?;
                job(shared, replay).await?;
            }
            Parcel::End(end) => {
                batch.flush().await?;
                close(shared, *end).await?;
            }
        }
    }
    batch.flush().await
}

/// What may not be made twice is not taken where that cannot be promised (G4).
fn check_mode(shared: &Shared, parcel: &EventParcel) -> Result<(), StoreError> {
    let once =
        |delivery: &DeliveryParcel| delivery.progress.mode == Mode::AtMostOnce && !delivery.state.is_final();
    if !parcel.deliveries.iter().any(once) || shared.survey.found().carries_at_most_once() {
        return Ok(());
    }
    Err(StoreError::new(
        StoreErrorKind::Failed,
        format!(
            "event {} is to be delivered at most once, which this redis cannot promise; set appendfsync always, or \
             let it be delivered first",
            parcel.event.id
        ),
    ))
}

/// Parcels of one kind on their way.
struct Batch<'a> {
    shared: &'a Shared,
    open: Option<(&'static str, Call)>,
    count: usize,
    bytes: usize,
}

impl Batch<'_> {
    /// The call that takes one more of this kind.
    async fn of(&mut self, kind: &'static str, bytes: usize) -> Result<&mut Call, StoreError> {
        let fits = self.open.as_ref().is_some_and(|(open, _)| *open == kind)
            && self.count < MOST
            && self.bytes + bytes <= BYTES;
        if !fits {
            self.flush().await?;
        }
        self.count += 1;
        self.bytes += bytes;
        let (_, call) = self.open.get_or_insert_with(|| (kind, call(self.shared, kind)));
        Ok(call)
    }

    async fn flush(&mut self) -> Result<(), StoreError> {
        (self.count, self.bytes) = (0, 0);
        match self.open.take() {
            Some((_, call)) => run(self.shared, &call).await,
            None => Ok(()),
        }
    }
}

fn call(shared: &Shared, kind: &str) -> Call {
    let mut call = shared.call(&MOVE);
    call.arg(kind);
    call
}

/// On the link that repeats: everything may be taken twice.
async fn run(shared: &Shared, call: &Call) -> Result<(), StoreError> {
    match shared.reads.call(call).await? {
        Value::Nil => Err(StoreError::new(
            StoreErrorKind::Failed,
            "nothing is being moved in here; a move begins with its origin",
        )),
        _ => Ok(()),
    }
}

async fn begin(shared: &Shared, origin: Origin) -> Result<(), StoreError> {
    let mut begin = call(shared, "origin");
    begin.arg(format!("{:016x}", origin.salt));
    match shared.reads.call(&begin).await? {
        Value::Nil => Err(StoreError::new(
            StoreErrorKind::Failed,
            "the redis that is to be moved into is not empty; choose an empty one, or another TEIMOSO_REDIS_PREFIX",
        )),
        _ => {
            shared.adopt_ids(origin.salt);
            Ok(())
        }
    }
}

fn add_lane(call: &mut Call, lane: &LaneParcel) {
    let record = &lane.record;
    let (until, why) = match record.not_before {
        Some((until, PauseWhy::RetryAfter)) => (until, 1u8),
        Some((until, PauseWhy::Breaker)) => (until, 2),
        None => (Millis::default(), 0),
    };
    call.arg(lane_name(&lane.key)).number(why).number(until.get());
    call.number(record.allowance.map_or(0, NonZeroU32::get)).number(record.openings);
}

fn add_event(call: &mut Call, parcel: &EventParcel, ids: IdSpace) {
    let EventParcel { key, event, deliveries } = parcel;
    call.arg(key_text(*key)).arg(codec::encode_moved(event, *key, ids)).number(key.at().get());
    match deliveries.first() {
        None => {
            call.number(0u8);
        }
        Some(delivery) => add_delivery(call.number(1u8), delivery),
    }
}

fn add_delivery(call: &mut Call, parcel: &DeliveryParcel) {
    let progress = &parcel.progress;
    let at = |instant: Option<Millis>| instant.map_or(0, Millis::get);
    call.arg(lane_name(&parcel.lane)).number(parcel.state.tag());
    call.number(parcel.reason.map_or(0, DeadReason::tag)).number(progress.mode.tag());
    call.number(progress.why.tag()).number(progress.recoveries);
    call.number(progress.attempts).number(progress.budget_from).number(parcel.due.get());
    call.number(at(progress.first_attempt_at)).number(at(parcel.finished_at));
    call.number(parcel.attempts.len() as u64);
    for attempt in &parcel.attempts {
        call.number(attempt.number.get()).arg(encode_attempt(attempt));
    }
}

fn add_name(call: &mut Call, parcel: &NameParcel) {
    call.arg(name_text(parcel)).arg(key_text(parcel.event)).arg(parcel.fingerprint);
    call.number(parcel.until.get()).arg(parcel.event_id.as_deref().unwrap_or(""));
}

/// As the script that accepts spells it.
fn name_text(parcel: &NameParcel) -> String {
    match &parcel.name {
        EventName::Id(id) => format!("i{}\n{id}", parcel.application),
        EventName::Key(digest) => format!("k{}\n{}", parcel.application, codec::hex(digest)),
    }
}

async fn job(shared: &Shared, parcel: &ReplayParcel) -> Result<(), StoreError> {
    let mut prepared = String::new();
    if parcel.state == ReplayState::Running {
        prepared = format!("job:prepared:{:016x}", shared.entropy.next_u64());
        let list = shared.keys.own(&prepared);
        let seen = parcel.seen.and_then(codec::event_key);
        gather(shared, &parcel.filter, seen, Some(&list)).await?;
    }
    let order = NewReplay { filter: parcel.filter, rate: parcel.rate, dry_run: false };
    let mut call = call(shared, "job");
    call.arg(key_text(parcel.key)).arg(codec::encode_job(&order, parcel)).arg(prepared);
    run(shared, &call).await
}

async fn close(shared: &Shared, end: Closing) -> Result<(), StoreError> {
    let mut call = call(shared, "end");
    call.number(end.expunged).arg(end.last_key.map_or_else(String::new, |key: Key| key_text(key)));
    // Not on the link that repeats: what was expunged would count twice.
    match shared.accepts.call(&call).await? {
        Value::Nil => Err(StoreError::new(StoreErrorKind::Failed, "nothing is being moved in here")),
        _ => Ok(()),
    }
}
