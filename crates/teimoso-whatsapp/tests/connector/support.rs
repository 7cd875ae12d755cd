//! Connectors to doubles, on a clock on which no wait takes time; absent: assertions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teimoso_whatsapp::client::{Clock, Egress, Entropy, Sleeping, TlsRoots, Transport};
use teimoso_whatsapp::testkit::{Double, ID};
use teimoso_whatsapp::{
    Connection, Connector, ConnectorBuilder, Error, Found, MessageId, PROVIDERS, Repeat, SendOptions,
    SendOutcome, Status, provider,
};

/// Time that passes only when somebody sleeps, and then at once. It keeps every wait.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Mutex<Vec<Duration>>>);

impl TestClock {
    pub fn waits(&self) -> Vec<Duration> {
        self.0.lock().expect("no panic").clone()
    }
}

impl Clock for TestClock {
    fn now(&self) -> Duration {
        self.waits().iter().sum()
    }

    fn unix_now(&self) -> Duration {
        Duration::from_secs(1_893_456_000) + self.now()
    }

    fn sleep(&self, duration: Duration) -> Sleeping {
        self.0.lock().expect("no panic").push(duration);
        Box::pin(std::future::ready(()))
    }
}

/// Always the same bits: the longest wait of every jitter.
#[derive(Clone, Copy)]
pub struct Bits(pub u64);

impl Entropy for Bits {
    fn bits(&self) -> u64 {
        self.0
    }
}

/// The names of all providers.
pub fn names() -> impl Iterator<Item = &'static str> {
    PROVIDERS.into_iter().map(|adapter| adapter.facts().name)
}

/// A connector to the double, at its URL.
pub fn connector(double: &Double) -> (Connector, TestClock) {
    let clock = TestClock::default();
    let connector = with(double, &double.url(), |builder| builder.clock(clock.clone()));
    (connector, clock)
}

/// A connector to the double's account at any URL, changed like this.
pub fn with(
    double: &Double,
    url: &str,
    change: impl for<'a> FnOnce(ConnectorBuilder<'a>) -> ConnectorBuilder<'a>,
) -> Connector {
    let adapter = provider(double.fixture().name()).expect("known");
    let transport = Transport::builder()
        .egress(Egress::unguarded())
        .tls_roots(TlsRoots::OnlyAdded)
        .build()
        .expect("it can be built");
    let builder =
        Connector::builder(adapter, double.settings(url)).transport(transport).entropy(Bits(u64::MAX));
    change(builder).build().expect("it can be built")
}

/// Options with the id of the fixtures, where one is carried.
pub fn options(connector: &Connector, repeat: Repeat) -> SendOptions {
    let carries = connector.adapter().facts().caller_id != teimoso_whatsapp::CallerId::None;
    SendOptions { repeat, id: carries.then(id), reconcile: false }
}

/// The same for media.
pub fn media_options(connector: &Connector, repeat: Repeat) -> SendOptions {
    let carries = connector.adapter().facts().caller_id_on_media;
    SendOptions { repeat, id: carries.then(id), reconcile: false }
}

pub fn id() -> MessageId {
    MessageId::parse(ID).expect("an id")
}

/// A URL where nobody listens.
pub fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a free port");
    format!("http://{}", listener.local_addr().expect("an address"))
}

/// What came of an operation, in a line as fixtures have it.
pub fn told<T>(result: Result<T, Error>, line: impl FnOnce(T) -> String) -> String {
    result.map_or_else(|error| format!("error {}", error.kind().name()), line)
}

pub fn status_line(status: &Status) -> String {
    format!("{} {}", status.state, status.raw).trim_end().to_owned()
}

pub fn connection_line(connection: &Connection) -> String {
    let code = connection.qr.as_ref().map_or_else(String::new, |qr| format!(" code {}", qr.code()));
    format!("{}{code}", status_line(&connection.status))
}

pub fn found_line(found: Option<Found>) -> String {
    let Some(found) = found else { return "not_found".to_owned() };
    let word = if found.failed { "failed" } else { "found" };
    [Some(word.to_owned()), found.id, found.state].into_iter().flatten().collect::<Vec<_>>().join(" ")
}

pub fn outcome_line(outcome: &SendOutcome) -> String {
    match outcome {
        SendOutcome::Sent(sent) => {
            format!("sent {}", sent.id.as_deref().unwrap_or_default()).trim_end().to_owned()
        }
        SendOutcome::NotSent { proof, .. } => format!("not_sent {}", proof.name()),
        SendOutcome::Unknown { why, .. } => format!("unknown {}", why.name()),
    }
}
