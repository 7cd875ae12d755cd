//! The settings of a client, and their check; absent: those of the wire (trust roots, proxy, HTTP versions, pool),
//! which are [`TransportBuilder`](crate::TransportBuilder)'s.

use std::fmt;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use teimoso_retry::{Budget, Preset, RetryPolicy};

use super::Client;
use super::budgets::Budgets;
use super::call::{Core, Ports};
use super::event::{Observer, RetryEvent};
use super::targets::Destinations;
use crate::clock::{Clock, Entropy, SystemClock, SystemEntropy};
use crate::egress::Egress;
use crate::redirect::Redirects;
use crate::transport::{BuildError, HttpVersions, Transport};

/// The largest response body that [`Client::send_and_collect`] reads, by default: 10 MiB.
pub const RESPONSE_BODY_MAX: usize = 10 * 1024 * 1024;

/// Settings of a [`Client`].
pub struct ClientBuilder {
    policy: RetryPolicy,
    default_headers: Result<HeaderMap, http::Error>,
    response_body_max: usize,
    redirects: Redirects,
    retry_budget: Option<Option<Budget>>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    observer: Option<Observer>,
    transport: Option<Transport>,
}

impl ClientBuilder {
    pub(super) fn new() -> Self {
        Self {
            policy: RetryPolicy::preset(Preset::Standard),
            default_headers: Ok(HeaderMap::new()),
            response_body_max: RESPONSE_BODY_MAX,
            redirects: Redirects::default(),
            retry_budget: None,
            clock: Arc::new(SystemClock::new()),
            entropy: Arc::new(SystemEntropy),
            observer: None,
            transport: None,
        }
    }

    /// The retry policy: a [`Preset`] or one of your own. It also holds the time-outs of an attempt, of connecting and
    /// of the whole call. Default: [`Preset::Standard`]. A request may bring another one in its extensions.
    #[must_use]
    pub fn policy(mut self, policy: impl Into<RetryPolicy>) -> Self {
        self.policy = policy.into();
        self
    }

    /// A header for every request that has none of this name. Mark secret values as
    /// [sensitive](HeaderValue::set_sensitive): they do not follow a redirect to another scheme, host or port. Given
    /// twice, a name has two values.
    #[must_use]
    pub fn default_header<K, V>(mut self, name: K, value: V) -> Self
    where
        K: TryInto<HeaderName>,
        K::Error: Into<http::Error>,
        V: TryInto<HeaderValue>,
        V::Error: Into<http::Error>,
    {
        self.default_headers = self.default_headers.and_then(|mut headers| {
            let name = name.try_into().map_err(Into::into)?;
            headers.append(name, value.try_into().map_err(Into::into)?);
            Ok(headers)
        });
        self
    }

    /// The largest response body that [`Client::send_and_collect`] reads, in bytes; default [`RESPONSE_BODY_MAX`]. A
    /// larger one is an error of kind `too_large`, and is not fetched again.
    #[must_use]
    pub fn response_body_max(mut self, bytes: usize) -> Self {
        self.response_body_max = bytes;
        self
    }

    /// Whether redirects are followed; default: they are returned. Each hop has its own attempts, all within the time
    /// of the call; credentials do not leave the scheme, host and port they were meant for.
    #[must_use]
    pub fn redirects(mut self, redirects: Redirects) -> Self {
        self.redirects = redirects;
        self
    }

    /// The retry budget that each authority starts with a copy of: `Budget::new(200, 10)` allows one retry per five
    /// requests, and ten beside. `None`: no budget.
    ///
    /// Default: [`Budget::default`], which is just that, if the client's policy is exactly [`Preset::Standard`], else
    /// none: a policy that was made from `standard` and changed in anything has no budget unless it is given one here.
    /// It holds for requests that bring their own policy too.
    #[must_use]
    pub fn retry_budget(mut self, budget: Option<Budget>) -> Self {
        self.retry_budget = Some(budget);
        self
    }

