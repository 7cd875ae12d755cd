//! The client of one request: trust, proxy, HTTP versions, and who watches. Deliberately absent: proxies from the
//! environment, and any rule about addresses: the operator typed this one.

use std::sync::Arc;

use teimoso_http::{Client, Egress, HttpVersions, Proxy, Redirects, TlsRoots, Transport};

use super::super::input::{self, Input};
use super::plan::Plan;
use super::watch::{Watch, WatchedClock};
use crate::args::{Private, RequestArgs};
use crate::exit::CliError;

/// Makes the client.
///
/// # Errors
/// A proxy or a certificate that cannot be used; files that cannot be read.
pub(super) fn client(
    args: &RequestArgs,
    plan: &Plan,
    watch: &Arc<Watch>,
    input: &mut Input,
) -> Result<Client, CliError> {
    let redirects = if args.location { Redirects::Limit(args.max_redirs) } else { Redirects::None };
    let observer = Arc::clone(watch);
    let client = Client::builder()
        .policy(plan.policy().clone())
        .redirects(redirects)
        .response_body_max(usize::try_from(args.max_filesize).unwrap_or(usize::MAX))
        // One call needs no budget: its attempts are counted.
        .retry_budget(None)
        .clock(WatchedClock::new(Arc::clone(watch)))
        .observer(move |event| observer.retry(event))
        .transport(transport(args, input)?);
    client.build().map_err(|error| CliError::failure(error.to_string()))
}

fn transport(args: &RequestArgs, input: &mut Input) -> Result<Transport, CliError> {
    let versions = match (args.http1, args.http2_prior_knowledge) {
        (true, _) => HttpVersions::Http1Only,
        (_, true) => HttpVersions::Http2Only,
        _ => HttpVersions::Http2Preferred,
    };
    let mut transport = Transport::builder().egress(Egress::unguarded()).http_version(versions);
    if let Some(text) = &args.proxy {
        transport = transport.proxy(proxy(text, input)?);
    }
    if let Some(path) = &args.cacert {
        let pem = input::read_file(path)?;
        if !pem.windows(BEGIN.len()).any(|window| window == BEGIN) {
            return Err(CliError::usage(format!("--cacert: {} holds no certificate", path.display())));
        }
        transport = transport.tls_roots(TlsRoots::OnlyAdded).tls_root_pem(&pem);
    }
    transport.build().map_err(|error| CliError::usage(error.to_string()))
}

const BEGIN: &[u8] = b"-----BEGIN CERTIFICATE-----";

fn proxy(text: &Private, input: &mut Input) -> Result<Proxy, CliError> {
    let unusable = |why: &str| CliError::usage(format!("--proxy: {why}"));
    let from_file = text.text().strip_prefix('@').map(|name| input.read(name, "--proxy")).transpose()?;
    let url = match from_file {
        Some(bytes) => String::from_utf8(bytes).map_err(|_| unusable("the file holds no URL"))?,
        None if text.text().contains('@') => {
            return Err(unusable("credentials do not belong on a command line")
                .with_next_step("put the URL into a file and give it with -x @FILE"));
        }
        None => text.text().to_owned(),
    };
    // As curl has it, a proxy without a scheme is one for HTTP.
    let url = if url.contains("://") { url } else { format!("http://{url}") };
    Proxy::http(url.trim()).map_err(|invalid| unusable(&invalid.sentence))
}
