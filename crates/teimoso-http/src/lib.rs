//! One HTTP request on the wire, and what is known of it afterwards.
//!
//! [`Transport::attempt`] makes exactly one exchange and answers with an [`Attempt`]: a
//! [`Fate`](teimoso_retry::Fate) that follows from evidence, the response as far as it came, the phase timings and a
//! stable error kind. Deliberately absent: any repetition, any opinion on whether a repetition would be wise, redirect
//! following, content decoding, cookies and proxies.
//!
//! The connection phases are separate steps on purpose (resolve, guard, connect, TLS, send, receive), because the
//! phase in which an attempt ended is the proof of what the peer can have seen:
//!
//! - [`Target`] is a URL that was validated once, with everything an attempt needs prepared;
//! - [`Egress`] refuses addresses that a delivery must not reach, after resolution and for literals too;
//! - [`Resolve`] is the port behind which names become addresses.

mod attempt;
mod connect;
mod egress;
mod evidence;
mod http1;
mod io;
mod pool;
mod resolve;
mod target;
mod tls;
mod transport;

pub use attempt::{
    Attempt, AttemptError, AttemptLimits, AttemptRequest, ErrorKind, RESPONSE_HEAD_BYTES_MAX,
    RESPONSE_HEADERS_MAX, Response, Timings,
};
pub use connect::ADDRESSES_TRIED_MAX;
pub use egress::{Blocked, Egress};
pub use pool::{POOL_IDLE_PER_HOST, POOL_IDLE_TIMEOUT, POOL_IDLE_TOTAL};
pub use resolve::{ANSWER_KEPT, LOOKUPS_MAX, NAMES_KEPT_MAX, Resolve, Resolving, SystemResolver};
pub use target::{InvalidTarget, TARGET_BYTES_MAX, Target};
pub use tls::TlsRoots;
pub use transport::{BuildError, Transport, TransportBuilder};
