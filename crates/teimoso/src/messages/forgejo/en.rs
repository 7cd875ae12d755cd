//! The English catalogue of what is said about a Forgejo. Deliberately absent: anything but words.

use teimoso_forgejo::automerge::{Note, Outcome, Standing};
use teimoso_forgejo::{NextStep, Transition};

use super::super::Printable as P;
use super::{Forgejo, ForgejoWord, short};
use crate::units::human_wait;

pub(super) fn text(line: Forgejo<'_>) -> String {
    let Forgejo { about, word } = line;
    format!("{}: {}", P(about), words(word))
}

fn words(word: ForgejoWord<'_>) -> String {
    match word {
        ForgejoWord::Note(note) => noted(note),
        ForgejoWord::Waiting { standing, left } => {
            format!("{}; {} left", standing_words(standing), human_wait(left))
        }
        ForgejoWord::Ended(outcome) => ended(outcome),
        ForgejoWord::Stopped { ordered: true } => {
            "interrupted while the order to merge was under way: look at the pull request".to_owned()
        }
        ForgejoWord::Stopped { ordered: false } => "interrupted: nothing was merged".to_owned(),
        ForgejoWord::Ready { already, ready } => {
            format!("{}{}", if already { "already " } else { "" }, if ready { "ready" } else { "a draft" })
        }
        ForgejoWord::NoChecks => "no checks".to_owned(),
        ForgejoWord::Moved { transition, label } => moved(transition, label),
        ForgejoWord::Claimed { by, already: false } => format!("claimed by {}", P(by)),
        ForgejoWord::Claimed { by, already: true } => format!("already claimed by {}", P(by)),
        ForgejoWord::Taken { by } => format!("not claimed: {} has it", P(by)),
        ForgejoWord::ReleasedMeanwhile => "not claimed: it was released meanwhile, claim it again".to_owned(),
        ForgejoWord::Closed => "not claimed: it is closed".to_owned(),
        ForgejoWord::Released { by } => format!("released; {} had it", P(by)),
        ForgejoWord::Found { before: true } => "was there already, under the same key".to_owned(),
        ForgejoWord::Found { before: false } => "the answer was lost, and the issue was found".to_owned(),
        ForgejoWord::MayExist { key, reason } => format!(
            "outcome unknown: the issue may have been made, and was not found: {}\n  repeat the command with --op {}, which \
             looks for it first",
            P(reason),
            P(key)
        ),
        ForgejoWord::StoppedMaking { key } => format!(
            "interrupted: the issue may have been made\n  repeat the command with --op {}, which looks for it first",
            P(key)
        ),
        ForgejoWord::Applied { made, changed, same, dry_run } => {
            let would = if dry_run { "would be " } else { "" };
            format!("rules: {made} {would}made, {changed} {would}changed, {same} the same")
        }
    }
}

fn standing_words(standing: Standing) -> String {
    match standing {
        Standing::Beginning => "looking".to_owned(),
        Standing::NoChecks => "no checks yet".to_owned(),
        Standing::Checks(counts) => {
            format!("{} of {} checks green, {} pending", counts.green, counts.all, counts.pending)
        }
        Standing::Confirming(counts) => {
            format!("{} of {} checks green, one more look before the merge", counts.green, counts.all)
        }
        Standing::Mergeable => {
            "green, but the server cannot merge it yet: a conflict, or it is still checking".to_owned()
        }
        Standing::Head => "the server cannot find the head commit".to_owned(),
        Standing::Merging => "waiting to order the merge again".to_owned(),
    }
}

