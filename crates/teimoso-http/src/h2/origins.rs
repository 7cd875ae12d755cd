//! Which origins speak HTTP/2, and over which connection; absent: the connecting itself, and connections of HTTP/1.1.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::{Http2, Lease};
use crate::target::Origin;

/// Origins whose connection or version is remembered, at most; beyond it, those without a live connection are
/// forgotten first.
const ORIGINS_MAX: usize = 1024;

/// What is known of each origin.
#[derive(Default)]
pub(crate) struct Origins(Mutex<HashMap<Arc<Origin>, Arc<Slot>>>);

/// One origin's place: its connection, and the turn of whoever makes the next one.
#[derive(Default)]
pub(crate) struct Slot {
    known: Mutex<Known>,
    turn: tokio::sync::Mutex<()>,
}

/// What was last seen of an origin.
#[derive(Default)]
enum Known {
    #[default]
    Nothing,
    /// It agreed to HTTP/1.1 only, where each exchange has a connection of its own: nobody needs to wait for another.
    Http1,
    Http2(Http2),
}

/// The right to make an origin's next connection. It passes on when it is dropped, however the connecting ends.
pub(crate) type Turn<'a> = tokio::sync::MutexGuard<'a, ()>;

impl Origins {
    pub(crate) fn slot(&self, origin: &Arc<Origin>) -> Arc<Slot> {
        // Whole at every instant: entries come and go at once.
        let mut slots = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(slot) = slots.get(origin) {
            return slot.clone();
        }
        if slots.len() >= ORIGINS_MAX {
            make_room(&mut slots);
        }
        slots.entry(origin.clone()).or_default().clone()
    }
}

fn make_room(slots: &mut HashMap<Arc<Origin>, Arc<Slot>>) {
    slots.retain(|_, slot| slot.is_needed());
    if slots.len() >= ORIGINS_MAX
        && let Some(any) = slots.keys().next().cloned()
    {
        slots.remove(&any);
    }
}

impl Slot {
    /// The right to one exchange on the origin's connection, if there is one that takes it.
    pub(crate) fn lease(&self) -> Option<Lease> {
        match &*self.known() {
            Known::Http2(connection) => connection.lease(),
            Known::Http1 | Known::Nothing => None,
        }
    }

    pub(crate) fn speaks_http1_only(&self) -> bool {
        matches!(*self.known(), Known::Http1)
    }

    /// Waits until nobody else is making a connection to this origin.
    pub(crate) async fn turn(&self) -> Turn<'_> {
        self.turn.lock().await
    }

    pub(crate) fn saw_http1(&self) {
        self.learn(Known::Http1);
    }

    pub(crate) fn saw_http2(&self, connection: Http2) {
        self.learn(Known::Http2(connection));
    }

    fn learn(&self, known: Known) {
        let before = std::mem::replace(&mut *self.known(), known);
        drop(before);
    }

    fn is_needed(&self) -> bool {
        let connected = matches!(&*self.known(), Known::Http2(connection) if connection.is_open());
        connected || self.turn.try_lock().is_err()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Target;

    fn origin(number: usize) -> Arc<Origin> {
        Target::parse(&format!("https://h{number}.test/")).unwrap().shared_origin().clone()
    }

    #[test]
    fn g11_remembered_origins_are_bounded_and_those_in_use_stay() {
        let origins = Origins::default();
        let used = origins.slot(&origin(0));
        let _turn = used.turn.try_lock().unwrap();
        for number in 1..ORIGINS_MAX + 10 {
            origins.slot(&origin(number)).saw_http1();
        }
        assert!(origins.0.lock().unwrap().len() <= ORIGINS_MAX);
        assert!(Arc::ptr_eq(&used, &origins.slot(&origin(0))));
    }

    #[tokio::test]
    async fn a_turn_that_is_given_up_passes_on() {
        let slot = Slot::default();
        let turn = slot.turn().await;
        assert!(slot.turn.try_lock().is_err());
        drop(turn);
        assert!(slot.turn.try_lock().is_ok());
    }
}
