//! Which retry policy an event is delivered under: its own, else the server's.
//!
//! Deliberately absent: endpoints' policies and policies of configuration files, which come with them.

use std::sync::Arc;
use std::time::Duration;

use teimoso_retry::{Preset, RetryPolicy};

use crate::model::PolicyName;

/// The server's policy and those that an event may name.
#[derive(Debug, Clone)]
pub struct Policies {
    default: Arc<RetryPolicy>,
    named: Vec<(&'static str, Arc<RetryPolicy>)>,
}

impl Policies {
    /// `default` for events that name none; every preset by its name.
    #[must_use]
    pub fn new(default: RetryPolicy) -> Self {
        let named = |preset: Preset| (preset.name(), Arc::new(RetryPolicy::preset(preset)));
        Self { default: Arc::new(default), named: Preset::ALL.into_iter().map(named).collect() }
    }

    /// The policy of an event that names `name`. A name that is not known (any more) is the default.
    #[must_use]
    pub fn resolve(&self, name: Option<&PolicyName>) -> &Arc<RetryPolicy> {
        name.and_then(|name| self.find(name)).unwrap_or(&self.default)
    }

    /// The longest time that any of the policies gives an attempt.
    #[must_use]
    pub fn longest_attempt(&self) -> Duration {
        let named = self.named.iter().map(|(_, policy)| policy.attempt_timeout());
        named.fold(self.default.attempt_timeout(), Duration::max)
    }

    fn find(&self, name: &PolicyName) -> Option<&Arc<RetryPolicy>> {
        self.named.iter().find(|(known, _)| *known == name.as_str()).map(|(_, policy)| policy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(text: &str) -> PolicyName {
        PolicyName::parse(text).unwrap()
    }

    #[test]
    fn an_events_policy_goes_before_the_servers() {
        let policies = Policies::new(RetryPolicy::preset(Preset::Patient));
        assert_eq!(policies.resolve(None).max_attempts().get(), 10);
        assert_eq!(policies.resolve(Some(&name("webhook"))).max_attempts().get(), 5);
        assert_eq!(policies.resolve(Some(&name("gone"))).max_attempts().get(), 10);
    }

    #[test]
    fn the_longest_attempt_is_that_of_any_policy() {
        let quick = RetryPolicy::builder().attempt_timeout(Duration::from_secs(1)).build().unwrap();
        assert_eq!(Policies::new(quick).longest_attempt(), Duration::from_secs(15));
        let slow = RetryPolicy::builder().attempt_timeout(Duration::from_secs(60)).build().unwrap();
        assert_eq!(Policies::new(slow).longest_attempt(), Duration::from_secs(60));
    }
}
