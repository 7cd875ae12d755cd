//! Sending one request over HTTP/1.1 until its response head is there; absent: the reading of bodies.

use std::ops::ControlFlow;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::Incoming;
use teimoso_retry::{Fate, Proof, Refusal};
use tokio::time::{Instant, Sleep};

use super::Shared;
use super::message::Form;
use crate::attempt::{AttemptError, ErrorKind};
use crate::connect::{ConnectFailure, Offer, Progress};
use crate::evidence::Fault;
use crate::h1::{Http1, Message, SendFailure};
use crate::io::Stream;
use crate::target::{Origin, Target};
use crate::timer::{later, set_timer};

/// Where a message goes and until when.
pub(super) struct Order<'a> {
    pub(super) target: &'a Target,
    pub(super) connect_timeout: Duration,
    pub(super) deadline: Instant,
}

/// Why there is no response head, with the fate that this proves.
pub(super) struct Failure {
    pub(super) fate: Fate,
    pub(super) error: AttemptError,
    /// The message, if nothing of it was read.
    pub(super) unsent: Option<Box<Message>>,
}

/// A response head and the connection that its body comes over.
pub(super) type AnsweredHttp1 = (Box<Http1<Stream>>, http::Response<Incoming>);

impl Order<'_> {
    pub(super) fn origin(&self) -> &Arc<Origin> {
        self.target.shared_origin()
    }

    /// The end of the time to connect in, counted from now.
    pub(super) fn connect_by(&self) -> Instant {
        later(Instant::now(), self.connect_timeout).min(self.deadline)
    }
}

impl Failure {
    pub(super) fn unconnected(failure: ConnectFailure, message: Message) -> Self {
        let ConnectFailure { fate, error } = failure;
        Self { fate, error, unsent: Some(Box::new(message)) }
    }

    pub(super) fn handed_back(fault: Fault, unsent: Option<Box<Message>>) -> Self {
        let error = fault.error("send the request");
        Self { fate: Fate::NeverSent(Proof::HandedBack), error, unsent }
    }
}

impl Shared {
    /// How a request over HTTP/1.1, or one that may become HTTP/2, names its target.
    pub(super) fn form(&self, target: &Target, offer: Offer) -> Result<Form, ConnectFailure> {
        match self.connector.asks_in_absolute_form(target.shared_origin(), offer) {
            None => Ok(Form { uri: target.uri().clone(), proxy_authorization: None }),
            Some(proxy) => {
                let uri = target.absolute_uri().ok_or_else(unwritable)?;
                Ok(Form { uri, proxy_authorization: proxy.authorization().cloned() })
            }
        }
    }

    /// Sends over HTTP/1.1: on an idle connection if one is alive, else on a fresh one.
    pub(super) async fn send_http1(
        &self,
        order: &Order<'_>,
        message: Message,
        mut timer: Pin<&mut Sleep>,
        progress: &mut Progress,
    ) -> Result<AnsweredHttp1, Failure> {
        let message = match self.try_idle(order, message, timer.as_mut(), progress).await {
            ControlFlow::Break(sent) => return sent,
            ControlFlow::Continue(message) => message,
        };
        match self.connect_http1(order, timer.as_mut(), progress).await {
            Ok(connection) => send_over(connection, message, timer, progress).await,
            Err(failure) => Err(Failure::unconnected(failure, message)),
        }
    }

    /// Sends on an idle connection, or gives the message on: there is none, or it died between the look at it and the
    /// first byte.
    pub(super) async fn try_idle(
        &self,
        order: &Order<'_>,
        message: Message,
        timer: Pin<&mut Sleep>,
        progress: &mut Progress,
    ) -> ControlFlow<Result<AnsweredHttp1, Failure>, Message> {
        let Some(connection) = self.pool.take_alive(order.origin()) else {
            return ControlFlow::Continue(message);
        };
        progress.reused = true;
        match send_over(connection, message, timer, progress).await {
            Err(Failure { unsent: Some(unsent), .. }) => {
                *progress = Progress::default();
                ControlFlow::Continue(*unsent)
            }
            sent => ControlFlow::Break(sent),
        }
    }

    async fn connect_http1(
        &self,
        order: &Order<'_>,
        mut timer: Pin<&mut Sleep>,
        progress: &mut Progress,
    ) -> Result<Box<Http1<Stream>>, ConnectFailure> {
        let (origin, connect_by) = (order.origin(), order.connect_by());
        let (stream, peer) =
            self.connector.connect(origin, Offer::Http1, timer.as_mut(), connect_by, progress).await?;
        set_timer(timer, order.deadline);
        Http1::start(stream, peer).await.map_err(unstarted)
    }
}

/// A request that HTTP cannot write down for where it has to go.
pub(super) fn unwritable() -> ConnectFailure {
    let message = "use the url: its host holds a character that http cannot send".to_owned();
    let error = AttemptError { kind: ErrorKind::InvalidDestination, message };
    ConnectFailure { fate: Fate::Refused(Refusal::InvalidDestination), error }
}

/// A connection that was gone before HTTP began on it.
pub(super) fn unstarted(fault: Fault) -> ConnectFailure {
    ConnectFailure {
        fate: Fate::NeverSent(Proof::NoConnection),
        error: fault.error("begin http on a fresh connection"),
    }
}

/// One exchange on a connection up to the response head, with the fate that its failure proves.
pub(super) async fn send_over(
    mut connection: Box<Http1<Stream>>,
    message: Message,
    timer: Pin<&mut Sleep>,
    progress: &mut Progress,
) -> Result<AnsweredHttp1, Failure> {
    progress.peer = Some(connection.peer());
    let begun = Instant::now();
    match connection.send(message, timer).await {
        Ok(response) => {
            progress.timings.first_byte = Some(begun.elapsed());
            Ok((connection, response))
        }
        Err(SendFailure::HandedBack(message, fault)) => Err(Failure::handed_back(fault, Some(message))),
        Err(SendFailure::Broken { fault, written }) => Err(Failure {
            fate: fault.fate_unanswered(written),
            error: fault.error(doing(written)),
            unsent: None,
        }),
    }
}

fn doing(written: u64) -> &'static str {
    if written == 0 { "send the request" } else { "get a response" }
}
