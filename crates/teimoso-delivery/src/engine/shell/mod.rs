//! The loop's state: what is claimed, in flight, ended, and being handed to the store.
//!
//! Every clock reading serves a whole batch, and every wake handles all that is ready. Deliberately
//! absent: locks, and waiting for anything but the next event.

mod claiming;
mod draining;
mod leases;
mod settling;
mod trouble;
mod waiting;

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::mpsc;

use super::anchor::Now;
use super::slots::{SlotId, Slots};
use super::{EngineLimits, Policies, Ports};
use crate::model::Millis;
use crate::ports::{BoxFuture, Report};
use crate::store::{Claim, LeaseRef, Settled, Settlement, StoreError, Ticket};

/// Something the loop has to take in.
pub(super) enum Event {
    Stop,
    Ended,
    SettleCalled,
    Settled(Result<Settled, StoreError>),
    Claimed(Result<Claim, StoreError>),
    Extended(Result<Vec<LeaseRef>, StoreError>),
    Timer,
    Work,
}

/// An attempt's end, sent by its task. No report: the task panicked.
struct Ended {
    slot: SlotId,
    report: Option<Report>,
}

/// A claim under way.
struct Claiming<'a> {
    asked: Now,
    want: usize,
    answer: BoxFuture<'a, Result<Claim, StoreError>>,
}

/// A batch on its way to the store.
struct Settling<'a> {
    /// Polled once: the store has freed the lanes' slots.
    called: bool,
    answer: BoxFuture<'a, Result<Settled, StoreError>>,
}

struct Timer {
    at: Duration,
    rings: BoxFuture<'static, ()>,
}

pub(super) struct Shell<'a> {
    ports: &'a Ports,
    policies: &'a Policies,
    limits: EngineLimits,
    slots: Slots,
    /// Unbounded in type only: each slot sends once.
    ends: mpsc::UnboundedSender<Ended>,
    ended: mpsc::UnboundedReceiver<Ended>,
    batch: Vec<Ended>,
    unsettled: Vec<Settlement>,
    settling: Option<Settling<'a>>,
    ticket: Option<Ticket>,
    claiming: Option<Claiming<'a>>,
    claim_again: bool,
    wake_at: Option<Millis>,
    work: Option<BoxFuture<'a, ()>>,
    extending: Option<BoxFuture<'a, Result<Vec<LeaseRef>, StoreError>>>,
    extend_before_claim: bool,
    renew_at: Duration,
    timer: Option<Timer>,
    anchor: Now,
    /// Set while the store fails: claims pause until then.
    backoff: Option<Duration>,
    failures: u32,
    failing: bool,
    stopping: bool,
    /// Set when we are stopping and nothing is on the wire any more: the store is waited for until then.
    give_up_at: Option<Duration>,
    gave_up: bool,
    closed: Option<StoreError>,
}

impl<'a> Shell<'a> {
    pub(super) fn new(ports: &'a Ports, policies: &'a Policies, limits: EngineLimits) -> Self {
        let (ends, ended) = mpsc::unbounded_channel();
        let anchor = Now::read(&*ports.clock);
        Self {
            ports,
            policies,
            limits,
            slots: Slots::default(),
            ends,
            ended,
            batch: Vec::new(),
            unsettled: Vec::new(),
            settling: None,
            ticket: None,
            claiming: None,
            claim_again: true,
            wake_at: None,
            work: None,
            extending: None,
            extend_before_claim: false,
            renew_at: anchor.mono.saturating_add(limits.renew_every),
            timer: None,
            anchor,
            backoff: None,
            failures: 0,
            failing: false,
            stopping: false,
            give_up_at: None,
            gave_up: false,
            closed: None,
        }
    }

    pub(super) fn start_what_can_start(&mut self) {
        self.hand_over();
        self.claim();
        self.bound_the_drain();
        self.listen();
    }

    pub(super) async fn next_event<S: Future<Output = ()>>(&mut self, mut stop: Pin<&mut S>) -> Event {
        poll_fn(|cx| {
            if !self.stopping && stop.as_mut().poll(cx).is_ready() {
                return Poll::Ready(Event::Stop);
            }
            self.poll_event(cx)
        })
        .await
    }

    pub(super) fn take_in(&mut self, event: Event) {
        match event {
            Event::Stop => self.stop(),
            Event::Ended => self.gather(),
            Event::SettleCalled => {}
            Event::Settled(answer) => self.settled(answer),
            Event::Claimed(answer) => self.claimed(answer),
            Event::Extended(answer) => self.extended(answer),
            Event::Timer => self.look_at_the_clock(),
            Event::Work => self.claim_again = true,
        }
    }

    /// Deliveries held: in flight, or ended and not yet handed over.
    fn held(&self) -> usize {
        self.slots.len() + self.unsettled.len()
    }

    fn poll_event(&mut self, cx: &mut Context<'_>) -> Poll<Event> {
        if let Poll::Ready(1..) = self.ended.poll_recv_many(cx, &mut self.batch, self.limits.in_flight) {
            return Poll::Ready(Event::Ended);
        }
        if let Some(settling) = &mut self.settling {
            if let Poll::Ready(answer) = settling.answer.as_mut().poll(cx) {
                self.settling = None;
                return Poll::Ready(Event::Settled(answer));
            }
            if !std::mem::replace(&mut settling.called, true) {
                return Poll::Ready(Event::SettleCalled);
            }
        }
        if let Some(claiming) = &mut self.claiming
            && let Poll::Ready(answer) = claiming.answer.as_mut().poll(cx)
        {
            return Poll::Ready(Event::Claimed(answer));
        }
        if let Poll::Ready(answer) = poll_once(&mut self.extending, cx) {
            return Poll::Ready(Event::Extended(answer));
        }
        if let Some(timer) = &mut self.timer
            && timer.rings.as_mut().poll(cx).is_ready()
        {
            self.timer = None;
            return Poll::Ready(Event::Timer);
        }
        poll_once(&mut self.work, cx).map(|()| Event::Work)
    }
}

fn poll_once<T>(future: &mut Option<BoxFuture<'_, T>>, cx: &mut Context<'_>) -> Poll<T> {
    let Some(polled) = future else { return Poll::Pending };
    let answer = std::task::ready!(polled.as_mut().poll(cx));
    *future = None;
    Poll::Ready(answer)
}
