//! What the cycle is told of a lease's end and of its renewal. Not kept, so without a version.

use teimoso_delivery::model::{DeadReason, Key, Millis, NextWhy};
use teimoso_delivery::store::{LaneNews, LeaseRef, Next, Settlement};

use super::{key_text, nonce_bytes};

/// `SETTLEMENT` of the cycle.
pub(crate) fn settlement(key: Key, settlement: &Settlement) -> Vec<u8> {
    let (next, reason, next_why, due) = match settlement.next {
        Next::Delivered => (0, 0, 0, Millis::default()),
        Next::Scheduled { due, why } => (1, 0, why.tag(), due),
        Next::Dead(reason) => (2, DeadReason::tag(reason), 0, Millis::default()),
        Next::Released => (3, 0, NextWhy::First.tag(), Millis::default()),
    };
    let (news, pause_until) = match settlement.news {
        LaneNews::Neutral => (0, Millis::default()),
        LaneNews::Success => (1, Millis::default()),
        LaneNews::Failure => (2, Millis::default()),
        LaneNews::Pause(until) => (3, until),
    };
    let progress = &settlement.progress;
    let number = settlement.record.as_ref().map_or(0, |record| record.number.get());
    let mut out = key_text(key).into_bytes();
    out.extend(nonce_bytes(settlement.lease.nonce()));
    out.extend([next, reason, next_why, progress.mode.tag(), progress.why.tag(), progress.recoveries]);
    out.extend(progress.attempts.to_be_bytes());
    out.extend(progress.budget_from.to_be_bytes());
    out.extend(progress.first_attempt_at.map_or(0, Millis::get).to_be_bytes());
    out.extend(due.get().to_be_bytes());
    out.push(news);
    out.extend(pause_until.get().to_be_bytes());
    out.extend(settlement.at.get().to_be_bytes());
    out.extend(number.to_be_bytes());
    out
}

/// `RENEWAL` of the cycle.
pub(crate) fn renewal(key: Key, lease: &LeaseRef, until: Millis) -> Vec<u8> {
    let mut out = key_text(key).into_bytes();
    out.extend(nonce_bytes(lease.nonce));
    out.extend(until.get().to_be_bytes());
    out
}
