//! The HTTP API: takes events in, shows what became of them, and takes a person's orders.
//!
//! A request passes three rooms. `routes` speak HTTP; `api` holds the wire types, and one file of it
//! (`convert`) turns them into the domain and back; [`App`] is the only one that talks to the store.
//! Everything that waits or is kept has a bound ([`ApiConfig`]); what does not fit is refused with 503
//! and `Retry-After`, never with a failure in the middle.
//!
//! Deliberately absent: delivering, deciding and storing; TLS; clocks (they come in through
//! [`teimoso_delivery::ports`]); and parsing of payloads, which are bytes here and stay so (G7).

mod admission;
mod api;
mod app;
mod batch;
mod config;
mod fingerprint;
mod guard;
mod nearest;
mod routes;
mod serve;
mod stall;

pub use app::App;
pub use config::ApiConfig;
pub use routes::router;
pub use serve::serve;
