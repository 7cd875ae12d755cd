//! What a call makes of a response body: hand it over as it comes, or read it whole; absent: retries.

use std::future::Future;

use bytes::Bytes;

use crate::body::{BodyError, ResponseBody};

/// How the body of an answer is received.
pub(crate) trait Receive: Copy + Send + Sync {
    /// What the caller gets.
    type Body: Send;

    /// Whether receiving is part of the attempt.
    const WHOLE: bool;

    /// The most body bytes that are read.
    fn body_max(self) -> usize;

    /// Receives it.
    fn receive(self, body: ResponseBody) -> impl Future<Output = Result<Self::Body, BodyError>> + Send;
}

/// The caller reads it; no limit but the caller's.
#[derive(Debug, Clone, Copy)]
pub(crate) struct AsItComes;

/// Read to its end, at most this many bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Whole(pub(crate) usize);

impl Receive for AsItComes {
    type Body = ResponseBody;

    const WHOLE: bool = false;

    fn body_max(self) -> usize {
        usize::MAX
    }

    async fn receive(self, body: ResponseBody) -> Result<ResponseBody, BodyError> {
        Ok(body)
    }
}

impl Receive for Whole {
    type Body = Bytes;

    const WHOLE: bool = true;

    fn body_max(self) -> usize {
        self.0
    }

    async fn receive(self, body: ResponseBody) -> Result<Bytes, BodyError> {
        body.collect(self.0).await
    }
}
