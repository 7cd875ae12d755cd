//! The tracked connection: a plain read arms exactly one push, and its answer closes the race.
//!
//! Scripts never run here, because tracking would record the keys they declare instead of those they read.

use redis::aio::MultiplexedConnection;
use redis::{ProtocolVersion, PushInfo, PushKind, Value, cmd, pipe};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};
use tokio::sync::watch;

use super::{jittered, look_for_the_overdue};
use crate::link::{Failure, connect};
use crate::reply;
use crate::shared::Shared;

/// The tracked connection.
pub(super) struct Ear {
    connection: MultiplexedConnection,
    pushes: UnboundedReceiver<PushInfo>,
    moves: watch::Receiver<u64>,
}

impl Ear {
    pub(super) async fn open(shared: &Shared) -> Result<Self, Failure> {
        let (sender, pushes) = unbounded_channel();
        let moves = shared.place.moves();
        let target = shared.place.locate().await?;
        let mut connection = connect(target, ProtocolVersion::RESP3, Some(sender)).await?;
        let mut tracking = cmd("CLIENT");
        tracking.arg("TRACKING").arg("ON").arg("NOLOOP");
        let _: Value = tracking.query_async(&mut connection).await?;
        Ok(Self { connection, pushes, moves })
    }

    /// Reads what the bell shows, which arms the next push.
    async fn arm(&mut self, shared: &Shared) -> Result<(), Failure> {
        let mut asked = pipe();
        asked.cmd("GET").arg(shared.keys.bell());
        asked.cmd("LLEN").arg(shared.keys.ready());
        asked.cmd("ZRANGE").arg(shared.keys.waiting()).arg(0).arg(0).arg("WITHSCORES");
        let [bell, ready, waiting]: [Value; 3] = asked
            .query_async::<Vec<Value>>(&mut self.connection)
            .await?
            .try_into()
            .map_err(|_| Failure::gone())?;
        shared.wake.read(reply::number(&bell).ok().flatten().unwrap_or(0));
        shared.wake.read_public(&ready, waiting);
        Ok(())
    }

    /// `false` when the connection is gone, or to a server that lost its place.
    async fn hear_push(&mut self) -> bool {
        loop {
            let push = tokio::select! {
                push = self.pushes.recv() => push,
                _ = self.moves.changed() => return false,
            };
            match push.map(|push| push.kind) {
                Some(PushKind::Invalidate) => return true,
                Some(PushKind::Disconnection) | None => return false,
                Some(_) => {}
            }
        }
    }

    /// Until the connection is gone; with what.
    pub(super) async fn hear(&mut self, shared: &Shared) -> Failure {
        loop {
            shared.wake.waiting.notified().await;
            loop {
                if let Err(failure) = self.arm(shared).await {
                    return failure;
                }
                // Whoever waited is told, and says so when it waits again. A push without news leaves it waiting: our
                // own scripts ring the bell, too.
                if shared.wake.has_news() {
                    break;
                }
                if !self.hear_push_or_news(shared).await {
                    return Failure::gone();
                }
            }
        }
    }

    /// Until something was pushed, or a check found what no push said; `false` when the connection is gone.
    async fn hear_push_or_news(&mut self, shared: &Shared) -> bool {
        loop {
            let check = shared.clock.sleep(jittered(shared.entropy.next_u64()));
            tokio::select! {
                heard = self.hear_push() => return heard,
                () = check => {}
            }
            if shared.wake.has_news() {
                return true;
            }
            look_for_the_overdue(shared).await;
        }
    }
}
