//! One cell of the matrix, played for real: one request by a client of its own to a peer of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use http::Method;
use teimoso_http::{
    Client, Clock, Egress, Entropy, Error, HttpVersions, Idempotent, Redirects, RequestBody, Resolve,
    Resolving, RetryTrace, Sleeping, TlsRoots, Transport,
};
use teimoso_retry::{Fate, Preset, RetryPolicy};

use crate::faults::{Fault, Idle, Lookup, Peer, Tally};

/// How long a client waits for a peer that is silent on purpose.
const PATIENCE: Duration = Duration::from_millis(50);

const UPLOAD_BYTES: usize = 8 * 1024 * 1024;

/// What kind of request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Get,
    Post,
    MarkedPost,
}

impl Kind {
    pub const ALL: [Self; 3] = [Self::Get, Self::Post, Self::MarkedPost];
}

/// What came of a cell.
#[derive(Debug, PartialEq, Eq)]
pub struct Seen {
    pub fates: Vec<Fate>,
    /// How many of the attempts went to the peer itself, and not where it redirected them.
    pub attempts_here: usize,
    pub tally: Tally,
    /// What an error says of the request's effect; `None` when there was an answer.
    pub may_have_taken_effect: Option<bool>,
}

/// Plays a fault against one request.
pub fn play(fault: &'static Fault, preset: Preset, kind: Kind) -> Seen {
    let peer = Peer::start(fault);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let outcome = runtime.block_on(request(fault, &peer, preset, kind));
    // Whatever still drives a connection ends here, so that the peer's count is final.
    drop(runtime);
    let tally = peer.tally();
    let (trace, may_have_taken_effect) = match &outcome {
        Ok(trace) => (trace, None),
        Err(error) => (error.trace(), Some(error.may_have_taken_effect())),
    };
    Seen {
        fates: trace.attempts().iter().map(|attempt| attempt.fate).collect(),
        attempts_here: trace.attempts().iter().filter(|attempt| attempt.hop == 0).count(),
        tally,
        may_have_taken_effect,
    }
}

async fn request(fault: &Fault, peer: &Peer, preset: Preset, kind: Kind) -> Result<RetryTrace, Error> {
    let client = client(fault, peer, preset);
    if fault.idle != Idle::Fresh {
        let warm_up = http::Request::get(peer.url()).body(()).unwrap();
        assert_eq!(client.send_and_collect(warm_up).await.unwrap().status(), 200);
        match fault.idle {
            Idle::Fresh | Idle::Kept => peer.forget(),
            Idle::SpoiltUnseen => peer.spoil(),
            Idle::SpoiltSeen => {
                peer.spoil();
                tokio::task::yield_now().await;
            }
        }
    }
    let mut request = http::Request::builder().uri(peer.url()).method(match kind {
        Kind::Get => Method::GET,
        Kind::Post | Kind::MarkedPost => Method::POST,
    });
    if kind == Kind::MarkedPost {
        request = request.extension(Idempotent);
    }
    let response = client.send_and_collect(request.body(body(fault, kind)).unwrap()).await?;
    Ok(response.extensions().get::<RetryTrace>().unwrap().clone())
}

fn body(fault: &Fault, kind: Kind) -> RequestBody {
    match kind {
        _ if fault.uploads => vec![b'x'; UPLOAD_BYTES].into(),
        Kind::Get => ().into(),
        Kind::Post | Kind::MarkedPost => "payload".into(),
    }
}

fn client(fault: &Fault, peer: &Peer, preset: Preset) -> Client {
    let mut policy = RetryPolicy::preset(preset);
    if fault.silent {
        policy = policy.to_builder().attempt_timeout(PATIENCE).build().unwrap();
    }
    Client::builder()
        .policy(policy)
        .redirects(if fault.redirects { Redirects::Limit(5) } else { Redirects::None })
        .clock(InstantClock::default())
        .entropy(NoChance)
        .transport(transport(fault, peer))
        .build()
        .unwrap()
}

fn transport(fault: &Fault, peer: &Peer) -> Transport {
    let builder = Transport::builder()
        .egress(Egress::new(vec!["127.0.0.0/8".parse().unwrap()]))
        .tls_roots(TlsRoots::OnlyAdded)
        .resolver(Resolver(fault.lookup))
        .http_version(if fault.http2 { HttpVersions::Http2Only } else { HttpVersions::Http2Preferred });
    match peer.root() {
        Some(root) => builder.tls_root_der(root),
        None => builder,
    }
    .build()
    .unwrap()
}

/// Waits cost no time: the clock moves instead.
#[derive(Clone, Default)]
struct InstantClock(Arc<AtomicU64>);

impl Clock for InstantClock {
    fn now(&self) -> Duration {
        Duration::from_nanos(self.0.load(Ordering::Relaxed))
    }

    fn unix_now(&self) -> Duration {
        self.now()
    }

    fn sleep(&self, wait: Duration) -> Sleeping {
        self.0.fetch_add(u64::try_from(wait.as_nanos()).unwrap(), Ordering::Relaxed);
        Box::pin(std::future::ready(()))
    }
}

struct NoChance;

impl Entropy for NoChance {
    fn bits(&self) -> u64 {
        0
    }
}

struct Resolver(Lookup);

impl Resolve for Resolver {
    fn resolve(&self, _: &str) -> Resolving {
        match self.0 {
            Lookup::Literal | Lookup::Fails => Box::pin(async { Err(io::Error::other("no such name")) }),
            Lookup::Hangs => Box::pin(std::future::pending()),
        }
    }
}
