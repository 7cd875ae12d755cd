//! Names to addresses: one lookup at a time per name, few in all, answers kept briefly (G9); absent: which addresses
//! may be used, and any cache of failures, which would make a retry pointless.

use std::collections::HashMap;
use std::collections::hash_map::Entry as MapEntry;
use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Semaphore, watch};
use tokio::time::Instant;

/// Lookups that run at the same time, at most (G9). As each name is looked up once at a time, no lane holds more than
/// one of them.
pub const LOOKUPS_MAX: usize = 32;

/// How long an answer is used again (G9).
pub const ANSWER_KEPT: Duration = Duration::from_secs(5);

/// Names whose answers are kept at the same time, at most; beyond that, answers are used once.
pub const NAMES_KEPT_MAX: usize = 4096;

/// What [`Resolve::resolve`] returns.
pub type Resolving = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// The port behind which names become addresses.
pub trait Resolve: Send + Sync + 'static {
    /// Looks up every address of a host name, in order of preference. The transport calls it for names only, never
    /// for address literals, and bounds the waiting itself.
    fn resolve(&self, host: &str) -> Resolving;
}

/// The machine's own resolver (`getaddrinfo`): hosts file, search domains and all.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemResolver;

impl Resolve for SystemResolver {
    fn resolve(&self, host: &str) -> Resolving {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// A lookup that failed; shared by all who waited for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LookupError {
    pub(crate) words: Arc<str>,
}

type Answer = Result<Arc<[IpAddr]>, LookupError>;

/// Single-flight lookups over a [`Resolve`]. Clones share everything.
#[derive(Clone)]
pub(crate) struct Resolver {
    shared: Arc<Shared>,
}

struct Shared {
    port: Box<dyn Resolve>,
    slots: Semaphore,
    names: Mutex<HashMap<String, Entry>>,
}

enum Entry {
    Looking(watch::Receiver<Option<Answer>>),
    Known { addresses: Arc<[IpAddr]>, until: Instant },
}

impl Resolver {
    pub(crate) fn new(port: Box<dyn Resolve>) -> Self {
        let names = Mutex::new(HashMap::new());
        Self { shared: Arc::new(Shared { port, slots: Semaphore::new(LOOKUPS_MAX), names }) }
    }

    /// The addresses of a name, never empty. Dropping the future abandons the waiting, not the lookup: others may
    /// wait for it, and the system's resolver cannot be interrupted anyway.
    pub(crate) async fn lookup(&self, host: &str) -> Answer {
        let mut waiting = match self.known_or_looking(host) {
            Ok(addresses) => return Ok(addresses),
            Err(waiting) => waiting,
        };
        let answer = waiting.wait_for(Option::is_some).await.ok().and_then(|answer| answer.clone());
        answer.unwrap_or_else(|| {
            // The lookup died with its runtime, or the port panicked: let the next caller start afresh.
            self.shared.forget(host, &waiting);
            Err(LookupError { words: "the lookup was stopped".into() })
        })
    }

    fn known_or_looking(&self, host: &str) -> Result<Arc<[IpAddr]>, watch::Receiver<Option<Answer>>> {
        let mut names = self.shared.names();
        match names.get(host) {
            Some(Entry::Known { addresses, until }) if Instant::now() < *until => {
                return Ok(addresses.clone());
            }
            Some(Entry::Looking(waiting)) => return Err(waiting.clone()),
            Some(Entry::Known { .. }) | None => {}
        }
        let (answer, waiting) = watch::channel(None);
        names.insert(host.to_owned(), Entry::Looking(waiting.clone()));
        drop(names);
        tokio::spawn(look_up(self.shared.clone(), host.to_owned(), answer));
        Err(waiting)
    }
}

async fn look_up(shared: Arc<Shared>, host: String, answer: watch::Sender<Option<Answer>>) {
    let found = match shared.slots.acquire().await {
        Ok(_slot) => shared.port.resolve(&host).await,
        Err(_closed) => return,
    };
    let found = match found {
        Ok(addresses) if addresses.is_empty() => Err(LookupError { words: "it has no address".into() }),
        Ok(addresses) => Ok(Arc::from(addresses)),
        Err(error) => Err(LookupError { words: lookup_words(&error).into() }),
    };
    shared.keep(&host, &found);
    answer.send_replace(Some(found));
}

impl Shared {
    fn names(&self) -> MutexGuard<'_, HashMap<String, Entry>> {
        // Every critical section leaves the map whole, so a panic elsewhere does not spoil it.
        self.names.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn keep(&self, host: &str, found: &Answer) {
        let now = Instant::now();
        let mut names = self.names();
        names.remove(host);
        if names.len() >= NAMES_KEPT_MAX {
            names.retain(|_, entry| match entry {
                Entry::Known { until, .. } => now < *until,
                Entry::Looking(_) => true,
            });
        }
        if let Ok(addresses) = found
            && names.len() < NAMES_KEPT_MAX
        {
            let entry = Entry::Known { addresses: addresses.clone(), until: now + ANSWER_KEPT };
            names.insert(host.to_owned(), entry);
        }
    }

