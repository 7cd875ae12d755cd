//! S2's wire: anybody's RPUSH, and the enqueue command that is nothing more.

use redis::Commands;

use crate::support::process::teimoso;
use crate::support::receiver::Receiver;
use crate::{eventually, on};
use redis_fixture::{Fsync, Server};

const READY: &str = "webhooks:prontos";

fn texts(server: &Server, list: &str) -> Vec<String> {
    server.raw().lrange(list, 0, -1).expect("it is a list")
}

#[test]
fn s2_2_whatever_anybody_pushes_is_delivered_byte_for_byte() {
    let server = Server::start(Fsync::EverySecond);
    let receiver = Receiver::answering(&[200]);
    let worker = on(&server.url()).args(&["--workers-only", "--lang", "pt-BR"]).run();
    let entry = format!(
        r#"{{"id":"evt_1789136700349","url":"{}","corpo":{{"n": 9007199254740993,"v":[]}},"tentativas":0}}"#,
        receiver.url("/x")
    );
    let _: usize = server.raw().rpush(READY, entry).expect("pushed");
    let arrived = receiver.until_arrived(1).remove(0);
    assert_eq!(arrived.header("webhook-id"), "evt_1789136700349");
    assert_eq!(arrived.body, br#"{"n": 9007199254740993,"v":[]}"#);
    assert_eq!(
        worker.until_said("enviador de pe"),
        format!("enviador de pe, ouvindo o Redis em {}", server.url())
    );
    worker.until_said("-> tentativa 1 do evento evt_1789136700349 para ");
    worker.until_said("  entregue! HTTP 200");
    worker.stop();
}

#[test]
fn s2_9_a_dead_entry_is_read_by_lrange_and_replayed_by_lmove() {
    let server = Server::start(Fsync::EverySecond);
    let receiver = Receiver::answering(&[404, 200]);
    let worker = on(&server.url()).args(&["--workers-only"]).run();
    let mut raw = server.raw();
    let entry =
        format!(r#"{{"id":"evt_1","url":"{}","corpo":{{"a":1}},"tentativas":0}}"#, receiver.url("/x"));
    let _: usize = raw.rpush(READY, &entry).expect("pushed");
    let dead = eventually("it dies", || texts(&server, "webhooks:mortos").pop());
    let begin = entry.replace("\"tentativas\":0}", "\"tentativas\":1");
    assert!(dead.starts_with(&begin), "{dead}");
    let moved: Option<String> =
        redis::cmd("LMOVE").arg(&["webhooks:mortos", READY, "LEFT", "RIGHT"]).query(&mut raw).expect("moved");
    assert_eq!(moved, Some(dead));
    receiver.until_arrived(2);
    worker.until_said("  delivered! HTTP 200");
    assert_eq!(texts(&server, "webhooks:mortos"), [""; 0]);
    worker.stop();
}

#[test]
fn s2_12_send_with_a_url_and_json_is_a_push_of_s2s_entry() {
    let server = Server::start(Fsync::EverySecond);
    let receiver = Receiver::answering(&[200]);
    let url = receiver.url("/x");
    let sent = teimoso(&["send", &url, "--store", &server.url()]).output().expect("the binary runs");
    assert!(sent.status.success(), "{sent:?}");
    let id = String::from_utf8(sent.stdout).expect("UTF-8").trim_end().to_owned();
    let body = r#"{"tipo":"pedido.pago","pedido":1234,"valor":99.9}"#;
    let entry = format!(r#"{{"id":"{id}","url":"{url}","corpo":{body},"tentativas":0}}"#);
    assert_eq!(texts(&server, READY), [entry]);

    let worker = on(&server.url()).args(&["--workers-only"]).run();
    let arrived = receiver.until_arrived(1).remove(0);
    assert_eq!((arrived.header("webhook-id"), &*arrived.body), (&*id, body.as_bytes()));
    worker.until_said("  delivered! HTTP 200");
    worker.stop();
}
