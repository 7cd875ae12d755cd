//! The one place where wire types become the domain's and the domain's become wire types.
//!
//! Deliberately absent: parsing of JSON, headers and query strings, and every word with the store.

use std::fmt::Display;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use teimoso_delivery::model::{
    Application, ContentType, DeadReason, DeliveryId, DeliveryState, Destination, EventId, EventType, Header,
    Headers, IdempotencyKey, InvalidValue, MAX_HEADERS, Millis, Mode, NewEvent, PolicyName,
};
use teimoso_delivery::ports::{Clock, RefusedDestination};
use teimoso_delivery::retry::{Preset, RetryPolicy, WaitSource};
use teimoso_delivery::store::{
    Accepted, AttemptView, DeliveryFilter, DeliveryView, EventFilter, EventView, MAX_PAGE,
    MAX_REPLAY_RATE_PER_SECOND, NewReplay, Page, Replay, ReplayFilter, Stats, StoreInfo,
};

use super::header::{idempotency_key, single};
use super::json::Text;
use super::problem::{At, Code, Origin, Problem};
use super::query::{Query, refuse};
use super::request::{EventBody, HeaderList, ReplayBody, ReplayFilterBody};
use super::time;
use super::view;
use crate::config::ApiConfig;
use crate::fingerprint::fingerprint;
use crate::nearest::suggestion;

/// Rows of a page when a caller does not say.
const DEFAULT_PAGE: u32 = 50;
/// Deliveries per second of a replay when a caller does not say.
const DEFAULT_REPLAY_RATE: u32 = 100;

/// How a URL is judged.
pub(crate) type CheckUrl<'a> = dyn FnMut(&str) -> Result<Destination, RefusedDestination> + 'a;

/// What an event's fields are judged by.
pub(crate) struct Ground<'a> {
    pub(crate) check_url: &'a mut CheckUrl<'a>,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) max_payload: usize,
}

/// An event's fields, whichever way they came.
struct Draft<'a> {
    origin: Origin,
    url: Option<&'a str>,
    kind: Option<&'a str>,
    id: Option<&'a str>,
    application: Option<&'a str>,
    mode: Option<&'a str>,
    deliver_at: Option<&'a str>,
    policy: Option<&'a str>,
    key: Option<IdempotencyKey>,
    headers: Headers,
    content_type: ContentType,
    payload: &'a [u8],
    source: &'a Bytes,
}

/// The event in a JSON body. `source` is the buffer that `body` borrows from; `key` is the request's
/// `Idempotency-Key`, with which the body's own must agree.
pub(crate) fn event_from_json(
    body: &EventBody<'_>,
    source: &Bytes,
    key: Option<IdempotencyKey>,
    ground: &mut Ground<'_>,
) -> Result<NewEvent, Problem> {
    let origin = Origin::Json;
    let payload = body.payload.ok_or_else(|| {
        let detail = "`payload` is missing: the JSON value to deliver (null is one)";
        Problem::at(Code::MissingField, origin.at("payload"), detail)
    })?;
    let draft = Draft {
        origin,
        url: text(&body.url),
        kind: text(&body.kind),
        id: text(&body.id),
        application: text(&body.application),
        mode: text(&body.mode),
        deliver_at: text(&body.deliver_at),
        policy: text(&body.policy),
        key: agreed_key(key, text(&body.idempotency_key))?,
        headers: json_headers(body.headers.as_ref())?,
        content_type: ContentType::default(),
        payload: payload.get().as_bytes(),
        source,
    };
    new_event(draft, ground)
}

fn text<'a>(field: &'a Option<Text<'_>>) -> Option<&'a str> {
    field.as_ref().map(|text| &*text.0)
}

