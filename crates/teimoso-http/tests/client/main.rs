//! The client over real sockets, on a clock that never really waits.
#![expect(clippy::unwrap_used, reason = "a test ends at the first surprise")]

#[path = "../common/mod.rs"]
mod common;
mod contract;
mod layer;
mod origin_s1;
mod origin_s3;
mod redirects;
mod support;
mod visible;
mod wrong_input;
