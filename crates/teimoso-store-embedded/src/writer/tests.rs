//! Which operations share a commit is chance at run time; here it is chosen.

use std::sync::Arc;

use teimoso_delivery::lanes::{Horizon, LaneId};
use teimoso_delivery::model::{
    AttemptNumber, AttemptRecord, DecisionName, DeliveryId, DeliveryState, Lease, NextWhy, PhaseTimings,
    ResponseRecord,
};
use teimoso_delivery::retry::Fate;
use teimoso_delivery::store::{CancelOutcome, ClaimRequest, Claimed, LaneNews, Next, Settlement, Store};
use teimoso_delivery::testkit::offer;
use tempfile::TempDir;

use super::*;
use crate::testing::{self, NOW};
use crate::{EmbeddedStore, checkpoint, open, schema};

const URL: &str = "http://loja.example/";

type Answer<T> = oneshot::Receiver<Result<T, StoreError>>;

/// A store whose operations go nowhere, and a writer that commits what a test hands it.
struct Staged {
    store: EmbeddedStore,
    writer: Writer,
    ids: Vec<DeliveryId>,
    _queue: Receiver<Op>,
    _dir: TempDir,
}

/// After `events` to one lane.
async fn staged(events: usize) -> Staged {
    let (dir, mut store) = testing::store();
    let ids = testing::accept(&store, vec![offer(URL); events]).await;
    let (sender, queue) = channel();
    drop(std::mem::replace(&mut store.writer, sender));
    for thread in store.threads.get_mut().unwrap().drain(..) {
        thread.join().unwrap();
    }
    // The store's own writer closed it when it ended.
    store.shared.failed(&no_room_left());
    store.shared.set_health(Health::Well);
    let path = dir.path().join(open::FILE);
    let conn = schema::open_for_writing(&path).unwrap();
    let checkpointer = checkpoint::start(&path).unwrap();
    let writer = Writer::new(conn, Arc::clone(&store.shared), checkpointer).unwrap();
    Staged { store, writer, ids, _queue: queue, _dir: dir }
}

fn no_room_left() -> StoreError {
    StoreError::new(StoreErrorKind::Full, "no room")
}

async fn claimed(store: &EmbeddedStore) -> Claimed {
    let mut taken = store.claim(testing::request(1)).await.unwrap().taken;
    assert_eq!(taken.len(), 1);
    taken.remove(0)
}

/// The settlement of a claim, its slot freed as `settle` does.
fn settle(store: &EmbeddedStore, claimed: &Claimed, next: Next) -> (Op, Answer<()>) {
    let key = store.shared.ids().delivery_key(claimed.lease.delivery()).unwrap();
    let core = &mut *store.shared.core();
    core.leases.get_mut(&key).unwrap().settling = true;
    core.lanes.release(LaneId(0), LaneNews::Neutral, NOW);
    store.shared.note_unsaved(1);
    let mut progress = claimed.progress;
    progress.attempts += 1;
    let lease = Lease::grant(claimed.lease.delivery(), claimed.lease.nonce());
    let settlement = Settlement { lease, next, progress, record: None, news: LaneNews::Neutral, at: NOW };
    let (reply, answer) = oneshot::channel();
    (Op::Settle(vec![Settling { key, settlement, lane_changed: false }], reply), answer)
}

/// So that the settlement finds no room either.
fn with_a_huge_answer(settle: &mut Op) {
    let Op::Settle(batch, _) = settle else { panic!("a settlement") };
    let response = ResponseRecord { body: vec![1; 1 << 20].into(), ..ResponseRecord::default() };
    batch[0].settlement.record = Some(Box::new(AttemptRecord {
        number: AttemptNumber::after(0),
        started_at: NOW,
        fate: Fate::Answered,
        status: Some(503),
        error_kind: None,
        error: None,
        decision: DecisionName::Retry,
        wait: None,
        peer: None,
        timings: PhaseTimings::default(),
        response: Some(Box::new(response)),
    }));
}

fn cancel(id: DeliveryId) -> (Op, Answer<CancelOutcome>) {
    let (reply, answer) = oneshot::channel();
    (Op::Cancel(id, reply), answer)
}

