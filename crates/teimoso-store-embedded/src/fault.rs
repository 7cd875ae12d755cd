//! Points at which the crash tests kill the process. Compiled to nothing in a normal build.
//!
//! With the feature `fault-points`, `TEIMOSO_FAULT=name` (or `name:n` for the n-th passage) makes the
//! process abort at that point, exactly between two steps of the contract's list of crash windows:
//!
//! | point | passed |
//! |---|---|
//! | `accept-before-commit`, `accept-after-commit` | once per accept, around the fsync |
//! | `start-before-commit` | once per durable claim, before the fsync |
//! | `claimed` | at the end of a claim that took something, before it is handed out |
//! | `settle-half` | within a settlement: its attempt is recorded, its delivery not moved |
//! | `settle-before-commit`, `settle-after-commit` | once per batch of settlements, around the fsync |
//! | `replay-half` | within a step of a replay job: deliveries moved, the job's cursor not |
//! | `expire-half` | within a step of expiry |
//! | `checkpoint` | before the checkpoint thread copies the log |

/// Passes the point `name`; does not return when the environment says to die here.
#[cfg(feature = "fault-points")]
pub(crate) fn point(name: &str) {
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static WANTED: OnceLock<Option<(String, u64)>> = OnceLock::new();
    static PASSED: AtomicU64 = AtomicU64::new(0);
    let wanted = WANTED.get_or_init(|| {
        let text = std::env::var("TEIMOSO_FAULT").ok()?;
        let (name, nth) = text.split_once(':').unwrap_or((&text, "1"));
        Some((name.to_owned(), nth.parse().unwrap_or(1)))
    });
    let Some((wanted, nth)) = wanted else { return };
    if wanted == name && PASSED.fetch_add(1, Ordering::Relaxed) + 1 == *nth {
        std::process::abort();
    }
}

/// Passes the point `name`.
#[cfg(not(feature = "fault-points"))]
#[inline]
pub(crate) fn point(_name: &str) {}
