//! Sending one request where HTTP/2 may be spoken: whose connection it takes, and who makes the next one; absent: what
//! happens on the connection.
//!
//! An origin that speaks HTTP/2 has one connection, which its exchanges share; whoever finds none makes it while the
//! others wait for it. An origin that turns out to speak HTTP/1.1 only is remembered as such, and nobody waits.

use std::net::SocketAddr;
use std::ops::ControlFlow;
use std::pin::Pin;

use hyper::body::Incoming;
use teimoso_retry::Proof;
use tokio::time::{Instant, Sleep};

use super::send::{AnsweredHttp1, Failure, Order, send_over, unstarted, unwritable};
use super::{HttpVersions, Shared, message};
use crate::attempt::ErrorKind;
use crate::connect::{ConnectFailure, Offer, Progress, never_sent};
use crate::evidence::Fault;
use crate::h1::{Http1, Message};
use crate::h2::origins::{Slot, Turn};
use crate::h2::{Http2, Lease, SendFailure};
use crate::io::Stream;
use crate::timer::{set_timer, within};

/// A response head and what its body comes over.
pub(super) enum Answered {
    Http1(Box<Http1<Stream>>, http::Response<Incoming>),
    Http2(Lease, http::Response<Incoming>),
}

/// A connection that nobody else uses yet, or a share of one.
enum Line {
    Http1(Box<Http1<Stream>>),
    Http2(Lease),
}

impl Shared {
    /// Sends over the origin's HTTP/2 connection, over an idle connection of HTTP/1.1, or over a fresh one of either.
    pub(super) async fn send_negotiated(
        &self,
        order: &Order<'_>,
        mut message: Message,
        mut timer: Pin<&mut Sleep>,
        progress: &mut Progress,
    ) -> Result<Answered, Failure> {
        let slot = self.origins.slot(order.origin());
        if let Some(lease) = slot.lease() {
            progress.reused = true;
            match send_http2(lease, order, message, timer.as_mut(), progress).await {
                // The connection ended between the look at it and the dispatch.
                Err(Failure { unsent: Some(unsent), .. }) => message = *unsent,
                sent => return sent,
            }
            message::to_http1(&mut message, order.target);
            *progress = Progress::default();
        }
        if self.versions != HttpVersions::Http2Only {
            match self.try_idle(order, message, timer.as_mut(), progress).await {
                ControlFlow::Break(sent) => return sent.map(over_http1),
                ControlFlow::Continue(unsent) => message = unsent,
            }
        }
        match self.open_line(order, &slot, timer.as_mut(), progress).await {
            Ok(Line::Http1(connection)) => {
                send_over(connection, message, timer, progress).await.map(over_http1)
            }
            Ok(Line::Http2(lease)) => send_http2(lease, order, message, timer, progress).await,
            Err(failure) => Err(Failure::unconnected(failure, message)),
        }
    }

    /// Makes a connection, or waits for the one that somebody else is making.
    async fn open_line(
        &self,
        order: &Order<'_>,
        slot: &Slot,
        mut timer: Pin<&mut Sleep>,
        progress: &mut Progress,
    ) -> Result<Line, ConnectFailure> {
        let connect_by = order.connect_by();
        let waited = match self.pool.idle_timeout().is_zero() {
            // A connection that is not kept is of no use to whoever waits for it.
            true => Waited::OurTurn(None),
            false => wait_for_turn(slot, timer.as_mut(), connect_by).await?,
        };
        let turn = match waited {
            Waited::OthersMadeIt(lease) => {
                set_timer(timer, order.deadline);
                progress.reused = true;
                return Ok(Line::Http2(lease));
            }
            Waited::OurTurn(turn) => turn,
        };
        let origin = order.origin();
        let (stream, peer) =
            self.connector.connect(origin, Offer::Http2, timer.as_mut(), connect_by, progress).await?;
        let by_prior_knowledge = origin.tls_name().is_none();
        let line = if by_prior_knowledge || stream.agreed_to_http2() {
            self.start_http2(stream, peer, slot, timer.as_mut(), connect_by).await.map(Line::Http2)
        } else if self.versions == HttpVersions::Http2Only {
            let message = format!("agree on http/2 with {}: it does not speak it", origin.authority());
            Err(never_sent(Proof::TlsHandshake, ErrorKind::TlsHandshake, message))
        } else {
            slot.saw_http1();
            Http1::start(stream, peer).await.map(Line::Http1).map_err(unstarted)
        };
        drop(turn);
        set_timer(timer, order.deadline);
        line
    }

    async fn start_http2(
        &self,
        stream: Stream,
        peer: SocketAddr,
        slot: &Slot,
        timer: Pin<&mut Sleep>,
        connect_by: Instant,
    ) -> Result<Lease, ConnectFailure> {
        let idle_timeout = self.pool.idle_timeout();
        let started = within(timer, connect_by, Http2::start(stream, peer, idle_timeout)).await;
        let connection = started.unwrap_or(Err(Fault::Deadline)).map_err(unstarted)?;
        let lease = connection.lease().ok_or_else(|| unstarted(Fault::Closed))?;
        if !idle_timeout.is_zero() {
            slot.saw_http2(connection);
        }
        Ok(lease)
    }
}

/// What came of waiting for an origin's next connection.
enum Waited<'a> {
    OthersMadeIt(Lease),
    /// Ours to make; without a turn where nobody waits for anybody.
    OurTurn(Option<Turn<'a>>),
}

async fn wait_for_turn<'a>(
    slot: &'a Slot,
    timer: Pin<&mut Sleep>,
    connect_by: Instant,
) -> Result<Waited<'a>, ConnectFailure> {
    if slot.speaks_http1_only() {
        return Ok(Waited::OurTurn(None));
    }
    let Some(turn) = within(timer, connect_by, slot.turn()).await else {
        let message = "get the connection that another request is making: not there in time".to_owned();
        return Err(never_sent(Proof::NoConnection, ErrorKind::ConnectTimeout, message));
    };
    Ok(match slot.lease() {
        Some(lease) => Waited::OthersMadeIt(lease),
        None => Waited::OurTurn((!slot.speaks_http1_only()).then_some(turn)),
    })
}

fn over_http1((connection, response): AnsweredHttp1) -> Answered {
    Answered::Http1(connection, response)
}

/// One exchange on a shared connection up to the response head, with the fate that its failure proves.
async fn send_http2(
    mut lease: Lease,
    order: &Order<'_>,
    mut message: Message,
    timer: Pin<&mut Sleep>,
    progress: &mut Progress,
) -> Result<Answered, Failure> {
    let Some(absolute) = order.target.absolute_uri() else {
        return Err(Failure::unconnected(unwritable(), message));
    };
    message::to_http2(&mut message, absolute);
    progress.peer = Some(lease.peer());
    let begun = Instant::now();
    match lease.send(message, timer).await {
        Ok(response) => {
            progress.timings.first_byte = Some(begun.elapsed());
            Ok(Answered::Http2(lease, response))
        }
        Err(SendFailure::HandedBack(unsent, fault)) => Err(Failure::handed_back(fault, unsent)),
        Err(SendFailure::Ended(ending)) => Err(Failure {
            fate: ending.fate_unanswered(),
            error: ending.fault().error("get a response"),
            unsent: None,
        }),
    }
}
