//! Producers and the consumer, the same for both stores.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use bytes::Bytes;
use tokio::runtime::Runtime;
use tokio::task::LocalSet;

use super::Subject;
use crate::clock;
use crate::trouble::{Doing, Result};

/// Events of one claim.
const CLAIM: usize = 64;
/// Batches that may be ended and not yet durable.
const UNSAVED: usize = 8;

/// What is to be done.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// How many events.
    pub events: u64,
    /// From how many producers.
    pub producers: usize,
    /// Whether they are claimed and ended, too.
    pub cycle: Option<Cycle>,
}

/// How events end.
#[derive(Debug, Clone, Copy)]
pub struct Cycle {
    /// With a record of each attempt, every tenth event after a second one.
    pub log: bool,
}

/// What was done.
#[derive(Debug)]
pub struct Done {
    /// How many events.
    pub events: u64,
    /// In what time.
    pub took: Duration,
    /// From an event's handing over to its durability, in microseconds, sorted.
    pub latencies: Vec<u64>,
}

impl Done {
    /// Events per second.
    pub fn rate(&self) -> f64 {
        self.events as f64 / self.took.as_secs_f64().max(f64::EPSILON)
    }
}

/// Does it; the store is dropped afterwards.
///
/// # Errors
/// When the store fails.
pub fn drive<S: Subject>(runtime: &Runtime, subject: S, payload: &Bytes, load: Load) -> Result<Done> {
    let subject = Rc::new(subject);
    let left = Rc::new(Cell::new(load.events));
    let latencies = Rc::new(RefCell::new(Vec::new()));
    let began = clock::now();
    LocalSet::new().block_on(runtime, async {
        let mut tasks = Vec::new();
        for _ in 0..load.producers {
            let (subject, left, latencies) = (Rc::clone(&subject), Rc::clone(&left), Rc::clone(&latencies));
            tasks.push(tokio::task::spawn_local(produce(subject, payload.clone(), left, latencies)));
        }
        if let Some(Cycle { log }) = load.cycle {
            tasks.push(tokio::task::spawn_local(consume(Rc::clone(&subject), load.events, log)));
        }
        for task in tasks {
            task.await.doing("wait for a task")??;
        }
        Ok(())
    })?;
    let took = began.elapsed();
    let mut latencies = latencies.take();
    latencies.sort_unstable();
    Ok(Done { events: load.events, took, latencies })
}

async fn produce<S: Subject>(
    subject: Rc<S>,
    payload: Bytes,
    left: Rc<Cell<u64>>,
    latencies: Rc<RefCell<Vec<u64>>>,
) -> Result<()> {
    while let Some(fewer) = left.get().checked_sub(1) {
        left.set(fewer);
        let began = clock::now();
        subject.enqueue(&payload).await?;
        let micros = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
        latencies.borrow_mut().push(micros);
    }
    Ok(())
}

async fn consume<S: Subject>(subject: Rc<S>, events: u64, log: bool) -> Result<()> {
    let (mut ended, mut unsaved) = (0, VecDeque::new());
    while ended < events {
        let items = subject.claim(CLAIM).await?;
        if items.is_empty() {
            subject.wait().await;
            continue;
        }
        let batch = subject.end(items, log).await?;
        ended += batch.count;
        unsaved.push_back(batch.saved);
        if unsaved.len() > UNSAVED
            && let Some(oldest) = unsaved.pop_front()
        {
            oldest.await?;
        }
    }
    for saved in unsaved {
        saved.await?;
    }
    Ok(())
}
