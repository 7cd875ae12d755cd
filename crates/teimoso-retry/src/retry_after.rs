//! From the lines of a `Retry-After` header to a duration, and from that to what a policy makes of it; absent: header
//! maps and the clock, which the caller reads.
//!
//! RFC 9110 §10.2.3 (`delay-seconds` or `HTTP-date`) and §5.6.7 (the three date forms).

use std::time::Duration;

mod http_date;

use crate::backoff::MAX_WAIT;
use crate::policy::PolicyError;

/// What a valid `Retry-After` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Hint {
    /// How long to wait, from the response on.
    pub wait: HintWait,
    /// How it was written.
    pub form: HintForm,
}

/// The wait a hint names. Ordered: every duration is below [`HintWait::BeyondAny`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HintWait {
    /// This long; zero for a date in the past.
    For(Duration),
    /// Longer than 64 bits of seconds: valid, and above every cap.
    BeyondAny,
}

/// How a hint was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HintForm {
    /// As a number of seconds.
    Seconds,
    /// As an HTTP-date.
    Date,
}

/// Which forms of `Retry-After` a policy reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Forms {
    /// None: the header is ignored.
    Off,
    /// Seconds only; a date falls back to the schedule.
    Seconds,
    /// Seconds and dates.
    Both,
}

/// What happens when more is asked than the cap allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Beyond {
    /// Give up and hand the response back.
    GiveUp,
    /// Wait as long as the cap.
    Clamp,
}

/// A policy's rule for `Retry-After` on 429 and 503.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RetryAfterRule {
    forms: Forms,
    cap: Duration,
    beyond: Beyond,
    spread: bool,
}

/// What a rule makes of a hint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Told {
    /// The rule does not read it.
    Ignored,
    /// Wait this long, at most the cap, before any jitter; zero stays zero.
    Wait(Duration),
    /// More than the cap, and the rule gives up.
    BeyondCap,
}

impl RetryAfterRule {
    /// Ignores the header.
    pub const OFF: Self =
        Self { forms: Forms::Off, cap: Duration::ZERO, beyond: Beyond::Clamp, spread: false };

    /// A rule. With `spread`, the wait is lengthened by up to a tenth of itself, at most the schedule's first wait, so
    /// that those who were told the same do not return together.
    ///
    /// # Errors
    /// `cap` is zero or above [`MAX_WAIT`].
    pub fn new(forms: Forms, cap: Duration, beyond: Beyond, spread: bool) -> Result<Self, PolicyError> {
        if cap.is_zero() || cap > MAX_WAIT {
            return Err(PolicyError::new("retry_after.cap", "must be above zero and at most 30 days"));
        }
        Ok(Self::preset(forms, cap, beyond, spread))
    }

    pub(crate) const fn preset(forms: Forms, cap: Duration, beyond: Beyond, spread: bool) -> Self {
        Self { forms, cap, beyond, spread }
    }

    /// Which forms are read.
    pub fn forms(&self) -> Forms {
        self.forms
    }

    /// The longest wait that is obeyed.
    pub fn cap(&self) -> Duration {
        self.cap
    }

    /// What happens beyond the cap.
    pub fn beyond(&self) -> Beyond {
        self.beyond
    }

    /// Whether a little jitter is added.
    pub fn spread(&self) -> bool {
        self.spread
    }

    /// What this rule makes of a hint. Whether the status is one that may carry a hint (429, 503) is not asked here.
    pub fn told(&self, hint: Hint) -> Told {
        let read = match self.forms {
            Forms::Off => false,
            Forms::Seconds => hint.form == HintForm::Seconds,
            Forms::Both => true,
        };
        match hint.wait {
            _ if !read => Told::Ignored,
            HintWait::For(wait) if wait <= self.cap => Told::Wait(wait),
            _ => match self.beyond {
                Beyond::GiveUp => Told::BeyondCap,
                Beyond::Clamp => Told::Wait(self.cap),
            },
        }
    }
}

/// Reads the lines of a `Retry-After` header.
///
/// `lines` are the values of every such header line, `response_date` the value of the same response's `Date`,
/// `wall_now_unix` our clock, since the Unix epoch. A date counts from the response's own `Date` where that is valid,
/// so that a skewed clock does no harm, else from ours; what counts from ours is rounded up to the millisecond, so that
/// whoever keeps milliseconds is not early. A date in the past asks for no wait.
///
/// Seconds are ASCII digits alone: `+120`, `-1`, `1.5` are invalid, and an invalid line is as good as none. Of several
/// valid lines the one that asks for most counts. None valid: `None`. No input panics.
pub fn parse_retry_after<'a>(
    lines: impl IntoIterator<Item = &'a [u8]>,
    response_date: Option<&[u8]>,
    wall_now_unix: Duration,
) -> Option<Hint> {
    let response_date = response_date.and_then(|date| http_date::parse(trim(date), wall_now_unix));
    let hints = lines.into_iter().filter_map(|line| {
        let line = trim(line);
        parse_seconds(line).or_else(|| parse_date(line, response_date, wall_now_unix))
    });
    hints.max_by_key(|hint| hint.wait)
}

/// Digits only: `u64::from_str` alone would take `+120`.
fn parse_seconds(line: &[u8]) -> Option<Hint> {
    if line.is_empty() || !line.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let digits = std::str::from_utf8(line).ok()?;
    let wait = match digits.parse() {
        Ok(seconds) => HintWait::For(Duration::from_secs(seconds)),
        Err(_) => HintWait::BeyondAny,
    };
    Some(Hint { wait, form: HintForm::Seconds })
}

fn parse_date(line: &[u8], response_date: Option<Duration>, wall_now: Duration) -> Option<Hint> {
    let date = http_date::parse(line, response_date.unwrap_or(wall_now))?;
    let wait = match response_date {
        Some(sent) => date.saturating_sub(sent),
        None => whole_millis_up(date.saturating_sub(wall_now)),
    };
    Some(Hint { wait: HintWait::For(wait), form: HintForm::Date })
}

fn whole_millis_up(duration: Duration) -> Duration {
    let excess = duration.subsec_nanos() % 1_000_000;
    if excess == 0 {
        duration
    } else {
        duration.saturating_add(Duration::from_nanos(1_000_000 - u64::from(excess)))
    }
}

/// Without the optional white space (SP, HTAB) around a field value.
fn trim(value: &[u8]) -> &[u8] {
    let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = value.iter().position(|byte| !blank(byte)).unwrap_or(value.len());
    let end = value.iter().rposition(|byte| !blank(byte)).map_or(start, |last| last + 1);
    &value[start..end]
}

#[cfg(test)]
mod tests;
