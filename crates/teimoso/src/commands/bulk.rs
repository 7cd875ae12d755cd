//! The same change made to many deliveries, one by one. Deliberately absent: choosing them.

use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::json;

use super::Context;
use super::deliveries::path;
use crate::api_client::{ApiClient, ApiError};
use crate::clock;
use crate::exit::{CliError, Exit};
use crate::messages::Message;

/// How often a long change says how it stands.
const PROGRESS_EVERY: Duration = Duration::from_secs(5);

/// What is done to each delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Change {
    /// `POST …/retry`.
    Retry,
    /// The same, of deliveries that were delivered, too.
    RetryDelivered,
    /// `POST …/cancel`.
    Cancel,
}

impl Change {
    fn verb(self) -> &'static str {
        match self {
            Change::Retry | Change::RetryDelivered => "retry",
            Change::Cancel => "cancel",
        }
    }

    fn body(self) -> Bytes {
        match self {
            Change::RetryDelivered => Bytes::from_static(b"{\"explicit\":true}"),
            Change::Retry | Change::Cancel => Bytes::from_static(b"{}"),
        }
    }
}

/// Makes the change to each id in turn, at most `rate` per second, and prints each id that took it.
///
/// A problem with one delivery does not stop the others; a server that is gone stops everything.
///
/// # Errors
/// The only delivery's problem; a server that cannot be reached or gave no answer; stdout that cannot be written.
pub(super) async fn apply(
    client: &mut ApiClient,
    change: Change,
    ids: &[String],
    rate: Option<NonZeroU32>,
    json: bool,
    context: Context,
) -> Result<Exit, CliError> {
    let mut failed = 0;
    let mut pace = Pace::new(rate, clock::monotonic_now());
    let mut told = clock::monotonic_now();
    for (tried, id) in ids.iter().enumerate() {
        clock::pause(pace.wait(clock::monotonic_now())).await;
        let outcome = client.post(&format!("{}/{}", path(id), change.verb()), change.body()).await;
        match outcome {
            Ok(_) => {}
            Err(ApiError::Problem(_)) => failed += 1,
            Err(gone) => return Err(stopped(gone.into(), tried, ids.len())),
        }
        tell(id, outcome.err(), json, ids.len() == 1, context)?;
        if told.elapsed() >= PROGRESS_EVERY {
            told = clock::monotonic_now();
            context.output.say(&standing(tried + 1, ids.len(), failed));
        }
    }
    if ids.len() > 1 {
        context.output.say(&standing(ids.len(), ids.len(), failed));
    }
    Ok(Exit::of_many(ids.len(), failed))
}

fn tell(
    id: &str,
    problem: Option<ApiError>,
    json: bool,
    only: bool,
    context: Context,
) -> Result<(), CliError> {
    let problem = problem.map(CliError::from);
    if json {
        let error = problem.as_ref().map(|problem| &problem.sentence);
        context.output.data(&format!("{}\n", json!({"id": id, "ok": error.is_none(), "error": error})))?;
    }
    match problem {
        Some(problem) if only => Err(problem),
        Some(problem) => {
            context.output.say(&Message::ItemFailed { id, reason: &problem.sentence });
            Ok(())
        }
        None if json => Ok(()),
        None => context.output.data(&format!("{id}\n")),
    }
}

/// How a change stands: what failed was not done.
fn standing(tried: usize, of: usize, failed: usize) -> Message<'static> {
    Message::BulkProgress { done: tried - failed, of, failed }
}

fn stopped(mut error: CliError, done: usize, of: usize) -> CliError {
    if of > 1 {
        error.sentence = format!("{} (after {done} of {of})", error.sentence);
    }
    if done > 0 {
        error.code = Exit::PARTLY_FAILED;
    }
    error
}

/// Spreads changes evenly: the n-th is not made before n / rate seconds have passed.
struct Pace {
    rate: Option<NonZeroU32>,
    started: Instant,
    made: u64,
}

impl Pace {
    fn new(rate: Option<NonZeroU32>, started: Instant) -> Pace {
        Pace { rate, started, made: 0 }
    }

    /// How long to wait before the next change.
    fn wait(&mut self, now: Instant) -> Duration {
        let Some(rate) = self.rate else { return Duration::ZERO };
        let due = Duration::from_micros(self.made.saturating_mul(1_000_000) / u64::from(rate.get()));
        self.made += 1;
        due.saturating_sub(now.saturating_duration_since(self.started))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Language;

    #[test]
    fn a_rate_spreads_the_changes_evenly() {
        let started = clock::monotonic_now();
        let mut pace = Pace::new(NonZeroU32::new(4), started);
        let waits: Vec<_> = (0..3).map(|_| pace.wait(started).as_millis()).collect();
        assert_eq!(waits, [0, 250, 500]);
        assert_eq!(pace.wait(started + Duration::from_millis(700)).as_millis(), 50);
        assert_eq!(pace.wait(started + Duration::from_secs(9)).as_millis(), 0);
    }

    #[test]
    fn what_failed_does_not_count_as_done() {
        let said = |tried, failed| standing(tried, 5, failed).text(Language::English);
        assert_eq!(said(2, 1), "1 of 5 done, 1 failed");
        assert_eq!(said(5, 0), "5 of 5 done, 0 failed");
        assert_eq!(said(5, 5), "0 of 5 done, 5 failed");
    }

    #[test]
    fn without_a_rate_nothing_waits() {
        let started = clock::monotonic_now();
        assert_eq!(Pace::new(None, started).wait(started), Duration::ZERO);
    }

    #[test]
    fn a_lost_server_says_how_far_it_got() {
        let error = stopped(CliError::failure("no server"), 3, 10);
        assert_eq!((error.sentence.as_str(), error.code), ("no server (after 3 of 10)", Exit::PARTLY_FAILED));
        assert_eq!(stopped(CliError::failure("no server"), 0, 1), CliError::failure("no server"));
    }
}
