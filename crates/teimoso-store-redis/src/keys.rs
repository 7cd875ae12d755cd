//! Names of keys: S2's three public ones, and the tag under which a shard keeps everything of its own.
//!
//! The tag *is* the ingress key, so that both are in one slot of a Cluster: `{webhooks:prontos}:meta` hashes like
//! `webhooks:prontos`. Scripts derive the private names from the first one.
//!
//! The other two public keys are in slots of their own, so in a Cluster no script touches them: what waits is kept under
//! the tag, and so is what died until it was copied (see `outlying`).

/// The prefix of S2.
pub const DEFAULT_PREFIX: &str = "webhooks";

/// The names under one prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Keys {
    ready: String,
    public_waiting: String,
    public_buried: String,
    tag: String,
    /// In a Cluster, where keys with another tag are another server's.
    apart: bool,
}

impl Keys {
    pub(crate) fn new(prefix: &str, apart: bool) -> Self {
        let ready = format!("{prefix}:prontos");
        let (public_waiting, public_buried) = (format!("{prefix}:espera"), format!("{prefix}:mortos"));
        Self { tag: format!("{{{ready}}}:"), ready, public_waiting, public_buried, apart }
    }

    /// Where anybody may RPUSH an event (S2.1, S2.2).
    pub(crate) fn ready(&self) -> &str {
        &self.ready
    }

    /// Where what came from there waits for its next attempt, by due time (S2.1).
    pub(crate) fn waiting(&self) -> String {
        if self.apart { self.own("espera") } else { self.public_waiting.clone() }
    }

    /// Where a sender of the original design lets its events wait.
    pub(crate) fn public_waiting(&self) -> &str {
        &self.public_waiting
    }

    /// Where an operator looks for dead letters.
    pub(crate) fn public_buried(&self) -> &str {
        &self.public_buried
    }

    /// Where what came from there and was given up stays (S2.1, S2.9).
    pub(crate) fn buried(&self) -> String {
        if self.apart { self.own("mortos") } else { self.public_buried.clone() }
    }

    /// A private key.
    pub(crate) fn own(&self, name: &str) -> String {
        format!("{}{name}", self.tag)
    }

    /// What every script declares: its `meta` hash; and in a Cluster a key that never exists.
    ///
    /// While a slot moves, its keys are on two nodes, and a script that finds half of them would stop in the middle of a
    /// transition. A declared key that is on neither node has the server refuse it before it begins.
    pub(crate) fn declared(&self) -> Vec<String> {
        let mut declared = vec![self.own("meta")];
        if self.apart {
            declared.push(self.own("-"));
        }
        declared
    }

    /// The shard's hash of single values.
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
        let keys = Keys::new(DEFAULT_PREFIX, false);
        assert_eq!(keys.ready(), "webhooks:prontos");
        assert_eq!(keys.waiting(), "webhooks:espera");
        assert_eq!(keys.declared(), ["{webhooks:prontos}:meta"]);
    }

    #[test]
    fn in_a_cluster_everything_a_script_touches_has_the_tag() {
        let keys = Keys::new(DEFAULT_PREFIX, true);
        let touched = [keys.declared(), vec![keys.waiting(), keys.bell()]].concat();
        assert!(touched.iter().all(|key| key.starts_with("{webhooks:prontos}:")), "{touched:?}");
        assert_eq!(keys.declared().len(), 2);
        assert_eq!((keys.public_waiting(), keys.public_buried()), ("webhooks:espera", "webhooks:mortos"));
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
