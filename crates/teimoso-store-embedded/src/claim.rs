//! Claiming: from memory when the event is fresh, else read back by a thread of its own, so that a slow
//! disk never stops the network.

use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use bytes::Bytes;
use rusqlite::{Connection, OptionalExtension};
use teimoso_delivery::lanes::Taken;
use teimoso_delivery::model::{Event, IdSpace, Key, Lease, Millis, Mode, Progress};
use teimoso_delivery::store::{Claim, ClaimRequest, Claimed, LaneNews, StoreError};
use tokio::sync::oneshot;

use crate::core::{Core, Fresh, Leased};
use crate::error::{OpenError, closed, store_error};
use crate::rows::{self, EVENT_HEAD_COLUMNS, EventHead, event_columns, progress_columns};
use crate::writer::Op;
use crate::{EmbeddedStore, fault, schema};

/// What was found for each; `None` when it is no longer unfinished.
type Rows = Vec<(Taken<Key>, Option<Loaded>)>;

/// Keys to read back, and where the rows go.
pub(crate) struct ReadBack {
    taken: Vec<Taken<Key>>,
    reply: oneshot::Sender<Result<Rows, StoreError>>,
}

/// A delivery and its event as the file has them.
struct Loaded {
    event: Arc<Event>,
    url: Option<Arc<str>>,
    progress: Progress,
}

/// What memory gave.
#[derive(Default)]
struct Took {
    claimed: Vec<Claimed>,
    missing: Vec<Taken<Key>>,
    wake_at: Option<Millis>,
    /// A lane's due index ran dry: the file has more.
    thirsty: bool,
    /// The writer should be told that something was leased.
    tell: bool,
}

impl EmbeddedStore {
    pub(crate) async fn claim_now(&self, request: ClaimRequest) -> Result<Claim, StoreError> {
        self.shared.check()?;
        let lost = expired(&mut self.shared.core(), request.now);
        if !lost.is_empty() {
            self.ask(|reply| Op::Recover(lost, reply)).await?;
        }
        let took = self.take(&request);
        let claim = self.complete(took, &request).await;
        if claim.is_err() {
            self.give_all_back(&request);
        }
        claim
    }

    /// From what memory gave to a claim: reads on, reads back, and makes durable what must be.
    async fn complete(&self, mut took: Took, request: &ClaimRequest) -> Result<Claim, StoreError> {
        // Ends: every refill moves a horizon on, and a lane that got more than a few entries is content.
        while took.thirsty && took.claimed.len() + took.missing.len() < request.want {
            self.ask(Op::Refill).await?;
            self.take_more(request, &mut took);
        }
        if took.tell || took.thirsty {
            self.send(Op::Tick)?;
        }
        let mut claimed = took.claimed;
        if !took.missing.is_empty() {
            claimed.extend(self.read_back(took.missing, request).await?);
        }
        let start: Vec<Key> = claimed.iter().filter(|c| self.must_start(c)).filter_map(|c| self.key(c)).collect();
        if !start.is_empty() {
            self.ask(|reply| Op::Start(start, reply)).await?;
        }
        if !claimed.is_empty() {
            fault::point("claimed");
        }
        Ok(Claim { taken: claimed, wake_at: took.wake_at })
    }

    /// A claim that failed was never handed out: nothing of it was in flight, nothing is to be recovered.
    /// What was cancelled meanwhile keeps its lease, whose end honours the wish.
    fn give_all_back(&self, request: &ClaimRequest) {
        let core = &mut *self.shared.core();
        for taken in held_under(core, request) {
            if core.leases.get(&taken.key).is_none_or(|leased| leased.cancel_wished) {
                continue;
            }
            core.leases.remove(&taken.key);
            core.lanes.release(taken.lane, LaneNews::Neutral, request.now);
            core.lanes.push(taken.lane, taken.due, taken.key, request.now);
        }
        core.last_claim = None;
    }

    fn key(&self, claimed: &Claimed) -> Option<Key> {
        self.shared.ids.delivery_key(claimed.lease.delivery())
    }

