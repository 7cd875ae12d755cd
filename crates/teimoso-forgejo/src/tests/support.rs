//! A clock that never really waits, a client of a double, and a run of the safety net; absent: assertions.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use teimoso_http::{Clock, Egress, Entropy, Sleeping, TlsRoots, Transport};

use crate::automerge::{Heard, Note, Outcome, Plan, run};
use crate::testkit::{Forge, TOKEN};
use crate::{Client, ClientBuilder, RepoName, Token};

/// Time that passes only when somebody sleeps, and then at once. It keeps every wait.
#[derive(Clone, Default)]
pub struct TestClock(Arc<Mutex<Vec<Duration>>>);

impl TestClock {
    pub fn waits(&self) -> Vec<Duration> {
        self.0.lock().unwrap().clone()
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
        self.0.lock().unwrap().push(duration);
        Box::pin(std::future::ready(()))
    }
}

/// Always the same bits: the middle of every jitter.
#[derive(Clone, Copy)]
pub struct Bits(pub u64);

impl Entropy for Bits {
    fn bits(&self) -> u64 {
        self.0
    }
}

pub fn builder(forge: &Forge, clock: &TestClock) -> ClientBuilder {
    builder_to(forge.url(), clock)
}

/// A URL where nobody listens.
pub fn nowhere() -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

pub fn builder_to(url: &str, clock: &TestClock) -> ClientBuilder {
    let transport = Transport::builder().egress(Egress::unguarded()).tls_roots(TlsRoots::OnlyAdded);
    Client::builder(url.parse().unwrap(), &Token::new(TOKEN).unwrap())
        .clock(clock.clone())
        .entropy(Bits(7))
        .jitter(false)
        .transport(transport.build().unwrap())
}

pub fn client(forge: &Forge) -> Client {
    builder(forge, &TestClock::default()).build().unwrap()
}

pub fn site() -> RepoName {
    "acme/site".parse().unwrap()
}

/// A double whose pull request 7 is green.
pub fn green() -> Forge {
    let forge = Forge::start();
    forge.change(|state| state.report("ci / build (pull_request)", "success"));
    forge
}

/// What a run of the safety net came to, and what was said.
pub struct Ran {
    pub outcome: Outcome,
    pub notes: Vec<Note>,
    pub clock: TestClock,
}

pub async fn net(forge: &Forge, plan: Plan) -> Ran {
    let clock = TestClock::default();
    let client = builder(forge, &clock).build().unwrap();
    let mut notes = Vec::new();
    let hear = |heard| {
        if let Heard::Note(note) = heard {
            notes.push(note);
        }
    };
    let outcome = run(&client, &site(), 7, plan, hear).await;
    Ran { outcome, notes, clock }
}

pub fn millis(millis: &[u64]) -> Vec<Duration> {
    millis.iter().copied().map(Duration::from_millis).collect()
}

/// Merged by an order of this run, with nothing else to say.
pub fn merged() -> Outcome {
    let commit = Some("3".repeat(40));
    Outcome::Merged { commit, ordered: true, warning: None }
}
