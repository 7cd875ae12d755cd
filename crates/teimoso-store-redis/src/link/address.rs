//! The address a person gives: one server, a group of sentinels, or a Cluster, with user, password and database.
//!
//! | form | where the server is |
//! |---|---|
//! | `redis://host[:6379][/db]` | there |
//! | `redis+sentinel://host[:26379],…/master[/db]` | whoever the sentinels name |
//! | `redis+cluster://host[:6379],…[/0]` | whoever has the slot of the ready list |
//!
//! Each is spoken over TLS with `rediss` instead of `redis`. No sentence repeats what was given: it may hold a password.

use std::sync::Arc;

use redis::{IntoConnectionInfo, RedisConnectionInfo};
use teimoso_delivery::ports::BoxFuture;
use tokio::sync::watch;

use super::cluster::SlotOwner;
use super::place::{Access, Host, Locate, Target};
use super::sentinel::Sentinels;
use super::{Failure, Trouble};
use crate::options::Options;

const FORMS: &str = "expected redis://[user:password@]host[:port][/db], \
                     redis+sentinel://[user:password@]host[:port],…/master[/db] or \
                     redis+cluster://[user:password@]host[:port],…; over TLS with rediss instead of redis";

const REDIS_PORT: u16 = 6_379;
const SENTINEL_PORT: u16 = 26_379;

/// A parsed address.
#[derive(Clone)]
pub(crate) struct Address {
    way: Way,
    access: Access,
    shown: String,
}

#[derive(Clone)]
enum Way {
    Fixed(Host),
    Sentinels(Arc<Sentinels>),
    Cluster(Vec<Host>),
}

/// The parts of a URL, none of them judged.
struct Parts<'a> {
    scheme: &'a str,
    credentials: &'a str,
    hosts: Vec<&'a str>,
    path: Vec<&'a str>,
    query: &'a str,
}

impl<'a> Parts<'a> {
    fn of(url: &'a str) -> Option<Self> {
        let (scheme, rest) = url.split_once("://")?;
        let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
        let (credentials, hosts) = authority.rsplit_once('@').unwrap_or(("", authority));
        let path = path.split('/').filter(|part| !part.is_empty()).collect();
        Some(Self { scheme, credentials, hosts: hosts.split(',').collect(), path, query })
    }
}

impl Address {
    /// Reads a URL; what options say of users and passwords wins over what is in it.
    pub(crate) fn parse(url: &str, options: &Options) -> Result<Self, Failure> {
        let parts = Parts::of(url).ok_or_else(|| unusable(FORMS))?;
        let (tls, way) = match parts.scheme.split_once('+').unwrap_or((parts.scheme, "")) {
            ("redis", way) => (false, way),
            ("rediss", way) => (true, way),
            _ => return Err(unusable(FORMS)),
        };
        let authority: Option<Arc<[u8]>> = options.authority.as_deref().map(Arc::from);
        if authority.as_deref().is_some_and(|pem| !holds_certificate(pem)) {
            let sentence = "what is named as the servers' authority holds no certificate in PEM";
            return Err(Failure::new(Trouble::Unsuitable, sentence));
        }
        let access = |settings| Access { settings, tls, authority: authority.clone() };
        let (user, password) = (options.user.as_deref(), options.password.as_deref());
        let settings = |db: &str| settings(parts.credentials, db, user, password);
        let scheme = parts.scheme;
        match (way, parts.path.as_slice()) {
            ("", [] | [_]) => {
                let [host] = hosts(&parts, REDIS_PORT)?.try_into().map_err(|_| {
                    unusable("one server has one address; several are redis+sentinel:// or redis+cluster://")
                })?;
                let access = access(settings(parts.path.first().unwrap_or(&"0"))?);
                no_query(&parts)?;
                let shown = format!("{scheme}://{host}/{}", access.settings.db());
                Ok(Self { way: Way::Fixed(host), access, shown })
            }
            ("sentinel", [master, db @ ..]) if db.len() < 2 => {
                let hosts = hosts(&parts, SENTINEL_PORT)?;
                let to_master = access(settings(db.first().unwrap_or(&"0"))?);
                let shown = format!("{scheme}://{}/{master}/{}", listed(&hosts), to_master.settings.db());
                let own = access(sentinel_settings(&parts, options)?);
                let group = Sentinels::new(hosts, (*master).to_owned(), own, to_master.clone());
                Ok(Self { way: Way::Sentinels(Arc::new(group)), access: to_master, shown })
            }
            ("sentinel", []) => {
                Err(unusable("the sentinels' url must end with the name of the master: …/master"))
            }
            ("cluster", [] | ["0"]) => {
                let hosts = hosts(&parts, REDIS_PORT)?;
                no_query(&parts)?;
                let shown = format!("{scheme}://{}", listed(&hosts));
                Ok(Self { way: Way::Cluster(hosts), access: access(settings("0")?), shown })
            }
            ("cluster", [_]) => Err(unusable("a Cluster has one database only, 0")),
            _ => Err(unusable(FORMS)),
        }
    }

