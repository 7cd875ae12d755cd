//! The log: bounded while the store writes, also while somebody reads.

use std::fs;

use teimoso_delivery::testkit::offer;

use super::bench::{End, Home, Open, URL, run};

/// Past this the log is started over between two commits, as soon as the checkpoint thread has made a pass.
const CAP: u64 = 64 << 20;
/// What the log's file may keep of the disk, once nothing holds it.
const KEPT: u64 = 96 << 20;

async fn write(open: &Open, megabytes: usize) -> u64 {
    let mut longest = 0;
    for _ in 0..megabytes / 2 {
        open.many(32, &offer(URL).payload(vec![5; 64 << 10])).await;
        longest = longest.max(fs::metadata(open.home.file("teimoso.db-wal")).unwrap().len());
    }
    longest
}

#[test]
fn g11_the_log_stays_below_its_cap() {
    run(async {
        let open = Home::new().open();
        let longest = write(&open, 160).await;
        assert!(longest > CAP && longest <= KEPT, "{longest}");
        let home = open.end(End::Closed).await;
        let left = fs::metadata(home.file("teimoso.db-wal")).map_or(0, |file| file.len());
        assert_eq!(left, 0, "a clean end leaves one file");
        assert_eq!(home.open().counts().await.pending, 2_560);
    });
}

#[test]
fn a_reader_that_lingers_holds_the_log_but_stops_nothing() {
    run(async {
        let open = Home::new().open();
        open.one(offer(URL)).await;
        let reader = rusqlite::Connection::open(open.home.database()).unwrap();
        reader.execute_batch("BEGIN; SELECT count(*) FROM event;").unwrap();
        assert!(write(&open, 120).await > KEPT, "held back");
        drop(reader);
        let length = || fs::metadata(open.home.file("teimoso.db-wal")).unwrap().len();
        // Not at once: the checkpoint thread makes a pass first, and the log is started over by a later commit.
        while length() > KEPT {
            open.many(8, &offer(URL).payload(vec![5; 64 << 10])).await;
        }
    });
}
