//! The bare append log: one writer thread that gathers what is queued, writes it in one piece and syncs once, and a
//! hash index to read by. The ceiling of what any store on this disk can do.
//!
//! Deliberately absent: whatever makes a store of it: recovery, queries, leases, lanes, expiry.

use std::cell::Cell;
use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use bytes::Bytes;
use tokio::sync::{Notify, oneshot};

use super::{Ended, Subject};
use crate::trouble::{Doing, Result, Trouble};

/// Operations of one sync at most.
const TOGETHER: usize = 4_096;
/// Tag, id, length, checksum.
const HEAD_BYTES: usize = 1 + 8 + 4 + 8;
/// What an attempt's record takes.
const ATTEMPT: [u8; 40] = [b'a'; 40];

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Event = 1,
    Attempt = 2,
    Again = 3,
    End = 4,
}

struct Op {
    records: Vec<(Kind, u64, Bytes)>,
    saved: oneshot::Sender<()>,
}

#[derive(Default)]
struct Index {
    /// Where an event's payload is, how long, and how often it was put back.
    events: HashMap<u64, (u64, usize, bool)>,
    due: VecDeque<u64>,
}

struct Shared {
    index: Mutex<Index>,
    changed: Notify,
}

impl Shared {
    fn index(&self) -> MutexGuard<'_, Index> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An open log.
pub struct RawLog {
    shared: Arc<Shared>,
    writer: Option<(Sender<Op>, JoinHandle<Result<()>>)>,
    reader: File,
    next: Cell<u64>,
}

/// A claimed event.
pub struct Item {
    id: u64,
    again: bool,
}

impl RawLog {
    /// Makes an empty one.
    ///
    /// # Errors
    /// When the file cannot be made.
    pub fn create(path: &Path) -> Result<Self> {
        let file = File::create_new(path).doing("make a log")?;
        let reader = File::open(path).doing("open a log")?;
        let shared = Arc::new(Shared { index: Mutex::default(), changed: Notify::new() });
        let (writer, ops) = channel();
        let writing = Arc::clone(&shared);
        let thread = std::thread::spawn(move || write_all(file, &ops, &writing));
        Ok(Self { shared, writer: Some((writer, thread)), reader, next: Cell::new(0) })
    }

    fn append(&self, records: Vec<(Kind, u64, Bytes)>) -> Result<oneshot::Receiver<()>> {
        let (saved, answer) = oneshot::channel();
        let op = Op { records, saved };
        let sent = self.writer.as_ref().is_some_and(|(writer, _)| writer.send(op).is_ok());
        if sent { Ok(answer) } else { Err(Trouble::new("the log's writer is gone")) }
    }

