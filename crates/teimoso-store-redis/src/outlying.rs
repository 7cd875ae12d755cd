//! In a Cluster, two of S2's public keys are in other slots than everything else: what waits there is carried in, what
//! died here is carried out.
//!
//! No step is atomic across slots, so each adds on the one side before it removes on the other: a crash in between makes
//! a copy, never a loss. Deliberately absent: writing to `espera`; what is ours waits in our own slot.

use std::sync::Arc;
use std::time::Duration;

use redis::{Value, cmd, pipe};
use teimoso_delivery::store::{Counts, StoreError};

use crate::link::{Failure, Link};
use crate::reply::{array, exactly, natural, some_bytes, some_number};
use crate::scripts::CARRY;
use crate::shared::Shared;

/// Entries of one step.
const STEP: usize = 50;
/// Who carries says so this often; half of what it is believed for.
const EVERY: Duration = Duration::from_secs(1);
/// Whoever does not asks this often whether nobody does.
const ASK_EVERY: Duration = Duration::from_secs(3);
const LEASE: Duration = Duration::from_secs(4);
/// A replica of the public list's server confirms within this.
const CONFIRM: Duration = Duration::from_secs(1);

/// The ways to the two keys.
pub(crate) struct Outlying {
    pub(crate) waiting: Link,
    pub(crate) buried: Link,
}

impl Outlying {
    /// Adds what lies there. What is carried at this moment may be counted on both sides.
    pub(crate) async fn count(&self, shared: &Shared, counts: &mut Counts) -> Result<(), StoreError> {
        let (mut waiting, mut buried) = (cmd("ZCARD"), cmd("LLEN"));
        waiting.arg(shared.keys.public_waiting());
        buried.arg(shared.keys.public_buried());
        let waiting: u64 = natural(&self.waiting.command(&waiting).await?)?;
        let buried: u64 = natural(&self.buried.command(&buried).await?)?;
        counts.accepted += waiting + buried;
        counts.scheduled += waiting;
        counts.dead += buried;
        Ok(())
    }

    /// Copies what a sender of the original design lets wait into our slot, then removes it there. Whether there is more.
    async fn drain(&self, shared: &Shared) -> Result<bool, StoreError> {
        let public = shared.keys.public_waiting();
        let mut look = cmd("ZRANGE");
        look.arg(public).arg(0).arg(STEP - 1).arg("WITHSCORES");
        let found = array(self.waiting.command(&look).await?)?;
        if found.is_empty() {
            return Ok(false);
        }
        let (mut add, mut remove) = (cmd("ZADD"), cmd("ZREM"));
        add.arg(shared.keys.waiting());
        remove.arg(public);
        let mut found = found.into_iter();
        let mut moved = 0;
        while let (Some(member), Some(score)) = (found.next(), found.next()) {
            let (member, score) = (some_bytes(member)?, some_bytes(score)?);
            add.arg(&score[..]).arg(&member[..]);
            remove.arg(&member[..]);
            moved += 1;
        }
        shared.reads.command(&add).await?;
        self.waiting.command(&remove).await?;
        Ok(moved == STEP)
    }

    /// Appends to the public list and has a replica confirm it, if there is one.
    async fn append(&self, shared: &Shared, entries: &[Vec<u8>]) -> Result<(), Failure> {
        let mut append = pipe();
        append.cmd("RPUSH").arg(shared.keys.public_buried()).arg(entries);
        append.cmd("ROLE");
        let answers = self.buried.pipeline(&append).await?;
        if has_replica(answers.get(1)) { self.confirm().await } else { Ok(()) }
    }

    async fn confirm(&self) -> Result<(), Failure> {
        let mut wait = cmd("WAIT");
        wait.arg(1).arg(CONFIRM.as_millis() as u64);
        match self.buried.command(&wait).await? {
            Value::Int(confirmed) if confirmed > 0 => Ok(()),
            _ => Err(Failure::not_yet("no replica confirmed the dead letters")),
        }
    }
}

/// ROLE of a master lists its replicas third.
fn has_replica(role: Option<&Value>) -> bool {
    let Some(Value::Array(role)) = role else { return false };
    matches!(role.get(2), Some(Value::Array(replicas)) if !replicas.is_empty())
}

/// The head of our list, and how many were removed before it: equal texts may follow each other.
#[derive(Default)]
struct Heads {
    removed: i64,
    entries: Vec<Vec<u8>>,
}

/// How far the copy of the head has come.
enum Copied {
    /// Appended, and no replica has said so.
    Unconfirmed(Heads),
    /// To be removed here; nothing at the beginning.
    Confirmed(Heads),
}

/// Carries for ever, or waits until whoever does has died.
pub(crate) async fn carry(shared: Arc<Shared>) {
    let Some(outlying) = &shared.outlying else { return };
    let who = format!("{:016x}{:016x}", shared.entropy.next_u64(), shared.entropy.next_u64());
    let mut copied = Copied::Confirmed(Heads::default());
    loop {
        let wait = match step(&shared, outlying, &who, &mut copied).await {
            Ok(Step::More) => Duration::ZERO,
            // Redis is away: the next look comes soon enough.
            Ok(Step::Done) | Err(_) => EVERY,
            Ok(Step::NotOurs) => ASK_EVERY,
        };
        if !wait.is_zero() {
            shared.clock.sleep(jittered(wait, shared.entropy.next_u64())).await;
        }
    }
}

enum Step {
    More,
    Done,
    NotOurs,
}

async fn step(
    shared: &Shared,
    outlying: &Outlying,
    who: &str,
    copied: &mut Copied,
) -> Result<Step, StoreError> {
    if let Copied::Unconfirmed(heads) = copied {
        outlying.confirm().await?;
        *copied = Copied::Confirmed(std::mem::take(heads));
    }
    let Some(heads) = take_heads(shared, who, copied).await? else { return Ok(Step::NotOurs) };
    let more_waits = outlying.drain(shared).await?;
    if heads.entries.is_empty() {
        return Ok(if more_waits { Step::More } else { Step::Done });
    }
    match outlying.append(shared, &heads.entries).await {
        Ok(()) => *copied = Copied::Confirmed(heads),
        Err(failure) if failure.is_starting() => *copied = Copied::Unconfirmed(heads),
        Err(failure) => return Err(failure.into()),
    }
    Ok(Step::More)
}

/// Has what was copied removed, and reads what is next; `None` when another process carries.
async fn take_heads(shared: &Shared, who: &str, copied: &mut Copied) -> Result<Option<Heads>, StoreError> {
    let mut call = shared.call(&CARRY);
    call.arg(who).number(LEASE.as_millis() as u64).number(STEP as u64);
    if let Copied::Confirmed(heads) = copied {
        call.number(heads.removed);
        for entry in &heads.entries {
            call.arg(&entry[..]);
        }
    }
    let [ours, removed, entries] = exactly::<3>(shared.work.call(&call).await?)?;
    *copied = Copied::Confirmed(Heads::default());
    if some_number(&ours)? != 1 {
        return Ok(None);
    }
    let entries = array(entries)?.into_iter().map(|entry| some_bytes(entry).map(Vec::from));
    Ok(Some(Heads { removed: some_number(&removed)?, entries: entries.collect::<Result<_, _>>()? }))
}

/// Processes that began together ask apart.
fn jittered(wait: Duration, bits: u64) -> Duration {
    wait.mul_f64(0.75 + (bits % 1_000) as f64 / 2_000.0)
}
