//! Producers: what is sent to the API, in three ways. They share the cores with what they load, so they are cheap.

pub mod batch;
pub mod paced;
pub mod single;
