//! Single answers: an event, a delivery, its attempts, the counters.

use bytes::Bytes;

use super::rows::{DeliveryRow, EventRow};
use super::state::State;
use crate::model::{ContentType, DeliveryId, DeliveryState, EventId, Key, Millis, NextWhy, PauseWhy};
use crate::store::{AttemptView, DeliveryView, EventView, Stats};

impl State {
    pub(super) fn event(&self, id: &EventId, now: Millis) -> Option<EventView> {
        self.find_event(id, now).map(|row| self.event_view(row))
    }

    pub(super) fn payload(&self, id: &EventId, now: Millis) -> Option<(ContentType, Bytes)> {
        let event = &self.find_event(id, now)?.event;
        Some((event.content_type.clone(), event.payload.clone()))
    }

    fn find_event(&self, id: &EventId, now: Millis) -> Option<&EventRow> {
        let key = match id {
            EventId::Own(_) => self.ids.event_key(id)?,
            EventId::Named(text) => self.names.by_id(text, now)?,
        };
        // Our id of an event whose caller brought one was never given out.
        self.events.get(&key).filter(|row| row.event.id == *id)
    }

    pub(super) fn delivery(&self, id: DeliveryId) -> Option<DeliveryView> {
        let key = self.ids.delivery_key(id)?;
        self.delivery_view(key, self.deliveries.get(&key)?)
    }

    pub(super) fn attempts(&self, id: DeliveryId) -> Vec<AttemptView> {
        let row = self.ids.delivery_key(id).and_then(|key| self.deliveries.get(&key));
        let Some(row) = row else { return Vec::new() };
        let Some(event) = self.events.get(&row.event).map(|row| &row.event) else { return Vec::new() };
        let view = |record: &crate::model::AttemptRecord| AttemptView {
            record: record.clone(),
            event_id: event.id.clone(),
            content_type: event.content_type.clone(),
            headers: event.headers.clone(),
        };
        row.attempts.iter().map(view).collect()
    }

    pub(super) fn stats(&self, now: Millis) -> Stats {
        Stats {
            counts: self.counts,
            oldest_due: self.lanes.oldest_due().filter(|due| *due <= now),
            lanes: self.lanes.len() as u64,
            bytes: self.payload_bytes,
        }
    }

    pub(super) fn event_view(&self, row: &EventRow) -> EventView {
        let event = &row.event;
        let view = |key: &Key| self.delivery_view(*key, self.deliveries.get(key)?);
        EventView {
            id: event.id.clone(),
            application: event.application.clone(),
            kind: event.kind.clone(),
            content_type: event.content_type.clone(),
            payload_bytes: event.payload.len() as u64,
            created_at: event.created_at,
            deliveries: row.deliveries.iter().filter_map(view).collect(),
        }
    }

    pub(super) fn delivery_view(&self, key: Key, row: &DeliveryRow) -> Option<DeliveryView> {
        let event = &self.events.get(&row.event)?.event;
        let last = row.attempts.last();
        Some(DeliveryView {
            id: self.ids.delivery(key),
            event_id: event.id.clone(),
            application: event.application.clone(),
            url: row.url.clone(),
            state: row.state,
            attempts: row.progress.attempts,
            budget_from: row.progress.budget_from,
            policy: event.policy.clone(),
            mode: row.progress.mode,
            reason: row.reason,
            next_attempt: self.next_attempt(row),
            created_at: row.created_at,
            finished_at: row.finished_at,
            last_status: last.and_then(|attempt| attempt.status),
            last_error: last.and_then(|attempt| attempt.error.clone()),
        })
    }

    /// When and why then, the lane's pause counted in; `None` unless it waits.
    fn next_attempt(&self, row: &DeliveryRow) -> Option<(Millis, NextWhy)> {
        if !matches!(row.state, DeliveryState::Pending | DeliveryState::Scheduled) {
            return None;
        }
        match self.lanes.record(row.lane).not_before {
            Some((until, PauseWhy::RetryAfter)) if until > row.due => Some((until, NextWhy::LanePaused)),
            Some((until, PauseWhy::Breaker)) if until > row.due => Some((until, NextWhy::Breaker)),
            _ => Some((row.due, row.progress.why)),
        }
    }
}