fn retry(id: DeliveryId) -> (Op, Answer<RetryOutcome>) {
    let (reply, answer) = oneshot::channel();
    (Op::Retry(id, false, reply), answer)
}

/// An event that fits nowhere once [`no_room`] was called.
fn large() -> Op {
    let (reply, _) = oneshot::channel();
    Op::Accept(vec![offer(URL).payload(vec![0; 1 << 20]).event()], reply)
}

fn no_room(writer: &Writer) {
    writer.conn.execute_batch("PRAGMA max_page_count = 1").unwrap();
}

fn room(writer: &Writer) {
    writer.conn.execute_batch("PRAGMA max_page_count = 1000000").unwrap();
}

const AGAIN: Next = Next::Scheduled { due: NOW, why: NextWhy::Retry };

#[tokio::test]
async fn a_cancellation_right_behind_a_settlement_cancels() {
    let Staged { store, writer, ids, .. } = &mut staged(1).await;
    let id = ids[0];
    let (settle, settled) = settle(store, &claimed(store).await, AGAIN);
    let (cancel, cancelled) = cancel(id);
    writer.commit(vec![settle, cancel]);
    assert_eq!((settled.await.unwrap(), cancelled.await.unwrap()), (Ok(()), Ok(CancelOutcome::Cancelled)));
    assert_eq!(store.delivery(id).await.unwrap().unwrap().state, DeliveryState::Cancelled);
    assert!(!store.shared.core().lanes.has_ready(NOW), "not due again");
    let leased: i64 = writer.conn.query_row("SELECT count(*) FROM leased", [], |row| row.get(0)).unwrap();
    assert_eq!(leased, 0, "nothing is left for the next start");
}

#[tokio::test]
async fn a_cancellation_right_before_a_settlement_is_honoured() {
    let Staged { store, writer, ids, .. } = &mut staged(1).await;
    let id = ids[0];
    let claimed = claimed(store).await;
    let (cancel, cancelled) = cancel(id);
    let (settle, settled) = settle(store, &claimed, AGAIN);
    writer.commit(vec![cancel, settle]);
    assert_eq!((cancelled.await.unwrap(), settled.await.unwrap()), (Ok(CancelOutcome::Requested), Ok(())));
    assert_eq!(store.delivery(id).await.unwrap().unwrap().state, DeliveryState::Cancelled);
}

#[tokio::test]
async fn a_retry_right_behind_a_settlement_makes_it_due_once() {
    let Staged { store, writer, ids, .. } = &mut staged(1).await;
    let id = ids[0];
    let later = NOW.after(Duration::from_secs(9));
    let next = Next::Scheduled { due: later, why: NextWhy::Retry };
    let (settle, _settled) = settle(store, &claimed(store).await, next);
    let (retry, retried) = retry(id);
    writer.commit(vec![settle, retry]);
    assert_eq!(retried.await.unwrap(), Ok(RetryOutcome::Due));
    let taken = store.shared.core().lanes.take(later, 9, 64);
    assert_eq!(taken.iter().map(|taken| taken.due).collect::<Vec<_>>(), [NOW]);
}

#[tokio::test]
async fn a_failed_commit_takes_a_wish_to_cancel_back() {
    let Staged { store, writer, ids, .. } = &mut staged(2).await;
    let id = ids[0];
    let mut taken = store.claim(testing::request(2)).await.unwrap().taken;
    let (other, claimed) = (taken.pop().unwrap(), taken.pop().unwrap());
    let (mut huge, _) = settle(store, &other, AGAIN);
    with_a_huge_answer(&mut huge);
    no_room(writer);
    let (cancel, cancelled) = cancel(id);
    writer.commit(vec![cancel, huge]);
    assert_eq!(cancelled.await.unwrap().map_err(|error| error.kind()), Err(StoreErrorKind::Full));
    room(writer);
    let (settle, settled) = settle(store, &claimed, AGAIN);
    writer.commit(vec![settle]);
    assert_eq!(settled.await.unwrap(), Ok(()));
    assert_eq!(store.delivery(id).await.unwrap().unwrap().state, DeliveryState::Scheduled);
}

