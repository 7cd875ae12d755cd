//! Parsed URLs and their budgets, kept so that a repeated request parses and allocates nothing; absent: what a URL may
//! be, which is [`Target`]'s to say.

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};

use foldhash::quality::RandomState;
use http::Uri;

use super::budgets::{Account, Budgets};
use crate::target::{InvalidTarget, Target};

/// Parsed URLs kept by a client. When one more comes, all go: the busy ones are back at once.
pub const TARGETS_KEPT_MAX: usize = 256;

/// Where a request goes, and what its retries are paid from.
#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) target: Arc<Target>,
    pub(crate) account: Option<Arc<Account>>,
}

/// The destinations of one client.
pub(crate) struct Destinations {
    budgets: Option<Budgets>,
    kept: Mutex<HashMap<Spelled, Destination, RandomState>>,
}

/// A URL as its caller spelled it. To compare spellings is much cheaper than to compare URLs, where upper case is lower
/// case; the price is that a URL which is spelled in two ways is parsed twice.
#[derive(Eq)]
struct Spelled(Uri);

impl Spelled {
    fn parts(&self) -> [Option<&str>; 3] {
        let Self(uri) = self;
        let path = uri.path_and_query().map(|path| path.as_str());
        [uri.scheme_str(), uri.authority().map(|authority| authority.as_str()), path]
    }
}

impl PartialEq for Spelled {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts()
    }
}

impl Hash for Spelled {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl Destinations {
    pub(crate) fn new(budgets: Option<Budgets>) -> Self {
        Self { budgets, kept: Mutex::default() }
    }

    /// The destination of a URL.
    pub(crate) fn of(&self, uri: Uri) -> Result<Destination, InvalidTarget> {
        let kept = || self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let spelled = Spelled(uri);
        if let Some(destination) = kept().get(&spelled) {
            return Ok(destination.clone());
        }
        let destination = self.of_target(Target::parse(&spelled.0.to_string())?);
        let mut kept = kept();
        if kept.len() >= TARGETS_KEPT_MAX {
            kept.clear();
        }
        kept.insert(spelled, destination.clone());
        Ok(destination)
    }

    /// The destination of a redirect, which is not kept: it may be a different one each time.
    pub(crate) fn of_target(&self, target: Target) -> Destination {
        let account = self.budgets.as_ref().map(|budgets| budgets.of(&target.origin()));
        Destination { target: Arc::new(target), account }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn the_same_url_is_parsed_once_and_one_authority_has_one_account() {
        let destinations = Destinations::new(Some(Budgets::new(teimoso_retry::Budget::default())));
        let first = destinations.of(uri("http://h.example/a?b=c")).unwrap();
        let again = destinations.of(uri("http://h.example/a?b=c")).unwrap();
        assert!(Arc::ptr_eq(&first.target, &again.target));
        assert_eq!(first.target.as_str(), "http://h.example/a?b=c");
        let account = first.account.unwrap();
        for other in ["http://h.example:80/other", "HTTP://H.EXAMPLE/a?b=c"] {
            let other = destinations.of(uri(other)).unwrap();
            assert!(Arc::ptr_eq(&account, &other.account.unwrap()));
        }
    }

    #[test]
    fn what_is_kept_is_bounded() {
        let destinations = Destinations::new(None);
        for number in 0..3 * TARGETS_KEPT_MAX {
            destinations.of(uri(&format!("http://h.example/{number}"))).unwrap();
        }
        assert!(destinations.kept.lock().unwrap().len() <= TARGETS_KEPT_MAX);
    }

    #[test]
    fn an_unusable_url_is_refused_and_not_kept() {
        let destinations = Destinations::new(None);
        for text in ["/relative", "http://user@h.example/", "ftp://h.example/", "http://h.example:0/", "*"] {
            assert!(destinations.of(uri(text)).is_err(), "{text}");
        }
        assert!(destinations.kept.lock().unwrap().is_empty());
    }
}
