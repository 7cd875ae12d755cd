//! What a service's errors prove, which only somebody who knows the service can say; absent: any knowledge of one.

use teimoso_retry::{Fate, Why};

/// Says what a service's error proves of the request, so that more than safe requests can be repeated.
///
/// Only a proof may be anything else than [`Fate::Ambiguous`]: a wrong [`Fate::NeverSent`] doubles writes. "The
/// connection failed" is a proof only for services that follow no redirects and repeat nothing themselves. Closures
/// are classifiers.
pub trait Classify<E> {
    /// What is known of the request that ended with this error.
    fn fate(&self, error: &E) -> Fate;
}

impl<E, F: Fn(&E) -> Fate> Classify<E> for F {
    fn fate(&self, error: &E) -> Fate {
        self(error)
    }
}

/// The default classifier: no error proves anything, so every one is ambiguous.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct NoEvidence;

impl<E> Classify<E> for NoEvidence {
    fn fate(&self, _: &E) -> Fate {
        Fate::Ambiguous(Why::Other)
    }
}
