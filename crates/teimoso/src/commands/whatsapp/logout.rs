//! `teimoso whatsapp logout`. Deliberately absent: deleting the instance, but where the provider does so by itself.

use serde_json::json;
use teimoso_whatsapp::Operation;

use super::super::Context;
use super::{account, report};
use crate::args::LogoutArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Whatsapp};

/// Unlinks the instance.
///
/// # Errors
/// No token, or something else that the provider needs.
pub(super) async fn run(args: &LogoutArgs, context: Context) -> Result<Exit, CliError> {
    let connector = account::connector(&args.account, context)?;
    let as_json = args.account.output.json;
    if let Err(error) = connector.logout(account::repeat(args.idempotent)).await {
        return Ok(report::failed(&error, as_json, context));
    }
    if as_json {
        let provider = &args.account.provider;
        let object = json!({"provider": provider, "operation": Operation::Logout.name(), "logged_out": true});
        context.output.data(&format!("{object}\n"))?;
    } else {
        context.output.say(&Message::Whatsapp(Whatsapp::LoggedOut));
    }
    Ok(Exit::OK)
}
