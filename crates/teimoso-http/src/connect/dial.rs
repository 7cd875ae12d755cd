//! TCP to one of several addresses, in turn; absent: where the addresses come from, and several at once.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use teimoso_retry::Proof;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::timer::within;
use super::{ConnectFailure, Progress, never_sent};
use crate::attempt::ErrorKind;
use crate::evidence;

/// Tries the addresses in order; each gets a fair part of the time that is left.
pub(super) async fn dial(
    addresses: &[SocketAddr],
    mut timer: Pin<&mut Sleep>,
    deadline: Instant,
    progress: &mut Progress,
) -> Result<(TcpStream, SocketAddr), ConnectFailure> {
    let mut failure = never_sent(Proof::Connect, ErrorKind::Dns, "connect: no address".to_owned());
    for (tried, peer) in addresses.iter().enumerate() {
        progress.peer = Some(*peer);
        let slice = fair_slice(Instant::now(), deadline, addresses.len() - tried);
        let (kind, words) = match within(timer.as_mut(), slice, TcpStream::connect(*peer)).await {
            Some(Ok(tcp)) => {
                // Without it a small body may wait for the acknowledgement of its head. A socket that refuses the
                // option still works.
                let _ = tcp.set_nodelay(true);
                return Ok((tcp, *peer));
            }
            Some(Err(error)) => evidence::of_connect(&error),
            None => (ErrorKind::ConnectTimeout, "no answer in time".to_owned()),
        };
        failure = never_sent(Proof::Connect, kind, format!("connect to {peer}: {words}"));
    }
    Err(failure)
}

/// The end of the current address's part of the time until `deadline`, when `left` addresses share it.
fn fair_slice(now: Instant, deadline: Instant, left: usize) -> Instant {
    let rest = deadline.saturating_duration_since(now);
    now + u32::try_from(left).map_or(Duration::ZERO, |left| rest / left.max(1))
}