    /// The clock that waits and deadlines run on; default [`SystemClock`]. The deadlines of sockets are tokio's.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock) -> Self {
        self.clock = Arc::new(clock);
        self
    }

    /// Where jitter comes from; default [`SystemEntropy`].
    #[must_use]
    pub fn entropy(mut self, entropy: impl Entropy) -> Self {
        self.entropy = Arc::new(entropy);
        self
    }

    /// Hears of every retry, before its wait begins, beside the `tracing` warning. It runs within the call and must
    /// not block.
    #[must_use]
    pub fn observer(mut self, observer: impl Fn(&RetryEvent) + Send + Sync + 'static) -> Self {
        self.observer = Some(Box::new(observer));
        self
    }

    /// The transport; default: one with the machine's trust roots, HTTP/2 where a TLS peer offers it, no proxy, and no
    /// egress rules, for a client talks to the address its caller typed.
    ///
    /// One that you build yourself begins with the defaults of deliveries, which are stricter: HTTP/1.1 alone, and egress
    /// rules that refuse loopback and private addresses. A client wants [`Egress::unguarded`] and
    /// [`HttpVersions::Http2Preferred`].
    #[must_use]
    pub fn transport(mut self, transport: Transport) -> Self {
        self.transport = Some(transport);
        self
    }

    /// Makes the client.
    ///
    /// # Errors
    ///
    /// A default header that HTTP cannot carry, or a default transport that cannot be built.
    pub fn build(self) -> Result<Client, BuildError> {
        let default_headers = self
            .default_headers
            .map_err(|error| BuildError::new(format!("use a default header: {error}")))?;
        let transport = match self.transport {
            Some(transport) => transport,
            None => Transport::builder()
                .egress(Egress::unguarded())
                .http_version(HttpVersions::Http2Preferred)
                .build()?,
        };
        let budget = self.retry_budget.unwrap_or_else(|| default_budget(&self.policy));
        let core = Core {
            transport,
            policy: self.policy,
            default_headers,
            redirects: self.redirects.limit(),
            destinations: Destinations::new(budget.map(Budgets::new)),
            ports: Ports { clock: self.clock, entropy: self.entropy, observer: self.observer },
        };
        Ok(Client { core: Arc::new(core), response_body_max: self.response_body_max })
    }
}

/// On for `standard` alone: whoever asks for a number of retries means that number.
pub(crate) fn default_budget(policy: &RetryPolicy) -> Option<Budget> {
    (*policy == RetryPolicy::preset(Preset::Standard)).then(Budget::default)
}

impl fmt::Debug for ClientBuilder {
    /// Header values are left out: they may be secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientBuilder").field("policy", &self.policy).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(change: impl FnOnce(ClientBuilder) -> ClientBuilder) -> String {
        change(Client::builder()).build().unwrap_err().to_string()
    }

    #[test]
    fn a_default_header_that_http_cannot_carry_is_named_and_its_value_is_not() {
        let name = refused(|builder| builder.default_header("a b", "c").default_header("d", "e"));
        assert_eq!(name, "failed to use a default header: invalid HTTP header name");
        let value = refused(|builder| builder.default_header("a", "s3cret\n"));
        assert_eq!(value, "failed to use a default header: failed to parse header value");
    }

    #[test]
    fn a_budget_is_on_for_standard_and_off_elsewhere() {
        assert_eq!(default_budget(&Preset::Standard.into()), Some(Budget::default()));
        for preset in [Preset::Forgejo, Preset::Connector, Preset::Webhook, Preset::Patient] {
            assert_eq!(default_budget(&preset.into()), None);
        }
        let own = RetryPolicy::builder().retries(20).build().unwrap();
        assert_eq!(default_budget(&own), None);
    }

    #[test]
    fn no_secret_of_a_builder_is_printed() {
        let builder = Client::builder().default_header("authorization", "s3cret");
        assert!(!format!("{builder:?}").contains("s3cret"));
    }
}
