//! The arguments of `teimoso whatsapp`. Deliberately absent: tokens among them, because every process can read a command
//! line; and the check of numbers and texts, because a refused argument is repeated on the terminal by whoever parses
//! it.

use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand};
use teimoso_whatsapp::{MessageId, PROVIDERS};

use super::{LAST, OutputArgs, Private};
use crate::units;

const EXAMPLES: &str = "\
Examples:
  teimoso whatsapp providers                           who can be talked to, and what each can do
  teimoso whatsapp qr --provider waha --server http://localhost:3000
  teimoso whatsapp status --provider evolution --server http://localhost:8080 --instance loja
  teimoso whatsapp send-text --provider z-api --instance 3C01 --to 5511999998888 --text 'pago'
  teimoso whatsapp send-media --provider wuzapi --server http://localhost:8080 --to 5511999998888 \\
    --file nota.pdf

The token comes from TEIMOSO_WHATSAPP_TOKEN or --token-file; without one nothing is sent. Provider,
server and instance may come from TEIMOSO_WHATSAPP_PROVIDER, _SERVER and _INSTANCE.

A message is never sent twice by itself. What may have been sent ends with exit code 7, and its id.

Exit codes:
  0 ok, sent              1 failed, not sent for sure       2 usage, or not possible there
  3 no such instance      4 no token, or it was rejected    6 retries ran out
  7 outcome unknown: look before you repeat it              130 interrupted, 143 terminated";

/// Send WhatsApp messages through a gateway, and link it with a phone.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, subcommand_required = true, arg_required_else_help = true)]
pub struct WhatsappArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: WhatsappCommand,
}

/// What to do.
#[derive(Debug, Clone, Subcommand)]
pub enum WhatsappCommand {
    /// Begin to link the instance with a phone
    Connect(ConnectArgs),
    /// Show how the instance stands
    Status(StatusArgs),
    /// Show the QR code that links a phone
    Qr(QrArgs),
    /// Unlink the instance from its phone
    Logout(LogoutArgs),
    /// Send a text
    SendText(SendTextArgs),
    /// Send a picture, a film, audio or a document
    SendMedia(SendMediaArgs),
    /// Look a message up by the id it was sent under
    Find(FindArgs),
    /// List the providers and what each can do
    Providers(ProvidersArgs),
}

/// Which account at which provider.
#[derive(Debug, Clone, Args)]
pub struct AccountArgs {
    /// The provider; `teimoso whatsapp providers` lists them
    #[arg(long, env = "TEIMOSO_WHATSAPP_PROVIDER", value_name = "NAME", value_parser = providers())]
    #[arg(display_order = LAST, hide_possible_values = true)]
    pub provider: String,
    /// Its address, such as http://localhost:3000; some have one for everybody
    #[arg(long, env = "TEIMOSO_WHATSAPP_SERVER", hide_env_values = true, value_name = "URL")]
    #[arg(display_order = LAST)]
    pub server: Option<Private>,
    /// The instance or session, where the token does not say which
    #[arg(long, env = "TEIMOSO_WHATSAPP_INSTANCE", hide_env_values = true, value_name = "NAME")]
    #[arg(display_order = LAST)]
    pub instance: Option<String>,
    /// Read the token from this file instead of TEIMOSO_WHATSAPP_TOKEN
    #[arg(long, value_name = "FILE", display_order = LAST)]
    pub token_file: Option<PathBuf>,
    /// Z-API: read the account's security token from this file instead of TEIMOSO_WHATSAPP_CLIENT_TOKEN
    #[arg(long, value_name = "FILE", display_order = LAST)]
    pub client_token_file: Option<PathBuf>,
    /// Time for one attempt, its whole answer included [default: 30 s, 90 s for messages]
    #[arg(long, value_name = "TIME", value_parser = units::seconds, display_order = LAST)]
    pub max_time: Option<Duration>,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}

fn providers() -> PossibleValuesParser {
    PossibleValuesParser::new(PROVIDERS.map(|adapter| adapter.facts().name))
}

/// Begin to link the instance with a phone.
#[derive(Debug, Clone, Args)]
pub struct ConnectArgs {
    /// Repeat the request where it fails: it is safe to make twice
    #[arg(long)]
    pub idempotent: bool,
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// Show how the instance stands.
#[derive(Debug, Clone, Args)]
pub struct StatusArgs {
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// Show the QR code that links a phone.
#[derive(Debug, Clone, Args)]
pub struct QrArgs {
    /// Write it as a picture into this file instead
    #[arg(long, value_name = "FILE.png")]
    pub out: Option<PathBuf>,
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// Unlink the instance from its phone.
#[derive(Debug, Clone, Args)]
pub struct LogoutArgs {
    /// Repeat the request where it fails: it is safe to make twice
    #[arg(long)]
    pub idempotent: bool,
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// What may be done about a message whose sending fails.
#[derive(Debug, Clone, Args)]
pub struct RepeatArgs {
    /// Send again where it fails: the provider recognises the id, which is the same each time
    #[arg(long, conflicts_with = "retry_unsent")]
    pub idempotent: bool,
    /// Send again only where nothing was sent, by proof (nobody listens, no such host)
    #[arg(long)]
    pub retry_unsent: bool,
    /// The id of the message, 8 to 64 letters and digits, where one is carried [default: a fresh one]
    #[arg(long, value_name = "ID", value_parser = message_id)]
    pub id: Option<MessageId>,
    /// If the outcome is unknown, look for the message, where the provider has a lookup
    #[arg(long)]
    pub reconcile: bool,
}

fn message_id(text: &str) -> Result<MessageId, String> {
    MessageId::parse(text).map_err(|invalid| invalid.to_string())
}

/// Send a text.
#[derive(Debug, Clone, Args)]
pub struct SendTextArgs {
    /// To whom: country code and number, digits only, such as 5511999998888
    #[arg(long, value_name = "NUMBER")]
    pub to: Private,
    /// The text
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true, required_unless_present = "text_file")]
    pub text: Option<Private>,
    /// The text is in this file, - for stdin
    #[arg(long, value_name = "FILE|-", conflicts_with = "text")]
    pub text_file: Option<String>,
    /// What if it fails.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// Send a picture, a film, audio or a document.
#[derive(Debug, Clone, Args)]
pub struct SendMediaArgs {
    /// To whom: country code and number, digits only, such as 5511999998888
    #[arg(long, value_name = "NUMBER")]
    pub to: Private,
    /// The file
    #[arg(long, value_name = "FILE")]
    pub file: PathBuf,
    /// A text below it
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub caption: Option<Private>,
    /// Its media type, such as image/png [default: by its name]
    #[arg(long, value_name = "TYPE")]
    pub media_type: Option<String>,
    /// Show it as a document, whatever it is
    #[arg(long)]
    pub as_document: bool,
    /// What if it fails.
    #[command(flatten)]
    pub repeat: RepeatArgs,
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// Look a message up by the id it was sent under.
#[derive(Debug, Clone, Args)]
pub struct FindArgs {
    /// The id
    #[arg(value_name = "ID", value_parser = message_id)]
    pub id: MessageId,
    /// Which account.
    #[command(flatten)]
    pub account: AccountArgs,
}

/// List the providers and what each can do.
#[derive(Debug, Clone, Args)]
pub struct ProvidersArgs {
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
