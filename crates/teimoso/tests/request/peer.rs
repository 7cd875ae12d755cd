//! A peer that plays a script, one connection after the other, and remembers what it was asked.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};

/// What the peer does with a request that it has read whole.
#[derive(Debug, Clone)]
pub enum Play {
    /// Answers: status line without the version, header lines, body.
    Answer(&'static str, Vec<String>, Vec<u8>),
    /// Answers 200 and promises ten body bytes more than it sends.
    Cut(&'static str),
    /// Closes in order.
    Close,
    /// Keeps the connection, and says nothing.
    Hang,
}

/// A status and a body without other headers.
pub fn answer(status: &'static str, body: &str) -> Play {
    Play::Answer(status, Vec::new(), body.into())
}

/// A status with a header line.
pub fn with(status: &'static str, header: &str) -> Play {
    Play::Answer(status, vec![header.to_owned()], Vec::new())
}

/// A request as it arrived; names of headers are in lower case.
#[derive(Debug, Clone)]
pub struct Asked {
    pub line: String,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Asked {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A running peer; its thread ends with the test's process.
pub struct Peer {
    pub url: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    arrivals: Receiver<()>,
}

impl Peer {
    /// Starts one on a free port. The last part of the script is played for ever.
    pub fn start(script: &[Play]) -> Peer {
        Peer::on(TcpListener::bind("127.0.0.1:0").expect("a free port"), script)
    }

    /// Starts one on a listener.
    pub fn on(listener: TcpListener, script: &[Play]) -> Peer {
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let asked = Arc::new(Mutex::new(Vec::new()));
        let (log, script, (arrived, arrivals)) = (Arc::clone(&asked), script.to_vec(), channel());
        std::thread::spawn(move || {
            let mut held = Vec::new();
            for (index, stream) in listener.incoming().flatten().enumerate() {
                let play = &script[index.min(script.len() - 1)];
                let Some(request) = read(&stream) else { continue };
                log.lock().expect("no panic").push(request);
                // Nobody waits in most tests.
                let _nobody = arrived.send(());
                if let Some(stream) = play.on(stream) {
                    held.push(stream);
                }
            }
        });
        Peer { url, asked, arrivals }
    }

    /// What was asked so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().expect("no panic").clone()
    }

    /// Waits for the next request to have been read.
    pub fn until_asked(&self) {
        self.arrivals.recv().expect("the peer lives");
    }
}

impl Play {
    fn on(&self, mut stream: TcpStream) -> Option<TcpStream> {
        let (status, headers, body, promised) = match self {
            Play::Hang => return Some(stream),
            Play::Close => return None,
            Play::Answer(status, headers, body) => (*status, headers.clone(), body.clone(), 0),
            Play::Cut(body) => ("200 OK", Vec::new(), body.as_bytes().to_vec(), 10),
        };
        let length = body.len() + promised;
        let mut head = format!("HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n");
        headers.iter().for_each(|line| head += &format!("{line}\r\n"));
        let bytes = [head.as_bytes(), b"\r\n", &body].concat();
        // A client that has left is its own test's business.
        let _left = stream.write_all(&bytes);
        None
    }
}

fn read(stream: &TcpStream) -> Option<Asked> {
    let mut reader = BufReader::new(stream);
    let line = next_line(&mut reader)?;
    let mut headers = Vec::new();
    while let Some(header) = next_line(&mut reader)?.split_once(": ") {
        headers.push((header.0.to_ascii_lowercase(), header.1.to_owned()));
    }
    let length = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; length.map_or(0, |(_, value)| value.parse().expect("a length"))];
    reader.read_exact(&mut body).ok()?;
    Some(Asked { line, headers, body })
}

fn next_line(reader: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    matches!(reader.read_line(&mut line), Ok(1..)).then(|| line.trim_end().to_owned())
}

/// A port that is ours and on which nobody listens yet.
pub struct Silent {
    socket: tokio::net::TcpSocket,
    pub url: String,
}

impl Silent {
    pub fn new() -> Silent {
        let socket = tokio::net::TcpSocket::new_v4().expect("a socket");
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0))).expect("a free port");
        let url = format!("http://{}", socket.local_addr().expect("an address"));
        Silent { socket, url }
    }

    /// From now on somebody listens.
    pub fn listen(self, script: &[Play]) -> Peer {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        let _within = runtime.enter();
        let listener =
            self.socket.listen(16).and_then(tokio::net::TcpListener::into_std).expect("it listens");
        listener.set_nonblocking(false).expect("it can block");
        Peer::on(listener, script)
    }
}
