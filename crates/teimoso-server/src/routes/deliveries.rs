//! `/v1/deliveries`: where each stands and why, and the orders a person may give.

use axum::extract::{RawQuery, Request, State};
use http::StatusCode;
use teimoso_delivery::model::{DeliveryId, DeliveryState};
use teimoso_delivery::store::{CancelOutcome, RetryOutcome};

use super::{Answer, RawId, body, json, path_id};
use crate::App;
use crate::api::problem::{Code, Problem};
use crate::api::request::RetryBody;
use crate::api::{convert, header, json as strict, view};

/// Largest body of an order.
const ORDER_BYTES: usize = 64 * 1024;

/// `GET /v1/deliveries`.
pub(super) async fn list(State(app): State<App>, RawQuery(query): RawQuery) -> Answer {
    let _admitted = app.admit()?;
    let page = app.deliveries(convert::delivery_filter(query.as_deref())?).await?;
    Ok(json(StatusCode::OK, &convert::page(page, |delivery| convert::delivery(delivery, app.config()))))
}

/// `GET /v1/deliveries/{id}`: with its attempts.
pub(super) async fn show(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit()?;
    let id = delivery_id(id)?;
    let delivery = convert::delivery(app.delivery(id).await?, app.config());
    let attempt_records = attempt_records(&app, id).await?;
    Ok(json(StatusCode::OK, &view::DeliveryWithAttempts { delivery, attempt_records }))
}

/// `GET /v1/deliveries/{id}/attempts`.
pub(super) async fn attempts(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit()?;
    let id = delivery_id(id)?;
    app.delivery(id).await?;
    let data = attempt_records(&app, id).await?;
    Ok(json(StatusCode::OK, &view::List { data, next_cursor: None }))
}

async fn attempt_records(app: &App, id: DeliveryId) -> Result<Vec<view::Attempt>, Problem> {
    let attempts = app.attempts(id).await?;
    Ok(attempts.iter().map(|each| convert::attempt(id, each, app.config())).collect())
}

/// `POST /v1/deliveries/{id}/retry`: due now, with a fresh budget; a delivered one only when asked for
/// explicitly.
pub(super) async fn retry(State(app): State<App>, id: RawId, request: Request) -> Answer {
    let _admitted = app.admit_change()?;
    let id = delivery_id(id)?;
    let (head, body) = request.into_parts();
    let body = body::read(&app, &head.headers, body, ORDER_BYTES).await?;
    let explicit = if body.bytes.is_empty() {
        false
    } else {
        header::require_media_type(&head.headers, "application/json")?;
        strict::parse::<RetryBody>(&body.bytes)?.explicit.unwrap_or(false)
    };
    match app.retry(id, explicit).await? {
        RetryOutcome::Due => standing(&app, id, StatusCode::ACCEPTED).await,
        RetryOutcome::NotAllowed(state) => Err(not_allowed(state)),
        RetryOutcome::NotFound => Err(Problem::not_found("delivery")),
    }
}

fn not_allowed(state: DeliveryState) -> Problem {
    let detail = match state {
        DeliveryState::Delivered => {
            "it was delivered; to send it once more all the same, say {\"explicit\":true} (command line: --explicit)"
                .to_owned()
        }
        DeliveryState::Dead => "what came in was no event, and another attempt would not make it one; push a corrected one"
            .to_owned(),
        _ => format!("it is {} and will be attempted anyway", state.name()),
    };
    Problem::new(Code::WrongState, detail)
}

/// `POST /v1/deliveries/{id}/cancel`: 200 cancelled, 202 after the attempt that is in flight.
pub(super) async fn cancel(State(app): State<App>, id: RawId) -> Answer {
    let _admitted = app.admit_change()?;
    let id = delivery_id(id)?;
    match app.cancel(id).await? {
        CancelOutcome::Cancelled => standing(&app, id, StatusCode::OK).await,
        CancelOutcome::Requested => standing(&app, id, StatusCode::ACCEPTED).await,
        CancelOutcome::AlreadyFinal(state) => {
            Err(Problem::new(Code::WrongState, format!("it ended already: it is {}", state.name())))
        }
        CancelOutcome::NotFound => Err(Problem::not_found("delivery")),
    }
}

async fn standing(app: &App, id: DeliveryId, status: StatusCode) -> Answer {
    let delivery = app.delivery(id).await?;
    Ok(json(status, &convert::delivery(delivery, app.config())))
}

fn delivery_id(raw: RawId) -> Result<DeliveryId, Problem> {
    path_id(raw, "delivery", str::parse)
}
