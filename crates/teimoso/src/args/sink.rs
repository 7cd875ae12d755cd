//! The arguments of `teimoso sink`. Deliberately absent: the routes, which are `crate::sink`'s.

use std::net::SocketAddr;

use clap::Args;

use super::OutputArgs;

const ROUTES: &str = "\
Routes:
  /ok                     200
  /quebra                 500
  /teimoso                503 twice, then 200; counted per webhook-id (one count for requests without one)
  /status/NNN             NNN, from 200 to 999
  /fail/N                 503 N times, then 200; counted like /teimoso
  /slow/MS                200 after MS milliseconds, at most a day
  /hang                   no answer
  /reset                  connection reset
  /cut                    200 whose body ends before its declared length
  /retry-after/SECONDS    503 with that Retry-After once, then 200; counted like /teimoso
  /gone                   410
  /redirect               302 to /ok
  GET /_requests          what arrived, one JSON object per line
  GET /_count             how many arrived
  DELETE /_requests       forget requests and counts
Anything else is 404.

Examples:
  teimoso sink
  teimoso sink --listen 127.0.0.1:0 --json
  teimoso sink --quiet --keep 0            for measuring: count and answer, nothing else";

/// Run a test destination that succeeds, fails and stalls on demand.
#[derive(Debug, Clone, Args)]
#[command(after_help = ROUTES)]
pub struct SinkArgs {
    /// Where to listen; port 0 takes a free one
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:4000")]
    pub listen: SocketAddr,
    /// How many requests to remember; they are kept within 64 MiB, and 1 MiB of each body
    #[arg(long, value_name = "N", default_value_t = crate::sink::KEEP_DEFAULT)]
    pub keep: usize,
    /// Print no line per request
    #[arg(long, short = 'q', conflicts_with = "json")]
    pub quiet: bool,
    /// How data is printed.
    #[command(flatten)]
    pub output: OutputArgs,
}
