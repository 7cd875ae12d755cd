//! An HTTP client that knows whether a request was sent, and repeats it only when that is safe.
//!
//! Other clients retry kinds of errors. This one finds out what became of each request, its [`Fate`](retry::Fate):
//! proved unsent, declined by the peer, answered, or unknown. A `GET` that failed may be repeated whichever it was, a
//! `POST` only with proof that nobody acted on it. What stays unknown is said so, instead of being guessed at.
//!
//! # A first call
//!
//! [`Client`] with the preset [`Standard`](retry::Preset::Standard), which is the default: three attempts, full
//! jitter, `Retry-After` obeyed up to a minute, and a budget per authority that keeps a dead peer from being flooded.
//!
//! ```
//! use http::Request;
//! use teimoso_http::{Client, RetryTrace, retry::Preset};
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/guide/peer.rs"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = peer(&[
//! #     "HTTP/1.1 503 Service Unavailable\ncontent-length: 0\nconnection: close\n\n",
//! #     "HTTP/1.1 200 OK\ncontent-length: 5\nconnection: close\n\nhello",
//! # ]);
//!
//! let client = Client::builder()
//!     .policy(Preset::Standard)
//! #   .clock(NoWait)
//!     .build()?;
//!
//! let response = client.send_and_collect(Request::get(&url).body(())?).await?;
//! assert_eq!(response.body(), "hello");
//!
//! // The first attempt was answered with a 503; the history travels beside the answer.
//! let trace = response.extensions().get::<RetryTrace>().expect("every answer has one");
//! assert_eq!(trace.attempts()[0].status, Some(503));
//! assert_eq!(trace.attempts().len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! # What comes back
//!
//! An answer is an answer, whatever its status: the last attempt's response, untouched. Only a call without a response,
//! or without all of the body that it was to collect, is an [`Error`]. It says of itself what a caller must know before doing anything else:
//! [`may_have_taken_effect`](Error::may_have_taken_effect).
//!
//! ```
//! use http::Request;
//! use teimoso_http::{Client, retry::Fate};
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/guide/peer.rs"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = peer(&[""]);
//!
//! // This peer reads the order and hangs up: nobody can know whether it was placed.
//! let client = Client::builder()
//! #   .clock(NoWait)
//!     .build()?;
//! let error = client.send(Request::post(&url).body("")?).await.unwrap_err();
//! assert!(matches!(error.fate(), Fate::Ambiguous(_)));
//! assert!(error.may_have_taken_effect());
//! assert_eq!(error.attempts(), 1);
//!
//! // Nobody listens here: certainly nothing was sent, so even a POST was tried three times.
//! # let listener = std::net::TcpListener::bind("127.0.0.1:0")?;
//! # let url = format!("http://{}/", listener.local_addr()?);
//! # drop(listener);
//! let error = client.send(Request::post(&url).body("")?).await.unwrap_err();
//! assert!(error.is_connect() && !error.may_have_taken_effect());
//! assert_eq!(error.attempts(), 3);
//! # Ok(())
//! # }
//! ```
//!
//! # The other presets
//!
//! [`Forgejo`](retry::Preset::Forgejo), for an API whose every network failure is worth another try, whatever the
//! method: the caller accepts that a write may arrive twice. A body that breaks off is read again for a `GET`.
//!
//! ```
//! use http::Request;
//! use teimoso_http::{Client, RetryTrace, retry::{Fate, Preset}};
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/guide/peer.rs"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = peer(&[
//! #     "HTTP/1.1 200 OK\ncontent-length: 9\n\nhalf",
//! #     "HTTP/1.1 200 OK\ncontent-length: 9\nconnection: close\n\nall of it",
//! # ]);
//!
//! let client = Client::builder()
//!     .policy(Preset::Forgejo)
//!     .observer(|retry| eprintln!("{} {}: {}", retry.method, retry.path(), retry.reason))
//! #   .clock(NoWait)
//!     .build()?;
//! let response = client.send_and_collect(Request::get(&url).body(())?).await?;
//! assert_eq!(response.body(), "all of it");
//! let trace = response.extensions().get::<RetryTrace>().expect("every answer has one");
//! assert_eq!(trace.attempts()[0].fate, Fate::BodyLost);
//! # Ok(())
//! # }
//! ```
//!
//! [`Connector`](retry::Preset::Connector), for providers where a doubled message is worse than a visible error: only
//! what is safe to repeat is repeated, and who knows that of a call marks it as [`Idempotent`]. A numeric `Retry-After`
//! replaces the wait.
//!
//! ```
//! use std::time::Duration;
//! use http::Request;
//! use teimoso_http::{Client, Idempotent, RetryTrace, retry::Preset};
//! # include!(concat!(env!("CARGO_MANIFEST_DIR"), "/guide/peer.rs"));
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let url = peer(&[
//! #     "HTTP/1.1 429 Too Many Requests\nretry-after: 7\ncontent-length: 0\nconnection: close\n\n",
//! #     "HTTP/1.1 429 Too Many Requests\nretry-after: 7\ncontent-length: 0\nconnection: close\n\n",
//! #     "HTTP/1.1 200 OK\ncontent-length: 0\nconnection: close\n\n",
//! # ]);
//!
//! let client = Client::builder()
//!     .policy(Preset::Connector)
//! #   .clock(NoWait)
//!     .build()?;
//!
//! // Unmarked: the first failure is the answer, and says how long to wait.
//! let response = client.send(Request::post(&url).body("")?).await?;
//! let trace = response.extensions().get::<RetryTrace>().expect("every answer has one");
//! assert_eq!((response.status().as_u16(), trace.attempts().len()), (429, 1));
//! assert_eq!(trace.retry_after(), Some(Duration::from_secs(7)));
//!
//! // Marked: repeated after seven seconds.
//! let response = client.send(Request::post(&url).extension(Idempotent).body("")?).await?;
//! let trace = response.extensions().get::<RetryTrace>().expect("every answer has one");
//! assert_eq!((response.status().as_u16(), trace.total_wait()), (200, Duration::from_secs(7)));
//! # Ok(())
//! # }
//! ```
//!
//! `Webhook` and `Patient` are made for deliveries that somebody keeps in a store: their waits are minutes and hours.
//! A client may use them, or any policy of its own; a policy that cannot be is refused when it is built, by the name of
//! the field.
//!
//! ```
//! use std::time::Duration;
//! use teimoso_http::{Client, retry::{Preset, RetryPolicy}};
//!
//! let patient_client = Client::builder().policy(Preset::Webhook).build()?;
//! let own = RetryPolicy::builder().max_attempts(5).give_up_after(Some(Duration::from_secs(60))).build()?;
//! let client = Client::builder().policy(own).build()?;
//!
//! let refused = RetryPolicy::builder().max_attempts(0).build().unwrap_err();
//! assert_eq!(refused.to_string(), "max_attempts must be at least 1");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # What one request may say
//!
//! In its extensions: [`Idempotent`], [`NoRetry`], [`Deadline`] for the call as a whole, [`ShownPath`] where its path holds a
//! credential, or a
//! [`RetryPolicy`](retry::RetryPolicy) of its own (of a preset: `RetryPolicy::preset(…)`). A header `Idempotency-Key` marks it as idempotent too; it is the same
//! on every attempt. Bodies are bytes, a [factory](RequestBody::factory), or a [stream](RequestBody::stream), which is
//! sent once and without complaint.
//!
//! Redirects are returned, unless [`ClientBuilder::redirects`] says otherwise. They are followed above the retries:
//! what was answered by a redirect may have taken effect, and is never sent again because a later hop failed.
//!
//! # What lies below
//!
//! Proxy, trust roots, resolver, HTTP versions and the pool are settings of the [`Transport`], which is handed to
//! [`ClientBuilder::transport`]. One of your own begins with the defaults of *deliveries*: HTTP/1.1 alone, and egress
//! rules that refuse private addresses. For a client, say otherwise:
//!
//! ```
//! use teimoso_http::{Client, Egress, HttpVersions, Proxy, Transport};
//!
//! let transport = Transport::builder()
//!     .egress(Egress::unguarded())
//!     .http_version(HttpVersions::Http2Preferred)
//!     .proxy(Proxy::http("http://proxy.example:3128")?)
//!     .build()?;
//! let client = Client::builder().transport(transport).build()?;
//! # let _ = client;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Around a service of your own
//!
//! [`RetryLayer`] is the same decision around any tower service. It changes neither its response nor its error; what a
//! service's errors prove, a [classifier](Classify) says, and without one they prove nothing.
//!
//! ```
//! use teimoso_http::{RetryLayer, retry::{Fate, Preset, Proof, Why}};
//!
//! let layer = RetryLayer::new(Preset::Standard).classify(|error: &std::io::Error| match error.kind() {
//!     std::io::ErrorKind::ConnectionRefused => Fate::NeverSent(Proof::Connect),
//!     _ => Fate::Ambiguous(Why::Other),
//! });
//! # let _ = layer;
//! ```
//!
//! # One attempt at a time
//!
//! [`Transport`] is what the client stands on, and what the delivery engine uses by itself: one exchange, no
//! repetition, no opinion. The connection phases are separate steps on purpose (resolve, guard, connect, TLS, send,
//! receive), because the phase in which an attempt ended is the proof of what the peer can have seen:
//!
//! - [`Target`] is a URL that was validated once, with everything an attempt needs prepared;
//! - [`Egress`] refuses addresses that a delivery must not reach, after resolution and for literals too; a client talks
//!   to the address its caller typed;
//! - [`Resolve`] is the port behind which names become addresses.
//!
//! # What stays unknown for ever
//!
//! A connection that is closed in order after the request was written looks the same whether the peer acted on it or
//! never read it. A body that neither length nor chunks delimit ends where the connection ends. A forward proxy's 502
//! says nothing of the origin. The page `docs/fate.md` has them all; `docs/fault-matrix.md` has the measurements.
//!
//! Deliberately absent: cookies, caching, decoding of contents, proxies from the environment, and any guess at what a
//! request means.

// The upper floor: calls, which may be several attempts.
mod client;
mod clock;
mod error;
mod layer;
mod redirect;
mod trace;

// The lower floor: one attempt or exchange, its phases and its evidence. It knows of no policy.
mod attempt;
mod body;
mod connect;
mod egress;
mod evidence;
mod exchange;
mod h1;
mod h2;
mod io;
mod resolve;
mod target;
mod timer;
mod transport;

pub use attempt::{
    Attempt, AttemptError, AttemptLimits, AttemptRequest, ErrorKind, RESPONSE_HEAD_BYTES_MAX,
    RESPONSE_HEADERS_MAX, Response, Timings,
};
pub use body::{BodyError, BoxError, RequestBody, ResponseBody};
pub use client::{
    BUDGETS_MAX, Client, ClientBuilder, Deadline, Idempotent, NoRetry, RESPONSE_BODY_MAX, RetryEvent,
    ShownPath, TARGETS_KEPT_MAX,
};
pub use clock::{Clock, Entropy, Sleeping, SystemClock, SystemEntropy};
pub use connect::ADDRESSES_TRIED_MAX;
pub use connect::proxy::{InvalidProxy, Proxy};
pub use connect::tls::TlsRoots;
pub use egress::{Blocked, Egress};
pub use error::Error;
pub use exchange::{Exchange, ExchangeRequest};
pub use h1::pool::{POOL_IDLE_PER_HOST, POOL_IDLE_TIMEOUT, POOL_IDLE_TOTAL};
pub use layer::{Classify, NoEvidence, Replay, Retry, RetryLayer, RetryLayerBuilder};
pub use redirect::Redirects;
pub use resolve::{ANSWER_KEPT, LOOKUPS_MAX, NAMES_KEPT_MAX, Resolve, Resolving, SystemResolver};
pub use target::{InvalidTarget, TARGET_BYTES_MAX, Target};
pub use teimoso_retry as retry;
pub use trace::{AttemptTrace, RetryTrace};
pub use transport::{BuildError, HttpVersions, Transport, TransportBuilder};
