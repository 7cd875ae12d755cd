//! A clock that never really waits, a chance that is known, and peers that play a script; absent: assertions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teimoso_http::{
    Client, ClientBuilder, Clock, Egress, Entropy, RetryTrace, Sleeping, TlsRoots, Transport,
    TransportBuilder,
};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::common::{Peer, drain, read_request, reset};

/// Time that passes only when somebody sleeps, and then at once. It keeps every wait.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Mutex<Vec<Duration>>>);

impl TestClock {
    pub fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
    }

    pub fn waited(&self) -> Duration {
        self.waits().iter().sum()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Duration {
        self.waited()
    }

    fn unix_now(&self) -> Duration {
        NOW + self.waited()
    }

    fn sleep(&self, duration: Duration) -> Sleeping {
        self.0.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }
}

/// Where the wall clock of a [`TestClock`] begins: Tue, 01 Jan 2030 00:00:00 GMT.
pub const NOW: Duration = Duration::from_secs(1_893_456_000);

/// A clock whose sleepers never wake; it says when somebody has gone to sleep.
#[derive(Clone, Default)]
pub struct Asleep(pub Arc<Notify>);

impl Clock for Asleep {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn unix_now(&self) -> Duration {
        NOW
    }

    fn sleep(&self, _: Duration) -> Sleeping {
        self.0.notify_one();
        Box::pin(std::future::pending())
    }
}

/// Always the same bits: 0 is the shortest wait of every jitter, `u64::MAX` the longest.
#[derive(Clone, Copy)]
pub struct Bits(pub u64);

impl Entropy for Bits {
    fn bits(&self) -> u64 {
        self.0
    }
}

pub fn transport() -> TransportBuilder {
    Transport::builder().egress(Egress::unguarded()).tls_roots(TlsRoots::OnlyAdded)
}

/// A client that does not really wait, with the longest waits.
pub fn client(policy: impl Into<teimoso_retry::RetryPolicy>) -> (Client, TestClock) {
    let clock = TestClock::default();
    (builder(policy, &clock).build().unwrap(), clock)
}

pub fn builder(policy: impl Into<teimoso_retry::RetryPolicy>, clock: &TestClock) -> ClientBuilder {
    Client::builder()
        .policy(policy)
        .clock(clock.clone())
        .entropy(Bits(u64::MAX))
        .transport(transport().build().unwrap())
}

/// What a peer does about one request, which it has read in full.
#[derive(Clone)]
pub enum Play {
    /// Answers, and keeps the connection.
    Answer(String),
    /// Answers less than it announced, and closes.
    Cut,
    /// Closes in order.
    Close,
    /// Resets the connection.
    Reset,
}

pub fn status(status: u16) -> Play {
    answer(status, "", "body")
}

/// `headers` end in a line end, if there are any.
pub fn answer(status: u16, headers: &str, body: &str) -> Play {
    Play::Answer(format!("HTTP/1.1 {status} X\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
}

/// A peer that plays one act per request, whatever connection it comes over, and the last one for ever.
pub struct Stage {
    peer: Peer,
    requests: Arc<Mutex<Vec<Vec<u8>>>>,
}

impl Stage {
    pub async fn playing(acts: impl Into<Vec<Play>>) -> Self {
        let acts: Arc<[Play]> = acts.into().into();
        let requests: Arc<Mutex<Vec<Vec<u8>>>> = Arc::default();
        let seen = requests.clone();
        let peer = Peer::start(move |_, stream| perform(acts.clone(), seen.clone(), stream)).await;
        Self { peer, requests }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.peer.address)
    }

    /// The requests that were read in full, as text.
    pub fn requests(&self) -> Vec<String> {
        let requests = self.requests.lock().unwrap();
        requests.iter().map(|request| String::from_utf8_lossy(request).into_owned()).collect()
    }

    /// How many requests were read in full: the executions.
    pub fn executions(&self) -> usize {
        self.requests.lock().unwrap().len()
    }
}

async fn perform(acts: Arc<[Play]>, requests: Arc<Mutex<Vec<Vec<u8>>>>, mut stream: TcpStream) {
    while let Some(request) = read_request(&mut stream).await {
        let number = {
            let mut requests = requests.lock().unwrap();
            requests.push(request);
            requests.len() - 1
        };
        match acts.get(number).or(acts.last()) {
            Some(Play::Answer(answer)) => stream.write_all(answer.as_bytes()).await.unwrap(),
            Some(Play::Cut) => {
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nhalf").await.unwrap();
                stream.shutdown().await.unwrap();
                return drain(stream).await;
            }
            Some(Play::Close) | None => {
                stream.shutdown().await.unwrap();
                return drain(stream).await;
            }
            Some(Play::Reset) => return reset(stream),
        }
    }
}

/// A URL where nobody listens.
pub fn nowhere(path: &str) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    format!("http://{address}{path}")
}

pub fn get(url: &str) -> http::Request<()> {
    http::Request::get(url).body(()).unwrap()
}

pub fn post(url: &str) -> http::Request<&'static str> {
    http::Request::post(url).body("payload").unwrap()
}

/// The trace in a response's extensions.
pub fn trace<B>(response: &http::Response<B>) -> &RetryTrace {
    response.extensions().get().expect("a response of a client has a trace")
}

pub fn attempts<B>(response: &http::Response<B>) -> usize {
    trace(response).attempts().len()
}

pub fn millis(millis: &[u64]) -> Vec<Duration> {
    millis.iter().copied().map(Duration::from_millis).collect()
}