fn noted(note: &Note) -> String {
    match note {
        Note::Now(standing) => standing_words(*standing),
        Note::HeadMoved { from, to } => {
            format!("new head {} instead of {}: judged anew", P(short(to)), P(short(from)))
        }
        Note::LookFailed { reason } => format!("could not look, the wait goes on: {}", P(reason)),
        Note::LooksAgain { failed: 1 } => "in sight again after 1 look that failed".to_owned(),
        Note::LooksAgain { failed } => format!("in sight again after {failed} looks that failed"),
        Note::Ordering { method, head } => format!("merging {} ({method})", P(short(head))),
        Note::NotYet { reason } => format!("not merged yet: {}", P(reason)),
        Note::Unclear { reason } => {
            format!("no clear answer to the order, so the pull request is read first: {}", P(reason))
        }
        Note::Scheduled => "the server has scheduled the merge; the watch goes on".to_owned(),
    }
}

fn ended(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Merged { commit, ordered, warning } => {
            let commit =
                commit.as_ref().map_or_else(String::new, |commit| format!(" as {}", P(short(commit))));
            let by = if *ordered { "" } else { ", by somebody else" };
            let warning = warning
                .as_ref()
                .map_or_else(String::new, |text| format!("\n  the server also said: {}", P(text)));
            format!("merged{commit}{by}{warning}")
        }
        Outcome::MergedUnseen => "merged, says the server; it could not be looked at since".to_owned(),
        Outcome::WouldMerge { method, head } => format!("would merge {} ({method})", P(short(head))),
        Outcome::WouldWait(standing) => format!("would wait: {}", standing_words(*standing)),
        Outcome::ChecksFailed { contexts } => format!("not merged, failed: {}", P(&contexts.join(", "))),
        Outcome::NoChecks => {
            "not merged: it has no checks\n  merge it all the same with --allow-no-checks".to_owned()
        }
        Outcome::Closed => "not merged: it is closed".to_owned(),
        Outcome::Draft => "not merged: it is a draft\n  mark it with `teimoso forgejo pr ready`".to_owned(),
        Outcome::Conflict(reason) => format!("not merged, a conflict: {}", P(reason)),
        Outcome::NotMergeable(reason) => {
            format!("not merged: a conflict, or the server is still checking: {}", P(reason))
        }
        Outcome::Blocked { reason, next_step: None, .. } => format!("not merged: {}", P(reason)),
        Outcome::Blocked { reason, next_step: Some(step), .. } => {
            format!("not merged: {}\n  {}", P(reason), next_step(*step))
        }
        Outcome::TimedOut { standing, trouble: None } => {
            format!("not merged, time ran out: {}", standing_words(*standing))
        }
        Outcome::TimedOut { trouble: Some(trouble), .. } => {
            format!("not merged, time ran out while nothing could be seen: {}", P(trouble))
        }
        Outcome::Unknown { reason } => format!(
            "outcome unknown, the order to merge may have been followed: {}\n  look at the pull request before you repeat it",
            P(reason)
        ),
    }
}

pub(super) fn next_step(step: NextStep) -> &'static str {
    match step {
        NextStep::NewToken => "make a new token in the settings of your account",
        NextStep::Permission => "look at the scopes of the token, and at what its user may do",
        NextStep::SpellingOrAccess => "look at the spelling, and whether the token may see the repository",
        NextStep::Unarchive => "an archived repository must be unarchived first",
        NextStep::AddressOfRedirect => "give the address that it leads to as the server's",
        NextStep::Address => "look whether the address of the server is right, and whether it is up",
        NextStep::Later => "try again in a while",
    }
}

fn moved(transition: &Transition, label: &str) -> String {
    match transition {
        Transition::Already => format!("already {}", P(label)),
        Transition::Moved { from } if from.is_empty() => P(label).to_string(),
        Transition::Moved { from } => format!("{} (was {})", P(label), P(&from.join(", "))),
        Transition::NoSuchState { known } if known.is_empty() => {
            format!(
                "there is no label {}, nor any other of its scope\n  make it first, or name another scope with --scope",
                P(label)
            )
        }
        Transition::NoSuchState { known } => {
            format!("there is no label {}; the statuses are {}", P(label), P(&known.join(", ")))
        }
    }
}
