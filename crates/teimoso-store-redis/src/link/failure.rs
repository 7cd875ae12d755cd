//! How an error of Redis is to be taken: find the server again, free memory, or call a person.

use redis::{ErrorKind, RedisError};
use teimoso_delivery::store::{StoreError, StoreErrorKind};

/// What helps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Trouble {
    /// The server is away, starting, failing over, or another one is it now: drop the connection, look again,
    /// keep what was to be done, count no attempt.
    Away,
    /// It does not know the script: send the text.
    NoScript,
    /// Memory is at its bound, or the disk is: what is to be added is refused until there is room.
    Full,
    /// It will not have us: only other credentials or permissions help.
    Refused,
    /// Nobody we trust vouches for its certificate.
    Untrusted,
    /// It is not what the address says it is: only another address helps.
    Unsuitable,
    /// Anything else: a defect of ours.
    Failed,
}

impl Trouble {
    /// Whether what was to be done is kept and tried again: whoever changes a password or a certificate, or frees memory,
    /// finds nothing lost. A defect would only be met again.
    pub(crate) const fn comes_back(self) -> bool {
        !matches!(self, Self::Failed)
    }
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) trouble: Trouble,
    sentence: String,
    /// What was asked for is elsewhere, for good: the other node's address.
    moved_to: Option<String>,
    /// The server is in order and will answer by and by: the connection stays.
    passes: bool,
    /// It is there, and not ready yet.
    starts: bool,
}

const AWAY: &[&str] = &[
    "READONLY",
    "UNBLOCKED",
    "LOADING",
    "MASTERDOWN",
    "CLUSTERDOWN",
    "TRYAGAIN",
    "BUSY",
    "NOREPLICAS",
    "MOVED",
    "ASK",
];
/// A slot that is on its way to another node, a script that runs: over soon, and no reason to hang up.
const PASSING: &[&str] = &["TRYAGAIN", "ASK", "BUSY"];
/// Answers of a server that is there and has not begun, or of a group that is choosing its master.
const STARTING: &[&str] = &["LOADING", "MASTERDOWN", "CLUSTERDOWN", "TRYAGAIN"];
const REFUSED: &[&str] = &["NOAUTH", "WRONGPASS", "NOPERM", "DENIED"];
const UNSUITABLE: &[&str] = &["CROSSSLOT", "NOPROTO"];
const FULL: &[&str] = &["OOM", "MISCONF"];

impl Failure {
    pub(crate) fn new(trouble: Trouble, sentence: impl Into<String>) -> Self {
        Self { trouble, sentence: sentence.into(), moved_to: None, passes: false, starts: false }
    }

    /// The connection went away between two steps.
    pub(crate) fn gone() -> Self {
        Self::new(Trouble::Away, "the connection to redis was lost")
    }

    /// Whether the connection it came on is of no more use.
    pub(crate) fn breaks_connection(&self) -> bool {
        self.trouble == Trouble::Away && !self.passes
    }

    /// Where what was asked for is instead, as the server writes it.
    pub(crate) fn moved_to(&self) -> Option<&str> {
        self.moved_to.as_deref()
    }

    /// The server is there, or another that knows of it, and it is not ready yet.
    pub(crate) fn not_yet(sentence: impl Into<String>) -> Self {
        Self { starts: true, ..Self::new(Trouble::Away, sentence) }
    }

    /// Whether it is worth waiting a few seconds even where nothing is under way.
    pub(crate) const fn is_starting(&self) -> bool {
        self.starts
    }

    /// Whether the server said no for the moment only, or sent us elsewhere: nothing was done, and the next try may.
    pub(crate) const fn is_elsewhere_or_soon(&self) -> bool {
        self.starts || self.passes || self.moved_to.is_some()
    }

    /// Names which of several it was.
    pub(crate) fn at(self, place: &impl std::fmt::Display) -> Self {
        Self { sentence: format!("{place}: {}", self.sentence), ..self }
    }

    /// Of several that failed, the one that a person can do most about.
    pub(crate) fn or_worse(self, other: Option<Self>) -> Self {
        let rank = |failure: &Self| match failure.trouble {
            Trouble::Refused => 3,
            Trouble::Untrusted => 2,
            Trouble::Unsuitable => 1,
            _ => 0,
        };
        match other {
            Some(other) if rank(&other) > rank(&self) => other,
            _ => self,
        }
    }

    /// Names the script, in which a defect is easier found.
    pub(crate) fn in_script(self, name: &str) -> Self {
        match self.trouble {
            Trouble::Failed => Self { sentence: format!("script {name}: {}", self.sentence), ..self },
            _ => self,
        }
    }
}

/// Whether the server calls the error one of these; a script's own error is wrapped into the server's text.
fn is_among(error: &RedisError, codes: &[&str]) -> bool {
    let code = error.code().unwrap_or_default();
    let detail = error.detail().unwrap_or_default();
    codes.iter().any(|known| code == *known || detail.contains(&format!("{known} ")))
}

