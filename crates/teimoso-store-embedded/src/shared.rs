//! What the threads of one store share: memory, health, and how much is under way.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use teimoso_delivery::lanes::Limits;
use teimoso_delivery::model::{IdSpace, KeyClock};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{StoreError, StoreErrorKind};
use tokio::sync::Notify;

use crate::core::Core;
use crate::error::full;

/// How the store is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ended deliveries are kept this long; dead letters until they are replayed or expunged.
    pub retention: Duration,
    /// Most bytes the file may take; past it the store answers "full".
    pub max_bytes: Option<u64>,
    /// Opened to move another store in: one that is half moved in is otherwise refused.
    pub moving: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { retention: Duration::from_secs(7 * 24 * 3600), max_bytes: None, moving: false }
    }
}

/// Whether the writer can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// No room for events. What was accepted goes on being delivered.
    Crowded,
    /// No room even for settlements, which wait: tried again every second.
    Full,
    /// Until a restart: reading again comes from the page cache and proves nothing.
    Failed(StoreError),
}

pub(crate) struct Shared {
    pub clock: Arc<dyn Clock>,
    pub keys: KeyClock,
    pub options: Options,
    pub limits: Limits,
    /// Something may have become claimable.
    pub changed: Notify,
    /// Settlements became durable.
    pub saved: Notify,
    salt: AtomicU64,
    core: Mutex<Core>,
    health: RwLock<Health>,
    queued_bytes: AtomicUsize,
    unsaved: AtomicUsize,
}

impl Shared {
    pub(crate) fn new(
        clock: Arc<dyn Clock>,
        ids: IdSpace,
        keys: KeyClock,
        options: Options,
        limits: Limits,
        core: Core,
    ) -> Self {
        Self {
            clock,
            keys,
            options,
            limits,
            changed: Notify::new(),
            saved: Notify::new(),
            salt: AtomicU64::new(ids.salt()),
            core: Mutex::new(core),
            health: RwLock::new(Health::Well),
            queued_bytes: AtomicUsize::new(0),
            unsaved: AtomicUsize::new(0),
        }
    }

    /// What ids are made with: this store's own, or that of the store that moved in.
    pub(crate) fn ids(&self) -> IdSpace {
        IdSpace::new(self.salt.load(Ordering::SeqCst))
    }

    /// From now on ids are those of the store that moves in.
    pub(crate) fn adopt_ids(&self, ids: IdSpace) {
        self.salt.store(ids.salt(), Ordering::SeqCst);
    }

    /// Something may have become claimable. Every engine that waits hears it; if none does, the next one
    /// to wait hears it at once.
    pub(crate) fn wake_engines(&self) {
        self.changed.notify_waiters();
        self.changed.notify_one();
    }

    /// The shared memory. A panic elsewhere leaves it consistent enough to go on: every change is made
    /// by one short, non-panicking step.
    pub(crate) fn core(&self) -> MutexGuard<'_, Core> {
        self.core.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn health(&self) -> Health {
        self.health.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The error that claims and orders get now, if any.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.health() {
            Health::Well | Health::Crowded => Ok(()),
            Health::Full => Err(full()),
            Health::Failed(error) => Err(error),
        }
    }

    /// The error that would meet an event now, if any.
    pub(crate) fn check_room(&self) -> Result<(), StoreError> {
        match self.health() {
            Health::Crowded => Err(full()),
            _ => self.check(),
        }
    }

    pub(crate) fn failed(&self, error: &StoreError) {
        match error.kind() {
            StoreErrorKind::Full => self.set_health(Health::Full),
            StoreErrorKind::Busy => {}
            _ => self.set_health(Health::Failed(error.clone())),
        }
    }

    pub(crate) fn set_health(&self, health: Health) {
        let before =
            std::mem::replace(&mut *self.health.write().unwrap_or_else(PoisonError::into_inner), health);
        if before != Health::Well {
            // Claims may have been refused meanwhile.
            self.wake_engines();
        }
    }

    /// Reserves room in the writer's queue; `false` when there is none.
    pub(crate) fn note_queued(&self, bytes: usize, most: usize) -> bool {
        let before = self.queued_bytes.fetch_add(bytes, Ordering::Relaxed);
        if before > 0 && before + bytes > most {
            self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
            return false;
        }
        true
    }

    pub(crate) fn note_taken(&self, bytes: usize) {
        self.queued_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(crate) fn note_unsaved(&self, settlements: usize) {
        self.unsaved.fetch_add(settlements, Ordering::Relaxed);
    }

    pub(crate) fn note_saved(&self, settlements: usize) {
        self.unsaved.fetch_sub(settlements, Ordering::Relaxed);
        self.saved.notify_waiters();
    }

    pub(crate) fn unsaved(&self) -> usize {
        self.unsaved.load(Ordering::Relaxed)
    }
}
