//! A Forgejo in miniature on a loopback socket, for tests: it keeps state, counts what it executes, and fails as it is
//! told; absent: Git, permissions beyond one token, and anything the client does not ask for.

mod content;
mod fault;
mod issues;
mod pulls;
mod routes;
mod state;
mod wire;

use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use self::fault::{Fault, Reply, Rule};
pub use self::state::{PullState, State, TOKEN};
pub use self::wire::Asked;

/// A running Forgejo; its threads end with the process.
///
/// It begins with the repository `acme/site` of the organisation `acme`, the pull request 7 from `topic` at
/// [`Forge::HEAD`], the issue 3, and labels of a scope `status`.
pub struct Forge {
    url: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    state: State,
    asked: Vec<Asked>,
    rules: Vec<Rule>,
    turns: Vec<Turn>,
}

/// A change that comes with a certain request.
struct Turn {
    method: &'static str,
    ends: &'static str,
    after: usize,
    change: Box<dyn FnOnce(&mut State) + Send>,
}

impl Forge {
    /// The head of the pull request 7 in the beginning.
    pub const HEAD: &'static str = "1111111111111111111111111111111111111111";
    /// A head to move to.
    pub const NEXT_HEAD: &'static str = "2222222222222222222222222222222222222222";

    /// Starts one on a free port.
    ///
    /// # Panics
    ///
    /// No port can be listened on.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port of the loopback");
        let url = format!("http://{}", listener.local_addr().expect("a bound socket has an address"));
        let state = State::new(&url);
        let shared = Shared { state, asked: Vec::new(), rules: Vec::new(), turns: Vec::new() };
        let shared = Arc::new(Mutex::new(shared));
        let served = Arc::clone(&shared);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let served = Arc::clone(&served);
                std::thread::spawn(move || serve(&stream, &served));
            }
        });
        Self { url, shared }
    }

    /// Its address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Changes its state.
    pub fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.locked().state);
    }

    /// Changes its state just before it answers the `number`th request, from 1, of this method whose path ends so.
    pub fn at(
        &self,
        method: &'static str,
        ends: &'static str,
        number: usize,
        change: impl FnOnce(&mut State) + Send + 'static,
    ) {
        self.locked().turns.push(Turn { method, ends, after: number, change: Box::new(change) });
    }

    /// Lets requests of this method whose path ends so fail: the `from`th, from 1, and as many as `times` say.
    pub fn fail(&self, method: &'static str, ends: &'static str, from: usize, times: usize, fault: Fault) {
        self.locked().rules.push(Rule { method, ends, from, times, fault });
    }

    /// What was asked so far, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<Asked> {
        self.locked().asked.clone()
    }

    /// How many requests of this method came whose path ends so.
    #[must_use]
    pub fn count(&self, method: &str, ends: &str) -> usize {
        self.locked().asked.iter().filter(|asked| asked.is(method, ends)).count()
    }

    /// The writes that were executed, in order: `merge 7`, `create issue 4`.
    #[must_use]
    pub fn executed(&self) -> Vec<String> {
        self.locked().state.executed.clone()
    }

    /// A look at its state.
    #[must_use]
    pub fn see<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.locked().state)
    }

    fn locked(&self) -> MutexGuard<'_, Shared> {
        lock(&self.shared)
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers the requests of one connection until one of the two has enough.
fn serve(stream: &TcpStream, shared: &Mutex<Shared>) {
    while let Some(asked) = wire::read(stream) {
        let reply = lock(shared).reply(&asked);
        let goes_on = match reply {
            Reply::Whole(answer) => wire::write(stream, &answer, 0),
            Reply::Cut(answer) => {
                wire::write(stream, &answer, 1);
                false
            }
            Reply::Hangup => false,
        };
        if !goes_on {
            break;
        }
    }
    // A client that has left is no matter.
    let _left = stream.shutdown(Shutdown::Both);
}

impl Shared {
    fn reply(&mut self, asked: &Asked) -> Reply {
        self.asked.push(asked.clone());
        let nth =
            |asked_of: &dyn Fn(&Asked) -> bool| self.asked.iter().filter(|asked| asked_of(asked)).count();
        let (due, later): (Vec<Turn>, Vec<Turn>) =
            std::mem::take(&mut self.turns).into_iter().partition(|turn| {
                asked.is(turn.method, turn.ends)
                    && nth(&|other| other.is(turn.method, turn.ends)) >= turn.after
            });
        let fault = self.rules.iter().find(|rule| {
            let number = nth(&|other| other.is(rule.method, rule.ends));
            asked.is(rule.method, rule.ends) && (rule.from..rule.from + rule.times).contains(&number)
        });
        let fault = fault.map(|rule| rule.fault.clone());
        self.turns = later;
        due.into_iter().for_each(|turn| (turn.change)(&mut self.state));
        fault::reply(fault, || routes::answer(&mut self.state, asked))
    }
}
