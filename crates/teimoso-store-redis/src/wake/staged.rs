//! Waking where there is no tracking: what anybody pushes is moved to a list of this process's own, in the server and in
//! one step, and the move's answer is the wake.
//!
//! An answer that is lost swallows nothing: the list is registered, so its entry is found by this process when it comes
//! back, or by any other when the registration has ended. From the list an entry goes to those that wait for adoption;
//! put back to the ready list it would wake the next process that blocks there, and so on. Everything else, such as an
//! acceptance in another process, is found by the check of every second.

use std::pin::pin;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{Cmd, ProtocolVersion, Value, cmd};

use super::{Asks, jittered, look_for_the_overdue};
use crate::link::{Backoff, Failure, Trouble, connect_to_block};
use crate::reply::{exactly, number};
use crate::scripts::STAGE;
use crate::shared::Shared;

/// How long the server holds a move back.
const BLOCK: Duration = Duration::from_secs(4);
/// A registration outlives the move and its answer.
const REGISTERED: Duration = Duration::from_secs(15);
/// Processes that block at once: each entry wakes one, and the others of a large fleet check every second anyway.
const MOST_ARMED: u32 = 4;

/// Until the connection is gone; with what.
pub(super) async fn hear(shared: &Shared, who: &str, backoff: &mut Backoff) -> Failure {
    let moves = shared.place.moves();
    let mut ear = match open(shared).await {
        Ok(connection) => Ear { connection, who, moves, moves_entries: true },
        Err(failure) => return failure,
    };
    backoff.reset();
    loop {
        shared.wake.somebody_waits().await;
        look_for_the_overdue(shared, Asks::Nothing).await;
        // Whoever waits says so once.
        while !shared.wake.has_news() {
            if let Err(failure) = ear.hear_once(shared).await {
                return failure;
            }
        }
    }
}

async fn open(shared: &Shared) -> Result<MultiplexedConnection, Failure> {
    connect_to_block(shared.place.locate().await?, ProtocolVersion::RESP2, BLOCK).await
}

struct Ear<'a> {
    connection: MultiplexedConnection,
    who: &'a str,
    moves: tokio::sync::watch::Receiver<u64>,
    /// Whether the way to the server lets moves through that block.
    moves_entries: bool,
}

impl Ear<'_> {
    /// One move, and the checks of every second meanwhile; or the checks alone. Whoever waits hears of news by itself.
    async fn hear_once(&mut self, shared: &Shared) -> Result<(), Failure> {
        let blocks = self.moves_entries && step(shared, "arm", self.who).await?;
        let answer = if blocks { self.move_one(shared).await } else { checks(shared).await };
        match answer {
            Ok(Value::Nil) => {}
            Ok(_) => {
                step(shared, "unstage", self.who).await?;
                shared.wake.note_ingress();
                shared.wake.nudge();
            }
            Err(failure) => match failure.trouble {
                // Full: moves are refused until there is room.
                Trouble::Full => drop(checks(shared).await),
                Trouble::Away | Trouble::NoScript => return Err(failure),
                _ => self.moves_entries = false,
            },
        }
        Ok(())
    }

    async fn move_one(&mut self, shared: &Shared) -> Result<Value, Failure> {
        let command = self.command(shared);
        let mut answer = pin!(command.query_async::<Value>(&mut self.connection));
        loop {
            let check = shared.clock.sleep(jittered(shared.entropy.next_u64()));
            tokio::select! {
                answer = &mut answer => return Ok(answer?),
                _ = self.moves.changed() => return Err(Failure::gone()),
                () = check => look_unless_told(shared).await,
            }
        }
    }

    fn command(&self, shared: &Shared) -> Cmd {
        let mut command = cmd("BLMOVE");
        command.arg(shared.keys.ready()).arg(shared.keys.own(&format!("staged:{}", self.who)));
        command.arg("LEFT").arg("RIGHT").arg(BLOCK.as_secs());
        command
    }
}

/// For as long as a move would have blocked.
async fn checks(shared: &Shared) -> Result<Value, Failure> {
    for _ in 0..BLOCK.as_secs() {
        shared.clock.sleep(jittered(shared.entropy.next_u64())).await;
        look_unless_told(shared).await;
    }
    Ok(Value::Nil)
}

async fn look_unless_told(shared: &Shared) {
    if !shared.wake.has_news() {
        look_for_the_overdue(shared, Asks::Nothing).await;
    }
}

/// A step of the script that keeps the registrations; whether this process is (still) among them.
async fn step(shared: &Shared, what: &str, who: &str) -> Result<bool, Failure> {
    let mut call = shared.call(&STAGE);
    call.arg(what).arg(who).number(REGISTERED.as_millis() as u64).number(MOST_ARMED);
    let answer = exactly::<1>(shared.reads.call(&call).await?);
    Ok(answer.is_ok_and(|[armed]| number(&armed).is_ok_and(|armed| armed == Some(1))))
}

/// Entries whose process died between the move and its next step are anybody's again.
pub(super) async fn sweep(shared: &Shared) -> Result<(), Failure> {
    step(shared, "sweep", "").await.map(drop)
}