fn agreed_key(
    header: Option<IdempotencyKey>,
    field: Option<&str>,
) -> Result<Option<IdempotencyKey>, Problem> {
    let at = || Origin::Json.at("idempotency_key");
    let field = field.map(IdempotencyKey::parse).transpose().map_err(|error| invalid(&error, at()))?;
    match (header, field) {
        (Some(header), Some(field)) if header != field => {
            let detail = "the header Idempotency-Key and the field `idempotency_key` differ";
            Err(Problem::at(Code::KeyMismatch, at(), detail))
        }
        (header, field) => Ok(field.or(header)),
    }
}

fn json_headers(list: Option<&HeaderList<'_>>) -> Result<Headers, Problem> {
    let Some(HeaderList(pairs)) = list else { return Ok(Headers::default()) };
    let mut headers: Vec<Header> = Vec::with_capacity(pairs.len());
    // The one too many is refused by `Headers::new`: looking for repetitions is quadratic, and bounded by this.
    for (name, value) in pairs.iter().take(MAX_HEADERS + 1) {
        let at = || At::field(&["headers", name]);
        let header = Header::new(name, value).map_err(|error| invalid(&error, at()))?;
        if headers.iter().any(|known| known.name() == header.name()) {
            return Err(Problem::at(
                Code::DuplicateField,
                at(),
                format!("header {} appears twice", header.name()),
            ));
        }
        headers.push(header);
    }
    Headers::new(headers).map_err(|error| invalid(&error, At::field(&["headers"])))
}

/// The prefix of headers that are passed on.
const PASSED_ON: &str = "teimoso-header-";
/// The headers that say what a JSON body's fields say.
const RAW_HEADERS: &[&str] = &[
    "teimoso-url",
    "teimoso-type",
    "teimoso-id",
    "teimoso-application",
    "teimoso-policy",
    "teimoso-mode",
    "teimoso-deliver-at",
];

/// The event around a raw payload.
pub(crate) fn event_from_raw(
    headers: &HeaderMap,
    payload: &Bytes,
    ground: &mut Ground<'_>,
) -> Result<NewEvent, Problem> {
    let origin = Origin::Raw;
    let field = |name: &'static str| single(headers, &http::HeaderName::from_static(name));
    let content_type = single(headers, &CONTENT_TYPE)?.unwrap_or("application/octet-stream");
    let draft = Draft {
        origin,
        url: field("teimoso-url")?,
        kind: field("teimoso-type")?,
        id: field("teimoso-id")?,
        application: field("teimoso-application")?,
        mode: field("teimoso-mode")?,
        deliver_at: field("teimoso-deliver-at")?,
        policy: field("teimoso-policy")?,
        key: idempotency_key(headers)?,
        headers: raw_headers(headers)?,
        content_type: ContentType::parse(content_type)
            .map_err(|error| invalid(&error, origin.at("content_type")))?,
        payload,
        source: payload,
    };
    new_event(draft, ground)
}

fn raw_headers(headers: &HeaderMap) -> Result<Headers, Problem> {
    let mut passed = Vec::new();
    for (name, value) in headers {
        let name = name.as_str();
        let at = || At::Header(name.to_owned());
        if let Some(own) = name.strip_prefix(PASSED_ON) {
            let value = value.to_str().map_err(|_| {
                Problem::at(Code::InvalidValue, at(), "headers must have values of visible ASCII")
            })?;
            passed.push(Header::new(own, value).map_err(|error| invalid(&error, at()))?);
        } else if name.starts_with("teimoso-") && !RAW_HEADERS.contains(&name) {
            let detail = format!("unknown header {name}; {}", suggestion(name, RAW_HEADERS));
            return Err(Problem::at(Code::UnknownField, at(), detail));
        }
    }
    Headers::new(passed).map_err(|error| invalid(&error, At::Header("Teimoso-Header-*".to_owned())))
}

