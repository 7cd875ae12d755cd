//! What is not a store we may write to is refused with one sentence, and not touched.

use std::fs;
use std::path::Path;

use rusqlite::Connection;
use teimoso_delivery::testkit::offer;

use super::bench::{End, Home, URL, run};

/// Refused with exactly this, `{}` being the path; and the file is what it was.
fn refused(home: &Home, path: &Path, sentence: &str) {
    let before = fs::read(path).unwrap();
    let error = home.try_open().unwrap_err();
    assert_eq!(error.to_string(), sentence.replace("{}", &path.display().to_string()));
    assert_eq!(fs::read(path).unwrap(), before, "not a byte is changed");
}

/// The file after `sql`, which makes it something else.
fn made_by(sql: &str) -> Home {
    let home = Home::new();
    let conn = Connection::open(home.database()).unwrap();
    conn.execute_batch(sql).unwrap();
    home
}

/// A store with an event, closed, then changed by `sql`.
async fn changed_by(sql: &str) -> Home {
    let open = Home::new().open();
    open.one(offer(URL)).await;
    let home = open.end(End::Closed).await;
    let conn = Connection::open(home.database()).unwrap();
    conn.execute_batch(sql).unwrap();
    drop(conn);
    home
}

const FOREIGN: &str = "{} is not a teimoso store; choose another --store directory";

#[test]
fn a_second_opener_is_refused_until_the_first_is_gone() {
    run(async {
        let open = Home::new().open();
        open.one(offer(URL)).await;
        let sentence = format!(
            "the store at {} is in use by another process (pid {}); stop it, or talk to it with --server",
            open.home.path.display(),
            std::process::id()
        );
        refused(&open.home, &open.home.database(), &sentence);
        open.one(offer(URL)).await;
        assert_eq!(open.again(End::Dropped).await.counts().await.pending, 2);
    });
}

#[test]
fn what_is_no_database_is_refused() {
    let home = Home::new();
    fs::write(home.database(), "a text that somebody wrote ".repeat(200)).unwrap();
    refused(&home, &home.database(), FOREIGN);
}

#[test]
fn somebody_elses_database_is_refused() {
    for sql in [
        "PRAGMA application_id = 7; CREATE TABLE t(x)",
        "PRAGMA application_id = 7",
        "PRAGMA user_version = 1",
        "CREATE TABLE t(x)",
        // Ours by its id, but of a format that never was.
        "PRAGMA application_id = 0x746d736f; CREATE TABLE t(x)",
    ] {
        let home = made_by(sql);
        refused(&home, &home.database(), FOREIGN);
    }
}

#[test]
fn a_newer_format_is_refused_by_its_number() {
    run(async {
        let home = changed_by("PRAGMA user_version = 2").await;
        let sentence = "{} has format 2, which a newer teimoso wrote; this version reads up to format 1";
        refused(&home, &home.database(), sentence);
        let conn = Connection::open(home.database()).unwrap();
        conn.execute_batch("PRAGMA user_version = 1").unwrap();
        drop(conn);
        assert_eq!(home.open().counts().await.pending, 1, "nothing was lost by trying");
    });
}

#[test]
fn a_damaged_file_is_refused() {
    run(async {
        let home = changed_by("").await;
        let mut bytes = fs::read(home.database()).unwrap();
        // The first page's list of cells: the schema cannot be read.
        bytes[100..200].fill(0xff);
        fs::write(home.database(), bytes).unwrap();
        let sentence = "the store {} is damaged; restore a backup, or move it away and start empty";
        refused(&home, &home.database(), sentence);
    });
}

#[test]
fn a_value_that_this_version_cannot_read_is_not_guessed_at() {
    run(async {
        let home = changed_by("UPDATE lane SET application = 1; UPDATE application SET name = 'a b'").await;
        let error = home.try_open().unwrap_err().to_string();
        assert!(error.contains("a text this version refuses"), "{error}");
    });
}

#[test]
fn a_directory_that_is_a_file_is_refused() {
    let home = Home::new();
    let path = home.file("teimoso-data");
    fs::write(&path, "x").unwrap();
    let mut elsewhere = Home::new();
    elsewhere.path = path.clone();
    let error = elsewhere.try_open().unwrap_err().to_string();
    let start = format!("the store directory {} cannot be used: ", path.display());
    assert!(error.starts_with(&start), "{error}");
    assert_eq!(fs::read(path).unwrap(), b"x");
}

#[test]
fn a_file_that_is_a_directory_is_refused() {
    let home = Home::new();
    fs::create_dir(home.database()).unwrap();
    let expected = format!(
        "the store {} cannot be opened; check the owner and mode of its directory",
        home.database().display()
    );
    assert_eq!(home.try_open().unwrap_err().to_string(), expected);
}

#[test]
fn a_file_that_may_only_be_read_is_refused() {
    run(async {
        let home = changed_by("").await;
        let mut mode = fs::metadata(home.database()).unwrap().permissions();
        mode.set_readonly(true);
        fs::set_permissions(home.database(), mode).unwrap();
        if fs::File::options().append(true).open(home.database()).is_ok() {
            // The superuser may write it all the same, and so may the store.
            assert_eq!(home.open().counts().await.pending, 1);
            return;
        }
        let sentence = "the store {} is not writable; check the owner and mode of its directory";
        refused(&home, &home.database(), sentence);
    });
}

#[test]
fn a_store_that_lost_its_file_is_not_taken_for_a_new_one() {
    run(async {
        let home = changed_by("").await;
        let sentence = "{} is missing or empty although a store was here; restore a backup, or remove the \
            directory to start empty";
        fs::write(home.database(), "").unwrap();
        refused(&home, &home.database(), sentence);
        fs::remove_file(home.database()).unwrap();
        let error = home.try_open().unwrap_err().to_string();
        assert_eq!(error, sentence.replace("{}", &home.database().display().to_string()));
        assert!(!home.database().exists());
    });
}
