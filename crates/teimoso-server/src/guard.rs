//! Keeps web pages from using an API that trusts whoever can reach it: a browser on the same machine can, and carries
//! requests there for any page it shows.
//!
//! Deliberately absent: who a caller is, and CORS, which would let a page of another origin in.

use std::net::{Ipv4Addr, Ipv6Addr};

use http::header::{HOST, HeaderName, ORIGIN};
use http::{HeaderMap, Request, Version};

use crate::api::header::single;
use crate::api::problem::{At, Code, Problem};

/// What a browser says of the page that asks (Fetch Metadata §2.1). No page can forge it.
static SEC_FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");
/// Most characters of a foreign name that are repeated in an answer.
const SHOWN_CHARS: usize = 255;

/// Refuses what a page of another origin asks and, with `only_local_names`, what a page asks whose name was made to
/// resolve to this machine. Programs send none of the headers that say so.
pub(crate) fn check<B>(request: &Request<B>, only_local_names: bool) -> Result<(), Problem> {
    let headers = request.headers();
    let host = single(headers, &HOST)?;
    match host {
        // RFC 9112 §3.2.
        None if request.version() >= Version::HTTP_11 => return Err(no_host()),
        Some(host) if only_local_names && !is_local(host) => return Err(unknown_host(host)),
        _ => {}
    }
    same_site(headers)?;
    same_origin(headers, host)
}

fn same_site(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get_all(&SEC_FETCH_SITE).iter().find(|site| *site == "cross-site" || *site == "same-site") {
        Some(_) => Err(cross_origin(&SEC_FETCH_SITE, "another origin")),
        None => Ok(()),
    }
}

/// Browsers without [`SEC_FETCH_SITE`] still send `Origin` with whatever changes something (Fetch §3.2).
fn same_origin(headers: &HeaderMap, host: Option<&str>) -> Result<(), Problem> {
    match single(headers, &ORIGIN)? {
        Some(origin) if !host.is_some_and(|host| is_of(origin, host)) => Err(cross_origin(&ORIGIN, origin)),
        _ => Ok(()),
    }
}

/// Whether `origin` (`scheme://host[:port]`, or `null`) is that of `host`.
fn is_of(origin: &str, host: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else { return false };
    let usual_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let bare = |authority| str::strip_suffix(authority, usual_port).unwrap_or(authority);
    bare(authority).eq_ignore_ascii_case(bare(host))
}

/// Whether nobody but this machine decides where `host` (`name[:port]`) leads: `localhost`, or an IP address.
fn is_local(host: &str) -> bool {
    let is_port = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if let Some((address, rest)) = host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let port = if rest.is_empty() { Some(rest) } else { rest.strip_prefix(':') };
        return port.is_some_and(is_port) && address.parse::<Ipv6Addr>().is_ok();
    }
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    is_port(port) && (name.eq_ignore_ascii_case("localhost") || name.parse::<Ipv4Addr>().is_ok())
}

fn no_host() -> Problem {
    let detail = "the header Host is missing, which every HTTP/1.1 request has";
    Problem::at(Code::MalformedRequest, At::Header(HOST.to_string()), detail)
}

fn unknown_host(host: &str) -> Problem {
    let host: String = host.chars().take(SHOWN_CHARS).collect();
    let detail =
        format!("this server is not known as `{host}`; address it as localhost or by its IP address");
    Problem::at(Code::UnknownHost, At::Header(HOST.to_string()), detail)
}

fn cross_origin(header: &HeaderName, origin: &str) -> Problem {
    let origin: String = origin.chars().take(SHOWN_CHARS).collect();
    let detail = format!("a web page of {origin} asks through a browser; only programs may use this API");
    Problem::at(Code::CrossOrigin, At::Header(header.to_string()), detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(version: Version, only_local_names: bool, headers: &[(&str, &str)]) -> Result<(), Code> {
        let request = Request::builder().version(version).uri("/v1/stats");
        let request = headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        check(&request.body(()).unwrap(), only_local_names).map_err(|problem| problem.code())
    }

    fn asked(headers: &[(&str, &str)]) -> Result<(), Code> {
        code(Version::HTTP_11, true, headers)
    }

    #[test]
    fn the_name_of_this_machine_is_localhost_or_an_address() {
        for host in
            ["localhost", "LocalHost:8080", "127.0.0.1", "127.0.0.1:80", "10.0.0.7:1", "[::1]", "[::1]:8080"]
        {
            assert_eq!(asked(&[("host", host)]), Ok(()), "{host}");
        }
        for host in [
            "evil.example",
            "evil.example:8080",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "localhost:x",
            "127.1",
            "::1",
            "[::1",
            "[::1]x",
            "[x]:1",
            "",
        ] {
            assert_eq!(asked(&[("host", host)]), Err(Code::UnknownHost), "{host}");
            assert_eq!(code(Version::HTTP_11, false, &[("host", host)]), Ok(()), "{host}");
        }
    }

    #[test]
    fn http_1_1_has_one_host_and_http_1_0_need_not() {
        for only_local_names in [false, true] {
            assert_eq!(code(Version::HTTP_11, only_local_names, &[]), Err(Code::MalformedRequest));
            assert_eq!(code(Version::HTTP_10, only_local_names, &[]), Ok(()));
        }
        assert_eq!(asked(&[("host", "localhost"), ("host", "localhost")]), Err(Code::MalformedRequest));
    }

    #[test]
    fn a_page_of_another_origin_is_refused_and_the_own_is_not() {
        let own = ("host", "127.0.0.1:8080");
        for site in ["cross-site", "same-site"] {
            assert_eq!(asked(&[own, ("sec-fetch-site", site)]), Err(Code::CrossOrigin), "{site}");
        }
        for site in ["same-origin", "none"] {
            assert_eq!(asked(&[own, ("sec-fetch-site", site)]), Ok(()), "{site}");
        }
        for origin in [
            "http://evil.example",
            "http://127.0.0.1",
            "http://127.0.0.1:8081",
            "http://localhost:8080",
            "null",
            "",
        ] {
            assert_eq!(asked(&[own, ("origin", origin)]), Err(Code::CrossOrigin), "{origin}");
        }
        assert_eq!(asked(&[own, ("origin", "http://127.0.0.1:8080")]), Ok(()));
        let without_host = [("origin", "http://evil.example")];
        assert_eq!(code(Version::HTTP_10, true, &without_host), Err(Code::CrossOrigin));
    }

    #[test]
    fn the_usual_port_may_be_left_out_on_either_side() {
        assert!(is_of("http://localhost", "Localhost:80") && is_of("http://localhost:80", "localhost"));
        assert!(is_of("https://a.example", "a.example:443"));
        assert!(!is_of("http://a.example", "a.example:443") && !is_of("chrome-extension://a", "a"));
    }
}
