//! Where the server is that may be written to: what every way of finding it has in common.
//!
//! Deliberately absent: the ways themselves, one file each.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{
    AsyncConnectionConfig, Client, Cmd, ConnectionAddr, ConnectionInfo, IntoConnectionInfo, ProtocolVersion,
    PushInfo, RedisConnectionInfo, TlsCertificates, Value, cmd,
};
use teimoso_delivery::ports::BoxFuture;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;

use super::failure::Failure;

/// A connection must be up within this.
const CONNECT: Duration = Duration::from_secs(2);
/// An answer must come within this: scripts take milliseconds.
const RESPONSE: Duration = Duration::from_secs(5);
/// For one question to one of several who know: the next is asked after this.
const QUESTION: Duration = Duration::from_secs(1);

/// Where the server that may be written to is at present: one address, or whoever Sentinel or a Cluster's map names.
pub(crate) trait Locate: Send + Sync + 'static {
    /// Asked before every connection.
    fn locate(&self) -> BoxFuture<'_, Result<Target, Failure>>;

    /// Told of everything that failed at what was located, so that the next answer may be another one.
    fn heard(&self, failure: &Failure);

    /// Changes when another server became it: connections made before are to be dropped, whatever is under way there.
    fn moves(&self) -> watch::Receiver<u64>;
}

/// A host and its port.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Host {
    pub(crate) name: String,
    pub(crate) port: u16,
}

impl Host {
    /// As the server itself writes it in a redirection: an IPv6 address without brackets.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let (name, port) = text.rsplit_once(':')?;
        let name = name.trim_start_matches('[').trim_end_matches(']');
        Some(Self { name: name.to_owned(), port: port.parse().ok()? }).filter(|host| !host.name.is_empty())
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            return write!(f, "[{}]:{}", self.name, self.port);
        }
        write!(f, "{}:{}", self.name, self.port)
    }
}

/// With what a server is talked to, whichever it is.
#[derive(Clone)]
pub(crate) struct Access {
    pub(crate) settings: RedisConnectionInfo,
    pub(crate) tls: bool,
    /// The authorities that vouch for certificates, in PEM; `None` stands for the machine's own.
    pub(crate) authority: Option<Arc<[u8]>>,
}

impl Access {
    /// That server, whatever it says it is.
    pub(crate) fn to(&self, host: &Host) -> Result<Target, Failure> {
        let Host { name, port } = host.clone();
        let address = if self.tls {
            // The client takes the arithmetic of the whole process. Whoever chose one before is not overruled.
            let _chosen = rustls::crypto::ring::default_provider().install_default();
            ConnectionAddr::TcpTls { host: name, port, insecure: false, tls_params: None }
        } else {
            ConnectionAddr::Tcp(name, port)
        };
        let info = address.into_connection_info()?.set_redis_settings(self.settings.clone());
        Ok(Target { info, authority: self.authority.clone().filter(|_| self.tls), must_lead: false })
    }

    /// That server, if it says that it is a master.
    pub(crate) fn to_master(&self, host: &Host) -> Result<Target, Failure> {
        Ok(Target { must_lead: true, ..self.to(host)? })
    }
}

/// What a connection is made to.
pub(crate) struct Target {
    info: ConnectionInfo,
    authority: Option<Arc<[u8]>>,
    /// Somebody else named it: it has to say itself that it is a master.
    must_lead: bool,
}

/// How patient a connection is.
struct Patience {
    connect: Duration,
    response: Duration,
}

/// Makes one connection, with explicit time-outs; `pushes` hears what the server sends unasked.
pub(crate) async fn connect(
    target: Target,
    protocol: ProtocolVersion,
    pushes: Option<UnboundedSender<PushInfo>>,
) -> Result<MultiplexedConnection, Failure> {
    connect_within(target, protocol, pushes, Patience { connect: CONNECT, response: RESPONSE }).await
}

/// Asks one of several who should know, and hangs up.
pub(crate) async fn ask(target: Target, questions: &[Cmd]) -> Result<Vec<Value>, Failure> {
    let patience = Patience { connect: QUESTION, response: QUESTION };
    let mut connection = connect_within(target, ProtocolVersion::RESP2, None, patience).await?;
    let mut answers = Vec::with_capacity(questions.len());
    for question in questions {
        answers.push(question.query_async(&mut connection).await?);
    }
    Ok(answers)
}

async fn connect_within(
    target: Target,
    protocol: ProtocolVersion,
    pushes: Option<UnboundedSender<PushInfo>>,
    patience: Patience,
) -> Result<MultiplexedConnection, Failure> {
    let Target { info, authority, must_lead } = target;
    let at = info.addr().to_string();
    let settings = info.redis_settings().clone().set_protocol(protocol);
    let info = info.set_redis_settings(settings);
    let client = match authority {
        Some(pem) => {
            Client::build_with_tls(info, TlsCertificates { client_tls: None, root_cert: Some(pem.to_vec()) })?
        }
        None => Client::open(info)?,
    };
    let mut config = AsyncConnectionConfig::new()
        .set_connection_timeout(Some(patience.connect))
        .set_response_timeout(Some(patience.response));
    if let Some(pushes) = pushes {
        config = config.set_push_sender(pushes);
    }
    let mut connection = client.get_multiplexed_async_connection_with_config(&config).await?;
    if must_lead && !leads(&mut connection).await? {
        return Err(Failure::not_yet(format!("{at} was named as the master and is none (yet)")));
    }
    Ok(connection)
}

async fn leads(connection: &mut MultiplexedConnection) -> Result<bool, Failure> {
    let role: Value = cmd("ROLE").query_async(connection).await?;
    let Value::Array(role) = role else { return Ok(false) };
    Ok(matches!(role.first(), Some(Value::BulkString(name)) if name == b"master"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirection_names_a_host_in_every_spelling() {
        for (text, shown) in [
            ("127.0.0.1:6381", Some("127.0.0.1:6381")),
            ("::1:6381", Some("[::1]:6381")),
            ("[::1]:6381", Some("[::1]:6381")),
            ("no.example:1", Some("no.example:1")),
            (":6381", None),
            ("127.0.0.1", None),
            ("127.0.0.1:x", None),
        ] {
            assert_eq!(Host::parse(text).map(|host| host.to_string()).as_deref(), shown, "{text}");
        }
    }
}
