//! What every part of a store shares: connections, names, clocks, the ids' salt, what this process holds.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redis::{Value, cmd};
use teimoso_delivery::lanes::{Limits, MAX_LANES, MAX_URL_LANES, RESERVED_FROM_FIRST, RESERVED_FROM_MORE};
use teimoso_delivery::memory::NAMES_LAST;
use teimoso_delivery::model::{DeliveryId, IdSpace, Key, Millis};
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::{LeaseRef, StoreError, StoreErrorKind};

use crate::codec::{self, DeliveryRecord};
use crate::error::{OpenError, OpenErrorKind};
use crate::found::{Found, Survey};
use crate::ingress::{Held, Rules};
use crate::keys::Keys;
use crate::link::{Address, Failure, Link, Locate, Made};
use crate::moving::Moving;
use crate::options::{Durability, Options, TimeSource};
use crate::outlying::Outlying;
use crate::reply;
use crate::scripts::{Call, Script};
use crate::wake::Wake;

/// A lease of this process.
pub(crate) struct Leased {
    until: Millis,
    /// As it was claimed.
    pub(crate) record: DeliveryRecord,
    /// With what it came in, if it came in through the public keys.
    pub(crate) adopted: Option<Arc<Held>>,
}

/// See the module.
pub(crate) struct Shared {
    pub(crate) keys: Keys,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) place: Arc<dyn Locate>,
    /// Counts the connections that were made.
    pub(crate) made: Made,
    pub(crate) shown: String,
    /// Cycles, one after the other.
    pub(crate) work: Link,
    /// Acceptances, which may wait for a replica.
    pub(crate) accepts: Link,
    /// Queries and orders.
    pub(crate) reads: Link,
    pub(crate) wake: Wake,
    pub(crate) survey: Survey,
    /// In a Cluster: the way to the public keys that are in other slots than ours.
    pub(crate) outlying: Option<Outlying>,
    pub(crate) durability: Durability,
    pub(crate) ingress: Rules,
    pub(crate) closed: AtomicBool,
    /// Keys given to what moves out of the public keys.
    pub(crate) moving: Moving,
    time: TimeSource,
    bounds: Vec<u8>,
    salt: AtomicU64,
    held: Mutex<HashMap<LeaseRef, Leased>>,
    trouble: Mutex<Option<StoreError>>,
    went_back_ms: AtomicU64,
    /// How far Redis' clock is ahead of ours, in ms, as the last cycle saw it.
    shift: AtomicI64,
}

/// The shared parts that are there before anything was asked.
pub(crate) struct Ports {
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) address: Address,
    keys: Keys,
    place: Arc<dyn Locate>,
    made: Made,
}

impl Ports {
    pub(crate) fn new(
        address: Address,
        prefix: &str,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
    ) -> Self {
        let keys = Keys::new(prefix, address.is_cluster());
        let place = address.place_of(keys.ready());
        Self { clock, entropy, address, keys, place, made: Made::new(0) }
    }

    /// To the server that has everything of ours.
    pub(crate) fn link(&self) -> Link {
        self.link_to(self.place.clone())
    }

    fn link_to(&self, place: Arc<dyn Locate>) -> Link {
        Link::new(place, self.clock.clone(), self.entropy.clone(), self.made.clone())
    }

    fn outlying(&self) -> Option<Outlying> {
        let to = |key: &str| self.link_to(self.address.place_of(key));
        self.address.is_cluster().then(|| Outlying {
            waiting: to(self.keys.public_waiting()),
            buried: to(self.keys.public_buried()),
        })
    }
}

impl Shared {
    pub(crate) fn new(ports: Ports, work: Link, found: Found, options: &Options) -> Self {
        let (accepts, reads, outlying) = (ports.link(), ports.link().repeating(), ports.outlying());
        let Ports { clock, entropy, address, keys, place, made } = ports;
        let salt = AtomicU64::new(entropy.next_u64());
        let durability = options.durability.unwrap_or_else(|| found.strongest());
        let shown = address.shown().to_owned();
        Self {
            keys,
            clock,
            entropy,
            place,
            made,
            shown,
            work,
            accepts,
            reads,
            wake: Wake::new(),
            durability,
            survey: Survey::new(found, durability, options),
            outlying,
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
            shift: AtomicI64::new(0),
        }
    }

    /// A call with what every script is told first.
    pub(crate) fn call(&self, script: &'static Script) -> Call {
        let mut call = Call::new(script, self.keys.declared());
        let time = match self.time {
            TimeSource::Redis => "redis",
            TimeSource::Caller => "caller",
        };
        call.number(self.clock.now().get()).arg(time).arg(self.bounds.as_slice());
        call
    }

