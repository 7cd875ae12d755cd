//! Requests that nothing asked for, each held against what struck its sender.
//!
//! A request is *asked for* when the one before it was not answered for good and has the number before. Any other is
//! a repetition, and is explained by the process behind it: it was killed, stopped or cut off from Redis beyond its
//! lease while the request, or its settlement, was on the way; or the process behind the later one was late, and sent
//! what its lease no longer covered. A short stop, a lost connection to Redis, and a Redis that dies and comes back
//! explain nothing: leases outlast them, and settlements wait.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::design::ATTEMPT;
use crate::havoc::{Kind, Strike};
use crate::world::receiver::{Answer, Arrival};

/// From a request's answer until its settlement is in Redis, at most, on a busy machine.
const UNSETTLED: Duration = Duration::from_secs(1);
/// The same when Redis, or the connection to it, was struck meanwhile: until everybody has found the way back.
const AFTER_REDIS: Duration = Duration::from_secs(2);
/// Whoever was away acts on what it knew for so long: until it has renewed its leases, and heard that they are gone.
const CATCHES_UP: Duration = Duration::from_secs(12);

/// The repetitions of a storm.
#[derive(Debug, Default)]
pub struct Repeats {
    /// By what explains them.
    pub explained: BTreeMap<Kind, u64>,
    /// What nothing explains, each a sentence.
    pub unexplained: Vec<String>,
    /// Requests that were on the way, or not settled, when their sender was struck: no more can be repeated.
    pub struck: u64,
}

impl Repeats {
    /// Of arrivals in their order.
    pub fn of(arrivals: &[Arrival], strikes: &[Strike]) -> Self {
        let mut repeats = Self::default();
        let mut by_number: BTreeMap<u64, Vec<&Arrival>> = BTreeMap::new();
        for arrival in arrivals {
            by_number.entry(arrival.number).or_default().push(arrival);
            repeats.struck += u64::from(struck(arrival, strikes).is_some());
        }
        for requests in by_number.values() {
            for pair in requests.windows(2) {
                repeats.judge(pair[0], pair[1], strikes);
            }
        }
        repeats
    }

    /// How many there are.
    pub fn count(&self) -> u64 {
        self.explained.values().sum::<u64>() + self.unexplained.len() as u64
    }

    fn judge(&mut self, before: &Arrival, again: &Arrival, strikes: &[Strike]) {
        // Who was gone before anybody looked has heard no answer.
        let asks_for_more = !before.answer.is_final() || before.by.is_none();
        if asks_for_more && again.attempt == before.attempt + 1 {
            return;
        }
        match struck(before, strikes).or_else(|| late(again, strikes)) {
            Some(kind) => *self.explained.entry(kind).or_default() += 1,
            None => {
                self.unexplained.push(told(before, again, strikes));
            }
        }
    }
}

/// A repetition that nothing explains, with what struck either sender.
fn told(before: &Arrival, again: &Arrival, strikes: &[Strike]) -> String {
    let seconds = |at: Instant| match at.checked_duration_since(before.at) {
        Some(after) => format!("{:+.3} s", after.as_secs_f64()),
        None => format!("-{:.3} s", before.at.saturating_duration_since(at).as_secs_f64()),
    };
    let of_either = strikes.iter().filter(|strike| {
        strike.whom.is_none_or(|whom| [before.by, again.by].contains(&Some(whom)))
            && strike.begin <= again.at
            && before.at <= strike.end + UNSETTLED
    });
    let struck: Vec<String> = of_either
        .map(|strike| {
            let (begin, end) = (seconds(strike.begin), seconds(strike.end));
            format!("{} {:?} from {begin} to {end}", strike.kind.label(), strike.whom)
        })
        .collect();
    format!(
        "event {}: attempt {} by process {:?} got {:?}; {} came attempt {} by process {:?}; {}",
        before.number,
        before.attempt,
        before.by,
        before.answer,
        seconds(again.at),
        again.attempt,
        again.by,
        struck.join(", ")
    )
}

/// What struck this request's sender while it, or its settlement, was on the way.
fn struck(arrival: &Arrival, strikes: &[Strike]) -> Option<Kind> {
    let by_it = |strike: &&Strike| is_of(strike, arrival) && spans(strike, arrival, strikes);
    strikes.iter().find(by_it).map(|strike| strike.kind)
}

/// Who was gone before anybody looked was killed.
fn is_of(strike: &Strike, arrival: &Arrival) -> bool {
    match strike.kind {
        Kind::KillSender => arrival.by.is_none_or(|by| Some(by) == strike.whom),
        Kind::Stop | Kind::Hole => arrival.by.is_some() && arrival.by == strike.whom,
        Kind::KillRedis | Kind::CutOne | Kind::CutAll | Kind::StopShortly => false,
    }
}

