//! The five policies that have a name, as data; absent: how they are read, which is `decide`.

use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::time::Duration;

use crate::backoff::{Factor, Schedule};
use crate::jitter::{Jitter, PerMille};
use crate::policy::{BodyLostRule, RetryPolicy, Scope};
use crate::retry_after::{Beyond, Forms, RetryAfterRule};
use crate::status::StatusSet;

/// A named policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Preset {
    /// The client's default: three attempts, full jitter, only what is safe to repeat.
    Standard,
    /// Any network failure, and 502, 503, 504 of a GET (S1).
    Forgejo,
    /// Only what is safe to repeat; a numeric `Retry-After` replaces the wait (S3).
    Connector,
    /// Five attempts from two seconds on (S2).
    Webhook,
    /// The engine's default: ten attempts over three days.
    Patient,
}

/// A name that no preset has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnknownPreset;

impl Preset {
    /// Every preset, in the order in which they are shown.
    pub const ALL: [Self; 5] = [Self::Standard, Self::Forgejo, Self::Connector, Self::Webhook, Self::Patient];

    /// The presets that know how to treat a delivery; the others are for clients, which have a caller to ask.
    pub const fn for_deliveries() -> [Self; 2] {
        [Self::Webhook, Self::Patient]
    }

    /// The stable name: `standard`, `forgejo`, `connector`, `webhook` or `patient`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Standard => "standard",
            Self::Forgejo => "forgejo",
            Self::Connector => "connector",
            Self::Webhook => "webhook",
            Self::Patient => "patient",
        }
    }

    /// What it is for, in one line.
    pub const fn summary(self) -> &'static str {
        match self {
            Self::Standard => {
                "client default: 3 attempts from 100 ms, full jitter, only what is safe to repeat"
            }
            Self::Forgejo => {
                "API client: 4 attempts from 300 ms, any network failure, 502 503 504 of GET only"
            }
            Self::Connector => {
                "provider client: 4 attempts from 300 ms, only what is safe to repeat, obeys Retry-After"
            }
            Self::Webhook => "short webhook: 5 attempts from 2 s, 429 and every 5xx, over in half a minute",
            Self::Patient => {
                "engine default: 10 attempts over three days, obeys Retry-After, pauses failing endpoints"
            }
        }
    }

    pub(crate) fn policy(self) -> RetryPolicy {
        match self {
            Self::Standard => standard(),
            Self::Forgejo => forgejo(),
            Self::Connector => connector(),
            Self::Webhook => webhook(),
            Self::Patient => patient(),
        }
    }
}

const CONNECT: Duration = Duration::from_secs(5);
const ATTEMPT: Duration = Duration::from_secs(15);
const NO_RETRY_AFTER: RetryAfterRule = RetryAfterRule::OFF;

const fn attempts(number: u32) -> NonZeroU32 {
    NonZeroU32::new(number).expect("a preset makes at least one attempt")
}

fn standard() -> RetryPolicy {
    RetryPolicy {
        max_attempts: attempts(3),
        schedule: Schedule::preset_exponential(
            Duration::from_millis(100),
            Factor::TWO,
            Duration::from_secs(10),
        ),
        jitter: Jitter::Full,
        attempt_timeout: Duration::from_secs(10),
        connect_timeout: CONNECT,
        give_up_after: Some(Duration::from_secs(30)),
        statuses: StatusSet::EMPTY.with(&[408, 429, 502, 503, 504]),
        status_scope: Scope::ReplaySafe,
        misdirected_scope: Scope::AnyRequest,
        never_sent_scope: Scope::AnyRequest,
        not_processed_scope: Scope::AnyRequest,
        ambiguous_scope: Scope::ReplaySafe,
        body_lost: BodyLostRule::Retry(Scope::ReplaySafe),
        retry_certificate: false,
        retry_after: RetryAfterRule::preset(Forms::Both, Duration::from_secs(60), Beyond::GiveUp, true),
        gone_ends_endpoint: false,
        breaker: false,
    }
}

/// S1.2–S1.6. The cap is ours and beyond the third and last wait: it binds only whoever allows more retries.
fn forgejo() -> RetryPolicy {
    RetryPolicy {
        max_attempts: attempts(4),
        schedule: Schedule::preset_exponential(
            Duration::from_millis(300),
            Factor::TWO,
            Duration::from_secs(10),
        ),
        jitter: Jitter::PlusMinus(PerMille::of(200)),
        attempt_timeout: ATTEMPT,
        connect_timeout: CONNECT,
        give_up_after: None,
        statuses: StatusSet::EMPTY.with(&[502, 503, 504]),
        status_scope: Scope::GetOnly,
        misdirected_scope: Scope::Never,
        never_sent_scope: Scope::AnyRequest,
        not_processed_scope: Scope::AnyRequest,
        ambiguous_scope: Scope::AnyRequest,
        body_lost: BodyLostRule::Retry(Scope::GetOnly),
        retry_certificate: true,
        retry_after: NO_RETRY_AFTER,
        gone_ends_endpoint: false,
        breaker: false,
    }
}

