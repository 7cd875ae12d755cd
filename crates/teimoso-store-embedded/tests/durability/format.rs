//! Format 1 is law: a file that an earlier build wrote reads as it was meant, tag by tag.
//!
//! `tests/fixtures/format-1.db` was written by [`generate`], once, when the format was fixed. To write a
//! fixture of a *new* format, raise the format, then run
//! `TEIMOSO_WRITE_FIXTURE=1 cargo nextest run -p teimoso-store-embedded format::` and commit the file beside
//! this one, which stays and is migrated by the tests from then on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;
use rusqlite::types::Value;
use teimoso_delivery::model::{
    AttemptRecord, ContentType, DeadReason, DecisionName, DeliveryState, ErrorKind, EventId, Header, Headers,
    Millis, Mode, NextWhy,
};
use teimoso_delivery::retry::{Fate, Nack, Proof, Refusal, WaitSource, Why};
use teimoso_delivery::store::{
    CancelOutcome, DeliveryFilter, DeliveryView, LaneNews, NewReplay, Next, ReplayFilter, Store,
};
use teimoso_delivery::testkit::offer;

use super::bench::{End, Home, Open, START, again_at, run};

const HOUR: Duration = Duration::from_secs(3_600);
/// When the fixture's process died.
const DIED_AT: Millis = Millis::new(START.get() + 37_010);

/// What ended the first attempts, in the order of their deliveries.
const REASONS: [(DeadReason, Fate, ErrorKind); 11] = [
    (DeadReason::PermanentStatus, Fate::Answered, ErrorKind::Http4xx),
    (DeadReason::AttemptsExhausted, Fate::BodyLost, ErrorKind::Http5xx),
    (DeadReason::DeadlineExceeded, Fate::Ambiguous(Why::Timeout), ErrorKind::Timeout),
    (DeadReason::Ambiguous, Fate::Ambiguous(Why::Closed), ErrorKind::Closed),
    (DeadReason::EndpointGone, Fate::Ambiguous(Why::Reset), ErrorKind::Reset),
    (DeadReason::Redirect, Fate::Ambiguous(Why::Protocol), ErrorKind::Protocol),
    (DeadReason::BlockedAddress, Fate::Refused(Refusal::BlockedAddress), ErrorKind::BlockedAddress),
    (DeadReason::InvalidDestination, Fate::Refused(Refusal::InvalidDestination), ErrorKind::Http3xx),
    (DeadReason::Malformed, Fate::Ambiguous(Why::Other), ErrorKind::Cancelled),
    (DeadReason::TooLarge, Fate::Refused(Refusal::TooLarge), ErrorKind::TooLarge),
    (DeadReason::Poison, Fate::Ambiguous(Why::Cancelled), ErrorKind::Cancelled),
];

/// What let the others wait.
const WHYS: [(NextWhy, Fate, ErrorKind); 9] = [
    (NextWhy::First, Fate::NeverSent(Proof::Dns), ErrorKind::Dns),
    (NextWhy::Retry, Fate::NeverSent(Proof::Connect), ErrorKind::ConnectRefused),
    (NextWhy::RetryAfter, Fate::NeverSent(Proof::TlsHandshake), ErrorKind::TlsHandshake),
    (NextWhy::LanePaused, Fate::NeverSent(Proof::TlsCertificate), ErrorKind::TlsCertificate),
    (NextWhy::Breaker, Fate::NeverSent(Proof::NoConnection), ErrorKind::ConnectTimeout),
    (NextWhy::EndpointPaused, Fate::NeverSent(Proof::HandedBack), ErrorKind::Closed),
    (NextWhy::EndpointDisabled, Fate::NeverSent(Proof::ZeroBytesWritten), ErrorKind::Reset),
    (NextWhy::Replay, Fate::NotProcessed(Nack::RefusedStream), ErrorKind::Protocol),
    (NextWhy::DeliverAt, Fate::NotProcessed(Nack::GoAway), ErrorKind::Protocol),
];

/// An attempt with a value in every column.
fn attempt(record: AttemptRecord, fate: Fate, kind: ErrorKind) -> Box<AttemptRecord> {
    let mut record = AttemptRecord { fate, error_kind: Some(kind), ..record };
    let micros = |n| Some(Duration::from_micros(n));
    record.timings.dns = micros(1);
    record.timings.connect = micros(2);
    record.timings.tls = micros(3);
    record.timings.first_byte = micros(4);
    if fate == Fate::BodyLost {
        record.wait = record.wait.map(|(wait, _)| (wait, WaitSource::Schedule));
        record.decision = DecisionName::GiveUp;
    }
    Box::new(record)
}

