//! What goes over the wire: bodies, query strings, headers, views and problems.
//!
//! Deliberately absent: HTTP methods and paths, which are `routes`', and every decision about an event.
//! Only [`convert`] knows both these types and the domain's.

pub(crate) mod convert;
pub(crate) mod header;
pub(crate) mod json;
pub(crate) mod problem;
pub(crate) mod query;
pub(crate) mod request;
pub(crate) mod time;
pub(crate) mod view;
