//! The decisions of the safety net: what was seen, and when, becomes what is to be done next; absent: requests, waits
//! and clocks.

use std::time::Duration;

use super::{Note, OrderAnswer, Outcome, Plan, PullSeen, Seen, Standing, Step, Trouble, Turn};
use crate::checks::{Checks, Verdict};
use crate::error::NextStep;
use crate::ops::MergeOrder;

/// How often a 404 must come in a row before it is believed of something that was there: proxies and servers that
/// start say it too.
const MISSING_MAX: u32 = 3;

/// How often the server may answer an order with 500, and the pull request stay open, before that is the end.
const FAILED_MAX: u32 = 5;

/// How often one looks for a merge that the server said it made.
const CONFIRM_MAX: u32 = 3;

/// The head that is judged.
#[derive(Debug)]
struct Judged {
    head: String,
    since: Duration,
    /// The contexts, when all were green at the last look.
    green: Option<Vec<String>>,
    /// Since when the pull request says that it cannot be merged.
    unmergeable: Option<Duration>,
    /// Since when orders are answered so, whatever the pull request says.
    refused: Option<Duration>,
    /// Orders in a row that the server failed at.
    failed: u32,
}

/// An order that went out, for the head that is judged.
#[derive(Debug)]
struct Ordered {
    at: Duration,
    answer: Option<OrderAnswer>,
    /// Looks since that showed an open pull request, or nothing.
    looks: u32,
}

/// Looks that failed, with none between them that did not.
#[derive(Debug)]
struct Failing {
    looks: u32,
    /// Why the last one did.
    reason: String,
}

/// The decisions of one run.
#[derive(Debug)]
pub struct Machine {
    plan: Plan,
    deadline: Duration,
    pull: PullSeen,
    judged: Option<Judged>,
    ordered: Option<Ordered>,
    /// Whether any order went out, for whichever head.
    ever_ordered: bool,
    standing: Standing,
    missing: u32,
    failing: Option<Failing>,
    notes: Vec<Note>,
}

impl Machine {
    /// A run that begins at `now`.
    #[must_use]
    pub fn new(plan: Plan, now: Duration) -> Self {
        Self {
            deadline: now.saturating_add(plan.timeout),
            plan,
            pull: PullSeen::default(),
            judged: None,
            ordered: None,
            ever_ordered: false,
            standing: Standing::Beginning,
            missing: 0,
            failing: None,
            notes: Vec::new(),
        }
    }

    /// Takes what was seen and says what is next. `now` never goes back.
    pub fn next(&mut self, seen: Seen, now: Duration) -> Turn {
        let step = match seen {
            Seen::Start | Seen::Waited => Step::ReadPull,
            Seen::Pull(Ok(pull)) => self.pull(pull, now),
            Seen::Checks(Ok(checks)) => self.checks(&checks, now),
            Seen::Pull(Err(trouble)) | Seen::Checks(Err(trouble)) => self.trouble(trouble, now),
            Seen::Order(answer) => self.order(answer, now),
        };
        Turn { notes: std::mem::take(&mut self.notes), step }
    }

    fn pull(&mut self, pull: PullSeen, now: Duration) -> Step {
        self.pull = pull;
        if self.pull.merged {
            return Step::End(self.merged());
        }
        if let Some(step) = self.after_done(now) {
            return step;
        }
        if self.pull.closed {
            return Step::End(Outcome::Closed);
        }
        if self.pull.draft {
            return Step::End(Outcome::Draft);
        }
        if self.pull.head.is_empty() {
            self.sees_again();
            self.now(Standing::Head);
            return self.wait(now, None);
        }
        self.judge_the_head(now);
        if let Some(step) = self.after_order(now) {
            return step;
        }
        Step::ReadChecks(self.pull.head.clone())
    }

    fn merged(&self) -> Outcome {
        let warning = match self.ordered.as_ref().and_then(|ordered| ordered.answer.as_ref()) {
            Some(OrderAnswer::Refused { status: Some(403), reason, .. } | OrderAnswer::Failed(reason)) => {
                Some(reason.clone())
            }
            _ => None,
        };
        Outcome::Merged { commit: self.pull.commit.clone(), ordered: self.ever_ordered, warning }
    }

    /// The server said that it merged, and the pull request is open: its hook may be late.
    fn after_done(&mut self, now: Duration) -> Option<Step> {
        let ordered = self.ordered.as_mut()?;
        if ordered.answer != Some(OrderAnswer::Done) {
            return None;
        }
        ordered.looks += 1;
        if ordered.looks >= CONFIRM_MAX {
            let reason = "the server said that it merged, and the pull request is still open".to_owned();
            return Some(Step::End(Outcome::Unknown { reason }));
        }
        Some(self.wait(now, None))
    }

