//! The order of things: a world, a fleet and producers; the storm; the quiet after it; the account.

use std::collections::HashMap;
use std::fs;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::account::store::{Counts, Left, ended, get};
use crate::account::{Account, Books, changed};
use crate::args::{RunArgs, Which};
use crate::clock;
use crate::design::{Fleet, Recipe, binary, naive};
use crate::havoc::{self, Log, Targets};
use crate::produce::{Doors, Ledger, Producers};
use crate::report::{self, Outcome, by_kind};
use crate::trouble::{Doing, Result, Trouble, locked};
use crate::world::owner::Senders;
use crate::world::proxy::Proxy;
use crate::world::receiver::Receiver;
use crate::world::redis::Redis;
use crate::world::{free_port, loopback};

/// Between two looks for quiet, and how long it must have lasted.
const LOOK: Duration = Duration::from_millis(200);
const QUIET: Duration = Duration::from_secs(4);
/// Whatever is not at its end by then is counted as waiting.
const PATIENCE: Duration = Duration::from_secs(150);

/// Storms, one per design, and what came of them.
///
/// # Errors
/// Ours broke a promise, or something did not start.
pub fn run(args: &RunArgs) -> Result<()> {
    if !Redis::is_installed() {
        eprintln!("SKIPPED: there is no redis-server on this machine, so NOTHING was struck");
        return Ok(());
    }
    let seed = args.seed.unwrap_or_else(clock::wall_millis);
    let seconds = args.storm().as_secs();
    println!("seed {seed}, {seconds} s of strikes, {} events per second", args.rate);
    let mut outcomes = Vec::new();
    for which in &args.designs {
        outcomes.push(Storm::begin(*which, args, seed)?.strike()?);
    }
    println!("\n{}", report::table(&outcomes));
    if let Some(path) = &args.json {
        let runs: Vec<Value> = outcomes.iter().map(Outcome::json).collect();
        let value = json!({"seed": seed, "seconds": seconds, "events_per_second": args.rate, "runs": runs});
        fs::write(path, format!("{value:#}\n")).doing(&format!("write {}", path.display()))?;
    }
    let wrong: Vec<&str> =
        outcomes.iter().flat_map(|outcome| outcome.account.wrong.iter().map(String::as_str)).collect();
    match wrong.is_empty() {
        true => Ok(()),
        false => Err(Trouble::new(format!("seed {seed}:\n{}", wrong.join("\n")))),
    }
}

/// One design's storm.
struct Storm {
    which: Which,
    seed: u64,
    length: Duration,
    rate: u32,
    doors: Doors,
    fleet: Fleet,
    proxy: Proxy,
    receiver: Receiver,
    log: Log,
    // The last to go: whoever is still there would complain.
    redis: Redis,
}

impl Storm {
    /// Starts everything and waits until it is up.
    fn begin(which: Which, args: &RunArgs, seed: u64) -> Result<Self> {
        let redis = Redis::start()?;
        let proxy = Proxy::start(redis.port())?;
        let everyone: Arc<Mutex<Vec<u32>>> = Arc::default();
        let known = Arc::clone(&everyone);
        let senders: Senders = match which {
            Which::Teimoso => Box::new(move || locked(&known).clone()),
            // It connects for every request, and promises nothing that would have to be explained.
            Which::Naive => Box::new(Vec::new),
        };
        let receiver = Receiver::start(seed, senders)?;
        let recipe = Recipe {
            which,
            teimoso: binary(args.teimoso.as_deref())?,
            redis: redis.url(),
            proxied: format!("redis://127.0.0.1:{}/0", proxy.port()),
            api_port: free_port()?,
        };
        let api = (which == Which::Teimoso).then(|| loopback(recipe.api_port));
        let fleet = Fleet::start(&recipe, everyone)?;
        if let Some(api) = api {
            get(api, "/v1/stats")?;
        }
        let doors = Doors { api, redis: redis.url(), teimoso: recipe.teimoso, receiver: receiver.address() };
        let (length, rate, log) = (args.storm(), args.rate, Log::default());
        Ok(Self { which, seed, length, rate, doors, fleet, proxy, receiver, log, redis })
    }

    fn strike(self) -> Result<Outcome> {
        let producers = Producers::start(self.doors.clone(), self.seed, self.rate);
        let had_ended: Mutex<HashMap<String, Value>> = Mutex::default();
        let note_what_has_ended = || match self.doors.api {
            Some(api) => ended(api).map(|ended| locked(&had_ended).extend(ended)),
            None => Ok(()),
        };
        let ledger = std::thread::scope(|scope| {
            // They stop with the strikes; what outlasts them is the long ones.
            let producing = scope.spawn(|| {
                clock::pause(self.length);
                producers.stop()
            });
            let targets = Targets { redis: &self.redis, fleet: &self.fleet, proxy: &self.proxy };
            havoc::storm(targets, self.length, self.seed, &self.log, note_what_has_ended)?;
            producing.join().map_err(|_| Trouble::new("a producer panicked"))?
        })?;
        let over = clock::now();
        let quiet = self.until_quiet(over)?;
        self.account(ledger, &locked(&had_ended), quiet)
    }

    /// Until there is nothing left to do; how long that took.
    fn until_quiet(&self, over: Instant) -> Result<Duration> {
        let (mut moved, mut before) = (over, self.receiver.count());
        while over.elapsed() < PATIENCE {
            clock::pause(LOOK);
            self.log.revived(self.fleet.revive()?);
            let arrived = self.receiver.count();
            if arrived != before || self.left()? > 0 {
                (before, moved) = (arrived, clock::now());
            } else if moved.elapsed() >= QUIET {
                break;
            }
        }
        Ok(moved.saturating_duration_since(over))
    }

    fn left(&self) -> Result<u64> {
        match self.doors.api {
            Some(api) => Counts::look(api).map(|counts| counts.open),
            None => {
                let mut connection = self.redis.connection().doing("reach redis")?;
                naive::left(&mut connection).doing("ask redis")
            }
        }
    }

    fn account(
        &self,
        ledger: Ledger,
        had_ended: &HashMap<String, Value>,
        quiet: Duration,
    ) -> Result<Outcome> {
        let mut connection = self.redis.connection().doing("reach redis")?;
        let left = Left::look(&mut connection, self.doors.api)?;
        let open = ledger.open.len() as u64;
        let books = Books { ledger, arrivals: self.receiver.arrivals(), strikes: self.log.strikes(), left };
        let mut account = Account::of(&books);
        if let Some(api) = self.doors.api {
            account.hold_to_its_promises(&books);
            account.wrong.extend(changed(had_ended, &books.left).into_iter().take(5));
            account.wrong.extend(unconserved(api)?);
            eprintln!("{} deliveries had ended before a late sender went on", had_ended.len());
        }
        Ok(Outcome {
            which: self.which,
            account,
            strikes: by_kind(&self.log),
            ended_by_themselves: self.log.ended_by_themselves(),
            open,
            quiet_after_seconds: quiet.as_secs_f64(),
        })
    }
}

fn unconserved(api: SocketAddr) -> Result<Option<String>> {
    let counts = Counts::look(api)?;
    Ok((!counts.conserve()).then(|| format!("the counters do not conserve: {counts:?}")))
}
