//! How an instance stands, in one form for all providers; absent: how each of them says it, which its adapter reads.

use std::fmt;

use crate::qr::Qr;

/// The normal form of a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum State {
    /// Linked to a phone and on line: messages can be sent.
    Connected,
    /// On its way there.
    Connecting,
    /// It waits for somebody to scan the QR code.
    Qr,
    /// Not linked, not started, or logged out.
    Disconnected,
    /// It failed, or says something that is not known here.
    Error,
}

impl State {
    /// The stable name: `connected`, `connecting`, `qr`, `disconnected` or `error`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Connecting => "connecting",
            Self::Qr => "qr",
            Self::Disconnected => "disconnected",
            Self::Error => "error",
        }
    }
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A status, and the provider's own word for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// The normal form.
    pub state: State,
    /// As the provider says it; where it says it in several fields, those as `name=value`.
    pub raw: String,
}

impl Status {
    /// A status.
    pub fn new(state: State, raw: impl Into<String>) -> Self {
        Self { state, raw: raw.into() }
    }

    /// The status of a server that says two things of its client: whether it is connected to WhatsApp, and whether a
    /// phone is linked to it.
    pub fn of_link(connected: bool, logged_in: bool) -> Self {
        let state = match (connected, logged_in) {
            (true, true) => State::Connected,
            (true, false) => State::Qr,
            (false, true) => State::Connecting,
            (false, false) => State::Disconnected,
        };
        Self::new(state, format!("connected={connected} logged_in={logged_in}"))
    }
}

/// What came of `instance.connect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Connection {
    /// How the instance stands after it, as far as the answer says.
    pub status: Status,
    /// The QR code, where the answer brings it along.
    pub qr: Option<Qr>,
}

impl From<Status> for Connection {
    fn from(status: Status) -> Self {
        Self { status, qr: None }
    }
}
