//! A provider's double: a server on a free port of the loopback that knows its fixture's requests, answers them as the
//! fixture says, or fails as it is told, and keeps what it was asked. Absent: the meaning of anything.

use std::collections::VecDeque;
use std::io::BufReader;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::fixture::{Fixture, TOKEN};
use super::wire::{Asked, Reply, read, write};
use crate::account::{Secret, Settings};
use crate::media::MediaKind;

/// How a double fails at one request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// Not at all: the fixture's answer.
    None,
    /// Another answer. The request counts as executed unless the status is 429.
    Answer(Reply),
    /// Reads the request, executes it, and closes the connection in order.
    Close,
    /// Reads the request, executes it, and resets the connection.
    Reset,
    /// Resets the connection without having read the request.
    ResetUnread,
    /// Reads the request, executes it, and says nothing.
    Silence,
    /// Executes the request, and breaks off in the middle of the answer.
    Cut,
}

/// A running double; it stops when it is dropped.
pub struct Double {
    address: SocketAddr,
    shared: Arc<Shared>,
    listening: Option<JoinHandle<()>>,
}

struct Shared {
    fixture: Fixture,
    stopped: AtomicBool,
    world: Mutex<World>,
    arrived: Condvar,
}

#[derive(Default)]
struct World {
    script: VecDeque<Fault>,
    asked: Vec<Asked>,
    sends: Vec<Asked>,
    executed: usize,
    /// Connections that hear nothing more.
    held: Vec<TcpStream>,
}

impl Double {
    /// Starts one of this provider.
    ///
    /// # Panics
    ///
    /// There is no such fixture, or no free port.
    pub fn of(provider: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let fixture = Fixture::of(provider);
        let shared = Arc::new(Shared {
            fixture,
            stopped: AtomicBool::new(false),
            world: Mutex::default(),
            arrived: Condvar::new(),
        });
        let serving = Arc::clone(&shared);
        let listening = std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if serving.stopped.load(Ordering::Acquire) {
                    return;
                }
                let serving = Arc::clone(&serving);
                std::thread::spawn(move || serving.serve(&stream));
            }
        });
        Self { address, shared, listening: Some(listening) }
    }

    /// Its base URL.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// The account that it knows, at this URL.
    pub fn settings<'a>(&'a self, url: &'a str) -> Settings<'a> {
        let secret = |text: &str| Secret::new(text).expect("a token");
        Settings {
            server: Some(url),
            instance: self.shared.fixture.instance(),
            token: secret(TOKEN),
            client_token: Some(secret(&format!("{TOKEN}-client"))),
        }
    }

    /// Its fixture.
    pub fn fixture(&self) -> &Fixture {
        &self.shared.fixture
    }

    /// From here on it fails like this, one request after the other, and not at all after the last.
    pub fn fail(&self, faults: impl IntoIterator<Item = Fault>) {
        self.world().script = faults.into_iter().collect();
    }

    /// What it was asked so far and has read whole.
    pub fn asked(&self) -> Vec<Asked> {
        self.world().asked.clone()
    }

    /// The requests among them that send a message.
    pub fn sends(&self) -> Vec<Asked> {
        self.world().sends.clone()
    }

    /// Waits until so many have arrived.
    pub fn until_sends(&self, count: usize) {
        let mut world = self.world();
        while world.sends.len() < count {
            world = self.shared.arrived.wait(world).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// How many of those it executed: all but those that it refused with a 429, or a 401.
    pub fn executed(&self) -> usize {
        self.world().executed
    }

    fn world(&self) -> MutexGuard<'_, World> {
        self.shared.world()
    }
}

impl Drop for Double {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::Release);
        // Wakes the listener, which then sees that it is over.
        let woken = TcpStream::connect_timeout(&self.address, Duration::from_secs(5));
        if let (Ok(_), Some(listening)) = (woken, self.listening.take()) {
            let _ended = listening.join();
        }
        self.world().held.clear();
    }
}

impl Shared {
    fn world(&self) -> MutexGuard<'_, World> {
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self, stream: &TcpStream) {
        let mut reader = BufReader::new(stream);
        loop {
            // Before anything is read, for then nothing has been executed.
            if self.take_unread_reset(&reader) {
                return reset(stream);
            }
            let Some(asked) = read(&mut reader) else { return };
            let (fault, reply) = self.decide(asked);
            let goes_on = match fault {
                Fault::None | Fault::Answer(_) => write(stream, &reply.bytes(0)),
                Fault::Cut => {
                    write(stream, &reply.bytes(10));
                    false
                }
                Fault::Close => false,
                Fault::Reset | Fault::ResetUnread => return reset(stream),
                Fault::Silence => return self.world().held.extend(stream.try_clone()),
            };
            if !goes_on {
                let _gone = stream.shutdown(Shutdown::Write);
                return;
            }
        }
    }

    /// Whether the next fault is one that comes before reading; waits until there is something to read.
    fn take_unread_reset(&self, reader: &BufReader<&TcpStream>) -> bool {
        let mut byte = [0];
        let arrived = !reader.buffer().is_empty() || matches!(reader.get_ref().peek(&mut byte), Ok(1..));
        let mut world = self.world();
        let is_next = world.script.front() == Some(&Fault::ResetUnread);
        if arrived && is_next {
            world.script.pop_front();
        }
        arrived && is_next
    }

    fn decide(&self, asked: Asked) -> (Fault, Reply) {
        let (own, sends) = self.answer(&asked);
        let mut world = self.world();
        let fault = world.script.pop_front().unwrap_or(Fault::None);
        let reply = match &fault {
            Fault::Answer(reply) => reply.clone(),
            _ => own,
        };
        if sends {
            let declines =
                matches!(fault, Fault::None | Fault::Answer(_)) && [401, 429].contains(&reply.status);
            world.executed += usize::from(!declines);
            world.sends.push(asked.clone());
            self.arrived.notify_all();
        }
        world.asked.push(asked);
        (fault, reply)
    }

    /// What the fixture answers, and whether the request sends a message.
    fn answer(&self, asked: &Asked) -> (Reply, bool) {
        let fixture = &self.fixture;
        let operations = fixture.operations();
        let known = operations.iter().find(|operation| {
            let mut requests = match **operation {
                "send_media" => KINDS.map(|kind| fixture.media_request(kind)).to_vec(),
                operation => vec![fixture.request(operation)],
            };
            requests.retain(|request| (&request.method, &request.path) == (&asked.method, &asked.path));
            !requests.is_empty()
        });
        let Some(operation) = known else { return (Reply::json(404, r#"{"error":"no such path"}"#), false) };
        let request = fixture.request(if *operation == "send_media" { "status" } else { operation });
        let allowed = request.headers.iter().all(|(name, value)| asked.header(name) == Some(value));
        if !allowed {
            return (Reply::json(401, r#"{"error":"unauthorized"}"#), operation.starts_with("send"));
        }
        (fixture.own_answer(operation), operation.starts_with("send"))
    }
}

const KINDS: [MediaKind; 4] = [MediaKind::Image, MediaKind::Video, MediaKind::Audio, MediaKind::Document];

/// Closes with RST instead of FIN, when the last owner lets go.
fn reset(stream: &TcpStream) {
    let lingers = socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO));
    lingers.expect("a socket can be told not to linger");
}
