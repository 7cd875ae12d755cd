//! Something between us and a server that changes commands on their way, as proxies do that know only some of them.

use std::io::{BufRead, BufReader, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;

use crate::server::Server;

/// A command: its name and its arguments.
pub type Words = Vec<Vec<u8>>;

/// A proxy before a server. It forwards until the test's process ends.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
}

impl Proxy {
    /// Before this server; what `rewrite` gives for a command is sent instead of it, and so answered in its place.
    #[must_use]
    pub fn start(server: &Server, rewrite: impl Fn(&Words) -> Option<Words> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let (server, rewrite) = (server.address(), Arc::new(rewrite));
        std::thread::spawn(move || {
            for client in listener.incoming().filter_map(Result::ok) {
                // A server that is not there hangs up.
                let Ok(upstream) = TcpStream::connect(&server) else { continue };
                forward(client, upstream, rewrite.clone());
            }
        });
        Self { port }
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
) {
    let (mut answers, mut to_client) = (both(&upstream), both(&client));
    std::thread::spawn(move || {
        let _until_closed = std::io::copy(&mut answers, &mut to_client);
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
