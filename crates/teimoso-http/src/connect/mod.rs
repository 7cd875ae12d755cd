//! The phases before a request can be sent: resolve, guard, connect, tunnel, TLS; absent: HTTP, and connecting to
//! several addresses at once.
//!
//! Whatever fails here proves that nothing was sent, and the phase is the proof.

mod dial;
pub(crate) mod proxy;
pub(crate) mod tls;
mod tunnel;

use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use teimoso_retry::{Fate, Proof, Refusal};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};
use tokio_rustls::TlsConnector;

use crate::attempt::{AttemptError, ErrorKind, Timings};
use crate::egress::Egress;
use crate::evidence;
use crate::io::Stream;
use crate::resolve::Resolver;
use crate::target::{Origin, OriginHost, socket_address};

use self::dial::dial;
use self::proxy::Proxy;
use crate::timer::within;

/// Addresses of one name that are tried in one attempt, at most: each gets a fair part of the connect time, and
/// slices of it must stay long enough to connect in.
pub const ADDRESSES_TRIED_MAX: usize = 6;

/// Everything that makes connections.
pub(crate) struct Connector {
    pub(crate) resolver: Resolver,
    pub(crate) egress: Egress,
    /// Offers HTTP/1.1.
    pub(crate) tls_http1: TlsConnector,
    /// Offers HTTP/2, alone or first.
    pub(crate) tls_http2: TlsConnector,
    pub(crate) proxy: Option<Proxy>,
}

/// What a connection is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Offer {
    Http1,
    Http2,
}

/// What an attempt learns on the way to a connection, whether or not there is one in the end.
#[derive(Clone, Copy, Default)]
pub(crate) struct Progress {
    pub(crate) timings: Timings,
    pub(crate) peer: Option<SocketAddr>,
    /// Whether the connection had served an earlier request.
    pub(crate) reused: bool,
}

/// Why there is no connection, with the fate that this proves.
#[derive(Debug)]
pub(crate) struct ConnectFailure {
    pub(crate) fate: Fate,
    pub(crate) error: AttemptError,
}

pub(crate) fn never_sent(proof: Proof, kind: ErrorKind, message: String) -> ConnectFailure {
    ConnectFailure { fate: Fate::NeverSent(proof), error: AttemptError { kind, message } }
}

impl Connector {
    /// Makes a connection to an origin, all phases before `deadline`. The addresses that were checked are the ones
    /// that are connected to: nothing resolves a second time.
    pub(crate) async fn connect(
        &self,
        origin: &Origin,
        offer: Offer,
        mut timer: Pin<&mut Sleep>,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<(Stream, SocketAddr), ConnectFailure> {
        let (tcp, peer) = match &self.proxy {
            None => {
                let addresses = self.resolve(origin, timer.as_mut(), deadline, progress).await?;
                let allowed = self.guard(&addresses, origin)?;
                timed_dial(&allowed, timer.as_mut(), deadline, progress).await?
            }
            Some(proxy) => self.through(proxy, origin, offer, timer.as_mut(), deadline, progress).await?,
        };
        let Some(name) = origin.tls_name() else { return Ok((Stream::Plain(tcp), peer)) };
        let begun = Instant::now();
        let tls = match offer {
            Offer::Http1 => &self.tls_http1,
            Offer::Http2 => &self.tls_http2,
        };
        let outcome = within(timer, deadline, tls.connect(name.clone(), tcp)).await;
        progress.timings.tls = Some(begun.elapsed());
        let (proof, kind, words) = match outcome {
            Some(Ok(stream)) => return Ok((Stream::Tls(Box::new(stream)), peer)),
            Some(Err(error)) => evidence::tls::of_handshake(&error),
            None => (Proof::TlsHandshake, ErrorKind::TlsHandshake, "not finished in time".to_owned()),
        };
        let with = match &self.proxy {
            None => peer.to_string(),
            Some(_) => origin.host().to_string(),
        };
        Err(never_sent(proof, kind, format!("make a tls handshake with {with}: {words}")))
    }

    /// Whether requests to this origin go to a proxy in absolute-form, instead of through a tunnel.
    pub(crate) fn asks_in_absolute_form(&self, origin: &Origin, offer: Offer) -> Option<&Proxy> {
        self.proxy.as_ref().filter(|_| origin.tls_name().is_none() && offer == Offer::Http1)
    }

    /// A connection to the proxy, and through it where the origin is not to be asked for in absolute-form.
    async fn through(
        &self,
        proxy: &Proxy,
        origin: &Origin,
        offer: Offer,
        mut timer: Pin<&mut Sleep>,
        deadline: Instant,
        progress: &mut Progress,
    ) -> Result<(TcpStream, SocketAddr), ConnectFailure> {
        if let OriginHost::Address(address) = origin.host() {
            self.guard(&[*address], origin)?;
        }
        let addresses = self.resolve(proxy.origin(), timer.as_mut(), deadline, progress).await?;
        let mut addresses: Vec<_> =
            addresses.iter().map(|address| socket_address(*address, proxy.origin())).collect();
        addresses.truncate(ADDRESSES_TRIED_MAX);
        let (mut tcp, peer) = timed_dial(&addresses, timer.as_mut(), deadline, progress).await?;
        if self.asks_in_absolute_form(origin, offer).is_some() {
            return Ok((tcp, peer));
        }
        let authority = origin.authority();
        let (kind, words) = match within(timer, deadline, tunnel::open(&mut tcp, proxy, &authority)).await {
            Some(Ok(())) => return Ok((tcp, peer)),
            Some(Err(words)) => (ErrorKind::ConnectRefused, words),
            None => (ErrorKind::ConnectTimeout, "no answer in time".to_owned()),
        };
        let message = format!("get a tunnel to {authority} from the proxy {}: {words}", proxy.authority());
        Err(never_sent(Proof::Connect, kind, message))
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
}

async fn timed_dial(
    addresses: &[SocketAddr],
    timer: Pin<&mut Sleep>,
    deadline: Instant,
    progress: &mut Progress,
) -> Result<(TcpStream, SocketAddr), ConnectFailure> {
    let begun = Instant::now();
    let dialled = dial(addresses, timer, deadline, progress).await;
    progress.timings.connect = Some(begun.elapsed());
    dialled
}
