//! What strikes: a shuffled deck of short strikes, one after the other, and beside it two long ones that outlast every
//! lease, a sender that is stopped and a sender whose way to Redis is lost.

mod strike;

use std::time::{Duration, Instant};

pub use strike::{Kind, Log, Strike};

use crate::clock;
use crate::design::Fleet;
use crate::trouble::{Result, Trouble};
use crate::world::process::Member;
use crate::world::proxy::Proxy;
use crate::world::redis::Redis;

/// A lease, and time for others to find that it has ended.
const BEYOND_A_LEASE: Duration = Duration::from_secs(34);
/// Between two strikes, in milliseconds.
const BETWEEN_MS: std::ops::Range<u64> = 100..600;
/// How long whoever was killed stays away, in milliseconds.
const AWAY_MS: std::ops::Range<u64> = 0..500;
/// The first strike: everyone is up by then.
const WARM_UP: Duration = Duration::from_secs(1);
/// Between two long strikes.
const LONG_PAUSE: Duration = Duration::from_secs(5);
/// The deck: each kind as often as it is in it, in every round of the cards.
const DECK: [Kind; 8] = [
    Kind::KillSender,
    Kind::KillSender,
    Kind::KillSender,
    Kind::KillRedis,
    Kind::CutOne,
    Kind::CutOne,
    Kind::CutAll,
    Kind::StopShortly,
];

/// What can be struck.
#[derive(Debug, Clone, Copy)]
pub struct Targets<'a> {
    /// The Redis.
    pub redis: &'a Redis,
    /// The senders.
    pub fleet: &'a Fleet,
    /// The way of one of them.
    pub proxy: &'a Proxy,
}

/// Strikes until the storm is over, and until both long strikes that began within it have ended. `before_the_late`
/// is called with the stopped sender's process before each continuation.
///
/// # Errors
/// Something could not be struck, or somebody could not be started again.
pub fn storm(
    targets: Targets<'_>,
    length: Duration,
    seed: u64,
    log: &Log,
    before_the_late: impl Fn() -> Result<()> + Sync,
) -> Result<()> {
    let began = clock::now();
    let over = began + length;
    clock::pause(WARM_UP);
    std::thread::scope(|scope| {
        let stops =
            scope.spawn(|| long(over, || stop(&targets.fleet.late, BEYOND_A_LEASE, log, &before_the_late)));
        let holes = scope.spawn(|| long(over, || hole(targets, BEYOND_A_LEASE, log)));
        let short = short(targets, over, &mut fastrand::Rng::with_seed(seed), log);
        // The supervisor stays on duty while the long ones last.
        let supervise = || -> Result<()> {
            while !(stops.is_finished() && holes.is_finished()) {
                log.revived(targets.fleet.revive()?);
                clock::pause(Duration::from_millis(50));
            }
            Ok(())
        };
        let supervised = short.and_then(|()| supervise());
        let panicked = |_| Trouble::new("a strike panicked");
        stops.join().map_err(panicked)??;
        holes.join().map_err(panicked)??;
        supervised
    })
}

/// Strikes again and again, and never begins when the storm is over.
fn long(over: Instant, strike: impl Fn() -> Result<()>) -> Result<()> {
    while clock::now() < over {
        strike()?;
        clock::pause(LONG_PAUSE);
    }
    Ok(())
}

fn short(targets: Targets<'_>, over: Instant, random: &mut fastrand::Rng, log: &Log) -> Result<()> {
    let mut deck: Vec<Kind> = Vec::new();
    while clock::now() < over {
        if deck.is_empty() {
            deck = DECK.to_vec();
            random.shuffle(&mut deck);
        }
        let Some(kind) = deck.pop() else { continue };
        strike(kind, targets, random, log)?;
        clock::pause(Duration::from_millis(random.u64(BETWEEN_MS)));
        log.revived(targets.fleet.revive()?);
    }
    Ok(())
}

fn strike(kind: Kind, targets: Targets<'_>, random: &mut fastrand::Rng, log: &Log) -> Result<()> {
    let Targets { redis, fleet, .. } = targets;
    let away = Duration::from_millis(random.u64(AWAY_MS));
    let whom = random.choice(&fleet.killed).ok_or_else(|| Trouble::new("there is nobody to strike"))?;
    match kind {
        Kind::KillSender => {
            let begin = clock::now();
            let pid = whom.kill()?;
            log.add(Strike { kind, begin, end: clock::now(), whom: pid });
            clock::pause(away);
            fleet.start_one(whom)
        }
        Kind::KillRedis => {
            let begin = clock::now();
            redis.kill()?;
            clock::pause(away);
            redis.start_again()?;
            log.add(Strike { kind, begin, end: clock::now(), whom: None });
            Ok(())
        }
        Kind::CutOne | Kind::CutAll => {
            let begin = clock::now();
            // Redis may be loading: then nobody is connected.
            let _cut = cut(redis, kind == Kind::CutAll, random);
            log.add(Strike { kind, begin, end: clock::now(), whom: None });
            Ok(())
        }
        Kind::StopShortly => stop(whom, away, log, || Ok(())),
        Kind::Stop | Kind::Hole => Err(Trouble::new("a long strike is no card of the deck")),
    }
}

/// Takes the processor away from a sender for so long.
fn stop(whom: &Member, wait: Duration, log: &Log, before: impl Fn() -> Result<()>) -> Result<()> {
    let kind = if wait >= BEYOND_A_LEASE { Kind::Stop } else { Kind::StopShortly };
    let begin = clock::now();
    let pid = whom.signal("STOP")?;
    clock::pause(wait);
    let ready = before();
    whom.signal("CONT")?;
    log.add(Strike { kind, begin, end: clock::now(), whom: pid });
    ready
}

/// Loses the way of one sender to Redis for so long.
fn hole(targets: Targets<'_>, wait: Duration, log: &Log) -> Result<()> {
    let begin = clock::now();
    targets.proxy.open_hole();
    clock::pause(wait);
    targets.proxy.close_hole();
    log.add(Strike { kind: Kind::Hole, begin, end: clock::now(), whom: targets.fleet.beyond.pid() });
    Ok(())
}

/// Ends one connection of anybody's, or all of them.
fn cut(redis: &Redis, all: bool, random: &mut fastrand::Rng) -> redis::RedisResult<()> {
    let mut connection = redis.connection()?;
    let mut kill = redis::cmd("CLIENT");
    if all {
        return kill.arg(&["KILL", "SKIPME", "yes"]).exec(&mut connection);
    }
    let own: u64 = redis::cmd("CLIENT").arg("ID").query(&mut connection)?;
    let listed: String = redis::cmd("CLIENT").arg("LIST").query(&mut connection)?;
    let ids =
        listed.lines().filter_map(|line| line.strip_prefix("id=")?.split(' ').next()?.parse::<u64>().ok());
    let others: Vec<u64> = ids.filter(|id| *id != own).collect();
    match random.choice(&others) {
        Some(id) => kill.arg("KILL").arg("ID").arg(*id).exec(&mut connection),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_strike_is_no_card_and_every_short_one_is() {
        for kind in Kind::ALL {
            assert_eq!(DECK.contains(&kind), !matches!(kind, Kind::Stop | Kind::Hole), "{kind:?}");
        }
    }
}
