//! The Redis store on real servers, each started by the test that uses it.

mod conformance;
mod fixture;
mod server;
