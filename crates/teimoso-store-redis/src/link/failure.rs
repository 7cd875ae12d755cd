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
    /// It will not have us, or not like this: only a person helps.
    Refused,
    /// Anything else: a defect of ours.
    Failed,
}

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) trouble: Trouble,
    sentence: String,
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
const REFUSED: &[&str] = &["NOAUTH", "WRONGPASS", "NOPERM", "CROSSSLOT", "DENIED", "NOPROTO"];
const FULL: &[&str] = &["OOM", "MISCONF"];

impl Failure {
    pub(crate) fn new(trouble: Trouble, sentence: impl Into<String>) -> Self {
        Self { trouble, sentence: sentence.into() }
    }

    /// The connection went away between two steps.
    pub(crate) fn gone() -> Self {
        Self::new(Trouble::Away, "the connection to redis was lost")
    }

    /// Names the script, in which a defect is easier found.
    pub(crate) fn in_script(self, name: &str) -> Self {
        match self.trouble {
            Trouble::Failed => Self { sentence: format!("script {name}: {}", self.sentence), ..self },
            _ => self,
        }
    }
}

/// What the server calls the error; a script's own error is wrapped into the server's text.
fn trouble_of(error: &RedisError) -> Trouble {
    let code = error.code().unwrap_or_default();
    let detail = error.detail().unwrap_or_default();
    let is_among =
        |codes: &[&str]| codes.iter().any(|known| code == *known || detail.contains(&format!("{known} ")));
    if code == "NOSCRIPT" {
        return Trouble::NoScript;
    }
    if error.kind() == ErrorKind::AuthenticationFailed || is_among(REFUSED) {
        return Trouble::Refused;
    }
    if is_among(FULL) {
        return Trouble::Full;
    }
    if error.is_io_error() || error.is_timeout() || error.is_connection_dropped() || is_among(AWAY) {
        return Trouble::Away;
    }
    match error.kind() {
        ErrorKind::InvalidClientConfig | ErrorKind::RESP3NotSupported => Trouble::Refused,
        _ => Trouble::Failed,
    }
}

impl From<RedisError> for Failure {
    fn from(error: RedisError) -> Self {
        Self::new(trouble_of(&error), error.to_string())
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
            Trouble::Away | Trouble::NoScript => Self::new(
                StoreErrorKind::Busy,
                format!("redis cannot be reached: {sentence}; deliveries wait"),
            ),
            Trouble::Full => Self::new(
                StoreErrorKind::Full,
                format!("redis has no room: {sentence}; raise maxmemory or free some, deliveries wait"),
            ),
            Trouble::Refused => Self::new(StoreErrorKind::Failed, format!("redis refuses us: {sentence}")),
            Trouble::Failed => Self::new(StoreErrorKind::Failed, format!("redis failed: {sentence}")),
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
            ("CROSSSLOT", Trouble::Refused),
            ("WRONGTYPE", Trouble::Failed),
        ] {
            assert_eq!(Failure::from(server(code)).trouble, trouble, "{code}");
        }
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
