//! Which process holds the other end of a connection, as Linux tells: the receiver wants to know who sent it something,
//! and the request does not say. Deliberately absent: other systems.

use std::fs;
use std::net::SocketAddr;

/// Which of these processes holds the socket at `there` that is connected to `here`; `None` when none does: it died.
pub fn owner(there: SocketAddr, here: SocketAddr, candidates: &[u32]) -> Option<u32> {
    if candidates.is_empty() {
        return None;
    }
    let table = fs::read_to_string("/proc/net/tcp").ok()?;
    let inode = inode(&table, &hex(there)?, &hex(here)?)?;
    let wanted = format!("socket:[{inode}]");
    candidates.iter().copied().find(|pid| holds(*pid, &wanted))
}

fn holds(pid: u32, wanted: &str) -> bool {
    let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else { return false };
    open.flatten().any(|entry| fs::read_link(entry.path()).is_ok_and(|link| link.as_os_str() == wanted))
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
        assert_eq!(owner(there, here, &[1, std::process::id()]), Some(std::process::id()));
        assert_eq!(owner(there, here, &[]), None);
        let unused = SocketAddr::new(here.ip(), 1);
        assert_eq!(owner(unused, here, &[std::process::id()]), None);
    }
}
