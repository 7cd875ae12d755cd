//! An open loop: events leave at fixed times, whatever the server does, stamped with the moment they leave.
//!
//! A closed loop would slow down with the server and hide its pauses. Requests are spread over so many connections
//! that one finds its connection idle unless the server stalls, and then the wait belongs to the measurement.

use std::io::{ErrorKind, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::task::LocalSet;

use super::single::write_request;
use crate::clock;
use crate::event::Events;
use crate::trouble::{Doing, Result, Trouble};

/// Connections that take turns.
const CONNECTIONS: usize = 64;

/// What was sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// How many events.
    pub events: u64,
    /// When it began, in microseconds since the epoch.
    pub began_micros: u64,
}

/// Sends `rate` events per second for so long. Returns once all are written; answers are read and thrown away.
///
/// # Errors
/// When a connection breaks.
pub fn load(server: SocketAddr, events: &Events, rate: u32, duration: Duration) -> Result<Sent> {
    let mut writers = Vec::new();
    let mut readers = Vec::new();
    for _ in 0..CONNECTIONS {
        let stream = TcpStream::connect(server).doing("connect")?;
        stream.set_nodelay(true).doing("set up a connection")?;
        stream.set_nonblocking(true).doing("set up a connection")?;
        readers.push(stream.try_clone().doing("set up a connection")?);
        writers.push(stream);
    }
    let reader = std::thread::spawn(move || read_all(readers));
    let count = (f64::from(rate) * duration.as_secs_f64()) as u64;
    let (began, began_micros) = (clock::now(), clock::wall_micros());
    let mut request = Vec::new();
    for (number, turn) in (0..count).zip((0..CONNECTIONS).cycle()) {
        clock::pause_until(began + Duration::from_secs_f64(number as f64 / f64::from(rate)));
        request.clear();
        write_request(events, number, clock::wall_micros(), &mut request);
        write(&mut writers[turn], &request)?;
    }
    for writer in &writers {
        let _closed = writer.shutdown(std::net::Shutdown::Write);
    }
    reader.join().map_err(|_| Trouble::new("the reader panicked"))??;
    Ok(Sent { events: count, began_micros })
}

fn write(stream: &mut TcpStream, mut bytes: &[u8]) -> Result<()> {
    while !bytes.is_empty() {
        match stream.write(bytes) {
            Ok(written) => bytes = &bytes[written..],
            // A full socket buffer: the server has not read for thousands of requests.
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => return Err(error).doing("send an event"),
        }
    }
    Ok(())
}

/// Reads until the server has answered everything and closes.
fn read_all(streams: Vec<TcpStream>) -> Result<()> {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_io().build().doing("start a runtime")?;
    LocalSet::new().block_on(&runtime, async {
        let mut readers = Vec::new();
        for stream in streams {
            let mut stream = tokio::net::TcpStream::from_std(stream).doing("read answers")?;
            readers.push(tokio::task::spawn_local(async move {
                let mut thrown_away = vec![0; 4 * 1024];
                while stream.read(&mut thrown_away).await.is_ok_and(|read| read > 0) {}
            }));
        }
        for reader in readers {
            reader.await.doing("read answers")?;
        }
        Ok(())
    })
}
