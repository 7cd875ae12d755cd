//! `teimoso request`: one HTTP request from the command line, repeated only where that is safe, and an exit code that
//! tells "it failed" from "it may have happened". Deliberately absent: sending and repeating, which are the client's;
//! and streaming, because nothing is printed before the whole answer is there.

mod answer;
mod headers;
mod place;
mod plan;
mod verdict;
mod watch;
mod wire;

use teimoso_http::Error;
use teimoso_retry::Decision;

use self::answer::Answer;
use self::place::Place;
use self::plan::Plan;
use self::watch::Watch;
use super::Context;
use super::input::Input;
use super::signals::Signals;
use crate::args::RequestArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{FailedAttempt, Message, Requesting};
use crate::wiring::entropy::SystemEntropy;

/// Who speaks in the lines of attempts.
const TAG: &str = "request";

/// Makes the request and prints what came of it.
///
/// # Errors
/// A request that makes no sense, found before anything is sent; files that cannot be read or written.
pub async fn run(args: RequestArgs, context: Context) -> Result<Exit, CliError> {
    // Stdin is read before anything listens to signals: until then they end the process by themselves.
    let mut input = Input::default();
    let plan = Plan::new(&args, &mut input, &SystemEntropy)?;
    let watch = Watch::new(&plan, (!args.silent).then_some(context.output));
    let client = wire::client(&args, &plan, &watch, &mut input)?;
    let place = Place::open(args.file.as_deref())?;
    let mut signals = Signals::new()?;
    let ended = tokio::select! {
        ended = client.send_and_collect(plan.request()?) => ended,
        exit = signals.next() => {
            let words = Message::Request(watch.parting(plan.key())).text(context.output.language);
            context.output.say_apart(&words);
            return Ok(exit);
        }
    };
    if let Err(error) = &ended
        && error.is_request()
    {
        return Err(CliError::usage(error.to_string()));
    }
    Answer::new(ended).deliver(&args, &plan, place, context)
}

impl Answer {
    /// Says what went wrong, prints what came, and ends as both together ask for.
    fn deliver(
        self,
        args: &RequestArgs,
        plan: &Plan,
        place: Place,
        context: Context,
    ) -> Result<Exit, CliError> {
        let silent = args.silent;
        self.last_line(plan).filter(|_| !silent).inspect(|line| context.output.say(&Message::Request(*line)));
        let unfollowed = self.unfollowed().filter(|_| args.location);
        unfollowed.inspect(|line| context.output.say(&Message::Request(*line)));
        let exit = self.exit();
        let reason = self.error().map(reason);
        if let Some(word) = self.last_word() {
            let reason = reason.as_deref().filter(|_| silent);
            let ended = Requesting::Ended { word, attempts: self.attempts(), reason, key: plan.key() };
            context.output.say(&Message::Request(ended));
        }
        let printed = self.print(args, place, context);
        printed.map(|()| exit).or_else(|error| self.unprinted(error, exit))
    }

    /// The line of the last attempt, if it failed.
    fn last_line<'a>(&'a self, plan: &'a Plan) -> Option<Requesting<'a>> {
        let last = self.trace().last()?;
        let Decision::GiveUp(why) = last.decision else { return None };
        if self.error().is_none() && last.status.is_some_and(|status| status < 400) {
            return None;
        }
        let attempt = FailedAttempt {
            tag: TAG,
            method: last.method.as_str(),
            path: if last.hop == 0 { plan.path() } else { "(redirected)" },
            number: last.number.get(),
            max: plan.policy().max_attempts().get(),
            fate: last.fate,
            status: last.status,
            reason: last.error.as_ref().map(|error| error.message.as_str()),
            may_have_taken_effect: last.may_have_taken_effect(),
        };
        Some(Requesting::GaveUp { attempt, why })
    }

    /// What is said of an answer that could not be printed. The caller never saw it, so that a request which may have
    /// taken effect has an unknown outcome for whoever reads the exit code.
    fn unprinted(&self, error: CliError, exit: Exit) -> Result<Exit, CliError> {
        if error == CliError::reader_left() {
            return Ok(exit);
        }
        let code = if self.may_have_taken_effect() { Exit::UNKNOWN_OUTCOME } else { error.code };
        let error = CliError { code, ..error };
        Err(match self.status() {
            Some(status) => {
                error.with_next_step(format!("the request itself was answered with HTTP {status}"))
            }
            None => error,
        })
    }
}

/// Why there is no response, as it reads after "failed to".
fn reason(error: &Error) -> String {
    let text = error.to_string();
    text.strip_prefix("failed to ").map_or_else(|| text.clone(), str::to_owned)
}
