//! The examination of a Redis: the conservation law, what belongs to nothing, what the server keeps.
//!
//! Safe beside a running fleet: keys are read by plain scans in small steps; a script then judges a few of them as they
//! stand, and heals in the same step what it has just seen. Only numbers over everything cannot be had in one step:
//! they are compared when nothing moved while they were counted, twice with the same result. Deliberately absent:
//! deliveries of other shards.

mod counters;
mod facts;
mod scan;

use std::sync::Arc;
use std::time::Duration;

use redis::{Cmd, Value};
use teimoso_delivery::model::Key;
use teimoso_delivery::store::{Checkup, FindingKind, LEASE, StoreError};

use crate::codec::parse_key;
use crate::reply::{array, some_bytes, some_number, unexpected};
use crate::scripts::{Call, DOCTOR};
use crate::shared::Shared;

/// Things judged by one script: some microseconds each.
const JUDGED: usize = 100;

/// How a store is examined.
#[derive(Debug, Clone, Copy)]
pub struct Examination {
    /// Whether what can be healed is healed.
    pub heal: bool,
    /// How long small writes are timed, one after the other; at least one is.
    pub write_for: Duration,
}

/// Told how many deliveries were looked at, and of about how many.
pub type Watch = Arc<dyn Fn(u64, u64) + Send + Sync>;

/// One examination under way.
pub(crate) struct Visit {
    shared: Arc<Shared>,
    heal: bool,
    checkup: Checkup,
}

pub(crate) async fn examine(
    shared: Arc<Shared>,
    examination: Examination,
    watch: Watch,
) -> Result<Checkup, StoreError> {
    let mut visit = Visit { shared, heal: examination.heal, checkup: Checkup::default() };
    facts::look(&visit.shared, examination.write_for, &mut visit.checkup).await?;
    visit.deliveries(&watch).await?;
    visit.listings().await?;
    visit.leases().await?;
    visit.lanes().await?;
    visit.taken().await?;
    visit.names().await?;
    visit.leftovers().await?;
    visit.counters().await?;
    Ok(visit.checkup)
}

impl Visit {
    fn call(&self, what: &str) -> Call {
        let mut call = self.shared.call(&DOCTOR);
        call.arg(what).number(u8::from(self.heal)).number(LEASE.as_millis() as u64);
        call
    }

    /// Has these judged, a few at a time, each as it stands then; `lead` comes before them in every call.
    async fn judge(&mut self, what: &str, lead: Option<&str>, these: &[Vec<u8>]) -> Result<(), StoreError> {
        for some in these.chunks(JUDGED) {
            let mut call = self.call(what);
            lead.iter().for_each(|lead| {
                call.arg(*lead);
            });
            some.iter().for_each(|one| {
                call.arg(one.as_slice());
            });
            self.run(&call).await?;
        }
        Ok(())
    }

    /// What a script found; it may be called again: what is healed is not found twice.
    async fn run(&mut self, call: &Call) -> Result<u64, StoreError> {
        let mut answer = array(self.shared.reads.call(call).await?)?.into_iter();
        let mut count = 0;
        while let (Some(which), Some(tag), Some(healed)) = (answer.next(), answer.next(), answer.next()) {
            let tag = u8::try_from(some_number(&tag)?).ok();
            let kind = tag.and_then(FindingKind::from_tag).ok_or_else(unexpected)?;
            let name = self.name(kind, &some_bytes(which)?);
            self.checkup.found(kind, name);
            self.checkup.healed(kind, u64::from(some_number(&healed)? == 1));
            count += 1;
        }
        Ok(count)
    }

    /// How a person calls what a script names.
    fn name(&self, kind: FindingKind, which: &[u8]) -> String {
        let text = || String::from_utf8_lossy(which).into_owned();
        let ids = self.shared.ids();
        let with_key = |name: &dyn Fn(Key) -> String| parse_key(which).map_or_else(|_| text(), name);
        match kind {
            FindingKind::LaneNotWaiting | FindingKind::LaneSlotsOff => format!("lane {}", text()),
            FindingKind::StaleProcessEntry => which.iter().map(|byte| format!("{byte:02x}")).collect(),
            FindingKind::LeaseWithoutDelivery if which.len() == 16 => {
                which.iter().map(|byte| format!("{byte:02x}")).collect()
            }
            FindingKind::TakenWithoutDeadline | FindingKind::DeadlineWithoutEntry => text(),
            FindingKind::NameWithoutEvent => with_key(&|key| ids.event(key).to_string()),
            FindingKind::ReplayNotDue => with_key(&|key| ids.replay(key).to_string()),
            _ => with_key(&|key| self.shared.delivery_id(key).to_string()),
        }
    }

    async fn ask(&self, command: &Cmd) -> Result<Value, StoreError> {
        Ok(self.shared.reads.command(command).await?)
    }
}
