//! What the peers do on HTTP/1.1 connections.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use super::peer::Stage;

pub(super) const OK: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Reads one request, head and body; false when the client ended the connection before.
fn read_request(mut stream: &TcpStream) -> io::Result<bool> {
    let mut read = Vec::new();
    let mut piece = [0; 4096];
    while !is_complete(&read) {
        match stream.read(&mut piece)? {
            0 => return Ok(false),
            bytes => read.extend_from_slice(&piece[..bytes]),
        }
    }
    Ok(true)
}

fn is_complete(read: &[u8]) -> bool {
    let Some(end) = read.windows(4).position(|window| window == b"\r\n\r\n") else { return false };
    let head = String::from_utf8_lossy(&read[..end]).to_lowercase();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    let body: usize = length.map_or(0, |length| length.parse().unwrap());
    read.len() >= end + 4 + body
}

/// Executes one request.
fn execute(stage: &Stage, stream: &TcpStream) -> io::Result<()> {
    if !read_request(stream)? {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    stage.arrive();
    stage.execute();
    Ok(())
}

/// Executes one request and says something.
pub(super) fn say(stage: &Stage, mut stream: &TcpStream, words: &[u8]) -> io::Result<()> {
    execute(stage, stream)?;
    stream.write_all(words)
}

/// Executes and answers until the client ends the connection.
pub(super) fn answer_all(stage: &Stage, stream: &TcpStream, answer: &[u8]) -> io::Result<()> {
    loop {
        say(stage, stream, answer)?;
    }
}

/// Ends our side (FIN) and waits until the client has ended its own.
pub(super) fn end(stream: TcpStream) -> io::Result<()> {
    stream.shutdown(Shutdown::Write)?;
    drain(stream)
}

fn drain(mut stream: TcpStream) -> io::Result<()> {
    io::copy(&mut stream, &mut io::sink()).map(drop)
}

/// Closes with RST instead of FIN.
pub(super) fn reset(stream: TcpStream) {
    socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
    drop(stream);
}

/// As a server does that times out an idle connection and says so.
pub(super) fn say_408(mut stream: TcpStream) {
    stream.write_all(b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\n\r\n").unwrap();
}

pub(super) fn fin_unread(stage: &Stage, stream: TcpStream) -> io::Result<()> {
    stream.peek(&mut [0])?;
    stage.arrive();
    stream.shutdown(Shutdown::Write)?;
    // Closed with its bytes unread, it would send a RST after all.
    stage.hold(stream);
    Ok(())
}

pub(super) fn silence(stage: &Stage, stream: TcpStream) -> io::Result<()> {
    execute(stage, &stream)?;
    drain(stream)
}

/// Each connection serves one request; the first one's second request is executed and not answered.
pub(super) fn fin_on_the_second(stage: &Stage, stream: TcpStream) -> io::Result<()> {
    say(stage, &stream, OK)?;
    execute(stage, &stream)?;
    end(stream)
}

fn read_the_beginning(stage: &Stage, mut stream: &TcpStream) -> io::Result<()> {
    stage.arrive();
    stream.read_exact(&mut [0; 1024])
}

pub(super) fn reset_an_upload(stage: &Stage, stream: TcpStream) -> io::Result<()> {
    read_the_beginning(stage, &stream)?;
    reset(stream);
    Ok(())
}

pub(super) fn decline_an_upload(stage: &Stage, mut stream: TcpStream) -> io::Result<()> {
    read_the_beginning(stage, &stream)?;
    // Unread bytes turn the close that follows into a RST.
    stream.write_all(b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

/// Sends every request on to an address where nobody listens.
pub(super) fn redirect_to_nobody(stage: &Stage, stream: &TcpStream) -> io::Result<()> {
    let answer = format!(
        "HTTP/1.1 303 See Other\r\nlocation: http://{}/receipt\r\ncontent-length: 0\r\n\r\n",
        stage.nobody()
    );
    answer_all(stage, stream, answer.as_bytes())
}
