//! The Redis store on real servers, each started by the test that uses it.

mod bulk;
mod chaos;
mod clock;
mod cluster;
mod conformance;
mod cost;
mod doctor;
mod faults;
mod fixture;
mod history;
mod load;
mod moving;
mod opening;
mod public;
mod seats;
mod sentinels;
mod staging;
mod time;
mod tls;
mod waking;
mod wire;
mod world;
