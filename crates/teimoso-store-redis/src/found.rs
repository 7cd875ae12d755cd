//! What the server is and keeps, found out at start and looked at again with every connection: version, role,
//! append-only file, fsync, eviction, replicas.
//!
//! A managed server may hide its configuration: what is unknown is said to be, and promises nothing.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redis::{Cmd, Value, cmd};
use teimoso_delivery::store::{StoreError, StoreErrorKind};

use crate::error::{OpenError, OpenErrorKind};
use crate::link::{Failure, Link, Trouble};
use crate::options::{Durability, Options};
use crate::shared::Shared;
use crate::wake;

/// Oldest version: LPOP with a count.
const OLDEST: (u32, u32) = (6, 2);
const STANDALONE: &str = "standalone";
const CLUSTER: &str = "cluster";
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
    /// Replicas connected when it was asked.
    pub replicas: u32,
    /// `standalone`, `cluster` or `sentinel`, as it says it.
    pub mode: String,
}

impl Found {
    pub(crate) async fn look(link: &Link) -> Result<Self, Failure> {
        let info = text(link.command(&cmd("INFO")).await?);
        let field = |name: &str| {
            info.lines()
                .find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
                .map(|value| value.trim().to_owned())
        };
        // What it says of its append-only file holds only when that is read.
        if field("loading").is_some_and(|value| value == "1") {
            return Err(Failure::not_yet("redis is loading its data"));
        }
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
            mode: field("redis_mode").unwrap_or_else(|| STANDALONE.to_owned()),
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

    /// Refuses a server that the address is not meant for.
    pub(crate) fn check_mode(&self, is_cluster: bool) -> Result<(), OpenError> {
        let sentence = match self.mode.as_str() {
            CLUSTER if !is_cluster => "this redis is a node of a Cluster; name it redis+cluster://",
            "sentinel" => "this is a sentinel; name it redis+sentinel://host/master",
            _ => return Ok(()),
        };
        Err(OpenError::new(OpenErrorKind::Unsuitable, sentence))
    }

    /// Refuses what would lose deliveries unless it was asked for in so many words.
    pub(crate) fn check(&self, options: &Options) -> Result<(), OpenError> {
        let refused = |kind, sentence: String| Err(OpenError::new(kind, sentence));
        if !self.is_at_least(OLDEST) {
            let needed = format!("teimoso needs {}.{} or newer", OLDEST.0, OLDEST.1);
            return refused(
                OpenErrorKind::Unsuitable,
                format!("redis {} is too old; {needed}", self.version),
            );
        }
        if !self.is_master {
            let sentence = "this redis is a replica, which takes no writes; name its master";
            return refused(OpenErrorKind::Unsuitable, sentence.to_owned());
        }
        if let Some(policy) = self.eviction.as_deref().filter(|policy| policy.starts_with("allkeys-"))
            && !options.allow_eviction
        {
            let sentence = format!(
                "redis evicts any key when memory is short (maxmemory-policy {policy}), deliveries among them; \
                 set it to noeviction, or allow it explicitly"
            );
            return refused(OpenErrorKind::Evicting, sentence);
        }
        if self.append_only == Some(false) && !options.allow_volatile {
            let sentence = "redis keeps no append-only file, so its restart loses deliveries; set appendonly yes, or \
                            allow it explicitly";
            return refused(OpenErrorKind::Volatile, sentence.to_owned());
        }
        match options.durability {
            Some(level) if !self.offers(level) => {
                let needed = format!("or version {}.{}", WITH_WAITAOF.0, WITH_WAITAOF.1);
                let sentence = format!(
                    "this redis cannot give the durability `{}`: it needs appendonly yes and appendfsync always, \
                     {needed}",
                    level.name()
                );
                refused(OpenErrorKind::Unsuitable, sentence)
            }
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

/// Looked at this often even when no connection was made: a replica comes and goes, settings change.
const LOOK_EVERY: Duration = Duration::from_secs(30);

/// What was found last, and whether it still is what was asked for.
pub(crate) struct Survey {
    /// What is allowed; of the level of durability, the one that was promised at start.
    wanted: Options,
    latest: Mutex<(Arc<Found>, Option<String>)>,
}

impl Survey {
    pub(crate) fn new(found: Found, promised: Durability, options: &Options) -> Self {
        let wanted = Options { durability: Some(promised), ..options.without_secrets() };
        Self { wanted, latest: Mutex::new((Arc::new(found), None)) }
    }

    fn latest(&self) -> MutexGuard<'_, (Arc<Found>, Option<String>)> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn found(&self) -> Arc<Found> {
        self.latest().0.clone()
    }

    /// Whether the server may still be trusted with what is accepted: another one may answer than at start.
    pub(crate) fn sound(&self) -> Result<(), StoreError> {
        self.latest()
            .1
            .clone()
            .map_or(Ok(()), |sentence| Err(StoreError::new(StoreErrorKind::Busy, sentence)))
    }

    fn note(&self, found: Found) {
        let unsound = found.check(&self.wanted).err().map(|error| error.to_string());
        *self.latest() = (Arc::new(found), unsound);
    }
}

/// Looks again after every connection, and at intervals.
pub(crate) async fn keep_looking(shared: Arc<Shared>) {
    let mut connections = shared.made.subscribe();
    loop {
        tokio::select! {
            // The sender lives as long as this.
            _ = connections.changed() => {}
            () = shared.clock.sleep(LOOK_EVERY) => {}
        }
        while let Err(failure) = look_around(&shared).await {
            if !failure.trouble.comes_back() {
                break;
            }
            shared.reads.pause().await;
        }
    }
}

async fn look_around(shared: &Shared) -> Result<(), Failure> {
    shared.survey.note(Found::look(&shared.reads).await?);
    wake::sweep(shared).await
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
            mode: STANDALONE.to_owned(),
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
    fn a_server_of_another_kind_than_the_address_says_is_refused() {
        let of = |mode: &str| Found { mode: mode.to_owned(), ..sound() };
        let refusal = |mode, is_cluster| of(mode).check_mode(is_cluster).err().map(|error| error.to_string());
        assert_eq!((refusal(STANDALONE, false), refusal(CLUSTER, true)), (None, None));
        assert!(refusal(CLUSTER, false).is_some_and(|sentence| sentence.contains("redis+cluster://")));
        assert!(refusal("sentinel", false).is_some_and(|sentence| sentence.contains("redis+sentinel://")));
    }

    #[test]
    fn g1_a_server_that_keeps_less_than_was_promised_at_start_is_trusted_with_nothing_more() {
        let always = Found { fsync: Some("always".to_owned()), ..sound() };
        let survey = Survey::new(always.clone(), Durability::Disk, &Options::default());
        assert_eq!(survey.sound(), Ok(()));
        survey.note(sound());
        let unsound = survey.sound().map_err(|error| (error.kind(), error.to_string()));
        assert!(unsound.is_err_and(|(kind, text)| kind == StoreErrorKind::Busy && text.contains("`disk`")));
        assert_eq!(*survey.found(), sound());
        survey.note(always);
        assert_eq!(survey.sound(), Ok(()));
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
