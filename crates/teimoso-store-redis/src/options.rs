//! What a store is opened with, each with its default.

use std::time::Duration;

use teimoso_delivery::model::PolicyName;

use crate::keys::DEFAULT_PREFIX;

/// How far an acceptance must have come before it is answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Durability {
    /// Written by the server; on its disk within its own fsync policy.
    Fast,
    /// Confirmed by a replica (`WAIT`).
    Replica,
    /// On the server's disk: appendfsync always, or `WAITAOF` from Redis 7.2 on.
    Disk,
}

impl Durability {
    /// The stable name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fast => "fast",
            Self::Replica => "replica",
            Self::Disk => "disk",
        }
    }
}

/// Whose clock decides leases and due times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TimeSource {
    /// The server's `TIME`, which all workers share: the only choice when there is more than one.
    #[default]
    Redis,
    /// The caller's clock. For tests that move a clock by hand: with it there is neither a high-water mark nor
    /// grace after an outage.
    Caller,
}

/// How to open a store.
#[derive(Clone)]
pub struct Options {
    /// ACL user; wins over the URL's.
    pub user: Option<String>,
    /// Password; wins over the URL's.
    pub password: Option<String>,
    /// ACL user of the sentinels, which have their own; wins over the URL's `sentinel_user`.
    pub sentinel_user: Option<String>,
    /// Password of the sentinels; wins over the URL's `sentinel_password`.
    pub sentinel_password: Option<String>,
    /// The authorities that vouch for the certificates of servers and sentinels, in PEM, for the URLs with `rediss`;
    /// `None` stands for those that the machine trusts.
    pub authority: Option<Vec<u8>>,
    /// Prefix of the three public keys. Default `webhooks`, as in S2.
    pub prefix: String,
    /// What an acceptance waits for; `None` is the strongest that the server offers.
    pub durability: Option<Durability>,
    /// Open even where the eviction policy is `allkeys-*`, which deletes deliveries when memory is short.
    pub allow_eviction: bool,
    /// Open even where there is no append-only file, so that a restart of Redis loses what came after its last
    /// snapshot.
    pub allow_volatile: bool,
    /// Delivered and cancelled deliveries kept at most.
    pub history_rows: u32,
    /// Delivered and cancelled deliveries are kept this long.
    pub history: Duration,
    /// The policy of events that came in by RPUSH; `None` is the server's.
    pub ingress_policy: Option<PolicyName>,
    /// That policy's number of attempts: an entry of the ready list that has had so many is a replay.
    pub ingress_attempts: u32,
    /// Longest entry of the ready list in bytes; a longer one is a dead letter.
    pub max_entry_bytes: usize,
    /// Opened to move another store in or this one out: one that is half moved in is otherwise refused.
    pub moving: bool,
    /// Whose clock decides.
    pub time: TimeSource,
}

impl Options {
    /// What is worth keeping once everything is connected.
    pub(crate) fn without_secrets(&self) -> Self {
        Self { password: None, sentinel_password: None, ..self.clone() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self {
            user: None,
            password: None,
            sentinel_user: None,
            sentinel_password: None,
            authority: None,
            prefix: DEFAULT_PREFIX.to_owned(),
            durability: None,
            allow_eviction: false,
            allow_volatile: false,
            history_rows: 100_000,
            history: Duration::from_secs(24 * 3_600),
            ingress_policy: PolicyName::parse("webhook").ok(),
            ingress_attempts: 5,
            max_entry_bytes: (1 << 20) + (64 << 10),
            moving: false,
            time: TimeSource::default(),
        }
    }
}

impl std::fmt::Debug for Options {
    /// Without the passwords.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            user,
            prefix,
            durability,
            allow_eviction,
            allow_volatile,
            history_rows,
            history,
            time,
            ..
        } = self;
        f.debug_struct("Options")
            .field("user", user)
            .field("prefix", prefix)
            .field("durability", durability)
            .field("allow_eviction", allow_eviction)
            .field("allow_volatile", allow_volatile)
            .field("history_rows", history_rows)
            .field("history", history)
            .field("time", time)
            .finish_non_exhaustive()
    }
}
