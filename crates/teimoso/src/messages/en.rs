//! The English catalogue. Deliberately absent: anything but words.

use teimoso_retry::{Fate, GiveUp, WaitSource};

use super::request::milliseconds;
use super::{
    Diagnosing, FailedAttempt, Interrupted, LastWord, Message, Moving, Printable as P, Replaying, Requesting,
    Standing, StoreName,
};
use crate::sink::route::Answer;
use crate::units::human_wait;

#[expect(clippy::too_many_lines, reason = "a catalogue is one table: split, the compiler would miss a line")]
pub(super) fn text(message: &Message<'_>) -> String {
    match *message {
        Message::Ready { url, store } => format!("teimoso: listening on {url}, {}", store_name(store)),
        Message::WorkersReady { store } => format!("teimoso: workers only, {}", store_name(store)),
        Message::SenderUp { url, redis: _ } => format!("sender up, listening on {}", P(url)),
        Message::Draining { in_flight } => {
            format!("draining: {in_flight} attempts in flight; a second signal exits at once")
        }
        Message::Drained => "drained".to_owned(),
        Message::AttemptStarts { number, event, url } => {
            format!("-> attempt {number} of event {} to {}", P(event), P(url))
        }
        Message::Delivered { status } => format!("  delivered! HTTP {status}"),
        Message::DestinationFailed { status } => format!("  HTTP {status}: the destination failed"),
        Message::OurError { status } => format!("  HTTP {status}: our error, repeating is pointless"),
        Message::Redirected { status, location: Some(location) } => {
            format!("  HTTP {status}: redirects to {} are not followed", P(location))
        }
        Message::Redirected { status, location: None } => {
            format!("  HTTP {status}: redirects are not followed")
        }
        Message::ConnectionFailed { reason } => format!("  connection failed: {}", P(reason)),
        Message::Refused { reason, allow_flag } => format!("  not sent: {}{}", P(reason), allow(allow_flag)),
        Message::Scheduled { wait, next, max } => {
            format!("  scheduled in {} (attempt {next} of {max})", human_wait(wait))
        }
        Message::GaveUp { attempts } => {
            format!("  gave up after {attempts} {}", attempts_word(attempts.into()))
        }
        Message::Buried { reason } => format!("  dead: {}", P(reason)),
        Message::LanePaused { lane, until, why } => {
            format!("{} is paused until {until} ({})", P(lane), P(why))
        }
        Message::StoreFailing { sentence } => format!("the store fails, deliveries wait: {}", P(sentence)),
        Message::StoreRecovered => "the store works again".to_owned(),
        Message::LinesLeftOut { attempts } => format!("({attempts} more attempts without a line)"),
        Message::SinkReady { url } => format!("sink: listening on {url}"),
        Message::SinkRequest { method, path, webhook_id, attempt, answer } => {
            sink_request(method, path, webhook_id, attempt, answer)
        }
        Message::SinkStopped { count } => format!("sink: {count} requests received"),
        Message::Waiting { delivery, state, attempts, max, next } => {
            format!("{}: {}, {attempts} of {max} attempts made{}", P(delivery), P(state), due(next))
        }
        Message::Settled { delivery, standing, attempts } => {
            let word = attempts_word(attempts);
            format!("{}: {} after {attempts} {word}", P(delivery), standing_text(standing))
        }
        Message::ServerAway => "the server is out of reach; still waiting".to_owned(),
        Message::ServerBack => "the server is back".to_owned(),
        Message::StoredOnly { directory } => {
            format!("stored; it is delivered once `teimoso serve --store {}` runs", P(directory))
        }
        Message::DeliveryGoesOn { event } => {
            format!(
                "no longer waiting; the event is safe: `teimoso events show {}` tells how it stands",
                P(event)
            )
        }
        Message::MayBeAccepted => {
            "interrupted: what was not answered may have been accepted, `teimoso events list` tells"
                .to_owned()
        }
        Message::NoDeliveries => "accepted, but no endpoint wants it: nothing is delivered".to_owned(),
        Message::BatchProgress { accepted, failed } => format!("{accepted} accepted, {failed} refused"),
        Message::LineRefused { line, reason } => format!("line {line}: {}", P(reason)),
        Message::Replay(replay) => replaying(replay),
        Message::Doctor(doctor) => diagnosing(doctor),
        Message::Migrate(step) => moving(step),
        Message::Request(request) => requesting(request),
        Message::Forgejo(line) => line.text(super::Language::English),
        Message::Whatsapp(line) => line.text(super::Language::English),
        Message::AskToProceed => "proceed? [y/N] ".to_owned(),
        Message::NothingDone => "nothing was done".to_owned(),
        Message::BulkProgress { done, of, failed } => format!("{done} of {of} done, {failed} failed"),
        Message::ItemFailed { id, reason } => format!("{}: {}", P(id), P(reason)),
        Message::NothingToShow => "nothing to show".to_owned(),
        Message::MoreToShow { shown } => format!("{shown} shown, there are more: raise --limit"),
    }
}

