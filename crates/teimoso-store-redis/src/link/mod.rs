//! Connections that come back by themselves: where the server is, how an error is to be taken, how long to wait.
//!
//! | where | what |
//! |---|---|
//! | [`Link`] | one connection that many callers share, made again when it breaks |
//! | `place` | what the ways of finding the server have in common |
//! | `address` | the URL a person gives, and which way it names |
//! | `sentinel`, `cluster` | whoever the sentinels name; whoever has a slot |
//! | `failure`, `backoff` | what helps against an error, and how long to wait first |
//!
//! Deliberately absent: blocking commands, which would hold up every other caller, and any opinion on whether a call
//! may be repeated.

mod address;
mod backoff;
mod cluster;
mod failure;
mod place;
mod sentinel;

use std::sync::Arc;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, Pipeline, ProtocolVersion, Value};
use teimoso_delivery::ports::{Clock, Entropy};
use tokio::sync::{Mutex, watch};

pub(crate) use address::Address;
pub(crate) use backoff::Backoff;
pub(crate) use failure::{Failure, Trouble};
pub(crate) use place::{Locate, connect};
pub(crate) use sentinel::Sentinels;

use crate::scripts::Call;

/// A shared connection that is made again when it breaks.
pub(crate) struct Link {
    place: Arc<dyn Locate>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// A call that met a broken connection is made once more.
    repeats: bool,
    state: Mutex<State>,
    /// Counts connections of all links: each has a number of its own, and whoever wants to know hears of it.
    made: Made,
}

/// How many connections were made so far.
pub(crate) type Made = watch::Sender<u64>;

#[derive(Default)]
struct State {
    live: Option<Live>,
    backoff: Backoff,
}

/// A connection that works as far as anybody knows.
#[derive(Clone)]
struct Live {
    connection: MultiplexedConnection,
    number: u64,
    moves: watch::Receiver<u64>,
}

/// What is sent in one go.
#[derive(Clone, Copy)]
enum Sent<'a> {
    One(&'a Cmd),
    Several(&'a Pipeline),
}

impl Sent<'_> {
    async fn query(self, connection: &mut MultiplexedConnection) -> redis::RedisResult<Vec<Value>> {
        match self {
            Self::One(command) => command.query_async(connection).await.map(|value| vec![value]),
            Self::Several(pipeline) => pipeline.query_async(connection).await,
        }
    }
}

impl Link {
    pub(crate) fn new(
        place: Arc<dyn Locate>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        made: Made,
    ) -> Self {
        Self { place, clock, entropy, repeats: false, state: Mutex::default(), made }
    }

    /// For calls that may be made twice: the connection may have been broken long before anybody noticed.
    pub(crate) fn repeating(self) -> Self {
        Self { repeats: true, ..self }
    }

    /// Calls a script, with its text when the server does not know it.
    pub(crate) async fn call(&self, call: &Call) -> Result<Value, Failure> {
        match self.command(&call.by_digest()).await {
            Err(failure) if failure.trouble == Trouble::NoScript => {
                let answer = self.command(&call.by_text()).await;
                answer.map_err(|failure| failure.in_script(call.script.name))
            }
            answer => answer.map_err(|failure| failure.in_script(call.script.name)),
        }
    }

    /// Sends a command that is no script.
    pub(crate) async fn command(&self, command: &Cmd) -> Result<Value, Failure> {
        self.send(Sent::One(command)).await?.pop().ok_or_else(Failure::gone)
    }

    /// Sends several at once.
    pub(crate) async fn pipeline(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Failure> {
        self.send(Sent::Several(pipeline)).await
    }

    /// Waits as long as it makes sense before the next try: full jitter, longer with every failure in a row.
    pub(crate) async fn pause(&self) {
        let wait = {
            let mut state = self.state.lock().await;
            state.backoff.next(&*self.entropy)
        };
        self.clock.sleep(wait).await;
    }

    async fn send(&self, sent: Sent<'_>) -> Result<Vec<Value>, Failure> {
        match self.send_once(sent).await {
            Err(failure) if self.repeats && failure.trouble == Trouble::Away => self.send_once(sent).await,
            answer => answer,
        }
    }

    async fn send_once(&self, sent: Sent<'_>) -> Result<Vec<Value>, Failure> {
        let Live { mut connection, number, mut moves } = self.connection().await?;
        // What a server that is no longer the master would answer, nobody waits for.
        let answer = tokio::select! {
            biased;
            answer = sent.query(&mut connection) => answer.map_err(Failure::from),
            _ = moves.changed() => Err(Failure::gone()),
        };
        let mut state = self.state.lock().await;
        match &answer {
            Ok(_) => state.backoff.reset(),
            Err(failure) => {
                self.place.heard(failure);
                let is_current = state.live.as_ref().is_some_and(|live| live.number == number);
                if failure.breaks_connection() && is_current {
                    state.live = None;
                }
            }
        }
        answer
    }

    async fn connection(&self) -> Result<Live, Failure> {
        let mut state = self.state.lock().await;
        let has_moved = |live: &Live| live.moves.has_changed().unwrap_or(true);
        if let Some(live) = state.live.as_ref().filter(|live| !has_moved(live)) {
            return Ok(live.clone());
        }
        state.live = None;
        // Before the question: a move that comes while it is answered counts.
        let moves = self.place.moves();
        let connection = self.connect().await.inspect_err(|failure| self.place.heard(failure))?;
        let mut number = 0;
        self.made.send_modify(|made| {
            *made += 1;
            number = *made;
        });
        let live = Live { connection, number, moves };
        Ok(state.live.insert(live).clone())
    }

    async fn connect(&self) -> Result<MultiplexedConnection, Failure> {
        connect(self.place.locate().await?, ProtocolVersion::RESP2, None).await
    }
}