    /// For people: without credentials.
    pub(crate) fn shown(&self) -> &str {
        &self.shown
    }

    pub(crate) const fn is_cluster(&self) -> bool {
        matches!(self.way, Way::Cluster(_))
    }

    /// The sentinels, which have to be listened to.
    pub(crate) fn sentinels(&self) -> Option<Arc<Sentinels>> {
        match &self.way {
            Way::Sentinels(group) => Some(group.clone()),
            Way::Fixed(_) | Way::Cluster(_) => None,
        }
    }

    /// The way to the server that has this key.
    pub(crate) fn place_of(&self, key: &str) -> Arc<dyn Locate> {
        match &self.way {
            Way::Fixed(host) => Arc::new(Fixed::new(host.clone(), self.access.clone())),
            Way::Sentinels(group) => group.clone(),
            Way::Cluster(seeds) => Arc::new(SlotOwner::new(seeds.clone(), key, self.access.clone())),
        }
    }
}

/// One server that stays where it is.
struct Fixed {
    host: Host,
    access: Access,
    /// Never changes.
    moves: watch::Sender<u64>,
}

impl Fixed {
    fn new(host: Host, access: Access) -> Self {
        Self { host, access, moves: watch::Sender::new(0) }
    }
}

impl Locate for Fixed {
    fn locate(&self) -> BoxFuture<'_, Result<Target, Failure>> {
        Box::pin(std::future::ready(self.access.to(&self.host)))
    }

    fn heard(&self, _: &Failure) {}

    fn moves(&self) -> watch::Receiver<u64> {
        self.moves.subscribe()
    }
}

fn unusable(sentence: &str) -> Failure {
    Failure::new(Trouble::Unsuitable, format!("the store's url cannot be used: {sentence}"))
}

fn holds_certificate(pem: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";
    pem.windows(BEGIN.len()).any(|window| window == BEGIN)
}

fn hosts(parts: &Parts<'_>, port: u16) -> Result<Vec<Host>, Failure> {
    parts.hosts.iter().map(|host| read_host(host, port).ok_or_else(|| unusable(FORMS))).collect()
}

/// A host, its port if there is one: an IPv6 address stands in brackets.
fn read_host(text: &str, port: u16) -> Option<Host> {
    let has_port =
        text.rfind(':').is_some_and(|colon| !text.ends_with(']') && colon > text.rfind(']').unwrap_or(0));
    let named = if has_port { text.to_owned() } else { format!("{text}:{port}") };
    let usable =
        |name: &str| !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || "@/#".contains(c));
    Host::parse(&named)
        .filter(|host| usable(&host.name) && (!host.name.contains(':') || text.starts_with('[')))
}

fn listed(hosts: &[Host]) -> String {
    hosts.iter().map(Host::to_string).collect::<Vec<_>>().join(",")
}

fn no_query(parts: &Parts<'_>) -> Result<(), Failure> {
    if parts.query.is_empty() {
        return Ok(());
    }
    Err(unusable("it takes no parameters; sentinel_user and sentinel_password are for redis+sentinel://"))
}

/// Credentials as a URL spells them, with those given beside it instead.
fn settings(
    credentials: &str,
    db: &str,
    user: Option<&str>,
    password: Option<&str>,
) -> Result<RedisConnectionInfo, Failure> {
    let at = if credentials.is_empty() { "" } else { "@" };
    let info = format!("redis://{credentials}{at}h/{db}").into_connection_info();
    let mut settings = info.map_err(|_| unusable(FORMS))?.redis_settings().clone();
    if let Some(user) = user {
        settings = settings.set_username(user);
    }
    if let Some(password) = password {
        settings = settings.set_password(password);
    }
    Ok(settings)
}

