//! The ways in which the double fails; absent: when, which the test says.

use super::wire::Answer;

/// What goes wrong with a request.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It is not executed, and the connection ends.
    Lost,
    /// It is executed, and the connection ends.
    DoneAndLost,
    /// It is executed, and the body of the answer breaks off.
    DoneAndCut,
    /// It is not executed, and answered so: status, header lines, body.
    Says(u16, &'static [(&'static str, &'static str)], String),
    /// It is executed, and answered so.
    DoneAndSays(u16, &'static [(&'static str, &'static str)], String),
}

impl Fault {
    /// Not executed; the API's own message.
    #[must_use]
    pub fn message(status: u16, message: &str) -> Self {
        Self::Says(status, &[], message_body(message))
    }

    /// Executed; the API's own message.
    #[must_use]
    pub fn done_and_message(status: u16, message: &str) -> Self {
        Self::DoneAndSays(status, &[], message_body(message))
    }

    /// Not executed; a page of a proxy.
    #[must_use]
    pub fn proxy(status: u16) -> Self {
        let page = format!("<html><head><title>{status} Bad Gateway</title></head></html>");
        Self::Says(status, &[("content-type", "text/html")], page)
    }

    /// Not executed; an answer without a body.
    #[must_use]
    pub fn empty(status: u16) -> Self {
        Self::Says(status, &[], String::new())
    }
}

fn message_body(message: &str) -> String {
    serde_json::json!({ "message": message, "url": "http://forge.example/api/swagger" }).to_string()
}

/// A fault and the requests that it befalls.
pub struct Rule {
    pub(super) method: &'static str,
    pub(super) ends: &'static str,
    pub(super) from: usize,
    pub(super) times: usize,
    pub(super) fault: Fault,
}

/// What goes out.
pub enum Reply {
    /// All of it.
    Whole(Answer),
    /// All but its last byte.
    Cut(Answer),
    /// Nothing, and the connection ends.
    Hangup,
}

/// What comes of a request that this befalls; `execute` is what comes of it otherwise.
pub(super) fn reply(fault: Option<Fault>, execute: impl FnOnce() -> Answer) -> Reply {
    match fault {
        None => Reply::Whole(execute()),
        Some(Fault::Lost) => Reply::Hangup,
        Some(Fault::DoneAndLost) => {
            execute();
            Reply::Hangup
        }
        Some(Fault::DoneAndCut) => Reply::Cut(execute()),
        Some(Fault::Says(status, headers, body)) => Reply::Whole(Answer::of(status, headers, body)),
        Some(Fault::DoneAndSays(status, headers, body)) => {
            execute();
            Reply::Whole(Answer::of(status, headers, body))
        }
    }
}
