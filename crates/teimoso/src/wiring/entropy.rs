//! The process's source of chance: the only file that draws from it.

use teimoso_delivery::ports::Entropy;

/// Random bits from a generator that each thread seeds from the system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemEntropy;

impl Entropy for SystemEntropy {
    #[expect(clippy::disallowed_methods, reason = "this is the one place where chance is drawn")]
    fn next_u64(&self) -> u64 {
        fastrand::u64(..)
    }
}