/// S3.2, S3.3, S3.5.
fn connector() -> RetryPolicy {
    RetryPolicy {
        max_attempts: attempts(4),
        schedule: Schedule::preset_exponential(
            Duration::from_millis(300),
            Factor::TWO,
            Duration::from_secs(4),
        ),
        jitter: Jitter::AddRatio(PerMille::of(250)),
        attempt_timeout: ATTEMPT,
        connect_timeout: CONNECT,
        give_up_after: None,
        statuses: StatusSet::EMPTY.with(&[429, 502, 503, 504]),
        status_scope: Scope::ReplaySafe,
        misdirected_scope: Scope::Never,
        never_sent_scope: Scope::ReplaySafe,
        not_processed_scope: Scope::ReplaySafe,
        ambiguous_scope: Scope::ReplaySafe,
        body_lost: BodyLostRule::Retry(Scope::ReplaySafe),
        retry_certificate: true,
        retry_after: RetryAfterRule::preset(Forms::Seconds, Duration::from_secs(30), Beyond::Clamp, false),
        gone_ends_endpoint: false,
        breaker: false,
    }
}

/// S2.3, S2.4. Used by a client, statuses and ambiguous ends are still repeated only where that is safe; in the engine
/// at-least-once makes everything so.
fn webhook() -> RetryPolicy {
    RetryPolicy {
        max_attempts: attempts(5),
        schedule: Schedule::preset_exponential(Duration::from_secs(2), Factor::TWO, Duration::from_secs(300)),
        jitter: Jitter::AddSpan(Duration::from_secs(1)),
        attempt_timeout: ATTEMPT,
        connect_timeout: CONNECT,
        give_up_after: None,
        statuses: StatusSet::EMPTY.with(&[429]).with_all_5xx(),
        status_scope: Scope::ReplaySafe,
        misdirected_scope: Scope::Never,
        never_sent_scope: Scope::AnyRequest,
        not_processed_scope: Scope::AnyRequest,
        ambiguous_scope: Scope::ReplaySafe,
        body_lost: BodyLostRule::AsStatus,
        retry_certificate: true,
        retry_after: NO_RETRY_AFTER,
        gone_ends_endpoint: false,
        breaker: false,
    }
}

const PATIENT_WAITS: &[Duration] = &[
    Duration::from_secs(5),
    Duration::from_mins(5),
    Duration::from_mins(30),
    Duration::from_hours(2),
    Duration::from_hours(5),
    Duration::from_hours(10),
    Duration::from_hours(14),
    Duration::from_hours(20),
    Duration::from_hours(24),
];

fn patient() -> RetryPolicy {
    RetryPolicy {
        max_attempts: attempts(10),
        schedule: Schedule::preset_list(PATIENT_WAITS),
        jitter: Jitter::PlusMinus(PerMille::of(100)),
        statuses: StatusSet::EMPTY.with(&[408, 425, 429]).with_all_5xx(),
        misdirected_scope: Scope::AnyRequest,
        retry_after: RetryAfterRule::preset(Forms::Both, Duration::from_hours(24), Beyond::Clamp, true),
        gone_ends_endpoint: true,
        breaker: true,
        ..webhook()
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Preset {
    type Err = UnknownPreset;

    fn from_str(name: &str) -> Result<Self, UnknownPreset> {
        Self::ALL.into_iter().find(|preset| preset.name() == name).ok_or(UnknownPreset)
    }
}

impl fmt::Display for UnknownPreset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("no such policy; the names are")?;
        Preset::ALL.into_iter().try_for_each(|preset| write!(f, " {preset}"))
    }
}

impl std::error::Error for UnknownPreset {}

impl From<Preset> for RetryPolicy {
    fn from(preset: Preset) -> Self {
        preset.policy()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_preset_is_named_the_same_both_ways() {
        for preset in Preset::ALL {
            assert_eq!(preset.to_string().parse(), Ok(preset));
            assert!(!preset.summary().contains('\n'));
        }
        assert_eq!(Preset::ALL.map(Preset::name), ["standard", "forgejo", "connector", "webhook", "patient"]);
        assert_eq!(Preset::for_deliveries().map(Preset::name), ["webhook", "patient"]);
    }

    #[test]
    fn an_unknown_name_lists_those_there_are() {
        let error = "Standard".parse::<Preset>().unwrap_err();
        assert_eq!(
            error.to_string(),
            "no such policy; the names are standard forgejo connector webhook patient"
        );
    }
}
