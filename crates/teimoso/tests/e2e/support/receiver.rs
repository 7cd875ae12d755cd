//! A receiver without manners: it reads a request and then does with the socket what the test says.

use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

use super::{ANY, until};

/// A request as it arrived.
#[derive(Debug, Clone)]
pub struct Arrived {
    pub head: String,
    pub body: Vec<u8>,
}

impl Arrived {
    /// The value of a lower-case header.
    pub fn header(&self, name: &str) -> &str {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(found, _)| *found == name).map_or("", |(_, value)| value)
    }
}

/// Runs until the test ends; each connection carries one request.
pub struct Receiver {
    address: SocketAddr,
    arrived: Arc<Mutex<Vec<Arrived>>>,
}

impl Receiver {
    /// `act` gets how many requests came before, and the connection; it is closed afterwards.
    pub fn start(act: impl Fn(usize, TcpStream) + Send + Sync + 'static) -> Receiver {
        let listener = TcpListener::bind(ANY).expect("a free port");
        let address = listener.local_addr().expect("an address");
        let arrived = Arc::new(Mutex::new(Vec::new()));
        let (log, act) = (Arc::clone(&arrived), Arc::new(act));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (log, act) = (Arc::clone(&log), Arc::clone(&act));
                std::thread::spawn(move || {
                    let Some(request) = read(&stream) else { return };
                    let before = {
                        let mut log = log.lock().expect("no panic");
                        log.push(request);
                        log.len() - 1
                    };
                    act(before, stream);
                });
            }
        });
        Receiver { address, arrived }
    }

    /// One that answers these statuses in turn, the last one for good.
    pub fn answering(statuses: &'static [u16]) -> Receiver {
        Receiver::start(|before, stream| answer(&stream, statuses[before.min(statuses.len() - 1)]))
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn arrived(&self) -> Vec<Arrived> {
        self.arrived.lock().expect("no panic").clone()
    }

    /// Waits for the n-th request.
    pub fn until_arrived(&self, count: usize) -> Vec<Arrived> {
        until(&format!("request {count} arrives"), || {
            Some(self.arrived()).filter(|arrived| arrived.len() >= count)
        })
    }
}

/// A complete, empty answer that ends the connection.
pub fn answer(mut stream: &TcpStream, status: u16) {
    let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    // Who has left need not hear it.
    let _left = std::io::Write::write_all(&mut stream, head.as_bytes());
}

/// Reads until the other side is gone: a silent receiver holds its connection as long as it is wanted.
pub fn hold(mut stream: &TcpStream) {
    let mut nothing = [0; 512];
    while matches!(stream.read(&mut nothing), Ok(1..)) {}
}

fn read(stream: &TcpStream) -> Option<Arrived> {
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        (reader.read_line(&mut head).ok()? > 0).then_some(())?;
    }
    let head = head.replace("\r\n", "\n");
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap_or("0");
    let mut body = vec![0; length.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Arrived { head, body })
}