    /// The layout of what is kept, if it is another one than this version's.
    pub(crate) async fn strange_layout(&self) -> Result<Option<String>, Failure> {
        let mut ask = cmd("HMGET");
        ask.arg(self.keys.meta()).arg("salt").arg("layout");
        let Value::Array(found) = self.reads.command(&ask).await? else { return Ok(None) };
        let text = |value: &Value| match value {
            Value::BulkString(text) => Some(String::from_utf8_lossy(text).into_owned()),
            _ => None,
        };
        // The first layout did not say what it is.
        let is_used = found.first().and_then(text).is_some();
        let layout = found.get(1).and_then(text).or_else(|| is_used.then(|| "1".to_owned()));
        Ok(layout.filter(|layout| layout != codec::LAYOUT))
    }

    /// Agrees with every other process on the salt: the first one's counts.
    pub(crate) async fn agree_on_ids(&self) -> Result<(), Failure> {
        let ours = self.salt.load(Ordering::SeqCst);
        let mut ask = cmd("HMGET");
        ask.arg(self.keys.meta()).arg("salt").arg("layout");
        let agreed = match self.reads.command(&ask).await? {
            Value::Array(found) => found.into_iter().all(|one| one != Value::Nil),
            _ => false,
        };
        // A server whose memory is full takes no proposal, and needs none.
        let proposed = if agreed { 0 } else { 2 };
        for (field, value) in [("salt", format!("{ours:016x}")), ("layout", codec::LAYOUT.to_owned())]
            .into_iter()
            .take(proposed)
        {
            let mut propose = cmd("HSETNX");
            propose.arg(self.keys.meta()).arg(field).arg(value);
            self.reads.command(&propose).await?;
        }
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
            Ok(_) => Err(OpenError::new(
                OpenErrorKind::Unsuitable,
                format!(
                    "another store is half moved into the redis at {}; run the same `teimoso migrate` again to end it",
                    self.shown
                ),
            )),
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

    /// The key under which a delivery and its event are kept.
    pub(crate) fn key_of(&self, id: DeliveryId) -> Option<Key> {
        codec::event_key(self.ids().delivery_key(id)?)
    }

    /// The id of the delivery that is kept under this key.
    pub(crate) fn delivery_id(&self, event: Key) -> DeliveryId {
        self.ids().delivery(codec::delivery_key(event))
    }

    pub(crate) fn check_open(&self) -> Result<(), StoreError> {
        if self.closed.load(Ordering::SeqCst) {
            return Err(closed());
        }
        Ok(())
    }

    // ---- what this process holds

    pub(crate) fn leases(&self) -> MutexGuard<'_, HashMap<LeaseRef, Leased>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Leases that were given to this process, and which of them came in through the public keys.
    pub(crate) fn hold(
        &self,
        leases: Vec<(LeaseRef, DeliveryRecord)>,
        until: Millis,
        adopted: Vec<(LeaseRef, Arc<Held>)>,
    ) {
        let mut held = self.leases();
        let leased = |(lease, record)| (lease, Leased { until, record, adopted: None });
        held.extend(leases.into_iter().map(leased));
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

    /// Slots this process has in use: what its leases say that have not run out.
    pub(crate) fn held(&self, now: Millis) -> usize {
        let mut held = self.leases();
        held.retain(|_, leased| leased.until > now);
        held.len()
    }

    // ---- Redis' clock

    pub(crate) fn note_shift(&self, ms: i64) {
        self.shift.store(ms, Ordering::SeqCst);
    }

    /// An instant of ours, on Redis' clock.
    pub(crate) fn at_redis(&self, at: Millis) -> Millis {
        Millis::new(at.get().saturating_add_signed(self.shift.load(Ordering::SeqCst)))
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
fn bounds(options: &Options) -> Vec<u8> {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let counts = [
        Limits::default().per_lane_in_flight,
        number(RESERVED_FROM_FIRST),
        number(RESERVED_FROM_MORE),
        number(MAX_URL_LANES),
        number(MAX_LANES),
    ];
    let mut out: Vec<u8> = counts.into_iter().flat_map(u32::to_be_bytes).collect();
    let ms = |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    // Lua's numbers hold whole ones up to 2^53.
    for long in [options.history_rows.into(), ms(options.history), ms(NAMES_LAST)] {
        out.extend(long.min(1 << 53).to_be_bytes());
    }
    out
}

pub(crate) fn closed() -> StoreError {
    StoreError::new(StoreErrorKind::Closed, "the store is closed")
}

/// The bell that most scripts answer first.
pub(crate) fn bell(value: &Value) -> Result<i64, StoreError> {
    reply::some_number(value)
}
