//! Events to offer to a store, in one line each.

use std::sync::Arc;

use bytes::Bytes;

use crate::model::{
    Application, ContentType, Destination, EventId, EventType, Headers, IdempotencyKey, Millis, Mode,
    NewEvent, PolicyName,
};

/// An event for `url` with a small JSON payload.
///
/// # Panics
/// When `url` has no `://`.
#[must_use]
pub fn offer(url: &str) -> Offer {
    let (scheme, rest) = url.split_once("://").expect("a test's URL has a scheme");
    let lane = url.split('?').next().unwrap_or(url);
    let origin = format!("{scheme}://{}", rest.split(['/', '?']).next().unwrap_or(rest));
    let destination = Destination { url: url.into(), lane: lane.into(), origin: Arc::from(origin) };
    Offer(NewEvent {
        application: Application::default(),
        id: None,
        idempotency_key: None,
        fingerprint: [0; 16],
        kind: None,
        content_type: ContentType::default(),
        headers: Headers::default(),
        payload: Bytes::from_static(b"{\"tipo\":\"pedido.pago\"}"),
        destination: Some(destination),
        mode: Mode::AtLeastOnce,
        policy: None,
        deliver_at: None,
    })
}

/// Builds a [`NewEvent`]. Texts are validated by panicking: a test's are right.
#[derive(Debug, Clone)]
pub struct Offer(NewEvent);

const VALID: &str = "a test's texts are valid";

impl Offer {
    /// Of this tenant.
    #[must_use]
    pub fn of(mut self, application: &str) -> Self {
        self.0.application = Application::parse(application).expect(VALID);
        self
    }

    /// With the caller's own id.
    #[must_use]
    pub fn named(mut self, id: &str) -> Self {
        self.0.id = Some(EventId::named(id).expect(VALID));
        self
    }

    /// With an idempotency key.
    #[must_use]
    pub fn key(mut self, key: &str) -> Self {
        self.0.idempotency_key = Some(IdempotencyKey::parse(key).expect(VALID));
        self
    }

    /// With this byte as its whole fingerprint.
    #[must_use]
    pub const fn fingerprint(mut self, byte: u8) -> Self {
        self.0.fingerprint = [byte; 16];
        self
    }

    /// Of this type.
    #[must_use]
    pub fn kind(mut self, kind: &str) -> Self {
        self.0.kind = Some(EventType::parse(kind).expect(VALID));
        self
    }

    /// With these bytes.
    #[must_use]
    pub fn payload(mut self, payload: impl Into<Bytes>) -> Self {
        self.0.payload = payload.into();
        self
    }

    /// Under this policy.
    #[must_use]
    pub fn policy(mut self, name: &str) -> Self {
        self.0.policy = Some(PolicyName::parse(name).expect(VALID));
        self
    }

    /// Never sent twice if it may have taken effect.
    #[must_use]
    pub const fn at_most_once(mut self) -> Self {
        self.0.mode = Mode::AtMostOnce;
        self
    }

    /// Not before this instant.
    #[must_use]
    pub const fn deliver_at(mut self, at: Millis) -> Self {
        self.0.deliver_at = Some(at);
        self
    }

    /// Without a URL of its own.
    #[must_use]
    pub fn nowhere(mut self) -> Self {
        self.0.destination = None;
        self
    }

    /// The event.
    #[must_use]
    pub fn event(self) -> NewEvent {
        self.0
    }
}
