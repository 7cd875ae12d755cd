//! Scans in small steps, and what is done with each step. A scan may show a thing twice or as it was a moment ago:
//! the judging script looks again.

use std::collections::{HashMap, HashSet};

use redis::{Value, cmd};
use teimoso_delivery::store::{FindingKind, StoreError};

use super::{Visit, Watch};
use crate::codec::{self, DeliveryRecord, EventHead, parse_key};
use crate::reply::{array, bytes, exactly, natural, some_bytes, some_number, unexpected};

/// What one step of a scan asks for.
const STEP: usize = 200;
/// The same where values may be large, and of what one script judges where each takes a look through a list.
const FEW: usize = 10;

// Places of a lane, as the scripts number them.
const RING: i64 = 1;
const SHARE: i64 = 3;

/// A lane as the script describes it.
pub(super) struct LaneSeen {
    pub(super) id: u32,
    pub(super) in_flight: u64,
    place: i64,
    must_wait: bool,
    /// It counts other fresh deliveries than there are.
    miscounts: bool,
    application: String,
    /// Entries that wait in its record.
    front: Vec<u8>,
}

/// Bytes of an entry of a fresh delivery: its key, and when it came.
const ENTRY: usize = 15 + 8;

/// A key that is scanned: its members, with what stands beside each.
pub(super) struct Scan {
    command: &'static str,
    key: String,
    count: usize,
    cursor: Option<Vec<u8>>,
}

impl Scan {
    /// Of a hash.
    pub(super) fn hash(key: String, count: usize) -> Self {
        Self { command: "HSCAN", key, count, cursor: Some(b"0".to_vec()) }
    }

    /// Of a sorted set.
    pub(super) fn sorted(key: String) -> Self {
        Self { command: "ZSCAN", key, count: STEP, cursor: Some(b"0".to_vec()) }
    }
}

impl Visit {
    /// The next members of a scan; `None` after the last.
    pub(super) async fn next(&self, scan: &mut Scan) -> Result<Option<Vec<(Vec<u8>, Vec<u8>)>>, StoreError> {
        let Some(cursor) = scan.cursor.take() else { return Ok(None) };
        let mut ask = cmd(scan.command);
        ask.arg(&scan.key).arg(cursor).arg("COUNT").arg(scan.count);
        let [next, members] = exactly::<2>(self.ask(&ask).await?)?;
        let next = some_bytes(next)?;
        scan.cursor = (next != "0").then(|| next.to_vec());
        let mut members = array(members)?.into_iter();
        let mut pairs = Vec::new();
        while let (Some(member), Some(beside)) = (members.next(), members.next()) {
            pairs.push((some_bytes(member)?.to_vec(), bytes(beside)?.unwrap_or_default().to_vec()));
        }
        Ok(Some(pairs))
    }

    fn hash(&self, name: &str, count: usize) -> Scan {
        Scan::hash(self.shared.keys.own(name), count)
    }

    pub(super) fn deliveries_scan(&self) -> Scan {
        self.hash("deliveries", STEP)
    }

    async fn judge_scanned(&mut self, what: &str, mut scan: Scan) -> Result<(), StoreError> {
        while let Some(members) = self.next(&mut scan).await? {
            let names: Vec<Vec<u8>> = members.into_iter().map(|(name, _)| name).collect();
            self.judge(what, None, &names).await?;
        }
        Ok(())
    }

    pub(super) async fn length(&self, command: &str, name: &str) -> Result<u64, StoreError> {
        natural(&self.ask(cmd(command).arg(self.shared.keys.own(name))).await?)
    }

    pub(super) async fn deliveries(&mut self, watch: &Watch) -> Result<(), StoreError> {
        let of = self.length("HLEN", "events").await?;
        let queued = self.queued().await?;
        let (mut scan, mut known, mut looked) = (self.deliveries_scan(), HashSet::new(), 0);
        while let Some(members) = self.next(&mut scan).await? {
            let mut judged = Vec::new();
            for (key, record) in members {
                match (parse_key(&key), DeliveryRecord::decode(&record.into())) {
                    (Ok(_), Ok(_)) => judged.push(key.clone()),
                    _ => {
                        let name = self.name(FindingKind::UnreadableRecord, &key);
                        self.checkup.found(FindingKind::UnreadableRecord, name);
                    }
                }
                looked += u64::from(known.insert(key));
            }
            self.judge("deliveries", None, &judged).await?;
            watch(looked, of);
        }
        self.never_claimed(&queued, &known).await?;
        if self.heal { self.open_lanes().await } else { Ok(()) }
    }

