//! The worker's round trip: what ended, what is to be renewed and what is wanted, gathered while the last cycle was
//! under way and sent as one script.
//!
//! One task, one cycle at a time. While Redis is away, settlements are kept and sent again for ever; a claim is told
//! once, and the next one asks under the old nonce first, so that no lease is stranded.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use teimoso_delivery::model::{DeliveryId, Key, Millis, Nonce};
use teimoso_delivery::store::{
    Claim, ClaimRequest, LEASE, LanePause, LeaseRef, Next, Settlement, StoreError,
};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::sync::oneshot;

use crate::claimed::{Answer, Unusable};
use crate::codec::{self, key_text, nonce_bytes};
use crate::ingress;
use crate::link::Failure;
use crate::scripts::{CYCLE, Call};
use crate::shared::Shared;

/// Most settlements or renewals of one script. Everybody waits while one runs: it takes a few milliseconds at most.
pub(crate) const BATCH: usize = 128;
/// Most deliveries of one claim, for the same reason.
const MOST_WANTED: usize = 128;

/// Where an operation's answer goes.
pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

/// What a cycle is made of.
pub(crate) enum Op {
    Settle(Vec<Settlement>, Reply<Vec<LanePause>>),
    Extend(Vec<LeaseRef>, Until, Reply<Vec<LeaseRef>>),
    /// With the time at which it was asked for.
    Claim(ClaimRequest, Millis, Reply<Claim>),
    /// Answered when everything before it is done.
    Close(oneshot::Sender<()>),
}

/// When a lease ends that was asked for at some time. What has waited for a server that was away is not born expired:
/// the lease is as long as it was to be, from the moment the script is sent.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Until {
    pub(crate) until: Millis,
    pub(crate) asked: Millis,
}

impl Until {
    fn seen_at(self, now: Millis) -> Millis {
        self.until.after(now.since(self.asked))
    }
}

/// What goes into one script.
#[derive(Default)]
struct Turn {
    settlements: Vec<(Key, Settlement)>,
    settled: Vec<Reply<Vec<LanePause>>>,
    renewals: Vec<(LeaseRef, Until)>,
    extended: Vec<(usize, Reply<Vec<LeaseRef>>)>,
    claim: Option<(ClaimRequest, Reply<Claim>)>,
    /// Of what the claim takes.
    lease: Option<Until>,
}

impl Turn {
    /// Takes an operation in; gives it back when it has no room for it.
    fn take_in(&mut self, op: Op, shared: &Shared) -> Option<Op> {
        match op {
            Op::Settle(batch, reply)
                if self.settlements.is_empty() || self.settlements.len() + batch.len() <= BATCH =>
            {
                let known =
                    batch.into_iter().filter_map(|one| Some((shared.key_of(one.lease.delivery())?, one)));
                self.settlements.extend(known);
                self.settled.push(reply);
                None
            }
            Op::Extend(leases, until, reply)
                if self.renewals.is_empty() || self.renewals.len() + leases.len() <= BATCH =>
            {
                self.extended.push((leases.len(), reply));
                self.renewals.extend(leases.into_iter().map(|lease| (lease, until)));
                None
            }
            Op::Claim(request, asked, reply) if self.claim.is_none() => {
                self.lease = Some(Until { until: request.lease_until, asked });
                self.claim = Some((request, reply));
                None
            }
            op => Some(op),
        }
    }

    fn is_empty(&self) -> bool {
        self.settled.is_empty() && self.extended.is_empty() && self.claim.is_none()
    }

    /// The script call. Built anew for every try: time passes.
    fn call(&self, shared: &Shared) -> Call {
        let mut call = shared.call(&CYCLE);
        call.number(self.settlements.len() as u64).number(self.renewals.len() as u64);
        let request = self.claim.as_ref().map(|(request, _)| request);
        let want = request.map_or(-1, |request| request.want.min(MOST_WANTED) as i64);
        call.number(want).number(request.map_or(0, |request| request.free as u64));
        call.number(shared.held(shared.clock.now()) as u64).number(LEASE.as_millis() as u64);
        call.arg(request.map_or(Vec::new(), |request| nonce_bytes(request.nonce).to_vec()));
        let now = shared.clock.now();
        call.number(self.lease.map_or(0, |lease| lease.seen_at(now).get()));
        self.add_settlements(&mut call, shared);
        for (lease, _) in &self.renewals {
            call.arg(key_or_none(shared, lease.delivery));
        }
        for (lease, until) in &self.renewals {
            call.arg(codec::renewal(lease, until.seen_at(now)));
        }
        call
    }