async fn end_with(open: &Open, url: &str, next: Next, fate: Fate, kind: ErrorKind) {
    open.one(offer(url)).await;
    let mut settlement = open.settlement(open.claim_one().await, next, LaneNews::Neutral);
    settlement.record = settlement.record.map(|record| attempt(*record, fate, kind));
    assert_eq!(open.store.settle(vec![settlement]).await.unwrap().ticket.await, Ok(()));
}

/// Two lanes that wait, for both reasons there are.
async fn paused_lanes(open: &Open) {
    open.one(offer("http://breaker.example/")).await;
    for _ in 0..10 {
        let claimed = open.claim_one().await;
        open.settle(claimed, again_at(open.now()), LaneNews::Failure).await;
        open.pass(Duration::from_secs(4));
    }
    open.home.clock.step_back(Duration::from_secs(4));
    open.one(offer("http://pause.example/")).await;
    let claimed = open.claim_one().await;
    let until = open.now().after(2 * HOUR);
    open.settle(claimed, again_at(open.now()), LaneNews::Pause(until)).await;
}

/// A finished, a cancelled and a running job; the latter two have replayed all that they could take.
async fn replays(open: &Open) {
    let order = |reason, until| NewReplay {
        filter: ReplayFilter { reason, since: Some(START), until },
        rate: 1,
        dry_run: false,
    };
    let earlier = Some(Millis::new(START.get() + 36_001));
    let (ended, stopped) = (order(None, Some(START)), order(Some(DeadReason::Malformed), earlier));
    open.store.start_replay(ended).await.unwrap();
    let stopped = open.store.start_replay(stopped).await.unwrap();
    open.store.cancel_replay(stopped.id.unwrap()).await.unwrap();
    open.store.start_replay(order(Some(DeadReason::PermanentStatus), earlier)).await.unwrap();
    assert_eq!(open.claim(9).await.len(), 2);
}

/// A file that holds every tag and a value in every column, as a killed process leaves it.
async fn generate() -> Home {
    let open = Home::new().open();
    paused_lanes(&open).await;
    for reason in [DeadReason::PermanentStatus, DeadReason::Malformed] {
        end_with(&open, "http://dead.example/", Next::Dead(reason), Fate::Answered, ErrorKind::Http4xx).await;
    }
    open.pass(Duration::from_secs(1));
    for (reason, fate, kind) in REASONS {
        end_with(&open, "http://dead.example/", Next::Dead(reason), fate, kind).await;
    }
    for (why, fate, kind) in WHYS {
        let due = open.now().after(HOUR);
        end_with(&open, "http://wait.example/", Next::Scheduled { due, why }, fate, kind).await;
    }
    open.one(offer("http://done.example/")).await;
    open.finish(open.claim_one().await, Next::Delivered).await;
    let cancelled = open.one(offer("http://done.example/")).await;
    assert_eq!(open.store.cancel(cancelled).await, Ok(CancelOutcome::Cancelled));

    let full =
        offer("http://full.example/a?b=c").of("loja-2").key("k-1").kind("pedido.pago").policy("webhook");
    let mut full =
        full.payload(vec![0, 255, b'\n']).deliver_at(open.now().after(HOUR)).at_most_once().event();
    full.content_type = ContentType::parse("text/plain").unwrap();
    full.headers = Headers::new(vec![Header::new("x-a", "1: 2").unwrap()]).unwrap();
    open.store.accept(vec![full]).await.unwrap().remove(0).unwrap();
    open.accept(offer("http://nowhere.example/").nowhere().named("p-1").fingerprint(9)).await;

    replays(&open).await;
    open.one(offer("http://leased.example/").at_most_once()).await;
    assert_eq!(open.claim(9).await.len(), 1);
    let wished = open.one(offer("http://leased.example/")).await;
    assert_eq!(open.claim(9).await.len(), 1);
    assert_eq!(open.store.cancel(wished).await, Ok(CancelOutcome::Requested));
    open.journal().await;
    assert_eq!(open.now(), DIED_AT);
    let home = open.end(End::Killed).await;
    let conn = Connection::open(home.database()).unwrap();
    conn.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();
    home
}

fn fixture() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/format-1.db")
}

/// The fixture, opened as the next process would.
fn opened() -> Open {
    let home = Home::new();
    home.clock.advance(DIED_AT.since(START));
    std::fs::copy(fixture(), home.database()).unwrap();
    home.open()
}

