//! `/v1/events/batch`: NDJSON in, NDJSON out. Deliberately absent: everything after the head, which is
//! [`crate::batch`]'s.

use axum::body::{Body, BodyDataStream};
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use http::HeaderMap;
use http::header::{CONTENT_TYPE, EXPECT, HeaderValue};

use super::{Answer, events};
use crate::App;
use crate::api::header::require_media_type;
use crate::api::problem::{At, Code, Problem};
use crate::batch::Batch;

const NDJSON: &str = "application/x-ndjson";

/// `POST /v1/events/batch`.
pub(super) async fn create(State(app): State<App>, request: Request) -> Answer {
    let admitted = app.admit_change()?;
    let (head, body) = request.into_parts();
    require_media_type(&head.headers, NDJSON)?;
    refuse_key(&head.headers)?;
    let holds = (admitted, app.admit_batch()?);
    let durability = app.durability();
    let mut input = body.into_data_stream();
    // "100 Continue" can only be said before the answer begins, and is said when the body is asked for.
    let first = if head.headers.contains_key(EXPECT) { first_chunk(&app, &mut input).await? } else { None };
    let mut response = Response::new(Body::from_stream(Batch::new(app, holds, first, input)));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(NDJSON));
    response.headers_mut().insert(&events::DURABILITY, durability);
    Ok(response)
}

async fn first_chunk(app: &App, input: &mut BodyDataStream) -> Result<Option<Bytes>, Problem> {
    tokio::select! {
        chunk = input.next() => Ok(chunk.and_then(Result::ok)),
        () = app.clock().sleep(app.config().body_read_timeout) => Err(Problem::late_body(app.config())),
    }
}

fn refuse_key(headers: &HeaderMap) -> Result<(), Problem> {
    if !headers.contains_key("idempotency-key") {
        return Ok(());
    }
    let at = At::Header("Idempotency-Key".to_owned());
    let detail = "a batch has no key of its own; give each line its `idempotency_key`";
    Err(Problem::at(Code::InvalidValue, at, detail))
}
