//! `teimoso whatsapp find`: settles by hand what a send left open. Deliberately absent: a conclusion from finding
//! nothing, which proves nothing.

use serde_json::json;
use teimoso_whatsapp::Operation;

use super::super::Context;
use super::{account, report};
use crate::args::FindArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Whatsapp, printable};

/// Looks the message up.
///
/// # Errors
/// No token, or something else that the provider needs.
pub(super) async fn run(args: &FindArgs, context: Context) -> Result<Exit, CliError> {
    let connector = account::connector(&args.account, context)?;
    let as_json = args.account.output.json;
    let found = match connector.find(&args.id).await {
        Ok(found) => found,
        Err(error) => return Ok(report::failed(&error, as_json, context)),
    };
    if as_json {
        let object = json!({
            "provider": args.account.provider,
            "operation": Operation::Find.name(),
            "found": found.is_some(),
            "id": found.as_ref().and_then(|found| found.id.as_deref()),
            "state": found.as_ref().and_then(|found| found.state.as_deref()),
            "failed": found.as_ref().map(|found| found.failed),
        });
        context.output.data(&format!("{object}\n"))?;
    }
    let Some(found) = found else {
        context.output.say(&Message::Whatsapp(Whatsapp::NotListed { id: &args.id }));
        return Ok(Exit::NOT_FOUND);
    };
    if !as_json {
        let words = [found.id, found.state].into_iter().flatten().map(|word| printable(&word));
        context.output.data(&format!("{}\n", words.collect::<Vec<_>>().join(" ")))?;
    }
    Ok(if found.failed { Exit::FAILURE } else { Exit::OK })
}
