//! Whose account at which provider: server, instance and tokens, validated once; absent: reading them from anywhere.

use std::fmt;

use http::HeaderValue;
use teimoso_http::Target;

use crate::adapter::{Facts, Instance};

/// A token. It is never printed, and must be usable in a header: visible ASCII, without spaces.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Takes a token; white space around it is not part of it.
    ///
    /// # Errors
    ///
    /// [`InvalidAccount::MissingToken`] if nothing is left, [`InvalidAccount::UnusableToken`] for anything but visible
    /// ASCII.
    pub fn new(text: &str) -> Result<Self, InvalidAccount> {
        let text = text.trim();
        match text.bytes().all(|byte| byte.is_ascii_graphic()) {
            _ if text.is_empty() => Err(InvalidAccount::MissingToken),
            true => Ok(Self(text.to_owned())),
            false => Err(InvalidAccount::UnusableToken),
        }
    }

    /// The token itself, for the wire.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// As the value of a header that is never shown.
    pub(crate) fn header(&self, prefix: &str) -> HeaderValue {
        let text = format!("{prefix}{}", self.0);
        let mut value = HeaderValue::from_str(&text).expect("visible ASCII is a header value");
        value.set_sensitive(true);
        value
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[secret]")
    }
}

/// What a caller says about an account.
#[derive(Debug, Clone)]
pub struct Settings<'a> {
    /// The base URL, `http://…` or `https://…`, with a path if the provider lives below one; `None` for the provider's
    /// own, where it has one.
    pub server: Option<&'a str>,
    /// The instance or session, where the provider has several behind one token ([`Facts::instance`]).
    pub instance: Option<&'a str>,
    /// The token of the instance.
    pub token: Secret,
    /// A second token that belongs to the account, where there is one ([`Facts::client_token`]).
    pub client_token: Option<Secret>,
}

impl Settings<'_> {
    /// A token alone.
    pub fn new(token: Secret) -> Self {
        Self { server: None, instance: None, token, client_token: None }
    }
}

/// An account that an adapter can make requests for.
#[derive(Debug, Clone)]
pub struct Account {
    server: String,
    instance: String,
    token: Secret,
    client_token: Option<Secret>,
}

impl Account {
    /// Checks what a provider needs.
    ///
    /// # Errors
    ///
    /// What is missing or cannot be used.
    pub fn new(facts: &Facts, settings: Settings<'_>) -> Result<Self, InvalidAccount> {
        let server = settings.server.or(facts.server).ok_or(InvalidAccount::MissingServer)?;
        let server = server.trim().trim_end_matches('/');
        if server.contains(['?', '#']) {
            let sentence = "it has a query; give the address up to the provider's own paths".to_owned();
            return Err(InvalidAccount::UnusableServer(sentence));
        }
        Target::parse(server).map_err(|invalid| InvalidAccount::UnusableServer(invalid.sentence))?;
        let given = settings.instance.map(str::trim).filter(|name| !name.is_empty());
        let instance = match (given, facts.instance) {
            (Some(name), _) if name.chars().any(char::is_control) => {
                return Err(InvalidAccount::UnusableInstance);
            }
            (Some(name), _) => name.to_owned(),
            (None, Instance::Required) => return Err(InvalidAccount::MissingInstance),
            (None, Instance::Default(name)) => name.to_owned(),
            (None, Instance::Unused) => String::new(),
        };
        let server = server.to_owned();
        Ok(Self { server, instance, token: settings.token, client_token: settings.client_token })
    }

    /// The base URL, without a slash at its end.
    pub fn server(&self) -> &str {
        &self.server
    }

    /// The instance; empty where the provider needs none and none was given.
    pub fn instance(&self) -> &str {
        &self.instance
    }

    /// The token of the instance.
    pub fn token(&self) -> &Secret {
        &self.token
    }

    /// The token of the account, if there is one.
    pub fn client_token(&self) -> Option<&Secret> {
        self.client_token.as_ref()
    }
}

/// Why an account cannot be used. The text is lower case and holds no token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InvalidAccount {
    /// The provider runs wherever its owner put it, and nobody said where.
    MissingServer,
    /// No base URL; the sentence says why.
    UnusableServer(String),
    /// Several instances stand behind one server, and none was named.
    MissingInstance,
    /// An instance with a control character.
    UnusableInstance,
    /// There is no token.
    MissingToken,
    /// A token that no header can carry.
    UnusableToken,
}

impl fmt::Display for InvalidAccount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MissingServer => f.write_str("the address of the provider is missing"),
            Self::UnusableServer(sentence) => write!(f, "the address cannot be used: {sentence}"),
            Self::MissingInstance => f.write_str("the name of the instance is missing"),
            Self::UnusableInstance => f.write_str("the name of the instance holds a control character"),
            Self::MissingToken => f.write_str("the token is missing"),
            Self::UnusableToken => f.write_str("the token is not one word of visible ASCII"),
        }
    }
}

impl std::error::Error for InvalidAccount {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::provider;

    fn account(name: &str, server: Option<&str>, instance: Option<&str>) -> Result<Account, InvalidAccount> {
        let settings =
            Settings { server, instance, ..Settings::new(Secret::new(" s3cret\n").expect("a token")) };
        Account::new(provider(name).expect("known").facts(), settings)
    }

    #[test]
    fn a_token_is_one_word_and_never_printed() {
        assert_eq!(Secret::new(" \n"), Err(InvalidAccount::MissingToken));
        assert_eq!(Secret::new("a b"), Err(InvalidAccount::UnusableToken));
        assert_eq!(Secret::new("ação"), Err(InvalidAccount::UnusableToken));
        let account = account("wuzapi", Some("http://127.0.0.1:9"), None).expect("complete");
        assert_eq!(account.token().reveal(), "s3cret");
        assert!(!format!("{account:?}{:?}", account.token().header("Bearer ")).contains("s3cret"));
    }

    #[test]
    fn what_a_provider_needs_is_asked_for() {
        assert_eq!(account("waha", None, None).unwrap_err(), InvalidAccount::MissingServer);
        let server = Some("http://127.0.0.1:9/waha/");
        assert_eq!(account("evolution", server, Some(" ")).unwrap_err(), InvalidAccount::MissingInstance);
        assert_eq!(account("waha", server, Some("a\tb")).unwrap_err(), InvalidAccount::UnusableInstance);
        let waha = account("waha", server, None).expect("complete");
        assert_eq!((waha.server(), waha.instance()), ("http://127.0.0.1:9/waha", "default"));
        assert_eq!(account("whapi", None, None).expect("complete").server(), "https://gate.whapi.cloud");
    }

    #[test]
    fn an_address_that_is_none_is_refused_without_being_repeated() {
        for server in
            ["127.0.0.1:9", "http://u:s3cret@127.0.0.1", "ftp://127.0.0.1", "http://127.0.0.1/?t=s3cret"]
        {
            let refused = account("waha", Some(server), None).unwrap_err().to_string();
            assert!(refused.starts_with("the address cannot be used: "), "{refused}");
            assert!(!refused.contains("s3cret"), "{refused}");
        }
    }
}