fn new_event(draft: Draft<'_>, ground: &mut Ground<'_>) -> Result<NewEvent, Problem> {
    let origin = draft.origin;
    if draft.payload.len() > ground.max_payload {
        return Err(Problem::too_large("the payload", ground.max_payload));
    }
    let asked = draft.deliver_at.map(|text| deliver_at(text, origin)).transpose()?;
    let id = draft.id.map(|text| own_id(text, origin)).transpose()?;
    let named = id.is_some() || draft.key.is_some();
    let mut event = NewEvent {
        application: parsed(draft.application, Application::parse, origin)?.unwrap_or_default(),
        id,
        idempotency_key: draft.key,
        fingerprint: [0; 16],
        kind: parsed(draft.kind, EventType::parse, origin)?,
        content_type: draft.content_type,
        headers: draft.headers,
        payload: kept(draft.payload, draft.source),
        destination: draft.url.map(|url| destination(url, origin, ground)).transpose()?,
        mode: draft.mode.map(|text| mode(text, origin)).transpose()?.unwrap_or(Mode::AtLeastOnce),
        policy: draft.policy.map(|text| policy(text, origin)).transpose()?,
        deliver_at: asked.filter(|at| *at > ground.clock.now()),
    };
    // Nobody compares the fingerprint of an event that has no name to repeat.
    if named {
        event.fingerprint = fingerprint(&event, asked);
    }
    Ok(event)
}

fn parsed<T>(
    text: Option<&str>,
    parse: fn(&str) -> Result<T, InvalidValue>,
    origin: Origin,
) -> Result<Option<T>, Problem> {
    text.map(parse).transpose().map_err(|error| invalid(&error, origin.at(error.field())))
}

fn invalid(error: &InvalidValue, at: At) -> Problem {
    Problem::at(Code::InvalidValue, at, error.to_string())
}

/// Ids of our own form are given out, never brought: a reader could not tell which one is meant.
fn own_id(text: &str, origin: Origin) -> Result<EventId, Problem> {
    match EventId::parse(text) {
        Ok(id @ EventId::Named(_)) => Ok(id),
        Ok(EventId::Own(_)) => {
            let detail = "id must not be `evt_` followed by a UUID: that form is given out by the server";
            Err(Problem::at(Code::InvalidValue, origin.at("id"), detail))
        }
        Err(error) => Err(invalid(&error, origin.at("id"))),
    }
}

fn destination(url: &str, origin: Origin, ground: &mut Ground<'_>) -> Result<Destination, Problem> {
    (ground.check_url)(url).map_err(|refused| {
        let code =
            if refused.code == "blocked_address" { Code::BlockedAddress } else { Code::InvalidDestination };
        Problem::at(code, origin.at("url"), refused.sentence)
    })
}

fn mode(text: &str, origin: Origin) -> Result<Mode, Problem> {
    Mode::from_name(text).ok_or_else(|| {
        let names: Vec<_> = Mode::ALL.iter().map(|mode| mode.name()).collect();
        let detail = format!("unknown mode; {}", suggestion(text, &names));
        Problem::at(Code::InvalidValue, origin.at("mode"), detail)
    })
}

fn policy(text: &str, origin: Origin) -> Result<PolicyName, Problem> {
    let refuse = |detail: String| Problem::at(Code::UnknownPolicy, origin.at("policy"), detail);
    let known = || Preset::for_deliveries().map(Preset::name);
    match text.parse::<Preset>() {
        Ok(preset) if Preset::for_deliveries().contains(&preset) => {
            PolicyName::parse(text).map_err(|error| invalid(&error, origin.at("policy")))
        }
        Ok(_) => {
            let known = known().join(" or ");
            Err(refuse(format!("the policy {text} is for clients; a delivery's is {known}")))
        }
        Err(_) => Err(refuse(format!("unknown policy; {}", suggestion(text, &known())))),
    }
}

fn deliver_at(text: &str, origin: Origin) -> Result<Millis, Problem> {
    time::parse(text)
        .map_err(|rule| Problem::at(Code::InvalidValue, origin.at("deliver_at"), rule.to_string()))
}

/// Payloads above this are shared with the request's buffer, below it copied.
const SHARED_FROM_BYTES: usize = 16 * 1024;

