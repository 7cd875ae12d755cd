//! `/v1/events`: one event in, and what became of it. Deliberately absent: batches and raw payloads.

use axum::extract::{RawQuery, Request, State};
use axum::response::Response;
use http::StatusCode;
use http::header::{
    CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION, X_CONTENT_TYPE_OPTIONS,
};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use teimoso_delivery::model::{EventId, NewEvent};
use teimoso_delivery::store::Accepted;

use super::{Answer, RawId, body, json, path_id};
use crate::App;
use crate::api::problem::{Origin, Problem};
use crate::api::request::EventBody;
use crate::api::{convert, header, json as strict, view};

pub(super) static DURABILITY: HeaderName = HeaderName::from_static("teimoso-durability");
static REPLAYED: HeaderName = HeaderName::from_static("idempotent-replayed");

/// What a caller's id may hold and a URL's path may not.
const PATH: &AsciiSet = &CONTROLS
    .add(b' ')
    .add(b'"')
    .add(b'<')
    .add(b'>')
    .add(b'`')
    .add(b'{')
    .add(b'}')
    .add(b'\\')
    .add(b'^')
    .add(b'|')
    .add(b'[')
    .add(b']')
    .add(b'%')
    .add(b'?')
    .add(b'#')
    .add(b'/');

/// `POST /v1/events`.
pub(super) async fn create(State(app): State<App>, request: Request) -> Answer {
    let _admitted = app.admit_change()?;
    let (head, body) = request.into_parts();
    header::require_media_type(&head.headers, "application/json")?;
    let key = header::idempotency_key(&head.headers)?;
    let body = body::read(&app, &head.headers, body, app.config().max_event_bytes()).await?;
    let event = {
        let fields: EventBody<'_> = strict::parse(&body.bytes)?;
        let mut check = |url: &str| app.destinations().check(url);
        convert::event_from_json(&fields, &body.bytes, key, &mut app.ground(&mut check))?
    };
    accept(&app, event, Origin::Json).await
}

pub(super) async fn accept(app: &App, event: NewEvent, origin: Origin) -> Answer {
    let accepted = app.accept(event).await?.map_err(|rejection| Problem::rejected(rejection, origin))?;
    Ok(accepted_response(app, &accepted))
}

fn accepted_response(app: &App, accepted: &Accepted) -> Response {
    let view = convert::accepted(accepted, false);
    let location = format!("/v1/events/{}", utf8_percent_encode(&view.id, PATH));
    let mut response = json(StatusCode::ACCEPTED, &view);
    let headers = response.headers_mut();
    if let Ok(location) = HeaderValue::try_from(location) {
        headers.insert(LOCATION, location);
    }
    headers.insert(&DURABILITY, app.durability());
    if accepted.replayed {
        headers.insert(&REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// `GET /v1/events`.
pub(super) async fn list(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let _admitted = app.admit()?;
    let page = app.events(convert::event_filter(query.as_deref())?).await?;
    Ok(json(StatusCode::OK, &convert::page(page, |event| convert::event(event, app.config()))))
}

/// `GET /v1/events/{id}`.
pub(super) async fn show(State(app): State<App>, id: RawId) -> Answer {
    show_one(&app, event_id(id)?).await
}

/// `GET /v1/events/raw`: the event that its producer called so.
pub(super) async fn show_raw(State(app): State<App>) -> Answer {
    show_one(&app, EventId::Named("raw".into())).await
}

/// `GET /v1/events/batch`: the event that its producer called so.
pub(super) async fn show_batch(State(app): State<App>) -> Answer {
    show_one(&app, EventId::Named("batch".into())).await
}

async fn show_one(app: &App, id: EventId) -> Answer {
    let _admitted = app.admit()?;
    let event = app.event(id).await?;
    Ok(json(StatusCode::OK, &convert::event(event, app.config())))
}

/// `GET /v1/events/{id}/attempts`: those of all its deliveries.
pub(super) async fn attempts(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit()?;
    let event = app.event(event_id(id)?).await?;
    let mut data = Vec::new();
    for delivery in event.deliveries {
        let attempts = app.attempts(delivery.id).await?;
        data.extend(attempts.iter().map(|each| convert::attempt(delivery.id, each, app.config())));
    }
    Ok(json(StatusCode::OK, &view::List { data, next_cursor: None }))
}

/// `GET /v1/events/{id}/payload`: the exact bytes (G7).
pub(super) async fn payload(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit()?;
    let (content_type, bytes) = app.payload(event_id(id)?).await?;
    let mut response = Response::new(bytes.into());
    let headers = response.headers_mut();
    if let Ok(content_type) = HeaderValue::try_from(content_type.as_str()) {
        headers.insert(CONTENT_TYPE, content_type);
    }
    // A payload is a stranger's: a browser that opens it must neither guess its type nor run it as ours.
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static("default-src 'none'; sandbox"));
    Ok(response)
}

fn event_id(raw: RawId) -> Result<EventId, Problem> {
    path_id(raw, "event", EventId::parse)
}
