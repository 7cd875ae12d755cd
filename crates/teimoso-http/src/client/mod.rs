//! The client: requests that are repeated when that is known to be safe; absent: cookies, caching, decoding of
//! contents, and any knowledge of what a request means, which its caller states (S3.6).
//!
//! One loop sends, waits and sends again ([`call`]); what it does next is decided by [`repeat`], which does nothing
//! itself. [`Retry`](crate::Retry) is the same brain around any tower service.

mod budgets;
mod builder;
mod call;
mod event;
mod hint;
mod marks;
mod receive;
mod repeat;
mod targets;
mod tried;

use std::fmt;
use std::sync::Arc;

use bytes::Bytes;

use crate::body::{RequestBody, ResponseBody};
use crate::error::Error;
use crate::transport::Transport;

use self::call::Core;
use self::receive::{AsItComes, Whole};

pub use self::budgets::BUDGETS_MAX;
pub use self::builder::{ClientBuilder, RESPONSE_BODY_MAX};
pub use self::event::RetryEvent;
pub use self::marks::{Deadline, Idempotent, NoRetry, ShownPath};
pub use self::targets::TARGETS_KEPT_MAX;

pub(crate) use self::budgets::{Account, Budgets, Payment};
pub(crate) use self::builder::default_budget;
pub(crate) use self::call::Ports;
pub(crate) use self::event::{say, shown};
pub(crate) use self::hint::{hint, told};
pub(crate) use self::marks::{IDEMPOTENCY_KEY, Marks, own_policy};
pub(crate) use self::repeat::Repeat;
pub(crate) use self::tried::{kind_of_status, reason_of};

/// A client that knows of every attempt whether its request was sent. Clones share everything.
///
/// An answer is an answer, whatever its status: the last attempt's response comes back as it arrived, with the
/// [`RetryTrace`](crate::RetryTrace) of the call in its extensions. Only a call without a response, or without all of the
/// body that it was to collect, is an [`Error`], which carries the trace too.
///
/// What one request needs beyond the client's policy, it says itself, in its extensions: [`Idempotent`], [`NoRetry`],
/// [`Deadline`], and a [`RetryPolicy`](teimoso_retry::RetryPolicy) of its own or the
/// [`Preset`](teimoso_retry::Preset) that names one. A header `Idempotency-Key` marks a request as idempotent too.
///
/// It runs on the caller's tokio runtime, whose I/O and time drivers must be enabled. Dropping the future of a call ends
/// it: no further attempt is made, its connection is closed on HTTP/1.1, and its stream is reset on HTTP/2.
#[derive(Clone)]
pub struct Client {
    core: Arc<Core<Transport>>,
    response_body_max: usize,
}

impl Client {
    /// A builder with the defaults: the preset `standard`, no redirects, the machine's trust roots, HTTP/2 where the
    /// peer offers it.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::new()
    }

    /// Sends a request until it has a final answer, and returns at the head of that answer; the body is the caller's
    /// to read. A body that breaks while it is read is not fetched again: for that, take
    /// [`send_and_collect`](Self::send_and_collect).
    ///
    /// A body that can be sent once only is sent once: this is never an error, there is merely no second attempt
    /// unless the first provably read nothing of it.
    ///
    /// # Errors
    ///
    /// When no response came: the last attempt's failure. An unusable URL is refused before anything is tried.
    pub async fn send<B>(&self, request: http::Request<B>) -> Result<http::Response<ResponseBody>, Error>
    where
        B: Into<RequestBody>,
    {
        self.core.call(request.map(Into::into), AsItComes).await
    }

    /// Sends a request until it has a final answer and all of its body, up to the client's `response_body_max`: a body
    /// that is cut is fetched again where the policy allows it (S1.3). The body of an answer that is retried anyway is
    /// not read.
    ///
    /// # Errors
    ///
    /// When no response came, when its body stayed incomplete, or when it is too large, which is never retried.
    pub async fn send_and_collect<B>(&self, request: http::Request<B>) -> Result<http::Response<Bytes>, Error>
    where
        B: Into<RequestBody>,
    {
        self.core.call(request.map(Into::into), Whole(self.response_body_max)).await
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
