//! The Redis store on real servers, each started by the test that uses it.

mod bulk;
mod clock;
mod conformance;
mod cost;
mod faults;
mod fixture;
mod history;
mod opening;
mod server;
mod time;
mod waking;
mod wire;
mod world;
