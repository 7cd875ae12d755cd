//! `teimoso whatsapp qr`: drawn in block characters, or as a picture in a file. Deliberately absent: asking again until
//! there is one, because a provider may allow few codes.

use std::fs::{OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use teimoso_whatsapp::Qr;

use super::super::Context;
use super::{account, report};
use crate::args::QrArgs;
use crate::exit::{CliError, Exit};
use crate::messages::{Message, Whatsapp};

/// Shows the QR code.
///
/// # Errors
/// No token, or something else that the provider needs; a file that cannot be written.
pub(super) async fn run(args: &QrArgs, context: Context) -> Result<Exit, CliError> {
    let connector = account::connector(&args.account, context)?;
    let as_json = args.account.output.json;
    let qr = match connector.qr().await {
        Ok(qr) => qr,
        Err(error) => return Ok(report::failed(&error, as_json, context)),
    };
    if let Some(path) = &args.out {
        write(path, &qr)
            .map_err(|error| CliError::failure(format!("cannot write {}: {error}", path.display())))
            .map_err(|error| error.with_next_step("name another file with --out"))?;
        context.output.say(&Message::Whatsapp(Whatsapp::Saved { path: &path.display().to_string() }));
    }
    if as_json {
        let mut object = report::qr_json(&qr);
        object["provider"] = args.account.provider.as_str().into();
        context.output.data(&format!("{object}\n"))?;
    } else if args.out.is_none() {
        context.output.data(&qr.blocks())?;
        context.output.say(&Message::Whatsapp(Whatsapp::ToScan));
    }
    Ok(Exit::OK)
}

/// Whoever reads the picture can link a phone: it is the owner's alone, even if the file was there before and was not.
fn write(path: &Path, qr: &Qr) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    if file.metadata()?.is_file() {
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    file.write_all(qr.png())
}
