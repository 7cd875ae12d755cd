//! Connections: accepting them, bounding them, ending them. Deliberately absent: TLS and what requests mean.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::response::{IntoResponse, Response};
use futures_util::FutureExt;
use http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;

use crate::api::problem::{Code, Problem};
use crate::config::ApiConfig;
use crate::guard;
use crate::stall::Stallable;
use crate::{App, router};

/// A connection's read buffer, and thereby the largest head of a request.
const BUFFER_BYTES: usize = 64 * 1024;
/// After a failed accept (out of descriptors, as a rule): time for others to close some.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Serves the API on `listener` until `stop` completes, then lets running requests finish.
///
/// When `stop` completes, [`App::set_draining`] is called, the listener is closed, idle connections end at
/// once and the others after their current request, at the latest after [`ApiConfig::drain_timeout`].
/// Returns when the last is closed.
///
/// # Errors
/// None today: a failure to accept is waited out. The result leaves room for a listener that breaks.
pub async fn serve(listener: TcpListener, app: App, stop: impl Future) -> io::Result<()> {
    let server = Server::new(app);
    let mut connections = JoinSet::new();
    let mut stop = pin!(stop);
    loop {
        tokio::select! {
            _ = &mut stop => break,
            (stream, permit) = server.next(&listener) => {
                connections.spawn(server.connection(stream, permit));
            }
            // Forgets the ended ones; a panic in one ends only that one.
            Some(_ended) = connections.join_next() => {}
        }
    }
    drop(listener);
    server.app.set_draining();
    server.stopping.send_replace(true);
    let all_ended = async { while connections.join_next().await.is_some() {} };
    tokio::select! {
        () = all_ended => {}
        () = server.app.clock().sleep(server.app.config().drain_timeout) => {}
    }
    Ok(())
}

struct Server {
    app: App,
    router: Router,
    protocol: http1::Builder,
    room: Arc<Semaphore>,
    stopping: watch::Sender<bool>,
}

impl Server {
    fn new(app: App) -> Self {
        let (stopping, _) = watch::channel(false);
        Self {
            router: router(app.clone()),
            protocol: protocol(app.config()),
            room: Arc::new(Semaphore::new(app.config().max_connections)),
            stopping,
            app,
        }
    }

    /// The next connection that there is room for.
    async fn next(&self, listener: &TcpListener) -> (TcpStream, Option<OwnedSemaphorePermit>) {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.room).acquire_owned().await.ok();
        loop {
            match listener.accept().await {
                Ok((stream, _)) => return (stream, permit),
                Err(_) => self.app.clock().sleep(ACCEPT_PAUSE).await,
            }
        }
    }

    fn connection(
        &self,
        stream: TcpStream,
        permit: Option<OwnedSemaphorePermit>,
    ) -> impl Future<Output = ()> + Send + 'static {
        let (protocol, mut stopping) = (self.protocol.clone(), self.stopping.subscribe());
        let service = guarded(self.router.clone(), self.app.config().only_local_names);
        let app = self.app.clone();
        async move {
            let _permit = permit;
            // Answers are small and wanted at once; without the option they are merely slower.
            let _slower = stream.set_nodelay(true);
            let io = TokioIo::new(Stallable::new(stream, app));
            let mut connection = pin!(protocol.serve_connection(io, service));
            tokio::select! {
                // How a connection ends is its client's affair; there is nobody to tell.
                _ended = connection.as_mut() => return,
                _stopping = stopping.wait_for(|stopping| *stopping) => {}
            }
            connection.as_mut().graceful_shutdown();
            let _ended = connection.await;
        }
    }
}

fn protocol(config: &ApiConfig) -> http1::Builder {
    let mut protocol = http1::Builder::new();
    protocol
        .timer(TokioTimer::new())
        .header_read_timeout(config.header_read_timeout)
        .max_buf_size(BUFFER_BYTES)
        // A client may say "that was all" by closing its side, and still wait for the answer.
        .half_close(true);
    protocol
}

/// The router, behind the guard against web pages, with an answer for a request whose handler panics.
fn guarded(
    router: Router,
    only_local_names: bool,
) -> impl Service<
    Request<Incoming>,
    Response = Response,
    Error = Infallible,
    Future = impl Future<Output = Result<Response, Infallible>> + Send,
> {
    let router = TowerToHyperService::new(router);
    service_fn(move |request| {
        let answer = guard::check(&request, only_local_names)
            .map(|()| AssertUnwindSafe(router.call(request)).catch_unwind());
        async move {
            match answer {
                Ok(answer) => answer.await.unwrap_or_else(|_panic| Ok(internal())),
                Err(problem) => Ok(problem.into_response()),
            }
        }
    })
}

fn internal() -> Response {
    let detail = "the server failed on this request and goes on with others; it is a bug";
    Problem::new(Code::Internal, detail).into_response()
}
