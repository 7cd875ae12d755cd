//! What is to be sent, checked before anything is. Deliberately absent: the wire, and any wait.

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request};
use teimoso_delivery::ports::Entropy;
use teimoso_http::{Idempotent, Target};
use teimoso_retry::{Jitter, PolicyError, RetryPolicy, Schedule};

use super::super::input::Input;
use super::headers;
use crate::args::{ElsewhereArgs, Private, RequestArgs};
use crate::exit::CliError;

/// The header by which a sender promises that a receiver recognises a repetition.
pub(super) const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// What curl sends a body as, and so do we.
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// A request that makes sense.
pub(super) struct Plan {
    method: Method,
    target: Target,
    headers: HeaderMap,
    body: Bytes,
    policy: RetryPolicy,
    idempotent: bool,
    key: Option<String>,
}

impl Plan {
    /// Checks these arguments and reads what they point at.
    ///
    /// # Errors
    /// Arguments that make no sense; files that cannot be read.
    pub(super) fn new(
        args: &RequestArgs,
        input: &mut Input,
        entropy: &dyn Entropy,
    ) -> Result<Plan, CliError> {
        refuse_elsewhere(&args.elsewhere)?;
        let method = method(args)?;
        let target = target(args)?;
        let policy = policy(args)?;
        let mut headers = headers::read(&args.header, input)?;
        let key = key(args, &headers, entropy)?;
        let body = body(args, input)?;
        if let Some(key) = &key {
            headers.insert(IDEMPOTENCY_KEY, value(key, "--idempotency-key")?);
        }
        if let Some(agent) = args.user_agent.as_deref().filter(|_| !headers.contains_key(USER_AGENT)) {
            headers.insert(USER_AGENT, value(agent, "--user-agent")?);
        }
        if body.is_some() && !headers.contains_key(CONTENT_TYPE) {
            headers.insert(CONTENT_TYPE, FORM);
        }
        headers.entry(ACCEPT).or_insert(HeaderValue::from_static("*/*"));
        let body = body.unwrap_or_default();
        Ok(Plan { method, target, headers, body, policy, idempotent: args.idempotent, key })
    }

    /// The request for the client.
    ///
    /// # Errors
    /// None that the checks would let through.
    pub(super) fn request(&self) -> Result<Request<Bytes>, CliError> {
        let request = Request::builder().method(self.method.clone()).uri(self.target.as_str());
        let mut request = request
            .body(self.body.clone())
            .map_err(|error| CliError::usage(format!("the request cannot be written: {error}")))?;
        request.headers_mut().clone_from(&self.headers);
        if self.idempotent {
            request.extensions_mut().insert(Idempotent);
        }
        Ok(request)
    }

    /// The policy, with the changes that the arguments ask for.
    pub(super) fn policy(&self) -> &RetryPolicy {
        &self.policy
    }

    /// Whether the request asks for an effect (RFC 9110 §9.2.1).
    pub(super) fn is_effective(&self) -> bool {
        !self.method.is_safe()
    }

    /// The key under which the request can be repeated, if it has one that we chose or were told by its flag.
    pub(super) fn key(&self) -> Option<&str> {
        self.key.as_deref()
    }

    /// The path, without the query, which may hold secrets.
    pub(super) fn path(&self) -> &str {
        let url = self.target.as_str().split('?').next().unwrap_or_default();
        url.splitn(4, '/').nth(3).map_or("/", |rest| &url[url.len() - rest.len() - 1..])
    }
}

fn refuse_elsewhere(args: &ElsewhereArgs) -> Result<(), CliError> {
    let (sentence, next_step) = match args {
        ElsewhereArgs { user: Some(_), .. } => (
            "credentials do not belong on a command line, where every process can read them",
            "put the line `authorization: Basic …` into a file and give it with -H @FILE",
        ),
        ElsewhereArgs { request: Some(_), .. } => {
            ("the method is an argument of its own", "write: teimoso request METHOD URL")
        }
        ElsewhereArgs { insecure: true, .. } => {
            ("certificates are always checked", "trust one of your own with --cacert FILE")
        }
        ElsewhereArgs { fail: true, .. } => {
            ("the exit code is 1 or 6 for an answer of 400 or more anyway", "leave -f out")
        }
        ElsewhereArgs { .. } => return Ok(()),
    };
    Err(CliError::usage(sentence).with_next_step(next_step))
}

fn method(args: &RequestArgs) -> Result<Method, CliError> {
    let text = args.method.text();
    if text.contains([':', '/', '.']) {
        return Err(CliError::usage("the method is missing")
            .with_next_step("write it before the URL: teimoso request GET URL"));
    }
    // Methods are case-sensitive (RFC 9110 §9.1), but nobody who writes `get` means another one.
    let upper = text.to_ascii_uppercase();
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "CONNECT"];
    let text = if known.contains(&upper.as_str()) { &upper } else { text };
    match Method::from_bytes(text.as_bytes()) {
        Ok(Method::CONNECT) => Err(CliError::usage("CONNECT asks for a tunnel, not for an answer")
            .with_next_step("to go through a proxy, give it with --proxy URL")),
        Ok(method) => Ok(method),
        Err(_) => Err(CliError::usage("a method is one word of letters, such as GET or POST")),
    }
}

