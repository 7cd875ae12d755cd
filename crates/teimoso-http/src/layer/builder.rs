//! The settings of a layer; absent: those of the service, and of an attempt's time, which only the service can bound.

use std::fmt;
use std::sync::Arc;

use teimoso_retry::{Budget, RetryPolicy};

use super::classify::NoEvidence;
use super::{RetryLayer, Shared};
use crate::client::{Budgets, Ports, RetryEvent, default_budget};
use crate::clock::{Clock, Entropy, SystemClock, SystemEntropy};

/// Settings of a [`RetryLayer`] beside its policy.
pub struct RetryLayerBuilder<C = NoEvidence> {
    policy: RetryPolicy,
    retry_budget: Option<Budget>,
    ports: Ports,
    classify: C,
}

impl RetryLayer {
    /// A layer with this policy and everything else by default.
    pub fn new(policy: impl Into<RetryPolicy>) -> Self {
        Self::builder(policy).build()
    }

    /// A layer with more to say than its policy.
    pub fn builder(policy: impl Into<RetryPolicy>) -> RetryLayerBuilder {
        let policy = policy.into();
        RetryLayerBuilder {
            retry_budget: default_budget(&policy),
            policy,
            ports: Ports {
                clock: Arc::new(SystemClock::new()),
                entropy: Arc::new(SystemEntropy),
                observer: None,
            },
            classify: NoEvidence,
        }
    }
}

impl<C> RetryLayer<C> {
    /// The same layer with another classifier, which says what the service's errors prove.
    #[must_use]
    pub fn classify<D>(self, classify: D) -> RetryLayer<D> {
        RetryLayer { shared: self.shared, classify }
    }
}

impl<C> RetryLayerBuilder<C> {
    /// What the service's errors prove; default [`NoEvidence`].
    #[must_use]
    pub fn classify<D>(self, classify: D) -> RetryLayerBuilder<D> {
        let Self { policy, retry_budget, ports, .. } = self;
        RetryLayerBuilder { policy, retry_budget, ports, classify }
    }

    /// The retry budget, as [`ClientBuilder::retry_budget`](crate::ClientBuilder::retry_budget) has it.
    #[must_use]
    pub fn retry_budget(mut self, budget: Option<Budget>) -> Self {
        self.retry_budget = budget;
        self
    }

    /// The clock; default [`SystemClock`].
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.ports.clock = Arc::new(clock);
        self
    }

    /// Where jitter comes from; default [`SystemEntropy`].
    #[must_use]
    pub fn entropy(mut self, entropy: impl Entropy) -> Self {
        self.ports.entropy = Arc::new(entropy);
        self
    }

    /// Hears of every retry, before its wait begins, beside the `tracing` warning.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&RetryEvent) + Send + Sync + 'static) -> Self {
        self.ports.observer = Some(Box::new(observer));
        self
    }

    /// Makes the layer.
    pub fn build(self) -> RetryLayer<C> {
        let budgets = self.retry_budget.map(Budgets::new);
        let shared = Shared { policy: self.policy, budgets, ports: self.ports };
        RetryLayer { shared: Arc::new(shared), classify: self.classify }
    }
}

impl<C> fmt::Debug for RetryLayerBuilder<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RetryLayerBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}
