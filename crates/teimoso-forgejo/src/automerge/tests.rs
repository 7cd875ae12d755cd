//! What holds of the machine whatever the server says, in whatever order.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::checks::Checks;
use crate::model::{CheckState, CommitStatus};

const SECOND: Duration = Duration::from_secs(1);

fn pull(choice: u8) -> Result<PullSeen, Trouble> {
    let open = PullSeen { mergeable: true, head: "aaaa".to_owned(), ..PullSeen::default() };
    match choice % 16 {
        0 => Err(trouble(true, false, Some(400))),
        1 => Err(trouble(true, false, None)),
        2 => Err(trouble(false, true, None)),
        3 => Ok(PullSeen { head: "bbbb".to_owned(), ..open }),
        4 | 5 => Ok(PullSeen { mergeable: false, ..open }),
        6 => Ok(PullSeen { head: String::new(), ..open }),
        7 if choice > 200 => Ok(PullSeen { merged: true, closed: true, ..open }),
        8 if choice > 240 => Ok(PullSeen { closed: true, ..open }),
        _ => Ok(open),
    }
}

fn trouble(transient: bool, missing: bool, retry_after: Option<u64>) -> Trouble {
    let retry_after = retry_after.map(Duration::from_secs);
    let reason = "no".to_owned();
    Trouble { transient, missing, unauthorized: false, retry_after, reason, next_step: None }
}

fn checks(choice: u8) -> Result<Checks, Trouble> {
    let state = match choice % 8 {
        0 => return Err(trouble(true, false, None)),
        1 => CheckState::Pending,
        2 => return Ok(Checks::default()),
        3 if choice > 200 => CheckState::Failure,
        _ => CheckState::Success,
    };
    let context = if choice.is_multiple_of(3) { "late" } else { "ci" }.to_owned();
    let (description, target_url) = (String::new(), String::new());
    Ok(Checks::of([CommitStatus {
        id: 1,
        status: state,
        context,
        description,
        target_url,
        created_at: None,
    }]))
}

fn order(choice: u8) -> OrderAnswer {
    let reason = || "no".to_owned();
    let retry_after = (choice > 128).then_some(90 * SECOND);
    match choice % 8 {
        0 => OrderAnswer::Done,
        1 => OrderAnswer::Scheduled,
        2 => OrderAnswer::NotYet { reason: reason(), unmergeable: true, retry_after },
        3 => OrderAnswer::NotYet { reason: reason(), unmergeable: false, retry_after },
        4 => OrderAnswer::Failed(reason()),
        5 => OrderAnswer::Refused { status: Some(405), reason: reason(), next_step: None },
        6 => OrderAnswer::Conflict(reason()),
        _ => OrderAnswer::Unclear { reason: reason(), retry_after },
    }
}

proptest! {
    #[test]
    fn an_order_follows_a_look_at_an_open_green_head_and_the_run_ends_in_time(
        choices in vec(any::<u8>(), 1..600),
        allow_no_checks in any::<bool>(),
    ) {
        let plan = Plan { allow_no_checks, ..Plan::default() };
        let (mut machine, mut now) = (Machine::new(plan.clone(), SECOND), SECOND);
        let deadline = now + plan.timeout;
        let (mut seen, mut last_pull, mut last_checks) = (Seen::Start, None, None);
        let mut choices = choices.into_iter().cycle();
        let mut looks_since_the_deadline = 0;
        loop {
            let choice = choices.next().expect("it goes round for ever");
            seen = match machine.next(seen, now).step {
                Step::End(_) => break,
                Step::ReadPull => {
                    looks_since_the_deadline += usize::from(now >= deadline);
                    prop_assert!(looks_since_the_deadline <= 2, "it goes on looking");
                    let pull = pull(choice);
                    (last_pull, last_checks) = (pull.clone().ok(), None);
                    Seen::Pull(pull)
                }
                Step::ReadChecks(head) => {
                    prop_assert_eq!(Some(&head), last_pull.as_ref().map(|pull| &pull.head));
                    let checks = checks(choice);
                    last_checks = checks.clone().ok();
                    Seen::Checks(checks)
                }
                Step::Order(order_to) => {
                    let pull = last_pull.take().expect("a look comes before an order, each time");
                    let checks = last_checks.take().expect("and one at the checks");
                    prop_assert!(!pull.merged && !pull.closed && !pull.draft);
                    prop_assert!(!order_to.head.is_empty());
                    prop_assert_eq!(order_to.head, pull.head);
                    let well = match checks.verdict() {
                        crate::Verdict::Green => true,
                        crate::Verdict::None => allow_no_checks,
                        _ => false,
                    };
                    prop_assert!(well);
                    Seen::Order(order(choice))
                }
                Step::Wait { until, deadline: told, .. } => {
                    prop_assert!(until > now && until <= deadline);
                    prop_assert_eq!(told, deadline);
                    now = until;
                    Seen::Waited
                }
            };
        }
        prop_assert!(now <= deadline);
    }
}

#[test]
fn a_rejected_token_in_the_middle_of_doubt_leaves_the_outcome_unknown() {
    let mut machine = Machine::new(Plan::default(), SECOND);
    let green = Seen::Checks(checks(4));
    let open = Seen::Pull(pull(9));
    let steps = [Seen::Start, open.clone(), green.clone(), Seen::Waited, open, green];
    let step = steps.into_iter().fold(Step::ReadPull, |_, seen| machine.next(seen, SECOND).step);
    assert!(matches!(step, Step::Order(_)), "{step:?}");
    machine.next(Seen::Order(order(7)), SECOND);
    let rejected = Trouble { unauthorized: true, ..trouble(false, false, None) };
    let step = machine.next(Seen::Pull(Err(rejected)), SECOND).step;
    assert_eq!(step, Step::End(Outcome::Unknown { reason: "no".to_owned() }));
}

#[test]
fn an_answer_about_another_head_says_nothing_of_the_one_that_is_there() {
    let moved = Seen::Pull(Ok(PullSeen { mergeable: true, head: "bbbb".to_owned(), ..PullSeen::default() }));
    let hook = OrderAnswer::Refused { status: Some(409), reason: "hook".to_owned(), next_step: None };
    for refused in [hook, order(6), order(7)] {
        let mut machine = Machine::new(Plan::default(), SECOND);
        let (green, open) = (Seen::Checks(checks(4)), Seen::Pull(pull(9)));
        for seen in [Seen::Start, open.clone(), green.clone(), Seen::Waited, open, green] {
            machine.next(seen, SECOND);
        }
        assert_eq!(machine.next(Seen::Order(refused), SECOND).step, Step::ReadPull);
        let turn = machine.next(moved.clone(), SECOND);
        assert_eq!(turn.step, Step::ReadChecks("bbbb".to_owned()));
        assert_eq!(turn.notes, [Note::HeadMoved { from: "aaaa".to_owned(), to: "bbbb".to_owned() }]);
    }
}
