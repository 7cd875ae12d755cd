//! A store under examination, wherever it is. Deliberately absent: what is then said of it.

use std::sync::Arc;
use std::time::Duration;

use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::{Checkup, Store};

use super::direct::only_looking;
use super::redis;
use crate::args::StoreLocation;
use crate::clock::SystemClock;
use crate::exit::CliError;

/// How long the disk, or the way to Redis, is timed.
const PROBE: Duration = Duration::from_secs(1);

/// Examines the store there; `watch` hears how many deliveries of about how many were looked at.
///
/// # Errors
/// It cannot be opened or read, or a server is using the directory that should be healed.
pub async fn examine(
    location: &StoreLocation,
    heal: bool,
    watch: Arc<dyn Fn(u64, u64) + Send + Sync>,
) -> Result<Checkup, CliError> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    match location {
        StoreLocation::Directory(directory) => {
            let examination = teimoso_store_embedded::Examination { heal, sync_for: PROBE };
            let mut watch = |done, of| watch(done, of);
            let looked = examination.run(directory, &*clock, &mut watch);
            looked.map_err(|error| CliError::failure(error.to_string()))
        }
        StoreLocation::Redis(url) => {
            let store = redis::open(url, only_looking(), clock)?;
            let examination = teimoso_store_redis::Examination { heal, write_for: PROBE };
            let looked = store.examine(examination, watch).await;
            store.close().await;
            looked.map_err(|error| CliError::failure(error.to_string()))
        }
        StoreLocation::Memory => Err(CliError::usage("a store in memory is seen by its own process only")),
    }
}
