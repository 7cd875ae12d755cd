//! Something between us and a server that changes commands on their way, as proxies do that know only some of them; and
//! that hangs up in the middle of an answer, as networks do.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::server::Server;

/// A command: its name and its arguments.
pub type Words = Vec<Vec<u8>>;

/// A proxy before a server. It forwards until the test's process ends.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    /// How often connections were to be cut.
    cuts: Arc<AtomicU64>,
}

impl Proxy {
    /// Before this server; what `rewrite` gives for a command is sent instead of it, and so answered in its place.
    #[must_use]
    pub fn start(server: &Server, rewrite: impl Fn(&Words) -> Option<Words> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (server, rewrite) = (server.address(), Arc::new(rewrite));
        let cuts = Arc::<AtomicU64>::default();
        let hear_cuts = cuts.clone();
        std::thread::spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                // A server that is not there hangs up.
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                forward(client, upstream, rewrite.clone(), hear_cuts.clone());
            }
        });
        Self { port, cuts }
    }

    /// One that speaks RESP2 only: it knows neither HELLO nor tracking.
    #[must_use]
    pub fn without_tracking(server: &Server) -> Self {
        Self::start(server, |words| {
            let is = |index: usize, name: &str| {
                words.get(index).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()))
            };
            let unknown = is(0, "HELLO") || (is(0, "CLIENT") && is(1, "TRACKING"));
            unknown.then(|| vec![b"UNKNOWN".to_vec()])
        })
    }

    /// Of the next answer on every connection that there is, half comes through; then it is closed.
    pub fn cut_answers(&self) {
        self.cuts.fetch_add(1, Ordering::SeqCst);
    }

    /// For the store.
    #[must_use]
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}/0", self.port)
    }
}

fn forward(
    client: TcpStream,
    upstream: TcpStream,
    rewrite: Arc<impl Fn(&Words) -> Option<Words> + Send + Sync + 'static>,
    cuts: Arc<AtomicU64>,
) {
    let (answers, mut to_client) = (both(&upstream), both(&client));
    std::thread::spawn(move || {
        let _until_closed = bring(answers, &mut to_client, &cuts);
        let _closed = to_client.shutdown(Shutdown::Both);
    });
    std::thread::spawn(move || {
        let mut commands = BufReader::new(client);
        let mut to_server = upstream;
        while let Some(words) = read(&mut commands) {
            let sent = to_server.write_all(&write(&rewrite(&words).unwrap_or(words)));
            if sent.is_err() {
                break;
            }
        }
        let _closed = to_server.shutdown(Shutdown::Both);
    });
}

/// Everything, until it is to be cut.
fn bring(mut answers: TcpStream, to_client: &mut TcpStream, cuts: &AtomicU64) -> std::io::Result<()> {
    let (before, mut bytes) = (cuts.load(Ordering::SeqCst), vec![0; 1 << 16]);
    loop {
        let length = answers.read(&mut bytes)?;
        let is_cut = cuts.load(Ordering::SeqCst) != before;
        to_client.write_all(&bytes[..if is_cut { length / 2 } else { length }])?;
        if is_cut || length == 0 {
            return answers.shutdown(Shutdown::Both);
        }
    }
}

fn both(stream: &TcpStream) -> TcpStream {
    stream.try_clone().expect("a second handle")
}

/// One command: an array of bulk strings. `None` at the end.
fn read(from: &mut impl BufRead) -> Option<Words> {
    let count = length(from, '*')?;
    (0..count)
        .map(|_| {
            let mut word = vec![0; length(from, '$')? + 2];
            from.read_exact(&mut word).ok()?;
            word.truncate(word.len() - 2);
            Some(word)
        })
        .collect()
}

fn length(from: &mut impl BufRead, kind: char) -> Option<usize> {
    let mut line = String::new();
    from.read_line(&mut line).ok()?;
    line.trim_end().strip_prefix(kind)?.parse().ok()
}

fn write(words: &Words) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        bytes.extend(format!("${}\r\n", word.len()).into_bytes());
        bytes.extend(word);
        bytes.extend(b"\r\n");
    }
    bytes
}
