//! The arguments of `teimoso request`, in curl's spelling. Deliberately absent: the check of values that may be secret
//! (headers, bodies, URLs), because a refused argument is repeated on the terminal by whoever parses it.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use teimoso_retry::Preset;

use super::OutputArgs;
use crate::units;

const EXAMPLES: &str = "\
Examples:
  teimoso request GET https://example.com/status
  teimoso request POST https://example.com/orders -H 'content-type: application/json' -d @order.json
  teimoso request POST https://example.com/orders -d @order.json --idempotency-key auto
  teimoso request GET https://example.com/big -o big.bin -m 10m --max-filesize 2GB
  teimoso request GET https://example.com/private -H @headers.txt     secrets belong into a file

A request is repeated only when that cannot double anything: GET, HEAD, OPTIONS and TRACE; any other
one if it was provably not sent, or if it is marked with --idempotent or --idempotency-key. Only
--policy forgejo goes further: it repeats a write whose outcome is unknown.

With -d the content type is application/x-www-form-urlencoded unless -H names another; -d takes line
ends out of a file, --data-binary does not. Nothing is written before the whole answer is there.

Exit codes:
  0 answered below 400              1 answered 400 or more, or failed for good: nothing to wait for
  6 retries ran out                 7 it may have taken effect, and no response came
  2 usage                           130 interrupted, 143 terminated";

/// The largest response by default, 256 MiB: it is held in memory until it is whole.
const RESPONSE_MAX_BYTES: u64 = 256 << 20;

/// The most retries and redirects that can be asked for.
const COUNT_MAX: i64 = 1_000;

/// Make one HTTP request, repeated only where that is safe.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES, override_usage = "teimoso request [OPTIONS] METHOD URL")]
pub struct RequestArgs {
    /// GET, POST, or any other method but CONNECT
    #[arg(value_name = "METHOD")]
    pub method: Private,
    /// Where to, with http:// or https://
    #[arg(value_name = "URL")]
    pub url: Option<Private>,
    /// A header; `NAME;` sends it empty, @FILE reads one per line, @- stdin; may be repeated
    #[arg(long, short = 'H', value_name = "NAME: VALUE|@FILE")]
    pub header: Vec<Private>,
    /// The body: TEXT, @FILE, or - for stdin; repeated, the parts are joined with &
    #[arg(long, short = 'd', value_name = "TEXT|@FILE|-", allow_hyphen_values = true)]
    #[arg(conflicts_with_all = ["data_binary", "data_raw"])]
    pub data: Vec<Private>,
    /// As --data, byte for byte
    #[arg(long, value_name = "TEXT|@FILE|-", allow_hyphen_values = true, conflicts_with = "data_raw")]
    pub data_binary: Vec<Private>,
    /// The body is this text, even if it begins with @
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub data_raw: Vec<Private>,
    /// Mark the request as safe to send twice
    #[arg(long)]
    pub idempotent: bool,
    /// Send this Idempotency-Key with every attempt, auto for a fresh one; it marks the request too
    #[arg(long, value_name = "auto|KEY")]
    pub idempotency_key: Option<String>,
    /// When to try again: standard, forgejo, connector, webhook or patient
    #[arg(long, value_name = "NAME", default_value = "standard")]
    pub policy: Preset,
    /// So many attempts after the first, instead of the policy's number
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=COUNT_MAX))]
    pub retry: Option<u32>,
    /// Wait so long before each retry, instead of the policy's schedule (seconds, or 500ms, 2m)
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    pub retry_delay: Option<Duration>,
    /// Time for all attempts and waits together [default: the policy's, none with --retry or -m]
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    pub retry_max_time: Option<Duration>,
    /// Time for one attempt, its whole answer included [default: the policy's, 10 s or 15 s]
    #[arg(long, short = 'm', value_name = "TIME", value_parser = units::seconds)]
    pub max_time: Option<Duration>,
    /// Time for one attempt to connect, TLS included [default: 5 s]
    #[arg(long, value_name = "TIME", value_parser = units::seconds)]
    pub connect_timeout: Option<Duration>,
    /// Write the answer to this file, which appears when it is complete
    #[arg(long = "output", short = 'o', value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Print the status line and headers of the answer before its body
    #[arg(long, short = 'i', conflicts_with = "json")]
    pub include: bool,
    /// Print no line per attempt
    #[arg(long, short = 's')]
    pub silent: bool,
    /// Follow redirects; credentials stay with scheme, host and port
    #[arg(long, short = 'L')]
    pub location: bool,
    /// With -L, follow at most so many
    #[arg(long, value_name = "N", default_value = "50")]
    #[arg(value_parser = clap::value_parser!(u32).range(0..=COUNT_MAX))]
    pub max_redirs: u32,
    /// Refuse an answer whose body is larger (bytes, or 64KiB, 2GB)
    #[arg(long, value_name = "SIZE", value_parser = units::size_bytes, default_value_t = RESPONSE_MAX_BYTES)]
    #[arg(hide_default_value = true)]
    pub max_filesize: u64,
    /// The User-Agent [default: teimoso/VERSION]
    #[arg(long, short = 'A', value_name = "TEXT")]
    pub user_agent: Option<String>,
    /// Go through this HTTP proxy; @FILE holds the URL of one that wants a password
    #[arg(long, short = 'x', value_name = "URL|@FILE")]
    pub proxy: Option<Private>,
    /// Trust the certificates in this PEM file and no others
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,
    /// HTTP/1.1 only, whose evidence is the strongest
    #[arg(long = "http1.1", group = "version")]
    pub http1: bool,
    /// HTTP/2 where a TLS peer offers it, as is the default
    #[arg(long, group = "version")]
    pub http2: bool,
    /// HTTP/2 only, without TLS too
    #[arg(long, group = "version")]
    pub http2_prior_knowledge: bool,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
    /// What curl has and this command has another way for.
    #[command(flatten)]
    pub elsewhere: ElsewhereArgs,
}

/// Flags that fingers used to curl will type; each is answered with the way it is done here.
#[derive(Debug, Clone, Args)]
pub struct ElsewhereArgs {
    /// Credentials.
    #[arg(long, short = 'u', hide = true)]
    pub user: Option<Private>,
    /// The method.
    #[arg(long, short = 'X', hide = true)]
    pub request: Option<Private>,
    /// No check of certificates.
    #[arg(long, short = 'k', hide = true)]
    pub insecure: bool,
    /// An exit code for statuses.
    #[arg(long, short = 'f', hide = true)]
    pub fail: bool,
    /// Errors in spite of `-s`: they are never silent.
    #[arg(long, short = 'S', hide = true)]
    pub show_error: bool,
}

/// An argument that may hold a secret: it is never printed, not even for debugging.
#[derive(Clone, PartialEq, Eq)]
pub struct Private(String);

impl Private {
    /// The text, for those who use it.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl From<String> for Private {
    fn from(text: String) -> Private {
        Private(text)
    }
}

impl fmt::Debug for Private {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("[private]")
    }
}