    /// A head that was not judged before: nothing that was learned of another one counts, and an order for another one
    /// cannot be followed any more.
    fn judge_the_head(&mut self, now: Duration) {
        let head = &self.pull.head;
        if let Some(judged) = &self.judged {
            if judged.head == *head {
                return;
            }
            self.notes.push(Note::HeadMoved { from: judged.head.clone(), to: head.clone() });
        }
        self.ordered = None;
        self.judged = Some(Judged {
            head: head.clone(),
            since: now,
            green: None,
            unmergeable: None,
            refused: None,
            failed: 0,
        });
    }

    /// What an order's answer means, given that the pull request is open with the same head.
    fn after_order(&mut self, now: Duration) -> Option<Step> {
        let sent_at = self.ordered.as_ref()?.at;
        let answer = self.ordered.as_ref()?.answer.clone()?;
        let answer = match answer {
            OrderAnswer::Refused { status: Some(405), reason, .. } if !self.pull.mergeable => {
                return Some(self.unmergeable(reason, now));
            }
            OrderAnswer::NotYet { unmergeable: true, reason, .. } => {
                return Some(self.unmergeable(reason, now));
            }
            other => other,
        };
        if let Some(judged) = &mut self.judged {
            judged.refused = None;
        }
        Some(match answer {
            OrderAnswer::NotYet { reason, retry_after, .. } => self.not_yet(reason, now, retry_after),
            OrderAnswer::Refused { status, reason, next_step } => {
                Step::End(Outcome::Blocked { unauthorized: status == Some(401), reason, next_step })
            }
            OrderAnswer::Conflict(reason) => Step::End(Outcome::Conflict(reason)),
            OrderAnswer::Failed(reason) => self.failed(reason, now),
            OrderAnswer::Scheduled => {
                self.notes.push(Note::Scheduled);
                self.ordered = None;
                self.wait(now, None)
            }
            // What is on its way may still arrive: it is over only when a look after a whole poll shows it open.
            OrderAnswer::Unclear { retry_after, .. } if now.saturating_sub(sent_at) < self.plan.poll => {
                self.wait(now, retry_after)
            }
            OrderAnswer::Unclear { reason, .. } => {
                self.notes.push(Note::NotYet { reason });
                self.ordered = None;
                return None;
            }
            OrderAnswer::Done => return None,
        })
    }

    fn unmergeable(&mut self, reason: String, now: Duration) -> Step {
        let settle = self.plan.settle;
        let believed = self.judged.as_mut().is_some_and(|judged| {
            let refused = *judged.refused.get_or_insert(now);
            let since = judged.unmergeable.map_or(refused, |unmergeable| unmergeable.min(refused));
            now.saturating_sub(since) >= settle
        });
        match believed {
            true => Step::End(Outcome::NotMergeable(reason)),
            false => self.not_yet(reason, now, None),
        }
    }

    fn failed(&mut self, reason: String, now: Duration) -> Step {
        let failed = self.judged.as_mut().map_or(1, |judged| {
            judged.failed += 1;
            judged.failed
        });
        match failed {
            FAILED_MAX.. => {
                let next_step = Some(NextStep::Later);
                Step::End(Outcome::Blocked { unauthorized: false, reason, next_step })
            }
            _ => self.not_yet(reason, now, None),
        }
    }

    fn not_yet(&mut self, reason: String, now: Duration, retry_after: Option<Duration>) -> Step {
        self.notes.push(Note::NotYet { reason });
        self.standing = Standing::Merging;
        // It is gone before the wait, so that a deadline in it is no unknown outcome.
        self.ordered = None;
        self.wait(now, retry_after)
    }

    fn checks(&mut self, checks: &Checks, now: Duration) -> Step {
        self.sees_again();
        let checks = &checks.without(&self.plan.ignore);
        let counts = checks.counts();
        match checks.verdict() {
            Verdict::Failed => {
                return Step::End(Outcome::ChecksFailed { contexts: checks.that_are(Verdict::Failed) });
            }
            Verdict::Pending => {
                self.forget_green();
                self.now(Standing::Checks(counts));
                return self.wait(now, None);
            }
            Verdict::None if !self.grace_is_over(now) => {
                self.forget_green();
                self.now(Standing::NoChecks);
                return self.wait(now, None);
            }
            Verdict::None if !self.plan.allow_no_checks => return Step::End(Outcome::NoChecks),
            Verdict::None => {}
            Verdict::Green if self.is_green_again(checks) => {}
            // A dry run has one look only: it says what the second one would find.
            Verdict::Green if self.plan.dry_run => {}
            Verdict::Green => {
                self.now(Standing::Confirming(counts));
                return self.wait(now, None);
            }
        }
        self.may_merge(now)
    }

    /// A look succeeded, as far as it went.
    fn sees_again(&mut self) {
        self.missing = 0;
        if let Some(Failing { looks, .. }) = self.failing.take() {
            self.notes.push(Note::LooksAgain { failed: looks });
        }
    }

    fn forget_green(&mut self) {
        if let Some(judged) = &mut self.judged {
            judged.green = None;
        }
    }

    fn grace_is_over(&self, now: Duration) -> bool {
        let since = self.judged.as_ref().map_or(now, |judged| judged.since);
        now.saturating_sub(since) >= self.plan.grace
    }

