//! A listening peer that plays one fault on every connection, and what its connections share.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use socket2::{Domain, Socket, Type};

use super::catalogue::{Fault, Lookup, Play, Security};
use super::tls::Identity;
use super::{http1, http2};

/// A peer that plays one fault.
pub struct Peer {
    fault: &'static Fault,
    stage: Arc<Stage>,
    listening: Option<JoinHandle<()>>,
    asks_to_spoil: SyncSender<()>,
    has_spoilt: Receiver<()>,
}

/// What a peer has counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tally {
    /// Requests that it got to see, hidden repetitions of the client's lower layers among them; `None` where nobody
    /// listens.
    pub arrivals: Option<usize>,
    /// Requests that it read completely and acted on.
    pub executions: usize,
}

/// What the connections of one peer share.
pub(super) struct Stage {
    pub(super) identity: Identity,
    arrivals: AtomicUsize,
    executions: AtomicUsize,
    /// Connections that stay open although nobody looks at them any more.
    held: Mutex<Vec<TcpStream>>,
    asked_to_spoil: Mutex<Receiver<()>>,
    spoilt: SyncSender<()>,
    /// A port that is taken and refuses every connection.
    absent: Socket,
    address: SocketAddr,
    /// Where the connection comes from after which no other is accepted.
    last: Mutex<Option<SocketAddr>>,
}

impl Peer {
    /// Begins to play; it stops with [`Peer::tally`].
    pub fn start(fault: &'static Fault) -> Self {
        let absent = bound();
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = match fault.play {
            Play::Absent => address_of(&absent),
            _ => listener.local_addr().unwrap(),
        };
        let (asks_to_spoil, asked_to_spoil) = sync_channel(1);
        let (spoilt, has_spoilt) = sync_channel(1);
        let stage = Arc::new(Stage {
            identity: Identity::of(&address.ip().to_string()),
            arrivals: AtomicUsize::new(0),
            executions: AtomicUsize::new(0),
            held: Mutex::default(),
            asked_to_spoil: Mutex::new(asked_to_spoil),
            spoilt,
            absent,
            address,
            last: Mutex::default(),
        });
        let on_stage = stage.clone();
        let listening = match fault.play {
            Play::Absent => None,
            play => Some(thread::spawn(move || receive(&listener, play, &on_stage))),
        };
        Self { fault, stage, listening, asks_to_spoil, has_spoilt }
    }

    /// Where the client sends its requests.
    pub fn url(&self) -> String {
        let scheme = if self.fault.security == Security::Plain { "http" } else { "https" };
        let address = self.stage.address;
        match self.fault.lookup {
            Lookup::Literal => format!("{scheme}://{address}/things"),
            Lookup::Fails | Lookup::Hangs => format!("{scheme}://peer.test:{}/things", address.port()),
        }
    }

    /// The certificate that the client trusts, as DER.
    pub fn root(&self) -> Option<&[u8]> {
        (self.fault.security == Security::Trusted).then(|| self.stage.identity.certificate())
    }

    /// Spoils the idle connection and returns when that is done. Stands still, and the caller's event loop with it.
    /// What came until now no longer counts.
    pub fn spoil(&self) {
        self.asks_to_spoil.send(()).unwrap();
        self.has_spoilt.recv().unwrap();
        self.forget();
    }

    /// What came until now no longer counts.
    pub fn forget(&self) {
        self.stage.arrivals.store(0, Ordering::SeqCst);
        self.stage.executions.store(0, Ordering::SeqCst);
    }

    /// The counts, once every connection has ended. The client must have closed its own before: drop it, and the
    /// runtime that drives it.
    pub fn tally(self) -> Tally {
        drop(self.asks_to_spoil);
        let listens = self.listening.is_some();
        if let Some(listening) = self.listening {
            // Connections are accepted in the order of their arrival: all others come before this one.
            let last = bound();
            *self.stage.last() = Some(address_of(&last));
            last.connect(&self.stage.address.into()).unwrap();
            listening.join().unwrap();
        }
        Tally {
            arrivals: listens.then(|| self.stage.arrivals.load(Ordering::SeqCst)),
            executions: self.stage.executions.load(Ordering::SeqCst),
        }
    }
}

impl Stage {
    fn last(&self) -> MutexGuard<'_, Option<SocketAddr>> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request that the peer got to see.
    pub(super) fn arrive(&self) {
        self.arrivals.fetch_add(1, Ordering::SeqCst);
    }

    /// Counts a request that was read completely and is acted on.
    pub(super) fn execute(&self) {
        self.executions.fetch_add(1, Ordering::SeqCst);
    }

    /// Keeps a connection open without reading from it.
    pub(super) fn hold(&self, stream: TcpStream) {
        self.held.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
    }

    /// An address that refuses every connection.
    pub(super) fn nobody(&self) -> SocketAddr {
        address_of(&self.absent)
    }

    /// Waits until the client asks for it, then does it; does nothing if the client never asks.
    pub(super) fn spoil(&self, stream: TcpStream, deed: fn(TcpStream)) {
        let asked = self.asked_to_spoil.lock().unwrap_or_else(PoisonError::into_inner).recv();
        if asked.is_ok() {
            deed(stream);
            self.spoilt.send(()).unwrap();
        }
    }
}

/// Plays on every connection, each on a thread of its own, until the last one.
fn receive(listener: &TcpListener, play: Play, stage: &Arc<Stage>) {
    let mut visits = Vec::new();
    loop {
        let (stream, from) = listener.accept().unwrap();
        if *stage.last() == Some(from) {
            break;
        }
        let (stage, is_first) = (stage.clone(), visits.is_empty());
        // A client that leaves in the middle is none of the peer's business.
        visits.push(thread::spawn(move || drop(visit(play, &stage, stream, is_first))));
    }
    for visit in visits {
        visit.join().unwrap();
    }
}

fn visit(play: Play, stage: &Stage, stream: TcpStream, is_first: bool) -> io::Result<()> {
    match play {
        Play::Absent => Ok(()),
        Play::Answers(answer) => http1::answer_all(stage, &stream, answer),
        Play::Redirects => http1::redirect_to_nobody(stage, &stream),
        Play::Says(words) => http1::say(stage, &stream, words).and_then(|()| http1::end(stream)),
        Play::SaysAndResets(words) => http1::say(stage, &stream, words).map(|()| http1::reset(stream)),
        Play::Spoils(deed) if is_first => {
            http1::say(stage, &stream, http1::OK).map(|()| stage.spoil(stream, deed))
        }
        Play::Spoils(_) => http1::answer_all(stage, &stream, http1::OK),
        Play::Http2(judge) => http2::serve(stage, stream, judge),
        Play::Acts(act) => act(stage, stream),
    }
}

/// A socket with an address on loopback that does not listen.
fn bound() -> Socket {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket
}

fn address_of(socket: &Socket) -> SocketAddr {
    socket.local_addr().unwrap().as_socket().unwrap()
}
