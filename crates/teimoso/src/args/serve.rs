//! The arguments of `teimoso serve`. Deliberately absent: what only the wiring knows, such as thread counts.

use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use clap::builder::BoolishValueParser;
use clap::{Args, ValueEnum};
use ipnet::IpNet;
use teimoso_retry::Preset;
use teimoso_store_redis::DEFAULT_PREFIX;

use super::StoreLocation;
use crate::units;

const EXAMPLES: &str = "\
Examples:
  teimoso serve                                       events in ./teimoso-data, API on 127.0.0.1:8080
  teimoso serve --allow-net 127.0.0.0/8               deliver to this machine, too
  teimoso serve --store memory: --policy webhook      nothing is kept; five quick attempts
  teimoso serve --store redis://10.0.0.5 --workers-only      one more sender on a Redis that many share
  teimoso serve --store redis+sentinel://10.0.0.5,10.0.0.6,10.0.0.7/mestre     whoever is master there

The first SIGINT or SIGTERM drains: no new attempts, the running ones end. A second one exits at once.
Every flag can be set by the variable named beside it; the flag wins. The password of Redis may stand
in its URL, in TEIMOSO_REDIS_PASSWORD, or in the file that TEIMOSO_REDIS_PASSWORD_FILE names; that of its
sentinels behind the URL (?sentinel_user=U&sentinel_password=P), in TEIMOSO_REDIS_SENTINEL_PASSWORD or in
TEIMOSO_REDIS_SENTINEL_PASSWORD_FILE's. TEIMOSO_REDIS_CA names the file (PEM) of who vouches for Redis over TLS
where the machine's own authorities, or SSL_CERT_FILE's, do not.";

/// Accept events and deliver them until stopped.
#[derive(Debug, Clone, Args)]
#[command(after_help = EXAMPLES)]
pub struct ServeArgs {
    /// Where the API listens; port 0 takes a free one
    #[arg(long, env = "TEIMOSO_LISTEN", value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Where events are kept: a directory, a Redis (redis://user:password@host:6379/0, rediss:// over TLS), the
    /// one that sentinels name (redis+sentinel://h1,h2,h3/master), a Cluster (redis+cluster://h1,h2,h3), or memory: to
    /// lose them with the process
    // Help shows no value: it may hold a password.
    #[arg(long, env = "TEIMOSO_STORE", hide_env_values = true, value_name = "DIR|redis://…|memory:")]
    #[arg(default_value = "./teimoso-data")]
    pub store: StoreLocation,
    /// Only deliver: no API, events come from others by way of Redis
    #[arg(long, env = "TEIMOSO_WORKERS_ONLY", value_parser = BoolishValueParser::new())]
    pub workers_only: bool,
    /// On Redis: how far an event must have come before it is answered 202 [default: the furthest it offers]
    #[arg(long, env = "TEIMOSO_DURABILITY", value_name = "LEVEL", value_enum)]
    pub durability: Option<AcceptedWhen>,
    /// Use a Redis without an append-only file although its restart loses events
    #[arg(long, env = "TEIMOSO_ALLOW_VOLATILE", value_parser = BoolishValueParser::new())]
    pub allow_volatile: bool,
    /// Use a Redis that evicts any key when memory is short (allkeys-*) although that loses events
    #[arg(long, env = "TEIMOSO_ALLOW_EVICTION", value_parser = BoolishValueParser::new())]
    pub allow_eviction: bool,
    /// What the three public keys of Redis begin with: PREFIX:prontos, :espera and :mortos
    #[arg(long, env = "TEIMOSO_REDIS_PREFIX", value_name = "PREFIX", default_value = DEFAULT_PREFIX)]
    pub redis_prefix: String,
    /// Policy of events that name none: webhook or patient, see `teimoso policy list` [default: patient]
    #[arg(long, env = "TEIMOSO_POLICY", value_name = "NAME", value_parser = delivery_policy)]
    pub policy: Option<Preset>,
    /// Allow deliveries to this private or reserved network, such as 10.1.0.0/16; may be repeated
    #[arg(long, env = "TEIMOSO_ALLOW_NET", value_name = "CIDR", value_delimiter = ',')]
    pub allow_net: Vec<IpNet>,
    /// Listen beyond loopback although the API asks nobody who they are
    #[arg(long)]
    pub insecure_no_auth: bool,
    /// Which attempts get a line on stderr
    #[arg(long, env = "TEIMOSO_ATTEMPT_LINES", value_name = "WHICH", value_enum, default_value = "all")]
    pub attempt_lines: AttemptLines,
    /// How long finished deliveries are kept (ms, s, m, h, d) [default: 7d; on Redis 24h, the last 100000 of them]
    #[arg(long, env = "TEIMOSO_RETENTION", value_name = "DURATION", value_parser = units::positive_duration)]
    pub retention: Option<Duration>,
    /// The largest payload that is accepted, in bytes (B, kB, MB, KiB, MiB)
    #[arg(long, env = "TEIMOSO_MAX_PAYLOAD", value_name = "SIZE", default_value = "1MiB", value_parser = payload)]
    pub max_payload: usize,
    /// The most the store may take on disk, its log aside (B, kB, MB, GB, KiB, MiB, GiB); past it events are
    /// answered 507 and deliveries wait for room [default: the disk]
    #[arg(long, env = "TEIMOSO_MAX_STORE_SIZE", value_name = "SIZE", value_parser = store_size)]
    pub max_store_size: Option<u64>,
    /// How many attempts may be on the wire at once
    #[arg(long, env = "TEIMOSO_IN_FLIGHT", value_name = "N", default_value = "1024", value_parser = in_flight)]
    pub in_flight: NonZeroU32,
    /// How long one attempt may take, its answer's body included (ms, s, m) [default: the policy's]
    #[arg(long, env = "TEIMOSO_ATTEMPT_TIMEOUT", value_name = "DURATION", value_parser = attempt_timeout)]
    pub attempt_timeout: Option<Duration>,
}

