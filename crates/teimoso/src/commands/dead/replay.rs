//! `teimoso dead replay`: named deliveries one by one; by a filter, a durable job of the server that is followed to
//! its end. Deliberately absent: choosing deliveries here; the server's filter does.

use bytes::Bytes;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::api_client::{Answer, ApiClient, ApiError, segment};
use crate::args::{ReplayArgs, StoreLocation};
use crate::clock;
use crate::commands::bulk::{self, Change};
use crate::commands::list::one_line;
use crate::commands::patience::Patience;
use crate::commands::session::{self, Reach, Session};
use crate::commands::{Context, shapes};
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Replaying};
use crate::output::progress::Progress;

/// The reason of deliveries that may already have taken effect: a filter takes them only by name.
const AMBIGUOUS: &str = "ambiguous";

/// Replays what the arguments name, or stops a replay.
pub(super) async fn run(args: ReplayArgs, context: Context) -> Result<Exit, CliError> {
    session::run(Reach::of(args.server.clone())?, context, async |session| {
        if let Some(job) = &args.cancel {
            cancel(session, job, args.output.json, context).await
        } else if args.ids.is_empty() {
            by_filter(session, &args, context).await
        } else {
            by_id(session, &args, context).await
        }
    })
    .await
}

/// The ids in the order given, each once: a second retry of the same delivery could only fail.
async fn by_id(mut session: Session, args: &ReplayArgs, context: Context) -> Result<Exit, CliError> {
    let mut ids: Vec<String> = Vec::new();
    for id in &args.ids {
        if !ids.contains(id) {
            ids.push(id.clone());
        }
    }
    if args.dry_run {
        context.output.say(&Message::Replay(Replaying::Plan { count: ids.len() as u64, ambiguous: 0 }));
        let line = |id: &String| if args.output.json { json!({ "id": id }).to_string() } else { id.clone() };
        context.output.data(&ids.iter().map(|id| line(id) + "\n").collect::<String>())?;
        return Ok(Exit::OK);
    }
    bulk::apply(&mut session.client, Change::Retry, &ids, args.rate, args.output.json, context).await
}

async fn by_filter(mut session: Session, args: &ReplayArgs, context: Context) -> Result<Exit, CliError> {
    let order = Order::of(args, clock::wall_now());
    let estimate = order.post(&mut session.client, true).await?;
    let count = shapes::number(&estimate.json()?, "estimated");
    let ambiguous = order.left_out(&mut session.client).await?;
    let plan = Message::Replay(Replaying::Plan { count, ambiguous });
    if args.dry_run || count == 0 {
        return context.output.data(&shown(&estimate, &plan, args.output.json, context)).map(|()| Exit::OK);
    }
    context.output.say(&plan);
    if !args.yes && !agreed(context).await? {
        context.output.say(&Message::NothingDone);
        return Ok(Exit::FAILURE);
    }
    let started = order.post(&mut session.client, false).await.map_err(lost_order)?.json()?;
    let id = shapes::text(&started, "id");
    // On a Redis others may be at work: there is nothing to be started.
    let opened = args.server.store.as_ref().filter(|store| !matches!(store, StoreLocation::Redis(_)));
    let directory = opened.map(ToString::to_string);
    let parting = Message::Replay(Replaying::GoesOn { job: &id, directory: directory.as_deref() });
    session.parting.will_be(&parting, context);
    if !args.output.json {
        context.output.data(&format!("{id}\n"))?;
    }
    follow(&mut session.client, &id, args.output.json, context).await
}

/// An estimate is what a dry run is for, so that it is data.
fn shown(estimate: &Answer, plan: &Message<'_>, json: bool, context: Context) -> String {
    match json {
        true => one_line(&String::from_utf8_lossy(&estimate.body)),
        false => format!("{}\n", plan.text(context.output.language)),
    }
}

async fn agreed(context: Context) -> Result<bool, CliError> {
    if !context.output.can_ask() {
        return Err(CliError::usage("a replay of many deliveries needs a yes, and there is nobody to ask")
            .with_next_step("add --yes, or look first with --dry-run"));
    }
    Ok(context.output.ask(&Message::AskToProceed).await)
}

/// A job whose answer was lost may have been started.
fn lost_order(error: ApiError) -> CliError {
    let lost = matches!(error, ApiError::Lost(_));
    let error = CliError::from(error);
    if !lost {
        return error;
    }
    CliError { code: Exit::UNKNOWN_OUTCOME, ..error }
        .with_next_step("the replay may have been started: `teimoso dead list` tells what is still dead")
}

/// What is asked for, as `POST /v1/replays` takes it.
struct Order {
    reason: Option<String>,
    since: Option<Timestamp>,
    rate: Option<u32>,
}

impl Order {
    fn of(args: &ReplayArgs, now: Timestamp) -> Order {
        Order {
            reason: args.reason.clone(),
            since: args.since.map(|moment| moment.resolve(now)),
            rate: args.rate.map(Into::into),
        }
    }