/// Every row of every table.
fn rows(path: &Path) -> String {
    let conn = Connection::open(path).unwrap();
    let mut text = String::new();
    let mut tables =
        conn.prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name").unwrap();
    let tables = tables.query_map([], |row| Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?)));
    for (table, sql) in tables.unwrap().map(|table| table.unwrap()) {
        writeln!(text, "{sql}").unwrap();
        let mut select = conn.prepare(&format!("SELECT * FROM {table}")).unwrap();
        let columns = select.column_count();
        let mut rows = select.query([]).unwrap();
        while let Some(row) = rows.next().unwrap() {
            let row: Vec<Value> = (0..columns).map(|column| row.get(column).unwrap()).collect();
            writeln!(text, "{table} {row:?}").unwrap();
        }
    }
    text
}

async fn deliveries(open: &Open, state: DeliveryState) -> Vec<DeliveryView> {
    let filter = DeliveryFilter { state: Some(state), limit: 100, ..DeliveryFilter::default() };
    let mut views = open.store.deliveries(filter).await.unwrap().data;
    views.sort_unstable_by_key(|view| view.id);
    views
}

async fn to(open: &Open, state: DeliveryState, url: &str) -> Vec<DeliveryView> {
    let mut views = deliveries(open, state).await;
    views.retain(|view| &*view.url == url);
    views
}

#[test]
fn this_version_writes_the_rows_of_the_fixture() {
    run(async {
        let home = generate().await;
        if std::env::var_os("TEIMOSO_WRITE_FIXTURE").is_some() {
            std::fs::copy(home.database(), fixture()).unwrap();
        }
        assert_eq!(rows(&home.database()), rows(&fixture()));
    });
}

#[test]
fn ids_and_counters_are_what_they_were() {
    run(async {
        let open = opened();
        let first = deliveries(&open, DeliveryState::Scheduled).await.remove(0);
        assert_eq!(first.id.to_string(), FIRST_ID);
        let counts = open.counts().await;
        assert_eq!((counts.accepted, counts.pending, counts.scheduled), (29, 1, 13));
        assert_eq!((counts.delivered, counts.dead, counts.cancelled, counts.in_flight), (1, 12, 2, 0));
    });
}

const FIRST_ID: &str = "dlv_018bcfe5-6800-7001-8612-c2980c942d8d";

#[test]
fn every_reason_fate_and_kind_of_a_dead_letter_is_what_it_was() {
    run(async {
        let open = opened();
        let dead = to(&open, DeliveryState::Dead, "http://dead.example/").await;
        assert_eq!(dead.len(), REASONS.len());
        for (view, (reason, fate, kind)) in dead.iter().zip(REASONS) {
            let record = open.store.attempts(view.id).await.unwrap().remove(0).record;
            assert_eq!((view.reason, record.fate, record.error_kind), (Some(reason), fate, Some(kind)));
        }
    });
}

#[test]
fn every_why_and_every_column_of_an_attempt_is_what_it_was() {
    run(async {
        let open = opened();
        let waiting = to(&open, DeliveryState::Scheduled, "http://wait.example/").await;
        assert_eq!(waiting.len(), WHYS.len());
        for (view, (why, fate, kind)) in waiting.iter().zip(WHYS) {
            let settled_at = Millis::new(START.get() + 37_000);
            assert_eq!(view.next_attempt, Some((settled_at.after(HOUR), why)));
            let record = open.store.attempts(view.id).await.unwrap().remove(0).record;
            assert_eq!((record.fate, record.error_kind, record.started_at), (fate, Some(kind), settled_at));
            assert_eq!((record.status, record.error.as_deref()), (Some(503), Some("answered 503")));
            assert_eq!(record.peer, Some(([127, 0, 0, 1], 4_000).into()));
            assert_eq!(record.wait, Some((Duration::from_secs(5), WaitSource::RetryAfter)));
            assert_eq!((record.number.get(), record.decision), (1, DecisionName::Retry));
            let micros = |n| Some(Duration::from_micros(n));
            let timings = record.timings;
            assert_eq!((timings.dns, timings.connect), (micros(1), micros(2)));
            assert_eq!((timings.tls, timings.first_byte), (micros(3), micros(4)));
            assert_eq!(timings.total, Duration::from_millis(12));
            let response = record.response.unwrap();
            assert_eq!((&*response.headers, &response.body[..]), ("retry-after: 5", &b"no\xff\x00"[..]));
            assert!(response.truncated);
        }
        let done = deliveries(&open, DeliveryState::Delivered).await.remove(0);
        let record = open.store.attempts(done.id).await.unwrap().remove(0).record;
        assert_eq!((record.decision, record.wait, record.response), (DecisionName::Done, None, None));
        let given_up = to(&open, DeliveryState::Dead, "http://dead.example/").await.remove(1);
        let record = open.store.attempts(given_up.id).await.unwrap().remove(0).record;
        assert_eq!(record.decision, DecisionName::GiveUp);
        assert_eq!(record.wait, Some((Duration::from_secs(5), WaitSource::Schedule)));
    });
}

