//! What events cost the server: how many scripts, which is a promise, and how long they take, which depends on the
//! machine and is only printed (`--no-capture`).

use redis_fixture::{Fsync, Server};
use teimoso_delivery::store::{Next, Store};
use teimoso_delivery::testkit::offer;

use super::world::{World, settlement, story};

const EVENTS: usize = 4_000;

/// Microseconds the server spent in scripts, and how many it ran.
fn scripts(raw: &mut redis::Connection) -> (f64, u64) {
    let info: String = redis::cmd("INFO").arg("commandstats").query(raw).expect("the server answers");
    let field = |line: &str, name: &str| -> f64 {
        line.split(&format!("{name}="))
            .nth(1)
            .and_then(|rest| rest.split(',').next()?.parse().ok())
            .unwrap_or(0.0)
    };
    let line = info.lines().find(|line| line.starts_with("cmdstat_evalsha:")).unwrap_or_default();
    (field(line, "usec"), field(line, "calls") as u64)
}

#[test]
fn a_batch_costs_one_script_whatever_it_holds() {
    let mut world = World::real(Server::start(Fsync::EverySecond));
    world.command(&["CONFIG", "SET", "slowlog-log-slower-than", "5000"]);
    world.command(&["SLOWLOG", "RESET"]);
    story(async {
        let before = scripts(&mut world.raw);
        for from in (0..EVENTS).step_by(200) {
            let url = |n: usize| format!("http://loja.example/{}", n % 100);
            let batch = (from..from + 200).map(|n| offer(&url(n)).payload(vec![b'x'; 500]).event()).collect();
            world.store.accept(batch).await.expect("an open store accepts");
        }
        let accepted = scripts(&mut world.raw);
        let (mut delivered, mut held) = (0, world.claim(50).await);
        while !held.is_empty() {
            delivered += held.len();
            let at = world.clock.now();
            let batch = held.into_iter().map(|one| settlement(one, Next::Delivered, at)).collect();
            let (settled, claim) =
                tokio::join!(world.store.settle(batch), world.store.claim(world.request(50)));
            assert!(settled.is_ok());
            held = claim.expect("an open store answers claims").taken;
        }
        let cycled = scripts(&mut world.raw);
        assert_eq!(delivered, EVENTS);
        // Beside them there is one look per second, by a process that waits: a second script per batch would be twice
        // as many.
        let once = |(from, to): (u64, u64), batches: usize| {
            let (scripts, batches) = (to - from, batches as u64);
            assert!((batches..2 * batches).contains(&scripts), "{scripts} scripts for {batches} batches");
        };
        once((before.1, accepted.1), EVENTS / 200);
        once((accepted.1, cycled.1), EVENTS / 50);
        let per = |from: (f64, u64), to: (f64, u64)| ((to.0 - from.0) / EVENTS as f64, to.1 - from.1);
        let slow: usize = redis::cmd("SLOWLOG").arg("LEN").query(&mut world.raw).expect("the server answers");
        eprintln!("accept: {:?} µs per event and calls", per(before, accepted));
        eprintln!("cycle:  {:?} µs per event and calls", per(accepted, cycled));
        let info: String =
            redis::cmd("INFO").arg("commandstats").query(&mut world.raw).expect("the server answers");
        info.lines().filter(|line| line.starts_with("cmdstat")).for_each(|line| eprintln!("{line}"));
        eprintln!("commands longer than 5 ms: {slow}");
    });
}
