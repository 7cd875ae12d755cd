//! `/v1/events/raw`: the body is the payload, whatever it is; headers say the rest.

use axum::extract::{Request, State};

use super::{Answer, body, events};
use crate::App;
use crate::api::convert;
use crate::api::header::refuse_encoding;
use crate::api::problem::Origin;

/// `POST /v1/events/raw`.
pub(super) async fn create(State(app): State<App>, request: Request) -> Answer {
    let _admitted = app.admit_change()?;
    let (head, body) = request.into_parts();
    refuse_encoding(&head.headers)?;
    let body = body::read(&app, &head.headers, body, app.config().max_payload).await?;
    let event = {
        let mut check = |url: &str| app.destinations().check(url);
        convert::event_from_raw(&head.headers, &body.bytes, &mut app.ground(&mut check))?
    };
    events::accept(&app, event, Origin::Raw).await
}
