//! `teimoso whatsapp send-text`. Deliberately absent: lists of recipients.

use teimoso_whatsapp::{Operation, Recipient, Text};

use super::super::Context;
use super::super::input::Input;
use super::{account, sending};
use crate::args::SendTextArgs;
use crate::exit::{CliError, Exit};

/// Sends the text.
///
/// # Errors
/// No token, or something else that the provider needs; a number or a text that nobody could send.
pub(super) async fn run(args: &SendTextArgs, context: Context) -> Result<Exit, CliError> {
    let text = text(args)?;
    let connector = account::connector(&args.account, context)?;
    let options = sending::options(&args.repeat, &connector, connector.adapter().facts().caller_id);
    let what = (Operation::SendText, options.id.as_ref());
    let sending = connector.send_text(&text, &options);
    sending::finish(sending, what, &connector, args.account.output.json, context).await
}

fn text(args: &SendTextArgs) -> Result<Text, CliError> {
    let to = Recipient::parse(args.to.text()).map_err(|invalid| sending::unusable(&invalid))?;
    let text = match (&args.text, &args.text_file) {
        (Some(text), _) => text.text().to_owned(),
        (None, Some(name)) => {
            let bytes = Input::default().read(name, "--text-file")?;
            let text =
                String::from_utf8(bytes).map_err(|_| CliError::usage("--text-file: it holds no UTF-8"))?;
            text.trim_end_matches(['\r', '\n']).to_owned()
        }
        (None, None) => String::new(),
    };
    Text::new(to, &text).map_err(|invalid| sending::unusable(&invalid))
}
