//! A delivery: one event for one endpoint; its states, its end, its modes.

use super::Millis;

macro_rules! named {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $tag:literal $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$vmeta])* $variant),+ }

        impl $name {
            /// Every value, in tag order.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The stable name used in JSON, flags, logs and metrics.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $text),+ }
            }

            /// The number stores keep. Never reused.
            #[must_use]
            pub const fn tag(self) -> u8 {
                match self { $(Self::$variant => $tag),+ }
            }

            /// The value behind a stored number; `None` for one this version does not know.
            #[must_use]
            pub const fn from_tag(tag: u8) -> Option<Self> {
                match tag { $($tag => Some(Self::$variant),)+ _ => None }
            }

            /// The value with this name.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|value| value.name() == name)
            }
        }
    };
}
pub(crate) use named;

named! {
    /// Where a delivery stands. It is always in exactly one of these (G2).
    DeliveryState {
        /// Accepted, never attempted.
        Pending = 0 "pending",
        /// Leased: an attempt is being made.
        InFlight = 1 "in_flight",
        /// Waits to be attempted again.
        Scheduled = 2 "scheduled",
        /// Ended: the receiver answered 2xx.
        Delivered = 3 "delivered",
        /// Ended by decision; kept until replayed or expunged.
        Dead = 4 "dead",
        /// Ended by a person or by its endpoint's deletion.
        Cancelled = 5 "cancelled",
    }
}

impl DeliveryState {
    /// Whether nothing more will happen to it by itself.
    #[must_use]
    pub const fn is_final(self) -> bool {
        matches!(self, Self::Delivered | Self::Dead | Self::Cancelled)
    }
}

named! {
    /// Why a delivery is a dead letter. A closed list.
    DeadReason {
        /// A status that no repetition will change.
        PermanentStatus = 1 "permanent_status",
        /// The policy's last attempt failed.
        AttemptsExhausted = 2 "attempts_exhausted",
        /// The policy's `give_up_after` would pass before the next attempt.
        DeadlineExceeded = 3 "deadline_exceeded",
        /// At-most-once: it may have taken effect; a person decides.
        Ambiguous = 4 "ambiguous",
        /// 410 Gone.
        EndpointGone = 5 "endpoint_gone",
        /// 3xx: never followed.
        Redirect = 6 "redirect",
        /// The address is not one we may connect to.
        BlockedAddress = 7 "blocked_address",
        /// The URL cannot be used.
        InvalidDestination = 8 "invalid_destination",
        /// What came in was not an event.
        Malformed = 9 "malformed",
        /// Larger than the limit.
        TooLarge = 10 "too_large",
        /// In flight at three deaths of the process.
        Poison = 11 "poison",
    }
}

named! {
    /// What repeating may cost (G3, G4).
    Mode {
        /// Repeat until answered; the receiver deduplicates by event id.
        AtLeastOnce = 0 "at_least_once",
        /// Never repeat what may have taken effect.
        AtMostOnce = 1 "at_most_once",
    }
}

named! {
    /// Why the next attempt is when it is.
    NextWhy {
        /// Never attempted yet.
        First = 0 "first",
        /// The policy's schedule.
        Retry = 1 "retry",
        /// The receiver's Retry-After.
        RetryAfter = 2 "retry_after",
        /// The lane is paused by a Retry-After.
        LanePaused = 3 "lane_paused",
        /// The lane's breaker is open.
        Breaker = 4 "breaker",
        /// A person paused the endpoint.
        EndpointPaused = 5 "endpoint_paused",
        /// The endpoint is disabled.
        EndpointDisabled = 6 "endpoint_disabled",
        /// A person asked for it again.
        Replay = 7 "replay",
        /// The producer asked for this time.
        DeliverAt = 8 "deliver_at",
    }
}

/// What is kept of an unfinished delivery between its attempts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Attempts settled so far; numbers continue over replays (G6).
    pub attempts: u32,
    /// Attempts that were settled before the current budget began: a replay starts a fresh one.
    pub budget_from: u32,
    /// When the first attempt of the current budget started.
    pub first_attempt_at: Option<Millis>,
    /// How often it was in flight when a process died or lost its lease (G6).
    pub recoveries: u8,
    /// What repeating may cost.
    pub mode: Mode,
    /// Why it is due when it is due.
    pub why: NextWhy,
}

impl Progress {
    /// A delivery that was just accepted.
    #[must_use]
    pub const fn fresh(mode: Mode, why: NextWhy) -> Self {
        Self { attempts: 0, budget_from: 0, first_attempt_at: None, recoveries: 0, mode, why }
    }

    /// The state it is in while nobody works on it.
    #[must_use]
    pub const fn resting_state(&self) -> DeliveryState {
        if self.attempts == 0 { DeliveryState::Pending } else { DeliveryState::Scheduled }
    }
}