#[test]
fn an_event_has_every_field_it_had_and_both_kinds_of_names_are_known() {
    run(async {
        let open = opened();
        let view = deliveries(&open, DeliveryState::Pending).await.remove(0);
        assert_eq!((&*view.url, view.application.as_str()), ("http://full.example/a?b=c", "loja-2"));
        assert_eq!((view.mode, view.policy.unwrap().as_str()), (Mode::AtMostOnce, "webhook"));
        assert_eq!(view.next_attempt, Some((Millis::new(START.get() + 3_637_000), NextWhy::DeliverAt)));
        open.pass(HOUR);
        let claimed = open.claim(100).await.into_iter().find(|one| one.lease.delivery() == view.id).unwrap();
        let event = &claimed.event;
        assert_eq!((event.content_type.as_str(), &event.payload[..]), ("text/plain", &[0, 255, b'\n'][..]));
        assert_eq!(event.kind.as_ref().unwrap().as_str(), "pedido.pago");
        assert_eq!(event.headers.to_lines(), "x-a: 1: 2\n");
        assert_eq!(&*claimed.lane, "http://full.example/a");

        let repeated = offer("http://full.example/").of("loja-2").key("k-1");
        assert!(open.accept(repeated).await.replayed, "the key");
        let repeated = open.accept(offer("http://nowhere.example/").named("p-1").fingerprint(9)).await;
        assert_eq!((repeated.event, repeated.replayed), (EventId::named("p-1").unwrap(), true));
    });
}

#[test]
fn lanes_wait_as_they_did_and_for_the_same_reason() {
    run(async {
        let open = opened();
        let paused = to(&open, DeliveryState::Scheduled, "http://pause.example/").await.remove(0);
        let until = Millis::new(START.get() + 36_000).after(2 * HOUR);
        assert_eq!(paused.next_attempt, Some((until, NextWhy::LanePaused)));
        let broken = to(&open, DeliveryState::Scheduled, "http://breaker.example/").await.remove(0);
        let until = Millis::new(START.get() + 36_000).after(Duration::from_secs(30));
        assert_eq!((broken.next_attempt, broken.attempts), (Some((until, NextWhy::Breaker)), 10));
        for (column, values) in [("not_before", 2), ("why", 2), ("allowance", 2), ("openings", 1)] {
            let sql = format!("SELECT count(*) FROM lane WHERE {column} > 0");
            assert_eq!(open.home.number(&sql), values, "{column}");
        }
    });
}

#[test]
fn what_was_leased_is_recovered() {
    run(async {
        let open = opened();
        let mut ends = Vec::new();
        for state in [DeliveryState::Dead, DeliveryState::Cancelled] {
            ends.extend(to(&open, state, "http://leased.example/").await);
        }
        let ends: Vec<_> = ends.iter().map(|view| (view.state, view.reason)).collect();
        let ambiguous = (DeliveryState::Dead, Some(DeadReason::Ambiguous));
        assert_eq!(ends, [ambiguous, (DeliveryState::Cancelled, None)]);
        // Replayed dead letters that were in flight: due again, the recovery counted.
        let taken = open.claim(9).await;
        assert_eq!(taken.len(), 2);
        assert!(taken.iter().all(|one| one.progress.recoveries == 1 && one.progress.why == NextWhy::Replay));
        assert!(taken.iter().all(|one| (one.progress.attempts, one.progress.budget_from) == (1, 1)));
    });
}

#[test]
fn replay_jobs_stand_where_they_stood_and_the_running_one_ends() {
    run(async {
        let open = opened();
        let raw = Connection::open(open.home.database()).unwrap();
        let mut jobs =
            raw.prepare("SELECT state, reason, since, until, rate, estimated, done FROM replay").unwrap();
        let job = |row: &rusqlite::Row<'_>| (0..7).map(|column| row.get(column)).collect();
        let jobs: Vec<Vec<Option<i64>>> = jobs.query_map([], job).unwrap().map(|row| row.unwrap()).collect();
        let (start, earlier) = (Some(1_700_000_000_000), Some(1_700_000_036_001));
        assert_eq!(
            jobs,
            [
                vec![Some(1), None, start, start, Some(1), Some(0), Some(0)],
                vec![Some(2), Some(9), start, earlier, Some(1), Some(1), Some(1)],
                vec![Some(0), Some(1), start, earlier, Some(1), Some(1), Some(1)],
            ]
        );
        let before = open.counts().await.dead;
        for _ in 0..3 {
            open.pass(Duration::from_secs(1));
            open.nudge().await;
        }
        assert_eq!(open.counts().await.dead, before);
        let running = "SELECT count(*) FROM replay WHERE state = 0";
        assert_eq!(open.home.number(running), 0);
    });
}
