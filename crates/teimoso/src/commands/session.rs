//! What a command talks to: a server, or a store that it opens for itself and closes again.
//! Deliberately absent: what is asked there.

use std::cell::RefCell;
use std::rc::Rc;

use ipnet::IpNet;

use super::Context;
use super::signals::Signals;
use crate::api_client::{ApiClient, ServerUrl};
use crate::args::ServerArgs;
use crate::exit::{CliError, Exit};
use crate::messages::Message;
use crate::wiring::direct::{DirectStore, Opening};

/// Names the server when no flag does.
const SERVER_VARIABLE: &str = "TEIMOSO_SERVER";

/// The server when nothing names one.
const SERVER_DEFAULT: &str = "http://127.0.0.1:8080";

/// Where a command's requests go.
#[derive(Debug, Clone)]
pub(super) enum Reach {
    /// To this server.
    Server(ServerUrl),
    /// To this store, opened by the command.
    Store(Opening),
}

impl Reach {
    /// Where these arguments and the environment point. A store is only looked at: it must exist, and nothing is
    /// delivered from it.
    ///
    /// # Errors
    /// `TEIMOSO_SERVER` is no server's URL.
    pub(super) fn of(args: ServerArgs) -> Result<Reach, CliError> {
        match args {
            ServerArgs { store: Some(location), .. } => {
                Ok(Reach::Store(Opening { location, create: false, allow_net: Vec::new(), deliver: false }))
            }
            ServerArgs { server: Some(server), .. } => Ok(Reach::Server(server)),
            ServerArgs { .. } => variable(SERVER_VARIABLE, SERVER_DEFAULT).map(Reach::Server),
        }
    }

    /// The same, for events to be handed over: a store is created when there is none, its events may go to these
    /// networks, and it delivers while it is open if so wished.
    ///
    /// # Errors
    /// As [`Reach::of`], and when `TEIMOSO_ALLOW_NET` is no list of networks.
    pub(super) fn to_send(args: ServerArgs, allow_net: Vec<IpNet>, deliver: bool) -> Result<Reach, CliError> {
        match Reach::of(args)? {
            Reach::Store(opening) => {
                let allow_net = if allow_net.is_empty() { allowed_nets()? } else { allow_net };
                Ok(Reach::Store(Opening { create: true, allow_net, deliver, ..opening }))
            }
            server @ Reach::Server(_) => Ok(server),
        }
    }
}

/// The networks that `serve` would allow. The flag for it belongs to `--store`, so that it cannot be read by clap:
/// a variable meant for `serve` must not make `send` ask for a store.
fn allowed_nets() -> Result<Vec<IpNet>, CliError> {
    let value = std::env::var("TEIMOSO_ALLOW_NET").unwrap_or_default();
    let nets = value.split(',').filter(|net| !net.is_empty()).map(str::parse).collect::<Result<_, _>>();
    nets.map_err(|error| CliError::usage(format!("TEIMOSO_ALLOW_NET: `{value}`: {error}")))
}

fn variable(name: &str, default: &str) -> Result<ServerUrl, CliError> {
    let value = std::env::var(name).ok().filter(|value| !value.is_empty());
    let value = value.as_deref().unwrap_or(default);
    value.parse().map_err(|reason| CliError::usage(format!("{name}: `{value}`: {reason}")))
}

/// What is said when a signal ends a command early; the latest word counts.
#[derive(Debug, Clone, Default)]
pub(super) struct Parting(Rc<RefCell<Option<String>>>);

impl Parting {
    /// From now on, this is what is said.
    pub(super) fn will_be(&self, message: &Message<'_>, context: Context) {
        self.0.replace(Some(message.text(context.output.language)));
    }

    fn take(&self) -> Option<String> {
        self.0.take()
    }
}

/// What a command works with.
#[derive(Debug)]
pub(super) struct Session {
    /// Speaks to the server, or to the store as if it were one.
    pub(super) client: ApiClient,
    /// What is said when a signal comes.
    pub(super) parting: Parting,
}

/// Does the work against what `reach` names. A signal abandons it; a store is closed either way, and a second signal
/// leaves it to be recovered at its next opening.
///
/// # Errors
/// What the work reports; a store that cannot be opened or closed.
pub(super) async fn run(
    reach: Reach,
    context: Context,
    work: impl AsyncFnOnce(Session) -> Result<Exit, CliError>,
) -> Result<Exit, CliError> {
    let mut signals = Signals::new()?;
    let (url, direct) = match reach {
        Reach::Server(url) => (url, None),
        Reach::Store(opening) => {
            let direct = DirectStore::open(&opening, context.output.language).await?;
            (direct.url().clone(), Some(direct))
        }
    };
    let parting = Parting::default();
    let session = Session { client: ApiClient::new(url), parting: parting.clone() };
    let ended = tokio::select! {
        ended = work(session) => ended,
        exit = signals.next() => {
            parting.take().inspect(|words| context.output.say_apart(words));
            Ok(exit)
        }
    };
    let Some(direct) = direct else { return ended };
    match direct.on_wire() {
        0 => {}
        in_flight => context.output.say(&Message::Draining { in_flight }),
    }
    tokio::select! {
        closed = direct.close() => ended.and_then(|exit| closed.map(|()| exit)),
        exit = signals.next() => std::process::exit(exit.number().into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn store(directory: &str) -> ServerArgs {
        ServerArgs { server: None, store: Some(directory.parse().expect("a location")) }
    }

    #[test]
    fn a_look_neither_creates_a_store_nor_delivers_from_it() {
        let Ok(Reach::Store(opening)) = Reach::of(store("d")) else { panic!("not a store") };
        assert!(!opening.create && !opening.deliver && opening.allow_net.is_empty());
    }

    #[test]
    fn g12_what_is_sent_to_a_store_passes_the_guard_that_the_flag_widens() {
        let net: IpNet = "127.0.0.0/8".parse().expect("a network");
        let Ok(Reach::Store(opening)) = Reach::to_send(store("d"), vec![net], true) else {
            panic!("not a store")
        };
        assert!(opening.create && opening.deliver);
        assert_eq!(opening.allow_net, [net]);
    }

    #[test]
    fn the_flag_names_the_server() {
        let server: ServerUrl = "http://127.0.0.1:81".parse().expect("a URL");
        let args = ServerArgs { server: Some(server.clone()), store: None };
        let Ok(Reach::Server(reached)) = Reach::of(args) else { panic!("not a server") };
        assert_eq!(reached, server);
    }
}