    /// Deliveries that were never claimed have no record of their own: only their events'. Such a one is looked for in
    /// its lane only when it was not seen in any, which takes longer.
    async fn never_claimed(
        &mut self,
        queued: &HashSet<Vec<u8>>,
        known: &HashSet<Vec<u8>>,
    ) -> Result<(), StoreError> {
        let events = self.event_keys().await?;
        let fresh = events.iter().filter(|key| !queued.contains(*key) && !known.contains(*key));
        let fresh: Vec<Vec<u8>> = fresh.cloned().collect();
        for few in fresh.chunks(FEW) {
            self.judge("deliveries", None, few).await?;
        }
        // What waits or has a record has an event, and that is in the order of events.
        let unlisted = queued.union(known).filter(|key| !events.contains(*key));
        let unlisted: Vec<Vec<u8>> = unlisted.cloned().collect();
        for few in unlisted.chunks(FEW) {
            self.judge("listed", None, few).await?;
        }
        Ok(())
    }

    /// The listings by kind: whether what they name is of theirs.
    pub(super) async fn listings(&mut self) -> Result<(), StoreError> {
        for name in ["tried", "dead", "cancelled"] {
            let mut scan = Scan::sorted(self.shared.keys.own(&format!("order:{name}")));
            while let Some(members) = self.next(&mut scan).await? {
                let keys: Vec<Vec<u8>> = members.into_iter().map(|(key, _)| key).collect();
                self.judge("order", Some(name), &keys).await?;
            }
        }
        Ok(())
    }

    /// Every event's key; the list may name what is gone.
    pub(super) async fn event_keys(&self) -> Result<HashSet<Vec<u8>>, StoreError> {
        let mut keys: HashSet<Vec<u8>> = self.members("order:events").await?;
        let mut scan = Scan::sorted(self.shared.keys.own("order:old"));
        while let Some(members) = self.next(&mut scan).await? {
            keys.extend(members.into_iter().map(|(key, _)| key));
        }
        Ok(keys)
    }

    /// The keys of everything that waits in some lane.
    async fn queued(&self) -> Result<HashSet<Vec<u8>>, StoreError> {
        let mut queued = HashSet::new();
        for lane in self.all_lanes().await? {
            queued.extend(lane.front.chunks(ENTRY).map(|entry| entry.get(..15).unwrap_or(entry).to_vec()));
            for entry in self.members(&format!("fresh:{}", codec::lane_text(lane.id))).await? {
                queued.insert(entry.get(..15).unwrap_or(&entry).to_vec());
            }
            let mut scan = Scan::sorted(self.shared.keys.own(&format!("lane:{}", codec::lane_text(lane.id))));
            while let Some(members) = self.next(&mut scan).await? {
                queued.extend(members.into_iter().map(|(key, _)| key));
            }
        }
        Ok(queued)
    }

    /// Deliveries whose lane is unknown get the one of their event's URL.
    async fn open_lanes(&mut self) -> Result<(), StoreError> {
        if self.checkup.count_of(FindingKind::LaneMissing) == 0 {
            return Ok(());
        }
        // They are found again one by one, so that each is counted once and healed.
        self.checkup.findings.retain(|finding| finding.kind != FindingKind::LaneMissing);
        for key in self.event_keys().await? {
            let events = self.shared.keys.own("events");
            let event = bytes(self.ask(cmd("HGET").arg(events).arg(key.as_slice())).await?)?;
            let Some(lane) = event.and_then(|event| lane_name(&event)) else { continue };
            let mut call = self.call("open");
            call.arg(key).arg(lane);
            self.run(&call).await?;
        }
        Ok(())
    }

    pub(super) async fn leases(&mut self) -> Result<(), StoreError> {
        self.judge_scanned("leases", Scan::sorted(self.shared.keys.own("leases"))).await
    }