    /// At-most-once: the claim is the start, durable before it is returned (G4). After an unclean end
    /// every claim is, for a while: a payload that kills us at once must still be counted (G6).
    fn must_start(&self, claimed: &Claimed) -> bool {
        claimed.progress.mode == Mode::AtMostOnce || self.shared.clock.monotonic() < self.cautious_until
    }

    fn take(&self, request: &ClaimRequest) -> Took {
        let core = &mut *self.shared.core();
        if core.last_claim == Some(request.nonce) {
            return Took { missing: held_under(core, request), wake_at: next_wake(core), ..Took::default() };
        }
        core.last_claim = Some(request.nonce);
        let mut took = Took::default();
        self.take_into(core, request, request.want, &mut took);
        took
    }

    /// After a refill.
    fn take_more(&self, request: &ClaimRequest, took: &mut Took) {
        let want = request.want.saturating_sub(took.claimed.len() + took.missing.len());
        self.take_into(&mut self.shared.core(), request, want, took);
    }

    fn take_into(&self, core: &mut Core, request: &ClaimRequest, want: usize, took: &mut Took) {
        took.tell |= core.journal.is_empty();
        for taken in core.lanes.take(request.now, want, request.free) {
            let fresh = core.take_fresh(taken.key);
            lease(core, &taken, request, fresh.as_ref().map(|fresh| fresh.progress));
            match fresh {
                Some(fresh) => took.claimed.push(self.claimed(core, &taken, request, fresh)),
                None => took.missing.push(taken),
            }
        }
        took.tell &= !core.journal.is_empty();
        if core.lanes.has_ready(request.now) {
            // More than this engine wanted: another one may have slots.
            self.shared.changed.notify_one();
        }
        took.thirsty = core.lanes.is_thirsty();
        took.wake_at = next_wake(core);
    }

    fn claimed(&self, core: &Core, taken: &Taken<Key>, request: &ClaimRequest, fresh: Fresh) -> Claimed {
        let lane = core.lanes.key(taken.lane).map_or_else(|| fresh.url.clone(), |key| key.address.clone());
        Claimed {
            lease: Lease::grant(self.shared.ids.delivery(taken.key), request.nonce),
            event: fresh.event,
            url: fresh.url,
            lane,
            progress: fresh.progress,
            due: taken.due,
        }
    }

    async fn read_back(
        &self,
        taken: Vec<Taken<Key>>,
        request: &ClaimRequest,
    ) -> Result<Vec<Claimed>, StoreError> {
        let (reply, rows) = oneshot::channel();
        self.read_backs.send(ReadBack { taken, reply }).map_err(|_| closed())?;
        let found = rows.await.map_err(|_| closed())??;
        let core = &mut *self.shared.core();
        let mut claimed = Vec::with_capacity(found.len());
        for (taken, loaded) in found {
            let Some(loaded) = loaded else {
                // The file no longer has it as unfinished: the entry was stale.
                core.leases.remove(&taken.key);
                core.lanes.release(taken.lane, LaneNews::Neutral, request.now);
                continue;
            };
            if let Some(leased) = core.leases.get_mut(&taken.key) {
                leased.progress = Some(loaded.progress);
            }
            let address = || core.lanes.key(taken.lane).map(|key| key.address.clone());
            let url = loaded.url.or_else(address).unwrap_or_else(|| "".into());
            let fresh = Fresh { event: loaded.event, url, progress: loaded.progress };
            claimed.push(self.claimed(core, &taken, request, fresh));
        }
        Ok(claimed)
    }
}

fn lease(core: &mut Core, taken: &Taken<Key>, request: &ClaimRequest, progress: Option<Progress>) {
    core.journal.push(taken.key);
    core.earliest_lease_end = core.earliest_lease_end.min(request.lease_until);
    core.leases.insert(taken.key, Leased {
        nonce: request.nonce,
        until: request.lease_until,
        lane: taken.lane,
        due: taken.due,
        progress,
        journaled: false,
        settling: false,
        cancel_wished: false,
    });
}

