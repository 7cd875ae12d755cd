//! What every part of a store shares: connections, names, clocks, the ids' salt, what this process holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{Value, cmd};
use teimoso_delivery::lanes::{Limits, MAX_LANES, MAX_URL_LANES, RESERVED_FROM_FIRST, RESERVED_FROM_MORE};
use teimoso_delivery::memory::NAMES_LAST;
use teimoso_delivery::model::{IdSpace, Millis};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::{LeaseRef, StoreError, StoreErrorKind};

use crate::error::OpenError;
use crate::found::Found;
use crate::ingress::{Held, Rules};
use crate::keys::Keys;
use crate::link::{Failure, Link, Locate};
use crate::moving::Moving;
use crate::options::{Durability, Options, TimeSource};
use crate::reply;
use crate::scripts::{Call, Script};
use crate::wake::Wake;

/// A lease of this process.
struct Leased {
    until: Millis,
    adopted: Option<Arc<Held>>,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) keys: Keys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) place: Arc<dyn Locate>,
    pub(crate) shown: String,
    /// Cycles, one after the other.
    pub(crate) work: Link,
    /// Acceptances, which may wait for a replica.
    pub(crate) accepts: Link,
    /// Queries and orders.
    pub(crate) reads: Link,
    pub(crate) wake: Wake,
    pub(crate) found: Found,
    pub(crate) durability: Durability,
    pub(crate) ingress: Rules,
    pub(crate) closed: AtomicBool,
    /// Keys given to what moves out of the public keys.
    pub(crate) moving: Moving,
    time: TimeSource,
    bounds: String,
    salt: AtomicU64,
    held: Mutex<HashMap<LeaseRef, Leased>>,
    trouble: Mutex<Option<StoreError>>,
    went_back_ms: AtomicU64,
}

/// The shared parts that are there before anything was asked.
pub(crate) struct Ports {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) place: Arc<dyn Locate>,
    pub(crate) shown: String,
}

impl Ports {
    pub(crate) fn link(&self) -> Link {
        Link::new(self.place.clone(), self.clock.clone(), self.entropy.clone())
    }
}

impl Shared {
    pub(crate) fn new(ports: Ports, work: Link, found: Found, options: &Options) -> Self {
        let (accepts, reads) = (ports.link(), ports.link().repeating());
        let Ports { clock, entropy, place, shown } = ports;
        let salt = AtomicU64::new(entropy.next_u64());
        Self {
            keys: Keys::new(&options.prefix),
            clock,
            entropy,
            place,
            shown,
            work,
            accepts,
            reads,
            wake: Wake::new(),
            durability: options.durability.unwrap_or_else(|| found.strongest()),
            found,
            ingress: Rules {
                most_bytes: options.max_entry_bytes,
                policy: options.ingress_policy.clone(),
                attempts: options.ingress_attempts,
            },
            closed: AtomicBool::new(false),
            moving: Moving::default(),
            time: options.time,
            bounds: bounds(options),
            salt,
            held: Mutex::default(),
            trouble: Mutex::default(),
            went_back_ms: AtomicU64::new(0),
        }
    }

    /// A call with what every script is told first.
    pub(crate) fn call(&self, script: &'static Script) -> Call {
        let mut call = Call::new(script, self.keys.meta());
        let time = match self.time {
            TimeSource::Redis => "redis",
            TimeSource::Caller => "caller",
        };
        call.number(self.clock.now().get()).arg(time).arg(self.bounds.as_str());
        call
    }

    /// Agrees with every other process on the salt: the first one's counts.
    pub(crate) async fn agree_on_ids(&self) -> Result<(), Failure> {
        let ours = self.salt.load(Ordering::SeqCst);
        let mut propose = cmd("HSETNX");
        propose.arg(self.keys.meta()).arg("salt").arg(format!("{ours:016x}"));
        self.reads.command(&propose).await?;
        let mut ask = cmd("HGET");
        ask.arg(self.keys.meta()).arg("salt");
        if let Value::BulkString(text) = self.reads.command(&ask).await?
            && let Ok(salt) = u64::from_str_radix(&String::from_utf8_lossy(&text), 16)
        {
            self.salt.store(salt, Ordering::SeqCst);
        }
        Ok(())
    }

