//! Which process holds the other end of a connection, as Linux tells: the receiver wants to know who sent it something,
//! and the request does not say. All who ask at the same time get their answers from one look, which is not cheap.
//! Deliberately absent: other systems.

use std::fs;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use crate::clock;

/// Who may be sending; the dead are in it, too. Nobody: then nobody is looked for.
pub type Senders = Box<dyn Fn() -> Vec<u32> + Send>;

/// Between two looks.
const REST: Duration = Duration::from_millis(15);

/// A question: the other end, and where the answer goes.
type Question = (SocketAddr, Sender<Option<u32>>);

/// Whom to ask; a thread that looks, until the last one who may ask is gone.
#[derive(Debug, Clone)]
pub struct Registrar(Sender<Question>);

impl Registrar {
    /// For connections to `here`.
    pub fn start(here: SocketAddr, senders: Senders) -> Self {
        let (questions, asked) = channel();
        std::thread::spawn(move || answer_all(&asked, here, &senders));
        Self(questions)
    }

    /// Which process holds the other end; `None` when none does: it died, or has closed it.
    pub fn owner(&self, there: SocketAddr) -> Option<u32> {
        let (answer, answered) = channel();
        self.0.send((there, answer)).ok()?;
        answered.recv().ok().flatten()
    }
}

fn answer_all(asked: &Receiver<Question>, here: SocketAddr, senders: &Senders) {
    while let Ok(first) = asked.recv() {
        let questions: Vec<Question> = [first].into_iter().chain(asked.try_iter()).collect();
        let candidates = senders();
        let table = match candidates.is_empty() {
            true => String::new(),
            false => fs::read_to_string("/proc/net/tcp").unwrap_or_default(),
        };
        let held: Vec<(u32, String)> = candidates.into_iter().flat_map(sockets).collect();
        for (there, answer) in questions {
            // Whoever asked may be gone.
            let _told = answer.send(owner(&table, &held, there, here));
        }
        clock::pause(REST);
    }
}

fn owner(table: &str, held: &[(u32, String)], there: SocketAddr, here: SocketAddr) -> Option<u32> {
    let wanted = format!("socket:[{}]", inode(table, &hex(there)?, &hex(here)?)?);
    held.iter().find(|(_, link)| *link == wanted).map(|(pid, _)| *pid)
}

/// What a process has open, if it lives.
fn sockets(pid: u32) -> Vec<(u32, String)> {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return Vec::new() };
    let links = open.flatten().filter_map(|entry| fs::read_link(entry.path()).ok());
    links.map(|link| (pid, link.to_string_lossy().into_owned())).collect()
}

/// An address as the table writes it: the bytes of the address as a number of the machine's own order, the port.
fn hex(address: SocketAddr) -> Option<String> {
    let SocketAddr::V4(address) = address else { return None };
    Some(format!("{:08X}:{:04X}", u32::from_ne_bytes(address.ip().octets()), address.port()))
}

/// The inode of the socket whose two ends these are.
fn inode<'a>(table: &'a str, local: &str, remote: &str) -> Option<&'a str> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let ours = fields.next()? == local && fields.next()? == remote;
        fields.nth(6).filter(|inode| ours && *inode != "0")
    })
}

#[cfg(test)]
mod tests {
    use std::net::TcpStream;

    use super::*;
    use crate::world::listen;

    #[test]
    fn this_process_holds_its_own_connection_and_nobody_holds_a_closed_one() {
        let listener = listen().expect("a port");
        let here = listener.local_addr().expect("an address");
        let near = TcpStream::connect(here).expect("it listens");
        let there = near.local_addr().expect("an address");
        let us = std::process::id();
        let registrar = Registrar::start(here, Box::new(move || vec![1, us]));
        assert_eq!(registrar.owner(there), Some(us));
        assert_eq!(registrar.owner(SocketAddr::new(here.ip(), 1)), None);
        assert_eq!(Registrar::start(here, Box::new(Vec::new)).owner(there), None);
    }
}
