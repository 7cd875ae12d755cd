//! Producers that repeat what was not acknowledged, one by one and in batches, until it is.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use serde_json::Value;
use teimoso::sink::SinkHandle;

use crate::support::api::Api;

/// Between two events, two batches, and two tries.
const PAUSE: Duration = Duration::from_millis(10);
const BATCH_PAUSE: Duration = Duration::from_millis(60);
const TRY_AGAIN: Duration = Duration::from_millis(3);
const BATCH_LINES: usize = 25;

/// What becomes of an event at its destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fortune {
    /// Delivered, at once or after retries.
    Delivered,
    /// Dead after one attempt: 404.
    Refused,
    /// Never delivered: 500 for ever.
    Hopeless,
    /// At-most-once: delivered, or dead when a kill left it open.
    Once,
}

/// Where events go, how often of a hundred, and what becomes of them there.
const DESTINATIONS: [(&str, u32, Fortune); 8] = [
    ("/ok", 46, Fortune::Delivered),
    ("/slow/100", 10, Fortune::Delivered),
    ("/fail/1", 12, Fortune::Delivered),
    ("/teimoso", 8, Fortune::Delivered),
    ("/status/404", 8, Fortune::Refused),
    ("/quebra", 4, Fortune::Hopeless),
    ("/ok?once", 6, Fortune::Once),
    ("/slow/100?once", 6, Fortune::Once),
];

/// An event and its idempotency key.
#[derive(Clone)]
pub struct Offered {
    pub key: String,
    pub fortune: Fortune,
    pub payload: String,
    /// The body of `POST /v1/events`.
    pub json: String,
}

/// By key: what was offered, and the event's id.
pub type Acknowledged = BTreeMap<String, (Offered, String)>;

/// Whether none of these deliveries can ever end well.
pub fn only_hopeless(deliveries: &[Value]) -> bool {
    let hopeless = |path: &str| {
        DESTINATIONS.iter().any(|(known, _, fortune)| *known == path && *fortune == Fortune::Hopeless)
    };
    deliveries.iter().all(|delivery| {
        let url = delivery["url"].as_str().expect("a URL");
        hopeless(&url[url.rfind('/').unwrap_or(0)..])
    })
}

struct Shared {
    /// `None` while there is no server.
    server: Mutex<Option<Api>>,
    stopped: AtomicBool,
    sink: String,
    next: AtomicU64,
    acknowledged: Mutex<Acknowledged>,
}

/// Running producers.
pub struct Producers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Producers {
    /// Two that send events one by one, one that sends batches.
    pub fn start(sink: &SinkHandle, random: &mut fastrand::Rng) -> Producers {
        let shared = Arc::new(Shared {
            server: Mutex::default(),
            stopped: AtomicBool::new(false),
            sink: sink.url(""),
            next: AtomicU64::new(0),
            acknowledged: Mutex::default(),
        });
        let works: [fn(&Shared, fastrand::Rng); 3] = [singles, singles, batches];
        let threads = works.map(|work| {
            let (shared, random) = (Arc::clone(&shared), random.fork());
            std::thread::spawn(move || work(&shared, random))
        });
        Producers { shared, threads: threads.into() }
    }

    /// Where the server is now, if there is one.
    pub fn send_to(&self, server: Option<Api>) {
        *self.shared.server.lock().expect("no panic") = server;
    }

    /// Lets them finish what they have begun, which is until it is acknowledged.
    pub fn stop(self) -> Acknowledged {
        self.shared.stopped.store(true, Ordering::Relaxed);
        for thread in self.threads {
            thread.join().expect("no panic");
        }
        std::mem::take(&mut *self.shared.acknowledged.lock().expect("no panic"))
    }
}

impl Shared {
    fn offer(&self, random: &mut fastrand::Rng) -> Offered {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        let mut part = random.u32(0..100);
        let chosen = DESTINATIONS.iter().find(|(_, share, _)| {
            let hit = part < *share;
            part = part.wrapping_sub(*share);
            hit
        });
        let (path, _, fortune) = *chosen.expect("the shares make a hundred");
        // Bytes that no parser would print again as they are.
        let padding = "\u{2028}x ".repeat(random.usize(0..200));
        let payload = format!(r#"{{"n":  {number}.0,"n":1e400, "padding":"{padding}"}}"#);
        let (key, sink) = (format!("key-{number}"), &self.sink);
        let mode = if fortune == Fortune::Once { r#","mode":"at_most_once""# } else { "" };
        let json = format!(r#"{{"url":"{sink}{path}","payload":{payload},"idempotency_key":"{key}"{mode}}}"#);
        Offered { key, fortune, payload, json }
    }

    /// The server, as soon as there is one.
    fn server(&self) -> Api {
        loop {
            if let Some(api) = *self.server.lock().expect("no panic") {
                return api;
            }
            std::thread::sleep(TRY_AGAIN);
        }
    }

    /// Notes an acknowledgement; a second one must name the same event (G1).
    fn note(&self, offered: &Offered, answer: &Value) {
        let id = answer["id"].as_str().expect("an id").to_owned();
        let mut all = self.acknowledged.lock().expect("no panic");
        let (_, first) = all.entry(offered.key.clone()).or_insert_with(|| (offered.clone(), id.clone()));
        assert_eq!(*first, id, "one key, two events: {}", offered.key);
    }

    fn goes_on(&self) -> bool {
        !self.stopped.load(Ordering::Relaxed)
    }
}

fn singles(shared: &Shared, mut random: fastrand::Rng) {
    while shared.goes_on() {
        let offered = shared.offer(&mut random);
        loop {
            match shared.server().post("/v1/events", &offered.json) {
                Ok(answer) if answer.status == 202 => break shared.note(&offered, &answer.json()),
                // Shedding is an answer that says: again.
                Ok(answer) => assert_eq!(answer.status, 503, "{answer:?}"),
                Err(_) => std::thread::sleep(TRY_AGAIN),
            }
        }
        std::thread::sleep(PAUSE);
    }
}

fn batches(shared: &Shared, mut random: fastrand::Rng) {
    while shared.goes_on() {
        let batch: Vec<Offered> = (0..BATCH_LINES).map(|_| shared.offer(&mut random)).collect();
        let body = lines(&batch);
        // A batch that was cut short is sent again as a whole: what was acknowledged must stay what it is.
        while batch_once(shared, &batch, &body) < batch.len() {
            std::thread::sleep(TRY_AGAIN);
        }
        std::thread::sleep(BATCH_PAUSE);
    }
}

/// A batch's body.
pub fn lines<'a>(batch: impl IntoIterator<Item = &'a Offered>) -> String {
    batch.into_iter().map(|offered| offered.json.clone() + "\n").collect()
}

/// Sends a batch once; how many of its lines were acknowledged before the connection ended.
fn batch_once(shared: &Shared, batch: &[Offered], body: &str) -> usize {
    let kind = "content-type: application/x-ndjson\r\n";
    let server = shared.server();
    let Some(answer) = server.request_in_part("POST", "/v1/events/batch", kind, body.as_bytes()) else {
        return 0;
    };
    assert_eq!(answer.status, 200, "{answer:?}");
    let text = String::from_utf8(answer.body).expect("UTF-8");
    // A line is an answer once its end is there.
    let answers = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let mut acknowledged = 0;
    for (offered, line) in batch.iter().zip(answers) {
        shared.note(offered, &serde_json::from_str(line).expect("JSON"));
        acknowledged += 1;
    }
    acknowledged
}