    /// Refuses what is half moved in: a part of it would be taken for all of it.
    pub(crate) async fn check_whole(&self) -> Result<(), OpenError> {
        let mut ask = cmd("HEXISTS");
        ask.arg(self.keys.meta()).arg("importing");
        match self.reads.command(&ask).await {
            Ok(Value::Int(0)) => Ok(()),
            Ok(_) => Err(OpenError::refused(format!(
                "another store is half moved into the redis at {}; run the same `teimoso migrate` again to end it",
                self.shown
            ))),
            Err(failure) => Err(OpenError::connecting(&self.shown, &failure)),
        }
    }

    /// When a script that changes something last ran, by the server's clock in ms: a fleet that idles moves it on every
    /// five seconds.
    pub(crate) async fn last_moved(&self) -> Result<Option<i64>, StoreError> {
        let mut ask = cmd("HGET");
        ask.arg(self.keys.meta()).arg("now");
        reply::number(&self.reads.command(&ask).await?)
    }

    pub(crate) fn ids(&self) -> IdSpace {
        IdSpace::new(self.salt.load(Ordering::SeqCst))
    }

    /// From now on ids are those of the store that moves in.
    pub(crate) fn adopt_ids(&self, salt: u64) {
        self.salt.store(salt, Ordering::SeqCst);
    }

    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        Ok(())
    }

    // ---- what this process holds

    fn leases(&self) -> MutexGuard<'_, HashMap<LeaseRef, Leased>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases that were given to this process, and which of them came in through the public keys.
    pub(crate) fn hold(
        &self,
        leases: impl Iterator<Item = LeaseRef>,
        until: Millis,
        adopted: Vec<(LeaseRef, Arc<Held>)>,
    ) {
        let mut held = self.leases();
        held.extend(leases.map(|lease| (lease, Leased { until, adopted: None })));
        for (lease, text) in adopted {
            held.entry(lease).and_modify(|leased| leased.adopted = Some(text));
        }
    }

    pub(crate) fn hold_longer(&self, lease: LeaseRef, until: Millis) {
        self.leases().entry(lease).and_modify(|leased| leased.until = until);
    }

    pub(crate) fn let_go(&self, leases: impl Iterator<Item = LeaseRef>) {
        let mut held = self.leases();
        for lease in leases {
            held.remove(&lease);
        }
    }

    /// With what a held delivery came in, if it came in through the public keys.
    pub(crate) fn adopted(&self, lease: LeaseRef) -> Option<Arc<Held>> {
        self.leases().get(&lease)?.adopted.clone()
    }

    /// Slots this process has in use: what its leases say that have not run out.
    pub(crate) fn held(&self, now: Millis) -> usize {
        let mut held = self.leases();
        held.retain(|_, leased| leased.until > now);
        held.len()
    }

    // ---- health

    /// Remembers whether the last call of the hot path came through.
    pub(crate) fn note(&self, trouble: Option<StoreError>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = trouble;
    }

    pub(crate) fn clock_went_back(&self, by_ms: u64) {
        self.went_back_ms.store(by_ms, Ordering::SeqCst);
    }

    /// How far the server's clock went back when it last did, in ms; 0 when it never did.
    pub(crate) fn went_back_ms(&self) -> u64 {
        self.went_back_ms.load(Ordering::SeqCst)
    }

    pub(crate) fn trouble(&self) -> Option<StoreError> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// What scripts are told of the engine's bounds, so that each has one home.
fn bounds(options: &Options) -> String {
    let ms = |time: std::time::Duration| time.as_millis();
    format!(
        "{},{RESERVED_FROM_FIRST},{RESERVED_FROM_MORE},{MAX_URL_LANES},{MAX_LANES},{},{},{}",
        Limits::default().per_lane_in_flight,
        options.history_rows,
        ms(options.history),
        ms(NAMES_LAST)
    )
}

pub(crate) fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the store is closed")
}

/// The bell that most scripts answer first.
pub(crate) fn bell(value: &Value) -> Result<i64, StoreError> {
    reply::some_number(value)
}