    /// What every lane looks like now.
    pub(super) async fn all_lanes(&self) -> Result<Vec<LaneSeen>, StoreError> {
        let (mut scan, mut seen) = (self.hash("lanes", STEP), Vec::new());
        while let Some(members) = self.next(&mut scan).await? {
            for some in members.chunks(50) {
                let mut call = self.call("lanes");
                some.iter().for_each(|(id, _)| {
                    call.arg(id.as_slice());
                });
                let mut answer = array(self.shared.reads.call(&call).await?)?.into_iter();
                while let (
                    Some(id),
                    Some(place),
                    Some(in_flight),
                    Some(must_wait),
                    Some(application),
                    Some(front),
                ) =
                    (answer.next(), answer.next(), answer.next(), answer.next(), answer.next(), answer.next())
                {
                    seen.push(LaneSeen {
                        id: codec::lane_number(&some_bytes(id)?).map_err(|_| unexpected())?,
                        place: some_number(&place)?,
                        in_flight: natural(&in_flight)?,
                        must_wait: some_number(&must_wait)? > 0,
                        miscounts: some_number(&must_wait)? == 2,
                        application: String::from_utf8_lossy(&some_bytes(application)?).into_owned(),
                        front: some_bytes(front)?.to_vec(),
                    });
                }
            }
        }
        Ok(seen)
    }

    pub(super) async fn lanes(&mut self) -> Result<(), StoreError> {
        let lanes = self.all_lanes().await?;
        for lane in &lanes {
            let id = codec::lane_text(lane.id);
            let mut scan = Scan::sorted(self.shared.keys.own(&format!("lane:{id}")));
            while let Some(members) = self.next(&mut scan).await? {
                let keys: Vec<Vec<u8>> = members.into_iter().map(|(key, _)| key).collect();
                self.judge("queue", Some(&id), &keys).await?;
            }
        }
        self.waiting(&lanes).await
    }

    /// Only lanes that were not seen where they say they are are looked up in their lists, which takes longer.
    async fn waiting(&mut self, lanes: &[LaneSeen]) -> Result<(), StoreError> {
        let turns = self.members("turns").await?;
        let shared = self.members("shared").await?;
        let mut rings = HashMap::new();
        for application in &turns {
            let name = format!("ring:{}", String::from_utf8_lossy(application));
            rings.insert(application.clone(), self.members(&name).await?);
        }
        for lane in lanes.iter().filter(|lane| lane.must_wait) {
            let id = codec::lane_text(lane.id).into_bytes();
            let seen = match lane.place {
                RING => rings.get(lane.application.as_bytes()).is_some_and(|ring| ring.contains(&id)),
                SHARE => shared.contains(&id),
                _ => false,
            };
            if !seen || lane.miscounts {
                self.judge("lane", None, &[id]).await?;
            }
        }
        Ok(())
    }

    /// The members of a list, read in steps.
    async fn members(&self, name: &str) -> Result<HashSet<Vec<u8>>, StoreError> {
        let (key, mut members, mut from) = (self.shared.keys.own(name), HashSet::new(), 0);
        loop {
            let mut ask = cmd("LRANGE");
            ask.arg(&key).arg(from).arg(from + STEP - 1);
            let some = array(self.ask(&ask).await?)?;
            let count = some.len();
            for member in some {
                members.insert(some_bytes(member)?.to_vec());
            }
            if count < STEP {
                return Ok(members);
            }
            from += STEP;
        }
    }

    pub(super) async fn taken(&mut self) -> Result<(), StoreError> {
        self.judge_scanned("taken", self.hash("taken", FEW)).await?;
        // A token without an entry is in the second only, one with both was judged.
        self.judge_scanned("taken", Scan::sorted(self.shared.keys.own("taken_until"))).await
    }

    /// A name may outlive an event that history let go; only where that never happened does one that names nothing
    /// hide a loss.
    pub(super) async fn names(&mut self) -> Result<(), StoreError> {
        let counts = self.shared.keys.own("counts");
        let expunged = self.ask(cmd("HGET").arg(counts).arg("expunged")).await?;
        match expunged {
            Value::Nil => {}
            number if some_number(&number)? == 0 => {}
            _ => return Ok(()),
        }
        self.judge_scanned("names", self.hash("names", STEP)).await
    }

    pub(super) async fn leftovers(&mut self) -> Result<(), StoreError> {
        self.judge_scanned("jobs", self.hash("jobs", STEP)).await?;
        self.judge_scanned("claims", self.hash("claims", STEP)).await
    }
}

/// The name of the lane an event's delivery waits in: application, line feed, URL without query.
fn lane_name(event: &[u8]) -> Option<String> {
    let head = EventHead::decode(event).ok()?;
    let url = head.url?;
    let address = url.split(['?', '#']).next().unwrap_or_default();
    Some(format!("{}\n{address}", head.application))
}
