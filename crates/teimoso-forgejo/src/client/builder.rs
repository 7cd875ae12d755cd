//! The settings of a client (S1.7), flat and all with defaults; absent: the token's and the server's checks, which
//! their types make.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderValue;
use teimoso_http::retry::{
    Beyond, Factor, Forms, Jitter, Preset, RetryAfterRule, RetryPolicy, Schedule, Scope,
};
use teimoso_http::{BuildError, Clock, Entropy, RetryEvent, SystemClock, SystemEntropy, Transport};

use super::{Client, Server, Shared};

/// The longest wait between two attempts, whatever the first one is. With the defaults it is never reached.
const WAIT_MAX: Duration = Duration::from_secs(10);

/// The largest answer that is read: 20 MiB, beyond any page of the API.
const ANSWER_MAX_BYTES: usize = 20 << 20;

type Observer = Box<dyn Fn(&RetryEvent) + Send + Sync>;

/// Settings of a [`Client`].
pub struct ClientBuilder {
    server: Server,
    authorization: HeaderValue,
    retries: u32,
    first_wait: Duration,
    jitter: bool,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    observer: Option<Observer>,
    transport: Option<Transport>,
}

impl ClientBuilder {
    pub(super) fn new(server: Server, authorization: HeaderValue) -> Self {
        Self {
            server,
            authorization,
            retries: 3,
            first_wait: Duration::from_millis(300),
            jitter: true,
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            observer: None,
            transport: None,
        }
    }

    /// How many attempts may follow the first; default 3, none for 0 (S1.6, S1.7).
    #[must_use]
    pub fn retries(mut self, retries: u32) -> Self {
        self.retries = retries;
        self
    }

    /// The wait before the second attempt, which doubles before each further one up to 10 s; default 300 ms.
    #[must_use]
    pub fn first_wait(mut self, wait: Duration) -> Self {
        self.first_wait = wait;
        self
    }

    /// Whether waits are spread by ±20 %; default yes.
    #[must_use]
    pub fn jitter(mut self, on: bool) -> Self {
        self.jitter = on;
        self
    }

    /// The clock that every wait runs on; default the machine's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where jitter and markers come from; default the machine's.
    #[must_use]
    pub fn entropy(mut self, entropy: impl Entropy) -> Self {
        self.entropy = Arc::new(entropy);
        self
    }

    /// Hears of every retry before its wait begins (S1.8).
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&RetryEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// The transport: proxy, trust roots, resolver. Default: that of [`teimoso_http::Client`], which may talk to any
    /// address.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Makes the client.
    ///
    /// # Errors
    ///
    /// The default transport cannot be built.
    pub fn build(self) -> Result<Client, BuildError> {
        let policy = policy(self.retries, self.first_wait, self.jitter);
        let unless_sent = policy.to_builder().ambiguous(Scope::Never).build();
        let unless_sent = unless_sent.expect("a narrower scope makes no policy invalid");
        let retry_after = RetryAfterRule::new(Forms::Both, WAIT_MAX, Beyond::GiveUp, false);
        let retry_after = retry_after.expect("the cap is above zero and below 30 days");
        let obeying = policy.to_builder().retry_after(retry_after).build();
        let obeying = obeying.expect("a rule for a header makes no policy invalid");
        let mut http = teimoso_http::Client::builder()
            .policy(policy)
            .response_body_max(ANSWER_MAX_BYTES)
            .clock(Arc::clone(&self.clock))
            .entropy(Arc::clone(&self.entropy));
        if let Some(observer) = self.observer {
            http = http.observer(observer);
        }
        if let Some(transport) = self.transport {
            http = http.transport(transport);
        }
        Ok(Client::with(Shared {
            http: http.build()?,
            unless_sent,
            obeying,
            clock: self.clock,
            entropy: self.entropy,
            server: self.server,
            authorization: self.authorization,
        }))
    }
}

/// The preset `forgejo` with these numbers; numbers that no policy can have leave it as it is.
fn policy(retries: u32, first_wait: Duration, jitter: bool) -> RetryPolicy {
    let preset = RetryPolicy::preset(Preset::Forgejo);
    let jitter = if jitter { preset.jitter() } else { Jitter::None };
    let waits = Schedule::exponential(first_wait, Factor::TWO, WAIT_MAX.max(first_wait));
    let waits = waits.unwrap_or_else(|_| preset.waits().clone());
    preset.to_builder().retries(retries).schedule(waits).jitter(jitter).build().unwrap_or(preset)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s1_6_the_defaults_are_the_preset_s() {
        let default = policy(3, Duration::from_millis(300), true);
        assert_eq!(default, RetryPolicy::preset(Preset::Forgejo));
    }

    #[test]
    fn s1_7_each_number_can_be_set_and_nonsense_leaves_the_preset() {
        assert_eq!(policy(0, Duration::from_millis(300), true).max_attempts().get(), 1);
        let plain = policy(2, Duration::from_secs(1), false);
        let waits: Vec<Duration> = plain.schedule().map(|step| step.wait).collect();
        assert_eq!(waits, [0, 1, 2].map(Duration::from_secs));
        assert_eq!(plain.jitter(), Jitter::None);
        assert_eq!(policy(3, Duration::ZERO, true), RetryPolicy::preset(Preset::Forgejo));
    }
}