fn target(args: &RequestArgs) -> Result<Target, CliError> {
    let Some(url) = &args.url else {
        return Err(CliError::usage("the URL is missing").with_next_step("write: teimoso request METHOD URL"));
    };
    if !url.text().contains("://") {
        return Err(CliError::usage("the URL does not say how to get there")
            .with_next_step("begin it with https:// or http://"));
    }
    Target::parse(url.text())
        .map_err(|invalid| CliError::usage(format!("cannot use the URL: {}", invalid.sentence)))
}

fn policy(args: &RequestArgs) -> Result<RetryPolicy, CliError> {
    let preset = RetryPolicy::preset(args.policy);
    let mut policy = preset.to_builder();
    if args.retry.is_some() || args.max_time.is_some() {
        // Whoever asks for so many attempts of such a length means them, as in curl.
        policy = policy.give_up_after(None);
    }
    if let Some(retries) = args.retry {
        policy = policy.retries(retries);
    }
    if let Some(wait) = args.retry_delay {
        let schedule = Schedule::list(vec![wait]).map_err(|error| unusable(&error))?;
        policy = policy.schedule(schedule).jitter(Jitter::None);
    }
    if let Some(total) = args.retry_max_time {
        policy = policy.give_up_after(Some(total));
    }
    if let Some(time) = args.max_time {
        policy = policy.attempt_timeout(time);
    }
    if let Some(time) = args.connect_timeout {
        policy = policy.connect_timeout(time);
    }
    policy.build().map_err(|error| unusable(&error))
}

fn unusable(error: &PolicyError) -> CliError {
    let flag = match error.field() {
        "attempt_timeout" => "--max-time",
        "connect_timeout" => "--connect-timeout",
        "give_up_after" => "--retry-max-time",
        "waits" => "--retry-delay",
        field => field,
    };
    let text = error.to_string();
    let problem = text.strip_prefix(error.field()).unwrap_or(&text);
    CliError::usage(format!("{flag}{problem}"))
}

fn value(text: &str, flag: &str) -> Result<HeaderValue, CliError> {
    let value = HeaderValue::from_bytes(text.trim().as_bytes()).ok().filter(|value| !value.is_empty());
    value.ok_or_else(|| CliError::usage(format!("{flag}: it must be one line of visible characters")))
}

fn key(args: &RequestArgs, headers: &HeaderMap, entropy: &dyn Entropy) -> Result<Option<String>, CliError> {
    match args.idempotency_key.as_deref() {
        Some(_) if headers.contains_key(IDEMPOTENCY_KEY) => {
            Err(CliError::usage("the idempotency key is given twice, by -H and by --idempotency-key"))
        }
        Some("auto") => Ok(Some(fresh_key(entropy))),
        key => Ok(key.map(str::to_owned)),
    }
}

/// A random UUID (version 4, RFC 9562 §5.4).
fn fresh_key(entropy: &dyn Entropy) -> String {
    let high = entropy.next_u64() & 0xffff_ffff_ffff_0fff | 0x4000;
    let low = entropy.next_u64() & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
    let text = format!("{high:016x}{low:016x}");
    [&text[..8], &text[8..12], &text[12..16], &text[16..20], &text[20..]].join("-")
}

/// The body, if one was given; several parts are joined as those of a form.
fn body(args: &RequestArgs, input: &mut Input) -> Result<Option<Bytes>, CliError> {
    let mut part = |text: &Private, flag: &'static str| match (text.text(), flag) {
        (text, "--data-raw") => Ok(text.as_bytes().to_vec()),
        ("-", _) => input.read("-", flag),
        (text, _) => match text.strip_prefix('@') {
            Some(name) => input.read(name, flag),
            None => Ok(text.as_bytes().to_vec()),
        },
    };
    let given =
        [(&args.data, "--data"), (&args.data_binary, "--data-binary"), (&args.data_raw, "--data-raw")];
    let mut parts = Vec::new();
    for (text, flag) in given.into_iter().flat_map(|(texts, flag)| texts.iter().map(move |text| (text, flag)))
    {
        let mut bytes = part(text, flag)?;
        if flag == "--data" && text.text().starts_with(['@', '-']) {
            // What curl does to a file: a form has no line ends.
            bytes.retain(|byte| !matches!(byte, b'\r' | b'\n' | 0));
        }
        parts.push(bytes);
    }
    Ok((!parts.is_empty()).then(|| parts.join(&b'&').into()))
}

#[cfg(test)]
mod tests;