/// The payload without its envelope. A small slice would keep a connection's whole read buffer alive for
/// as long as a store keeps the payload in memory; copying it costs less than that.
fn kept(payload: &[u8], source: &Bytes) -> Bytes {
    if payload.len() >= SHARED_FROM_BYTES && payload.len() * 2 >= source.len() {
        source.slice_ref(payload)
    } else {
        Bytes::copy_from_slice(payload)
    }
}

/// The replay job in a body.
pub(crate) fn replay_from_json(body: &ReplayBody<'_>) -> Result<NewReplay, Problem> {
    let max = MAX_REPLAY_RATE_PER_SECOND;
    let rate = match body.rate {
        None => DEFAULT_REPLAY_RATE,
        Some(rate) => u32::try_from(rate).ok().filter(|rate| (1..=max).contains(rate)).ok_or_else(|| {
            let detail = format!("rate must be 1 to {max} deliveries per second");
            Problem::at(Code::InvalidValue, At::field(&["rate"]), detail)
        })?,
    };
    let filter = replay_filter(&body.filter)?;
    Ok(NewReplay { filter, rate, dry_run: body.dry_run.unwrap_or(false) })
}

fn replay_filter(body: &ReplayFilterBody<'_>) -> Result<ReplayFilter, Problem> {
    let at = |name| At::field(&["filter", name]);
    let instant = |text: &str, name| {
        time::parse_bound(text).map_err(|rule| Problem::at(Code::InvalidValue, at(name), rule.to_string()))
    };
    let reason = |text: &str| {
        DeadReason::from_name(text).ok_or_else(|| {
            let names: Vec<_> = DeadReason::ALL.iter().map(|reason| reason.name()).collect();
            let detail = format!("unknown reason; {}", suggestion(text, &names));
            Problem::at(Code::InvalidValue, at("reason"), detail)
        })
    };
    Ok(ReplayFilter {
        reason: body.reason.as_ref().map(|text| reason(&text.0)).transpose()?,
        since: body.since.as_ref().map(|text| instant(&text.0, "since")).transpose()?,
        until: body.until.as_ref().map(|text| instant(&text.0, "until")).transpose()?,
    })
}

/// The parameters of `GET /v1/events`.
pub(crate) fn event_filter(raw: Option<&str>) -> Result<EventFilter, Problem> {
    let query = Query::parse(raw, &["type", "since", "until", "cursor", "limit"])?;
    Ok(EventFilter {
        kind: queried(&query, "type", |text| {
            EventType::parse(text).map_err(|error| error.rule().to_owned())
        })?,
        since: queried(&query, "since", queried_instant)?,
        until: queried(&query, "until", queried_instant)?,
        cursor: query.get("cursor").map(str::to_owned),
        limit: queried(&query, "limit", limit)?.unwrap_or(DEFAULT_PAGE),
    })
}

/// The parameters of `GET /v1/deliveries`.
pub(crate) fn delivery_filter(raw: Option<&str>) -> Result<DeliveryFilter, Problem> {
    let query = Query::parse(raw, &["state", "reason", "type", "since", "until", "cursor", "limit"])?;
    Ok(DeliveryFilter {
        state: queried(&query, "state", |text| {
            let names: Vec<_> = DeliveryState::ALL.iter().map(|state| state.name()).collect();
            DeliveryState::from_name(text).ok_or_else(|| unknown(text, &names))
        })?,
        reason: queried(&query, "reason", |text| {
            let names: Vec<_> = DeadReason::ALL.iter().map(|reason| reason.name()).collect();
            DeadReason::from_name(text).ok_or_else(|| unknown(text, &names))
        })?,
        kind: queried(&query, "type", |text| {
            EventType::parse(text).map_err(|error| error.rule().to_owned())
        })?,
        since: queried(&query, "since", queried_instant)?,
        until: queried(&query, "until", queried_instant)?,
        cursor: query.get("cursor").map(str::to_owned),
        limit: queried(&query, "limit", limit)?.unwrap_or(DEFAULT_PAGE),
    })
}

