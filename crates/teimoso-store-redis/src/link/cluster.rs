//! Whoever has the slot of a key: any node that can be reached is asked for the map, whoever redirected us first.
//!
//! A redirection is never followed for the one command: everything of a prefix is in one slot, so the next connection
//! is made to its owner. Deliberately absent: a map of all slots, and reads from replicas.

use std::sync::{Mutex, MutexGuard, PoisonError};

use redis::{Cmd, Value, cmd};
use teimoso_delivery::ports::BoxFuture;
use tokio::sync::watch;

use super::failure::{Failure, Trouble};
use super::place::{Access, Host, Locate, Target, ask};

/// The nodes of a Cluster, for one key.
pub(crate) struct SlotOwner {
    key: String,
    access: Access,
    /// The URL's, which are asked when no other answers.
    seeds: Vec<Host>,
    /// Whom to ask, best first.
    nodes: Mutex<Vec<Host>>,
    /// Nobody tells of moves unasked: they are met.
    moves: watch::Sender<u64>,
}

impl SlotOwner {
    pub(crate) fn new(seeds: Vec<Host>, key: &str, access: Access) -> Self {
        let nodes = Mutex::new(seeds.clone());
        Self { key: key.to_owned(), access, seeds, nodes, moves: watch::Sender::new(0) }
    }

    fn nodes(&self) -> MutexGuard<'_, Vec<Host>> {
        self.nodes.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn ask_each(&self) -> Result<Target, Failure> {
        let (mut worst, nodes) = (None, self.nodes().clone());
        for node in nodes {
            match self.ask_one(&node).await {
                Ok(owner) => return self.access.to_master(&owner),
                Err(failure) => worst = Some(failure.at(&node).or_worse(worst)),
            }
        }
        Err(worst.unwrap_or_else(Failure::gone))
    }

    async fn ask_one(&self, node: &Host) -> Result<Host, Failure> {
        let questions = [command(&["CLUSTER", "KEYSLOT", &self.key]), command(&["CLUSTER", "SLOTS"])];
        let answers =
            ask(self.access.to(node)?, &questions).await.map_err(|failure| match failure.trouble {
                Trouble::Failed => Failure::new(Trouble::Unsuitable, "this redis is no node of a Cluster"),
                _ => failure,
            })?;
        let [Value::Int(slot), Value::Array(map)] = answers.as_slice() else {
            return Err(Failure::new(Trouble::Unsuitable, "this redis has no map of a Cluster"));
        };
        let ranges: Vec<Range> = map.iter().filter_map(|range| Range::read(range, node)).collect();
        let owner = ranges.iter().find(|range| range.holds(*slot)).map(|range| range.master.clone());
        self.learn(ranges.into_iter().map(|range| range.master), node);
        owner.ok_or_else(|| Failure::not_yet("the Cluster has no owner of our slot (yet)"))
    }

    /// Who is there, whoever answered first.
    fn learn(&self, masters: impl Iterator<Item = Host>, answered: &Host) {
        let mut nodes = vec![answered.clone()];
        for node in masters.chain(self.seeds.iter().cloned()) {
            if !nodes.contains(&node) {
                nodes.push(node);
            }
        }
        *self.nodes() = nodes;
    }
}

impl Locate for SlotOwner {
    fn locate(&self) -> BoxFuture<'_, Result<Target, Failure>> {
        Box::pin(self.ask_each())
    }

    /// Whoever we are sent to knows best; otherwise the next one is asked, for a node cut off has an old map.
    fn heard(&self, failure: &Failure) {
        let mut nodes = self.nodes();
        if let Some(owner) = failure.moved_to().and_then(Host::parse) {
            nodes.retain(|node| *node != owner);
            nodes.insert(0, owner);
        } else if failure.breaks_connection() && !nodes.is_empty() {
            nodes.rotate_left(1);
        }
    }

    fn moves(&self) -> watch::Receiver<u64> {
        self.moves.subscribe()
    }
}

/// Neighbouring slots and their owner.
struct Range {
    from: i64,
    to: i64,
    master: Host,
}

impl Range {
    /// A node that does not know its own address leaves it out: it is where it was asked.
    fn read(range: &Value, asked: &Host) -> Option<Self> {
        let Value::Array(parts) = range else { return None };
        let [Value::Int(from), Value::Int(to), Value::Array(master), ..] = parts.as_slice() else {
            return None;
        };
        let [name, Value::Int(port), ..] = master.as_slice() else { return None };
        let name = match name {
            Value::BulkString(name) if !name.is_empty() && name != b"?" => {
                String::from_utf8_lossy(name).into_owned()
            }
            _ => asked.name.clone(),
        };
        let master = Host { name, port: u16::try_from(*port).ok()? };
        Some(Self { from: *from, to: *to, master })
    }

    fn holds(&self, slot: i64) -> bool {
        (self.from..=self.to).contains(&slot)
    }
}

fn command(words: &[&str]) -> Cmd {
    let mut command = cmd(words[0]);
    command.arg(&words[1..]);
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> Host {
        Host::parse(text).unwrap()
    }

    fn owner() -> SlotOwner {
        let settings = redis::RedisConnectionInfo::default();
        let access = Access { settings, tls: false, authority: None };
        SlotOwner::new(vec![host("a:1"), host("b:2")], "k", access)
    }

    #[test]
    fn whoever_we_are_sent_to_is_asked_first_and_after_a_failure_the_next() {
        let owner = owner();
        let moved = redis::make_extension_error("MOVED".to_owned(), Some("1953 c:3".to_owned()));
        owner.heard(&Failure::from(moved));
        assert_eq!(*owner.nodes(), [host("c:3"), host("a:1"), host("b:2")]);
        owner.heard(&Failure::gone());
        assert_eq!(*owner.nodes(), [host("a:1"), host("b:2"), host("c:3")]);
        owner.heard(&Failure::new(Trouble::Full, "no room"));
        assert_eq!(*owner.nodes(), [host("a:1"), host("b:2"), host("c:3")]);
    }

    #[test]
    fn a_range_names_its_master_even_when_that_does_not_know_its_own_address() {
        let range = |name: Value| {
            let master = Value::Array(vec![name, Value::Int(7), Value::BulkString(b"id".to_vec())]);
            Value::Array(vec![Value::Int(5), Value::Int(9), master])
        };
        for (name, expected) in [
            (Value::BulkString(b"n".to_vec()), "n:7"),
            (Value::BulkString(Vec::new()), "a:7"),
            (Value::BulkString(b"?".to_vec()), "a:7"),
            (Value::Nil, "a:7"),
        ] {
            let read = Range::read(&range(name), &host("a:1")).unwrap();
            assert_eq!(read.master.to_string(), expected);
            assert_eq!(
                (read.holds(4), read.holds(5), read.holds(9), read.holds(10)),
                (false, true, true, false)
            );
        }
        assert!(Range::read(&Value::Okay, &host("a:1")).is_none());
    }
}
