//! What there is beside the producers: a Redis, processes that can be killed and stopped, a proxy that can be cut, and
//! a receiver that remembers who sent it what. All of it on loopback and on free ports.

pub mod owner;
pub mod process;
pub mod proxy;
pub mod receiver;
pub mod redis;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};

use crate::trouble::{Doing, Result};

/// A port that was free a moment ago.
///
/// # Errors
/// There is none.
pub fn free_port() -> Result<u16> {
    let listener = listen()?;
    Ok(listener.local_addr().doing("find a free port")?.port())
}

/// A listener on a free port of loopback.
///
/// # Errors
/// There is none.
pub fn listen() -> Result<TcpListener> {
    TcpListener::bind(loopback(0)).doing("listen on loopback")
}

/// That port of this machine.
pub const fn loopback(port: u16) -> SocketAddr {
    SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), port)
}
