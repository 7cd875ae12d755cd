//! What the server is and keeps, found out at start: version, role, append-only file, fsync, eviction, replicas.
//!
//! A managed server may hide its configuration: what is unknown is said to be, and promises nothing.

use redis::{Cmd, Value, cmd};

use crate::error::OpenError;
use crate::link::{Failure, Link, Trouble};
use crate::options::{Durability, Options};

/// Oldest version: LPOP with a count.
const OLDEST: (u32, u32) = (6, 2);
/// WAITAOF.
const WITH_WAITAOF: (u32, u32) = (7, 2);

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// The server's version, as it says it.
    pub version: String,
    /// Whether it may be written to.
    pub is_master: bool,
    /// Whether there is an append-only file; `None` when the server does not say.
    pub append_only: Option<bool>,
    /// `always`, `everysec` or `no`; `None` when the server does not say.
    pub fsync: Option<String>,
    /// The eviction policy; `None` when the server does not say.
    pub eviction: Option<String>,
    /// Replicas connected at start.
    pub replicas: u32,
}

impl Found {
    pub(crate) async fn look(link: &Link) -> Result<Self, Failure> {
        let info = text(link.command(&cmd("INFO")).await?);
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        let config = async |name: &str| -> Result<Option<String>, Failure> {
            let mut asked: Cmd = cmd("CONFIG");
            asked.arg("GET").arg(name);
            match link.command(&asked).await {
                Ok(Value::Array(values)) => Ok(values.into_iter().nth(1).map(text)),
                Ok(_) => Ok(None),
                // A managed server hides its configuration; an unknown command is an ERR.
                Err(failure) if matches!(failure.trouble, Trouble::Refused | Trouble::Failed) => Ok(None),
                Err(failure) => Err(failure),
            }
        };
        let append_only = field("aof_enabled").map(|value| value == "1");
        Ok(Self {
            version: field("redis_version").unwrap_or_default(),
            is_master: field("role").is_none_or(|role| role == "master"),
            append_only,
            fsync: config("appendfsync").await?.filter(|_| append_only == Some(true)),
            eviction: field("maxmemory_policy").or(config("maxmemory-policy").await?),
            replicas: field("connected_slaves").and_then(|value| value.parse().ok()).unwrap_or(0),
        })
    }

    /// Whether every answer means that it is on the disk.
    pub(crate) fn syncs_always(&self) -> bool {
        self.append_only == Some(true) && self.fsync.as_deref() == Some("always")
    }

