//! What each command does, one file per command, and the front door that chooses between them.
//! Deliberately absent: delivery itself, which `serve` wires together from the libraries.

pub mod dead;
pub mod deliveries;
pub mod doctor;
pub mod events;
pub mod forgejo;
mod input;
pub mod migrate;
pub mod policy;
pub mod request;
pub mod send;
pub mod serve;
pub mod sink;
pub mod whatsapp;

mod bulk;
mod list;
mod patience;
mod session;
mod shapes;
mod signals;

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::process::ExitCode;

use crate::args::{Cli, Command};
use crate::exit::{CliError, Exit};
use crate::messages::Language;
use crate::output::Output;

/// What every command is given beside its own arguments.
#[derive(Debug, Clone, Copy)]
pub struct Context {
    /// Where its words go.
    pub output: Output,
}

/// Runs the command and says how the process ends. An error is told on stderr first.
#[must_use]
pub fn run(cli: Cli) -> ExitCode {
    let environment = |name: &str| std::env::var(name).ok();
    let language = cli.lang.unwrap_or_else(|| Language::from_environment(environment));
    let context = Context { output: Output { language } };
    let exit = dispatch(cli.command, context).unwrap_or_else(|error| {
        context.output.report(&error);
        error.code
    });
    exit.into()
}

fn dispatch(command: Command, context: Context) -> Result<Exit, CliError> {
    match command {
        Command::Serve(args) => on_runtime(serve::run(*args, context)),
        Command::Send(args) => on_runtime(send::run(*args, context)),
        Command::Events(args) => on_runtime(events::run(args, context)),
        Command::Deliveries(args) => on_runtime(deliveries::run(args, context)),
        Command::Dead(args) => on_runtime(dead::run(args, context)),
        Command::Doctor(args) => on_runtime(doctor::run(args, context)),
        Command::Migrate(args) => on_runtime(migrate::run(args, context)),
        Command::Request(args) => on_runtime(request::run(*args, context)),
        Command::Forgejo(args) => on_runtime(forgejo::run(args, context)),
        Command::Whatsapp(args) => on_runtime(whatsapp::run(*args, context)),
        Command::Sink(args) => on_runtime(sink::run(args, context)),
        Command::Policy(args) => policy::run(&args, context),
    }
}

/// One thread is plenty for a command that talks to one server.
fn on_runtime(command: impl Future<Output = Result<Exit, CliError>>) -> Result<Exit, CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| CliError::failure(format!("cannot start a runtime: {error}")))?;
    let ended = runtime.block_on(command);
    // A read of stdin that nobody waits for any more must not hold the exit up.
    runtime.shutdown_background();
    ended
}

/// Why an address cannot be listened on, and what to do about it.
#[must_use]
pub fn cannot_listen(addr: SocketAddr, error: &io::Error) -> CliError {
    match error.kind() {
        io::ErrorKind::AddrInUse => CliError::failure(format!("{addr} is already in use"))
            .with_next_step("stop what listens there, or choose another address with --listen"),
        io::ErrorKind::PermissionDenied => CliError::failure(format!("not permitted to listen on {addr}"))
            .with_next_step("choose a port above 1023 with --listen"),
        _ => CliError::failure(format!("cannot listen on {addr}: {error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_taken_port_is_one_clear_sentence() {
        let addr = SocketAddr::from(([127, 0, 0, 1], 4000));
        let error = cannot_listen(addr, &io::ErrorKind::AddrInUse.into());
        assert_eq!(error.code, Exit::FAILURE);
        assert_eq!(error.sentence, "127.0.0.1:4000 is already in use");
    }
}
