//! One server under load while everything happens to it that happens to servers.

use std::time::Duration;

use redis_fixture::{Fsync, Server};
use teimoso_delivery::ports::Entropy;
use teimoso_delivery::testkit::SeededEntropy;
use teimoso_store_redis::Options;

use super::load::Load;
use super::world::story;

/// Workers are back within 2 s of Redis; a busy machine may take one more.
pub const BACK: Duration = Duration::from_secs(3);

const SEED: u64 = 0xcafe;

fn command(server: &Server, words: &[&str]) {
    let mut command = redis::cmd(words[0]);
    command.arg(&words[1..]);
    // A connection may be killed by what it ordered.
    let _answer: redis::RedisResult<redis::Value> = command.query(&mut server.raw());
}

#[test]
fn five_restarts_at_random_lose_nothing_and_count_nothing_twice() {
    let mut server = Server::start(Fsync::EverySecond);
    let load = Load::at(&server.url(), &Options::default());
    story(async {
        let _server = load
            .during(move |load| {
                let chance = SeededEntropy::new(SEED);
                for _ in 0..5 {
                    load.more(20 + (chance.next_u64() % 200) as usize);
                    server.kill();
                    std::thread::sleep(Duration::from_millis(chance.next_u64() % 1_000));
                    server.start_again();
                    eprintln!("seed {SEED:#x}: back after {:?}", load.resumes(BACK));
                }
                load.more(50);
                server
            })
            .await;
        eprintln!("{} events", load.account_exactly().await);
    });
}

#[test]
fn forgotten_scripts_and_cut_connections_under_load_surface_nowhere() {
    let server = Server::start(Fsync::EverySecond);
    let load = Load::at(&server.url(), &Options::default());
    story(async {
        let _server = load
            .during(move |load| {
                for _ in 0..40 {
                    command(&server, &["SCRIPT", "FLUSH"]);
                    load.more(10);
                    command(&server, &["SCRIPT", "FLUSH"]);
                    command(&server, &["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]);
                    load.resumes(BACK);
                }
                server
            })
            .await;
        eprintln!("{} events", load.account_exactly().await);
    });
}

#[test]
fn an_emptied_server_takes_what_comes_after() {
    let server = Server::start(Fsync::EverySecond);
    let load = Load::at(&server.url(), &Options::default());
    story(async {
        let _server = load
            .during(move |load| {
                load.more(200);
                // What was there is gone; a worker that held some of it settles nothing.
                load.forget(|| command(&server, &["FLUSHALL"]));
                eprintln!("back after {:?}", load.resumes(BACK));
                load.more(200);
                server
            })
            .await;
        assert!(load.account().await >= 200);
    });
}
