//! The phases before a request can be sent: resolve, guard, connect, TLS; absent: HTTP, and connecting to several
//! addresses at once.
//!
//! Whatever fails here proves that nothing was sent, and the phase is the proof.

use std::future::poll_fn;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use rustls::pki_types::ServerName;
use teimoso_retry::{Fate, Proof, Refusal};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsConnector;

use crate::attempt::{AttemptError, ErrorKind, Timings};
use crate::egress::Egress;
use crate::evidence;
use crate::http1::{poll_timer, set_timer};
use crate::io::Stream;
use crate::resolve::Resolver;
use crate::target::{Origin, OriginHost, socket_address};

/// Addresses of one name that are tried in one attempt, at most: each gets a fair part of the connect time, and
/// slices of it must stay long enough to connect in.
pub const ADDRESSES_TRIED_MAX: usize = 6;

/// Everything that makes connections.
pub(crate) struct Connector {
    pub(crate) resolver: Resolver,
    pub(crate) egress: Egress,
    pub(crate) tls: TlsConnector,
}

/// What an attempt learns on the way to a connection, whether or not there is one in the end.
#[derive(Default)]
pub(crate) struct Progress {
    pub(crate) timings: Timings,
    pub(crate) peer: Option<SocketAddr>,
}

/// Why there is no connection, with the fate that this proves.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    pub(crate) fate: Fate,
    pub(crate) error: AttemptError,
}

fn never_sent(proof: Proof, kind: ErrorKind, message: String) -> ConnectFailure {
    ConnectFailure { fate: Fate::NeverSent(proof), error: AttemptError { kind, message } }
}

impl Connector {
    /// Makes a connection to an origin, all phases before `deadline`. The addresses that were checked are the ones
    /// that are connected to: nothing resolves a second time.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        mut timer: Pin<&mut Sleep>,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<(Stream, SocketAddr), ConnectFailure> {
        let addresses = self.resolve(origin, timer.as_mut(), deadline, progress).await?;
        let allowed = self.guard(&addresses, origin)?;
        let begun = Instant::now();
        let dialled = dial(&allowed, timer.as_mut(), deadline, progress).await;
        progress.timings.connect = Some(begun.elapsed());
        let (tcp, peer) = dialled?;
        let Some(name) = origin.tls_name() else { return Ok((Stream::Plain(tcp), peer)) };
        let begun = Instant::now();
        let stream = self.shake_hands(name, tcp, peer, timer, deadline).await;
        progress.timings.tls = Some(begun.elapsed());
        Ok((stream?, peer))
    }

    async fn resolve(
        &self,
        origin: &Origin,
        timer: Pin<&mut Sleep>,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<Vec<IpAddr>, ConnectFailure> {
        let name = match origin.host() {
            OriginHost::Address(address) => return Ok(vec![*address]),
            OriginHost::Name(name) => name,
        };
        let begun = Instant::now();
        let answer = within(timer, deadline, self.resolver.lookup(name)).await;
        progress.timings.dns = Some(begun.elapsed());
        let words = match &answer {
            Some(Ok(addresses)) => return Ok(addresses.iter().map(IpAddr::to_canonical).collect()),
            Some(Err(error)) => &*error.words,
            None => "no answer in time",
        };
        Err(never_sent(Proof::Dns, ErrorKind::Dns, format!("look up {name}: {words}")))
    }

    /// The addresses that may be tried, in the resolver's order. One that is allowed suffices.
    fn guard(&self, addresses: &[IpAddr], origin: &Origin) -> Result<Vec<SocketAddr>, ConnectFailure> {
        let mut allowed = Vec::with_capacity(addresses.len());
        let mut first_blocked = None;
        for address in addresses {
            match self.egress.check(*address) {
                Ok(()) => {
                    let address = socket_address(*address, origin);
                    if !allowed.contains(&address) {
                        allowed.push(address);
                    }
                }
                Err(blocked) => {
                    first_blocked.get_or_insert(blocked);
                }
            }
        }
        match first_blocked {
            Some(blocked) if allowed.is_empty() => {
                let message = format!("connect to {}: {blocked}", origin.host());
                let error = AttemptError { kind: ErrorKind::BlockedAddress, message };
                Err(ConnectFailure { fate: Fate::Refused(Refusal::BlockedAddress), error })
            }
            _ => {
                allowed.truncate(ADDRESSES_TRIED_MAX);
                Ok(allowed)
            }
        }
    }

    async fn shake_hands(
        &self,
        name: &ServerName<'static>,
        tcp: TcpStream,
        peer: SocketAddr,
        timer: Pin<&mut Sleep>,
        deadline: Instant,
    ) -> Result<Stream, ConnectFailure> {
        let (proof, kind, words) = match within(timer, deadline, self.tls.connect(name.clone(), tcp)).await {
            Some(Ok(stream)) => return Ok(Stream::Tls(Box::new(stream))),
            Some(Err(error)) => evidence::of_handshake(&error),
            None => (Proof::TlsHandshake, ErrorKind::TlsHandshake, "not finished in time".to_owned()),
        };
        Err(never_sent(proof, kind, format!("make a tls handshake with {peer}: {words}")))
    }
}

/// Tries the addresses in order; each gets a fair part of the time that is left.
async fn dial(
    addresses: &[SocketAddr],
    mut timer: Pin<&mut Sleep>,
    deadline: Instant,
    progress: &mut Progress,
) -> Result<(TcpStream, SocketAddr), ConnectFailure> {
    let mut failure = never_sent(Proof::Connect, ErrorKind::Dns, "connect: no address".to_owned());
    for (tried, peer) in addresses.iter().enumerate() {
        progress.peer = Some(*peer);
        let slice = fair_slice(Instant::now(), deadline, addresses.len() - tried);
        let (kind, words) = match within(timer.as_mut(), slice, TcpStream::connect(*peer)).await {
            Some(Ok(tcp)) => {
                // Without it a small body may wait for the acknowledgement of its head. A socket that refuses the
                // option still works.
                let _ = tcp.set_nodelay(true);
                return Ok((tcp, *peer));
            }
            Some(Err(error)) => evidence::of_connect(&error),
            None => (ErrorKind::ConnectTimeout, "no answer in time".to_owned()),
        };
        failure = never_sent(Proof::Connect, kind, format!("connect to {peer}: {words}"));
    }
    Err(failure)
}

/// The end of the current address's part of the time until `deadline`, when `left` addresses share it.
fn fair_slice(now: Instant, deadline: Instant, left: usize) -> Instant {
    let rest = deadline.saturating_duration_since(now);
    now + u32::try_from(left).map_or(Duration::ZERO, |left| rest / left.max(1))
}

/// Awaits a future until `at`; `None` when it takes longer.
async fn within<F: Future>(mut timer: Pin<&mut Sleep>, at: Instant, future: F) -> Option<F::Output> {
    set_timer(timer.as_mut(), at);
    let mut future = pin!(future);
    poll_fn(|cx| match future.as_mut().poll(cx) {
        Poll::Ready(output) => Poll::Ready(Some(output)),
        Poll::Pending => poll_timer(timer.as_mut(), cx).map(|()| None),
    })
    .await
}
