//! `teimoso doctor` on a directory: beside a server it looks, alone it heals, and what was healed is delivered.

use serde_json::Value;

use crate::support::directory;
use crate::support::process::{Ended, serve, teimoso};
use crate::support::receiver::Receiver;

fn doctor(store: &std::path::Path, more: &[&str]) -> Ended {
    teimoso(&["doctor", "--store"]).arg(store).args(more).output().expect("the binary runs").into()
}

#[test]
fn g2_a_delivery_in_no_queue_is_found_healed_and_delivered() {
    let directory = directory();
    let store = directory.path().join("data");
    let receiver = Receiver::answering(&[200]);
    let serving = serve(&store).run();
    let sent = serving.api.send(&receiver.url("/x"), ",\"deliver_at\":\"2199-01-01T00:00:00Z\"");
    let beside = doctor(&store, &["--json"]);
    assert_eq!(beside.code, Some(0), "{beside:?}");
    let beside: Value = serde_json::from_str(&beside.stdout).expect("JSON");
    assert_eq!(beside["facts"]["in_use_by"], format!("another process (pid {})", serving.pid()));
    let refused = doctor(&store, &["--heal"]);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains(&format!("(pid {})", serving.pid())), "{refused:?}");
    serving.stop();

    let conn = rusqlite::Connection::open(store.join("teimoso.db")).expect("a database");
    conn.execute_batch("DELETE FROM due; UPDATE delivery SET due = 1; UPDATE counter SET dead = 3;")
        .expect("edited");
    drop(conn);
    let seen = doctor(&store, &[]);
    assert_eq!(seen.code, Some(1), "{seen:?}");
    assert!(seen.stdout.contains("alive_not_queued") && seen.stdout.contains(&sent.delivery), "{seen:?}");
    assert!(
        seen.stderr.ends_with("2 things are wrong; --heal puts right what can be put right\n"),
        "{seen:?}"
    );
    let healed = doctor(&store, &["--heal", "--lang", "pt-BR"]);
    assert_eq!(healed.code, Some(0), "{healed:?}");
    assert!(healed.stderr.ends_with("2 coisas estavam erradas, 2 consertadas\n"), "{healed:?}");

    let serving = serve(&store).run();
    serving.api.until_state(&sent.delivery, "delivered");
    serving.api.counts().assert_conserved();
    serving.stop();
    assert_eq!(doctor(&store, &[]).code, Some(0));
}

#[test]
fn where_there_is_no_store_none_is_made() {
    let directory = directory();
    let ended = doctor(&directory.path().join("nothing"), &["--heal"]);
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.starts_with("teimoso: there is no store at "), "{ended:?}");
    assert_eq!(std::fs::read_dir(directory.path()).expect("readable").count(), 0);
}
