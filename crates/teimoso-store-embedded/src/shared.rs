//! What the threads of one store share: memory, health, and how much is under way.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use teimoso_delivery::lanes::Limits;
use teimoso_delivery::model::{IdSpace, KeyClock};
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{StoreError, StoreErrorKind};
use tokio::sync::Notify;

use crate::core::Core;

/// How the store is set up.
#[derive(Debug, Clone)]
pub struct Options {
    /// Ended deliveries are kept this long; dead letters until they are replayed or expunged.
    pub retention: Duration,
    /// Most bytes the file may take; past it the store answers "full".
    pub max_bytes: Option<u64>,
}

impl Default for Options {
    fn default() -> Self {
        Self { retention: Duration::from_secs(7 * 24 * 3600), max_bytes: None }
    }
}

/// Whether the writer can write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Health {
    Well,
    /// No room: tried again every second.
    Full,
    /// Until a restart: reading again comes from the page cache and proves nothing.
    Failed(StoreError),
}

pub(crate) struct Shared {
    pub clock: Arc<dyn Clock>,
    pub ids: IdSpace,
    pub keys: KeyClock,
    pub options: Options,
    pub limits: Limits,
    /// Something may have become claimable.
    pub changed: Notify,
    /// Settlements became durable.
    pub saved: Notify,
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
            ids,
            keys,
            options,
            limits,
            changed: Notify::new(),
            saved: Notify::new(),
            core: Mutex::new(core),
            health: RwLock::new(Health::Well),
            queued_bytes: AtomicUsize::new(0),
            unsaved: AtomicUsize::new(0),
        }
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

    /// The error that claims and accepts get now, if any.
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match self.health() {
            Health::Well => Ok(()),
            Health::Full => Err(StoreError::new(
                StoreErrorKind::Full,
                "no room left on the disk; free some, deliveries wait",
            )),
            Health::Failed(error) => Err(error),
        }
    }

    pub(crate) fn failed(&self, error: &StoreError) {
        let health = match error.kind() {
            StoreErrorKind::Full => Health::Full,
            StoreErrorKind::Busy => return,
            _ => Health::Failed(error.clone()),
        };
        *self.health.write().unwrap_or_else(PoisonError::into_inner) = health;
    }

    pub(crate) fn recovered(&self) {
        if self.health() == Health::Full {
            *self.health.write().unwrap_or_else(PoisonError::into_inner) = Health::Well;
            // Claims were refused meanwhile.
            self.changed.notify_one();
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
