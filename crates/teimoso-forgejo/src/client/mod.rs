//! The one place where a request leaves: [`Client`] and its `request` (S1.1); absent: what may be asked, which is in
//! `ops`, and any loop over attempts, which is `teimoso_http`'s.

mod answer;
mod builder;
mod call;
mod pages;
mod server;
mod token;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, ACCEPT_LANGUAGE, AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderValue, Request, Response};
use teimoso_http::retry::RetryPolicy;
use teimoso_http::{Clock, Deadline, Entropy};

use crate::error::Error;

pub(crate) use self::answer::Answer;
pub use self::builder::ClientBuilder;
pub(crate) use self::call::{Again, Call};
pub(crate) use self::pages::Page;
pub(crate) use self::server::Astray;
pub use self::server::{InvalidServer, Server};
pub use self::token::{InvalidToken, Token};

/// Redirects of one request that are followed: a repository and its owner may both have been renamed.
const HOPS_MAX: usize = 3;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
/// Some of the server's sentences are translated; these are the ones that are searched for and written about.
const ENGLISH: HeaderValue = HeaderValue::from_static("en");

/// A client of one Forgejo, with one token. Clones share everything.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    time_limit: Option<Duration>,
    obeys_retry_after: bool,
}

pub(crate) struct Shared {
    http: teimoso_http::Client,
    /// The policy of what must not be sent again once it may have taken effect.
    unless_sent: RetryPolicy,
    /// The policy of the looks of a wait: that of reads, which waits as long as the server asks for.
    obeying: RetryPolicy,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    server: Server,
    authorization: HeaderValue,
}

impl Client {
    /// A builder with the defaults: the preset `forgejo`, the machine's clock, trust roots and resolver.
    #[must_use]
    pub fn builder(server: Server, token: &Token) -> ClientBuilder {
        ClientBuilder::new(server, token.authorization())
    }

    pub(crate) fn with(shared: Shared) -> Self {
        Self { shared: Arc::new(shared), time_limit: None, obeys_retry_after: false }
    }

    /// The same client for requests that must be over within `limit`, attempts and waits together.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        Self { time_limit: Some(limit), ..self.clone() }
    }

    /// The same client for reads that are made again and again: where the server says how long it wants to be left
    /// alone, it is, up to 10 s at once; of a longer wait the error tells.
    #[must_use]
    pub fn obeying_retry_after(&self) -> Self {
        Self { obeys_retry_after: true, ..self.clone() }
    }

    /// The server it talks to.
    #[must_use]
    pub fn server(&self) -> &Server {
        &self.shared.server
    }

    /// The clock it waits on.
    #[must_use]
    pub fn clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.shared.clock)
    }

    pub(crate) fn entropy(&self) -> &dyn Entropy {
        &*self.shared.entropy
    }

    /// Sends one request until it has a final answer, and takes 2xx for success.
    ///
    /// A 307 or 308, which a renamed owner or repository answers with, is followed on the same scheme, host and port
    /// only, so that the token never leaves.
    ///
    /// # Errors
    ///
    /// No whole answer came, or one that is no success.
    pub(crate) async fn request(&self, call: Call) -> Result<Answer, Error> {
        let mut url = self.shared.server.url(&call);
        for _ in 0..HOPS_MAX {
            let response = self.send(&call, &url).await?;
            match self.shared.server.moved(&response) {
                None => return Answer::of(&call, response, &*self.shared.clock),
                Some(Ok(next)) => url = next,
                Some(Err(astray)) => {
                    return Err(Error::redirected(&call, response.status().as_u16(), astray));
                }
            }
        }
        Err(Error::redirected(&call, 307, Astray::InCircles))
    }

    async fn send(&self, call: &Call, url: &str) -> Result<Response<Bytes>, Error> {
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(url)
            .header(ACCEPT, JSON)
            .header(ACCEPT_LANGUAGE, ENGLISH)
            .header(AUTHORIZATION, self.shared.authorization.clone());
        if call.body.is_some() {
            request = request.header(CONTENT_TYPE, JSON);
        }
        match call.again {
            Again::UnlessSent => request = request.extension(self.shared.unless_sent.clone()),
            Again::Any if self.obeys_retry_after => request = request.extension(self.shared.obeying.clone()),
            Again::Any => {}
        }
        if let Some(limit) = self.time_limit {
            request = request.extension(Deadline(limit));
        }
        let body = call.body.clone().unwrap_or_default();
        let request = request.body(body).map_err(|error| Error::transport(call, error.into()))?;
        let sent = self.shared.http.send_and_collect(request).await;
        sent.map_err(|error| Error::transport(call, error))
    }
}

impl fmt::Debug for Client {
    /// The token is left out.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("server", &self.shared.server).finish_non_exhaustive()
    }
}
