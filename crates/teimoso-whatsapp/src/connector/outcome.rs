//! How a send ends: sent, not sent with its proof, or unknown. Absent: any fourth way.

use teimoso_http::retry::{Fate, Nack, Proof, Why};

use crate::error::{Error, ErrorKind};
use crate::message::MessageId;

/// What came of a send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SendOutcome {
    /// The provider took the message.
    Sent(Sent),
    /// The message was not sent, and that is proved: to send it again doubles nothing.
    NotSent {
        /// What proves it.
        proof: NotSent,
        /// What went wrong.
        error: Error,
    },
    /// The message may have been sent or not. It is never sent again by itself.
    Unknown {
        /// The id that went along, if one did.
        id: Option<MessageId>,
        /// What leaves it open.
        why: Unknown,
        /// What went wrong.
        error: Error,
    },
}

/// A message that a provider took.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sent {
    /// The provider's id of it, if the answer says.
    pub id: Option<String>,
    /// The id that went along, if one did.
    pub caller_id: Option<MessageId>,
    /// Whether it was found by a lookup, after an answer that left it open.
    pub reconciled: bool,
}

/// What proves that a message was not sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum NotSent {
    /// We declined to send it: the provider cannot do what was asked for, or its address cannot be used.
    Refused,
    /// No byte of the request left.
    NeverSent(Proof),
    /// The peer stated that it did not process the request.
    NotProcessed(Nack),
    /// The provider answered that it did not send it, in a way that is known to be true of it.
    Declined,
}

impl NotSent {
    /// The stable name: `refused`, `never_sent`, `not_processed` or `declined`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Refused => "refused",
            Self::NeverSent(_) => "never_sent",
            Self::NotProcessed(_) => "not_processed",
            Self::Declined => "declined",
        }
    }
}

/// What leaves open whether a message was sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unknown {
    /// The request was under way, and no answer came.
    NoAnswer(Why),
    /// An answer came, and was cut.
    BodyLost,
    /// An answer came that does not say.
    Unclear,
    /// The last attempt was not sent or was declined, and one before it may have been.
    Earlier,
}

impl Unknown {
    /// The stable name: `no_answer`, `body_lost`, `unclear` or `earlier_attempt`.
    pub fn name(self) -> &'static str {
        match self {
            Self::NoAnswer(_) => "no_answer",
            Self::BodyLost => "body_lost",
            Self::Unclear => "unclear",
            Self::Earlier => "earlier_attempt",
        }
    }
}

impl SendOutcome {
    /// The stable name: `sent`, `not_sent` or `unknown`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Sent(_) => "sent",
            Self::NotSent { .. } => "not_sent",
            Self::Unknown { .. } => "unknown",
        }
    }

    /// What went wrong, if anything did.
    pub fn error(&self) -> Option<&Error> {
        match self {
            Self::Sent(_) => None,
            Self::NotSent { error, .. } | Self::Unknown { error, .. } => Some(error),
        }
    }

    pub(super) fn unsupported(error: Error) -> Self {
        Self::NotSent { proof: NotSent::Refused, error }
    }

    /// What an error of a send comes to.
    pub(super) fn of(error: Error, id: Option<MessageId>) -> Self {
        match proof(&error).filter(|_| !error.may_have_taken_effect()) {
            Some(proof) => Self::NotSent { proof, error },
            None => Self::Unknown { id, why: doubt(&error).unwrap_or(Unknown::Earlier), error },
        }
    }
}

/// What the end of the last attempt proves.
fn proof(error: &Error) -> Option<NotSent> {
    match (error.kind(), error.fate()) {
        (ErrorKind::Declined(_), _) => Some(NotSent::Declined),
        (ErrorKind::Unsupported, _) | (_, None | Some(Fate::Refused(_))) => Some(NotSent::Refused),
        (ErrorKind::NoAnswer, Some(Fate::NeverSent(proof))) => Some(NotSent::NeverSent(proof)),
        (ErrorKind::NoAnswer, Some(Fate::NotProcessed(nack))) => Some(NotSent::NotProcessed(nack)),
        _ => None,
    }
}

/// What the end of the last attempt leaves open.
fn doubt(error: &Error) -> Option<Unknown> {
    match (error.kind(), error.fate()) {
        (ErrorKind::NoAnswer, Some(Fate::Ambiguous(why))) => Some(Unknown::NoAnswer(why)),
        (ErrorKind::NoAnswer, Some(Fate::Answered | Fate::BodyLost)) => Some(Unknown::BodyLost),
        (ErrorKind::Unclear, _) => Some(Unknown::Unclear),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use teimoso_http::retry::Refusal;

    use super::*;
    use crate::adapter::Declined;
    use crate::error::{Inner, Operation};

    fn error(kind: ErrorKind, fate: Option<Fate>, may_have_taken_effect: bool) -> Error {
        let mut error = Error::unsupported("waha", Operation::SendText, "x");
        *error.inner = Inner { kind, fate, may_have_taken_effect, ..*error.inner.clone() };
        error
    }

    fn outcome(kind: ErrorKind, fate: Option<Fate>, may_have: bool) -> (&'static str, &'static str) {
        match SendOutcome::of(error(kind, fate, may_have), None) {
            SendOutcome::Sent(_) => ("sent", ""),
            SendOutcome::NotSent { proof, .. } => ("not_sent", proof.name()),
            SendOutcome::Unknown { why, .. } => ("unknown", why.name()),
        }
    }

    #[test]
    fn only_a_proof_makes_a_message_not_sent() {
        let declined = ErrorKind::Declined(Declined::Invalid);
        let never = Some(Fate::NeverSent(Proof::Connect));
        let nack = Some(Fate::NotProcessed(Nack::RefusedStream));
        let no_answer = ErrorKind::NoAnswer;
        let cases = [
            (outcome(declined, Some(Fate::Answered), false), ("not_sent", "declined")),
            (outcome(no_answer, never, false), ("not_sent", "never_sent")),
            (outcome(no_answer, nack, false), ("not_sent", "not_processed")),
            (outcome(ErrorKind::Unsupported, None, false), ("not_sent", "refused")),
            (outcome(no_answer, Some(Fate::Refused(Refusal::TooLarge)), false), ("not_sent", "refused")),
            (outcome(no_answer, Some(Fate::Ambiguous(Why::Reset)), true), ("unknown", "no_answer")),
            (outcome(no_answer, Some(Fate::BodyLost), true), ("unknown", "body_lost")),
            (outcome(ErrorKind::Unclear, Some(Fate::Answered), true), ("unknown", "unclear")),
        ];
        for (is, expected) in cases {
            assert_eq!(is, expected);
        }
    }

    #[test]
    fn an_earlier_attempt_that_may_have_been_sent_outweighs_the_proof_of_the_last() {
        let never = Some(Fate::NeverSent(Proof::Connect));
        assert_eq!(outcome(ErrorKind::NoAnswer, never, true), ("unknown", "earlier_attempt"));
        let declined = ErrorKind::Declined(Declined::Authentication);
        assert_eq!(outcome(declined, Some(Fate::Answered), true), ("unknown", "earlier_attempt"));
    }
}
