//! The API over real sockets. Requests and answers are plain bytes here, so that what is tested is what any
//! client would see.

mod batch;
mod bounds;
mod client;
mod deliveries;
mod events;
mod raw;
mod refusals;
mod server;