    fn is_green_again(&mut self, checks: &Checks) -> bool {
        let Some(judged) = &mut self.judged else { return false };
        let contexts: Vec<String> = checks.contexts().map(str::to_owned).collect();
        judged.green.replace(contexts) == judged.green
    }

    /// Everything is well but, perhaps, for what the server knows of conflicts. It is asked to merge even if it goes on
    /// saying that it cannot: that is sometimes all it needs.
    fn may_merge(&mut self, now: Duration) -> Step {
        let settle = self.plan.settle;
        let Some(judged) = &mut self.judged else { return Step::ReadPull };
        if self.pull.mergeable {
            judged.unmergeable = None;
        } else {
            let since = *judged.unmergeable.get_or_insert(now);
            if now.saturating_sub(since) < settle {
                self.now(Standing::Mergeable);
                return self.wait(now, None);
            }
        }
        let (method, head) = (self.plan.method, judged.head.clone());
        if self.plan.dry_run {
            return Step::End(Outcome::WouldMerge { method, head });
        }
        self.notes.push(Note::Ordering { method, head: head.clone() });
        self.ordered = Some(Ordered { at: now, answer: None, looks: 0 });
        self.ever_ordered = true;
        Step::Order(MergeOrder { method, head, delete_branch: self.plan.delete_branch })
    }

    fn order(&mut self, answer: OrderAnswer, now: Duration) -> Step {
        if let OrderAnswer::Unclear { reason, .. } = &answer {
            self.notes.push(Note::Unclear { reason: reason.clone() });
        }
        match (&mut self.ordered, answer) {
            // Nothing arrived, or nobody looked at it: there is nothing to be seen before the next look.
            (_, OrderAnswer::NotYet { reason, unmergeable: false, retry_after: retry_after @ Some(_) }) => {
                self.not_yet(reason, now, retry_after)
            }
            (Some(ordered), answer) => {
                // The answer may have taken its time: what is on its way is so from here on.
                ordered.at = now;
                ordered.answer = Some(answer);
                Step::ReadPull
            }
            (None, _) => Step::ReadPull,
        }
    }

    fn trouble(&mut self, trouble: Trouble, now: Duration) -> Step {
        let Trouble { transient, missing, unauthorized, retry_after, reason, next_step } = trouble;
        let was_there = self.judged.is_some();
        if missing && was_there {
            self.missing += 1;
        }
        let may_pass = transient || (missing && was_there && self.missing < MISSING_MAX);
        // A dry run looks once: it cannot tell what it has not seen.
        let may_pass = may_pass && !self.plan.dry_run;
        if !may_pass {
            return Step::End(match self.doubt() {
                Some(outcome) => outcome,
                None => Outcome::Blocked { unauthorized, reason, next_step },
            });
        }
        let looks = self.failing.as_ref().map_or(1, |failing| failing.looks.saturating_add(1));
        if looks == 1 {
            self.notes.push(Note::LookFailed { reason: reason.clone() });
        }
        self.failing = Some(Failing { looks, reason });
        self.wait(now, retry_after)
    }

    /// How it ends if nothing more can be seen, and an order went out that may have been followed.
    fn doubt(&self) -> Option<Outcome> {
        match self.ordered.as_ref()?.answer.as_ref() {
            Some(OrderAnswer::Done) => Some(Outcome::MergedUnseen),
            Some(
                OrderAnswer::Unclear { reason, .. }
                | OrderAnswer::Failed(reason)
                | OrderAnswer::Conflict(reason)
                | OrderAnswer::Refused { status: Some(403 | 405), reason, .. }
                | OrderAnswer::NotYet { reason, unmergeable: true, .. },
            ) => Some(Outcome::Unknown { reason: reason.clone() }),
            Some(OrderAnswer::NotYet { .. } | OrderAnswer::Refused { .. } | OrderAnswer::Scheduled)
            | None => None,
        }
    }

    fn timed_out(&self) -> Outcome {
        let trouble = self.failing.as_ref().map(|failing| failing.reason.clone());
        Outcome::TimedOut { standing: self.standing, trouble }
    }

    fn now(&mut self, standing: Standing) {
        if self.standing != standing {
            self.standing = standing;
            // A dry run ends with it, and says it then.
            if !self.plan.dry_run {
                self.notes.push(Note::Now(standing));
            }
        }
    }

    /// Waits one poll, or as long as the server asks for, but never beyond the deadline, at which there is a last look.
    fn wait(&mut self, now: Duration, retry_after: Option<Duration>) -> Step {
        if self.plan.dry_run {
            return Step::End(Outcome::WouldWait(self.standing));
        }
        if now >= self.deadline {
            return Step::End(self.doubt().unwrap_or_else(|| self.timed_out()));
        }
        let wait = self.plan.poll.max(retry_after.unwrap_or_default());
        let until = now.saturating_add(wait).min(self.deadline);
        Step::Wait { until, standing: self.standing, deadline: self.deadline }
    }
}