fn queried<T>(
    query: &Query<'_>,
    name: &str,
    read: impl FnOnce(&str) -> Result<T, String>,
) -> Result<Option<T>, Problem> {
    query.get(name).map(read).transpose().map_err(|rule| refuse(name, Code::InvalidValue, &rule))
}

fn unknown(text: &str, names: &[&str]) -> String {
    format!("has an unknown value; {}", suggestion(text, names))
}

fn queried_instant(text: &str) -> Result<Millis, String> {
    time::parse_bound(text).map_err(|rule| rule.to_string())
}

fn limit(text: &str) -> Result<u32, String> {
    let limit = text.parse().ok().filter(|limit| (1..=MAX_PAGE).contains(limit));
    limit.ok_or_else(|| format!("must be 1 to {MAX_PAGE}"))
}

/// The answer to an accepted event. `in_batch`: a repetition is said in the line, for want of a header.
pub(crate) fn accepted(accepted: &Accepted, in_batch: bool) -> view::AcceptedView {
    let delivery = |(id, state): &(DeliveryId, DeliveryState)| view::NewDelivery {
        id: id.to_string(),
        endpoint: None,
        state: state.name(),
    };
    view::AcceptedView {
        id: accepted.event.to_string(),
        deliveries: accepted.deliveries.iter().map(delivery).collect(),
        idempotent_replayed: (in_batch && accepted.replayed).then_some(true),
    }
}

/// A page of something.
pub(crate) fn page<T, V>(page: Page<T>, convert: impl Fn(T) -> V) -> view::List<V> {
    view::List { data: page.data.into_iter().map(convert).collect(), next_cursor: page.next_cursor }
}

/// An event with its deliveries.
pub(crate) fn event(event: EventView, config: &ApiConfig) -> view::Event {
    view::Event {
        id: event.id.to_string(),
        kind: event.kind.as_ref().map(ToString::to_string),
        application: event.application.to_string(),
        created_at: time::format(event.created_at),
        payload_bytes: event.payload_bytes,
        content_type: event.content_type.to_string(),
        deliveries: event.deliveries.into_iter().map(|each| delivery(each, config)).collect(),
    }
}

/// A delivery.
pub(crate) fn delivery(delivery: DeliveryView, config: &ApiConfig) -> view::Delivery {
    let preset = delivery.policy.as_ref().and_then(|name| name.as_str().parse().ok());
    let policy_attempts = preset.map_or_else(
        || config.default_policy.max_attempts(),
        |preset| RetryPolicy::preset(preset).max_attempts(),
    );
    view::Delivery {
        id: delivery.id.to_string(),
        event_id: delivery.event_id.to_string(),
        application: delivery.application.to_string(),
        endpoint: None,
        url: delivery.url.to_string(),
        state: delivery.state.name(),
        attempts: delivery.attempts,
        max_attempts: delivery.budget_from.saturating_add(policy_attempts.get()),
        mode: delivery.mode.name(),
        policy: delivery.policy.as_ref().map(ToString::to_string),
        reason: delivery.reason.map(DeadReason::name),
        next_attempt_at: delivery.next_attempt.map(|(at, _)| time::format(at)),
        next_attempt_why: delivery.next_attempt.map(|(_, why)| why.name()),
        created_at: time::format(delivery.created_at),
        finished_at: delivery.finished_at.map(time::format),
        last_status: delivery.last_status,
        last_error: delivery.last_error.map(String::from),
    }
}

