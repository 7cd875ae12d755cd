//! The account: where every acknowledged event is, what arrived more than once and why, and what must not be.

mod repeats;
pub mod store;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use serde_json::Value;

use crate::havoc::Strike;
use crate::produce::{Ledger, Shape};
use crate::world::receiver::{Answer, Arrival};
pub use repeats::Repeats;
use store::Left;

/// How many sentences of one kind are kept.
const MOST_SENTENCES: usize = 5;

/// What the account is made of.
#[derive(Debug)]
pub struct Books {
    /// What was acknowledged.
    pub ledger: Ledger,
    /// What arrived.
    pub arrivals: Vec<Arrival>,
    /// What struck.
    pub strikes: Vec<Strike>,
    /// What is left in Redis, seen from outside.
    pub left: Left,
}

/// The result.
#[derive(Debug, Default)]
pub struct Account {
    /// Acknowledged events, by shape.
    pub acknowledged: BTreeMap<Shape, u64>,
    /// Of them, answered 200 at their receiver.
    pub delivered: u64,
    /// Kept as given up.
    pub dead: u64,
    /// Still due.
    pub waiting: u64,
    /// Nowhere.
    pub lost: u64,
    /// Complete requests at the receiver.
    pub requests: u64,
    /// What arrived more than once although nothing asked for it.
    pub repeats: Repeats,
    /// What must not be, each a sentence.
    pub wrong: Vec<String>,
}

impl Account {
    /// Of either design.
    pub fn of(books: &Books) -> Self {
        let mut account = Self { requests: books.arrivals.len() as u64, ..Self::default() };
        let delivered: BTreeSet<u64> = with(&books.arrivals, Answer::Ok);
        for (number, (shape, _)) in &books.ledger.acknowledged {
            *account.acknowledged.entry(*shape).or_default() += 1;
            let place = match number {
                number if delivered.contains(number) => &mut account.delivered,
                number if books.left.dead.contains(number) => &mut account.dead,
                number if books.left.waiting.contains(number) => &mut account.waiting,
                _ => &mut account.lost,
            };
            *place += 1;
        }
        account.repeats = Repeats::of(&books.arrivals, &books.strikes);
        account.wrong.extend(books.ledger.wrong.iter().take(MOST_SENTENCES).cloned());
        account
    }

    /// What only ours promises: nothing lost, nothing changed, nothing repeated without a cause, and a store that
    /// agrees with its receiver.
    pub fn hold_to_its_promises(&mut self, books: &Books) {
        let promised = [
            (self.lost, "acknowledged events are lost"),
            (self.repeats.unexplained.len() as u64, "requests were repeated without a cause"),
            (books.arrivals.iter().filter(|arrival| !arrival.intact).count() as u64, "bodies were changed"),
        ];
        for (count, what) in promised {
            if count > 0 {
                self.wrong.push(format!("{count} {what}"));
            }
        }
        self.wrong.extend(self.repeats.unexplained.iter().take(MOST_SENTENCES).cloned());
        self.wrong.extend(uninvited(books).into_iter().take(MOST_SENTENCES));
        self.wrong.extend(disagreements(books).into_iter().take(MOST_SENTENCES));
    }
}

/// The events that got this answer.
fn with(arrivals: &[Arrival], answer: Answer) -> BTreeSet<u64> {
    arrivals.iter().filter(|arrival| arrival.answer == answer).map(|arrival| arrival.number).collect()
}

/// What arrived although nobody was told that it was accepted.
fn uninvited(books: &Books) -> Vec<String> {
    let known =
        |number| books.ledger.acknowledged.contains_key(&number) || books.ledger.open.contains(&number);
    let numbers: BTreeSet<u64> = books.arrivals.iter().map(|arrival| arrival.number).collect();
    let unknown = numbers.into_iter().filter(|number| !known(*number));
    unknown.map(|number| format!("event {number} arrived and was never acknowledged")).collect()
}