    fn forget(&self, host: &str, dead: &watch::Receiver<Option<Answer>>) {
        if let MapEntry::Occupied(entry) = self.names().entry(host.to_owned())
            && matches!(entry.get(), Entry::Looking(waiting) if waiting.same_channel(dead))
        {
            entry.remove();
        }
    }
}

/// `getaddrinfo` failures arrive as "failed to lookup address information: …"; only the end says something.
fn lookup_words(error: &io::Error) -> String {
    let text = error.to_string();
    let end = text.rsplit(": ").next().unwrap_or(&text);
    end.to_lowercase()
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use tokio::sync::Notify;

    use super::*;

    /// Answers when told to; counts what it was asked and how much at once.
    #[derive(Default)]
    struct Scripted {
        asked: AtomicUsize,
        running: AtomicUsize,
        running_max: AtomicUsize,
        go: Notify,
    }

    struct Port(Arc<Scripted>);

    impl Resolve for Port {
        fn resolve(&self, host: &str) -> Resolving {
            let (script, host) = (self.0.clone(), host.to_owned());
            Box::pin(async move {
                script.asked.fetch_add(1, Ordering::Relaxed);
                let running = script.running.fetch_add(1, Ordering::Relaxed) + 1;
                script.running_max.fetch_max(running, Ordering::Relaxed);
                script.go.notified().await;
                script.running.fetch_sub(1, Ordering::Relaxed);
                match host.as_str() {
                    "empty.test" => Ok(vec![]),
                    "broken.test" => Err(io::Error::other(
                        "failed to lookup address information: Name or service not known",
                    )),
                    _ => Ok(vec!["192.0.2.7".parse().unwrap()]),
                }
            })
        }
    }

    fn resolver() -> (Arc<Scripted>, Resolver) {
        let script = Arc::new(Scripted::default());
        (script.clone(), Resolver::new(Box::new(Port(script))))
    }

    /// Runs every other task until nothing moves; on this single-threaded runtime a few turns are plenty.
    async fn settle() {
        for _ in 0..200 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn g9_one_lookup_serves_all_who_ask_for_the_same_name() {
        let (script, resolver) = resolver();
        let waiting: Vec<_> = (0..10)
            .map(|_| {
                let resolver = resolver.clone();
                tokio::spawn(async move { resolver.lookup("a.test").await })
            })
            .collect();
        settle().await;
        assert_eq!(script.asked.load(Ordering::Relaxed), 1);
        script.go.notify_waiters();
        for task in waiting {
            assert_eq!(task.await.unwrap().unwrap().as_ref(), ["192.0.2.7".parse::<IpAddr>().unwrap()]);
        }
        assert!(resolver.lookup("a.test").await.is_ok(), "kept for 5 s");
        assert_eq!(script.asked.load(Ordering::Relaxed), 1);
    }

    #[tokio::test]
    async fn g9_at_most_32_lookups_run_at_once() {
        let (script, resolver) = resolver();
        let waiting: Vec<_> = (0..100)
            .map(|n| {
                let resolver = resolver.clone();
                tokio::spawn(async move { resolver.lookup(&format!("n{n}.test")).await })
            })
            .collect();
        while waiting.iter().any(|task| !task.is_finished()) {
            settle().await;
            script.go.notify_waiters();
        }
        assert_eq!(script.asked.load(Ordering::Relaxed), 100);
        assert_eq!(script.running_max.load(Ordering::Relaxed), LOOKUPS_MAX);
    }

    #[tokio::test]
    async fn a_failure_is_shared_but_not_kept() {
        let (script, resolver) = resolver();
        for asked in 1..=2 {
            script.go.notify_one();
            let error = resolver.lookup("broken.test").await.unwrap_err();
            assert_eq!(&*error.words, "name or service not known");
            assert_eq!(script.asked.load(Ordering::Relaxed), asked);
        }
        script.go.notify_one();
        assert_eq!(&*resolver.lookup("empty.test").await.unwrap_err().words, "it has no address");
    }

    #[tokio::test]
    async fn a_waiter_that_gives_up_takes_nobody_with_it() {
        let (script, resolver) = resolver();
        let first = tokio::spawn({
            let resolver = resolver.clone();
            async move { resolver.lookup("a.test").await }
        });
        settle().await;
        let second = tokio::spawn({
            let resolver = resolver.clone();
            async move { resolver.lookup("a.test").await }
        });
        settle().await;
        first.abort();
        settle().await;
        script.go.notify_waiters();
        assert!(second.await.unwrap().is_ok());
        assert_eq!(script.asked.load(Ordering::Relaxed), 1);
    }

    struct Immediate;

    impl Resolve for Immediate {
        fn resolve(&self, _: &str) -> Resolving {
            Box::pin(async { Ok(vec!["192.0.2.7".parse().unwrap()]) })
        }
    }

    #[tokio::test]
    async fn g11_answers_kept_are_bounded() {
        let resolver = Resolver::new(Box::new(Immediate));
        for n in 0..NAMES_KEPT_MAX + 10 {
            assert!(resolver.lookup(&format!("n{n}.test")).await.is_ok());
        }
        assert_eq!(resolver.shared.names().len(), NAMES_KEPT_MAX);
    }

    struct Panicking;

    impl Resolve for Panicking {
        fn resolve(&self, _: &str) -> Resolving {
            Box::pin(async { panic!("a broken port") })
        }
    }

    #[tokio::test]
    async fn a_lookup_that_dies_leaves_nothing_behind() {
        let resolver = Resolver::new(Box::new(Panicking));
        assert_eq!(&*resolver.lookup("a.test").await.unwrap_err().words, "the lookup was stopped");
        assert!(resolver.shared.names().is_empty());
    }

    #[tokio::test]
    async fn the_system_resolver_knows_this_machine() {
        let found = SystemResolver.resolve("localhost").await.unwrap();
        assert!(!found.is_empty() && found.iter().all(IpAddr::is_loopback), "{found:?}");
    }
}
