//! From the API to the destination while the Redis behind it is a group: sentinels that change the master, a Cluster
//! that moves a slot or loses a node.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use redis_fixture::{Cluster, Sentinels};

use crate::support::process::{Ended, teimoso};
use crate::support::receiver::Receiver;
use crate::support::sink;
use crate::{eventually, on};

const READY: &str = "webhooks:prontos";

/// Two senders go on while `chaos` does its work; then everything that was accepted has arrived.
///
/// `chaos` is given a wait for so many more acceptances.
fn nothing_accepted_is_lost(url: &str, chaos: impl FnOnce(&dyn Fn(usize))) {
    let destination = sink();
    let quiet = ["--attempt-lines", "off", "--durability", "replica"];
    let serving = on(url).args(&quiet).run();
    let worker = on(url).args(&quiet).args(&["--workers-only"]).run();
    let event = format!("{{\"url\":\"{}\",\"payload\":1}}", destination.url("/ok"));
    let (accepted, stop) = (Mutex::new(Vec::new()), AtomicBool::new(false));
    let count = || accepted.lock().expect("no panic").len();
    let more = |number: usize| {
        let goal = count() + number;
        eventually("events are accepted", || (count() >= goal).then_some(()));
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::SeqCst) {
                let answer = serving.api.post("/v1/events", &event).expect("the API goes on");
                match answer.status {
                    202 => {
                        let id = answer.json()["id"].as_str().expect("an id").to_owned();
                        accepted.lock().expect("no panic").push(id);
                    }
                    503 => std::thread::sleep(std::time::Duration::from_millis(20)),
                    status => panic!("{status}: {answer:?}"),
                }
            }
        });
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| chaos(&more)));
        stop.store(true, Ordering::SeqCst);
        if let Err(panic) = done {
            std::panic::resume_unwind(panic);
        }
    });
    eventually("everything is delivered", || {
        let counts = serving.api.counts();
        counts.assert_conserved();
        (counts.pending + counts.in_flight + counts.scheduled == 0).then_some(())
    });
    let accepted: BTreeSet<String> = accepted.into_inner().expect("no panic").into_iter().collect();
    let arrived: BTreeSet<String> = destination
        .requests()
        .iter()
        .map(|request| request.webhook_id().expect("an id").into_owned())
        .collect();
    let lost: Vec<_> = accepted.difference(&arrived).collect();
    assert!(lost.is_empty(), "{} of {} are lost: {lost:?}", lost.len(), accepted.len());
    worker.stop();
    serving.stop();
}

#[test]
fn a_master_that_is_killed_is_replaced_by_the_sentinels_and_nobody_restarts() {
    let mut group = Sentinels::start();
    nothing_accepted_is_lost(&group.url(), |more| {
        more(100);
        let master = group.master().expect("there is a master");
        group.servers[master].kill();
        eventually("the replica is master", || group.master());
        group.servers[master].start_again();
        more(100);
    });
}

#[test]
fn a_node_of_a_cluster_that_is_killed_is_replaced_by_its_replica_and_a_slot_moves_on() {
    let mut cluster = Cluster::start_replicated();
    nothing_accepted_is_lost(&cluster.url(), |more| {
        more(100);
        let owner = cluster.owner(READY);
        cluster.nodes[owner].kill();
        eventually("the replica is master", || (cluster.owner(READY) != owner).then_some(()));
        cluster.nodes[owner].start_again();
        more(100);
        let next = (0..3).find(|node| *node != owner).expect("two other masters");
        cluster.move_slot(READY, next);
        more(100);
    });
}

#[test]
fn s2_12_a_plain_push_finds_the_ready_list_wherever_it_is() {
    let (group, cluster) = (Sentinels::start(), Cluster::start());
    for url in [group.url(), cluster.url()] {
        let receiver = Receiver::answering(&[200]);
        let sent: Ended = teimoso(&["send", &receiver.url("/x"), "--store", &url])
            .output()
            .expect("the binary runs")
            .into();
        assert_eq!(sent.code, Some(0), "{sent:?}");
        let worker = on(&url).args(&["--workers-only"]).run();
        let arrived = receiver.until_arrived(1).remove(0);
        assert_eq!(arrived.header("webhook-id"), sent.stdout.trim_end());
        worker.until_said("  delivered! HTTP 200");
        assert!(worker.until_said("sender up").ends_with(&url), "{url}");
        worker.stop();
    }
}
