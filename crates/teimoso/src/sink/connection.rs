//! One client connection of the sink: read a request whole, decide, remember, answer.
//! Deliberately absent: the choice of the answer, which is [`super::route`]'s.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use bytes::{Bytes, BytesMut};
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, LOCATION, RETRY_AFTER};
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use super::Shared;
use super::record::{KEPT_BODY_MAX_BYTES, Record};
use super::reply::{CUT_DECLARED_BYTES, CutStep, HangUp, Reply};
use super::route::{Answer, Route};
use crate::clock;

/// Serves one connection until either side ends it.
pub(super) async fn serve(shared: Arc<Shared>, stream: TcpStream) {
    let reset = Arc::new(AtomicBool::new(false));
    let io = TokioIo::new(Breakable { stream, reset: Arc::clone(&reset) });
    let service = service_fn(|request| handle(Arc::clone(&shared), Arc::clone(&reset), request));
    // An error here is a client that left or a mischief that was asked for; there is nobody to tell.
    let _ended = http1::Builder::new().pipeline_flush(true).serve_connection(io, service).await;
}

async fn handle(
    shared: Arc<Shared>,
    reset: Arc<AtomicBool>,
    request: Request<Incoming>,
) -> Result<Response<Reply>, HangUp> {
    let route = Route::parse(request.uri().path());
    if route.is_control() {
        return Ok(control(&shared, route, request.method()));
    }
    let at = clock::wall_now();
    let (head, body) = request.into_parts();
    let body = read(body).await?;
    let answer = shared.decide(route, &head);
    if let Some(record) = remember(&shared, at, &head, &body, answer) {
        shared.tell(record).await;
    }
    if answer == Answer::Reset {
        reset.store(true, Ordering::Relaxed);
    }
    perform(answer).await
}

/// A request body, of which only the beginning is kept.
struct Kept {
    first: Bytes,
    more: BytesMut,
    total_bytes: u64,
}

impl Kept {
    fn bytes(&self) -> &[u8] {
        if self.more.is_empty() { &self.first } else { &self.more }
    }

    fn add(&mut self, data: Bytes) {
        self.total_bytes += data.len() as u64;
        if self.first.is_empty() && self.more.is_empty() && data.len() <= KEPT_BODY_MAX_BYTES {
            // Most bodies are one frame: it is not copied to be counted.
            self.first = data;
            return;
        }
        if self.more.is_empty() {
            self.more.extend_from_slice(&self.first);
        }
        let room = KEPT_BODY_MAX_BYTES - self.more.len();
        self.more.extend_from_slice(&data[..data.len().min(room)]);
    }
}

/// Reads the body to its end, so that no answer is given before the sender has finished.
async fn read(mut body: Incoming) -> Result<Kept, HangUp> {
    let mut kept = Kept { first: Bytes::new(), more: BytesMut::new(), total_bytes: 0 };
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame.map_err(|_| HangUp)?.into_data() {
            kept.add(data);
        }
    }
    Ok(kept)
}

fn remember(
    shared: &Shared,
    at: Timestamp,
    head: &http::request::Parts,
    body: &Kept,
    answer: Answer,
) -> Option<Arc<Record>> {
    if !shared.wants_records() {
        return None;
    }
    let target = head.uri.path_and_query().map_or("", |target| target.as_str());
    let method = head.method.clone();
    let record = Record::new(at, method, target, &head.headers, body.bytes(), body.total_bytes, answer);
    let record = Arc::new(record);
    shared.keep(Arc::clone(&record));
    Some(record)
}

async fn perform(answer: Answer) -> Result<Response<Reply>, HangUp> {
    match answer {
        Answer::Status(code) => Ok(plain(code)),
        Answer::Unavailable { retry_after_seconds } => {
            let mut response = plain(503);
            response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(retry_after_seconds));
            Ok(response)
        }
        Answer::Redirect => {
            let mut response = plain(302);
            response.headers_mut().insert(LOCATION, HeaderValue::from_static("/ok"));
            Ok(response)
        }
        Answer::Late(wait) => {
            clock::pause(wait).await;
            Ok(plain(200))
        }
        Answer::Cut => {
            let mut response = Response::new(Reply::Cut(CutStep::Send));
            response.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(CUT_DECLARED_BYTES));
            Ok(response)
        }
        // hyper drops this future when the client leaves.
        Answer::Hang => std::future::pending().await,
        Answer::Reset => Err(HangUp),
    }
}

fn plain(code: u16) -> Response<Reply> {
    let text = match code {
        200 => "ok\n",
        404 => {
            "no such route: try /ok /quebra /teimoso /status/NNN /fail/N /slow/MS /hang /reset /cut \
             /retry-after/SECONDS /gone /redirect /_requests /_count\n"
        }
        410 => "gone\n",
        _ if code < 400 => "",
        _ => "failed on request\n",
    };
    let mut response = Response::new(Reply::from(text));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::NOT_FOUND);
    response
}

fn control(shared: &Shared, route: Route, method: &Method) -> Response<Reply> {
    let (reply, kind) = match (route, method.as_str()) {
        (Route::Requests, "GET") => (Reply::Lines(shared.kept().into_iter()), "application/x-ndjson"),
        (Route::Count, "GET") => (Reply::Whole(format!("{}\n", shared.count()).into()), "application/json"),
        (Route::Requests, "DELETE") => {
            shared.forget();
            return plain(204);
        }
        _ => return plain(405),
    };
    let mut response = Response::new(reply);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    response
}

/// A socket that can be told to end with a reset instead of an orderly close.
struct Breakable {
    stream: TcpStream,
    reset: Arc<AtomicBool>,
}

impl Drop for Breakable {
    fn drop(&mut self) {
        if self.reset.load(Ordering::Relaxed) {
            // A close with a zero linger time is an RST; if the option is refused, an orderly close remains.
            let _refused = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Breakable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Breakable {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, slices)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.reset.load(Ordering::Relaxed) {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
