//! `teimoso forgejo pr automerge`: the safety net (S1.11) with a person or a script before it.
//! Deliberately absent: its decisions, which are the library's.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::time::Duration;

use teimoso_forgejo::automerge::{self, Heard, Note, Outcome, Plan};

use super::super::Context;
use super::connect::client_beside;
use super::{Parting, about, events, until_signal};
use crate::args::forgejo::AutomergeArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Forgejo, ForgejoWord, Message};
use crate::output::live::Live;

/// Waits, merges, and says how it ended.
///
/// # Errors
/// No address, no token, or stdout cannot be written.
pub(super) async fn run(args: AutomergeArgs, context: Context) -> Result<Exit, CliError> {
    let number = args.which.number.get();
    let about = about(&args.which.repo, number);
    let live = Arc::new(Live::new(context.output));
    let client = client_beside(&args.forge, Arc::clone(&live))?;
    let clock = client.clock();
    let started = clock.now();
    let teller = Teller {
        about: &about,
        json: args.output.json,
        context,
        live: &live,
        ordered: Cell::new(false),
        unprinted: RefCell::new(None),
    };
    let elapsed = || clock.now().saturating_sub(started);
    let plan = plan(&args);
    let hear = |heard: Heard| teller.hear(&heard, elapsed());
    let work = automerge::run(&client, &args.which.repo, number, plan, hear);
    let parting = || Parting::Merge { ordered: teller.ordered.get() };
    let ended = until_signal(work, context, &about, parting).await?;
    live.clear();
    match ended {
        Err(signal) => Ok(signal),
        Ok(outcome) => teller.end(&outcome, elapsed()),
    }
}

fn plan(args: &AutomergeArgs) -> Plan {
    Plan {
        method: args.method,
        delete_branch: args.delete_branch,
        poll: args.poll,
        timeout: args.timeout,
        grace: args.grace,
        settle: args.settle,
        allow_no_checks: args.allow_no_checks,
        ignore: args.ignore.clone(),
        dry_run: args.dry_run,
    }
}

/// Tells what happens, in words or as JSON.
struct Teller<'a> {
    about: &'a str,
    json: bool,
    context: Context,
    live: &'a Live,
    /// Whether an order may be under way.
    ordered: Cell<bool>,
    /// Why an event could not be printed; the run goes on without a reader.
    unprinted: RefCell<Option<CliError>>,
}

impl Teller<'_> {
    fn hear(&self, heard: &Heard, elapsed: Duration) {
        let word = match heard {
            Heard::Note(note) => {
                self.mind(note);
                if self.json {
                    return self.print(&events::note(note, elapsed));
                }
                ForgejoWord::Note(note)
            }
            Heard::Waiting { standing, left, .. } => {
                ForgejoWord::Waiting { standing: *standing, left: Duration::from_secs(left.as_secs()) }
            }
        };
        let message = Message::Forgejo(Forgejo { about: self.about, word });
        match heard {
            Heard::Note(_) => self.live.say(&message),
            Heard::Waiting { .. } => self.live.show(&message),
        }
    }

    fn mind(&self, note: &Note) {
        match note {
            Note::Ordering { .. } => self.ordered.set(true),
            Note::NotYet { .. } | Note::Scheduled | Note::HeadMoved { .. } => self.ordered.set(false),
            _ => {}
        }
    }

    fn print(&self, event: &serde_json::Value) {
        if let Err(error) = self.context.output.data(&format!("{event}\n")) {
            self.unprinted.borrow_mut().get_or_insert(error);
        }
    }

    /// The last word. What came of the merge counts before what came of printing it.
    fn end(&self, outcome: &Outcome, elapsed: Duration) -> Result<Exit, CliError> {
        let exit = exit(outcome);
        let message = Message::Forgejo(Forgejo { about: self.about, word: ForgejoWord::Ended(outcome) });
        if self.json {
            self.print(&events::ended(outcome, elapsed, exit));
        } else if exit == Exit::OK {
            let words = message.text(self.context.output.language);
            self.context.output.data(&format!("{words}\n"))?;
        } else {
            self.context.output.say(&message);
        }
        match self.unprinted.take() {
            Some(error) if exit == Exit::OK => Err(error),
            _ => Ok(exit),
        }
    }
}

fn exit(outcome: &Outcome) -> Exit {
    match outcome {
        Outcome::Merged { .. }
        | Outcome::MergedUnseen
        | Outcome::WouldMerge { .. }
        | Outcome::WouldWait(_) => Exit::OK,
        Outcome::TimedOut { .. } => Exit::EXHAUSTED,
        Outcome::Unknown { .. } => Exit::UNKNOWN_OUTCOME,
        Outcome::Blocked { unauthorized: true, .. } => Exit::AUTHENTICATION,
        Outcome::Blocked { .. }
        | Outcome::ChecksFailed { .. }
        | Outcome::NoChecks
        | Outcome::Closed
        | Outcome::Draft
        | Outcome::Conflict(_)
        | Outcome::NotMergeable(_) => Exit::FAILURE,
    }
}
