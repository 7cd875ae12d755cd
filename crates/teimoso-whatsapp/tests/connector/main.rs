//! The connector against doubles of all nine providers, over real sockets.

mod answers;
mod faults;
mod origin_s3;
mod outcomes;
mod requests;
mod secrets;
mod specs;
mod support;