    fn is_at_least(&self, wanted: (u32, u32)) -> bool {
        let mut numbers = self.version.split('.').map(|number| number.parse::<u32>().unwrap_or(0));
        (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= wanted
    }

    /// The strongest level the server offers.
    pub(crate) fn strongest(&self) -> Durability {
        if self.offers(Durability::Disk) {
            Durability::Disk
        } else if self.replicas > 0 {
            Durability::Replica
        } else {
            Durability::Fast
        }
    }

    fn offers(&self, level: Durability) -> bool {
        match level {
            Durability::Fast => true,
            // One may connect at any time; until then nothing is accepted.
            Durability::Replica => true,
            Durability::Disk => {
                self.syncs_always() || (self.append_only == Some(true) && self.is_at_least(WITH_WAITAOF))
            }
        }
    }

    /// At-most-once: a claim is the start, so its answer must mean that it is on the disk, and no replica that
    /// lags may take over.
    pub(crate) fn carries_at_most_once(&self) -> bool {
        self.syncs_always() && self.replicas == 0
    }

    /// Refuses what would lose deliveries unless it was asked for in so many words.
    pub(crate) fn check(&self, options: &Options) -> Result<(), OpenError> {
        if !self.is_at_least(OLDEST) {
            return Err(OpenError::refused(format!(
                "redis {} is too old; teimoso needs {}.{} or newer",
                self.version, OLDEST.0, OLDEST.1
            )));
        }
        if !self.is_master {
            return Err(OpenError::refused(
                "this redis is a replica, which takes no writes; name its master",
            ));
        }
        if let Some(policy) = self.eviction.as_deref().filter(|policy| policy.starts_with("allkeys-"))
            && !options.allow_eviction
        {
            return Err(OpenError::refused(format!(
                "redis evicts any key when memory is short (maxmemory-policy {policy}), deliveries among them; \
                 set it to noeviction, or allow it explicitly"
            )));
        }
        if self.append_only == Some(false) && !options.allow_volatile {
            return Err(OpenError::refused(
                "redis keeps no append-only file, so its restart loses deliveries; set appendonly yes, or allow it \
                 explicitly",
            ));
        }
        match options.durability {
            Some(level) if !self.offers(level) => Err(OpenError::refused(format!(
                "this redis cannot give the durability `{}`: it needs appendonly yes and appendfsync always, or \
                 version {}.{}",
                level.name(),
                WITH_WAITAOF.0,
                WITH_WAITAOF.1
            ))),
            _ => Ok(()),
        }
    }

    /// For the ready line.
    pub(crate) fn describe(&self) -> String {
        let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
        let log = match self.append_only {
            Some(true) => format!("appendonly yes, appendfsync {}", told(&self.fsync)),
            Some(false) => "appendonly no".to_owned(),
            None => "appendonly unknown".to_owned(),
        };
        format!("redis {}, {log}, {} replicas, {}", self.version, self.replicas, told(&self.eviction))
    }
}

/// A text in any of the protocol's spellings; nothing for anything else.
pub(crate) fn text(value: Value) -> String {
    match value {
        Value::BulkString(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Value::SimpleString(text) => text,
        Value::VerbatimString { text, .. } => text,
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Found {
        Found {
            version: "7.0.15".to_owned(),
            is_master: true,
            append_only: Some(true),
            fsync: Some("everysec".to_owned()),
            eviction: Some("noeviction".to_owned()),
            replicas: 0,
        }
    }

    fn refusal(found: &Found, options: &Options) -> Option<String> {
        found.check(options).err().map(|error| error.to_string())
    }

    #[test]
    fn what_would_lose_deliveries_is_refused_unless_allowed() {
        let plain = Options::default();
        assert_eq!(refusal(&sound(), &plain), None);
        let evicting = Found { eviction: Some("allkeys-lru".to_owned()), ..sound() };
        assert!(refusal(&evicting, &plain).is_some_and(|sentence| sentence.contains("allkeys-lru")));
        assert_eq!(refusal(&evicting, &Options { allow_eviction: true, ..Options::default() }), None);
        let volatile = Found { append_only: Some(false), ..sound() };
        assert!(refusal(&volatile, &plain).is_some_and(|sentence| sentence.contains("append-only")));
        assert_eq!(refusal(&volatile, &Options { allow_volatile: true, ..Options::default() }), None);
        let old = Found { version: "6.0.16".to_owned(), ..sound() };
        assert!(refusal(&old, &plain).is_some_and(|sentence| sentence.contains("too old")));
        let replica = Found { is_master: false, ..sound() };
        assert!(refusal(&replica, &plain).is_some_and(|sentence| sentence.contains("replica")));
    }

    #[test]
    fn g4_only_a_server_that_syncs_before_it_answers_carries_at_most_once() {
        assert!(!sound().carries_at_most_once());
        let always = Found { fsync: Some("always".to_owned()), ..sound() };
        assert!(always.carries_at_most_once());
        assert!(!Found { replicas: 1, ..always.clone() }.carries_at_most_once());
        assert!(!Found { append_only: Some(false), ..always }.carries_at_most_once());
    }

    #[test]
    fn g1_the_level_is_the_strongest_that_is_offered_and_no_other_is_promised() {
        assert_eq!(sound().strongest(), Durability::Fast);
        assert_eq!(Found { replicas: 1, ..sound() }.strongest(), Durability::Replica);
        assert_eq!(Found { fsync: Some("always".to_owned()), ..sound() }.strongest(), Durability::Disk);
        assert_eq!(Found { version: "7.2.1".to_owned(), ..sound() }.strongest(), Durability::Disk);
        let disk = Options { durability: Some(Durability::Disk), ..Options::default() };
        assert!(refusal(&sound(), &disk).is_some_and(|sentence| sentence.contains("`disk`")));
    }
}
