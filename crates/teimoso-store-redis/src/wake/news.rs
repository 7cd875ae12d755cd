//! What a process that waits has heard, and what its last claim has seen of it.
//!
//! A bell rings in the server whenever something became claimable; scripts of our own answer what it shows. A claim that
//! came back short has seen all up to its own answer. Deliberately absent: how anything is heard.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

/// See the module.
pub(crate) struct Wake {
    news: Mutex<News>,
    changed: watch::Sender<u64>,
    /// Somebody waits.
    waiting: Notify,
    waiters: AtomicUsize,
    /// Somebody waited since it was last asked.
    waited: AtomicBool,
}

struct News {
    /// What the bell shows, and what the last short claim saw.
    shows: i64,
    seen: i64,
    /// Something may be claimable whatever the bell says.
    nudged: bool,
    /// The public keys have something to adopt.
    ingress: bool,
}

impl News {
    fn is_some(&self) -> bool {
        self.nudged || self.shows != self.seen
    }
}

/// Counts whoever waits, until it is dropped.
struct Waits<'a>(&'a Wake);

impl Drop for Waits<'_> {
    fn drop(&mut self) {
        self.0.waiters.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Wake {
    pub(crate) fn new() -> Self {
        Self {
            news: Mutex::new(News { shows: 0, seen: 0, nudged: true, ingress: true }),
            changed: watch::Sender::new(0),
            waiting: Notify::new(),
            waiters: AtomicUsize::new(0),
            waited: AtomicBool::new(false),
        }
    }

    fn news(&self) -> MutexGuard<'_, News> {
        self.news.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A script said what the bell shows.
    pub(crate) fn hear(&self, bell: i64) {
        let mut news = self.news();
        let is_later = bell > news.shows;
        news.shows = news.shows.max(bell);
        drop(news);
        if is_later {
            self.announce();
        }
    }

    /// The server was asked: what the bell shows, and whether anything is there to be claimed.
    pub(super) fn peeked(&self, bell: i64, claimable: bool) {
        let mut news = self.news();
        // It shows less after somebody emptied the server; or a script of ours was answered in the meantime.
        let shows_less = bell < news.shows;
        news.nudged |= claimable || shows_less;
        // What a script of ours told stays news: only a claim learns when to wake.
        if shows_less || news.shows == news.seen {
            (news.shows, news.seen) = (bell, bell);
        }
        let tells = news.nudged;
        drop(news);
        if tells {
            self.announce();
        }
    }

    /// A claim left nothing behind; whatever is news came after this.
    pub(crate) fn saw_all(&self, bell: i64) {
        self.hear(bell);
        self.news().seen = bell;
    }

    /// A claim is about to be made: whoever nudges from now on means the next one. Whether it should adopt first.
    pub(crate) fn begin_claim(&self) -> bool {
        let mut news = self.news();
        news.nudged = false;
        std::mem::take(&mut news.ingress)
    }

    /// The next claim adopts first.
    pub(crate) fn note_ingress(&self) {
        self.news().ingress = true;
    }

    /// Makes every wait complete until a claim has looked.
    pub(crate) fn nudge(&self) {
        self.news().nudged = true;
        self.announce();
    }

    fn announce(&self) {
        self.changed.send_modify(|version| *version += 1);
    }

    pub(super) fn has_news(&self) -> bool {
        self.news().is_some()
    }

    /// Completes when something may have become claimable.
    pub(crate) async fn wait(&self, closed: &AtomicBool) {
        let mut changed = self.changed.subscribe();
        self.waiters.fetch_add(1, Ordering::SeqCst);
        let _counted = Waits(self);
        loop {
            changed.mark_unchanged();
            if self.has_news() || closed.load(Ordering::SeqCst) {
                return;
            }
            self.waited.store(true, Ordering::SeqCst);
            self.waiting.notify_one();
            // The sender lives as long as this.
            if changed.changed().await.is_err() {
                return;
            }
        }
    }

    /// Completes when somebody begins to wait, or did since this was last awaited.
    pub(super) async fn somebody_waits(&self) {
        self.waiting.notified().await;
    }

    /// Whether somebody waits and has not been told anything.
    pub(super) fn is_waiting(&self) -> bool {
        self.waiters.load(Ordering::SeqCst) > 0 && !self.has_news()
    }

    /// Whether somebody waited since this was last asked.
    pub(super) fn has_waited(&self) -> bool {
        self.waited.swap(self.is_waiting(), Ordering::SeqCst)
    }
}
