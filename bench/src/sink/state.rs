//! What the sink remembers: counts, the first and the last arrival, and latencies where a stamp says from when.

use std::collections::HashMap;
use std::time::Instant;

use serde::{Deserialize, Serialize};

use crate::{event, stats};

/// What the sink counted; times in microseconds since the epoch, zero when there were none.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// Answered requests.
    pub requests: u64,
    /// Those answered 200.
    pub ok: u64,
    /// Requests that get no answer.
    pub hanging: u64,
    /// The first arrival of an answered request.
    pub first: u64,
    /// The last one.
    pub last: u64,
    /// The last that was answered 200.
    pub last_ok: u64,
    /// How many latencies the percentiles are of.
    pub stamped: u64,
    /// Latencies in microseconds: p50, p90, p99, p99.9 and the greatest.
    pub latency: [u64; 5],
}

impl Report {
    /// Requests per second from the first to the last arrival.
    pub fn rate(&self) -> f64 {
        let seconds = self.last.saturating_sub(self.first) as f64 / 1e6;
        if seconds > 0.0 { self.requests.saturating_sub(1) as f64 / seconds } else { 0.0 }
    }
}

/// What is remembered.
#[derive(Debug)]
pub(super) struct State {
    began: Instant,
    began_micros: u64,
    requests: u64,
    ok: u64,
    hanging: u64,
    first: Option<Instant>,
    last: Option<Instant>,
    last_ok: Option<Instant>,
    /// Stamp and latency.
    stamps: Vec<(u64, u64)>,
    tries: HashMap<Box<[u8]>, u8>,
}

impl State {
    /// Nothing yet; one instant on both clocks ties them together.
    pub(super) fn new(began: Instant, began_micros: u64) -> Self {
        Self {
            began,
            began_micros,
            requests: 0,
            ok: 0,
            hanging: 0,
            first: None,
            last: None,
            last_ok: None,
            stamps: Vec::new(),
            tries: HashMap::new(),
        }
    }

    pub(super) fn count(&mut self, now: Instant, ok: bool) {
        self.requests += 1;
        self.first = self.first.or(Some(now));
        self.last = Some(now);
        if ok {
            self.ok += 1;
            self.last_ok = Some(now);
        }
    }

    pub(super) fn hang(&mut self) {
        self.hanging += 1;
    }

    pub(super) fn third_time(&mut self, id: &[u8]) -> bool {
        let tries = self.tries.entry(id.into()).or_default();
        *tries = tries.saturating_add(1);
        *tries >= 3
    }

    pub(super) fn keep_stamp(&mut self, body: &[u8], now: Instant) {
        if let Some(stamp) = event::stamp(body) {
            self.stamps.push((stamp, self.micros(now).saturating_sub(stamp)));
        }
    }

    fn micros(&self, at: Instant) -> u64 {
        let since = at.saturating_duration_since(self.began).as_micros();
        self.began_micros.saturating_add(u64::try_from(since).unwrap_or(u64::MAX))
    }

    /// As JSON, with the latencies of stamps from `after` on.
    pub(super) fn report(&self, after: u64) -> String {
        let late_enough = self.stamps.iter().filter(|(stamp, _)| *stamp >= after);
        let mut latencies: Vec<u64> = late_enough.map(|(_, latency)| *latency).collect();
        latencies.sort_unstable();
        let micros = |at: Option<Instant>| at.map_or(0, |at| self.micros(at));
        let report = Report {
            requests: self.requests,
            ok: self.ok,
            hanging: self.hanging,
            first: micros(self.first),
            last: micros(self.last),
            last_ok: micros(self.last_ok),
            stamped: latencies.len() as u64,
            latency: [500, 900, 990, 999, 1_000].map(|rank| stats::percentile(&latencies, rank)),
        };
        // Numbers alone: writing them cannot fail.
        serde_json::to_string(&report).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn latencies_before_the_warm_up_are_left_out() {
        let began = crate::clock::now();
        let mut state = State::new(began, 1_000_000);
        state.keep_stamp(br#""at":"0000000001000000""#, began + Duration::from_micros(900));
        state.keep_stamp(br#""at":"0000000001002000""#, began + Duration::from_micros(2_030));
        let report: Report = serde_json::from_str(&state.report(1_001_000)).unwrap();
        assert_eq!((report.stamped, report.latency), (1, [30; 5]));
    }

    #[test]
    fn a_rate_counts_intervals_not_requests() {
        let report = Report { requests: 3, first: 1_000_000, last: 2_000_000, ..Report::default() };
        assert_eq!(report.rate(), 2.0);
        assert_eq!(Report::default().rate(), 0.0);
    }
}
