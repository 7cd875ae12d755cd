//! `send --wait`: looks at an event until all its deliveries are final. Deliberately absent: a time limit; a policy
//! may take days, and the person who waits can stop.

use serde_json::Value;

use crate::api_client::{ApiClient, ApiError, segment};
use crate::clock;
use crate::commands::list::one_line;
use crate::commands::patience::Patience;
use crate::commands::{Context, shapes};
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Standing};

/// Waits until every delivery of the event is final, and says so as an exit code.
pub(super) async fn run(
    client: &mut ApiClient,
    id: &str,
    json: bool,
    context: Context,
) -> Result<Exit, CliError> {
    let path = format!("/v1/events/{}", segment(id));
    let mut watch = Watch { said: Vec::new() };
    let mut patience = Patience::new();
    loop {
        match client.get(&path).await {
            Ok(answer) => {
                let event = answer.json()?;
                patience.answered(context);
                let deliveries = shapes::array(&event, "deliveries");
                deliveries.iter().for_each(|delivery| watch.tell(delivery, context));
                if let Some(exit) = verdict(deliveries) {
                    if json {
                        context.output.data(&one_line(&String::from_utf8_lossy(&answer.body)))?;
                    }
                    return Ok(exit);
                }
            }
            Err(error) => patience.bear(error, context).map_err(|error| out_of_sight(error, id))?,
        }
        clock::pause(patience.next_pause()).await;
    }
}

/// The server was lost sight of; the event was accepted and is safe.
fn out_of_sight(error: ApiError, id: &str) -> CliError {
    let error = CliError::from(error);
    CliError { code: Exit::UNKNOWN_OUTCOME, ..error }
        .with_next_step(format!("the event is safe: `teimoso events show {id}` tells how it stands"))
}

/// What has been said so far.
struct Watch {
    said: Vec<(String, String)>,
}

impl Watch {
    /// Says where a delivery stands whenever that has changed.
    fn tell(&mut self, delivery: &Value, context: Context) {
        let id = shapes::text(delivery, "id");
        let state = shapes::text(delivery, "state");
        let (made, max) = (shapes::number(delivery, "attempts"), shapes::number(delivery, "max_attempts"));
        let standing = format!("{state} {made}");
        match self.said.iter_mut().find(|(known, _)| *known == id) {
            Some((_, said)) if *said == standing => return,
            Some((_, said)) => *said = standing,
            None => self.said.push((id.clone(), standing)),
        }
        let reason = shapes::text(delivery, "reason");
        let (at, why) =
            (shapes::text(delivery, "next_attempt_at"), shapes::text(delivery, "next_attempt_why"));
        let message = match final_standing(delivery, &state, &reason) {
            Some(standing) => Message::Settled { delivery: &id, standing, attempts: made },
            // A try on the wire changes at once; one that is due at once says no more than the id just printed.
            None if state == "in_flight" || (made == 0 && why != "deliver_at") => return,
            None => {
                let next = (!at.is_empty()).then_some((at.as_str(), why.as_str()));
                Message::Waiting { delivery: &id, state: &state, attempts: made, max, next }
            }
        };
        context.output.say(&message);
    }
}

fn final_standing<'a>(delivery: &Value, state: &str, reason: &'a str) -> Option<Standing<'a>> {
    let status = u16::try_from(shapes::number(delivery, "last_status")).ok().filter(|status| *status > 0);
    match state {
        "delivered" => Some(Standing::Delivered(status)),
        "dead" => Some(Standing::Dead(reason)),
        "cancelled" => Some(Standing::Cancelled),
        _ => None,
    }
}

/// The exit code once every delivery is final; `None` before. Of several, the one that most needs a person counts:
/// unknown, then dead for good or cancelled, then exhausted.
fn verdict(deliveries: &[Value]) -> Option<Exit> {
    let exits: Option<Vec<Exit>> = deliveries.iter().map(exit_of).collect();
    let exits = exits?;
    let gravest = [Exit::UNKNOWN_OUTCOME, Exit::FAILURE, Exit::EXHAUSTED];
    Some(gravest.into_iter().find(|exit| exits.contains(exit)).unwrap_or(Exit::OK))
}

fn exit_of(delivery: &Value) -> Option<Exit> {
    match (shapes::text(delivery, "state").as_str(), shapes::text(delivery, "reason").as_str()) {
        ("delivered", _) => Some(Exit::OK),
        ("dead", "attempts_exhausted" | "deadline_exceeded") => Some(Exit::EXHAUSTED),
        ("dead", "ambiguous") => Some(Exit::UNKNOWN_OUTCOME),
        ("dead" | "cancelled", _) => Some(Exit::FAILURE),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn delivery(state: &str, reason: &str) -> Value {
        json!({"id": "dlv_1", "state": state, "reason": reason, "attempts": 1, "max_attempts": 5})
    }

    #[test]
    fn the_end_of_a_delivery_is_an_exit_code() {
        let table = [
            ("delivered", "", Some(Exit::OK)),
            ("dead", "attempts_exhausted", Some(Exit::EXHAUSTED)),
            ("dead", "deadline_exceeded", Some(Exit::EXHAUSTED)),
            ("dead", "ambiguous", Some(Exit::UNKNOWN_OUTCOME)),
            ("dead", "permanent_status", Some(Exit::FAILURE)),
            ("cancelled", "", Some(Exit::FAILURE)),
            ("pending", "", None),
            ("in_flight", "", None),
            ("scheduled", "", None),
        ];
        for (state, reason, exit) in table {
            assert_eq!(verdict(&[delivery(state, reason)]), exit, "{state} {reason}");
        }
    }

    #[test]
    fn of_several_deliveries_the_gravest_counts() {
        let exhausted = delivery("dead", "attempts_exhausted");
        let permanent = delivery("dead", "permanent_status");
        let ambiguous = delivery("dead", "ambiguous");
        let delivered = delivery("delivered", "");
        let pending = delivery("pending", "");
        assert_eq!(verdict(&[]), Some(Exit::OK));
        assert_eq!(verdict(&[delivered.clone(), exhausted.clone()]), Some(Exit::EXHAUSTED));
        assert_eq!(verdict(&[exhausted.clone(), permanent.clone()]), Some(Exit::FAILURE));
        assert_eq!(verdict(&[permanent, ambiguous.clone(), delivered]), Some(Exit::UNKNOWN_OUTCOME));
        assert_eq!(verdict(&[ambiguous, pending]), None);
    }

    #[test]
    fn losing_sight_of_the_server_is_an_unknown_outcome() {
        let error = out_of_sight(ApiError::Lost("reset".to_owned()), "evt_1");
        assert_eq!(error.code, Exit::UNKNOWN_OUTCOME);
        assert!(error.next_step.is_some_and(|step| step.contains("teimoso events show evt_1")));
    }
}
