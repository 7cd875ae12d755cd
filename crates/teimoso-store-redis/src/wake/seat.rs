//! Who is told of pushes: of all processes that wait, so many hold a seat, the first ones are told first. The rest ask
//! once a second, by one plain command, whether a seat is free.
//!
//! A seat ends by itself when its holder is not heard of; a process that is too busy to wait gives it up. Deliberately
//! absent: any promise to whoever holds one. Two in one seat, or nobody, cost a look more or a second.

use std::time::Duration;

use redis::cmd;

use super::{Asks, Seating, look_for_the_overdue};
use crate::reply::number;
use crate::shared::Shared;

/// Processes that a push wakes.
pub(super) const SEATS: u32 = 4;
/// A seat outlives the longest time between two looks.
pub(super) const LASTS: Duration = Duration::from_secs(2);

/// This process's.
pub(super) struct Seat {
    /// A name that no other process has.
    pub(super) who: String,
    rank: Option<u32>,
    /// All were taken: the next look asks again.
    full: bool,
}

impl Seat {
    pub(super) fn new(who: String) -> Self {
        Self { who, rank: None, full: false }
    }

    /// How many are told before.
    pub(super) fn rank(&self) -> Option<u32> {
        self.rank
    }

    /// Takes a seat unless all were taken when it was last asked.
    pub(super) async fn take(&mut self, shared: &Shared) {
        if self.rank.is_none() && !self.full {
            self.keep(shared).await;
        }
    }

    /// Keeps the seat, moves up, or takes a free one; hears of what is overdue.
    pub(super) async fn keep(&mut self, shared: &Shared) {
        (self.rank, self.full) = match look_for_the_overdue(shared, Asks::ToSit(&self.who)).await {
            Seating::Sits(rank) => (Some(rank), false),
            Seating::Stands => (None, true),
            Seating::Unknown => (None, false),
        };
    }

    /// Somebody else may sit.
    pub(super) async fn leave(&mut self, shared: &Shared) {
        look_for_the_overdue(shared, Asks::ToLeave(&self.who)).await;
        (self.rank, self.full) = (None, false);
    }

    /// The look of a process without a seat.
    pub(super) async fn take_if_free(&mut self, shared: &Shared) {
        let mut ask = cmd("EXISTS");
        for seat in 0..SEATS {
            ask.arg(shared.keys.own(&format!("seat:{seat}")));
        }
        // As with every look that fails: a claim says that the server is away.
        let Ok(taken) = shared.reads.command(&ask).await else { return shared.wake.nudge() };
        if number(&taken).is_ok_and(|taken| taken.is_none_or(|taken| taken < i64::from(SEATS))) {
            self.keep(shared).await;
        }
    }
}
