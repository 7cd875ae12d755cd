//! The faults as data: a name, a story, what it demands of the client, and what the peer does.

use std::io;
use std::net::TcpStream;

use super::http2::{self, Verdict};
use super::peer::Stage;
use super::{http1, tls};

/// One way in which an exchange goes wrong.
#[derive(Clone, Copy)]
pub struct Fault {
    /// The stable name.
    pub name: &'static str,
    /// What happens, for a reader.
    pub story: &'static str,
    /// How the peer's name is looked up.
    pub lookup: Lookup,
    /// Whether the peer speaks TLS.
    pub security: Security,
    /// Whether a first request must have gone well, and when the connection is spoilt after it.
    pub idle: Idle,
    /// Whether both sides speak HTTP/2 from the first byte on.
    pub http2: bool,
    /// Whether the request carries 8 MB.
    pub uploads: bool,
    /// Whether nothing but the client's own time-out ends an attempt.
    pub silent: bool,
    /// Whether the client follows redirects.
    pub redirects: bool,
    pub(super) play: Play,
}

/// How the host in the URL becomes an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// It is one.
    Literal,
    /// There is no such name.
    Fails,
    /// The resolver never answers.
    Hangs,
}

/// What the client knows of the peer's certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Security {
    /// There is none: plain TCP.
    Plain,
    /// The client does not trust it.
    Untrusted,
    /// The client trusts it.
    Trusted,
}

/// What happens to a connection that has served a first request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Idle {
    /// There was no first request.
    Fresh,
    /// Nothing, until the second request.
    Kept,
    /// It is spoilt, and the client's event loop had every chance to see it.
    SpoiltSeen,
    /// It is spoilt while the client's event loop stands still.
    SpoiltUnseen,
}

