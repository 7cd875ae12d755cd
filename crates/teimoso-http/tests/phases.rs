//! The phases before a request: resolution, egress rules, pinned addresses, connect; and the idle pool.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

mod common;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use common::{Fixed, OK, Peer, answered, builder, hasty, patient, post, transport};
use teimoso_http::{AttemptLimits, ErrorKind, Resolve, Resolving, Transport};
use teimoso_retry::{Fate, Proof, Refusal};
use tokio::net::TcpListener;

/// Never answers.
struct Hanging;

impl Resolve for Hanging {
    fn resolve(&self, _: &str) -> Resolving {
        Box::pin(std::future::pending())
    }
}

struct Failing;

impl Resolve for Failing {
    fn resolve(&self, _: &str) -> Resolving {
        let words = "failed to lookup address information: Name or service not known";
        Box::pin(async move { Err(std::io::Error::other(words)) })
    }
}

/// The first lookup says loopback, later ones an address on the guarded side.
#[derive(Clone, Default)]
struct Rebinding(Arc<AtomicUsize>);

impl Resolve for Rebinding {
    fn resolve(&self, _: &str) -> Resolving {
        let first = self.0.fetch_add(1, Ordering::Relaxed) == 0;
        let address = if first { "127.0.0.1" } else { "169.254.169.254" };
        Box::pin(async move { Ok(vec![address.parse().unwrap()]) })
    }
}

#[tokio::test]
async fn a_deadline_inside_dns_proves_never_sent() {
    let connect = AttemptLimits { connect_timeout: Duration::from_millis(80), ..patient() };
    for limits in [hasty(), connect] {
        let transport = builder().resolver(Hanging).build().unwrap();
        let attempt = transport.attempt(post("http://hook.test/?token=s3cret", "payload", limits)).await;
        assert_eq!(attempt.fate, Fate::NeverSent(Proof::Dns));
        let error = attempt.error.unwrap();
        assert_eq!((error.kind, &*error.message), (ErrorKind::Dns, "look up hook.test: no answer in time"));
        assert!(attempt.timings.dns.unwrap() >= Duration::from_millis(80));
        assert_eq!(attempt.timings.connect, None);
    }
}

#[tokio::test]
async fn a_name_that_does_not_resolve_was_never_sent() {
    let transport = builder().resolver(Failing).build().unwrap();
    let attempt = transport.attempt(post("http://hook.test/", "payload", patient())).await;
    assert_eq!(attempt.fate, Fate::NeverSent(Proof::Dns));
    assert_eq!(attempt.error.unwrap().to_string(), "failed to look up hook.test: name or service not known");
}

/// A listener whose queue is full: the kernel drops further handshakes, so connecting hangs.
async fn full_listener() -> (TcpListener, Vec<tokio::net::TcpStream>) {
    let socket = tokio::net::TcpSocket::new_v4().unwrap();
    socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let listener = socket.listen(1).unwrap();
    let address = listener.local_addr().unwrap();
    let mut held = Vec::new();
    while let Ok(connected) =
        tokio::time::timeout(Duration::from_millis(150), tokio::net::TcpStream::connect(address)).await
    {
        held.push(connected.unwrap());
    }
    (listener, held)
}

#[tokio::test]
async fn a_deadline_inside_connect_proves_never_sent() {
    let (listener, _held) = full_listener().await;
    let address = listener.local_addr().unwrap();
    let limits = AttemptLimits { connect_timeout: Duration::from_millis(80), ..patient() };
    let attempt = transport().attempt(post(&format!("http://{address}/"), "payload", limits)).await;
    assert_eq!(attempt.fate, Fate::NeverSent(Proof::Connect));
    assert_eq!(attempt.error_kind(), Some(ErrorKind::ConnectTimeout));
    assert_eq!(attempt.peer, Some(address));
    assert!(attempt.timings.connect.unwrap() >= Duration::from_millis(80));
}

#[tokio::test]
async fn g12_a_blocked_literal_is_refused_in_every_spelling_and_names_the_flag() {
    let peer = Peer::answering(OK).await;
    let transport = Transport::builder().build().unwrap();
    for host in ["127.0.0.1", "2130706433", "0x7f.1", "0177.0.0.1", "[::ffff:127.0.0.1]"] {
        let url = format!("http://{host}:{}/", peer.address.port());
        let attempt = transport.attempt(post(&url, "payload", patient())).await;
        assert_eq!(attempt.fate, Fate::Refused(Refusal::BlockedAddress), "{host}");
        let error = attempt.error.unwrap();
        assert_eq!(error.kind, ErrorKind::BlockedAddress);
        assert_eq!(
            error.message,
            "connect to 127.0.0.1: 127.0.0.1 is loopback and refused; --allow-net 127.0.0.0/8 would allow it"
        );
    }
    assert_eq!(peer.accepted(), 0);
}

#[tokio::test]
async fn g12_a_name_is_refused_when_all_its_addresses_are_blocked() {
    let fixed = Fixed::new(&["10.0.0.1", "fd00:ec2::254", "::ffff:192.168.0.1"]);
    let transport = builder().resolver(fixed).build().unwrap();
    let attempt = transport.attempt(post("http://hook.test/", "payload", patient())).await;
    assert_eq!(attempt.fate, Fate::Refused(Refusal::BlockedAddress));
    assert_eq!(
        attempt.error.unwrap().message,
        "connect to hook.test: 10.0.0.1 is private and refused; --allow-net 10.0.0.1/32 would allow it"
    );
}