    /// The lanes that are settled, the keys, the settlements.
    fn add_settlements(&self, call: &mut Call, shared: &Shared) {
        let leases = shared.leases();
        let held = |settlement: &Settlement| leases.get(&LeaseRef::from(&settlement.lease));
        let mut lanes: Vec<u32> =
            self.settlements.iter().filter_map(|(_, one)| Some(held(one)?.record.lane)).collect();
        lanes.sort_unstable();
        lanes.dedup();
        call.number(lanes.len() as u64);
        for lane in lanes {
            call.arg(codec::lane_text(lane));
        }
        let mut seen = HashMap::with_capacity(self.settlements.len());
        for (key, _) in &self.settlements {
            *seen.entry(*key).or_insert(0) += 1;
            call.arg(key_text(*key));
        }
        for (key, settlement) in &self.settlements {
            call.arg(match held(settlement) {
                // What is settled twice in one call takes the way that looks at what the first one did.
                Some(held) if is_plain(settlement) && seen.get(key) == Some(&1) => {
                    codec::delivered(settlement, &held.record, shared.at_redis(settlement.at))
                }
                held => {
                    let adopted = held.and_then(|held| held.adopted.as_ref());
                    let last = held.map_or(&[][..], |held| &held.record.last);
                    codec::settlement(settlement, &ingress::text_for(settlement, adopted, last))
                }
            });
        }
    }

    /// Redis is away: what does not bear waiting is told so.
    fn answer_impatient(&mut self, error: &StoreError) -> Option<Nonce> {
        for (_, reply) in self.extended.drain(..) {
            drop(reply.send(Err(error.clone())));
        }
        self.renewals.clear();
        let (request, reply) = self.claim.take()?;
        drop(reply.send(Err(error.clone())));
        Some(request.nonce)
    }

    /// Nothing of it was done, and nothing of it can be.
    fn fail(mut self, error: &StoreError) {
        // Its nonce got nothing, so nobody has to ask under it again.
        let _ = self.answer_impatient(error);
        for reply in self.settled {
            drop(reply.send(Err(error.clone())));
        }
    }
}

/// What most attempts come to.
fn is_plain(settlement: &Settlement) -> bool {
    settlement.next == Next::Delivered && settlement.record.is_some()
}

/// A key that nothing has, for what we never gave out.
fn key_or_none(shared: &Shared, delivery: DeliveryId) -> String {
    key_text(shared.key_of(delivery).unwrap_or_else(|| Key::first_at(Millis::default())))
}

/// The task.
pub(crate) struct Cycles {
    shared: Arc<Shared>,
    ops: UnboundedReceiver<Op>,
    queue: VecDeque<Op>,
    /// A claim that may have got leases, whose answer was lost.
    unanswered: Option<Nonce>,
}

impl Cycles {
    pub(crate) fn new(shared: Arc<Shared>, ops: UnboundedReceiver<Op>) -> Self {
        Self { shared, ops, queue: VecDeque::new(), unanswered: None }
    }

    /// Until every sender is gone.
    pub(crate) async fn run(mut self) {
        while self.gather().await {
            let turn = self.next_turn();
            if !turn.is_empty() {
                self.make(turn).await;
            }
        }
    }

    /// Takes what has come; waits when there is nothing. `false` at the end.
    async fn gather(&mut self) -> bool {
        if self.queue.is_empty() {
            let Some(op) = self.ops.recv().await else { return false };
            self.queue.push_back(op);
        }
        while let Ok(op) = self.ops.try_recv() {
            self.queue.push_back(op);
        }
        true
    }

    fn next_turn(&mut self) -> Turn {
        let mut turn = Turn::default();
        while let Some(op) = self.queue.pop_front() {
            if let Op::Close(reply) = op {
                if turn.is_empty() {
                    let _ = reply.send(());
                    continue;
                }
                self.queue.push_front(Op::Close(reply));
                break;
            }
            if let Some(op) = turn.take_in(op, &self.shared) {
                self.queue.push_front(op);
                break;
            }
        }
        turn
    }

    /// Sends it until it is done.
    async fn make(&mut self, mut turn: Turn) {
        // A turn without a claim leaves it for the next one that has one.
        if let Some((request, _)) = &mut turn.claim
            && let Some(nonce) = self.unanswered.take()
        {
            request.nonce = nonce;
        }
        loop {
            if turn.claim.is_some() && self.shared.wake.begin_claim() {
                self.adopt().await;
            }
            match self.shared.work.call(&turn.call(&self.shared)).await {
                Ok(value) => return self.done(turn, value),
                Err(failure) => match self.failed(turn, failure).await {
                    Some(again) => turn = again,
                    None => return,
                },
            }
        }
    }

