//! A store compared, step by step, with a model small enough to be believed.
//!
//! A test draws a list of [`RawStep`]s (any bytes will do, so every shrunk list is one too) and calls
//! [`check`]. The model knows states, due times, leases and slots; of fairness it knows only that a
//! claim that comes back short has left nothing behind that could have been taken. Deliberately absent:
//! pauses and replay jobs, which have rules of their own in [`crate::testkit::conformance`].

use std::sync::Arc;
use std::time::Duration;

use super::conformance::{Bench, Make};
use super::offer;
use crate::machine::MAX_RECOVERIES;
use crate::model::{DeadReason, DeliveryId, DeliveryState, Lease, Millis, Mode, NextWhy, Nonce};
use crate::store::{CancelOutcome, ClaimRequest, Claimed, Counts, LEASE, LeaseRef, Next, RetryOutcome};

/// Which step, and two numbers it makes of them what it needs.
pub type RawStep = (u8, u8, u16);

const LANES: u8 = 3;
const PER_LANE: usize = 16;

#[derive(Debug)]
struct Delivery {
    id: DeliveryId,
    lane: u8,
    mode: Mode,
    state: DeliveryState,
    due: Millis,
    attempts: u32,
    recoveries: u8,
    lease: Option<(Nonce, Millis)>,
    cancel_wished: bool,
    reason: Option<DeadReason>,
}

impl Delivery {
    fn rests(&self) -> bool {
        matches!(self.state, DeliveryState::Pending | DeliveryState::Scheduled)
    }

    fn rest_until(&mut self, due: Millis) {
        self.due = due;
        self.state = if self.attempts == 0 { DeliveryState::Pending } else { DeliveryState::Scheduled };
    }

    fn bury(&mut self, reason: DeadReason) {
        self.state = DeliveryState::Dead;
        self.reason = Some(reason);
    }

    fn expired(&self, now: Millis) -> bool {
        self.lease.is_some_and(|(_, until)| until <= now)
    }

    fn recover(&mut self) {
        self.lease = None;
        self.recoveries += 1;
        let cancelled = std::mem::take(&mut self.cancel_wished);
        match self.mode {
            Mode::AtMostOnce => self.bury(DeadReason::Ambiguous),
            Mode::AtLeastOnce if self.recoveries >= MAX_RECOVERIES => self.bury(DeadReason::Poison),
            Mode::AtLeastOnce if cancelled => self.state = DeliveryState::Cancelled,
            Mode::AtLeastOnce => self.rest_until(self.due),
        }
    }

    fn settle(&mut self, next: Next) {
        self.lease = None;
        self.attempts += u32::from(next != Next::Released);
        let cancelled = std::mem::take(&mut self.cancel_wished);
        match next {
            Next::Delivered => self.state = DeliveryState::Delivered,
            Next::Dead(reason) => self.bury(reason),
            Next::Scheduled { .. } | Next::Released if cancelled => self.state = DeliveryState::Cancelled,
            Next::Scheduled { due, .. } => self.rest_until(due),
            Next::Released => self.rest_until(self.due),
        }
    }
}

/// A lease as the sender remembers it, and what it was given with it.
struct Held {
    delivery: usize,
    claimed: Claimed,
}

struct Run<'a> {
    bench: &'a Bench,
    all: Vec<Delivery>,
    held: Vec<Held>,
    at_most_once: bool,
}

/// Runs the steps on a fresh store and on the model.
///
/// # Panics
/// At the first difference.
pub fn check(make: Make<'_>, steps: &[RawStep]) {
    super::conformance::rule(make, async |bench: &Bench| {
        let at_most_once = bench.store.info().at_most_once;
        let mut run = Run { bench, all: Vec::new(), held: Vec::new(), at_most_once };
        for (step, a, b) in steps {
            run.step(*step, *a, *b).await;
            assert_eq!(run.counts(), bench.counts().await, "after step {step} {a} {b}");
        }
        run.compare_all().await;
    });
}

