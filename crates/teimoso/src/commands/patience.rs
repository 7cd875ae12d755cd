//! Looking at something again and again until it is over: pauses that grow, and a server that may be away for a
//! while. Deliberately absent: what is looked at.

use std::time::Duration;

use super::Context;
use crate::api_client::ApiError;
use crate::messages::Message;

/// The first pause between two looks; it doubles up to [`PAUSE_MAX`].
const PAUSE_FIRST: Duration = Duration::from_millis(25);

/// The longest pause between two looks.
const PAUSE_MAX: Duration = Duration::from_secs(1);

/// How many looks in a row may find no server, about a minute: it may be restarting.
const AWAY_MAX: u32 = 60;

/// How long one goes on looking.
#[derive(Debug)]
pub(super) struct Patience {
    away: u32,
    pause: Duration,
}

impl Patience {
    pub(super) fn new() -> Patience {
        Patience { away: 0, pause: PAUSE_FIRST }
    }

    /// The pause before the next look.
    pub(super) fn next_pause(&mut self) -> Duration {
        let pause = self.pause;
        self.pause = (pause * 2).min(PAUSE_MAX);
        pause
    }

    /// The server answered; if it had been away, that is said.
    pub(super) fn answered(&mut self, context: Context) {
        if std::mem::take(&mut self.away) > 0 {
            context.output.say(&Message::ServerBack);
        }
    }

    /// A server that is away may come back: that is said once.
    ///
    /// # Errors
    /// It has been away for too long, or the error is of another kind.
    pub(super) fn bear(&mut self, error: ApiError, context: Context) -> Result<(), ApiError> {
        let away = matches!(error, ApiError::Unreachable { .. } | ApiError::Lost(_));
        self.away += 1;
        if !away || self.away > AWAY_MAX {
            return Err(error);
        }
        if self.away == 1 {
            context.output.say(&Message::ServerAway);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::messages::Language;
    use crate::output::Output;

    #[test]
    fn looks_grow_further_apart_up_to_a_second() {
        let mut patience = Patience::new();
        let pauses: Vec<_> = (0..8).map(|_| patience.next_pause().as_millis()).collect();
        assert_eq!(pauses, [25, 50, 100, 200, 400, 800, 1_000, 1_000]);
    }

    #[test]
    fn a_server_may_be_away_for_a_while_and_again_later() {
        let context = Context { output: Output { language: Language::English } };
        let mut patience = Patience::new();
        let lost = || ApiError::Lost("reset".to_owned());
        for _ in 0..2 {
            for _ in 0..AWAY_MAX {
                assert!(patience.bear(lost(), context).is_ok());
            }
            patience.answered(context);
        }
        assert!(patience.bear(ApiError::NotOurs, context).is_err());
    }
}