/// Which attempts get a line on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AttemptLines {
    /// Every attempt.
    All,
    /// Those that did not deliver.
    Failures,
    /// None.
    Off,
}

/// How far an event must have come before it is answered 202, on Redis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum AcceptedWhen {
    /// Redis has written it; its own fsync policy says when it is on the disk.
    Fast,
    /// A replica has confirmed it.
    Replica,
    /// It is on Redis's disk.
    Disk,
}

fn delivery_policy(text: &str) -> Result<Preset, String> {
    let known = Preset::for_deliveries();
    let take = format!("deliveries take {}", known.map(Preset::name).join(" or "));
    match text.parse() {
        Ok(preset) if known.contains(&preset) => Ok(preset),
        Ok(client) => Err(format!("{client} is a policy for clients; {take}")),
        Err(_) => Err(take),
    }
}

/// A payload has to fit into memory several times over.
const PAYLOAD_MAX_BYTES: u64 = 256 << 20;

fn payload(text: &str) -> Result<usize, String> {
    match units::size_bytes(text)? {
        bytes @ 1..=PAYLOAD_MAX_BYTES => usize::try_from(bytes).map_err(|error| error.to_string()),
        _ => Err("must be from 1B to 256MiB".to_owned()),
    }
}

/// The smallest store: below, its own tables and the room it keeps free leave nothing for events.
const STORE_SIZE_MIN_BYTES: u64 = 1 << 20;

fn store_size(text: &str) -> Result<u64, String> {
    match units::size_bytes(text)? {
        bytes @ STORE_SIZE_MIN_BYTES.. => Ok(bytes),
        _ => Err("must be at least 1MiB".to_owned()),
    }
}

/// The most attempts one process may have on the wire; each is a socket.
const IN_FLIGHT_MAX: u32 = 65_536;

fn in_flight(text: &str) -> Result<NonZeroU32, String> {
    text.parse()
        .ok()
        .filter(|number: &NonZeroU32| number.get() <= IN_FLIGHT_MAX)
        .ok_or_else(|| format!("must be a number from 1 to {IN_FLIGHT_MAX}"))
}

/// A lease outlives the attempt by 5 s and is 30 s long (G5).
const ATTEMPT_TIMEOUT_MAX: Duration = Duration::from_secs(24);

fn attempt_timeout(text: &str) -> Result<Duration, String> {
    match units::positive_duration(text)? {
        timeout if timeout <= ATTEMPT_TIMEOUT_MAX => Ok(timeout),
        _ => Err("must be at most 24s: a lease of 30s has to outlive the attempt by more than 5s".to_owned()),
    }
}