#[tokio::test]
async fn g12_only_the_allowed_addresses_of_a_name_are_tried() {
    let peer = Peer::answering(OK).await;
    let fixed = Fixed::new(&["10.0.0.1", "169.254.169.254", "127.0.0.1"]);
    let transport = builder().resolver(fixed).build().unwrap();
    let url = format!("http://hook.test:{}/", peer.address.port());
    let attempt = transport.attempt(post(&url, "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.peer), (Fate::Answered, Some(peer.address)));
}

#[tokio::test]
async fn g12_the_checked_address_is_the_one_connected_to() {
    let peer = Peer::answering(OK).await;
    let rebinding = Rebinding::default();
    let transport = builder().resolver(rebinding.clone()).build().unwrap();
    let url = format!("http://hook.test:{}/", peer.address.port());
    for reused in [false, true] {
        let attempt = transport.attempt(post(&url, "payload", patient())).await;
        assert_eq!((attempt.fate, attempt.peer), (Fate::Answered, Some(peer.address)));
        assert_eq!((attempt.reused, attempt.timings.dns.is_some()), (reused, !reused));
    }
    assert_eq!(rebinding.0.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn the_next_address_is_tried_when_one_refuses() {
    let peer = Peer::answering(OK).await;
    let fixed = Fixed::new(&["127.0.0.2", "127.0.0.3", "127.0.0.1"]);
    let transport = builder().resolver(fixed).build().unwrap();
    let url = format!("http://hook.test:{}/", peer.address.port());
    let attempt = transport.attempt(post(&url, "payload", patient())).await;
    assert_eq!((attempt.fate, attempt.peer), (Fate::Answered, Some(peer.address)));
}

#[tokio::test]
async fn an_address_that_hangs_leaves_time_for_the_next() {
    let (listener, _held) = full_listener().await;
    let hanging = listener.local_addr().unwrap();
    let working =
        TcpListener::bind(SocketAddr::new("127.0.0.2".parse().unwrap(), hanging.port())).await.unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = working.accept().await.unwrap();
        common::read_request(&mut stream).await.unwrap();
        tokio::io::AsyncWriteExt::write_all(&mut stream, OK).await.unwrap();
    });
    let transport = builder().resolver(Fixed::new(&["127.0.0.1", "127.0.0.2"])).build().unwrap();
    let limits = AttemptLimits { connect_timeout: Duration::from_secs(1), ..patient() };
    let url = format!("http://hook.test:{}/", hanging.port());
    let attempt = transport.attempt(post(&url, "payload", limits)).await;
    assert_eq!(answered(&attempt), Some((200, &b"ok"[..], false)));
    let connect = attempt.timings.connect.unwrap();
    assert!(connect >= Duration::from_millis(500) && connect < Duration::from_secs(1), "{connect:?}");
}

#[tokio::test]
async fn an_idle_connection_over_its_time_is_closed_and_not_used() {
    let gone = Arc::new(tokio::sync::Notify::new());
    let peer = Peer::start({
        let gone = gone.clone();
        move |_, mut stream| {
            let gone = gone.clone();
            async move {
                while common::read_request(&mut stream).await.is_some() {
                    tokio::io::AsyncWriteExt::write_all(&mut stream, OK).await.unwrap();
                }
                gone.notify_one();
            }
        }
    })
    .await;
    let transport = builder().pool_idle_timeout(Duration::from_millis(50)).build().unwrap();
    for accepted in 1..=2 {
        let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
        assert_eq!((attempt.fate, attempt.reused, peer.accepted()), (Fate::Answered, false, accepted));
        gone.notified().await;
    }
}

#[tokio::test]
async fn without_a_pool_each_attempt_has_its_own_connection() {
    for builder in [builder().pool_idle_per_host(0), builder().pool_idle_timeout(Duration::ZERO)] {
        let peer = Peer::answering(OK).await;
        let transport = builder.build().unwrap();
        for accepted in 1..=2 {
            let attempt = transport.attempt(post(&peer.url(), "payload", patient())).await;
            assert_eq!((attempt.fate, attempt.reused, peer.accepted()), (Fate::Answered, false, accepted));
        }
    }
}

#[tokio::test]
async fn no_more_connections_stay_idle_than_allowed() {
    let peer = Peer::answering(OK).await;
    let transport = builder().pool_idle_per_host(2).build().unwrap();
    let request = post(&peer.url(), "payload", patient());
    let volley = |count: usize| {
        let tasks: Vec<_> = (0..count)
            .map(|_| {
                let (transport, request) = (transport.clone(), request.clone());
                tokio::spawn(async move { transport.attempt(request.clone()).await.reused })
            })
            .collect();
        async move {
            let mut reused = 0;
            for task in tasks {
                reused += usize::from(task.await.unwrap());
            }
            reused
        }
    };
    assert_eq!((volley(8).await, peer.accepted()), (0, 8));
    assert_eq!((volley(8).await, peer.accepted()), (2, 14));
}
