//! What the cycle is told of a lease's end and of its renewal. Not kept, so without a version.

use teimoso_delivery::model::{DeadReason, Millis, NextWhy};
use teimoso_delivery::store::{LaneNews, LeaseRef, Next, Settlement};

use super::{DeliveryRecord, encode_attempt, nonce_bytes};

/// `QUICK` of the scripts.
const QUICK: u8 = 4;

/// What every settlement begins with: nonce, what is next, news of the lane, when.
fn start(next: u8, settlement: &Settlement) -> Vec<u8> {
    let (news, _) = news(settlement.news);
    let mut out = Vec::with_capacity(192);
    out.extend(nonce_bytes(settlement.lease.nonce()));
    out.extend([next, news]);
    out.extend(settlement.at.get().to_be_bytes());
    out
}

fn news(news: LaneNews) -> (u8, Millis) {
    match news {
        LaneNews::Neutral => (0, Millis::default()),
        LaneNews::Success => (1, Millis::default()),
        LaneNews::Failure => (2, Millis::default()),
        LaneNews::Pause(until) => (3, until),
    }
}

/// The end of most attempts: delivered, with the record that says so. `finished_at` is of Redis' clock.
pub(crate) fn delivered(settlement: &Settlement, held: &DeliveryRecord, finished_at: Millis) -> Vec<u8> {
    let attempt = settlement.record.as_deref().map_or(Vec::new(), encode_attempt);
    let mut out = start(QUICK, settlement);
    out.extend(held.delivered(&settlement.progress, finished_at, &attempt));
    out
}

/// Any end: `FIXED` of the scripts, the attempt's record, and the text with which it goes back to the public keys
/// (empty: it does not).
pub(crate) fn settlement(settlement: &Settlement, text: &[u8]) -> Vec<u8> {
    let (next, reason, next_why, due) = match settlement.next {
        Next::Delivered => (0, 0, 0, Millis::default()),
        Next::Scheduled { due, why } => (1, 0, why.tag(), due),
        Next::Dead(reason) => (2, DeadReason::tag(reason), 0, Millis::default()),
        Next::Released => (3, 0, NextWhy::First.tag(), Millis::default()),
    };
    let (_, pause_until) = news(settlement.news);
    let progress = &settlement.progress;
    let attempt = settlement.record.as_deref().map_or(Vec::new(), encode_attempt);
    let mut out = start(next, settlement);
    out.extend([reason, next_why, progress.mode.tag(), progress.why.tag(), progress.recoveries]);
    out.extend(progress.attempts.to_be_bytes());
    out.extend(progress.budget_from.to_be_bytes());
    out.extend(progress.first_attempt_at.map_or(0, Millis::get).to_be_bytes());
    out.extend(due.get().to_be_bytes());
    out.extend(pause_until.get().to_be_bytes());
    out.extend(u32::try_from(attempt.len()).unwrap_or(u32::MAX).to_be_bytes());
    out.extend(attempt);
    out.extend(text);
    out
}

/// Nonce, until when.
pub(crate) fn renewal(lease: &LeaseRef, until: Millis) -> Vec<u8> {
    let mut out = nonce_bytes(lease.nonce).to_vec();
    out.extend(until.get().to_be_bytes());
    out
}
