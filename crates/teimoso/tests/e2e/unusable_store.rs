//! A store or an address that cannot be used: one clear sentence, exit 1, and nothing damaged.

use std::fs::{self, Permissions};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection;

use crate::support::process::{Ended, has_namespaces, serve, serve_in_namespace, serve_without_privileges};
use crate::support::{ANY, directory, sink};

/// One sentence with this in it, exit 1, and no ready line.
fn assert_refused(ended: &Ended, sentence: &str) {
    assert_eq!(ended.code, Some(1), "{ended:?}");
    assert!(ended.stderr.starts_with("teimoso: "), "{ended:?}");
    assert!(ended.stderr.contains(sentence), "{ended:?}");
    // The sentence, and at most the next step.
    assert!(ended.stderr.lines().count() <= 2, "{ended:?}");
    assert!(!ended.stderr.contains("listening"), "{ended:?}");
}

#[test]
fn a_second_process_on_the_same_store_is_refused_and_the_first_goes_on() {
    let (directory, sink) = (directory(), sink());
    let first = serve(directory.path()).run();
    let second = serve(directory.path()).ended();
    assert_refused(&second, "is in use by another process");
    let sent = first.api.send(&sink.url("/ok"), "");
    first.api.until_state(&sent.delivery, "delivered");
    // The lock goes with its holder, however that ends.
    first.kill();
    assert_eq!(serve(directory.path()).run().api.counts().delivered, 1);
}

#[test]
fn a_store_below_a_file_cannot_be_made() {
    let directory = directory();
    fs::write(directory.path().join("file"), "kept").expect("written");
    let ended = serve(&directory.path().join("file/store")).ended();
    assert_refused(&ended, "file/store cannot be used: ");
    assert_eq!(fs::read(directory.path().join("file")).expect("read"), b"kept");
}

/// Modes do not bind root, so the process gives its privileges up in a namespace of its own; where the machine
/// grants none, only a test that is not run by root can see this.
#[test]
fn a_directory_that_may_not_be_written_is_refused() {
    let directory = directory();
    let locked = directory.path().join("locked");
    fs::create_dir(&locked).expect("made");
    fs::set_permissions(&locked, Permissions::from_mode(0o555)).expect("its owner may");
    let Some(launch) = serve_without_privileges(&locked) else {
        eprintln!("run by root without namespaces: modes do not bind, nothing to see");
        return;
    };
    assert_refused(&launch.ended(), "locked cannot be used: Permission denied");
    assert_eq!(fs::read_dir(&locked).expect("read").count(), 0);
}

#[test]
fn a_store_whose_file_may_not_be_written_is_refused_and_unharmed() {
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).run();
    let sent = serving.api.send(&sink.url("/ok"), "");
    serving.api.until_state(&sent.delivery, "delivered");
    serving.stop();
    let file = directory.path().join("teimoso.db");
    let before = fs::read(&file).expect("read");
    fs::set_permissions(&file, Permissions::from_mode(0o444)).expect("its owner may");
    let Some(launch) = serve_without_privileges(directory.path()) else {
        eprintln!("run by root without namespaces: modes do not bind, nothing to see");
        return;
    };
    assert_refused(&launch.ended(), "is not writable; check the owner and mode");
    assert!(fs::read(&file).expect("read") == before);
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("its owner may");
    assert_eq!(serve(directory.path()).run().api.counts().delivered, 1);
}

/// Needs a mount, and so a namespace of its own; where the machine grants none there is no such file system.
#[test]
fn a_read_only_file_system_is_refused() {
    let directory = directory();
    if !has_namespaces() {
        eprintln!("no namespaces on this machine: a read-only file system cannot be made");
        return;
    }
    let place = directory.path().display();
    let mount = format!("mount -t tmpfs none {place}; mount -o remount,ro {place}");
    let ended = serve_in_namespace(&directory.path().join("store"), &mount).ended();
    assert_refused(&ended, "store cannot be used: Read-only file system");
}

#[test]
fn what_is_no_store_is_refused_and_left_alone() {
    let directory = directory();
    let file = directory.path().join("teimoso.db");
    let text = "not a database, however long it is; ".repeat(200);
    fs::write(&file, &text).expect("written");
    assert_refused(&serve(directory.path()).ended(), "is not a teimoso store");
    assert_eq!(fs::read_to_string(&file).expect("read"), text);

    fs::remove_file(&file).expect("removed");
    let other = Connection::open(&file).expect("opened");
    other.execute_batch("CREATE TABLE theirs(x); INSERT INTO theirs VALUES (7)").expect("written");
    drop(other);
    assert_refused(&serve(directory.path()).ended(), "is not a teimoso store");
    let other = Connection::open(&file).expect("opened");
    let theirs: (i64, i64) = other
        .query_row("SELECT x, (SELECT count(*) FROM sqlite_schema) FROM theirs", [], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .expect("read");
    assert_eq!(theirs, (7, 1));
}

#[test]
fn a_store_of_a_newer_format_is_refused_and_unharmed() {
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).run();
    let sent = serving.api.send(&sink.url("/nada"), "");
    serving.api.until_state(&sent.delivery, "dead");
    serving.stop();
    let was = set_version(directory.path(), 999);
    assert_refused(&serve(directory.path()).ended(), "has format 999, which a newer teimoso wrote");
    assert_eq!(set_version(directory.path(), was), 999, "its version was left alone");
    let serving = serve(directory.path()).run();
    assert_eq!(serving.api.payload(&sent.event), br#"{"pedido": 1.0}"#);
}

/// Sets the format's number; returns the one it replaces.
fn set_version(directory: &Path, version: i64) -> i64 {
    let store = Connection::open(directory.join("teimoso.db")).expect("opened");
    let was = store.query_row("PRAGMA user_version", [], |row| row.get(0)).expect("read");
    store.execute_batch(&format!("PRAGMA user_version = {version}")).expect("written");
    was
}

#[test]
fn a_damaged_store_is_refused() {
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).run();
    let sent = serving.api.send(&sink.url("/nada"), "");
    serving.api.until_state(&sent.delivery, "dead");
    serving.stop();
    let file = directory.path().join("teimoso.db");
    let mut bytes = fs::read(&file).expect("read");
    // The schema's page keeps its header; everything behind it is noise.
    bytes[100..4_096].fill(0xa5);
    fs::write(&file, bytes).expect("written");
    assert_refused(&serve(directory.path()).ended(), "is damaged; restore a backup");
}

#[test]
fn a_taken_port_says_so_and_makes_no_store() {
    let directory = directory();
    let taken = TcpListener::bind(ANY).expect("a free port");
    let address = taken.local_addr().expect("an address").to_string();
    let store = directory.path().join("store");
    let ended = serve(&store).listen(&address).ended();
    assert_refused(&ended, &format!("{address} is already in use"));
    assert!(!store.exists());
}
