//! Waiting without polling: the bell, the connection that hears it, and one jittered check per second.
//!
//! | where | what |
//! |---|---|
//! | `news` | what was heard, and what the last claim has seen of it |
//! | `tracked` | a connection on which a plain read arms a push |
//! | `seat` | which few of many processes are armed at once |
//! | `staged` | where something between us and the server knows no tracking: what is pushed is moved to a list of our own |
//!
//! Deliberately absent: what is claimed, which the next claim finds out.

mod news;
mod seat;
mod staged;
mod tracked;

use std::sync::Arc;
use std::time::Duration;

use redis::Value;

use crate::link::{Backoff, Failure, Trouble};
use crate::reply;
use crate::scripts::PEEK;
use crate::shared::Shared;
pub(crate) use news::Wake;
use seat::Seat;

/// The check for what a lost push would have said; jittered by a quarter, so that processes do not do it together.
const CHECK: Duration = Duration::from_secs(1);

/// Listens for ever.
pub(crate) async fn listen(shared: Arc<Shared>) {
    let mut backoff = Backoff::default();
    let mut seat = Seat::new(format!("{:016x}{:016x}", shared.entropy.next_u64(), shared.entropy.next_u64()));
    loop {
        let failure = match tracked::Ear::open(&shared).await {
            Ok(mut ear) => {
                backoff.reset();
                ear.hear(&shared, &mut seat).await
            }
            Err(failure) if failure.trouble == Trouble::Away => failure,
            // Without tracking, be it unknown, forbidden, or kept from us by a proxy.
            Err(_) => staged::hear(&shared, &seat.who, &mut backoff).await,
        };
        shared.place.heard(&failure);
        // A push may have been lost with the connection.
        shared.wake.nudge();
        let wait = backoff.next(&*shared.entropy);
        shared.clock.sleep(wait).await;
    }
}

fn jittered(bits: u64) -> Duration {
    CHECK.mul_f64(0.75 + (bits % 1_000) as f64 / 2_000.0)
}

/// What a process that died had moved for itself alone is anybody's again.
pub(crate) async fn sweep(shared: &Shared) -> Result<(), Failure> {
    staged::sweep(shared).await
}

/// What whoever looks wants besides.
#[derive(Clone, Copy)]
enum Asks<'a> {
    /// A seat; who.
    ToSit(&'a str),
    /// To be without one.
    ToLeave(&'a str),
    Nothing,
}

/// What came of it.
enum Seating {
    /// So many sit before.
    Sits(u32),
    Stands,
    /// The server did not say.
    Unknown,
}

/// What no push announces: something came due that nobody took, or a push was lost. One command.
async fn look_for_the_overdue(shared: &Shared, asks: Asks<'_>) -> Seating {
    let (what, who) = match asks {
        Asks::ToSit(who) => ("sit", who),
        Asks::ToLeave(who) => ("leave", who),
        Asks::Nothing => ("look", ""),
    };
    let mut call = shared.call(&PEEK);
    call.arg(what).arg(who).number(seat::SEATS).number(seat::LASTS.as_millis() as u64);
    let value = match shared.reads.call(&call).await {
        Ok(value) => value,
        // A claim says that the server is away, and that it is back; who has nothing to claim would be silent about it.
        Err(failure) if failure.trouble == Trouble::Away => {
            shared.wake.nudge();
            return Seating::Unknown;
        }
        // Whoever may not sit listens all the same, after the others.
        Err(_) => return Seating::Sits(seat::SEATS),
    };
    let Ok([bell, ingress, due, salt, seat]) = reply::exactly::<5>(value) else { return Seating::Unknown };
    let is_set = |value| reply::number(value).ok().flatten().is_some_and(|number| number != 0);
    if is_set(&ingress) {
        shared.wake.note_ingress();
    }
    let bell = reply::number(&bell).ok().flatten().unwrap_or(0);
    shared.wake.peeked(bell, is_set(&ingress) || is_set(&due));
    if salt == Value::Nil {
        // Somebody emptied the server: whoever comes next must give out the same ids as we do.
        let _ = shared.agree_on_ids().await;
    }
    reply::natural(&seat).map_or(Seating::Stands, Seating::Sits)
}
