//! The Redis store on real servers, each started by the test that uses it.

mod bulk;
mod clock;
mod conformance;
mod cost;
mod doctor;
mod faults;
mod fixture;
mod moving;
mod opening;
mod server;
mod time;
mod waking;
mod wire;
mod world;