fn store_name(store: StoreName<'_>) -> String {
    match store {
        StoreName::Embedded(directory) => format!("store embedded at {directory}"),
        StoreName::Memory => "store in memory".to_owned(),
        StoreName::Redis { found, durability } => {
            format!("store redis at {}, durability {durability}", P(found))
        }
    }
}

fn allow(flag: Option<&str>) -> String {
    flag.map_or_else(String::new, |flag| format!(" (allow it with {flag})"))
}

fn replaying(replay: Replaying<'_>) -> String {
    match replay {
        Replaying::Plan { count, ambiguous: 0 } => replay_plan(count),
        Replaying::Plan { count, ambiguous } => format!(
            "{}; {ambiguous} ambiguous left out (a repeat might double the effect: name them by id or \
             --reason ambiguous)",
            replay_plan(count)
        ),
        Replaying::Progress { done, of, failed } => format!("{done} of about {of} replayed, {failed} failed"),
        Replaying::Ended { cancelled: false, done, failed } => {
            format!("replay finished: {done} replayed, {failed} failed")
        }
        Replaying::Ended { cancelled: true, done, failed } => {
            format!("replay cancelled: {done} replayed, {failed} failed")
        }
        Replaying::GoesOn { job, directory: None } => format!(
            "the replay goes on without this command; stop it with `teimoso dead replay --cancel {}`",
            P(job)
        ),
        Replaying::GoesOn { job, directory: Some(directory) } => format!(
            "the replay goes on once `teimoso serve --store {0}` runs; stop it with \
             `teimoso dead replay --cancel {1} --store {0}`",
            P(directory),
            P(job)
        ),
    }
}

fn diagnosing(diagnosing: Diagnosing) -> String {
    match diagnosing {
        Diagnosing::Looked { done, of } => format!("{done} of about {of} deliveries looked at"),
        Diagnosing::NotCounted => {
            "the counters were not compared: too much moves; look again when there is less to do".to_owned()
        }
        Diagnosing::Sound => "nothing is wrong".to_owned(),
        Diagnosing::Found { found, healing: false, .. } => {
            format!("{found} {} wrong; --heal puts right what can be put right", things_are(found))
        }
        Diagnosing::Found { found, healed, healing: true } => {
            format!("{found} {} wrong, {healed} put right", things_were(found))
        }
    }
}

fn things_are(count: u64) -> &'static str {
    if count == 1 { "thing is" } else { "things are" }
}

fn things_were(count: u64) -> &'static str {
    if count == 1 { "thing was" } else { "things were" }
}

fn moving(moving: Moving<'_>) -> String {
    match moving {
        Moving::Listening { seconds } => format!("making sure that no server is at work: {seconds} s"),
        Moving::Leases { in_flight } => {
            format!("waiting for the leases of a server that is gone: {in_flight} in flight")
        }
        Moving::Carried { done, of } => format!("{done} of {of} deliveries moved"),
        Moving::Counted { done, of } => format!("{done} of {of} deliveries counted in the target"),
        Moving::Done { from } => format!(
            "everything has moved; {} still has all of it: do not start a server on it, or all of it is delivered twice",
            P(from)
        ),
    }
}

fn requesting(request: Requesting<'_>) -> String {
    match request {
        Requesting::Retry { attempt, wait, source } => {
            let by = match source {
                WaitSource::Schedule => "",
                WaitSource::RetryAfter => " (Retry-After)",
            };
            format!("{} — retry in {}ms{by}", failed(attempt), milliseconds(wait))
        }
        Requesting::GaveUp { attempt, why } => format!("{} — {}", failed(attempt), gave_up(why)),
        Requesting::Ended { word, attempts, reason, key } => ended(word, attempts, reason, key),
        Requesting::NotFollowed { status, followed } => {
            format!("HTTP {status}: not followed, after {followed} that were")
        }
        Requesting::Interrupted { when, number, effective, tainted, key } => {
            let known = match (when, effective, tainted) {
                (Interrupted::During, true, _) => "the request may have taken effect",
                (Interrupted::Before, true, true) => "an earlier attempt may have taken effect",
                (Interrupted::Before, true, false) => "nothing has taken effect",
                (_, false, _) => "its method asks for no effect",
            };
            let unknown = effective && (tainted || when == Interrupted::During);
            let when = match when {
                Interrupted::During => "during",
                Interrupted::Before => "in the wait before",
            };
            let look = if unknown { look_first(key) } else { String::new() };
            format!("teimoso: interrupted {when} attempt {number}: {known}{look}")
        }
    }
}

