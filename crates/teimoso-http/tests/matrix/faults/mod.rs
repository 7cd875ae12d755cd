//! Peers that misbehave, each in one way, and count what they executed; absent: any HTTP library, which would not
//! misbehave on demand, and any opinion on what a client should make of it.
//!
//! A request *arrives* when the peer has it before it and can misbehave; it is *executed* when it was read completely
//! and would have been acted on. Everything is blocking and plays on threads of its own, so that a client can stand
//! still while its peer goes on. Nothing sleeps: [`Peer::spoil`] waits for the deed, and [`Peer::tally`] for every
//! connection to end.

mod catalogue;
mod http1;
mod http2;
mod peer;
mod tls;

pub use catalogue::{FAULTS, Fault, Idle, Lookup};
pub use peer::{Peer, Tally};
