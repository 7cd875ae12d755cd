//! What machines and operators ask the server about itself. Never shed: a busy server is not a dead one.

use axum::extract::State;
use axum::response::Response;
use http::StatusCode;
use serde_json::json;

use super::{Answer, json as answer};
use crate::App;
use crate::api::convert;
use crate::api::problem::Problem;

/// `GET /livez`: the process answers.
pub(super) async fn live() -> Response {
    answer(StatusCode::OK, &json!({ "status": "ok" }))
}

/// `GET /readyz`: it takes events. 503 while draining, and when the store would refuse them.
pub(super) async fn ready(State(app): State<App>) -> Answer {
    if app.is_draining() {
        return Err(Problem::draining());
    }
    app.health().map_err(Problem::unready)?;
    Ok(answer(StatusCode::OK, &json!({ "status": "ready" })))
}

/// `GET /v1/stats`.
pub(super) async fn stats(State(app): State<App>) -> Answer {
    let _admitted = app.admit()?;
    let stats = app.stats().await?;
    Ok(answer(StatusCode::OK, &convert::stats(&stats, &app.info(), app.now())))
}