/// The sentinels' own: they know nothing of the master's, and refuse a password where they have none.
fn sentinel_settings(parts: &Parts<'_>, options: &Options) -> Result<RedisConnectionInfo, Failure> {
    let (mut user, mut password) = ("", "");
    for pair in parts.query.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("sentinel_user", value)) => user = value,
            Some(("sentinel_password", value)) => password = value,
            _ => return Err(unusable("its parameters are sentinel_user and sentinel_password")),
        }
    }
    let credentials = if password.is_empty() { user.to_owned() } else { format!("{user}:{password}") };
    settings(&credentials, "0", options.sentinel_user.as_deref(), options.sentinel_password.as_deref())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(url: &str) -> Result<Address, Failure> {
        Address::parse(url, &Options::default())
    }

    #[test]
    fn an_address_is_shown_without_its_password() {
        for (url, shown) in [
            ("redis://ana:segredo@127.0.0.1:6380/2", "redis://127.0.0.1:6380/2"),
            ("redis://127.0.0.1", "redis://127.0.0.1:6379/0"),
            ("rediss://[::1]/1", "rediss://[::1]:6379/1"),
            ("redis://[::1]:7", "redis://[::1]:7/0"),
            ("redis+sentinel://:segredo@a,b:7/m", "redis+sentinel://a:26379,b:7/m/0"),
            ("rediss+sentinel://a/m/3?sentinel_password=segredo", "rediss+sentinel://a:26379/m/3"),
            ("redis+cluster://ana:segredo@a:1,b,[::1]:2/0", "redis+cluster://a:1,b:6379,[::1]:2"),
            ("rediss+cluster://a", "rediss+cluster://a:6379"),
        ] {
            let address = parse(url).unwrap();
            assert_eq!(address.shown(), shown);
            assert_eq!(address.access.tls, url.starts_with("rediss"), "{url}");
        }
    }

    #[test]
    fn credentials_of_the_url_are_decoded_and_those_given_beside_it_win() {
        let credentials = |address: &Address| {
            let settings = &address.access.settings;
            (settings.username().map(str::to_owned), settings.password().map(str::to_owned), settings.db())
        };
        let some = |text: &str| Some(text.to_owned());
        let address = parse("redis://ana:s%40gredo@127.0.0.1/2").unwrap();
        assert_eq!(credentials(&address), (some("ana"), some("s@gredo"), 2));
        let beside = Options { user: some("bia"), password: some("outra"), ..Options::default() };
        let address = Address::parse("redis+cluster://ana:segredo@a", &beside).unwrap();
        assert_eq!(credentials(&address), (some("bia"), some("outra"), 0));
    }

    #[test]
    fn the_sentinels_have_credentials_of_their_own() {
        let of = |url: &str, options: &Options| {
            let own = sentinel_settings(&Parts::of(url).unwrap(), options).unwrap();
            (own.username().map(str::to_owned), own.password().map(str::to_owned))
        };
        let some = |text: &str| Some(text.to_owned());
        let plain = Options::default();
        assert_eq!(of("redis+sentinel://ana:segredo@a/m", &plain), (None, None));
        assert_eq!(of("redis+sentinel://a/m?sentinel_password=x%26y", &plain), (None, some("x&y")));
        let both = "redis+sentinel://a/m?sentinel_user=eva&sentinel_password=x";
        assert_eq!(of(both, &plain), (some("eva"), some("x")));
        let beside = Options { sentinel_password: some("z"), ..plain };
        assert_eq!(of(both, &beside), (some("eva"), some("z")));
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_sentence_that_repeats_nothing() {
        for url in [
            "",
            "segredo",
            "http://segredo",
            "redis://",
            "redis://segredo/x",
            "redis://segredo:x",
            "redis://segredo:70000",
            "redis://se gredo",
            "redis://a,segredo",
            "redis://::1",
            "redis://a/0/segredo",
            "redis://a?segredo=1",
            "redis+other://segredo",
            "unix:///tmp/segredo",
            "redis+sentinel://segredo",
            "redis+sentinel://,/segredo",
            "redis+sentinel://a/m/0/segredo",
            "redis+sentinel://a/m?password=segredo",
            "redis+cluster://a/7",
            "redis+cluster://a,",
        ] {
            let refused = parse(url).map(|address| address.shown).unwrap_err();
            assert_eq!(refused.trouble, Trouble::Unsuitable, "{url}");
            assert!(!refused.to_string().contains("segredo"), "{refused}");
        }
    }
}
