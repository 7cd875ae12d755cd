//! The limit: hyper's low-level client on one thread, one request after the other on each of 64 connections, with the
//! bytes that a delivery has. What no sender that stores, schedules and records can pass.
//!
//! Deliberately absent: whatever a delivery needs beside the exchange: a queue, a timer, a record, a decision.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HOST, HeaderName, HeaderValue, USER_AGENT};
use http::{HeaderMap, Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::task::LocalSet;

use crate::args::LimitArgs;
use crate::trouble::{Doing, Result, Trouble};
use crate::{clock, event};

/// Sends them all.
///
/// # Errors
/// When the sink fails.
pub fn run(args: &LimitArgs) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().doing("start a runtime")?;
    let payload = Bytes::from(event::payload(args.payload)?);
    let left = Rc::new(Cell::new(args.requests));
    LocalSet::new().block_on(&runtime, async {
        let mut senders = Vec::new();
        for number in 0..args.connections {
            let sender = Sender::connect(args.sink, number % event::ENDPOINTS, payload.clone()).await?;
            senders.push(tokio::task::spawn_local(sender.send_while(Rc::clone(&left))));
        }
        for sender in senders {
            sender.await.doing("wait for a connection")??;
        }
        Ok(())
    })
}

struct Sender {
    connection: SendRequest<Full<Bytes>>,
    uri: Uri,
    host: HeaderValue,
    payload: Bytes,
}

impl Sender {
    async fn connect(sink: SocketAddr, endpoint: usize, payload: Bytes) -> Result<Self> {
        let stream = TcpStream::connect(sink).await.doing("connect to the sink")?;
        stream.set_nodelay(true).doing("set up a connection")?;
        let (connection, driver) = http1::handshake(TokioIo::new(stream)).await.doing("begin http")?;
        tokio::task::spawn_local(driver);
        Ok(Self {
            connection,
            uri: format!("/ok/{endpoint:02}").parse().doing("write a path")?,
            host: HeaderValue::from_str(&sink.to_string()).doing("write a host")?,
            payload,
        })
    }

    async fn send_while(mut self, left: Rc<Cell<u64>>) -> Result<()> {
        while let Some(number) = left.get().checked_sub(1) {
            left.set(number);
            let request = self.request(number)?;
            self.connection.ready().await.doing("use a connection")?;
            let answer = self.connection.send_request(request).await.doing("send a request")?;
            if answer.status() != 200 {
                return Err(Trouble::new(format!("the sink answered {}", answer.status())));
            }
            answer.into_body().collect().await.doing("read an answer")?;
        }
        Ok(())
    }

    /// The fields of a delivery, each made as the sender makes it.
    fn request(&self, number: u64) -> Result<Request<Full<Bytes>>> {
        let id = format!("evt_01a22d43-0d6c-7000-8ed5-{number:012x}");
        let mut headers = HeaderMap::with_capacity(8);
        headers.insert(HOST, self.host.clone());
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers
            .insert(HeaderName::from_static("webhook-id"), HeaderValue::from_str(&id).doing("write an id")?);
        let seconds = HeaderValue::from(clock::wall_micros() / 1_000_000);
        headers.insert(HeaderName::from_static("webhook-timestamp"), seconds);
        headers.insert(HeaderName::from_static("teimoso-attempt"), HeaderValue::from(1));
        headers.insert(USER_AGENT, HeaderValue::from_static(concat!("teimoso/", env!("CARGO_PKG_VERSION"))));
        let mut request = Request::new(Full::new(self.payload.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        Ok(request)
    }
}
