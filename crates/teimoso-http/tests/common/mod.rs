//! Raw TCP peers that play one script per connection; absent: any HTTP library, which would not misbehave on demand.
#![expect(dead_code, reason = "each test binary uses its own part")]

pub mod exchanges;
pub mod frames;
pub mod tls;

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use teimoso_http::{
    Attempt, AttemptLimits, AttemptRequest, Egress, Resolve, Resolving, Target, TlsRoots, Transport,
    TransportBuilder,
};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

pub const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A listening peer; it stops with the test's runtime.
pub struct Peer {
    pub address: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Peer {
    /// Plays `script` on each connection; it gets the connection's number, from 1.
    pub async fn start<F, S>(script: S) -> Self
    where
        S: Fn(usize, TcpStream) -> F + Send + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let accepted = Arc::new(AtomicUsize::new(0));
        let count = accepted.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let number = count.fetch_add(1, Ordering::Relaxed) + 1;
                tokio::spawn(script(number, stream));
            }
        });
        Self { address, accepted }
    }

    /// Answers every request on every connection with `answer`.
    pub async fn answering(answer: &'static [u8]) -> Self {
        Self::start(move |_, mut stream| async move {
            while read_request(&mut stream).await.is_some() {
                stream.write_all(answer).await.unwrap();
            }
        })
        .await
    }

    /// Reads one request, writes `answer` and ends its side.
    pub async fn answering_once(answer: &'static [u8]) -> Self {
        Self::start(move |_, mut stream| async move {
            read_request(&mut stream).await.unwrap();
            stream.write_all(answer).await.unwrap();
            stream.shutdown().await.unwrap();
            drain(stream).await;
        })
        .await
    }

    /// How many connections were accepted so far.
    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }

    pub fn url(&self) -> String {
        format!("http://{}/hook?token=s3cret", self.address)
    }
}

/// One request, head and body, as it arrived; `None` when the other side ended or broke the connection first.
pub async fn read_request<R: AsyncReadExt + Unpin>(stream: &mut R) -> Option<Vec<u8>> {
    let mut read = Vec::new();
    loop {
        if let Some(end) = find(&read, b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            let body: usize = length.map_or(0, |length| length.parse().unwrap());
            if read.len() >= end + 4 + body {
                return Some(read);
            }
        }
        if !matches!(stream.read_buf(&mut read).await, Ok(1..)) {
            return None;
        }
    }
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// Reads until the other side is gone.
pub async fn drain(mut stream: TcpStream) {
    let mut sink = vec![0; 64 * 1024];
    while matches!(stream.read(&mut sink).await, Ok(1..)) {}
}

/// Closes with RST instead of FIN.
pub fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// A builder that may talk to loopback and loads no trust roots.
pub fn builder() -> TransportBuilder {
    Transport::builder()
        .egress(Egress::new(vec!["127.0.0.0/8".parse().unwrap()]))
        .tls_roots(TlsRoots::OnlyAdded)
}

pub fn transport() -> Transport {
    builder().build().unwrap()
}

/// Limits under which nothing here should ever run out of time.
pub fn patient() -> AttemptLimits {
    AttemptLimits {
        connect_timeout: Duration::from_secs(10),
        total_timeout: Duration::from_secs(20),
        ..AttemptLimits::default()
    }
}

/// Limits for tests whose subject is the time-out.
pub fn hasty() -> AttemptLimits {
    AttemptLimits { total_timeout: Duration::from_millis(150), ..patient() }
}

pub fn post(url: &str, body: impl Into<Bytes>, limits: AttemptLimits) -> AttemptRequest {
    AttemptRequest {
        method: Method::POST,
        target: Arc::new(Target::parse(url).unwrap()),
        headers: http::HeaderMap::new(),
        body: body.into(),
        limits,
    }
}

/// One POST of a small body, on a transport of its own.
pub async fn attempt(url: &str, limits: AttemptLimits) -> Attempt {
    transport().attempt(post(url, "payload", limits)).await
}

/// Status, body and truncation of an attempt's response.
pub fn answered(attempt: &Attempt) -> Option<(u16, &[u8], bool)> {
    attempt
        .response
        .as_ref()
        .map(|response| (response.status.as_u16(), &response.body[..], response.truncated))
}

/// A resolver that gives one answer for all names, and counts.
#[derive(Clone, Default)]
pub struct Fixed {
    pub addresses: Vec<IpAddr>,
    pub asked: Arc<AtomicUsize>,
}

impl Fixed {
    pub fn new(addresses: &[&str]) -> Self {
        let addresses = addresses.iter().map(|address| address.parse().unwrap()).collect();
        Self { addresses, asked: Arc::default() }
    }
}

impl Resolve for Fixed {
    fn resolve(&self, _: &str) -> Resolving {
        self.asked.fetch_add(1, Ordering::Relaxed);
        let addresses = self.addresses.clone();
        Box::pin(async move { Ok(addresses) })
    }
}
