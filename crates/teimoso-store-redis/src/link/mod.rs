//! Connections that come back by themselves: where the server is, how an error is to be taken, how long to wait.
//!
//! One [`Link`] is one connection that many callers share; a call that fails because the server is away says so,
//! and the next one finds the way again. Deliberately absent: blocking commands, which would hold up every other
//! caller, and any opinion on whether a call may be repeated.

mod address;
mod backoff;
mod failure;

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{AsyncConnectionConfig, Client, Cmd, Pipeline, ProtocolVersion, PushInfo, Value};
use teimoso_delivery::ports::{BoxFuture, Clock, Entropy};
use tokio::sync::Mutex;
use tokio::sync::mpsc::UnboundedSender;

pub(crate) use address::Address;
pub(crate) use backoff::Backoff;
pub(crate) use failure::{Failure, Trouble};

use crate::scripts::Call;

/// A connection must be up within this.
const CONNECT: Duration = Duration::from_secs(2);
/// An answer must come within this: scripts take milliseconds.
const RESPONSE: Duration = Duration::from_secs(5);

/// Where the server that may be written to is at present: one address, or whoever Sentinel or a Cluster's map names.
pub(crate) trait Locate: Send + Sync + 'static {
    /// Asked before every connection.
    fn locate(&self) -> BoxFuture<'_, Result<redis::ConnectionInfo, Failure>>;
}

/// A shared connection that is made again when it breaks.
pub(crate) struct Link {
    place: Arc<dyn Locate>,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
    /// A call that met a broken connection is made once more.
    repeats: bool,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    live: Option<MultiplexedConnection>,
    /// Counts connections, so that a failure of an old one does not close a new one.
    generation: u64,
    backoff: Backoff,
}

impl Link {
    pub(crate) fn new(place: Arc<dyn Locate>, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        Self { place, clock, entropy, repeats: false, state: Mutex::default() }
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
        let (mut connection, generation) = self.connection().await?;
        let answer = command.query_async(&mut connection).await;
        match self.judged(answer, generation).await {
            Err(failure) if self.repeats && failure.trouble == Trouble::Away => {
                let (mut connection, generation) = self.connection().await?;
                let answer = command.query_async(&mut connection).await;
                self.judged(answer, generation).await
            }
            answer => answer,
        }
    }

    /// Sends several at once.
    pub(crate) async fn pipeline(&self, pipeline: &Pipeline) -> Result<Vec<Value>, Failure> {
        let (mut connection, generation) = self.connection().await?;
        let answer = pipeline.query_async(&mut connection).await;
        match self.judged(answer, generation).await {
            Err(failure) if self.repeats && failure.trouble == Trouble::Away => {
                let (mut connection, generation) = self.connection().await?;
                let answer = pipeline.query_async(&mut connection).await;
                self.judged(answer, generation).await
            }
            answer => answer,
        }
    }

    /// Waits as long as it makes sense before the next try: full jitter, longer with every failure in a row.
    pub(crate) async fn pause(&self) {
        let wait = {
            let mut state = self.state.lock().await;
            state.backoff.next(&*self.entropy)
        };
        self.clock.sleep(wait).await;
    }

    async fn judged<T>(&self, answer: redis::RedisResult<T>, generation: u64) -> Result<T, Failure> {
        let mut state = self.state.lock().await;
        match answer {
            Ok(answer) => {
                state.backoff.reset();
                Ok(answer)
            }
            Err(error) => {
                let failure = Failure::from(error);
                if failure.trouble == Trouble::Away && state.generation == generation {
                    state.live = None;
                }
                Err(failure)
            }
        }
    }

    async fn connection(&self) -> Result<(MultiplexedConnection, u64), Failure> {
        let mut state = self.state.lock().await;
        if state.live.is_none() {
            let info = self.place.locate().await?;
            state.live = Some(connect(info, ProtocolVersion::RESP2, None).await?);
            state.generation += 1;
        }
        let live = state.live.clone().ok_or_else(Failure::gone)?;
        Ok((live, state.generation))
    }
}

/// Makes one connection, with explicit time-outs; `pushes` hears what the server sends unasked.
pub(crate) async fn connect(
    info: redis::ConnectionInfo,
    protocol: ProtocolVersion,
    pushes: Option<UnboundedSender<PushInfo>>,
) -> Result<MultiplexedConnection, Failure> {
    let settings = info.redis_settings().clone().set_protocol(protocol);
    let client = Client::open(info.set_redis_settings(settings))?;
    let mut config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(CONNECT))
        .set_response_timeout(Some(RESPONSE));
    if let Some(pushes) = pushes {
        config = config.set_push_sender(pushes);
    }
    Ok(client.get_multiplexed_async_connection_with_config(&config).await?)
}
