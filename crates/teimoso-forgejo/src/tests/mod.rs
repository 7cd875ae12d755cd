//! The client and its nets against a Forgejo in miniature, over real sockets, on a clock that never really waits.

mod claim;
mod contract;
mod issues;
mod merge_table;
mod operations;
mod protection;
mod spec;
mod story;
mod support;
