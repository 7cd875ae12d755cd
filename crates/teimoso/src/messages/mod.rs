//! Every line a person reads while the product works, as data; one catalogue per language turns it into words.
//! Deliberately absent: help, logs, JSON and API errors, which stay English; and any decision about what to print.
//!
//! The Portuguese attempt lines are given letter for letter by S2.14, without accents; the other Portuguese lines
//! keep that spelling, so that one screen speaks one way.

mod en;
mod forgejo;
mod pt_br;
mod request;
mod store;
mod whatsapp;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::sink::route::Answer;

pub use forgejo::{Forgejo, ForgejoWord, next_step};
pub use request::{FailedAttempt, Interrupted, LastWord, Requesting};
pub use store::{Diagnosing, Moving};
pub use whatsapp::Whatsapp;

/// A language of the human lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Language {
    /// English.
    #[default]
    English,
    /// Brazilian Portuguese.
    Portuguese,
}

impl Language {
    /// The language the environment asks for: the first of `TEIMOSO_LANG`, `LC_ALL`, `LC_MESSAGES` and `LANG` that
    /// is set and not empty; whatever starts with `pt` is Portuguese, all else English.
    #[must_use]
    pub fn from_environment(lookup: impl Fn(&str) -> Option<String>) -> Language {
        ["TEIMOSO_LANG", "LC_ALL", "LC_MESSAGES", "LANG"]
            .into_iter()
            .find_map(|name| lookup(name).filter(|value| !value.is_empty()))
            .map_or(Language::English, |value| Language::of_locale(&value))
    }

    fn of_locale(locale: &str) -> Language {
        match locale.get(..2) {
            Some(start) if start.eq_ignore_ascii_case("pt") => Language::Portuguese,
            _ => Language::English,
        }
    }
}

impl FromStr for Language {
    type Err = String;

    fn from_str(text: &str) -> Result<Language, String> {
        match text.to_ascii_lowercase().as_str() {
            "en" => Ok(Language::English),
            "pt-br" | "pt_br" | "pt" => Ok(Language::Portuguese),
            _ => Err("the languages are en and pt-BR".to_owned()),
        }
    }
}

/// Which store is meant, for the lines that name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreName<'a> {
    /// The embedded store in this directory.
    Embedded(&'a str),
    /// The store that ends with the process.
    Memory,
    /// A Redis.
    Redis {
        /// Its URL without credentials, and what was found there.
        found: &'a str,
        /// How far an event must have come before it is answered.
        durability: &'a str,
    },
}

/// What a delivery came to, for `send --wait`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing<'a> {
    /// Delivered, with the last status.
    Delivered(Option<u16>),
    /// Dead, with its reason.
    Dead(&'a str),
    /// Cancelled.
    Cancelled,
}

/// How a replay goes, from the plan to the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Replaying<'a> {
    /// What a bulk replay is about to do.
    Plan {
        /// How many deliveries.
        count: u64,
        /// How many were left out because a repeat might double their effect.
        ambiguous: u64,
    },
    /// How a replay job stands.
    Progress {
        /// Replayed so far.
        done: u64,
        /// How many there were when it began.
        of: u64,
        /// Failed so far.
        failed: u64,
    },
    /// A replay job is over.
    Ended {
        /// Whether somebody stopped it.
        cancelled: bool,
        /// How many were replayed.
        done: u64,
        /// How many could not be.
        failed: u64,
    },
    /// A signal ended the command that followed a replay job.
    GoesOn {
        /// The job.
        job: &'a str,
        /// The store's directory, if the command was also the one that had it open.
        directory: Option<&'a str>,
    },
}

