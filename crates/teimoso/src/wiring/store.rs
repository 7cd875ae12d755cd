//! The store a command line names.

use std::sync::Arc;

use teimoso_delivery::memory::MemoryStore;
use teimoso_delivery::ports::{Clock, Entropy};
use teimoso_delivery::store::Store;
use teimoso_store_embedded::{EmbeddedStore, Options};

use super::entropy::SystemEntropy;
use crate::args::StoreLocation;
use crate::exit::CliError;

/// Opens it.
///
/// # Errors
/// One sentence when it is held by another process, not writable, damaged or of a newer format.
pub fn open(
    location: &StoreLocation,
    options: Options,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Store>, CliError> {
    match location {
        StoreLocation::Memory => Ok(Arc::new(MemoryStore::new(clock, SystemEntropy.next_u64()))),
        StoreLocation::Directory(directory) => {
            let opened = EmbeddedStore::open(directory, options, clock, &SystemEntropy);
            let store = opened.map_err(|error| CliError::failure(error.to_string()))?;
            Ok(Arc::new(store))
        }
    }
}
