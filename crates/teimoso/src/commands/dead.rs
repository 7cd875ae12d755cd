//! `teimoso dead`: list, show, replay. Deliberately absent: throwing dead letters away.

mod replay;

use super::list;
use super::session::{self, Reach};
use super::shapes::DEAD;
use super::{Context, deliveries};
use crate::api_client::Query;
use crate::args::{DeadArgs, DeadCommand};
use crate::clock;
use crate::exit::{CliError, Exit};

/// Lists, shows or replays dead deliveries.
///
/// # Errors
/// What the server, the store or the connection says; a replay that needs a yes and cannot ask.
pub async fn run(args: DeadArgs, context: Context) -> Result<Exit, CliError> {
    match args.command {
        DeadCommand::List { reason, list, server, output } => {
            let since = list.since.map(|moment| moment.resolve(clock::wall_now()));
            let query = Query::new("/v1/deliveries").with("state", Some("dead"));
            let query = query.with("reason", reason).with("since", since);
            let limit = list.limit.get() as usize;
            session::run(Reach::of(server)?, context, async |mut session| {
                list::print(&mut session.client, query, limit, output.json, &DEAD, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
        DeadCommand::Show { id, server, output } => {
            session::run(Reach::of(server)?, context, async |mut session| {
                deliveries::show_with_payload(&mut session.client, &id, output.json, context).await?;
                Ok(Exit::OK)
            })
            .await
        }
        DeadCommand::Replay(args) => replay::run(args, context).await,
    }
}