fn trouble_of(error: &RedisError) -> Trouble {
    let is_among = |codes: &[&str]| is_among(error, codes);
    if error.code() == Some("NOSCRIPT") {
        return Trouble::NoScript;
    }
    // A long command by somebody who has not said who they are is not even read.
    let unread = error.detail().is_some_and(|detail| detail.contains("unauthenticated"));
    if error.kind() == ErrorKind::AuthenticationFailed || unread || is_among(REFUSED) {
        return Trouble::Refused;
    }
    if is_among(UNSUITABLE) {
        return Trouble::Unsuitable;
    }
    if error.is_io_error() && error.to_string().contains("invalid peer certificate") {
        return Trouble::Untrusted;
    }
    if is_among(FULL) {
        return Trouble::Full;
    }
    if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || is_among(AWAY) {
        return Trouble::Away;
    }
    match error.kind() {
        // An answer that ends in the middle: the connection went away while it came.
        ErrorKind::Parse => Trouble::Away,
        ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported => Trouble::Unsuitable,
        _ => Trouble::Failed,
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        // Its detail is the slot and the node.
        let detail = error.detail().filter(|_| error.code() == Some("MOVED"));
        let moved_to = detail.and_then(|detail| detail.split(' ').nth(1)).map(str::to_owned);
        let (passes, starts) = (is_among(&error, PASSING), is_among(&error, STARTING));
        Self { trouble: trouble_of(&error), sentence: error.to_string(), moved_to, passes, starts }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.sentence)
    }
}

impl From<Failure> for StoreError {
    fn from(failure: Failure) -> Self {
        let sentence = failure.sentence;
        match failure.trouble {
            Trouble::Away | Trouble::NoScript | Trouble::Untrusted => Self::new(
                StoreErrorKind::Busy,
                format!("redis cannot be reached: {sentence}; deliveries wait"),
            ),
            Trouble::Full => Self::new(
                StoreErrorKind::Full,
                format!("redis has no room: {sentence}; raise maxmemory or free some, deliveries wait"),
            ),
            Trouble::Refused => Self::new(StoreErrorKind::Failed, format!("redis refuses us: {sentence}")),
            Trouble::Unsuitable | Trouble::Failed => {
                Self::new(StoreErrorKind::Failed, format!("redis failed: {sentence}"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(code: &str) -> RedisError {
        redis::make_extension_error(code.to_owned(), Some("a text".to_owned()))
    }

    #[test]
    fn every_class_of_error_is_taken_as_what_helps() {
        for (code, trouble) in [
            ("READONLY", Trouble::Away),
            ("LOADING", Trouble::Away),
            ("UNBLOCKED", Trouble::Away),
            ("MASTERDOWN", Trouble::Away),
            ("CLUSTERDOWN", Trouble::Away),
            ("TRYAGAIN", Trouble::Away),
            ("NOSCRIPT", Trouble::NoScript),
            ("OOM", Trouble::Full),
            ("MISCONF", Trouble::Full),
            ("NOAUTH", Trouble::Refused),
            ("WRONGPASS", Trouble::Refused),
            ("NOPERM", Trouble::Refused),
            ("CROSSSLOT", Trouble::Unsuitable),
            ("WRONGTYPE", Trouble::Failed),
        ] {
            assert_eq!(Failure::from(server(code)).trouble, trouble, "{code}");
        }
    }

    #[test]
    fn only_what_does_not_pass_by_itself_breaks_the_connection() {
        for (code, breaks) in [
            ("READONLY", true),
            ("MOVED", true),
            ("LOADING", true),
            ("TRYAGAIN", false),
            ("ASK", false),
            ("OOM", false),
        ] {
            assert_eq!(Failure::from(server(code)).breaks_connection(), breaks, "{code}");
        }
    }

    #[test]
    fn of_several_failures_the_one_that_a_person_can_help_is_told() {
        let failure = |trouble| Failure::new(trouble, "x");
        let told = failure(Trouble::Away).or_worse(Some(failure(Trouble::Refused)));
        assert_eq!(told.trouble, Trouble::Refused);
        let told = failure(Trouble::Refused).or_worse(Some(failure(Trouble::Unsuitable)));
        assert_eq!(told.trouble, Trouble::Refused);
        assert_eq!(failure(Trouble::Away).or_worse(None).trouble, Trouble::Away);
    }

    #[test]
    fn what_comes_back_by_itself_is_busy_and_a_full_memory_is_full() {
        for (trouble, kind) in [
            (Trouble::Away, StoreErrorKind::Busy),
            (Trouble::Full, StoreErrorKind::Full),
            (Trouble::Refused, StoreErrorKind::Failed),
        ] {
            assert_eq!(StoreError::from(Failure::new(trouble, "x")).kind(), kind);
        }
    }
}
