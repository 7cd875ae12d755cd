//! What the server is, keeps and costs. Deliberately absent: changing any of it, which is the operator's.

use std::time::Duration;

use redis::{Value, cmd};
use teimoso_delivery::store::{Checkup, FindingKind, StoreError};

use crate::found::text;
use crate::link::Trouble;
use crate::reply::{array, some_bytes, some_number};
use crate::shared::Shared;

/// Most writes that are timed.
const MOST_WRITES: usize = 100_000;
/// The field of our own that is written and removed.
const PROBE: &str = "probe";

pub(super) async fn look(
    shared: &Shared,
    write_for: Duration,
    checkup: &mut Checkup,
) -> Result<(), StoreError> {
    let found = &shared.survey.found();
    let told = |value: &Option<String>| value.clone().unwrap_or_else(|| "unknown".to_owned());
    checkup.text("redis_version", found.version.clone());
    checkup.text("role", if found.is_master { "master" } else { "replica" });
    let append_only = found.append_only.map_or("unknown", |on| if on { "yes" } else { "no" });
    checkup.text("appendonly", append_only);
    checkup.text("appendfsync", told(&found.fsync));
    checkup.text("maxmemory_policy", told(&found.eviction));
    checkup.number("replicas", found.replicas.into());
    if found.append_only == Some(false) {
        checkup.found(
            FindingKind::VolatileServer,
            "appendonly no: a restart loses what came after the last snapshot",
        );
    }
    if let Some(policy) = found.eviction.as_deref().filter(|policy| policy.starts_with("allkeys-")) {
        checkup.found(FindingKind::EvictingServer, format!("maxmemory-policy {policy}"));
    }
    info(shared, checkup).await?;
    latency_events(shared, checkup).await;
    writes(shared, write_for, checkup).await
}

async fn info(shared: &Shared, checkup: &mut Checkup) -> Result<(), StoreError> {
    let info = text(shared.reads.command(&cmd("INFO")).await?);
    let field =
        |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
    let numbers = [
        ("used_memory", "used_memory_bytes"),
        ("maxmemory", "maxmemory_bytes"),
        ("connected_clients", "connected_clients"),
        ("aof_delayed_fsync", "delayed_fsyncs"),
        ("evicted_keys", "evicted_keys"),
    ];
    for (name, fact) in numbers {
        if let Some(number) = field(name).and_then(|value| value.parse().ok()) {
            checkup.number(fact, number);
        }
    }
    match field("aof_last_write_status") {
        Some("ok") | None => {}
        Some(status) => {
            checkup.found(FindingKind::NotWritable, format!("aof_last_write_status: {status}"));
        }
    }
    Ok(())
}

/// What the server's own latency monitor saw, if it is switched on and may be asked.
async fn latency_events(shared: &Shared, checkup: &mut Checkup) {
    let mut ask = cmd("LATENCY");
    ask.arg("LATEST");
    let Ok(Value::Array(events)) = shared.reads.command(&ask).await else { return };
    let line = |event: Value| -> Result<String, StoreError> {
        let mut values = array(event)?.into_iter();
        let name = some_bytes(values.next().unwrap_or(Value::Nil))?;
        let worst = some_number(&values.nth(2).unwrap_or(Value::Nil))?;
        Ok(format!("{} {worst} ms at worst", String::from_utf8_lossy(&name)))
    };
    let lines: Vec<String> = events.into_iter().filter_map(|event| line(event).ok()).collect();
    if !lines.is_empty() {
        checkup.text("latency_events", lines.join(", "));
    }
}

/// How long a small write takes there and back; with `appendfsync always` the sync is a part of it.
async fn writes(shared: &Shared, write_for: Duration, checkup: &mut Checkup) -> Result<(), StoreError> {
    let (start, mut writes) = (shared.clock.monotonic(), Vec::new());
    let mut write = cmd("HSET");
    write.arg(shared.keys.meta()).arg(PROBE).arg("1");
    loop {
        let before = shared.clock.monotonic();
        match shared.reads.command(&write).await {
            Ok(_) => {}
            Err(failure) if failure.trouble == Trouble::Full => {
                checkup.found(FindingKind::NotWritable, failure.to_string());
                return Ok(());
            }
            Err(failure) => return Err(failure.into()),
        }
        let after = shared.clock.monotonic();
        writes.push(after.saturating_sub(before));
        if after.saturating_sub(start) >= write_for || writes.len() == MOST_WRITES {
            break;
        }
    }
    let mut remove = cmd("HDEL");
    remove.arg(shared.keys.meta()).arg(PROBE);
    shared.reads.command(&remove).await?;
    writes.sort_unstable();
    let micros = |part: usize| {
        let at = (writes.len() * part / 100).min(writes.len().saturating_sub(1));
        writes.get(at).map_or(0, |write| u64::try_from(write.as_micros()).unwrap_or(u64::MAX))
    };
    checkup.number("writes", writes.len() as u64);
    checkup.number("write_p50_us", micros(50));
    checkup.number("write_p99_us", micros(99));
    checkup.number("write_max_us", micros(100));
    Ok(())
}