/// What a peer does.
#[derive(Clone, Copy)]
pub(super) enum Play {
    /// Holds its port and does not listen.
    Absent,
    /// Executes each request, says this, and goes on listening.
    Answers(&'static [u8]),
    /// Executes each request and redirects it to where nobody listens.
    Redirects,
    /// Executes a request, says this, and ends its side (FIN).
    Says(&'static [u8]),
    /// Executes a request, says this, and resets the connection (RST).
    SaysAndResets(&'static [u8]),
    /// Executes and answers each request; the first connection is spoilt in this way when the client asks for it.
    Spoils(fn(TcpStream)),
    /// Speaks HTTP/2; judges each complete request by the id of its stream.
    Http2(fn(u32) -> Verdict),
    /// Anything that takes more than words.
    Acts(fn(&Stage, TcpStream) -> io::Result<()>),
}

const USUAL: Fault = Fault {
    name: "",
    story: "",
    lookup: Lookup::Literal,
    security: Security::Plain,
    idle: Idle::Fresh,
    http2: false,
    uploads: false,
    silent: false,
    redirects: false,
    play: Play::Absent,
};

const BUSY: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n";
const CUT_LENGTH: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nten bytes.";
const CUT_CHUNK: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n64\r\nten bytes.";

/// Every fault, in the order of an exchange.
pub const FAULTS: &[Fault] = &[
    Fault { name: "dns_failure", story: "the name does not exist", lookup: Lookup::Fails, ..USUAL },
    Fault {
        name: "dns_silence",
        story: "the resolver never answers; the attempt's time runs out in the lookup",
        lookup: Lookup::Hangs,
        silent: true,
        ..USUAL
    },
    Fault { name: "refused", story: "nobody listens on the port", ..USUAL },
    Fault {
        name: "tls_failure",
        story: "the peer answers the TLS handshake in plain text",
        security: Security::Untrusted,
        play: Play::Acts(tls::answer_in_plain),
        ..USUAL
    },
    Fault {
        name: "tls_certificate",
        story: "nobody the client trusts vouches for the peer's certificate",
        security: Security::Untrusted,
        play: Play::Acts(tls::close_after_handshake),
        ..USUAL
    },
    Fault {
        name: "fin_before_ready",
        story: "the peer ends the connection together with its part of the TLS handshake",
        security: Security::Trusted,
        play: Play::Acts(tls::close_after_handshake),
        ..USUAL
    },
    Fault {
        name: "fin_unread",
        story: "the request arrives; the peer ends its side without reading a byte",
        play: Play::Acts(http1::fin_unread),
        ..USUAL
    },
    Fault {
        name: "fin_after_read",
        story: "the peer executes the request and ends its side without an answer",
        play: Play::Says(b""),
        ..USUAL
    },
    Fault {
        name: "rst_after_read",
        story: "the peer executes the request and resets the connection",
        play: Play::SaysAndResets(b""),
        ..USUAL
    },
    Fault {
        name: "silence",
        story: "the peer executes the request and says nothing; the attempt's time runs out",
        silent: true,
        play: Play::Acts(http1::silence),
        ..USUAL
    },
    Fault {
        name: "partial_status_line",
        story: "the peer executes the request and dies within the status line",
        play: Play::Says(b"HTTP/1.1 20"),
        ..USUAL
    },
    Fault {
        name: "continue_then_fin",
        story: "the peer says 100 Continue, executes the request and ends its side",
        play: Play::Says(b"HTTP/1.1 100 Continue\r\n\r\n"),
        ..USUAL
    },
    Fault {
        name: "garbage",
        story: "the peer executes the request and answers something that is not HTTP",
        play: Play::Says(b"<html>what?</html>\r\n\r\n"),
        ..USUAL
    },
    Fault {
        name: "idle_fin",
        story: "an idle connection is ended by the peer in time to be seen",
        idle: Idle::SpoiltSeen,
        play: Play::Spoils(drop),
        ..USUAL
    },
    Fault {
        name: "idle_408",
        story: "an idle connection gets an unsolicited 408 and a FIN in time to be seen",
        idle: Idle::SpoiltSeen,
        play: Play::Spoils(http1::say_408),
        ..USUAL
    },
    Fault {
        name: "pending_fin",
        story: "an idle connection is ended by the peer; the client's event loop has not seen it yet",
        idle: Idle::SpoiltUnseen,
        play: Play::Spoils(drop),
        ..USUAL
    },
    Fault {
        name: "pending_rst",
        story: "an idle connection is reset; the client's event loop has not seen it yet, no byte can be written",
        idle: Idle::SpoiltUnseen,
        play: Play::Spoils(http1::reset),
        ..USUAL
    },
    Fault {
        name: "reused_fin",
        story: "on a connection that has served before, the peer executes the second request and ends its side",
        idle: Idle::Kept,
        play: Play::Acts(http1::fin_on_the_second),
        ..USUAL
    },
    Fault {
        name: "upload_rst",
        story: "8 MB are sent; the peer reads 1 KB and resets the connection",
        uploads: true,
        play: Play::Acts(http1::reset_an_upload),
        ..USUAL
    },
    Fault {
        name: "upload_503",
        story: "8 MB are sent; the peer reads 1 KB, answers 503 and closes",
        uploads: true,
        play: Play::Acts(http1::decline_an_upload),
        ..USUAL
    },
    Fault {
        name: "status_503",
        story: "the peer executes the request and answers 503 all the same",
        play: Play::Answers(BUSY),
        ..USUAL
    },
    Fault {
        name: "body_cut_by_length",
        story: "the peer executes the request; its answer ends before its Content-Length",
        play: Play::Says(CUT_LENGTH),
        ..USUAL
    },
    Fault {
        name: "body_cut_by_chunk",
        story: "the peer executes the request; its answer ends within a chunk",
        play: Play::Says(CUT_CHUNK),
        ..USUAL
    },
    Fault {
        name: "body_cut_by_rst",
        story: "the peer executes the request; the connection is reset within the answer's body",
        play: Play::SaysAndResets(CUT_LENGTH),
        ..USUAL
    },
    Fault {
        name: "body_cut_unframed",
        story: "the peer executes the request; an answer without a length ends early, which nobody can tell",
        play: Play::Says(b"HTTP/1.1 200 OK\r\n\r\nten bytes."),
        ..USUAL
    },
    Fault {
        name: "h2_refused_stream",
        story: "HTTP/2: RST_STREAM with REFUSED_STREAM",
        http2: true,
        play: Play::Http2(http2::refuse_the_stream),
        ..USUAL
    },
    Fault {
        name: "h2_internal_error",
        story: "HTTP/2: the peer executes the request; RST_STREAM with INTERNAL_ERROR",
        http2: true,
        play: Play::Http2(http2::fail_internally),
        ..USUAL
    },
    Fault {
        name: "h2_goaway_below",
        story: "HTTP/2: GOAWAY whose last stream is below the request's",
        http2: true,
        play: Play::Http2(http2::go_away_below),
        ..USUAL
    },
    Fault {
        name: "h2_goaway_above",
        story: "HTTP/2: the peer executes the request; GOAWAY that covers its stream, then FIN",
        http2: true,
        play: Play::Http2(http2::go_away_above),
        ..USUAL
    },
    Fault {
        name: "h2_head_then_rst",
        story: "HTTP/2: the peer executes the request; the answer's head and RST_STREAM arrive in one piece",
        http2: true,
        play: Play::Http2(http2::reset_after_the_head),
        ..USUAL
    },
    Fault {
        name: "h2_body_cut_by_rst",
        story: "HTTP/2: the peer executes the request; head, part of the body and RST_STREAM arrive in one piece",
        http2: true,
        play: Play::Http2(http2::reset_within_the_body),
        ..USUAL
    },
    Fault {
        name: "redirect_refused",
        story: "the peer executes the request and answers 303; nobody listens at the next hop",
        redirects: true,
        play: Play::Redirects,
        ..USUAL
    },
];
