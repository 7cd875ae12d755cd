//! The wait of `pr checks --watch`: looks again until no check is pending. Deliberately absent: a grace for checks that
//! appear late, as with `gh`; the wait that merges has one.

use std::sync::Arc;
use std::time::Duration;

use teimoso_forgejo::automerge::{Note, Standing};
use teimoso_forgejo::{Checks, Client, Counts, Error};

use super::super::Context;
use super::connect::client_beside;
use super::{about, failed};
use crate::args::forgejo::ChecksArgs;
use crate::exit::CliError;
use crate::messages::{Forgejo, ForgejoWord, Message};
use crate::output::live::Live;

/// The checks of the head, when none is pending or the time is over.
///
/// # Errors
/// No address, no token, a failure that stays, or one that lasted until the time was over.
pub(super) async fn settled(args: &ChecksArgs, context: Context) -> Result<Checks, CliError> {
    let live = Arc::new(Live::new(context.output));
    let client = client_beside(&args.forge, Arc::clone(&live))?.obeying_retry_after();
    let clock = client.clock();
    let deadline = clock.now().saturating_add(args.timeout);
    let about = about(&args.which.repo, args.which.number.get());
    let mut teller = Teller { about: &about, live: &live, told: None, failing: false };
    loop {
        let looked = look(&client, args).await;
        let left = deadline.saturating_sub(clock.now());
        let wait = match looked {
            Ok(checks) if checks.counts().pending == 0 || left.is_zero() => return Ok(checks),
            Ok(checks) => {
                teller.pending(checks.counts(), left);
                args.poll
            }
            Err(error) if error.is_transient() && !left.is_zero() => {
                teller.failed(&error);
                args.poll.max(error.retry_after().unwrap_or_default())
            }
            Err(error) => return Err(failed(&error)),
        };
        clock.sleep(wait.min(left)).await;
    }
}

/// One look: the pull request, for its head may move, and the checks of that.
pub(super) async fn look(client: &Client, args: &ChecksArgs) -> Result<Checks, Error> {
    let repo = &args.which.repo;
    let pull = client.pull(repo, args.which.number.get()).await?;
    Ok(client.checks(repo, &pull.head.sha).await?.without(&args.ignore))
}

/// Tells what is waited for: each change once, and the time that is left on a terminal.
struct Teller<'a> {
    about: &'a str,
    live: &'a Live,
    told: Option<Counts>,
    failing: bool,
}

impl Teller<'_> {
    fn pending(&mut self, counts: Counts, left: Duration) {
        let standing = Standing::Checks(counts);
        self.failing = false;
        if self.told.replace(counts) != Some(counts) {
            self.live.say(&self.message(ForgejoWord::Note(&Note::Now(standing))));
        }
        let left = Duration::from_secs(left.as_secs());
        self.live.show(&self.message(ForgejoWord::Waiting { standing, left }));
    }

    /// Said for the first of several.
    fn failed(&mut self, error: &Error) {
        if !std::mem::replace(&mut self.failing, true) {
            let note = Note::LookFailed { reason: error.to_string() };
            self.live.say(&self.message(ForgejoWord::Note(&note)));
        }
    }

    fn message<'b>(&'b self, word: ForgejoWord<'b>) -> Message<'b> {
        Message::Forgejo(Forgejo { about: self.about, word })
    }
}
