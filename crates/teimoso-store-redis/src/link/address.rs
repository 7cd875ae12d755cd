//! The address a person gives: `redis://` or `rediss://`, with user, password and database.
//!
//! Deliberately absent, behind the same small interface: Sentinel's and a Cluster's ways of saying where the server is.

use redis::{ConnectionInfo, IntoConnectionInfo};
use teimoso_delivery::ports::BoxFuture;

use super::{Failure, Locate, Trouble};

/// One server at a fixed address.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    info: ConnectionInfo,
    shown: String,
}

impl Address {
    /// Reads a URL; `user` and `password` given beside it win over what is in it.
    pub(crate) fn parse(url: &str, user: Option<&str>, password: Option<&str>) -> Result<Self, Failure> {
        let unusable = |rule: String| Failure::new(Trouble::Refused, rule);
        let scheme = url.split("://").next().unwrap_or_default();
        if !matches!(scheme, "redis" | "rediss") {
            return Err(unusable("the store's url must begin with redis:// or rediss://".to_owned()));
        }
        let info = url.into_connection_info().map_err(|error| {
            unusable(format!(
                "the store's url cannot be used: {error}; expected redis://[user:password@]host[:port][/db]"
            ))
        })?;
        let mut settings = info.redis_settings().clone();
        if let Some(user) = user {
            settings = settings.set_username(user);
        }
        if let Some(password) = password {
            settings = settings.set_password(password);
        }
        let shown = format!("{scheme}://{}/{}", info.addr(), settings.db());
        Ok(Self { info: info.set_redis_settings(settings), shown })
    }

    /// For people: without credentials.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }
}

impl Locate for Address {
    fn locate(&self) -> BoxFuture<'_, Result<ConnectionInfo, Failure>> {
        Box::pin(std::future::ready(Ok(self.info.clone())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_shown_without_its_password() {
        let address = Address::parse("redis://ana:segredo@127.0.0.1:6380/2", None, None).unwrap();
        assert_eq!(address.shown(), "redis://127.0.0.1:6380/2");
        let settings = address.info.redis_settings();
        assert_eq!(
            (settings.username(), settings.password(), settings.db()),
            (Some("ana"), Some("segredo"), 2)
        );
    }

    #[test]
    fn credentials_given_beside_the_url_win() {
        let address = Address::parse("redis://127.0.0.1", Some("bia"), Some("outra")).unwrap();
        let settings = address.info.redis_settings();
        assert_eq!((settings.username(), settings.password()), (Some("bia"), Some("outra")));
        assert_eq!(address.shown(), "redis://127.0.0.1:6379/0");
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_sentence() {
        for url in ["", "http://a", "redis://", "redis://a/x", "unix:///tmp/x"] {
            let refused = Address::parse(url, None, None).map(|address| address.shown).map_err(|f| f.trouble);
            assert_eq!(refused, Err(Trouble::Refused), "{url}");
        }
    }
}
