//! `teimoso whatsapp connect`. Deliberately absent: waiting for somebody to scan.

use serde_json::Value;
use teimoso_whatsapp::{Operation, State};

use super::super::Context;
use super::{account, report};
use crate::args::ConnectArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Whatsapp};

/// Begins to link, and shows the QR code if the answer brings it along.
///
/// # Errors
/// No token, or something else that the provider needs.
pub(super) async fn run(args: &ConnectArgs, context: Context) -> Result<Exit, CliError> {
    let connector = account::connector(&args.account, context)?;
    let as_json = args.account.output.json;
    let connection = match connector.connect(account::repeat(args.idempotent)).await {
        Ok(connection) => connection,
        Err(error) => return Ok(report::failed(&error, as_json, context)),
    };
    if as_json {
        let mut object = report::status_json(&args.account.provider, Operation::Connect, &connection.status);
        object["qr"] = connection.qr.as_ref().map_or(Value::Null, report::qr_json);
        context.output.data(&format!("{object}\n"))?;
        return Ok(Exit::OK);
    }
    context.output.data(&report::status_line(&connection.status))?;
    match connection.qr {
        Some(qr) => {
            context.output.data(&qr.blocks())?;
            context.output.say(&Message::Whatsapp(Whatsapp::ToScan));
        }
        None if connection.status.state != State::Connected => {
            context.output.say(&Message::Whatsapp(Whatsapp::AskForQr));
        }
        None => {}
    }
    Ok(Exit::OK)
}