/// What a claim that is repeated was given the first time.
fn held_under(core: &Core, request: &ClaimRequest) -> Vec<Taken<Key>> {
    let held = core.leases.iter().filter(|(_, leased)| leased.nonce == request.nonce && !leased.settling);
    held.map(|(key, leased)| Taken { lane: leased.lane, due: leased.due, key: *key }).collect()
}

/// When a claim could give something it cannot give now: the next due time, or the end of a lease.
fn next_wake(core: &Core) -> Option<Millis> {
    let lease = Some(core.earliest_lease_end).filter(|_| !core.leases.is_empty());
    core.lanes.next_wake().into_iter().chain(lease).min()
}

/// Leases that ran out. Their slots are freed; the writer counts the recovery.
fn expired(core: &mut Core, now: Millis) -> Vec<Key> {
    if core.leases.is_empty() || core.earliest_lease_end > now {
        return Vec::new();
    }
    let gone = |leased: &Leased| !leased.settling && leased.until <= now;
    let lost: Vec<Key> = core.leases.iter().filter(|(_, leased)| gone(leased)).map(|(key, _)| *key).collect();
    for key in &lost {
        if let Some(leased) = core.leases.get_mut(key) {
            leased.settling = true;
            let lane = leased.lane;
            core.lanes.release(lane, LaneNews::Neutral, now);
        }
    }
    let held = core.leases.values().filter(|leased| !leased.settling);
    core.earliest_lease_end = held.map(|leased| leased.until).min().unwrap_or(Millis::MAX);
    lost
}

/// Starts the thread that reads claims back.
pub(crate) fn start(path: &Path, ids: IdSpace) -> Result<(Sender<ReadBack>, JoinHandle<()>), OpenError> {
    let conn = schema::open_for_reading(path)?;
    let (sender, receiver) = channel::<ReadBack>();
    let thread = std::thread::Builder::new()
        .name("teimoso-claims".into())
        .spawn(move || {
            while let Ok(read_back) = receiver.recv() {
                let rows = load(&conn, &read_back.taken, ids).map_err(|error| store_error(&error));
                drop(read_back.reply.send(rows));
            }
        })
        .map_err(|error| OpenError::io(path, &error))?;
    Ok((sender, thread))
}

const SQL: &str = concat!(
    "SELECT ",
    event_columns!(),
    ", e.payload, ",
    progress_columns!(),
    " FROM delivery d JOIN event e ON e.id = d.event JOIN application a ON a.id = e.application",
    " WHERE d.id = ?1 AND d.state < 3"
);

fn load(conn: &Connection, taken: &[Taken<Key>], ids: IdSpace) -> rusqlite::Result<Rows> {
    // One read transaction for the batch: one snapshot, one lock.
    conn.prepare_cached("BEGIN")?.execute([])?;
    let rows = load_in_snapshot(conn, taken, ids);
    conn.prepare_cached("COMMIT")?.execute([])?;
    rows
}

fn load_in_snapshot(conn: &Connection, taken: &[Taken<Key>], ids: IdSpace) -> rusqlite::Result<Rows> {
    let mut select = conn.prepare_cached(SQL)?;
    taken
        .iter()
        .map(|taken| {
            let read = |row: &rusqlite::Row<'_>| {
                let payload = row.get_ref(EVENT_HEAD_COLUMNS)?.as_blob()?;
                let head = EventHead::read(row, 0, ids)?;
                let url = head.url.clone();
                let event = Arc::new(head.with_payload(Bytes::copy_from_slice(payload)));
                Ok(Loaded { event, url, progress: rows::progress(row, EVENT_HEAD_COLUMNS + 1)? })
            };
            Ok((*taken, select.query_row([taken.key.raw()], read).optional()?))
        })
        .collect()
}


#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_is_read_back_by_keys_alone() {
        let steps = schema::plan(SQL);
        let by_key = |table: &&str| format!("SEARCH {table} USING INTEGER PRIMARY KEY (rowid=?)");
        assert_eq!(steps, ["d", "e", "a"].iter().map(by_key).collect::<Vec<_>>());
    }
}