impl Run<'_> {
    async fn step(&mut self, step: u8, a: u8, b: u16) {
        match step % 8 {
            0 => self.accept(a, b).await,
            1 | 2 => self.claim(usize::from(a % 24) + 1).await,
            3 | 4 => self.settle(a, b).await,
            5 => self.pass(a, b).await,
            6 => self.order(a, b).await,
            _ => self.extend(a).await,
        }
    }

    fn now(&self) -> Millis {
        self.bench.now()
    }

    async fn accept(&mut self, a: u8, b: u16) {
        let lane = a % LANES;
        let mut offered = offer(&format!("http://loja.example/{lane}"));
        let later = self.now().after(Duration::from_millis(b.into()));
        let due = if a & 0x40 == 0 { self.now() } else { later };
        offered = offered.deliver_at(due);
        let mode = if a & 0x80 != 0 && self.at_most_once { Mode::AtMostOnce } else { Mode::AtLeastOnce };
        if mode == Mode::AtMostOnce {
            offered = offered.at_most_once();
        }
        for _ in 0..=(b % 12) {
            let id = self.bench.one(offered.clone()).await;
            let state = DeliveryState::Pending;
            let (attempts, recoveries) = (0, 0);
            let (lease, cancel_wished, reason) = (None, false, None);
            let fresh =
                Delivery { id, lane, mode, state, due, attempts, recoveries, lease, cancel_wished, reason };
            self.all.push(fresh);
        }
    }

    async fn claim(&mut self, want: usize) {
        let now = self.now();
        self.all.iter_mut().filter(|one| one.expired(now)).for_each(Delivery::recover);
        let request: ClaimRequest = self.bench.request(want);
        let claim = self.bench.ask(request).await;
        let count = claim.taken.len();
        assert!(count <= want);
        for claimed in claim.taken {
            let index = self.find(claimed.lease.delivery());
            let one = &mut self.all[index];
            assert!(one.rests() && one.due <= now, "{one:?} was claimed at {now}");
            assert_eq!(
                (claimed.progress.attempts, claimed.progress.recoveries),
                (one.attempts, one.recoveries)
            );
            assert_eq!((claimed.due, claimed.lease.nonce()), (one.due, request.nonce));
            one.state = DeliveryState::InFlight;
            one.lease = Some((request.nonce, request.lease_until));
            self.held.push(Held { delivery: index, claimed });
        }
        (0..LANES).for_each(|lane| self.lane_was_served(lane, now, claim.wake_at, count < want));
    }

    /// No slot too many; and after a short claim nothing due is left in a lane that has slots, nor
    /// would the sender sleep past what comes next.
    fn lane_was_served(&self, lane: u8, now: Millis, wake_at: Option<Millis>, short: bool) {
        let of_lane = || self.all.iter().filter(|one| one.lane == lane);
        let in_flight = of_lane().filter(|one| one.state == DeliveryState::InFlight).count();
        assert!(in_flight <= PER_LANE, "lane {lane} holds {in_flight}");
        if !short || in_flight == PER_LANE {
            return;
        }
        let next = of_lane().filter(|one| one.rests()).map(|one| one.due).min();
        assert!(next.is_none_or(|due| due > now), "lane {lane} was left something due");
        assert!(next.is_none_or(|due| wake_at.is_some_and(|wake| wake <= due)), "sleeps past {next:?}");
    }

    /// Settles what is held, what was settled already, and now and then under a made-up nonce.
    async fn settle(&mut self, a: u8, b: u16) {
        if self.held.is_empty() {
            return;
        }
        let at = usize::from(a) % self.held.len();
        let mut claimed = super::conformance::twin(&self.held[at].claimed);
        let index = self.held[at].delivery;
        let now = self.now();
        if self.all[index].expired(now) {
            // Neither side has looked yet: whether it still counts is the store's to say.
            return;
        }
        if b % 16 == 15 {
            claimed.lease = Lease::grant(claimed.lease.delivery(), Nonce(0x5eed));
        }
        let due = now.after(Duration::from_millis(u64::from(b) / 4));
        let next = match b % 5 {
            0 => Next::Delivered,
            1 => Next::Dead(DeadReason::PermanentStatus),
            2 => Next::Released,
            _ => Next::Scheduled { due, why: NextWhy::Retry },
        };
        let holds = self.all[index].lease.is_some_and(|(nonce, _)| nonce == claimed.lease.nonce());
        self.bench.end(claimed, next).await;
        if holds {
            self.all[index].settle(next);
        }
        self.compare(index).await;
    }

    async fn pass(&self, a: u8, b: u16) {
        let longest = if a.is_multiple_of(8) { LEASE + LEASE } else { LEASE / 8 };
        let part = longest.mul_f64(f64::from(b) / f64::from(u16::MAX));
        self.bench.pass_millis(u64::try_from(part.as_millis()).unwrap_or(0));
    }

    async fn order(&mut self, a: u8, b: u16) {
        if self.all.is_empty() {
            return;
        }
        let index = usize::from(b) % self.all.len();
        let (now, store) = (self.now(), Arc::clone(&self.bench.store));
        let one = &mut self.all[index];
        if a.is_multiple_of(2) {
            let expected = match one.state {
                DeliveryState::InFlight => CancelOutcome::Requested,
                DeliveryState::Pending | DeliveryState::Scheduled => CancelOutcome::Cancelled,
                state => CancelOutcome::AlreadyFinal(state),
            };
            assert_eq!(store.cancel(one.id).await, Ok(expected));
            one.cancel_wished |= expected == CancelOutcome::Requested;
            if expected == CancelOutcome::Cancelled {
                one.state = DeliveryState::Cancelled;
            }
        } else {
            let explicit = a % 4 == 1;
            let allowed = match one.state {
                DeliveryState::Dead | DeliveryState::Cancelled | DeliveryState::Scheduled => true,
                DeliveryState::Delivered => explicit,
                DeliveryState::Pending | DeliveryState::InFlight => false,
            };
            let expected = if allowed { RetryOutcome::Due } else { RetryOutcome::NotAllowed(one.state) };
            assert_eq!(store.retry(one.id, explicit).await, Ok(expected));
            if allowed {
                (one.recoveries, one.reason) = (0, None);
                one.rest_until(now);
            }
        }
        self.compare(index).await;
    }

    async fn extend(&mut self, a: u8) {
        let now = self.now();
        let chosen = |held: &&Held| u32::from(a) >> (held.delivery % 8) & 1 == 1;
        let leases = self.held.iter().filter(chosen).map(|held| LeaseRef::from(&held.claimed.lease));
        let leases: Vec<_> =
            leases.filter(|lease| !self.all[self.find(lease.delivery)].expired(now)).collect();
        let until = now.after(LEASE);
        let lost = self.bench.store.extend(leases.clone(), until).await.expect("an open store extends");
        for lease in leases {
            let index = self.find(lease.delivery);
            let held = self.all[index].lease.as_mut().filter(|(nonce, _)| *nonce == lease.nonce);
            assert_eq!(held.is_none(), lost.contains(&lease), "{lease:?}");
            if let Some((_, until_then)) = held {
                *until_then = until;
            }
        }
    }

    fn find(&self, id: DeliveryId) -> usize {
        self.all.iter().position(|one| one.id == id).expect("the store gives out only what it accepted")
    }

    fn counts(&self) -> Counts {
        let of = |state| self.all.iter().filter(|one| one.state == state).count() as u64;
        Counts {
            accepted: self.all.len() as u64,
            pending: of(DeliveryState::Pending),
            in_flight: of(DeliveryState::InFlight),
            scheduled: of(DeliveryState::Scheduled),
            delivered: of(DeliveryState::Delivered),
            dead: of(DeliveryState::Dead),
            cancelled: of(DeliveryState::Cancelled),
            expunged: 0,
        }
    }

    async fn compare(&self, index: usize) {
        let (view, one) = (self.bench.view(self.all[index].id).await, &self.all[index]);
        assert_eq!(
            (view.state, view.attempts, view.reason),
            (one.state, one.attempts, one.reason),
            "{one:?}"
        );
        let due = view.next_attempt.map(|(due, _)| due);
        assert_eq!(due, one.rests().then_some(one.due), "{one:?}");
    }

    async fn compare_all(&self) {
        for index in 0..self.all.len() {
            self.compare(index).await;
        }
    }
}
