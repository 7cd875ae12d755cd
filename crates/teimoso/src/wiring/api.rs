//! The API over a store, as `serve` and the commands that open a store themselves both need it.
//! Deliberately absent: listening, and when it ends.

use std::net::SocketAddr;
use std::sync::Arc;

use ipnet::IpNet;
use teimoso_delivery::ports::Clock;
use teimoso_delivery::store::Store;
use teimoso_http::Egress;
use teimoso_retry::RetryPolicy;
use teimoso_server::{ApiConfig, App};

use super::destinations::GuardedDestinations;

/// The API with this version's name, `policy` for the events that name none, and every other bound at its default. One
/// that listens on loopback answers to local names only.
#[must_use]
pub fn config(policy: RetryPolicy, listening: SocketAddr) -> ApiConfig {
    let mut config = ApiConfig::new(env!("CARGO_PKG_VERSION"), policy);
    config.only_local_names = listening.ip().to_canonical().is_loopback();
    config
}

/// The application: events go where the egress rules and `allow_net` let them (G12).
#[must_use]
pub fn app(store: &Arc<dyn Store>, clock: &Arc<dyn Clock>, allow_net: &[IpNet], config: ApiConfig) -> App {
    let destinations = GuardedDestinations::new(Egress::new(allow_net.to_vec()));
    App::new(Arc::clone(store), Arc::new(destinations), Arc::clone(clock), config)
}

#[cfg(test)]
mod tests {
    use teimoso_retry::Preset;

    use super::*;

    #[test]
    fn an_api_on_loopback_answers_to_local_names_only() {
        let only_local = |listening: &str| {
            let listening = listening.parse().expect("an address");
            config(RetryPolicy::preset(Preset::Patient), listening).only_local_names
        };
        assert!(
            ["127.0.0.1:80", "127.0.0.9:80", "[::1]:80", "[::ffff:127.0.0.1]:80"].into_iter().all(only_local)
        );
        assert!(!["0.0.0.0:80", "10.0.0.1:80", "[::]:80"].into_iter().any(only_local));
    }
}
