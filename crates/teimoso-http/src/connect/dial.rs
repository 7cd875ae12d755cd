//! TCP to one of several addresses, in turn; absent: where the addresses come from, and several at once.

use std::net::SocketAddr;
use std::pin::Pin;
use std::time::Duration;

use teimoso_retry::Proof;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep};

use super::{ConnectFailure, Progress, never_sent};
use crate::attempt::ErrorKind;
use crate::evidence;
use crate::timer::within;

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
            Some(Ok(tcp)) if is_connected_to_itself(&tcp, *peer) => {
                (ErrorKind::ConnectRefused, "nobody listens there".to_owned())
            }
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

/// Where nobody listens, the system may pick the very port that is asked for as ours: TCP then connects the socket to
/// itself, and the request would come back as its own answer. Whoever retries on one machine meets this in time.
fn is_connected_to_itself(tcp: &TcpStream, peer: SocketAddr) -> bool {
    tcp.local_addr().is_ok_and(|own| own == peer)
}

/// The end of the current address's part of the time until `deadline`, when `left` addresses share it.
fn fair_slice(now: Instant, deadline: Instant, left: usize) -> Instant {
    let rest = deadline.saturating_duration_since(now);
    now + u32::try_from(left).map_or(Duration::ZERO, |left| rest / left.max(1))
}

#[cfg(test)]
mod tests {
    use tokio::net::{TcpListener, TcpSocket};

    use super::*;

    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn a_socket_that_is_connected_to_itself_is_known() {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let own = socket.local_addr().unwrap();
        let tcp = socket.connect(own).await.unwrap();
        assert!(is_connected_to_itself(&tcp, own));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let other = listener.local_addr().unwrap();
        let tcp = TcpStream::connect(other).await.unwrap();
        assert!(!is_connected_to_itself(&tcp, other));
    }
}
