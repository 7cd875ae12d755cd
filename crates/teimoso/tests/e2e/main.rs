//! The real binary over real sockets: the story it exists for, what kills it, what is thrown at it.
//!
//! One program for all of it, so that the product is linked once. Deliberately absent: waiting for luck.
//! Every wait is for a condition, with a deadline that fails the test.

mod crash;
mod crash_windows;
mod doctor;
mod full_disk;
mod hostile;
mod signals;
mod story;
mod story_virtual;
mod support;
mod unusable_store;
mod wrong_input;
