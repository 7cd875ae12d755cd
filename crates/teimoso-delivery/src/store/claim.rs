//! Claiming and settling: the right to work a delivery, and what became of it.

use std::sync::Arc;
use std::time::Duration;

use super::{BoxFuture, StoreError};
use crate::model::{
    AttemptRecord, DeadReason, DeliveryId, Event, Lease, Millis, NextWhy, Nonce, PauseWhy, Progress,
};

/// What an engine asks for.
#[derive(Debug, Clone, Copy)]
pub struct ClaimRequest {
    /// The wall clock.
    pub now: Millis,
    /// At most this many.
    pub want: usize,
    /// Free slots of the whole process: a lane holds at most half of them, and at least one (G9).
    pub free: usize,
    /// 128 random bits: repeating a claim with the same nonce answers the same leases.
    pub nonce: Nonce,
    /// When the leases end unless extended.
    pub lease_until: Millis,
}

/// What an engine gets.
#[derive(Debug, Default)]
pub struct Claim {
    /// Leased deliveries with everything needed to attempt them.
    pub taken: Vec<Claimed>,
    /// When something already known becomes due; `None` when nothing is.
    pub wake_at: Option<Millis>,
}

/// A leased delivery.
#[derive(Debug)]
pub struct Claimed {
    /// The right to work it.
    pub lease: Lease,
    /// Its event.
    pub event: Arc<Event>,
    /// Where it goes.
    pub url: Arc<str>,
    /// The lane's address, for messages.
    pub lane: Arc<str>,
    /// What is kept of it.
    pub progress: Progress,
    /// When it was due.
    pub due: Millis,
}

/// A lease named without owning it, for renewals.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct LeaseRef {
    /// The delivery.
    pub delivery: DeliveryId,
    /// The claim's nonce.
    pub nonce: Nonce,
}

impl From<&Lease> for LeaseRef {
    fn from(lease: &Lease) -> Self {
        Self { delivery: lease.delivery(), nonce: lease.nonce() }
    }
}

/// What follows a claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// The receiver has it.
    Delivered,
    /// Another attempt at `due`.
    Scheduled {
        /// Not before this instant.
        due: Millis,
        /// What set it.
        why: NextWhy,
    },
    /// A dead letter.
    Dead(DeadReason),
    /// Not attempted: back to where it was, at once claimable.
    Released,
}

/// What an attempt says about its lane (G10).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneNews {
    /// The receiver answers.
    Success,
    /// It failed or could not be reached.
    Failure,
    /// It asked not to be bothered before this instant.
    Pause(Millis),
    /// Nothing was learnt, or the policy does not pause lanes.
    Neutral,
}

/// The end of a lease.
#[derive(Debug)]
pub struct Settlement {
    /// Consumed: nothing is settled twice.
    pub lease: Lease,
    /// What follows.
    pub next: Next,
    /// What is kept from now on, this attempt counted.
    pub progress: Progress,
    /// The attempt, unless it was released.
    pub record: Option<Box<AttemptRecord>>,
    /// For the lane.
    pub news: LaneNews,
    /// The wall clock of the settlement.
    pub at: Millis,
}

/// A settled batch: slots are free, durability is under way.
pub struct Settled {
    /// Completes when the batch is durable.
    pub ticket: Ticket,
    /// Lanes that this batch paused.
    pub paused: Vec<LanePause>,
}

/// Completes when what it stands for is durable.
pub type Ticket = BoxFuture<'static, Result<(), StoreError>>;

/// A lane that was just paused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanePause {
    /// Its address.
    pub lane: Arc<str>,
    /// Until when.
    pub until: Millis,
    /// Why.
    pub why: PauseWhy,
}

/// How long a lease lasts unless renewed (G5).
pub const LEASE: Duration = Duration::from_secs(30);
