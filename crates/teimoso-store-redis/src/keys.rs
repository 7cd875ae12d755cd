//! Names of keys: S2's three public ones, and the tag under which a shard keeps everything of its own.
//!
//! The tag *is* the ingress key, so that both are in one slot of a Cluster: `{webhooks:prontos}:meta` hashes like
//! `webhooks:prontos`. Scripts derive the private names from the first one.

/// The prefix of S2.
pub const DEFAULT_PREFIX: &str = "webhooks";

/// The names under one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    ready: String,
    waiting: String,
    buried: String,
    tag: String,
}

impl Keys {
    pub(crate) fn new(prefix: &str) -> Self {
        let ready = format!("{prefix}:prontos");
        let waiting = format!("{prefix}:espera");
        let buried = format!("{prefix}:mortos");
        Self { tag: format!("{{{ready}}}:"), ready, waiting, buried }
    }

    /// Where anybody may RPUSH an event (S2.1, S2.2).
    pub(crate) fn ready(&self) -> &str {
        &self.ready
    }

    /// Where what came from there waits for its next attempt, by due time (S2.1).
    pub(crate) fn waiting(&self) -> &str {
        &self.waiting
    }

    /// Where what came from there and was given up stays (S2.1, S2.9).
    pub(crate) fn buried(&self) -> &str {
        &self.buried
    }

    /// A private key.
    pub(crate) fn own(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }

    /// What every script gets as its first key.
    pub(crate) fn meta(&self) -> String {
        self.own("meta")
    }

    /// Rung when something became claimable.
    pub(crate) fn bell(&self) -> String {
        self.own("bell")
    }
}

/// Whether a prefix can be used: it must not move the tag.
pub(crate) fn is_usable_prefix(prefix: &str) -> bool {
    !prefix.is_empty()
        && prefix.len() <= 128
        && prefix.bytes().all(|b| b.is_ascii_graphic() && !b"{}".contains(&b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn s2_1_the_public_names_and_the_tag_are_what_they_are() {
        let keys = Keys::new(DEFAULT_PREFIX);
        assert_eq!((keys.ready(), keys.waiting()), ("webhooks:prontos", "webhooks:espera"));
        assert_eq!(keys.buried(), "webhooks:mortos");
        assert_eq!(keys.meta(), "{webhooks:prontos}:meta");
    }

    #[test]
    fn a_prefix_cannot_move_the_tag() {
        for (prefix, usable) in
            [("webhooks", true), ("a:b", true), ("", false), ("a{b", false), ("a b", false)]
        {
            assert_eq!(is_usable_prefix(prefix), usable, "{prefix}");
        }
    }
}
