//! No room left: events are refused in words, and what was accepted is delivered all the same, or as soon as
//! there is room for its end.

use std::collections::BTreeMap;
use std::path::Path;

use teimoso::sink::SinkHandle;

use crate::support::api::{Answer, Api, Sent};
use crate::support::process::{Serving, has_namespaces, serve, serve_after, serve_in_namespace};
use crate::support::{directory, sink, until};

/// Bytes of each payload.
const PAYLOAD: usize = 50_000;

/// What was acknowledged: event, payload.
type Acknowledged = BTreeMap<String, Vec<u8>>;

/// Offers payload after payload until the store is full.
fn fill(api: Api, url: &str) -> Acknowledged {
    let (acknowledged, refusal) = offer_until_refused(api, url);
    assert_eq!((refusal.status, &refusal.json()["code"]), (507, &"store_full".into()), "{refusal:?}");
    assert!(refusal.json()["detail"].as_str().is_some_and(|text| text.contains("no room left")));
    acknowledged
}

/// What was acknowledged, and the first answer that was no 202.
fn offer_until_refused(api: Api, url: &str) -> (Acknowledged, Answer) {
    let headers = format!("content-type: text/plain\r\nteimoso-url: {url}\r\n");
    let mut acknowledged = Acknowledged::new();
    for number in 0..1_000_u32 {
        let body: Vec<u8> = number.to_string().bytes().cycle().take(PAYLOAD).collect();
        let answer = api.request("POST", "/v1/events/raw", &headers, &body).expect("answered");
        if answer.status != 202 {
            return (acknowledged, answer);
        }
        acknowledged.insert(Sent::read(&answer.json()).event, body);
    }
    panic!("all was accepted");
}

/// A full store takes nothing more and says so; reading goes on.
fn is_full(serving: &Serving) {
    let ready = serving.api.request("GET", "/readyz", "", b"").expect("answered");
    assert_eq!(ready.status, 503, "{ready:?}");
    serving.api.counts().assert_conserved();
}

/// Waits until every acknowledged event has arrived, and compares. What was refused never arrives.
fn all_arrived(api: Api, sink: &SinkHandle, acknowledged: &Acknowledged) {
    let all = acknowledged.len() as u64;
    let counts = until("all are delivered", || Some(api.counts()).filter(|counts| counts.delivered == all));
    counts.assert_conserved();
    assert_eq!(counts.accepted, all);
    let mut arrived: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    for request in sink.requests() {
        let event = request.webhook_id().expect("an id").into_owned();
        arrived.insert(event, request.body().to_vec());
    }
    assert!(arrived == *acknowledged, "{} arrived of {all}", arrived.len());
}

/// Something that wants to be claimed while the store is full: due in a moment, and not before it is filled.
fn due_soon(api: Api, sink: &SinkHandle, acknowledged: &mut Acknowledged) {
    let soon = teimoso::clock::wall_now() + std::time::Duration::from_secs(4);
    let sent = api.send(&sink.url("/ok?later"), &format!(r#","deliver_at":"{soon}""#));
    acknowledged.insert(sent.event, br#"{"pedido": 1.0}"#.to_vec());
}

#[test]
fn a_full_store_answers_507_and_goes_on_delivering_what_it_accepted() {
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).args(&["--max-store-size", "2MiB"]).run();
    let mut acknowledged = Acknowledged::new();
    due_soon(serving.api, &sink, &mut acknowledged);
    acknowledged.extend(fill(serving.api, &sink.url("/ok")));
    assert!((20..60).contains(&acknowledged.len()), "{}", acknowledged.len());
    is_full(&serving);
    all_arrived(serving.api, &sink, &acknowledged);
    serving.kill();

    let serving = serve(directory.path()).args(&["--max-store-size", "64MiB"]).run();
    let sent = serving.api.send(&sink.url("/ok?after"), "");
    acknowledged.insert(sent.event, br#"{"pedido": 1.0}"#.to_vec());
    all_arrived(serving.api, &sink, &acknowledged);
}

#[test]
fn a_store_as_small_as_its_limit_starts_and_drains_in_order() {
    let (directory, sink) = (directory(), sink());
    let serving = serve(directory.path()).args(&["--max-store-size", "1MiB"]).run();
    let acknowledged = fill(serving.api, &sink.url("/ok"));
    // Full as it is, it starts again under the same limit, and reads.
    serving.kill();
    let serving = serve(directory.path()).args(&["--max-store-size", "1MiB"]).run();
    assert_eq!(serving.api.counts().accepted, acknowledged.len() as u64);
    all_arrived(serving.api, &sink, &acknowledged);
    serving.stop();
}

/// A file system of its own, so that it can really be full. Needs a mount, and so a namespace; where the machine
/// grants none, the limit of the test above stands for the disk.
#[test]
fn a_full_disk_is_recovered_from_without_a_restart() {
    if !has_namespaces() {
        eprintln!("no namespaces on this machine: a small file system cannot be made");
        return;
    }
    let (directory, sink) = (directory(), sink());
    let place = directory.path().display();
    let mount = format!(
        "mount -t tmpfs -o size=6m none {place}; dd if=/dev/zero of={place}/ballast bs=1M count=3 2>/dev/null"
    );
    let serving = serve_in_namespace(&directory.path().join("store"), &mount).run();
    let mut acknowledged = Acknowledged::new();
    due_soon(serving.api, &sink, &mut acknowledged);
    acknowledged.extend(fill(serving.api, &sink.url("/ok")));
    is_full(&serving);

    // Its own view of the file system is reached through /proc.
    let root = format!("/proc/{}/root{place}/ballast", serving.pid());
    std::fs::remove_file(Path::new(&root)).expect("the ballast is there");
    until("it is ready again", || {
        let ready = serving.api.request("GET", "/readyz", "", b"").expect("answered");
        (ready.status == 200).then_some(())
    });
    let sent = serving.api.send(&sink.url("/ok?after"), "");
    acknowledged.insert(sent.event, br#"{"pedido": 1.0}"#.to_vec());
    all_arrived(serving.api, &sink, &acknowledged);
    serving.stop();
}

/// A disk that fails is another thing than a full one: what it holds is known again only after a restart. A limit
/// on the size of files stands for the failure; the write that passes it is refused.
#[test]
fn an_io_error_is_503_until_a_restart_and_loses_nothing() {
    let (directory, sink) = (directory(), sink());
    // 2 or 4 MiB: shells count in 512 or in 1 024 bytes.
    let limited = "trap '' XFSZ; ulimit -f 4096";
    let serving = serve_after(directory.path(), limited).run();
    let (acknowledged, refusal) = offer_until_refused(serving.api, &sink.url("/ok"));
    assert_eq!((refusal.status, &refusal.json()["code"]), (503, &"store_failed".into()), "{refusal:?}");
    let detail = refusal.json()["detail"].as_str().expect("a text").to_owned();
    assert!(detail.ends_with("restart when the disk is well again"), "{detail}");
    let ready = serving.api.request("GET", "/readyz", "", b"").expect("answered");
    assert_eq!(ready.status, 503, "{ready:?}");
    let small = format!(r#"{{"url":"{}","payload":1}}"#, sink.url("/ok"));
    assert_eq!(serving.api.post("/v1/events", &small).expect("answered").status, 503);
    serving.kill();

    let serving = serve(directory.path()).run();
    all_arrived(serving.api, &sink, &acknowledged);
}
