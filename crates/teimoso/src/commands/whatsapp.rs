//! `teimoso whatsapp`: the six operations of a gateway, a lookup, and the list of gateways; and exit codes that tell
//! "not sent" from "may have been sent". Deliberately absent: sending, repeating and judging, which are the connector's.

mod account;
mod connect;
mod find;
mod logout;
mod media_types;
mod providers;
mod qr;
mod report;
mod send_media;
mod send_text;
mod sending;
mod status;

use super::Context;
use crate::args::{WhatsappArgs, WhatsappCommand};
use crate::exit::{CliError, Exit};

/// Does what is asked.
///
/// # Errors
/// Arguments that make no sense, no token, files that cannot be read or written.
pub async fn run(args: WhatsappArgs, context: Context) -> Result<Exit, CliError> {
    match args.command {
        WhatsappCommand::Connect(args) => connect::run(&args, context).await,
        WhatsappCommand::Status(args) => status::run(&args, context).await,
        WhatsappCommand::Qr(args) => qr::run(&args, context).await,
        WhatsappCommand::Logout(args) => logout::run(&args, context).await,
        WhatsappCommand::SendText(args) => send_text::run(&args, context).await,
        WhatsappCommand::SendMedia(args) => send_media::run(&args, context).await,
        WhatsappCommand::Find(args) => find::run(&args, context).await,
        WhatsappCommand::Providers(args) => providers::run(&args, context),
    }
}
