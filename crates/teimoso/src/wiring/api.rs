//! The API over a store, as `serve` and the commands that open a store themselves both need it.
//! Deliberately absent: listening, and when it ends.

use std::sync::Arc;

use ipnet::IpNet;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::Store;
use teimoso_http::Egress;
use teimoso_retry::RetryPolicy;
use teimoso_server::{ApiConfig, App};

use super::destinations::GuardedDestinations;

/// The API with this version's name, `policy` for the events that name none, and every other bound at its default.
#[must_use]
pub fn config(policy: RetryPolicy) -> ApiConfig {
    ApiConfig::new(env!("CARGO_PKG_VERSION"), policy)
}

/// The application: events go where the egress rules and `allow_net` let them (G12).
#[must_use]
pub fn app(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, allow_net: &[IpNet], config: ApiConfig) -> App {
    let destinations = GuardedDestinations::new(Egress::new(allow_net.to_vec()));
    App::new(Arc::clone(store), Arc::new(destinations), Arc::clone(clock), config)
}
