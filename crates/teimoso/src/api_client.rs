//! The commands' side of the HTTP API: one request at a time over plain HTTP/1.1 to the server the operator named.
//! Deliberately absent: retries (a person is watching and decides), TLS, and the wire types; answers are read
//! leniently, as JSON values.

mod body;
mod error;
mod url;

use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT, CONTENT_TYPE, HOST, HeaderValue, USER_AGENT};
use http::{Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::net::TcpStream;
use tokio::sync::mpsc;
use tokio::time::timeout;

use body::RequestBody;
use error::Problem;
pub use error::{ApiError, sentence as problem_sentence};
pub use url::{Query, ServerUrl, segment};

/// How long connecting may take.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// How long an answer may take, its body included; a streamed one may take as long as it likes.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);

/// The largest answer that is read into memory.
const ANSWER_MAX_BYTES: usize = 64 << 20;

const AGENT: &str = concat!("teimoso/", env!("CARGO_PKG_VERSION"));

/// A client of one server. It keeps its connection between requests.
#[derive(Debug)]
pub struct ApiClient {
    server: ServerUrl,
    connection: Option<SendRequest<RequestBody>>,
}

/// A whole answer of the server that reports success.
#[derive(Debug)]
pub struct Answer {
    /// Its media type, as sent.
    pub content_type: Option<String>,
    /// Its bytes.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// [`ApiError::NotOurs`] when it is something else.
    pub fn json(&self) -> Result<Value, ApiError> {
        serde_json::from_slice(&self.body).map_err(|_| ApiError::NotOurs)
    }
}

impl ApiClient {
    /// A client that has not connected yet.
    #[must_use]
    pub fn new(server: ServerUrl) -> ApiClient {
        ApiClient { server, connection: None }
    }

    /// Where the server is.
    #[must_use]
    pub fn server(&self) -> &ServerUrl {
        &self.server
    }

    /// Asks for `path`, which begins with a slash and is already percent-encoded.
    ///
    /// # Errors
    /// No server, no answer, or an answer that reports a problem.
    pub async fn get(&mut self, path: &str) -> Result<Answer, ApiError> {
        let request = self.request(Method::GET, path, RequestBody::empty())?;
        self.whole(request).await
    }

    /// Posts JSON to `path`.
    ///
    /// # Errors
    /// No server, no answer (the request may have taken effect), or an answer that reports a problem.
    pub async fn post(&mut self, path: &str, json: Bytes) -> Result<Answer, ApiError> {
        let mut request = self.request(Method::POST, path, RequestBody::Whole(json))?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        self.whole(request).await
    }

    /// Asks for what is at `path` to be deleted.
    ///
    /// # Errors
    /// As [`ApiClient::post`].
    pub async fn delete(&mut self, path: &str) -> Result<Answer, ApiError> {
        let request = self.request(Method::DELETE, path, RequestBody::empty())?;
        self.whole(request).await
    }

    /// Posts lines to `path` as they come, and returns the answer's body as soon as it begins.
    ///
    /// # Errors
    /// No server, no answer, or an answer that reports a problem.
    pub async fn stream(&mut self, path: &str, lines: mpsc::Receiver<Bytes>) -> Result<Incoming, ApiError> {
        let mut request = self.request(Method::POST, path, RequestBody::Stream(lines))?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/x-ndjson"));
        let response = self.send(request).await?;
        if response.status().is_success() {
            return Ok(response.into_body());
        }
        Err(problem(response).await)
    }

    fn request(
        &self,
        method: Method,
        path: &str,
        body: RequestBody,
    ) -> Result<Request<RequestBody>, ApiError> {
        let target: Uri =
            format!("{}{path}", self.server.base_path()).parse().map_err(|_| ApiError::NotOurs)?;
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = target;
        let headers = request.headers_mut();
        headers.insert(HOST, self.server.host_header());
        headers.insert(USER_AGENT, HeaderValue::from_static(AGENT));
        headers.insert(ACCEPT, HeaderValue::from_static("*/*"));
        Ok(request)
    }

    async fn whole(&mut self, request: Request<RequestBody>) -> Result<Answer, ApiError> {
        let exchange = async {
            let response = self.send(request).await?;
            if !response.status().is_success() {
                return Err(problem(response).await);
            }
            let content_type = text_header(&response, CONTENT_TYPE.as_str());
            Ok(Answer { content_type, body: collect(response.into_body()).await? })
        };
        match timeout(ANSWER_TIMEOUT, exchange).await {
            Ok(answer) => answer,
            Err(_) => {
                self.connection = None;
                Err(ApiError::Lost(format!("no answer within {} s", ANSWER_TIMEOUT.as_secs())))
            }
        }
    }

    /// Sends on the kept connection or a new one. A request that a dying kept connection hands back unsent goes out
    /// on a new one: the server has seen nothing of it.
    async fn send(&mut self, request: Request<RequestBody>) -> Result<Response<Incoming>, ApiError> {
        let mut unsent = request;
        if let Some(mut kept) = self.connection.take()
            && kept.ready().await.is_ok()
        {
            match kept.try_send_request(unsent).await {
                Ok(response) => {
                    self.connection = Some(kept);
                    return Ok(response);
                }
                Err(mut error) => match error.take_message() {
                    Some(request) => unsent = request,
                    None => return Err(ApiError::Lost(error.into_error().to_string())),
                },
            }
        }
        let mut fresh = self.connect().await?;
        let response = fresh.send_request(unsent).await.map_err(|error| ApiError::Lost(error.to_string()))?;
        self.connection = Some(fresh);
        Ok(response)
    }

    async fn connect(&self) -> Result<SendRequest<RequestBody>, ApiError> {
        let unreachable = |reason: String| ApiError::Unreachable { server: self.server.to_string(), reason };
        let connecting = TcpStream::connect((self.server.host(), self.server.port()));
        let stream = match timeout(CONNECT_TIMEOUT, connecting).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(error)) => return Err(unreachable(error.to_string())),
            Err(_) => return Err(unreachable("connecting timed out".to_owned())),
        };
        let _without = stream.set_nodelay(true);
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| unreachable(error.to_string()))?;
        // It ends with the sender; what goes wrong on it is reported to the request it belongs to.
        tokio::spawn(connection);
        Ok(sender)
    }
}

async fn collect(body: Incoming) -> Result<Bytes, ApiError> {
    let limited = Limited::new(body, ANSWER_MAX_BYTES).collect().await;
    limited.map(|whole| whole.to_bytes()).map_err(|error| ApiError::Lost(error.to_string()))
}

async fn problem(response: Response<Incoming>) -> ApiError {
    let status = response.status();
    let retry_after = text_header(&response, "retry-after");
    match collect(response.into_body()).await {
        Ok(body) => ApiError::Problem(Problem::read(status, retry_after, &body)),
        Err(_) => ApiError::Problem(Problem::read(status, retry_after, b"")),
    }
}

fn text_header(response: &Response<Incoming>, name: &str) -> Option<String> {
    let value = response.headers().get(name)?;
    value.to_str().ok().map(str::to_owned)
}

/// Whether an error is the server's word that the thing does not exist.
#[must_use]
pub fn is_not_found(error: &ApiError) -> bool {
    matches!(error, ApiError::Problem(problem) if problem.status() == StatusCode::NOT_FOUND)
}
