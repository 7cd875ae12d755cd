//! `/v1/replays`: new attempts for many dead letters, as a durable job.

use axum::extract::{Request, State};
use http::StatusCode;
use http::header::{HeaderValue, LOCATION};
use teimoso_delivery::model::ReplayId;

use super::{Answer, RawId, body, json, path_id};
use crate::App;
use crate::api::problem::Problem;
use crate::api::request::ReplayBody;
use crate::api::{convert, header, json as strict};

/// Largest body of an order.
const ORDER_BYTES: usize = 64 * 1024;

/// `POST /v1/replays`: 202 with the job; a dry run leaves nothing behind and is answered 200.
pub(super) async fn create(State(app): State<App>, request: Request) -> Answer {
    let _admitted = app.admit_change()?;
    let (head, body) = request.into_parts();
    header::require_media_type(&head.headers, "application/json")?;
    let body = body::read(&app, &head.headers, body, ORDER_BYTES).await?;
    let order = convert::replay_from_json(&strict::parse::<ReplayBody<'_>>(&body.bytes)?)?;
    let replay = convert::replay(&app.start_replay(order).await?);
    let Some(id) = &replay.id else { return Ok(json(StatusCode::OK, &replay)) };
    let location = HeaderValue::try_from(format!("/v1/replays/{id}"));
    let mut response = json(StatusCode::ACCEPTED, &replay);
    if let Ok(location) = location {
        response.headers_mut().insert(LOCATION, location);
    }
    Ok(response)
}

/// `GET /v1/replays/{id}`.
pub(super) async fn show(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit()?;
    let replay = app.replay(replay_id(id)?).await?;
    Ok(json(StatusCode::OK, &convert::replay(&replay)))
}

/// `DELETE /v1/replays/{id}`: what it replayed already stays replayed.
pub(super) async fn cancel(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit_change()?;
    let replay = app.cancel_replay(replay_id(id)?).await?;
    Ok(json(StatusCode::OK, &convert::replay(&replay)))
}

fn replay_id(raw: RawId) -> Result<ReplayId, Problem> {
    path_id(raw, "replay", str::parse)
}
