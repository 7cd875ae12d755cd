//! What an answer, or none, means for the exit code and the last word. Deliberately absent: words, and doing anything.

use teimoso_retry::{Decision, GiveUp};

use crate::exit::Exit;
use crate::messages::LastWord;

/// What is known at the end of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct End {
    /// The status of the answer that is handed over; `None` without one.
    pub(super) answered: Option<u16>,
    /// What the policy decided after the last attempt.
    pub(super) decision: Option<Decision>,
    /// Whether any attempt may have taken effect.
    pub(super) may_have_taken_effect: bool,
}

impl End {
    /// How the process ends.
    pub(super) fn exit(self) -> Exit {
        match self.answered {
            Some(..400) => Exit::OK,
            Some(_) if self.ran_out() => Exit::EXHAUSTED,
            Some(_) => Exit::FAILURE,
            None => match self.last_word() {
                Some(LastWord::Unknown) => Exit::UNKNOWN_OUTCOME,
                Some(LastWord::RanOut) => Exit::EXHAUSTED,
                Some(LastWord::Failed) | None => Exit::FAILURE,
            },
        }
    }

    /// What a call without an answer comes to; nothing is to be said of one with an answer.
    pub(super) fn last_word(self) -> Option<LastWord> {
        match self.answered {
            Some(_) => None,
            // Even if the attempts ran out: whoever reads this must look before anything is sent again.
            None if self.may_have_taken_effect => Some(LastWord::Unknown),
            None if self.ran_out() => Some(LastWord::RanOut),
            None => Some(LastWord::Failed),
        }
    }

    /// Whether another attempt would have been made but for a limit.
    fn ran_out(self) -> bool {
        use GiveUp::{AttemptsExhausted, BudgetExhausted, DeadlineExceeded, RetryAfterBeyondCap};
        let Some(Decision::GiveUp(why)) = self.decision else { return false };
        matches!(why, AttemptsExhausted | BudgetExhausted | DeadlineExceeded | RetryAfterBeyondCap)
    }
}

#[cfg(test)]
mod tests {
    use teimoso_retry::Refusal;

    use super::*;

    fn exit(answered: Option<u16>, why: GiveUp, may_have_taken_effect: bool) -> u8 {
        let decision = Some(Decision::GiveUp(why));
        End { answered, decision, may_have_taken_effect }.exit().number()
    }

    #[test]
    fn an_answer_ends_by_its_status_and_by_whether_another_try_was_wanted() {
        for status in [200, 204, 304, 399] {
            let done =
                End { answered: Some(status), decision: Some(Decision::Done), may_have_taken_effect: true };
            assert_eq!((done.exit(), done.last_word()), (Exit::OK, None));
        }
        assert_eq!(exit(Some(302), GiveUp::Redirect, true), 0);
        for status in [400, 404, 500, 999] {
            assert_eq!(exit(Some(status), GiveUp::PermanentStatus, false), 1);
            assert_eq!(exit(Some(status), GiveUp::NotReplaySafe, true), 1);
            assert_eq!(exit(Some(status), GiveUp::AttemptsExhausted, true), 6);
            assert_eq!(exit(Some(status), GiveUp::DeadlineExceeded, false), 6);
            assert_eq!(exit(Some(status), GiveUp::RetryAfterBeyondCap, false), 6);
        }
    }

    #[test]
    fn without_an_answer_the_effect_counts_before_everything() {
        for why in [GiveUp::Ambiguous, GiveUp::AttemptsExhausted, GiveUp::TlsCertificate] {
            assert_eq!(exit(None, why, true), 7);
        }
        assert_eq!(exit(None, GiveUp::AttemptsExhausted, false), 6);
        assert_eq!(exit(None, GiveUp::DeadlineExceeded, false), 6);
        assert_eq!(exit(None, GiveUp::TlsCertificate, false), 1);
        assert_eq!(exit(None, GiveUp::Refused(Refusal::TooLarge), false), 1);
        assert_eq!(exit(None, GiveUp::NotReplaySafe, false), 1);
    }
}