/// An attempt of the delivery `id`.
pub(crate) fn attempt(id: DeliveryId, attempt: &AttemptView, config: &ApiConfig) -> view::Attempt {
    let record = &attempt.record;
    let timings = record.timings;
    let millis = |wait: std::time::Duration| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    let response = record.response.as_deref();
    let body = response.map(|kept| response_body(&kept.body, kept.truncated));
    let (response_body, response_body_base64) = body.unwrap_or_default();
    view::Attempt {
        delivery_id: id.to_string(),
        number: record.number.get(),
        started_at: time::format(record.started_at),
        duration_ms: millis(timings.total),
        fate: record.fate.name(),
        status: record.status,
        error_kind: record.error_kind.map(|kind| kind.name()),
        error: record.error.as_ref().map(ToString::to_string),
        decision: record.decision.name(),
        wait_ms: record.wait.map(|(wait, _)| millis(wait)),
        wait_source: record.wait.map(|(_, source)| wait_source(source)),
        peer: record.peer,
        // Deliveries speak nothing else.
        http_version: record.status.map(|_| "HTTP/1.1"),
        timings_ms: view::Timings {
            dns: timings.dns.map(millis),
            connect: timings.connect.map(millis),
            tls: timings.tls.map(millis),
            first_byte: timings.first_byte.map(millis),
            total: millis(timings.total),
        },
        request_headers: request_headers(attempt, config),
        response_headers: response.map(|kept| header_object(&kept.headers)),
        response_body,
        response_body_base64,
        response_truncated: response.is_some_and(|kept| kept.truncated),
    }
}

const fn wait_source(source: WaitSource) -> &'static str {
    match source {
        WaitSource::Schedule => "schedule",
        WaitSource::RetryAfter => "retry_after",
    }
}

/// What the attempt's request carried. Not recorded: it follows from the event and the attempt.
fn request_headers(attempt: &AttemptView, config: &ApiConfig) -> view::HeaderObject {
    let mut headers = view::HeaderObject::default();
    let mut push = |name: &str, value: &dyn Display| headers.push(name, &value.to_string());
    push("content-type", &attempt.content_type);
    push("webhook-id", &attempt.event_id);
    push("webhook-timestamp", &(attempt.record.started_at.get() / 1_000));
    push("user-agent", &format_args!("teimoso/{}", config.version));
    push("teimoso-attempt", &attempt.record.number.get());
    for header in attempt.headers.iter() {
        push(header.name(), &header.value());
    }
    headers
}

fn header_object(lines: &str) -> view::HeaderObject {
    let mut headers = view::HeaderObject::default();
    for (name, value) in lines.lines().filter_map(|line| line.split_once(": ")) {
        headers.push(name, value);
    }
    headers
}

/// The body as text and, if the text is not the whole truth, in base64. A character that the cut itself
/// halved is no reason for that.
fn response_body(body: &[u8], truncated: bool) -> (Option<String>, Option<String>) {
    let whole = match std::str::from_utf8(body) {
        Ok(_) => true,
        Err(error) => truncated && error.error_len().is_none(),
    };
    let base64 = (!whole).then(|| BASE64_STANDARD.encode(body));
    (Some(String::from_utf8_lossy(body).into_owned()), base64)
}

/// A replay job.
pub(crate) fn replay(replay: &Replay) -> view::Replay {
    view::Replay {
        id: replay.id.map(|id| id.to_string()),
        state: replay.state.name(),
        filter: view::ReplayFilter {
            reason: replay.filter.reason.map(DeadReason::name),
            since: replay.filter.since.map(time::format),
            until: replay.filter.until.map(time::format),
        },
        rate: replay.rate,
        estimated: replay.estimated,
        done: replay.done,
        failed: replay.failed,
        created_at: time::format(replay.created_at),
        finished_at: replay.finished_at.map(time::format),
    }
}

/// The counters, as of `now`.
pub(crate) fn stats(stats: &Stats, info: &StoreInfo, now: Millis) -> view::Stats {
    let counts = stats.counts;
    view::Stats {
        deliveries: view::States {
            pending: counts.pending,
            in_flight: counts.in_flight,
            scheduled: counts.scheduled,
            delivered: counts.delivered,
            dead: counts.dead,
            cancelled: counts.cancelled,
        },
        accepted: counts.accepted,
        expunged: counts.expunged,
        oldest_due_age_seconds: stats.oldest_due.map(|due| now.since(due).as_secs_f64()),
        lanes: stats.lanes,
        store: view::StoreView {
            kind: info.kind,
            bytes: stats.bytes,
            durability: info.durability,
            description: info.description.clone(),
        },
    }
}