/// Where the store says something else than the receiver: a state that nothing led to, an attempt's number that the
/// deciding request did not have.
fn disagreements(books: &Books) -> Vec<String> {
    let mut answers: HashMap<u64, Vec<(u64, Answer)>> = HashMap::new();
    for arrival in &books.arrivals {
        answers.entry(arrival.number).or_default().push((arrival.attempt.into(), arrival.answer));
    }
    let mut found = Vec::new();
    for (number, delivery) in &books.left.deliveries {
        let text = |field: &str| delivery[field].as_str().unwrap_or_default();
        let decided = match (text("state"), text("reason")) {
            ("delivered", _) => Answer::Ok,
            ("dead", "permanent_status") => Answer::Refused,
            // Given up for other reasons, or not at its end.
            _ => continue,
        };
        let attempts = delivery["attempts"].as_u64().unwrap_or_default();
        let got = answers.get(number).map_or(&[][..], Vec::as_slice);
        if !got.contains(&(attempts, decided)) {
            found.push(format!("event {number} is {delivery} after the requests {got:?}"));
        }
    }
    found
}

/// What had ended before a late sender went on must stay as it was.
pub fn changed(before: &HashMap<String, Value>, left: &Left) -> Vec<String> {
    let after: HashMap<&str, &Value> = left
        .deliveries
        .iter()
        .filter_map(|(_, delivery)| Some((delivery["id"].as_str()?, delivery)))
        .collect();
    let differs = |(id, was): &(&String, &Value)| after.get(id.as_str()).is_some_and(|is| is != was);
    before
        .iter()
        .filter(differs)
        .map(|(id, was)| format!("{id} was {was} and is {}", after[id.as_str()]))
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::clock;

    fn arrival(number: u64, attempt: u32, answer: Answer) -> Arrival {
        Arrival { number, attempt, at: clock::now(), by: Some(1), answer, intact: true }
    }

    fn books(acknowledged: &[u64], arrivals: Vec<Arrival>) -> Books {
        let named = |number: &u64| (*number, (Shape::Push, format!("evt_{number}")));
        let ledger = Ledger { acknowledged: acknowledged.iter().map(named).collect(), ..Ledger::default() };
        Books { ledger, arrivals, strikes: Vec::new(), left: Left::default() }
    }

    #[test]
    fn every_acknowledged_event_is_in_one_place_or_lost() {
        let mut books = books(&[1, 2, 3, 4], vec![arrival(1, 1, Answer::Ok), arrival(2, 1, Answer::Refused)]);
        books.left.dead.insert(2);
        books.left.waiting.insert(3);
        let mut account = Account::of(&books);
        assert_eq!((account.delivered, account.dead, account.waiting, account.lost), (1, 1, 1, 1));
        account.hold_to_its_promises(&books);
        assert_eq!(account.wrong, ["1 acknowledged events are lost"]);
    }

    #[test]
    fn a_store_that_says_something_else_than_the_receiver_is_found() {
        let mut books = books(&[1, 2], vec![arrival(1, 1, Answer::Unavailable), arrival(1, 2, Answer::Ok)]);
        books.left.waiting.insert(2);
        for (attempts, sentences) in [(2, 0), (1, 1), (3, 1)] {
            books.left.deliveries = vec![(1, json!({"state": "delivered", "attempts": attempts}))];
            assert_eq!(disagreements(&books).len(), sentences, "{attempts}");
        }
    }

    #[test]
    fn an_arrival_that_nobody_was_promised_is_found_and_an_open_one_is_not() {
        let mut books = books(&[], vec![arrival(1, 1, Answer::Ok), arrival(2, 1, Answer::Ok)]);
        books.ledger.open.insert(1);
        assert_eq!(uninvited(&books), ["event 2 arrived and was never acknowledged"]);
    }

    #[test]
    fn what_had_ended_and_is_different_is_found() {
        let before = HashMap::from([("dlv_1".to_owned(), json!({"id": "dlv_1", "attempts": 1}))]);
        let left = |attempts| Left {
            deliveries: vec![(1, json!({"id": "dlv_1", "attempts": attempts}))],
            ..Left::default()
        };
        assert_eq!(changed(&before, &left(1)), [""; 0]);
        assert_eq!(changed(&before, &left(2)).len(), 1);
    }
}