    fn body(&self, reason: Option<&str>, dry_run: bool) -> Bytes {
        let since = self.since.map(|since| since.to_string());
        let filter = json!({ "reason": reason, "since": since });
        json!({ "filter": filter, "rate": self.rate, "dry_run": dry_run }).to_string().into()
    }

    async fn post(&self, client: &mut ApiClient, dry_run: bool) -> Result<Answer, ApiError> {
        client.post("/v1/replays", self.body(self.reason.as_deref(), dry_run)).await
    }

    /// How many the filter would take but for being ambiguous.
    async fn left_out(&self, client: &mut ApiClient) -> Result<u64, CliError> {
        if self.reason.is_some() {
            return Ok(0);
        }
        let answer = client.post("/v1/replays", self.body(Some(AMBIGUOUS), true)).await?;
        Ok(shapes::number(&answer.json()?, "estimated"))
    }
}

/// Looks at the job until it has ended, and says so as an exit code.
async fn follow(client: &mut ApiClient, id: &str, json: bool, context: Context) -> Result<Exit, CliError> {
    let mut progress = Progress::new(clock::monotonic_now());
    let mut patience = Patience::new();
    loop {
        match client.get(&path(id)).await {
            Ok(answer) => {
                patience.answered(context);
                let job = answer.json()?;
                if shapes::text(&job, "state") != "running" {
                    progress.finish();
                    if json {
                        context.output.data(&one_line(&String::from_utf8_lossy(&answer.body)))?;
                    }
                    context.output.say(&ended(&job));
                    return Ok(exit_of(&job));
                }
                let (done, of) = (shapes::number(&job, "done"), shapes::number(&job, "estimated"));
                let failed = shapes::number(&job, "failed");
                let line =
                    Message::Replay(Replaying::Progress { done, of, failed }).text(context.output.language);
                progress.show(&line, done + failed, of, clock::monotonic_now());
            }
            Err(error) => patience.bear(error, context).map_err(|error| out_of_sight(error, id))?,
        }
        clock::pause(patience.next_pause()).await;
    }
}

fn path(id: &str) -> String {
    format!("/v1/replays/{}", segment(id))
}

fn ended(job: &Value) -> Message<'static> {
    let (done, failed) = (shapes::number(job, "done"), shapes::number(job, "failed"));
    Message::Replay(Replaying::Ended { cancelled: shapes::text(job, "state") == "cancelled", done, failed })
}

/// A job that was stopped by someone has done part of its work.
fn exit_of(job: &Value) -> Exit {
    let (done, failed) = (shapes::number(job, "done"), shapes::number(job, "failed"));
    match (shapes::text(job, "state").as_str(), done, failed) {
        ("finished", _, 0) => Exit::OK,
        (_, 0, _) => Exit::FAILURE,
        _ => Exit::PARTLY_FAILED,
    }
}

/// The server was lost sight of; the job was not.
fn out_of_sight(error: ApiError, id: &str) -> CliError {
    let error = CliError::from(error);
    let next = format!(
        "the replay {id} goes on as soon as a server runs; look at what is left with `teimoso dead list`"
    );
    CliError { code: Exit::UNKNOWN_OUTCOME, ..error }.with_next_step(next)
}

async fn cancel(mut session: Session, id: &str, json: bool, context: Context) -> Result<Exit, CliError> {
    let answer = session.client.delete(&path(id)).await?;
    let job = answer.json()?;
    if json {
        context.output.data(&one_line(&String::from_utf8_lossy(&answer.body)))?;
    }
    context.output.say(&ended(&job));
    Ok(Exit::OK)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(state: &str, done: u64, failed: u64) -> Value {
        json!({"id": "rpl_1", "state": state, "estimated": 9, "done": done, "failed": failed})
    }

    #[test]
    fn the_end_of_a_job_is_an_exit_code() {
        let table = [
            (job("finished", 3, 0), Exit::OK),
            (job("finished", 0, 0), Exit::OK),
            (job("finished", 2, 1), Exit::PARTLY_FAILED),
            (job("finished", 0, 1), Exit::FAILURE),
            (job("cancelled", 3, 0), Exit::PARTLY_FAILED),
            (job("cancelled", 0, 0), Exit::FAILURE),
        ];
        for (job, exit) in table {
            assert_eq!(exit_of(&job), exit, "{job}");
        }
    }

    #[test]
    fn an_order_says_what_the_flags_say() {
        let since = "2026-01-31T12:00:00Z".parse().ok();
        let order = Order { reason: Some("poison".to_owned()), since, rate: Some(5) };
        let body: Value = serde_json::from_slice(&order.body(order.reason.as_deref(), false)).expect("JSON");
        let filter = json!({"reason": "poison", "since": "2026-01-31T12:00:00Z"});
        assert_eq!(body, json!({"filter": filter, "rate": 5, "dry_run": false}));
    }
}
