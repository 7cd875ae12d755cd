//! A `redis-server` of the benchmark's own: a fresh folder, a free port, an append-only file synced once a second.

use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Command, Stdio};
use std::time::Duration;

use redis::{Client, Connection, FromRedisValue};
use tempfile::TempDir;

use super::{Lab, Process};
use crate::clock;
use crate::trouble::{Doing, Result, Trouble};

/// It is up within this, and answers within this.
const PATIENCE: Duration = Duration::from_secs(5);
/// Between two looks.
const LOOK: Duration = Duration::from_millis(20);
/// Shorter commands are not worth a line of the slow log.
const SLOW_MICROS: u64 = 500;
/// Lines of the slow log.
const SLOW_LINES: u64 = 100_000;

/// A running server; dropping it ends it, and its folder with it.
#[derive(Debug)]
pub struct Redis {
    /// Its process.
    pub process: Process,
    address: SocketAddr,
    _folder: TempDir,
}

impl Redis {
    /// Whether there is a program to start.
    pub fn is_installed() -> bool {
        let asked = Command::new("redis-server").arg("--version").stdout(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    /// Starts one.
    ///
    /// # Errors
    /// It does not listen.
    pub fn start(lab: &Lab) -> Result<Self> {
        let folder = lab.fresh()?;
        let free = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let address = free.doing("find a free port")?;
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &address.port().to_string(), "--save", ""]);
        command.args(["--appendonly", "yes", "--appendfsync", "everysec", "--dir"]).arg(folder.path());
        let process = Process::start("redis-server", command.stdout(Stdio::null()))?;
        let began = clock::now();
        while TcpStream::connect(address).is_err() {
            if began.elapsed() > PATIENCE {
                return Err(Trouble::new("redis-server does not listen"));
            }
            clock::pause(LOOK);
        }
        Ok(Self { process, address, _folder: folder })
    }

    /// Where it is, as `--store` takes it.
    pub fn url(&self) -> String {
        format!("redis://{}/0", self.address)
    }

    /// Its port.
    pub const fn port(&self) -> u16 {
        self.address.port()
    }

    /// A connection of a stranger.
    ///
    /// # Errors
    /// It is gone.
    pub fn connection(&self) -> Result<Connection> {
        let client = Client::open(self.url()).doing("reach redis")?;
        client.get_connection_with_timeout(PATIENCE).doing("reach redis")
    }

    fn ask<T: FromRedisValue>(&self, words: &[&str]) -> Result<T> {
        let mut command = redis::cmd(words.first().copied().unwrap_or_default());
        command.arg(words.get(1..).unwrap_or_default());
        command.query(&mut self.connection()?).doing(&format!("have redis {}", words.join(" ")))
    }

    /// From here on, slow commands are noted.
    ///
    /// # Errors
    /// It is gone.
    pub fn note_slow_commands(&self) -> Result<()> {
        let settings = [("slowlog-log-slower-than", SLOW_MICROS), ("slowlog-max-len", SLOW_LINES)];
        for (name, value) in settings {
            self.ask::<redis::Value>(&["CONFIG", "SET", name, &value.to_string()])?;
        }
        self.ask::<redis::Value>(&["SLOWLOG", "RESET"]).map(drop)
    }

    /// The longest script since then, in milliseconds; what was not noted was no longer than what is worth a note.
    ///
    /// # Errors
    /// It is gone.
    pub fn longest_script(&self) -> Result<f64> {
        type Line = (u64, u64, u64, Vec<redis::Value>, String, String);
        let lines: Vec<Line> = self.ask(&["SLOWLOG", "GET", &SLOW_LINES.to_string()])?;
        let scripts = lines.iter().filter(|line| line.3.first().is_some_and(is_script));
        let longest = scripts.map(|line| line.2).max().unwrap_or(0);
        Ok(longest.max(SLOW_MICROS) as f64 / 1e3)
    }

    /// What its clients send in this time; what scripts call is not theirs.
    ///
    /// # Errors
    /// It is gone.
    pub fn commands_within(&self, time: Duration) -> Result<u64> {
        let mut stream = TcpStream::connect(self.address).doing("reach redis")?;
        stream.set_read_timeout(Some(LOOK)).doing("set up a connection")?;
        stream.write_all(b"MONITOR\r\n").doing("watch redis")?;
        let mut lines = BufReader::new(stream);
        let mut count = 0;
        let (mut line, until) = (Vec::new(), clock::now() + time);
        while clock::now() < until {
            // What came before a time-out stays in the line.
            if lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                count += u64::from(is_a_clients(&line));
                line.clear();
            }
        }
        Ok(count)
    }
}

fn is_script(word: &redis::Value) -> bool {
    String::from_redis_value_ref(word).is_ok_and(|word| word.to_ascii_uppercase().starts_with("EVAL"))
}

/// A line of MONITOR: `+1700000000.000000 [0 127.0.0.1:5000] "GET" …`, of a script `[0 lua]`.
fn is_a_clients(line: &[u8]) -> bool {
    let text = String::from_utf8_lossy(line);
    let Some((_, from)) = text.split_once(" [") else { return false };
    from.split_once(']').is_some_and(|(who, _)| !who.ends_with(" lua"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_script_calls_is_no_command_of_a_client() {
        assert!(is_a_clients(b"+1700000000.000000 [0 127.0.0.1:5000] \"GET\" \"a lua]\"\r\n"));
        assert!(!is_a_clients(b"+1700000000.000000 [0 lua] \"GET\" \"a\"\r\n"));
        assert!(!is_a_clients(b"+OK\r\n"));
    }
}