fn spans(strike: &Strike, arrival: &Arrival, strikes: &[Strike]) -> bool {
    // The dead send nothing: whatever is read of theirs after their death was on the way.
    let sent_by_then = strike.kind == Kind::KillSender || arrival.at <= strike.end + CATCHES_UP;
    sent_by_then && strike.begin <= settled_by(arrival, strikes)
}

/// When this request's settlement was in Redis at the latest, had nothing struck its sender.
fn settled_by(arrival: &Arrival, strikes: &[Strike]) -> Instant {
    let answer = if arrival.answer == Answer::Hang { ATTEMPT } else { Duration::ZERO };
    let usual = arrival.at + answer + UNSETTLED;
    let of_redis = |strike: &&Strike| {
        let kind = matches!(strike.kind, Kind::KillRedis | Kind::CutOne | Kind::CutAll);
        kind && arrival.at <= strike.end && strike.begin <= usual
    };
    let held_up = strikes.iter().filter(of_redis).map(|strike| strike.end + AFTER_REDIS);
    held_up.max().map_or(usual, |held_up| held_up.max(usual))
}

/// What made this request's sender late.
fn late(arrival: &Arrival, strikes: &[Strike]) -> Option<Kind> {
    let late = |strike: &&Strike| {
        let outlasted_a_lease = matches!(strike.kind, Kind::Stop | Kind::Hole);
        outlasted_a_lease
            && is_of(strike, arrival)
            && strike.begin <= arrival.at
            && arrival.at <= strike.end + CATCHES_UP
    };
    strikes.iter().find(late).map(|strike| strike.kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock;

    fn arrival(begin: Instant, second: u64, attempt: u32, by: u32, answer: Answer) -> Arrival {
        let at = begin + Duration::from_secs(second);
        Arrival { number: 7, attempt, at, by: Some(by), answer, intact: true }
    }

    fn strike(begin: Instant, from: u64, to: u64, kind: Kind, whom: u32) -> Strike {
        let at = |second| begin + Duration::from_secs(second);
        Strike { kind, begin: at(from), end: at(to), whom: Some(whom) }
    }

    #[test]
    fn what_an_answer_asks_for_is_no_repetition() {
        let begin = clock::now();
        let asked = [
            arrival(begin, 0, 1, 1, Answer::Unavailable),
            arrival(begin, 2, 2, 1, Answer::Hang),
            arrival(begin, 9, 3, 2, Answer::Ok),
        ];
        let repeats = Repeats::of(&asked, &[]);
        assert_eq!((repeats.count(), repeats.struck), (0, 0));
    }

    #[test]
    fn a_repetition_is_explained_by_what_struck_its_sender_and_by_nobody_elses_death() {
        let begin = clock::now();
        let twice = [arrival(begin, 10, 1, 1, Answer::Ok), arrival(begin, 41, 1, 2, Answer::Ok)];
        let count = |strike| Repeats::of(&twice, &[strike]).explained.values().sum::<u64>();
        assert_eq!(count(strike(begin, 11, 11, Kind::KillSender, 1)), 1);
        assert_eq!(count(strike(begin, 11, 45, Kind::Stop, 1)), 1);
        assert_eq!(count(strike(begin, 11, 11, Kind::KillSender, 2)), 0);
        // Long settled when it died.
        assert_eq!(count(strike(begin, 30, 30, Kind::KillSender, 1)), 0);
        // Leases outlast these.
        assert_eq!(count(strike(begin, 9, 12, Kind::KillRedis, 1)), 0);
        assert_eq!(count(strike(begin, 10, 10, Kind::StopShortly, 1)), 0);
    }

    #[test]
    fn a_settlement_that_had_to_wait_for_redis_is_still_on_the_way() {
        let begin = clock::now();
        let twice = [arrival(begin, 10, 1, 1, Answer::Ok), arrival(begin, 41, 1, 2, Answer::Ok)];
        let killed = strike(begin, 13, 13, Kind::KillSender, 1);
        assert_eq!(Repeats::of(&twice, &[killed]).unexplained.len(), 1);
        let outage = strike(begin, 10, 12, Kind::KillRedis, 0);
        assert_eq!(Repeats::of(&twice, &[outage, killed]).explained, BTreeMap::from([(Kind::KillSender, 1)]));
    }

    #[test]
    fn a_late_sender_explains_what_it_sent_late() {
        let begin = clock::now();
        let twice = [arrival(begin, 40, 1, 2, Answer::Ok), arrival(begin, 46, 1, 1, Answer::Ok)];
        let repeats = Repeats::of(&twice, &[strike(begin, 11, 45, Kind::Stop, 1)]);
        assert_eq!(repeats.explained, BTreeMap::from([(Kind::Stop, 1)]));
        assert_eq!(Repeats::of(&twice, &[]).unexplained.len(), 1);
    }
}
