//! What events cost the server: how many scripts, and how many commands within them, which is a promise; and how much
//! of its time, which depends on the machine and is only printed (`--no-capture`).

use redis_fixture::{Fsync, Server};
use teimoso_delivery::store::{Next, Store};
use teimoso_delivery::testkit::offer;

use super::world::{World, again, settlement, story};

const EVENTS: usize = 4_000;
/// Events of one acceptance.
const ACCEPTED: usize = 200;

/// What the server has done so far.
#[derive(Debug, Clone, Copy)]
struct Spent {
    scripts: u64,
    /// Commands within scripts, and the few that are none of ours.
    commands: u64,
    /// Of user and system.
    cpu_micros: f64,
}

impl Spent {
    fn read(world: &mut World) -> Self {
        let commands = info(world, "commandstats");
        let calls = |line: &str| value(line, "calls=").unwrap_or(0.0) as u64;
        let (scripts, others): (Vec<&str>, Vec<&str>) = commands
            .lines()
            .filter(|line| line.starts_with("cmdstat_"))
            .partition(|line| line.starts_with("cmdstat_eval"));
        let cpu = info(world, "cpu");
        let seconds = |name: &str| cpu.lines().find_map(|line| value(line, name)).unwrap_or(0.0);
        Self {
            scripts: scripts.into_iter().map(calls).sum(),
            commands: others.into_iter().map(calls).sum(),
            cpu_micros: (seconds("used_cpu_user:") + seconds("used_cpu_sys:")) * 1e6,
        }
    }
}

fn info(world: &mut World, section: &str) -> String {
    redis::cmd("INFO").arg(section).query(&mut world.raw).expect("the server answers")
}

fn value(line: &str, name: &str) -> Option<f64> {
    line.split(name).nth(1)?.split([',', '\r']).next()?.parse().ok()
}

/// What one phase cost.
#[derive(Debug)]
struct Cost {
    scripts: u64,
    commands_per_event: f64,
}

/// Prints what was spent on every event since `before`.
fn cost(what: &str, before: Spent, world: &mut World) -> Cost {
    let after = Spent::read(world);
    let per_event = |total: f64| total / EVENTS as f64;
    let scripts = after.scripts - before.scripts;
    let commands_per_event = per_event((after.commands - before.commands) as f64);
    eprintln!(
        "{what:<34} {:6.2} µs of CPU, {commands_per_event:5.2} commands per event, {scripts} scripts",
        per_event(after.cpu_micros - before.cpu_micros)
    );
    Cost { scripts, commands_per_event }
}

/// Events of 500 bytes for so many lanes.
async fn accept(world: &mut World, lanes: usize) -> Cost {
    let before = Spent::read(world);
    for from in (0..EVENTS).step_by(ACCEPTED) {
        let url = |n: usize| format!("http://loja.example/{}", n % lanes);
        let batch =
            (from..from + ACCEPTED).map(|n| offer(&url(n)).payload(vec![b'x'; 500]).event()).collect();
        world.store.accept(batch).await.expect("an open store accepts");
    }
    cost(&format!("accept, {lanes} lanes"), before, world)
}

/// All of them, each claim beside the settlements of the last.
async fn deliver(world: &mut World, what: &str, batch: usize, next: Next) -> Cost {
    let before = Spent::read(world);
    let (mut ended, mut held) = (0, world.claim(batch).await);
    while !held.is_empty() {
        ended += held.len();
        let at = world.clock.now();
        let ends = held.into_iter().map(|one| settlement(one, next, at)).collect();
        let want = batch.min(EVENTS.saturating_sub(ended));
        if want == 0 {
            world.store.settle(ends).await.expect("an open store settles");
            break;
        }
        let (settled, claim) = tokio::join!(world.store.settle(ends), world.store.claim(world.request(want)));
        settled.expect("an open store settles");
        held = claim.expect("an open store answers claims").taken;
    }
    assert_eq!(ended, EVENTS);
    cost(what, before, world)
}

/// Fresh ones, and the same number that are tried again, through so many lanes.
fn run(lanes: usize, batch: usize) -> [Cost; 4] {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    world.command(&["CONFIG", "SET", "slowlog-log-slower-than", "5000"]);
    let mut costs = Vec::new();
    story(async {
        costs.push(accept(&mut world, lanes).await);
        let what = |what: &str| format!("{what}, {lanes} lanes by {batch}");
        costs.push(deliver(&mut world, &what("delivered"), batch, Next::Delivered).await);
        accept(&mut world, lanes).await;
        let due = world.clock.now();
        costs.push(deliver(&mut world, &what("to be tried again"), batch, again(due)).await);
        costs.push(deliver(&mut world, &what("tried again"), batch, Next::Delivered).await);
        let counts = world.counts().await;
        assert_eq!(counts.delivered as usize, 2 * EVENTS);
    });
    let slow: redis::Value = world.command(&["SLOWLOG", "LEN"]);
    eprintln!("scripts longer than 5 ms: {slow:?}");
    costs.try_into().expect("there are four")
}

/// Beside the cycles there is one look per second, by a process that waits: a second script per batch would be twice
/// as many.
fn assert_once(scripts: u64, batches: usize) {
    assert!(
        (batches as u64..2 * batches as u64).contains(&scripts),
        "{scripts} scripts for {batches} batches"
    );
}

#[test]
fn a_batch_costs_one_script_whatever_it_holds_and_an_event_few_commands() {
    for (lanes, batch, most) in [(4, 50, [1.0, 2.0, 2.0, 2.0]), (100, 50, [1.5, 4.0, 4.0, 4.0])] {
        let costs = run(lanes, batch);
        assert_once(costs[0].scripts, EVENTS / ACCEPTED);
        for (cost, most) in costs.iter().zip(most) {
            assert!(cost.commands_per_event <= most, "{lanes} lanes: {cost:?}, not {most}");
        }
        assert_once(costs[1].scripts, EVENTS / batch);
    }
}

#[test]
fn a_large_batch_costs_less_than_a_small_one() {
    let (small, large) = (run(100, 16), run(100, 250));
    for (small, large) in small.iter().zip(&large).skip(1) {
        assert!(large.commands_per_event < small.commands_per_event, "{large:?}, {small:?}");
    }
}
