//! A peer that speaks HTTP/2 frame by frame, misbehaviour included; absent: header compression, flow control, any
//! crate that would know better.

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};

pub const DATA: u8 = 0;
pub const HEADERS: u8 = 1;
pub const RST_STREAM: u8 = 3;
pub const SETTINGS: u8 = 4;
pub const GOAWAY: u8 = 7;

pub const END_STREAM: u8 = 1;
pub const ACK: u8 = 1;
pub const END_HEADERS: u8 = 4;

pub const NO_ERROR: u32 = 0;
pub const INTERNAL_ERROR: u32 = 2;
pub const REFUSED_STREAM: u32 = 7;
pub const CANCEL: u32 = 8;

/// `:status: 200`, from the static table (RFC 7541, Appendix A).
pub const STATUS_200: &[u8] = &[0x88];

pub struct Frame {
    pub kind: u8,
    pub flags: u8,
    pub stream: u32,
    pub payload: Vec<u8>,
}

/// The server's side of one connection.
pub struct Frames<S>(S);

impl<S: AsyncRead + AsyncWrite + Unpin> Frames<S> {
    /// Reads the preface and says hello.
    pub async fn accept(mut stream: S) -> Self {
        let mut preface = [0; 24];
        stream.read_exact(&mut preface).await.unwrap();
        assert_eq!(&preface, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
        let mut this = Self(stream);
        this.send(SETTINGS, 0, 0, &[]).await;
        this
    }

    /// As [`accept`](Self::accept), for a connection whose hello was said already.
    pub async fn accept_silently(mut stream: S) -> Self {
        stream.read_exact(&mut [0; 24]).await.unwrap();
        Self(stream)
    }

    /// The next frame that is not about settings or windows; `None` at the end.
    pub async fn next(&mut self) -> Option<Frame> {
        loop {
            let mut head = [0; 9];
            self.0.read_exact(&mut head).await.ok()?;
            let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
            let mut payload = vec![0; length as usize];
            self.0.read_exact(&mut payload).await.ok()?;
            let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
            let frame = Frame { kind: head[3], flags: head[4], stream, payload };
            match frame.kind {
                SETTINGS if frame.flags & ACK == 0 => self.send(SETTINGS, ACK, 0, &[]).await,
                DATA | HEADERS | RST_STREAM | GOAWAY => return Some(frame),
                _ => {}
            }
        }
    }

    /// Reads one whole request and returns its stream.
    pub async fn request(&mut self) -> Option<u32> {
        loop {
            let frame = self.next().await?;
            if matches!(frame.kind, DATA | HEADERS) && frame.flags & END_STREAM != 0 {
                return Some(frame.stream);
            }
        }
    }

    pub async fn send(&mut self, kind: u8, flags: u8, stream: u32, payload: &[u8]) {
        self.write(&frame(kind, flags, stream, payload)).await;
    }

    /// One write: the client may be gone, which is its right.
    async fn write(&mut self, bytes: &[u8]) {
        let _ = self.0.write_all(bytes).await;
        let _ = self.0.flush().await;
    }

    /// Answers 200 without a body and resets the stream, all in one piece.
    pub async fn answer_and_reset(&mut self, stream: u32, code: u32) {
        let head = frame(HEADERS, END_HEADERS | END_STREAM, stream, STATUS_200);
        self.write(&[head, frame(RST_STREAM, 0, stream, &code.to_be_bytes())].concat()).await;
    }

    /// Answers 200 with this body.
    pub async fn answer(&mut self, stream: u32, body: &[u8]) {
        self.send(HEADERS, END_HEADERS, stream, STATUS_200).await;
        self.send(DATA, END_STREAM, stream, body).await;
    }

    pub async fn reset(&mut self, stream: u32, code: u32) {
        self.send(RST_STREAM, 0, stream, &code.to_be_bytes()).await;
    }

    pub async fn go_away(&mut self, last: u32, code: u32) {
        let payload = [last.to_be_bytes(), code.to_be_bytes()].concat();
        self.send(GOAWAY, 0, 0, &payload).await;
    }

    /// Answers every further request until the client is gone.
    pub async fn answer_all(mut self) {
        while let Some(stream) = self.request().await {
            self.answer(stream, b"ok").await;
        }
    }

    /// Ends this side and waits until the other one is gone.
    pub async fn close(mut self) {
        let _ = self.0.shutdown().await;
        while self.next().await.is_some() {}
    }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}
