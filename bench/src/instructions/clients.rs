//! The same request by our client and by hyper-util's, over one kept connection each: what it costs to know whether a
//! request was sent. Deliberately absent: retries. Here every request is answered at once.

use std::net::SocketAddr;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderValue};
use http::{Request, StatusCode, Uri};
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client as Bare;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::TokioExecutor;
use teimoso_http::{Client, Egress, HttpVersions, TlsRoots, Transport};
use teimoso_retry::Preset;

use crate::event;
use crate::trouble::{Doing, Result, Trouble};

/// Body bytes of a request.
const BODY_BYTES: usize = 200;

/// Our client's, as it is by default but for the trust roots, which take long to read and are of no use here.
///
/// # Errors
/// When a request fails.
pub async fn ours(times: u64, sink: SocketAddr) -> Result<()> {
    let transport = Transport::builder()
        .egress(Egress::unguarded())
        .http_version(HttpVersions::Http2Preferred)
        .tls_roots(TlsRoots::OnlyAdded)
        .build()
        .doing("make a transport")?;
    let client = Client::builder().policy(Preset::Standard).transport(transport);
    let client = client.build().doing("make a client")?;
    let (uri, body) = destination_and_body(sink)?;
    for _ in 0..times {
        let request = post(&uri, body.clone())?;
        let answer = client.send_and_collect(request).await.doing("send a request")?;
        check(answer.status(), answer.body())?;
    }
    Ok(())
}

/// hyper-util's, as it is by default but for Nagle's algorithm, which would wait.
///
/// # Errors
/// When a request fails.
pub async fn bare(times: u64, sink: SocketAddr) -> Result<()> {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    let client: Bare<_, Full<Bytes>> = Bare::builder(TokioExecutor::new()).build(connector);
    let (uri, body) = destination_and_body(sink)?;
    for _ in 0..times {
        let request = post(&uri, Full::new(body.clone()))?;
        let answer = client.request(request).await.doing("send a request")?;
        let status = answer.status();
        let body = answer.into_body().collect().await.doing("read an answer")?.to_bytes();
        check(status, &body)?;
    }
    Ok(())
}

fn destination_and_body(sink: SocketAddr) -> Result<(Uri, Bytes)> {
    let uri = format!("http://{sink}/ok/00").parse().doing("read an address")?;
    Ok((uri, Bytes::from(event::payload(BODY_BYTES)?)))
}

fn post<B>(uri: &Uri, body: B) -> Result<Request<B>> {
    let json = HeaderValue::from_static("application/json");
    let request = Request::post(uri.clone()).header(CONTENT_TYPE, json.clone()).header(ACCEPT, json);
    request.body(body).doing("make a request")
}

fn check(status: StatusCode, body: &[u8]) -> Result<()> {
    if status != StatusCode::OK || body != b"ok" {
        return Err(Trouble::new(format!("the sink answered {status} and {} bytes", body.len())));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    /// Requests of the shorter run.
    const TIMES: u64 = 500;

    /// What a trace takes in the extensions of a response: their box, their table, and its own box.
    const OF_THE_TRACE: u64 = 3;

    /// Answers every request.
    fn peer() -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                std::thread::spawn(move || answer(stream.unwrap()));
            }
        });
        address
    }

    /// The end of a request is that of its body, which is JSON.
    fn answer(mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let mut input = [0; 4096];
        let mut filled = 0;
        while let Ok(read @ 1..) = stream.read(&mut input[filled..]) {
            filled += read;
            if input[..filled].ends_with(b"}") {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").unwrap();
                filled = 0;
            }
        }
    }

    /// Allocations of one request: those of start-up fall out of the difference between a long run and a short one, and
    /// what happens once in many requests is rounded away.
    fn allocations<F: Future<Output = Result<()>>>(requests: impl Fn(u64, SocketAddr) -> F) -> u64 {
        let count = |times| {
            let peer = peer();
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            allocation_counter::measure(|| runtime.block_on(requests(times, peer)).unwrap()).count_total
        };
        (count(2 * TIMES) - count(TIMES) + TIMES / 2) / TIMES
    }

    #[test]
    fn a_request_allocates_nothing_beyond_a_bare_one_but_its_trace() {
        let (ours, bare) = (allocations(ours), allocations(bare));
        assert!(ours <= bare + OF_THE_TRACE, "{ours} and {bare}");
        assert_eq!(ours, 13, "what got cheaper is to be written down, too");
    }
}
