//! `teimoso whatsapp send-media`. Deliberately absent: files by URL, which the provider would fetch from who knows where.

use teimoso_whatsapp::{CallerId, Media, Operation, Recipient};

use super::super::Context;
use super::super::request::input::read_file;
use super::{account, media_types, sending};
use crate::args::SendMediaArgs;
use crate::exit::{CliError, Exit};

/// Sends the file.
///
/// # Errors
/// No token, or something else that the provider needs; a number or a file that nobody could send.
pub(super) async fn run(args: &SendMediaArgs, context: Context) -> Result<Exit, CliError> {
    let media = media(args)?;
    let connector = account::connector(&args.account, context)?;
    let facts = connector.adapter().facts();
    let carries = if facts.caller_id_on_media { facts.caller_id } else { CallerId::None };
    let options = sending::options(&args.repeat, &connector, carries);
    let what = (Operation::SendMedia, options.id.as_ref());
    let sending = connector.send_media(&media, &options);
    sending::finish(sending, what, &connector, args.account.output.json, context).await
}

fn media(args: &SendMediaArgs) -> Result<Media, CliError> {
    let unusable = |invalid| sending::unusable(&invalid);
    let to = Recipient::parse(args.to.text()).map_err(unusable)?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let media_type = match &args.media_type {
        Some(media_type) => media_type.as_str(),
        None => media_types::of(&name).ok_or_else(|| unknown_type(&name))?,
    };
    let mut media = Media::new(to, media_type, &name, read_file(&args.file)?).map_err(unusable)?;
    if args.as_document {
        media = media.as_document().map_err(unusable)?;
    }
    match &args.caption {
        Some(caption) => media.with_caption(caption.text()).map_err(unusable),
        None => Ok(media),
    }
}

fn unknown_type(name: &str) -> CliError {
    CliError::usage(format!("the type of {} is not known", crate::messages::printable(name)))
        .with_next_step("give it with --media-type, such as --media-type application/pdf")
}
