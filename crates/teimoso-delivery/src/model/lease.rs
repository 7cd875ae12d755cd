//! The expiring, fenced right to work one delivery.

use super::DeliveryId;

/// 128 random bits of one claim. A counter would be no fence: a failover re-issues it (G5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Nonce(pub u128);

/// The right to attempt and settle one delivery until it expires, is settled or is lost.
///
/// Not `Clone`: a settlement consumes it, so that nothing is settled twice by accident. Stores compare
/// the nonce, so that nothing is settled by a stranger either.
#[derive(Debug, PartialEq, Eq, Hash)]
pub struct Lease {
    delivery: DeliveryId,
    nonce: Nonce,
}

impl Lease {
    /// A lease on `delivery`, given out by the claim that drew `nonce`. For stores.
    #[must_use]
    pub const fn grant(delivery: DeliveryId, nonce: Nonce) -> Self {
        Self { delivery, nonce }
    }

    /// The delivery this lease is for.
    #[must_use]
    pub const fn delivery(&self) -> DeliveryId {
        self.delivery
    }

    /// What a store compares.
    #[must_use]
    pub const fn nonce(&self) -> Nonce {
        self.nonce
    }
}
