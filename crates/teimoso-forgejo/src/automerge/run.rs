//! The shell of the safety net: does what the machine says, and is the only one that does anything; absent: decisions.

use std::time::Duration;

use super::{Heard, Machine, OrderAnswer, Outcome, Plan, PullSeen, Seen, Step, Trouble};
use crate::client::Client;
use crate::ops::RepoName;

/// The least time that a look is given, even at the deadline.
const LOOK_MIN: Duration = Duration::from_secs(5);

/// Waits until a pull request may be merged, merges it, and sees that it is. `hear` is told what happens, and must not
/// block. Dropping the future ends the run; an order that is on its way may be followed all the same.
pub async fn run(
    client: &Client,
    repo: &RepoName,
    number: u64,
    plan: Plan,
    mut hear: impl FnMut(Heard),
) -> Outcome {
    let clock = client.clock();
    let deadline = clock.now().saturating_add(plan.timeout);
    let mut machine = Machine::new(plan, clock.now());
    let mut seen = Seen::Start;
    loop {
        let turn = machine.next(seen, clock.now());
        turn.notes.into_iter().for_each(|note| hear(Heard::Note(note)));
        // Looks keep to the deadline. An order does not: one that is cut off is one whose outcome nobody knows.
        let limit = deadline.saturating_sub(clock.now()).max(LOOK_MIN);
        let looks = client.within(limit).obeying_retry_after();
        seen = match turn.step {
            Step::End(outcome) => return outcome,
            Step::ReadPull => {
                let pull = looks.pull(repo, number).await;
                Seen::Pull(pull.as_ref().map(PullSeen::from).map_err(Trouble::from))
            }
            Step::ReadChecks(head) => {
                Seen::Checks(looks.checks(repo, &head).await.map_err(|error| Trouble::from(&error)))
            }
            Step::Order(order) => Seen::Order(OrderAnswer::from(&client.merge(repo, number, &order).await)),
            Step::Wait { until, standing, deadline } => {
                let now = clock.now();
                let wait = until.saturating_sub(now);
                hear(Heard::Waiting { standing, wait, left: deadline.saturating_sub(now) });
                clock.sleep(wait).await;
                Seen::Waited
            }
        };
    }
}