fn failed(attempt: FailedAttempt<'_>) -> String {
    let FailedAttempt { tag, method, path, number, max, .. } = attempt;
    let what = what(attempt);
    format!("[{tag}] {} {} failed (attempt {number}/{max}): {what}", P(method), P(path))
}

fn what(attempt: FailedAttempt<'_>) -> String {
    let reason = attempt.reason.map_or_else(String::new, |reason| format!(": failed to {}", P(reason)));
    let status = attempt.status.map_or_else(String::new, |status| format!("HTTP {status}"));
    match attempt.fate {
        Fate::NeverSent(_) => format!("not sent{reason}"),
        Fate::NotProcessed(_) => format!("declined by the peer{reason}"),
        Fate::Answered if attempt.may_have_taken_effect => {
            format!("{status}, which may have taken effect{reason}")
        }
        Fate::Answered => format!("{status}{reason}"),
        Fate::BodyLost => format!("{status}, its body was lost{reason}"),
        Fate::Ambiguous(_) if attempt.may_have_taken_effect => format!("may have taken effect{reason}"),
        Fate::Ambiguous(_) => format!("no response{reason}"),
        Fate::Refused(_) => format!("not sent, refused{reason}"),
    }
}

fn gave_up(why: GiveUp) -> &'static str {
    match why {
        GiveUp::AttemptsExhausted | GiveUp::BudgetExhausted => "no retries left",
        GiveUp::DeadlineExceeded => "no time left",
        GiveUp::RetryAfterBeyondCap => "the peer asks for a longer wait than the policy allows",
        GiveUp::Ambiguous | GiveUp::NotReplaySafe => {
            "not repeated: not safe to send twice unless marked (--idempotent)"
        }
        GiveUp::TlsCertificate => "not repeated: the certificate would be the same",
        GiveUp::PermanentStatus | GiveUp::Redirect | GiveUp::EndpointGone | GiveUp::Refused(_) => {
            "repeating is pointless"
        }
    }
}

fn ended(word: LastWord, attempts: u32, reason: Option<&str>, key: Option<&str>) -> String {
    let reason = reason.map_or_else(String::new, |reason| format!(": failed to {}", P(reason)));
    let made = format!("after {attempts} {}", attempts_word(attempts.into()));
    match word {
        LastWord::Unknown => format!(
            "teimoso: outcome unknown {made}: the request may have taken effect, and no whole response came{reason}{}",
            look_first(key)
        ),
        LastWord::RanOut => format!("teimoso: gave up {made}; nothing has taken effect{reason}"),
        LastWord::Failed => format!("teimoso: failed {made}; nothing has taken effect{reason}"),
    }
}

fn look_first(key: Option<&str>) -> String {
    match key {
        None => "\n  look at the other side before you send it again".to_owned(),
        Some(key) => format!(
            "\n  where keys are honoured it is safe to send it again with --idempotency-key {}",
            P(key)
        ),
    }
}

fn due(next: Option<(&str, &str)>) -> String {
    next.map_or_else(String::new, |(at, why)| format!(", next at {} ({})", P(at), P(why)))
}

fn replay_plan(count: u64) -> String {
    if count == 1 {
        "1 dead delivery to replay".to_owned()
    } else {
        format!("{count} dead deliveries to replay")
    }
}

fn attempts_word(attempts: u64) -> &'static str {
    if attempts == 1 { "attempt" } else { "attempts" }
}

fn standing_text(standing: Standing<'_>) -> String {
    match standing {
        Standing::Delivered(Some(status)) => format!("delivered (HTTP {status})"),
        Standing::Delivered(None) => "delivered".to_owned(),
        Standing::Dead(reason) => format!("dead ({})", P(reason)),
        Standing::Cancelled => "cancelled".to_owned(),
    }
}

fn sink_request(method: &str, path: &str, id: Option<&str>, attempt: Option<u64>, answer: Answer) -> String {
    let id = id.map_or_else(String::new, |id| format!(" {}", P(id)));
    let attempt = attempt.map_or_else(String::new, |number| format!(" attempt {number}"));
    format!("{method} {}{id}{attempt} -> {}", P(path), answer_text(answer))
}

fn answer_text(answer: Answer) -> String {
    match answer {
        Answer::Status(code) => code.to_string(),
        Answer::Redirect => "302 to /ok".to_owned(),
        Answer::Unavailable { retry_after_seconds } => format!("503, retry after {retry_after_seconds} s"),
        Answer::Late(wait) => format!("200 in {} ms", wait.as_millis()),
        Answer::Cut => "200, body cut".to_owned(),
        Answer::Hang => "no answer".to_owned(),
        Answer::Reset => "connection reset".to_owned(),
    }
}
