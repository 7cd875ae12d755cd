//! The compared clients, as their documentation sets them up, each with three retries.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use reqwest_middleware::ClientWithMiddleware;
use reqwest_retry::RetryTransientMiddleware;
use reqwest_retry::policies::ExponentialBackoff;
use teimoso_http::{Client, Egress, HttpVersions, Redirects, Resolve, Resolving, TlsRoots, Transport};
use teimoso_retry::{Preset, RetryPolicy};

use crate::faults::{Fault, Lookup, Peer};

const RETRIES: u32 = 3;
/// How long a client waits for a peer that is silent on purpose.
const PATIENCE: Duration = Duration::from_millis(50);

/// One of the compared.
pub struct Compared {
    pub name: &'static str,
    pub connect: Connect,
}

/// Makes a client for this fault and this peer.
pub type Connect = fn(&Fault, &Peer) -> Box<dyn Sends>;

pub const CLIENTS: [Compared; 4] = [
    Compared { name: "reqwest-retry", connect: reqwest_retry },
    Compared { name: "reqwest", connect: reqwest_alone },
    Compared { name: "reqwest::retry", connect: reqwest_own_retry },
    Compared { name: "teimoso-http", connect: ours },
];

type Done<'a> = Pin<Box<dyn Future<Output = ()> + 'a>>;

/// Sends a request and reads its answer, however that ends.
pub trait Sends {
    fn get<'a>(&'a self, url: &'a str) -> Done<'a>;
    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> Done<'a>;
}

fn reqwest(fault: &Fault, peer: &Peer) -> reqwest::ClientBuilder {
    let roots = peer.root().map(|root| reqwest::Certificate::from_der(root).expect("a certificate"));
    let mut builder = reqwest::Client::builder()
        .no_proxy()
        .tls_certs_only(roots)
        .dns_resolver(Arc::new(Resolver(fault.lookup)));
    if fault.silent {
        builder = builder.timeout(PATIENCE);
    }
    if fault.http2 { builder.http2_prior_knowledge() } else { builder }
}

/// The middleware with its own idea of what is transient; only the waits are shortened.
fn reqwest_retry(fault: &Fault, peer: &Peer) -> Box<dyn Sends> {
    let policy = ExponentialBackoff::builder()
        .retry_bounds(Duration::from_millis(1), Duration::from_millis(2))
        .build_with_max_retries(RETRIES);
    let client = reqwest(fault, peer).build().expect("a client");
    let client = reqwest_middleware::ClientBuilder::new(client)
        .with(RetryTransientMiddleware::new_with_policy(policy))
        .build();
    Box::new(client)
}

/// What reqwest does unasked: it repeats what HTTP/2 says was not processed.
fn reqwest_alone(fault: &Fault, peer: &Peer) -> Box<dyn Sends> {
    let client = reqwest(fault, peer).build().expect("a client");
    Box::new(reqwest_middleware::ClientBuilder::new(client).build())
}

/// Its own retry with a classifier that asks for errors and 503 to be tried again; the crate leaves that to its user.
fn reqwest_own_retry(fault: &Fault, peer: &Peer) -> Box<dyn Sends> {
    let policy = reqwest::retry::for_host("127.0.0.1")
        .no_budget()
        .max_retries_per_request(RETRIES)
        .classify_fn(|exchange| match exchange.status() {
            None | Some(reqwest::StatusCode::SERVICE_UNAVAILABLE) => exchange.retryable(),
            Some(_) => exchange.success(),
        });
    let client = reqwest(fault, peer).retry(policy).build().expect("a client");
    Box::new(reqwest_middleware::ClientBuilder::new(client).build())
}

impl Sends for ClientWithMiddleware {
    fn get<'a>(&'a self, url: &'a str) -> Done<'a> {
        Box::pin(read(self.get(url)))
    }

    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> Done<'a> {
        Box::pin(read(self.post(url).body(body)))
    }
}

async fn read(request: reqwest_middleware::RequestBuilder) {
    if let Ok(response) = request.send().await {
        drop(response.bytes().await);
    }
}

/// The preset `standard`, with as many retries as the others.
fn ours(fault: &Fault, peer: &Peer) -> Box<dyn Sends> {
    let mut policy = RetryPolicy::preset(Preset::Standard).to_builder().retries(RETRIES);
    if fault.silent {
        policy = policy.attempt_timeout(PATIENCE);
    }
    let mut transport = Transport::builder()
        .egress(Egress::new(vec!["127.0.0.0/8".parse().expect("a network")]))
        .tls_roots(TlsRoots::OnlyAdded)
        .resolver(Resolver(fault.lookup))
        .http_version(if fault.http2 { HttpVersions::Http2Only } else { HttpVersions::Http2Preferred });
    if let Some(root) = peer.root() {
        transport = transport.tls_root_der(root);
    }
    let client = Client::builder()
        .policy(policy.build().expect("a policy"))
        .redirects(if fault.redirects { Redirects::Limit(5) } else { Redirects::None })
        .transport(transport.build().expect("a transport"))
        .build()
        .expect("a client");
    Box::new(client)
}

impl Sends for Client {
    fn get<'a>(&'a self, url: &'a str) -> Done<'a> {
        let request = http::Request::get(url).body(()).expect("a request");
        Box::pin(async { drop(self.send_and_collect(request).await) })
    }

    fn post<'a>(&'a self, url: &'a str, body: Vec<u8>) -> Done<'a> {
        let request = http::Request::post(url).body(body).expect("a request");
        Box::pin(async { drop(self.send_and_collect(request).await) })
    }
}

/// No name exists, or no answer ever comes.
struct Resolver(Lookup);

impl Resolver {
    async fn end(lookup: Lookup) -> std::io::Error {
        match lookup {
            Lookup::Literal | Lookup::Fails => std::io::Error::other("no such name"),
            Lookup::Hangs => std::future::pending().await,
        }
    }
}

impl Resolve for Resolver {
    fn resolve(&self, _: &str) -> Resolving {
        let end = Self::end(self.0);
        Box::pin(async { Err(end.await) })
    }
}

impl reqwest::dns::Resolve for Resolver {
    fn resolve(&self, _: reqwest::dns::Name) -> reqwest::dns::Resolving {
        let end = Self::end(self.0);
        Box::pin(async { Err(end.await.into()) })
    }
}
