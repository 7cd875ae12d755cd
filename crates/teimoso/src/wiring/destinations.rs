//! Judging a URL before an event is accepted for it: the transport's own parser and egress rules.

use teimoso_delivery::model::Destination;
use teimoso_delivery::ports::{Destinations, RefusedDestination};
use teimoso_http::{Egress, Target};

/// Refuses what could never be delivered, so that the producer hears it and not the dead letters.
#[derive(Debug, Clone)]
pub struct GuardedDestinations {
    egress: Egress,
}

impl GuardedDestinations {
    /// With these egress rules.
    #[must_use]
    pub fn new(egress: Egress) -> Self {
        Self { egress }
    }
}

impl Destinations for GuardedDestinations {
    fn check(&self, url: &str) -> Result<Destination, RefusedDestination> {
        let target = Target::parse(url).map_err(|invalid| RefusedDestination {
            code: "invalid_destination",
            sentence: invalid.sentence,
        })?;
        if let Some(address) = target.host_literal() {
            self.egress.check(address).map_err(|blocked| RefusedDestination {
                code: "blocked_address",
                sentence: blocked.to_string(),
            })?;
        }
        Ok(Destination {
            url: target.as_str().into(),
            lane: target.without_query().into(),
            origin: target.origin().into(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn g12_a_blocked_literal_is_refused_in_every_spelling_and_names_the_flag() {
        let guarded = GuardedDestinations::new(Egress::default());
        for url in
            ["http://127.0.0.1/x", "http://2130706433/", "http://0x7f.1/", "http://[::ffff:127.0.0.1]/"]
        {
            let refused = guarded.check(url).unwrap_err();
            assert_eq!(refused.code, "blocked_address", "{url}");
            assert!(refused.sentence.contains("--allow-net 127.0.0.0/8"), "{}", refused.sentence);
        }
    }

    #[test]
    fn a_lane_is_the_url_without_its_query() {
        let guarded = GuardedDestinations::new(Egress::default());
        let destination = guarded.check("https://example.com/hook?token=1#x").unwrap();
        assert_eq!(&*destination.url, "https://example.com/hook?token=1");
        assert_eq!(&*destination.lane, "https://example.com/hook");
        assert_eq!(&*destination.origin, "https://example.com");
    }
}