    /// Before a claim, so that what was pushed is among what it can take. A failure is the claim's to meet.
    async fn adopt(&self) {
        // Whether there is more, the cycle that follows says.
        if let Err(error) = ingress::adopt(&self.shared).await {
            self.shared.wake.note_ingress();
            self.shared.note(Some(error));
        }
    }

    async fn failed(&mut self, mut turn: Turn, failure: Failure) -> Option<Turn> {
        let comes_back = failure.trouble.comes_back();
        let error = StoreError::from(failure);
        self.shared.note(Some(error.clone()));
        if !comes_back {
            turn.fail(&error);
            return None;
        }
        if let Some(nonce) = turn.answer_impatient(&error) {
            self.unanswered = Some(nonce);
        }
        if turn.is_empty() {
            return None;
        }
        self.shared.work.pause().await;
        Some(turn)
    }

    fn done(&mut self, turn: Turn, value: redis::Value) {
        let shared = &self.shared;
        shared.note(None);
        let answer = match Answer::read(value, shared, turn.claim.as_ref().map(|(request, _)| request)) {
            Ok(answer) => answer,
            Err(error) => return turn.fail(&error),
        };
        if answer.rebased > 0 {
            shared.clock_went_back(answer.rebased);
        }
        shared.note_shift(answer.shift);
        shared.let_go(turn.settlements.iter().map(|(_, settlement)| LeaseRef::from(&settlement.lease)));
        let mut pauses = Some(answer.paused);
        for reply in turn.settled {
            drop(reply.send(Ok(pauses.take().unwrap_or_default())));
        }
        self.answer_extended(&turn.renewals, turn.extended, &answer.lost);
        let (Some((request, reply)), Some(lease)) = (turn.claim, turn.lease) else { return };
        let short = answer.claim.taken.len() + answer.unusable.len() < request.want.min(MOST_WANTED);
        if answer.ingress {
            self.shared.wake.note_ingress();
        }
        if answer.unfinished || answer.ingress {
            self.shared.wake.nudge();
        }
        if short && !answer.unfinished && !answer.ingress {
            self.shared.wake.saw_all(answer.bell);
        } else {
            self.shared.wake.hear(answer.bell);
        }
        self.shared.hold(answer.held, lease.seen_at(self.shared.clock.now()), answer.adopted);
        self.bury(answer.unusable);
        if let Err(Ok(claim)) = reply.send(Ok(answer.claim)) {
            // Nobody waits for it any more: given back at once instead of at the end of the leases.
            self.give_back(claim);
        }
    }

    fn answer_extended(
        &self,
        renewals: &[(LeaseRef, Until)],
        replies: Vec<(usize, Reply<Vec<LeaseRef>>)>,
        lost: &[usize],
    ) {
        let (mut at, now) = (0, self.shared.clock.now());
        for (count, reply) in replies {
            let (mut gone, mut kept) = (Vec::new(), Vec::new());
            for (index, (lease, until)) in renewals.iter().enumerate().skip(at).take(count) {
                if lost.contains(&index) { gone.push(*lease) } else { kept.push((*lease, *until)) }
            }
            at += count;
            self.shared.let_go(gone.iter().copied());
            for (lease, until) in kept {
                self.shared.hold_longer(lease, until.seen_at(now));
            }
            drop(reply.send(Ok(gone)));
        }
    }

    /// One damaged record must not hold up every other delivery, nor be claimed for ever; nor may what kills us.
    fn bury(&mut self, unusable: Vec<Unusable>) {
        let at = self.shared.clock.now();
        let end = |one: Unusable| one.settlement(at);
        self.settle_aside(unusable.into_iter().map(end).collect());
    }

    fn give_back(&mut self, claim: Claim) {
        let at = self.shared.clock.now();
        let end = |claimed| crate::claimed::released(claimed, at);
        self.settle_aside(claim.taken.into_iter().map(end).collect());
    }

    fn settle_aside(&mut self, batch: Vec<Settlement>) {
        if !batch.is_empty() {
            let (reply, _) = oneshot::channel();
            self.queue.push_front(Op::Settle(batch, reply));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_lease_that_waited_for_the_server_is_as_long_as_it_was_to_be() {
        let asked = Millis::new(1_000);
        let lease = Until { until: asked.after(LEASE), asked };
        assert_eq!(lease.seen_at(asked), asked.after(LEASE));
        let later = asked.after(Duration::from_secs(45));
        assert_eq!(lease.seen_at(later), later.after(LEASE));
        assert_eq!(lease.seen_at(Millis::new(0)), asked.after(LEASE), "a clock that went back shortens none");
    }
}
