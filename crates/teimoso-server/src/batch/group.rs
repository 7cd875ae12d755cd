//! A group of lines: read, stored in one call, answered in one piece. Deliberately absent: the network.

use bytes::Bytes;
use serde::Serialize;
use teimoso_delivery::model::{Destination, NewEvent};
use teimoso_delivery::ports::{Destinations, RefusedDestination};

use super::GROUP_LINES;
use super::lines::Line;
use crate::App;
use crate::api::problem::{Origin, Problem};
use crate::api::request::EventBody;
use crate::api::{convert, json};

/// A rough answer's length, for one allocation per group.
const ANSWER_BYTES: usize = 160;

/// What a line became.
enum Slot {
    /// The next of the group's events, from this line.
    Event(u64),
    /// No event.
    Refused(Problem),
}

/// Lines that are stored together.
#[derive(Default)]
pub(super) struct Group {
    slots: Vec<Slot>,
    events: Vec<NewEvent>,
    bytes: usize,
}

/// A group's answer.
pub(super) struct Answered {
    /// One line per line.
    pub(super) answer: Bytes,
    /// How many lines it answers.
    pub(super) lines: usize,
    /// How many bytes they had.
    pub(super) bytes: usize,
}

impl Group {
    pub(super) fn is_empty(&self) -> bool {
        self.slots.is_empty()
    }

    pub(super) fn is_full(&self) -> bool {
        self.slots.len() >= GROUP_LINES
    }

    /// Reads a line into the group; returns how many bytes it holds.
    pub(super) fn take(&mut self, app: &App, urls: &mut Urls, line: Line) -> usize {
        let (number, bytes) = match line {
            Line::TooLong(number) => {
                self.refuse(Problem::too_large("the line", app.config().max_event_bytes()).on_line(number));
                return 0;
            }
            Line::Whole(number, bytes) => (number, bytes),
        };
        match read(app, urls, &bytes) {
            Ok(event) => {
                self.slots.push(Slot::Event(number));
                self.events.push(event);
            }
            Err(problem) => self.refuse(problem.on_line(number)),
        }
        self.bytes += bytes.len();
        bytes.len()
    }

    fn refuse(&mut self, problem: Problem) {
        self.slots.push(Slot::Refused(problem));
    }

    /// Stores the events and answers every line.
    pub(super) async fn answer(self, app: App) -> Answered {
        let Self { slots, events, bytes } = self;
        let stored = if events.is_empty() { Ok(Vec::new()) } else { app.accept_all(events).await };
        let (failure, mut results) = match stored {
            Ok(results) => (None, results.into_iter()),
            Err(problem) => (Some(problem), Vec::new().into_iter()),
        };
        let lines = slots.len();
        let mut answer = Vec::with_capacity(lines * ANSWER_BYTES);
        for slot in slots {
            match slot {
                Slot::Refused(problem) => write_line(&mut answer, &problem.body()),
                Slot::Event(number) => match (results.next(), &failure) {
                    (Some(Ok(accepted)), _) => write_line(&mut answer, &convert::accepted(&accepted, true)),
                    (Some(Err(rejection)), _) => {
                        let problem = Problem::rejected(rejection, Origin::Json).on_line(number);
                        write_line(&mut answer, &problem.body());
                    }
                    (None, Some(problem)) => write_line(&mut answer, &problem.clone().on_line(number).body()),
                    // `accept_all` answers for every event or fails.
                    (None, None) => {}
                },
            }
        }
        Answered { answer: answer.into(), lines, bytes }
    }
}

fn read(app: &App, urls: &mut Urls, line: &Bytes) -> Result<NewEvent, Problem> {
    let fields: EventBody<'_> = json::parse(line)?;
    let mut check = |url: &str| urls.check(app.destinations(), url);
    convert::event_from_json(&fields, line, None, &mut app.ground(&mut check))
}

/// One line of the answer.
pub(super) fn write_line(answer: &mut Vec<u8>, value: &impl Serialize) {
    // Writing to memory does not fail, and views hold nothing that JSON cannot.
    let _written = serde_json::to_writer(&mut *answer, value);
    answer.push(b'\n');
}

/// The last few URLs of a batch and what they were taken apart into: most batches name few.
#[derive(Default)]
pub(super) struct Urls {
    known: Vec<(Box<str>, Destination)>,
    oldest: usize,
}

impl Urls {
    const KEPT: usize = 16;
    const KEPT_BYTES: usize = 2048;

    fn check(&mut self, rules: &dyn Destinations, url: &str) -> Result<Destination, RefusedDestination> {
        if let Some((_, destination)) = self.known.iter().find(|(known, _)| **known == *url) {
            return Ok(destination.clone());
        }
        let destination = rules.check(url)?;
        if url.len() <= Self::KEPT_BYTES {
            self.keep((url.into(), destination.clone()));
        }
        Ok(destination)
    }

    fn keep(&mut self, entry: (Box<str>, Destination)) {
        if self.known.len() < Self::KEPT {
            self.known.push(entry);
            return;
        }
        self.known[self.oldest] = entry;
        self.oldest = (self.oldest + 1) % Self::KEPT;
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[derive(Default)]
    struct Counting(std::sync::atomic::AtomicUsize);

    impl Destinations for Counting {
        fn check(&self, url: &str) -> Result<Destination, RefusedDestination> {
            self.0.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            Ok(Destination { url: url.into(), lane: url.into(), origin: url.into() })
        }
    }

    #[test]
    fn a_repeated_url_is_judged_once_while_it_is_remembered() {
        let (rules, mut urls, asked) = (Counting::default(), Urls::default(), Cell::new(0));
        let mut ask = |url: &str| {
            asked.set(asked.get() + 1);
            assert_eq!(&*urls.check(&rules, url).unwrap().url, url);
        };
        for _ in 0..3 {
            (0..Urls::KEPT).for_each(|n| ask(&format!("http://h/{n}")));
        }
        ask("http://h/new");
        ask("http://h/0");
        assert_eq!(asked.get(), 3 * Urls::KEPT + 2);
        assert_eq!(rules.0.into_inner(), Urls::KEPT + 2);
    }
}
