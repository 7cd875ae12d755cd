//! The hot paths, each so many times, as the product runs them.

use std::hint::black_box;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request};
use http_body_util::{BodyExt, Full};
use hyper::service::Service;
use hyper_util::service::TowerToHyperService;
use teimoso_delivery::lanes::{Horizon, LaneId, Lanes, Limits};
use teimoso_delivery::memory::MemoryStore;
use teimoso_delivery::model::{Application, Destination, LaneKey, LaneRecord, Millis};
use teimoso_delivery::ports::{Clock, Destinations, RefusedDestination};
use teimoso_delivery::store::{LaneNews, Store};
use teimoso_http::{AttemptLimits, AttemptRequest, Egress, Target, TlsRoots, Transport};
use teimoso_retry::{Fate, Mode, Outcome, Preset, RetryPolicy, Try, decide};
use teimoso_server::{ApiConfig, App};

use super::clients;
use crate::args::{HotPath, PathArgs};
use crate::clock::SystemClock;
use crate::event::{self, Events};
use crate::lab::{folder, fresh_in};
use crate::store::{Embedded, settlement};
use crate::trouble::{Doing, Result, Trouble};

/// Lanes of the lanes path, and deliveries pushed before any is taken.
const LANES: u32 = 64;
const LANES_BLOCK: u64 = 640;
/// Lines of one batch.
const LINES: u64 = 1_024;
/// Events of one acceptance, claim and settlement.
const STORE_BLOCK: u64 = 256;

/// Runs one, to be counted from outside.
///
/// # Errors
/// When it fails.
pub fn run(args: &PathArgs) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().doing("start a runtime")?;
    match args.path {
        HotPath::Decide => decisions(args.times),
        HotPath::Lanes => turns(args.times),
        HotPath::Line => runtime.block_on(lines(args.times))?,
        HotPath::Store => {
            let dir = args.dir.clone().map_or_else(folder, Ok)?;
            runtime.block_on(deliveries(args.times, &dir))?;
        }
        HotPath::Attempt => runtime.block_on(attempts(args.times, sink(args)?))?,
        HotPath::Client => runtime.block_on(clients::ours(args.times, sink(args)?))?,
        HotPath::HyperUtil => runtime.block_on(clients::bare(args.times, sink(args)?))?,
    }
    Ok(())
}

fn sink(args: &PathArgs) -> Result<SocketAddr> {
    args.sink.ok_or_else(|| Trouble::new("this path needs --sink"))
}

fn decisions(times: u64) {
    let policy = RetryPolicy::preset(Preset::Patient);
    for (turn, number) in (0..times).zip((1..=9).cycle()) {
        let attempt = Try {
            number: NonZeroU32::new(number).unwrap_or(NonZeroU32::MIN),
            elapsed: Duration::from_secs(turn % 3_600),
            method: teimoso_retry::Method::Post,
            replay_safe: false,
            mode: Mode::AtLeastOnce,
        };
        let status = [200, 503, 429, 404][(turn % 4) as usize];
        let outcome = Outcome { fate: Fate::Answered, status: Some(status), hint: None };
        let entropy = turn.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        black_box(decide(&policy, black_box(&attempt), black_box(&outcome), true, entropy));
    }
}

fn turns(times: u64) {
    let mut lanes: Lanes<u64> = Lanes::new(Limits::default());
    for id in 0..LANES {
        let key = LaneKey { application: Application::default(), address: format!("http://h/{id}").into() };
        lanes.open(LaneId(id), key, LaneRecord::default(), Horizon::All);
    }
    let mut now = Millis::new(1_700_000_000_000);
    let mut left = times;
    while left > 0 {
        let block = left.min(LANES_BLOCK);
        left -= block;
        for (key, id) in (0..block).zip((0..LANES).cycle()) {
            lanes.push(LaneId(id), now, key, now);
        }
        now = now.after(Duration::from_millis(1));
        let mut taken = 0;
        while taken < block {
            let batch = lanes.take(now, 64, 1_024);
            taken += batch.len() as u64;
            for entry in batch {
                black_box(lanes.release(entry.lane, LaneNews::Success, now));
            }
        }
    }
}

/// Takes any URL apart at its last slash: judging is the product's and happens once per batch and URL.
struct Everywhere;

impl Destinations for Everywhere {
    fn check(&self, url: &str) -> Result<Destination, RefusedDestination> {
        Ok(Destination { url: url.into(), lane: url.into(), origin: "http://127.0.0.1:9".into() })
    }
}

async fn lines(times: u64) -> Result<()> {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock::start());
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new(Arc::clone(&clock), 7));
    let config = ApiConfig::new("0", RetryPolicy::preset(Preset::Patient));
    let router = teimoso_server::router(App::new(store, Arc::new(Everywhere), clock, config));
    let service = TowerToHyperService::new(router);
    let urls = event::urls(([127, 0, 0, 1], 9).into(), "ok", event::ENDPOINTS);
    let events = Events::new(&urls, event::PAYLOAD_BYTES, None)?;
    for block in 0..times / LINES {
        let mut body = Vec::new();
        for number in block * LINES..(block + 1) * LINES {
            events.write(number, 0, &mut body);
            body.push(b'\n');
        }
        let request = Request::post("/v1/events/batch")
            .header(CONTENT_TYPE, "application/x-ndjson")
            .body(Full::new(Bytes::from(body)))
            .doing("make a request")?;
        let answer = service.call(request).await.doing("call the API")?;
        let answer = answer.into_body().collect().await.doing("read an answer")?.to_bytes();
        let accepted =
            answer.split(|byte| *byte == b'\n').filter(|line| line.starts_with(b"{\"id\"")).count();
        if accepted as u64 != LINES {
            return Err(Trouble::new(format!("{accepted} of {LINES} lines were accepted")));
        }
    }
    Ok(())
}

async fn deliveries(times: u64, dir: &Path) -> Result<()> {
    let dir = fresh_in(dir)?;
    let payload = Bytes::from(event::payload(event::PAYLOAD_BYTES)?);
    let embedded = Embedded::open(dir.path(), 0, &payload)?;
    for _ in 0..times / STORE_BLOCK {
        embedded.store().accept(embedded.fresh(STORE_BLOCK, &payload)).await.doing("accept")?;
        let mut ended = 0;
        while ended < STORE_BLOCK {
            let taken = embedded.take(STORE_BLOCK as usize).await?;
            ended += taken.len() as u64;
            let batch = taken.into_iter().map(|claimed| settlement(claimed, true, false)).collect();
            let settled = embedded.store().settle(batch).await.doing("settle")?;
            settled.ticket.await.doing("save a settlement")?;
        }
    }
    Ok(())
}

async fn attempts(times: u64, sink: SocketAddr) -> Result<()> {
    let builder = Transport::builder().egress(Egress::unguarded()).tls_roots(TlsRoots::OnlyAdded);
    let transport = builder.build().doing("make a transport")?;
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    let request = AttemptRequest {
        method: Method::POST,
        target: Arc::new(Target::parse(&format!("http://{sink}/ok/00")).doing("read an address")?),
        headers,
        body: Bytes::from(event::payload(event::PAYLOAD_BYTES)?),
        limits: AttemptLimits::default(),
    };
    for _ in 0..times {
        let attempt = transport.attempt(request.clone()).await;
        if attempt.status() != Some(200) {
            return Err(Trouble::new(format!("an attempt ended with {:?}", attempt.fate)));
        }
    }
    Ok(())
}
