//! A damaged row harms itself alone.

use rusqlite::Connection;
use teimoso_delivery::model::{DeadReason, DeliveryState, EventId};
use teimoso_delivery::store::{Next, Store, StoreErrorKind};
use teimoso_delivery::testkit::offer;

use super::bench::{End, Home, URL, ids, run};

#[test]
fn a_delivery_that_cannot_be_read_back_is_buried_and_its_siblings_are_delivered() {
    run(async {
        let open = Home::new().open();
        let damaged = open.one(offer(URL)).await;
        let whole = open.one(offer(URL)).await;
        let home = open.end(End::Closed).await;
        let conn = Connection::open(home.database()).unwrap();
        conn.execute("UPDATE delivery SET mode = 99 WHERE id = (SELECT min(id) FROM delivery)", []).unwrap();
        drop(conn);
        let open = home.open();
        let mut taken = open.claim(9).await;
        assert_eq!(ids(&taken), [whole]);
        open.finish(taken.remove(0), Next::Delivered).await;
        let buried = open.view(damaged).await;
        assert_eq!((buried.state, buried.reason), (DeliveryState::Dead, Some(DeadReason::Malformed)));
        assert!(open.counts().await.conserved());
        assert_eq!(open.claim(9).await.len(), 0);
    });
}

#[test]
fn an_order_that_meets_a_damaged_row_is_refused_alone() {
    run(async {
        let open = Home::new().open();
        let damaged = open.one(offer(URL)).await;
        let conn = Connection::open(open.home.database()).unwrap();
        conn.execute("UPDATE delivery SET why = 77", []).unwrap();
        let refused = open.store.cancel(damaged).await.map_err(|error| error.kind());
        assert_eq!(refused, Err(StoreErrorKind::Failed));
        assert_eq!(open.store.health(), Ok(()));
        let whole = open.accept(offer(URL)).await;
        assert!(matches!(whole.event, EventId::Own(_)));
    });
}