#[tokio::test]
async fn a_failed_commit_puts_back_what_it_took_out_of_the_schedule() {
    let Staged { store, writer, ids, .. } = &mut staged(2).await;
    let one = ClaimRequest { want: 1, ..testing::request(1) };
    let first = store.claim(one).await.unwrap().taken.remove(0);
    let (mut huge, _) = settle(store, &first, Next::Delivered);
    with_a_huge_answer(&mut huge);
    let id = ids[1];
    no_room(writer);
    let (cancel, cancelled) = cancel(id);
    writer.commit(vec![cancel, huge]);
    assert_eq!(cancelled.await.unwrap().map_err(|error| error.kind()), Err(StoreErrorKind::Full));
    room(writer);
    writer.commit(vec![Op::Tick]);
    writer.commit(vec![Op::Tick]);
    assert_eq!(store.health(), Ok(()));
    let taken = store.shared.core().lanes.take(NOW, 9, 64);
    let key = store.shared.ids().delivery_key(id);
    assert_eq!(taken.iter().map(|taken| Some(taken.key)).collect::<Vec<_>>(), [key]);
}

#[tokio::test]
async fn a_failed_commit_asks_again_for_the_lanes_it_should_have_read_on() {
    let Staged { store, writer, ids, .. } = &mut staged(1).await;
    let id = ids[0];
    // As after a start: nothing of the lane is known yet.
    {
        let core = &mut *store.shared.core();
        let key = core.lanes.key(LaneId(0)).unwrap().clone();
        let nothing = Horizon::Nothing;
        core.lanes.open(LaneId(0), key, teimoso_delivery::model::LaneRecord::default(), nothing);
        assert!(core.lanes.is_thirsty());
    }
    no_room(writer);
    writer.commit(vec![large()]);
    assert!(store.health().is_err());
    room(writer);
    writer.commit(vec![Op::Tick]);
    assert_eq!(claimed(store).await.lease.delivery(), id);
}

#[tokio::test]
async fn g6_a_failed_commit_journals_its_leases_all_the_same() {
    let Staged { store, writer, .. } = &mut staged(1).await;
    let claimed = claimed(store).await;
    let key = store.shared.ids().delivery_key(claimed.lease.delivery()).unwrap();
    let earlier = Millis::new(NOW.get() - 1_000);
    store.shared.core().journal.clear();
    writer.journal.push_back((earlier, key));
    no_room(writer);
    writer.commit(vec![large()]);
    assert!(store.health().is_err() && writer.journal.is_empty());
    assert!(store.shared.core().leases[&key].journaled);
}

#[tokio::test]
async fn settlements_without_room_are_committed_first_when_there_is_some() {
    let Staged { store, writer, ids, .. } = &mut staged(1).await;
    let id = ids[0];
    let (mut settle, settled) = settle(store, &claimed(store).await, AGAIN);
    with_a_huge_answer(&mut settle);
    no_room(writer);
    writer.commit(vec![settle, large()]);
    assert_eq!((writer.unsaved.len(), store.shared.unsaved()), (1, 1));
    assert_eq!(writer.next_timer(), Some(FULL_RETRY));
    room(writer);
    let (cancel, cancelled) = cancel(id);
    writer.commit(vec![cancel]);
    assert_eq!((settled.await.unwrap(), cancelled.await.unwrap()), (Ok(()), Ok(CancelOutcome::Cancelled)));
    writer.commit(vec![Op::Tick]);
    assert_eq!((writer.unsaved.len(), store.shared.unsaved(), store.health()), (0, 0, Ok(())));
}

#[tokio::test]
async fn a_failed_commit_takes_no_hour_of_names_for_made() {
    let Staged { store, writer, .. } = &mut staged(0).await;
    no_room(writer);
    let (reply, refused) = oneshot::channel();
    let offers = [offer(URL).named("p-1"), offer(URL).payload(vec![0; 1 << 20])];
    writer.commit(vec![Op::Accept(offers.into_iter().map(|offer| offer.event()).collect(), reply)]);
    assert_eq!(refused.await.unwrap().map(drop).map_err(|error| error.kind()), Err(StoreErrorKind::Full));
    room(writer);
    let (reply, accepted) = oneshot::channel();
    writer.commit(vec![Op::Accept(vec![offer(URL).named("p-1").event()], reply)]);
    assert!(!accepted.await.unwrap().unwrap()[0].as_ref().unwrap().replayed);
    assert_eq!(store.health(), Ok(()));
}
