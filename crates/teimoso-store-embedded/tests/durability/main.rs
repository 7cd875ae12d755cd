//! What the file keeps: over ends clean and unclean, a full disk, expiry, damage, and formats.
//!
//! In-process, on real files; only a test moves the clock. A killed process is staged by copying the
//! files of a store that is still open. Deliberately absent: real processes and signals.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod damage;
#[cfg(test)]
mod doctor;
#[cfg(test)]
mod expiry;
#[cfg(test)]
mod format;
#[cfg(test)]
mod full_disk;
#[cfg(test)]
mod lanes;
#[cfg(test)]
mod log;
#[cfg(test)]
mod refused;
#[cfg(test)]
mod reopen;
