//! What struck whom and when: what the account holds repetitions against.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::Serialize;

use crate::trouble::locked;

/// A kind of strike.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// SIGKILL of a sender.
    KillSender,
    /// SIGKILL of redis-server, and a start on what it left.
    KillRedis,
    /// One connection to Redis is ended.
    CutOne,
    /// All connections to Redis are ended.
    CutAll,
    /// SIGSTOP for less than a second.
    StopShortly,
    /// SIGSTOP beyond the lease, then SIGCONT.
    Stop,
    /// Nothing gets through between a sender and Redis, beyond the lease.
    Hole,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::KillSender,
        Self::KillRedis,
        Self::CutOne,
        Self::CutAll,
        Self::StopShortly,
        Self::Stop,
        Self::Hole,
    ];

    /// In words.
    pub const fn label(self) -> &'static str {
        match self {
            Self::KillSender => "kill -9 of a sender",
            Self::KillRedis => "kill -9 of redis-server",
            Self::CutOne => "one connection cut",
            Self::CutAll => "all connections cut",
            Self::StopShortly => "a sender stopped shortly",
            Self::Stop => "a sender stopped beyond its lease",
            Self::Hole => "a sender partitioned beyond its lease",
        }
    }
}

/// One strike.
#[derive(Debug, Clone, Copy)]
pub struct Strike {
    /// What.
    pub kind: Kind,
    /// From.
    pub begin: Instant,
    /// To.
    pub end: Instant,
    /// The sender's process; `None` when it was Redis or its connections.
    pub whom: Option<u32>,
}

/// All strikes so far.
#[derive(Debug, Default)]
pub struct Log {
    strikes: Mutex<Vec<Strike>>,
    revived: AtomicU64,
}

impl Log {
    /// Notes one.
    pub fn add(&self, strike: Strike) {
        locked(&self.strikes).push(strike);
    }

    /// Notes senders that ended by themselves.
    pub fn revived(&self, count: u64) {
        self.revived.fetch_add(count, Ordering::Relaxed);
    }

    /// All strikes, by their ends.
    pub fn strikes(&self) -> Vec<Strike> {
        locked(&self.strikes).clone()
    }

    /// How many senders ended by themselves: one that is started while Redis is away says so and ends.
    pub fn ended_by_themselves(&self) -> u64 {
        self.revived.load(Ordering::Relaxed)
    }
}