    /// Reads a payload and checks it.
    fn read(&self, at: u64, length: usize) -> Result<()> {
        let mut bytes = vec![0; HEAD_BYTES + length];
        self.reader.read_exact_at(&mut bytes, at).doing("read a log")?;
        let (head, payload) = bytes.split_at(HEAD_BYTES);
        let intact = head.ends_with(&checksum(payload).to_le_bytes());
        if intact { Ok(()) } else { Err(Trouble::new("a record of the log is damaged")) }
    }
}

impl Drop for RawLog {
    fn drop(&mut self) {
        if let Some((ops, thread)) = self.writer.take() {
            drop(ops);
            let _ended = thread.join();
        }
    }
}

fn write_all(mut file: File, ops: &Receiver<Op>, shared: &Shared) -> Result<()> {
    let mut end = 0;
    let mut bytes = Vec::new();
    while let Ok(first) = ops.recv() {
        let batch: Vec<Op> = std::iter::once(first).chain(ops.try_iter().take(TOGETHER - 1)).collect();
        bytes.clear();
        let mut places = Vec::new();
        for (kind, id, payload) in batch.iter().flat_map(|op| &op.records) {
            places.push((*kind, *id, end + bytes.len() as u64, payload.len()));
            encode(*kind, *id, payload, &mut bytes);
        }
        file.write_all(&bytes).doing("write a log")?;
        file.sync_data().doing("sync a log")?;
        end += bytes.len() as u64;
        note(&mut shared.index(), &places);
        shared.changed.notify_one();
        for op in batch {
            let _nobody_waits = op.saved.send(());
        }
    }
    Ok(())
}

fn encode(kind: Kind, id: u64, payload: &[u8], to: &mut Vec<u8>) {
    to.push(kind as u8);
    to.extend_from_slice(&id.to_le_bytes());
    to.extend_from_slice(&u32::try_from(payload.len()).unwrap_or(u32::MAX).to_le_bytes());
    to.extend_from_slice(&checksum(payload).to_le_bytes());
    to.extend_from_slice(payload);
}

fn note(index: &mut Index, places: &[(Kind, u64, u64, usize)]) {
    for (kind, id, at, length) in places {
        match kind {
            Kind::Event => {
                index.events.insert(*id, (*at, *length, false));
                index.due.push_back(*id);
            }
            Kind::Again => {
                if let Some((_, _, again)) = index.events.get_mut(id) {
                    *again = true;
                }
                index.due.push_back(*id);
            }
            Kind::End => drop(index.events.remove(id)),
            Kind::Attempt => {}
        }
    }
}

/// Eight bytes at a time: cheap, and enough to notice a wrong place.
fn checksum(bytes: &[u8]) -> u64 {
    let mix = |sum: u64, word: u64| (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(5);
    let mut words = bytes.chunks_exact(8);
    let mut sum = 0xcbf2_9ce4_8422_2325;
    for word in words.by_ref() {
        sum = mix(sum, word.iter().fold(0, |word, byte| word << 8 | u64::from(*byte)));
    }
    words.remainder().iter().fold(sum, |sum, byte| mix(sum, u64::from(*byte)))
}

impl Subject for RawLog {
    type Item = Item;

    async fn enqueue(&self, payload: &Bytes) -> Result<()> {
        let id = self.next.replace(self.next.get() + 1);
        self.append(vec![(Kind::Event, id, payload.clone())])?.await.doing("append to a log")
    }

    async fn claim(&self, want: usize) -> Result<Vec<Item>> {
        let taken: Vec<(u64, (u64, usize, bool))> = {
            let index = &mut *self.shared.index();
            let want = want.min(index.due.len());
            index.due.drain(..want).filter_map(|id| Some((id, *index.events.get(&id)?))).collect()
        };
        let read = |(id, (at, length, again))| self.read(at, length).map(|()| Item { id, again });
        taken.into_iter().map(read).collect()
    }

    async fn end(&self, items: Vec<Item>, log: bool) -> Result<Ended> {
        let (mut count, mut records) = (0, Vec::with_capacity(items.len() * 2));
        for (index, item) in items.iter().enumerate() {
            let again = log && !item.again && index % 10 == 0;
            count += u64::from(!again);
            if log {
                records.push((Kind::Attempt, item.id, Bytes::from_static(&ATTEMPT)));
            }
            records.push((if again { Kind::Again } else { Kind::End }, item.id, Bytes::new()));
        }
        let saved = self.append(records)?;
        Ok(Ended { count, saved: Box::pin(async { saved.await.doing("append to a log") }) })
    }

    async fn wait(&self) {
        self.shared.changed.notified().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_appended_can_be_claimed_read_and_ended_once() {
        let dir = tempfile::tempdir().unwrap();
        let log = RawLog::create(&dir.path().join("log")).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            for payload in ["one", "another, longer than a word"] {
                log.enqueue(&Bytes::from_static(payload.as_bytes())).await.unwrap();
            }
            let ended = log.end(log.claim(10).await.unwrap(), true).await.unwrap();
            ended.saved.await.unwrap();
            assert_eq!(ended.count, 1);
            let ended = log.end(log.claim(10).await.unwrap(), true).await.unwrap();
            ended.saved.await.unwrap();
            assert_eq!(ended.count, 1);
            assert!(log.claim(10).await.unwrap().is_empty());
        });
    }
}
