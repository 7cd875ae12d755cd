//! The shell: claims due deliveries, has them attempted, settles what came of it, keeps the leases
//! alive meanwhile, and drains when told to stop.
//!
//! It decides nothing: what follows an attempt is [`crate::machine`]'s, whose turn it is the store's.
//! One future runs the loop and is the only one to talk to the store; every attempt is a task beside
//! it. Deliberately absent: polling (it sleeps until something is due or the store calls) and waiting
//! for durability (settlements are handed over and not awaited; only the drain awaits the last one).
//!
//! ```text
//!            ┌────── claim ◀──── slot free, work announced, or something due
//!            ▼                                                  ▲
//!   launch a task per delivery ─▶ gather what ended ─▶ conclude ─▶ settle
//! ```
//!
//! An attempt whose task panics is settled as an ambiguous failure of ours
//! ([`crate::model::ErrorKind::Cancelled`]): it counts, so a request that always panics ends as a dead
//! letter instead of looping, and its slot is free again.

mod anchor;
mod policies;
mod shell;
mod slots;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use crate::ports::{Clock, Dispatch, Entropy, Observer};
use crate::store::{LEASE, Store, StoreError};
pub use policies::Policies;
use shell::Shell;

/// How long an attempt may outlast its own time-out before its lease must have ended (G5).
pub const LEASE_MARGIN: Duration = Duration::from_secs(5);

/// How long a drain waits for the store once its last attempt has ended: a disk that is full stays full.
pub const LAST_SETTLEMENTS: Duration = Duration::from_secs(5);

/// What the engine is given from outside.
#[derive(Clone)]
pub struct Ports {
    /// Where deliveries come from and go back to.
    pub store: Arc<dyn Store>,
    /// The wire.
    pub dispatch: Arc<dyn Dispatch>,
    /// Time.
    pub clock: Arc<dyn Clock>,
    /// Chance.
    pub entropy: Arc<dyn Entropy>,
    /// Who watches.
    pub observer: Arc<dyn Observer>,
}

/// Bounds of one engine, each with a default (G11).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EngineLimits {
    /// Most deliveries held at once: in flight, or ended and not yet handed to the store. At least 1.
    pub in_flight: usize,
    /// Most deliveries of one claim. At least 1.
    pub claim_batch: usize,
    /// How long a lease lasts unless renewed (G5).
    pub lease: Duration,
    /// How often everything held is renewed (G5).
    pub renew_every: Duration,
}

impl Default for EngineLimits {
    fn default() -> Self {
        Self { in_flight: 1_024, claim_batch: 256, lease: LEASE, renew_every: Duration::from_secs(10) }
    }
}

/// Why an engine does not start with these limits and policies.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidEngine {
    /// A bound is zero.
    #[error("{0} must be at least 1")]
    Zero(&'static str),
    /// An attempt could outlive its lease (G5).
    #[error(
        "the lease of {lease:?} must be longer than the longest attempt time-out of {attempt:?} plus {LEASE_MARGIN:?}"
    )]
    ShortLease {
        /// The lease.
        lease: Duration,
        /// The longest attempt time-out of any policy.
        attempt: Duration,
    },
    /// A lease could end between two renewals.
    #[error("leases of {lease:?} must be renewed at least twice in their time, not every {renew_every:?}")]
    RareRenewal {
        /// The lease.
        lease: Duration,
        /// The time between renewals.
        renew_every: Duration,
    },
}

/// An engine that has not started. See the module's text.
pub struct Engine {
    ports: Ports,
    policies: Policies,
    limits: EngineLimits,
}

impl Engine {
    /// An engine of these parts.
    ///
    /// # Errors
    /// When a limit is zero, or an attempt could outlive its lease.
    pub fn new(ports: Ports, policies: Policies, limits: EngineLimits) -> Result<Self, InvalidEngine> {
        let EngineLimits { in_flight, claim_batch, lease, renew_every } = limits;
        for (bound, name) in [(in_flight, "in_flight"), (claim_batch, "claim_batch")] {
            if bound == 0 {
                return Err(InvalidEngine::Zero(name));
            }
        }
        let attempt = policies.longest_attempt();
        if lease <= attempt.saturating_add(LEASE_MARGIN) {
            return Err(InvalidEngine::ShortLease { lease, attempt });
        }
        if renew_every.is_zero() || renew_every > lease / 2 {
            return Err(InvalidEngine::RareRenewal { lease, renew_every });
        }
        Ok(Self { ports, policies, limits })
    }

    /// Delivers until `stop` completes, then drains: claims nothing more, lets what is in flight end
    /// (its own time-out bounds it), settles it and returns when that is durable.
    ///
    /// Meant for one `current_thread` runtime of its own; several engines may share a store. Dropping
    /// the future abandons every attempt at once and loses nothing: what was held is recovered when
    /// its lease ends.
    ///
    /// # Errors
    /// When the store was closed under the engine, or did not make the last settlements durable within
    /// [`LAST_SETTLEMENTS`] of the last attempt's end: what they settled is recovered from its lease.
    ///
    /// # Panics
    /// Outside a tokio runtime.
    pub async fn run(self, stop: impl Future<Output = ()> + Send) -> Result<(), StoreError> {
        let mut shell = Shell::new(&self.ports, &self.policies, self.limits);
        let mut stop = pin!(stop);
        while !shell.is_drained() {
            shell.start_what_can_start();
            let event = shell.next_event(stop.as_mut()).await;
            shell.take_in(event);
        }
        shell.finish().await
    }
}

#[cfg(test)]
mod tests;
