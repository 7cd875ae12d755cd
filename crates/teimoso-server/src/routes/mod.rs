//! Methods and paths. Deliberately absent: what things mean; a route reads, asks [`App`], and answers.

mod batch;
mod body;
mod deliveries;
mod events;
mod health;
mod raw;
mod replays;

use axum::Router;
use axum::extract::Path;
use axum::extract::rejection::PathRejection;
use axum::response::Response;
use axum::routing::{get, post};
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{Method, StatusCode, Uri};
use serde::Serialize;

use crate::App;
use crate::api::problem::{Code, Problem};

/// Every route of version 1.
///
/// Use [`crate::serve`] to serve it: that adds what no route can do, such as limits on connections and
/// heads, the refusal of web pages, and a panic's answer.
pub fn router(app: App) -> Router {
    Router::new()
        .route("/v1/events", post(events::create).get(events::list))
        // A caller's id may be "raw" or "batch".
        .route("/v1/events/raw", post(raw::create).get(events::show_raw))
        .route("/v1/events/batch", post(batch::create).get(events::show_batch))
        .route("/v1/events/{id}", get(events::show))
        .route("/v1/events/{id}/attempts", get(events::attempts))
        .route("/v1/events/{id}/payload", get(events::payload))
        .route("/v1/deliveries", get(deliveries::list))
        .route("/v1/deliveries/{id}", get(deliveries::show))
        .route("/v1/deliveries/{id}/attempts", get(deliveries::attempts))
        .route("/v1/deliveries/{id}/retry", post(deliveries::retry))
        .route("/v1/deliveries/{id}/cancel", post(deliveries::cancel))
        .route("/v1/replays", post(replays::create))
        .route("/v1/replays/{id}", get(replays::show).delete(replays::cancel))
        .route("/v1/stats", get(health::stats))
        .route("/livez", get(health::live))
        .route("/readyz", get(health::ready))
        .fallback(unknown_path)
        .method_not_allowed_fallback(wrong_method)
        .with_state(app)
}

async fn unknown_path(uri: Uri) -> Problem {
    Problem::new(Code::NotFound, format!("there is nothing at {}", uri.path()))
}

/// The router adds `Allow`.
async fn wrong_method(method: Method, uri: Uri) -> Problem {
    Problem::new(Code::MethodNotAllowed, format!("{method} is not allowed at {}; see Allow", uri.path()))
}

type Answer = Result<Response, Problem>;
type RawId = Result<Path<String>, PathRejection>;

/// The `{id}` of a path, decoded. What cannot be an id names nothing: 404.
fn path_id<T, E>(raw: RawId, what: &str, parse: impl Fn(&str) -> Result<T, E>) -> Result<T, Problem> {
    let Path(text) = raw.map_err(|_| Problem::not_found(what))?;
    parse(&text).map_err(|_| Problem::not_found(what))
}

fn json(status: StatusCode, value: &impl Serialize) -> Response {
    let body = serde_json::to_vec(value).expect("views hold nothing that JSON cannot");
    let mut response = Response::new(body.into());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}
