//! No room: nothing is half-stored, nothing that was promised is forgotten, and no restart is needed.

use std::time::Duration;

use teimoso_delivery::model::EventId;
use teimoso_delivery::store::{Claimed, LaneNews, Next, Settlement, Store, StoreErrorKind};
use teimoso_delivery::testkit::{Offer, offer};

use super::bench::{End, Home, Open, URL, again_at, run};

fn small() -> Home {
    let mut home = Home::new();
    home.options.max_bytes = Some(1 << 20);
    home
}

/// A mebibyte and a half that nobody can store in one.
fn too_much() -> Vec<Offer> {
    (0..24).map(|n| offer(URL).named(&format!("p-{n}")).payload(vec![1; 64 << 10])).collect()
}

/// Waits until the store has looked for room again and found some.
async fn healed(open: &Open) {
    while open.store.health().is_err() {
        open.store.wait().await;
    }
}

async fn is_full(open: &Open, batch: Vec<Offer>) {
    assert_eq!(open.try_accept(batch).await.map_err(|error| error.kind()), Err(StoreErrorKind::Full));
    assert_eq!(open.store.health().map_err(|error| error.kind()), Err(StoreErrorKind::Full));
    assert!(open.ask(1).await.is_ok(), "what was accepted goes on being delivered");
}

/// Larger than what is kept free for settlements.
fn with_a_huge_answer(open: &Open, claimed: Claimed, bytes: usize, next: Next) -> Settlement {
    let mut settlement = open.settlement(claimed, next, LaneNews::Neutral);
    let response = settlement.record.as_mut().unwrap().response.as_mut().unwrap();
    response.body = vec![2; bytes].into();
    settlement
}

#[test]
fn g2_however_full_the_store_is_what_it_accepted_is_delivered_and_settled() {
    run(async {
        let open = small().open();
        let body = vec![1; 16 << 10];
        while open.try_accept(vec![offer(URL).payload(body.clone())]).await.is_ok() {}
        let accepted = open.counts().await.accepted;
        assert!(accepted > 20);
        assert_eq!(open.finish_all(Next::Delivered).await as u64, accepted);
        assert_eq!(open.counts().await.delivered, accepted, "every settlement is durable");
        assert_eq!(open.store.health().map_err(|error| error.kind()), Err(StoreErrorKind::Full));
    });
}

#[test]
fn g1_nothing_of_a_refused_batch_is_stored_and_its_names_stay_free() {
    run(async {
        let open = small().open();
        is_full(&open, too_much()).await;
        assert_eq!(open.counts().await.accepted, 0);
        assert_eq!(open.store.event(EventId::named("p-0").unwrap()).await, Ok(None));
        healed(&open).await;
        // The hour's table of names went with the batch that made it, and comes with the next one.
        let first = open.accept(offer(URL).named("p-0").payload("fits")).await;
        assert!(!first.replayed);
        assert!(open.accept(offer(URL).named("p-0").payload("fits")).await.replayed);
        let mut home = open.end(End::Killed).await;
        home.options.max_bytes = None;
        let open = home.open();
        let accepted = open.try_accept(too_much()[1..].to_vec()).await.unwrap();
        assert!(accepted.iter().all(|accepted| !accepted.replayed));
        assert_eq!(open.counts().await.accepted, 24);
    });
}

#[test]
fn settlements_made_without_room_are_lost_by_a_close_and_repeated_after_the_start() {
    run(async {
        let open = small().open();
        let body = vec![1; 16 << 10];
        let id = open.one(offer(URL).payload(body.clone())).await;
        let claimed = open.claim_one().await;
        while open.try_accept(vec![offer(URL).payload(body.clone())]).await.is_ok() {}
        let settlement = with_a_huge_answer(&open, claimed, 2 << 20, again_at(open.now()));
        let settled = open.store.settle(vec![settlement]).await.unwrap();
        assert_eq!(open.counts().await.scheduled, 0, "not durable, so not said");
        open.store.close().await;
        assert_eq!(settled.ticket.await.map_err(|error| error.kind()), Err(StoreErrorKind::Closed));
        let mut home = open.end(End::Dropped).await;
        home.options.max_bytes = None;
        let open = home.open();
        assert_eq!(open.claim_one().await.lease.delivery(), id, "at least once");
        assert_eq!(open.home.number("SELECT count(*) FROM leased"), 1, "that end was not clean: be cautious");
    });
}

#[test]
fn settlements_wait_for_room_in_their_order_and_expiry_makes_it() {
    run(async {
        let mut home = small();
        home.options.retention = Duration::from_secs(3_600);
        let open = home.open();
        let body = offer(URL).payload(vec![1; 16 << 10]);
        open.many(30, &body).await;
        open.finish_all(Next::Delivered).await;
        open.pass(Duration::from_secs(3_000));
        let id = open.one(body.clone()).await;
        let claimed = open.claim_one().await;
        while open.try_accept(vec![body.clone()]).await.is_ok() {}
        let settlement = with_a_huge_answer(&open, claimed, 1_200_000, again_at(open.now()));
        let settled = open.store.settle(vec![settlement]).await.unwrap();
        open.pass(Duration::from_secs(900));
        // What expires must leave first: nothing else fits.
        assert_eq!(settled.ticket.await, Ok(()));
        healed(&open).await;
        assert_eq!(open.view(id).await.attempts, 1);
        let again = open.again(End::Killed).await;
        assert_eq!(again.view(id).await.attempts, 1);
        assert_eq!(again.counts().await.scheduled, 1);
    });
}
