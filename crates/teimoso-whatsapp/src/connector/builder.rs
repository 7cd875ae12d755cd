//! The settings of a connector, and their check; absent: redirects and budgets, which it has not.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use teimoso_http::retry::Preset;
use teimoso_http::{
    BuildError, Client, Clock, Egress, Entropy, HttpVersions, RetryEvent, SystemClock, SystemEntropy,
    Transport,
};

use super::Connector;
use crate::account::{Account, InvalidAccount, Settings};
use crate::adapter::Adapter;

/// The time for one attempt of what sends nothing: 30 s. Ours, beyond S3, and twice what the preset has: several
/// providers make a caller wait while they start a session.
pub const ATTEMPT_TIMEOUT: Duration = Duration::from_secs(30);

/// The time for one attempt to send: 90 s. Ours, beyond S3: a file takes long to go up, some providers hold the answer
/// back until WhatsApp has it, and a time-out of our own making would leave the outcome unknown.
pub const SEND_TIMEOUT: Duration = Duration::from_secs(90);

type Observer = Box<dyn Fn(&RetryEvent) + Send + Sync>;

/// Settings of a [`Connector`].
pub struct ConnectorBuilder<'a> {
    adapter: &'static dyn Adapter,
    settings: Settings<'a>,
    transport: Option<Transport>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    observer: Option<Observer>,
    attempt_timeout: Option<Duration>,
}

/// Why there is no connector.
#[derive(Debug)]
pub enum InvalidConnector {
    /// The account lacks something.
    Account(InvalidAccount),
    /// The client cannot be built.
    Client(BuildError),
}

impl fmt::Display for InvalidConnector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Account(error) => error.fmt(f),
            Self::Client(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for InvalidConnector {}

impl<'a> ConnectorBuilder<'a> {
    pub(super) fn new(adapter: &'static dyn Adapter, settings: Settings<'a>) -> Self {
        Self {
            adapter,
            settings,
            transport: None,
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            observer: None,
            attempt_timeout: None,
        }
    }

    /// The transport; default: HTTP/1.1, whose evidence is the strongest, with the machine's trust roots, no proxy, and
    /// no egress rules, for a connector talks to the address its caller typed.
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// The clock that waits run on; default [`SystemClock`].
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where jitter and the ids of messages come from; default [`SystemEntropy`].
    #[must_use]
    pub fn entropy(mut self, entropy: impl Entropy) -> Self {
        self.entropy = Arc::new(entropy);
        self
    }

    /// Hears of every retry, before its wait begins. What it hears holds no token, not even one that the provider wants
    /// in the path.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&RetryEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// The time for one attempt, its whole answer included; default [`ATTEMPT_TIMEOUT`], and [`SEND_TIMEOUT`] for
    /// messages. Taken as at least a millisecond and at most a day.
    #[must_use]
    pub fn attempt_timeout(mut self, timeout: Duration) -> Self {
        self.attempt_timeout = Some(timeout.clamp(Duration::from_millis(1), Duration::from_hours(24)));
        self
    }

    /// Makes the connector.
    ///
    /// # Errors
    ///
    /// What the account lacks, or a transport that cannot be built.
    pub fn build(self) -> Result<Connector, InvalidConnector> {
        let account = Account::new(self.adapter.facts(), self.settings).map_err(InvalidConnector::Account)?;
        let transport = match self.transport {
            Some(transport) => transport,
            None => Transport::builder()
                .egress(Egress::unguarded())
                .http_version(HttpVersions::Http1Only)
                .build()
                .map_err(InvalidConnector::Client)?,
        };
        let mut client = Client::builder()
            .policy(Preset::Connector)
            .clock(Arc::clone(&self.clock))
            .entropy(Arc::clone(&self.entropy))
            .transport(transport);
        if let Some(observer) = self.observer {
            client = client.observer(observer);
        }
        Ok(Connector {
            adapter: self.adapter,
            account: Arc::new(account),
            client: client.build().map_err(InvalidConnector::Client)?,
            clock: self.clock,
            entropy: self.entropy,
            attempt_timeout: self.attempt_timeout,
        })
    }
}
