//! What a cycle answered: leases with their events, lanes that were paused, when to wake.

use std::sync::Arc;

use bytes::Bytes;
use redis::Value;
use teimoso_delivery::model::{DeadReason, DeliveryId, Key, Lease, Millis, Nonce, PauseWhy, Progress};
use teimoso_delivery::store::{
    Claim, ClaimRequest, Claimed, LaneNews, LanePause, LeaseRef, Next, Settlement, StoreError,
};

use crate::codec::{self, DeliveryRecord, Unreadable};
use crate::ingress::{self, Held};
use crate::reply::{array, exactly, natural, some_bytes, some_number};
use crate::shared::Shared;

/// Everything a cycle answers.
pub(crate) struct Answer {
    pub(crate) bell: i64,
    /// There is more to do than one script may: claim again at once.
    pub(crate) unfinished: bool,
    /// Renewals that came too late, by their place in the call.
    pub(crate) lost: Vec<usize>,
    pub(crate) paused: Vec<LanePause>,
    pub(crate) claim: Claim,
    pub(crate) unusable: Vec<Unusable>,
    /// The records of the claim, under their leases.
    pub(crate) held: Vec<(LeaseRef, DeliveryRecord)>,
    /// How far Redis' clock is ahead of ours, in ms.
    pub(crate) shift: i64,
    /// What of the claim goes back to the public keys when it waits or dies.
    pub(crate) adopted: Vec<(LeaseRef, Arc<Held>)>,
    /// The public keys have something to adopt.
    pub(crate) ingress: bool,
    /// How far the server's clock went back further than is believed, in ms; 0 when it did not.
    pub(crate) rebased: u64,
}

/// A leased delivery that is not to be attempted: too little of it can be read, or it was there at too many deaths.
pub(crate) struct Unusable {
    delivery: DeliveryId,
    nonce: Nonce,
    progress: Progress,
    reason: DeadReason,
}

impl Unusable {
    /// Dead without an attempt.
    pub(crate) fn settlement(self, at: Millis) -> Settlement {
        let next = Next::Dead(self.reason);
        let lease = Lease::grant(self.delivery, self.nonce);
        Settlement { lease, next, progress: self.progress, record: None, news: LaneNews::Neutral, at }
    }
}

/// A claim that nobody took.
pub(crate) fn released(claimed: Claimed, at: Millis) -> Settlement {
    let Claimed { lease, progress, .. } = claimed;
    Settlement { lease, next: Next::Released, progress, record: None, news: LaneNews::Neutral, at }
}

/// The lane's address within its name: application, line feed, address.
fn address(name: &[u8]) -> Arc<str> {
    let name = String::from_utf8_lossy(name);
    name.split_once('\n').map_or(&*name, |(_, address)| address).into()
}

impl Answer {
    pub(crate) fn read(
        value: Value,
        shared: &Shared,
        request: Option<&ClaimRequest>,
    ) -> Result<Self, StoreError> {
        let [bell, unfinished, wake, lost, paused, taken, shift, rebased, ingress] = exactly::<9>(value)?;
        let shift = some_number(&shift)?;
        let mut answer = Self {
            bell: some_number(&bell)?,
            unfinished: some_number(&unfinished)? != 0,
            lost: array(lost)?.iter().map(natural).collect::<Result<_, _>>()?,
            paused: pauses(array(paused)?)?,
            claim: Claim {
                taken: Vec::new(),
                wake_at: u64::try_from(some_number(&wake)?).ok().map(Millis::new),
            },
            unusable: Vec::new(),
            held: Vec::new(),
            shift,
            adopted: Vec::new(),
            ingress: some_number(&ingress)? != 0,
            rebased: natural(&rebased)?,
        };
        if let Some(request) = request {
            let mut taken = array(taken)?.into_iter();
            while let (Some(key), Some(record), Some(event)) = (taken.next(), taken.next(), taken.next()) {
                answer.take_in(Taken { key, record, event }, shared, request.nonce)?;
            }
        }
        Ok(answer)
    }

    fn take_in(&mut self, taken: Taken, shared: &Shared, nonce: Nonce) -> Result<(), StoreError> {
        let (key, record) = (some_bytes(taken.key)?, some_bytes(taken.record)?);
        let event = some_bytes(taken.event)?;
        // A key or a record that cannot be read names no lease that could be given back: it ends by itself.
        let Ok((key, record)) = read_record(&key, &record, &event, nonce) else { return Ok(()) };
        let delivery = shared.delivery_id(key);
        let event = codec::decode_event(&event, key, shared.ids());
        let usable = event.ok().and_then(|(event, raw)| Some((event.url.clone()?, event, raw)));
        let Some((url, event, raw)) = usable else {
            let reason = DeadReason::Malformed;
            self.unusable.push(Unusable { delivery, nonce, progress: record.progress, reason });
            return Ok(());
        };
        if let Some(raw) = raw {
            let held = Held { raw, event: key, id: event.id.clone() };
            self.adopted.push((LeaseRef { delivery, nonce }, Arc::new(held)));
        }
        if record.is_poison() {
            let reason = DeadReason::Poison;
            self.unusable.push(Unusable { delivery, nonce, progress: record.progress, reason });
            self.held.push((LeaseRef { delivery, nonce }, record));
            return Ok(());
        }
        let due = record.due.get().saturating_add_signed(self.shift.saturating_neg());
        self.claim.taken.push(Claimed {
            lease: Lease::grant(delivery, nonce),
            lane: ingress::lane_of(&url).0.into(),
            event: Arc::new(event),
            url,
            progress: record.progress,
            due: Millis::new(due),
        });
        self.held.push((LeaseRef { delivery, nonce }, record));
        Ok(())
    }
}

struct Taken {
    key: Value,
    record: Value,
    event: Value,
}

/// A first claim has no record of its own in the answer: the event says it.
fn read_record(
    key: &[u8],
    record: &Bytes,
    event: &[u8],
    nonce: Nonce,
) -> Result<(Key, DeliveryRecord), Unreadable> {
    let record = match record.is_empty() {
        true => DeliveryRecord::claimed_first(event, nonce),
        false => DeliveryRecord::decode(record),
    };
    Ok((codec::parse_key(key)?, record?))
}

fn pauses(values: Vec<Value>) -> Result<Vec<LanePause>, StoreError> {
    let mut found = Vec::new();
    let mut values = values.into_iter();
    while let (Some(name), Some(until), Some(why)) = (values.next(), values.next(), values.next()) {
        let why = if some_number(&why)? == 2 { PauseWhy::Breaker } else { PauseWhy::RetryAfter };
        let until = Millis::new(u64::try_from(some_number(&until)?).unwrap_or(0));
        found.push(LanePause { lane: address(&some_bytes(name)?), until, why });
    }
    Ok(found)
}
