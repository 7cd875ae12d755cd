//! A peer that speaks just enough HTTP/2 (RFC 9113) to misbehave in it; absent: header decoding and flow control,
//! which a small request does not need.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};

use super::peer::Stage;

const PREFACE_BYTES: usize = 24;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// END_STREAM of DATA and HEADERS, ACK of SETTINGS and PING: they share a bit.
const FINAL: u8 = 1;
const END_HEADERS: u8 = 4;

/// `:status: 200` is an entry of the static table (RFC 7541, appendix A).
const STATUS_200: &[u8] = &[0x80 | 8];

const NO_ERROR: u32 = 0;
const INTERNAL_ERROR: u32 = 2;
const REFUSED_STREAM: u32 = 7;

/// What becomes of a request that has arrived completely.
pub(super) struct Verdict {
    executes: bool,
    says: Vec<u8>,
    /// Whether the peer ends its side after that.
    ends: bool,
}

pub(super) fn refuse_the_stream(stream: u32) -> Verdict {
    Verdict { executes: false, says: rst_stream(stream, REFUSED_STREAM), ends: false }
}

pub(super) fn fail_internally(stream: u32) -> Verdict {
    Verdict { executes: true, says: rst_stream(stream, INTERNAL_ERROR), ends: false }
}

pub(super) fn go_away_below(stream: u32) -> Verdict {
    // The client's streams are odd: before the first one there is none.
    Verdict { executes: false, says: go_away(stream.saturating_sub(2)), ends: false }
}

pub(super) fn go_away_above(stream: u32) -> Verdict {
    Verdict { executes: true, says: go_away(stream), ends: true }
}

pub(super) fn reset_after_the_head(stream: u32) -> Verdict {
    let says = [head(stream), rst_stream(stream, INTERNAL_ERROR)].concat();
    Verdict { executes: true, says, ends: false }
}

pub(super) fn reset_within_the_body(stream: u32) -> Verdict {
    let part = frame(DATA, 0, stream, b"ten bytes.");
    let says = [head(stream), part, rst_stream(stream, INTERNAL_ERROR)].concat();
    Verdict { executes: true, says, ends: false }
}

struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

/// Serves one connection until either side ends it.
pub(super) fn serve(stage: &Stage, mut wire: TcpStream, judge: fn(u32) -> Verdict) -> io::Result<()> {
    wire.read_exact(&mut [0; PREFACE_BYTES])?;
    wire.write_all(&frame(SETTINGS, 0, 0, &[]))?;
    loop {
        let Frame { kind, flags, stream, payload } = read_frame(&mut wire)?;
        match kind {
            SETTINGS | PING if flags & FINAL == 0 => {
                let echo = if kind == PING { payload } else { Vec::new() };
                wire.write_all(&frame(kind, FINAL, 0, &echo))?;
            }
            HEADERS | DATA if flags & FINAL != 0 => {
                let verdict = judge(stream);
                stage.arrive();
                if verdict.executes {
                    stage.execute();
                }
                wire.write_all(&verdict.says)?;
                if verdict.ends {
                    wire.shutdown(Shutdown::Write)?;
                }
            }
            _ => {}
        }
    }
}

fn read_frame(wire: &mut TcpStream) -> io::Result<Frame> {
    let mut head = [0; 9];
    wire.read_exact(&mut head)?;
    let [a, b, c, kind, flags, stream @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    wire.read_exact(&mut payload)?;
    Ok(Frame { kind, flags, stream: u32::from_be_bytes(stream), payload })
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let [_, length @ ..] = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn head(stream: u32) -> Vec<u8> {
    frame(HEADERS, END_HEADERS, stream, STATUS_200)
}

fn rst_stream(stream: u32, code: u32) -> Vec<u8> {
    frame(RST_STREAM, 0, stream, &code.to_be_bytes())
}

fn go_away(last_stream: u32) -> Vec<u8> {
    frame(GOAWAY, 0, 0, &[last_stream.to_be_bytes(), NO_ERROR.to_be_bytes()].concat())
}
