//! S2.2's plain push, wherever the ready list is: what `redis-cli RPUSH` does, by every form of address.
//!
//! Deliberately absent: a store. It looks at nothing and starts nothing.

use std::time::Duration;

use redis::{Cmd, ProtocolVersion, Value, cmd};
use teimoso_delivery::ports::Clock;

use crate::error::{OpenError, OpenErrorKind};
use crate::keys::{self, Keys};
use crate::link::{Address, Failure, Locate, connect};
use crate::options::Options;

/// While the slot of the list moves, or a master is chosen, it is tried again for this long.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// Why nothing was pushed, or nobody knows whether it was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PushError {
    /// Nothing was pushed.
    NotPushed(OpenError),
    /// It was sent, and the answer was lost: it may have been pushed.
    Unanswered(String),
}

/// Appends one entry to the ready list.
///
/// # Errors
/// See [`PushError`]; each with one sentence.
pub async fn push(url: &str, options: &Options, entry: &[u8], clock: &dyn Clock) -> Result<(), PushError> {
    let unusable = |sentence: &str| PushError::NotPushed(OpenError::new(OpenErrorKind::Unusable, sentence));
    if !keys::is_usable_prefix(&options.prefix) {
        return Err(unusable("the key prefix must be 1 to 128 bytes of visible ASCII without braces"));
    }
    let address = Address::parse(url, options).map_err(|failure| unusable(&failure.to_string()))?;
    let keys = Keys::new(&options.prefix, address.is_cluster());
    let place = address.place_of(keys.ready());
    let mut command = cmd("RPUSH");
    command.arg(keys.ready()).arg(entry);
    let began = clock.monotonic();
    loop {
        let failure = match push_once(&*place, &command).await {
            Ok(()) => return Ok(()),
            Err(Missed::Unanswered(failure)) => {
                let sentence = format!("redis at {} did not answer: {failure}", address.shown());
                return Err(PushError::Unanswered(sentence));
            }
            Err(Missed::Refused(failure)) => failure,
        };
        place.heard(&failure);
        if !failure.is_elsewhere_or_soon() || clock.monotonic() - began >= PATIENCE {
            return Err(PushError::NotPushed(OpenError::connecting(address.shown(), &failure)));
        }
        clock.sleep(PAUSE).await;
    }
}

enum Missed {
    /// The server said no, or was not there.
    Refused(Failure),
    Unanswered(Failure),
}

async fn push_once(place: &dyn Locate, command: &Cmd) -> Result<(), Missed> {
    let target = place.locate().await.map_err(Missed::Refused)?;
    let mut connection = connect(target, ProtocolVersion::RESP2, None).await.map_err(Missed::Refused)?;
    let pushed = command.query_async::<Value>(&mut connection).await;
    pushed.map(drop).map_err(|error| match error.is_io_error() || error.is_timeout() {
        true => Missed::Unanswered(error.into()),
        false => Missed::Refused(error.into()),
    })
}