/// One line for a person. Text from outside is shown with its control characters made visible.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Message<'a> {
    /// `serve` accepts events; the stable line that scripts wait for.
    Ready {
        /// Where it listens.
        url: &'a str,
        /// What it keeps events in.
        store: StoreName<'a>,
    },
    /// `serve --workers-only` is ready; as stable.
    WorkersReady {
        /// What its events are kept in.
        store: StoreName<'a>,
    },
    /// The sender is up (S2.14): where events come from.
    SenderUp {
        /// The listen URL, or the Redis URL when events come from there.
        url: &'a str,
        /// Whether `url` is Redis.
        redis: bool,
    },
    /// The first signal arrived.
    Draining {
        /// Attempts still on the wire.
        in_flight: usize,
    },
    /// The drain is over.
    Drained,
    /// An attempt begins (S2.14).
    AttemptStarts {
        /// From 1.
        number: u32,
        /// The event id.
        event: &'a str,
        /// Where to.
        url: &'a str,
    },
    /// The attempt was answered with 2xx (S2.14).
    Delivered {
        /// The status.
        status: u16,
    },
    /// The answer says that the destination failed: 5xx, 429 and the like (S2.14).
    DestinationFailed {
        /// The status.
        status: u16,
    },
    /// The answer says that trying again is pointless (S2.14).
    OurError {
        /// The status.
        status: u16,
    },
    /// The destination answered with a redirect, which is never followed (G10).
    Redirected {
        /// The status.
        status: u16,
        /// Its `Location`, if any.
        location: Option<&'a str>,
    },
    /// No response came (S2.14).
    ConnectionFailed {
        /// Why, in lower case.
        reason: &'a str,
    },
    /// The request was declined before connecting (G12).
    Refused {
        /// Which rule, in lower case.
        reason: &'a str,
        /// The flag that would allow it, if one would.
        allow_flag: Option<&'a str>,
    },
    /// The next attempt has a time (S2.14).
    Scheduled {
        /// How long from now.
        wait: Duration,
        /// The number of the attempt that will follow.
        next: u32,
        /// How many there are at most.
        max: u32,
    },
    /// The attempts ran out (S2.14).
    GaveUp {
        /// How many were made.
        attempts: u32,
    },
    /// The delivery died of anything else.
    Buried {
        /// The reason, by its stable name.
        reason: &'a str,
    },
    /// A lane waits (G10).
    LanePaused {
        /// Which, by its address.
        lane: &'a str,
        /// Until when, RFC 3339.
        until: &'a str,
        /// Why, by its stable name.
        why: &'a str,
    },
    /// The store refuses work; what it holds is safe.
    StoreFailing {
        /// Its own sentence.
        sentence: &'a str,
    },
    /// The store works again.
    StoreRecovered,
    /// More attempts were made in a second than anyone can read.
    LinesLeftOut {
        /// Attempts without a line.
        attempts: u64,
    },
    /// The sink is up.
    SinkReady {
        /// Where.
        url: &'a str,
    },
    /// The sink was asked for something (S2.11).
    SinkRequest {
        /// The method.
        method: &'a str,
        /// Path and query.
        path: &'a str,
        /// The `webhook-id`, if any.
        webhook_id: Option<&'a str>,
        /// The `teimoso-attempt`, if any.
        attempt: Option<u64>,
        /// What it does.
        answer: Answer,
    },
    /// The sink ends.
    SinkStopped {
        /// How many requests arrived.
        count: u64,
    },
    /// `send --wait` sees a change.
    Waiting {
        /// The delivery.
        delivery: &'a str,
        /// Its state, by its stable name.
        state: &'a str,
        /// Attempts so far.
        attempts: u64,
        /// Attempts at most.
        max: u64,
        /// When the next attempt is due and why then, RFC 3339 and a stable name.
        next: Option<(&'a str, &'a str)>,
    },
    /// `send --wait` sees the end of a delivery.
    Settled {
        /// The delivery.
        delivery: &'a str,
        /// What it came to.
        standing: Standing<'a>,
        /// Attempts made.
        attempts: u64,
    },
    /// The server is out of sight, and one goes on looking.
    ServerAway,
    /// The server is in sight again.
    ServerBack,
    /// The event is in a store that nobody delivers from now.
    StoredOnly {
        /// The store's directory.
        directory: &'a str,
    },
    /// A signal ended `send --wait`.
    DeliveryGoesOn {
        /// The event.
        event: &'a str,
    },
    /// A signal ended `send` before every answer came.
    MayBeAccepted,
    /// The event was accepted and nobody wants it.
    NoDeliveries,
    /// How a stream of events stands.
    BatchProgress {
        /// Lines answered with an id.
        accepted: u64,
        /// Lines answered with a problem.
        failed: u64,
    },
    /// A line of a stream was not accepted.
    LineRefused {
        /// The line, from 1.
        line: u64,
        /// Why.
        reason: &'a str,
    },
    /// How a replay goes.
    Replay(Replaying<'a>),
    /// How an examination goes.
    Doctor(Diagnosing),
    /// How a move between stores goes.
    Migrate(Moving<'a>),
    /// How a request goes.
    Request(Requesting<'a>),
    /// What is said about a Forgejo.
    Forgejo(Forgejo<'a>),
    /// What is said about a WhatsApp gateway.
    Whatsapp(Whatsapp<'a>),
    /// The question before a bulk change; answered with `y` or `s`.
    AskToProceed,
    /// The answer was no.
    NothingDone,
    /// How a bulk change stands or ended.
    BulkProgress {
        /// Done so far.
        done: usize,
        /// Of how many.
        of: usize,
        /// Failed so far.
        failed: usize,
    },
    /// One thing of several did not work.
    ItemFailed {
        /// Its id.
        id: &'a str,
        /// Why.
        reason: &'a str,
    },
    /// A list is empty.
    NothingToShow,
    /// A list has more than was shown.
    MoreToShow {
        /// How many were shown.
        shown: usize,
    },
}

impl Message<'_> {
    /// The line in that language, without a line end.
    #[must_use]
    pub fn text(&self, language: Language) -> String {
        match language {
            Language::English => en::text(self),
            Language::Portuguese => pt_br::text(self),
        }
    }
}

/// Text from outside, with everything that could steer a terminal shown as an escape.
struct Printable<'a>(&'a str);

impl fmt::Display for Printable<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(steers) {
            match part.chars().next_back() {
                Some(last) if steers(last) => {
                    formatter.write_str(&part[..part.len() - last.len_utf8()])?;
                    write!(formatter, "{}", last.escape_default())?;
                }
                _ => formatter.write_str(part)?,
            }
        }
        Ok(())
    }
}

/// Whether a character changes how others are shown or where the cursor stands: controls (Unicode category Cc), format
/// controls such as U+202E, which turns the reading direction (Cf, Unicode 17), and the separators of lines and
/// paragraphs (Zl, Zp).
fn steers(character: char) -> bool {
    character.is_control()
        || matches!(character,
            '\u{ad}' | '\u{600}'..='\u{605}' | '\u{61c}' | '\u{6dd}' | '\u{70f}' | '\u{890}'..='\u{891}' | '\u{8e2}'
            | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}'
            | '\u{2066}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{110bd}' | '\u{110cd}'
            | '\u{13430}'..='\u{1343f}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}' | '\u{e0001}'
            | '\u{e0020}'..='\u{e007f}')
}

/// Makes text from outside safe to print: its control characters become escapes.
#[must_use]
pub fn printable(text: &str) -> String {
    Printable(text).to_string()
}

#[cfg(test)]
mod tests;
