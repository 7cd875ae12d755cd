//! Where events are kept, as the command line names it. Deliberately absent: opening anything there.

use std::convert::Infallible;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where events are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum StoreLocation {
    /// The embedded store in this directory.
    Directory(PathBuf),
    /// Memory: everything is lost with the process.
    Memory,
    /// The Redis at this URL.
    Redis(RedisUrl),
}

impl FromStr for StoreLocation {
    type Err = String;

    fn from_str(text: &str) -> Result<StoreLocation, String> {
        match text {
            "" => Err("a directory, memory: or redis://HOST".to_owned()),
            "memory:" => Ok(StoreLocation::Memory),
            _ if text.starts_with("redis") && text.contains("://") => {
                Ok(StoreLocation::Redis(RedisUrl(text.to_owned())))
            }
            _ if text.contains("://") => {
                Err("events are kept in a directory, in memory: or in redis:// only".to_owned())
            }
            _ => {
                let Ok(path): Result<PathBuf, Infallible> = text.parse();
                Ok(StoreLocation::Directory(path))
            }
        }
    }
}

impl fmt::Display for StoreLocation {
    /// As it was given, but for credentials.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StoreLocation::Directory(path) => path.display().fmt(formatter),
            StoreLocation::Memory => formatter.write_str("memory:"),
            StoreLocation::Redis(url) => url.fmt(formatter),
        }
    }
}

/// A Redis URL, which may hold a user and a password: no way of printing it shows them.
///
/// Not judged here: an argument parser would print what it refuses, password and all.
#[derive(Clone, PartialEq, Eq)]
pub struct RedisUrl(String);

impl RedisUrl {
    /// With its credentials, for the connection only.
    #[must_use]
    pub fn exposed(&self) -> &str {
        &self.0
    }

    /// Whether it brings a password, or at least leaves room for one: `user:…@`.
    #[must_use]
    pub fn has_password(&self) -> bool {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        rest.rsplit_once('@').is_some_and(|(credentials, _)| credentials.contains(':'))
    }

    /// Whether it brings the sentinels' password, which is not the servers'.
    #[must_use]
    pub fn has_sentinel_password(&self) -> bool {
        let (_, parameters) = self.0.split_once('?').unwrap_or_default();
        parameters.split('&').any(|pair| pair.starts_with("sentinel_password="))
    }

    /// What stands before `://`.
    #[must_use]
    pub fn scheme(&self) -> &str {
        self.0.split("://").next().unwrap_or_default()
    }
}

impl fmt::Display for RedisUrl {
    /// Everything up to the last `@` may be a badly written password, everything after `?` a parameter that is one. Where
    /// nobody can say which it is, nothing is shown.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (_, rest) = self.0.split_once("://").unwrap_or_default();
        if rest.split_once('?').is_some_and(|(_, parameters)| parameters.contains('@')) {
            return write!(formatter, "{}://…", self.scheme());
        }
        let place = rest.rsplit_once('@').map_or(rest, |(_, place)| place);
        let place = place.split(['?', '#']).next().unwrap_or_default();
        write!(formatter, "{}://{place}", self.scheme())
    }
}

impl fmt::Debug for RedisUrl {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

/// The store that a command opens for itself.
pub(super) fn of_ones_own(text: &str) -> Result<StoreLocation, String> {
    match text.parse()? {
        StoreLocation::Memory => Err("a store in memory is seen by its own process only".to_owned()),
        location => Ok(location),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redis_url_never_shows_its_credentials() {
        for (given, shown) in [
            ("redis://127.0.0.1:6379", "redis://127.0.0.1:6379"),
            ("redis://ana:segredo@h:1/2", "redis://h:1/2"),
            ("rediss://:segredo@h", "rediss://h"),
            ("redis://ana:se/gr@edo@h", "redis://h"),
            ("redis://h?password=segredo", "redis://h"),
            ("redis+sentinel://:segredo@a,b/m", "redis+sentinel://a,b/m"),
            ("rediss+sentinel://a,b/m?sentinel_password=segredo", "rediss+sentinel://a,b/m"),
            ("rediss+sentinel://a,b/m?sentinel_password=seg@redo", "rediss+sentinel://…"),
            ("redis://ana:se?gr@edo@h", "redis://…"),
            ("redis+cluster://ana:segredo@a:1,b:2", "redis+cluster://a:1,b:2"),
        ] {
            let location: StoreLocation = given.parse().expect("a location");
            assert_eq!(location.to_string(), shown);
            assert_eq!(format!("{location:?}"), format!("Redis({shown})"));
        }
    }

    #[test]
    fn a_password_in_the_url_is_noticed() {
        let has = |text: &str| RedisUrl(text.to_owned()).has_password();
        assert!(has("redis://ana:segredo@h") && has("redis://:segredo@h:1/0"));
        assert!(!has("redis://h:6379") && !has("redis://ana@h:6379"));
        let has = |text: &str| RedisUrl(text.to_owned()).has_sentinel_password();
        assert!(has("redis+sentinel://h/m?sentinel_user=eva&sentinel_password=segredo"));
        assert!(!has("redis+sentinel://:segredo@h/m") && !has("redis+sentinel://h/m?sentinel_user=eva"));
    }
}
