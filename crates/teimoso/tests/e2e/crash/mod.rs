//! Crash proof: the real process is killed at random moments while events are accepted, delivered, retried and
//! buried, and started again on the same store. At the end every acknowledged event is accounted for.
//!
//! `TEIMOSO_CRASH_ROUNDS=200` kills more often; `TEIMOSO_CRASH_SEED` repeats a run as far as the machine lets it.

mod account;
mod produce;

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use jiff::Timestamp;
use teimoso::clock::wall_now;
use teimoso::sink::record::Record;

use crate::support::api::Counts;
use crate::support::process::{Serving, serve};
use crate::support::{directory, telling_sink, until};
use account::{Account, Kill};
use produce::Producers;
use serde_json::Value;

const ROUNDS: u64 = 6;
/// A life between its ready line and its end, in milliseconds.
const LIFE_MS: std::ops::Range<u64> = 300..1_300;

fn number_from(variable: &str) -> Option<u64> {
    std::env::var(variable).ok().map(|text| text.parse().expect("a number"))
}

#[test]
fn g2_kill_minus_nine_at_random_moments_loses_no_acknowledged_event() {
    let rounds = number_from("TEIMOSO_CRASH_ROUNDS").unwrap_or(ROUNDS);
    let now = || Some(wall_now().as_microsecond().cast_unsigned());
    let seed = number_from("TEIMOSO_CRASH_SEED").or_else(now).expect("a seed");
    eprintln!("TEIMOSO_CRASH_SEED={seed} TEIMOSO_CRASH_ROUNDS={rounds}");
    let mut random = fastrand::Rng::with_seed(seed);

    let (told, mut heard) = tokio::sync::mpsc::channel::<Arc<Record>>(1_024);
    let (arrived, arrivals) = channel();
    let listening = std::thread::spawn(move || {
        while let Some(record) = heard.blocking_recv() {
            arrived.send(record).expect("the test listens");
        }
    });
    let sink = telling_sink(told);
    let directory = directory();
    let producers = Producers::start(&sink, &mut random);
    let mut kills = Vec::new();
    for round in 0..rounds {
        let serving = serve(directory.path()).args(&["--attempt-lines", "off"]).run();
        conserved(&serving);
        producers.send_to(Some(serving.api));
        std::thread::sleep(Duration::from_millis(random.u64(LIFE_MS)));
        let begin = wall_now();
        serving.kill();
        producers.send_to(None);
        kills.push(Kill { begin, end: wall_now() });
        eprintln!("{round}: killed at {}", kills[kills.len() - 1].begin);
    }
    let serving = serve(directory.path()).args(&["--attempt-lines", "off"]).run();
    producers.send_to(Some(serving.api));
    let acknowledged = producers.stop();
    let (at_rest, deliveries) = settled(&serving);
    let account = Account { acknowledged, kills, deliveries };
    account.the_counters_agree(&at_rest);
    account.the_same_keys_are_the_same_events(serving.api);
    serving.stop();
    sink.stop();
    listening.join().expect("no panic");
    account.every_event_is_where_it_belongs(arrivals.into_iter().collect());
    // The store as it was left is sound, too.
    conserved(&serve(directory.path()).run());
}

fn conserved(serving: &Serving) {
    serving.api.counts().assert_conserved();
}

/// Waits until only what can never be delivered is left, and none of that is being attempted. The listing is
/// judged row by row: a counter read before it may be of a moment at which a row was elsewhere.
fn settled(serving: &Serving) -> (Counts, Vec<Value>) {
    until("everything else is settled", || {
        let counts = serving.api.counts();
        counts.assert_conserved();
        if counts.pending + counts.in_flight > 0 {
            return None;
        }
        let listed = serving.api.deliveries("");
        let (open, ended): (Vec<Value>, Vec<Value>) = listed
            .into_iter()
            .partition(|delivery| !["delivered", "dead"].contains(&delivery["state"].as_str().unwrap_or("")));
        let waiting = open.iter().all(|delivery| delivery["state"] == "scheduled");
        (waiting && produce::only_hopeless(&open)).then(|| (counts, [open, ended].concat()))
    })
}

/// An instant as messages show it.
fn shown(at: Timestamp) -> String {
    at.strftime("%H:%M:%S%.6f").to_string()
}
