//! The way between one sender and Redis, which can be lost: while it is a hole, bytes go in and nothing comes out, new
//! connections included; when that ends, all of them are cut.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::{listen, loopback};
use crate::clock;
use crate::trouble::{Doing, Result, locked};

/// How late a hole may close, and how late one is noticed.
const LOOK: Duration = Duration::from_millis(2);

/// A proxy that runs until the program ends.
#[derive(Debug)]
pub struct Proxy {
    port: u16,
    way: Arc<Way>,
}

#[derive(Debug, Default)]
struct Way {
    hole: AtomicBool,
    connections: Mutex<Vec<TcpStream>>,
}

impl Proxy {
    /// Starts one before that port of loopback.
    ///
    /// # Errors
    /// It finds no port.
    pub fn start(to: u16) -> Result<Self> {
        let listener = listen()?;
        let port = listener.local_addr().doing("start a proxy")?.port();
        let way = Arc::new(Way::default());
        let at_the_door = Arc::clone(&way);
        std::thread::spawn(move || accept(&listener, to, &at_the_door));
        Ok(Self { port, way })
    }

    /// Where it listens.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// From here on nothing gets through.
    pub fn open_hole(&self) {
        self.way.hole.store(true, Ordering::SeqCst);
    }

    /// Ends every connection, and lets the next ones through.
    pub fn close_hole(&self) {
        for connection in locked(&self.way.connections).drain(..) {
            // It may have ended by itself.
            let _cut = connection.shutdown(Shutdown::Both);
        }
        self.way.hole.store(false, Ordering::SeqCst);
    }
}

fn accept(listener: &TcpListener, to: u16, way: &Arc<Way>) {
    for near in listener.incoming().flatten() {
        let way = Arc::clone(way);
        std::thread::spawn(move || {
            if let Ok(near_again) = near.try_clone() {
                locked(&way.connections).push(near_again);
            }
            way.wait();
            // A Redis that is down is a connection that ends at once.
            let Ok(far) = TcpStream::connect(loopback(to)) else { return };
            // Cut while it waited in the hole: then what it said goes nowhere, and the pumps end at once.
            let _quick = (near.set_nodelay(true), far.set_nodelay(true));
            if let (Ok(near_again), Ok(far_again)) = (near.try_clone(), far.try_clone()) {
                let back = Arc::clone(&way);
                std::thread::spawn(move || back.pump(far_again, near_again));
                way.pump(near, far);
            }
        });
    }
}

impl Way {
    fn wait(&self) {
        while self.hole.load(Ordering::SeqCst) {
            clock::pause(LOOK);
        }
    }

    /// Until either side ends; what was read before a hole and not yet passed on stays in it.
    fn pump(&self, mut from: TcpStream, mut to: TcpStream) {
        let mut piece = vec![0; 16 * 1024];
        while let Ok(read @ 1..) = from.read(&mut piece) {
            self.wait();
            if to.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        let _ended = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_ends_with_every_connection_cut_and_the_next_one_gets_through() {
        let far = listen().expect("a port");
        let proxy = Proxy::start(far.local_addr().expect("an address").port()).expect("a port");
        let mut near = TcpStream::connect(loopback(proxy.port())).expect("it listens");
        let (mut heard, _) = far.accept().expect("it gets through");
        near.write_all(b"a").expect("it gets through");
        let mut byte = [0];
        heard.read_exact(&mut byte).expect("it gets through");
        assert_eq!(&byte, b"a");

        proxy.open_hole();
        near.write_all(b"b").expect("it goes somewhere");
        proxy.close_hole();
        assert_eq!(near.read(&mut byte).unwrap_or(0), 0, "the connection is cut");
        // What it had read in the meantime may still come out of the pump; the connection ends all the same.
        let mut rest = Vec::new();
        let _end = heard.read_to_end(&mut rest);
        let mut again = TcpStream::connect(loopback(proxy.port())).expect("it listens");
        let (mut heard, _) = far.accept().expect("it gets through");
        again.write_all(b"c").expect("it gets through");
        heard.read_exact(&mut byte).expect("it gets through");
        assert_eq!(&byte, b"c");
    }
}
