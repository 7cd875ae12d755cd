//! `teimoso whatsapp status`. Deliberately absent: an opinion on a status; whatever it is, it was learnt, and that is a
//! success.

use teimoso_whatsapp::Operation;

use super::super::Context;
use super::{account, report};
use crate::args::StatusArgs;
use crate::exit::{CliError, Exit};

/// Shows how the instance stands.
///
/// # Errors
/// No token, or something else that the provider needs.
pub(super) async fn run(args: &StatusArgs, context: Context) -> Result<Exit, CliError> {
    let connector = account::connector(&args.account, context)?;
    let as_json = args.account.output.json;
    match connector.status().await {
        Ok(status) if as_json => {
            let object = report::status_json(&args.account.provider, Operation::Status, &status);
            context.output.data(&format!("{object}\n")).map(|()| Exit::OK)
        }
        Ok(status) => context.output.data(&report::status_line(&status)).map(|()| Exit::OK),
        Err(error) => Ok(report::failed(&error, as_json, context)),
    }
}
