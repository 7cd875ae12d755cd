//! Producers in three shapes, and the ledger of what was acknowledged to them.
//!
//! Over the API an event is repeated under its key until it is accepted. A push has no key: one whose answer was lost
//! may have been made, so it is not repeated and not counted as acknowledged.

pub mod event;
mod shapes;

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use crate::trouble::{Result, Trouble, locked};
use event::Event;

/// How an event was handed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shape {
    /// `POST /v1/events`, or a line of a batch.
    Api,
    /// `RPUSH webhooks:prontos`.
    Push,
    /// `teimoso send URL --store redis://…`.
    Send,
}

/// Where events go in.
#[derive(Debug, Clone)]
pub struct Doors {
    /// The API; without one its producers push.
    pub api: Option<SocketAddr>,
    /// The Redis.
    pub redis: String,
    /// The binary of `send`.
    pub teimoso: PathBuf,
    /// Where events are to be delivered.
    pub receiver: SocketAddr,
}

/// What producers know.
#[derive(Debug, Default, Clone)]
pub struct Ledger {
    /// By number: how, and the id that was given.
    pub acknowledged: BTreeMap<u64, (Shape, String)>,
    /// Pushes whose answer was lost.
    pub open: BTreeSet<u64>,
    /// Answers that must not be.
    pub wrong: Vec<String>,
}

/// What they share.
#[derive(Debug)]
struct Work {
    doors: Doors,
    seed: u64,
    /// Between two events of a producer that sends one at a time.
    pause: Duration,
    next: AtomicU64,
    stopped: AtomicBool,
    ledger: Mutex<Ledger>,
}

impl Work {
    fn next(&self) -> Event {
        Event::new(self.seed, self.next.fetch_add(1, Ordering::Relaxed))
    }

    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }

    /// A second acknowledgement must name the same event.
    fn acknowledge(&self, event: Event, shape: Shape, id: &str) {
        let mut ledger = locked(&self.ledger);
        let entry = ledger.acknowledged.entry(event.number);
        let (_, first) = entry.or_insert_with(|| (shape, id.to_owned()));
        if first != id {
            let sentence = format!("event {} was acknowledged as {first} and as {id}", event.number);
            ledger.wrong.push(sentence);
        }
    }

    fn leave_open(&self, event: Event) {
        locked(&self.ledger).open.insert(event.number);
    }

    fn complain(&self, sentence: String) {
        locked(&self.ledger).wrong.push(sentence);
    }
}

/// Producers at work.
#[derive(Debug)]
pub struct Producers {
    work: Arc<Work>,
    threads: Vec<JoinHandle<()>>,
}

/// What one of several producers does until it is stopped.
type Task = fn(&Work);

impl Producers {
    /// So many events per second from all together, as far as the answers let them: three tenths one by one over the
    /// API, three in batches, three pushed, and what `send` manages.
    pub fn start(doors: Doors, seed: u64, rate: u32) -> Self {
        let tasks: [Task; 4] = match doors.api {
            Some(_) => [shapes::singles, shapes::batches, shapes::pushes, shapes::sends],
            None => [shapes::pushes, shapes::pushes, shapes::pushes, shapes::sends],
        };
        let work = Arc::new(Work {
            doors,
            seed,
            pause: Duration::from_secs_f64(1.0 / (f64::from(rate) * 0.32)),
            next: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            ledger: Mutex::default(),
        });
        let threads = tasks.map(|task| {
            let work = Arc::clone(&work);
            std::thread::spawn(move || task(&work))
        });
        Self { work, threads: threads.into() }
    }

    /// Lets them finish what they have begun, which over the API is until it is acknowledged.
    ///
    /// # Errors
    /// One of them panicked.
    pub fn stop(self) -> Result<Ledger> {
        self.work.stopped.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().map_err(|_| Trouble::new("a producer panicked"))?;
        }
        let ledger = locked(&self.work.ledger).clone();
        Ok(ledger)
    }
}
