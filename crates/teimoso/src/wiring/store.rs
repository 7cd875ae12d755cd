//! The store a command line names.

use std::sync::Arc;

use teimoso_delivery::memory::MemoryStore;
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::Store;
use teimoso_store_embedded::EmbeddedStore;

use super::entropy::SystemEntropy;
use super::redis;
use crate::args::StoreLocation;
use crate::exit::CliError;

/// How a store is opened, for either kind that lasts.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// The embedded store's.
    pub embedded: teimoso_store_embedded::Options,
    /// The Redis store's; user and password come from the URL and the environment.
    pub redis: teimoso_store_redis::Options,
}

/// Opens it. Blocks for as long as Redis takes to answer: 2 s at most when it does not.
///
/// # Errors
/// One sentence when it is held by another process, not writable, damaged, of a newer format, or a Redis that cannot
/// be reached, refuses us, or would lose deliveries.
pub fn open(
    location: &StoreLocation,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, CliError> {
    match location {
        StoreLocation::Memory => Ok(Arc::new(MemoryStore::new(clock, SystemEntropy.next_u64()))),
        StoreLocation::Directory(directory) => {
            let opened = EmbeddedStore::open(directory, options.embedded, clock, &SystemEntropy);
            let store = opened.map_err(|error| CliError::failure(error.to_string()))?;
            Ok(Arc::new(store))
        }
        StoreLocation::Redis(url) => Ok(Arc::new(redis::open(url, options.redis, clock)?)),
    }
}
