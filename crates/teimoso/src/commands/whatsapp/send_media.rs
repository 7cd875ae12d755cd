//! `teimoso whatsapp send-media`. Deliberately absent: files by URL, which the provider would fetch from who knows where.

use std::path::Path;

use teimoso_whatsapp::{CallerId, InvalidMessage, Media, MediaKind, Operation, Recipient};

use super::super::Context;
use super::super::input::read_file;
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
    let kind = if args.as_document { MediaKind::Document } else { MediaKind::of(media_type) };
    within_bounds(&args.file, kind).map_err(unusable)?;
    let bytes = read_file(&args.file)?;
    let media = match args.as_document {
        true => Media::document(to, media_type, &name, bytes),
        false => Media::new(to, media_type, &name, bytes),
    };
    let media = media.map_err(unusable)?;
    match &args.caption {
        Some(caption) => media.with_caption(caption.text()).map_err(unusable),
        None => Ok(media),
    }
}

/// Of a file that is too large, nothing is read. One that is not to be seen, or no file, is for the reader to refuse.
fn within_bounds(path: &Path, kind: MediaKind) -> Result<(), InvalidMessage> {
    let size = path.metadata().map_or(0, |file| file.len());
    match usize::try_from(size).unwrap_or(usize::MAX) {
        bytes if bytes > kind.bytes_max() => Err(InvalidMessage::LargeMedia { kind, bytes }),
        _ => Ok(()),
    }
}

fn unknown_type(name: &str) -> CliError {
    CliError::usage(format!("the type of {} is not known", crate::messages::printable(name)))
        .with_next_step("give it with --media-type, such as --media-type application/pdf")
}
