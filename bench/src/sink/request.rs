//! Cuts requests out of what has arrived. Deliberately absent: chunked bodies, which our sender does not send.

/// A whole request.
#[derive(Debug, PartialEq, Eq)]
pub struct Request<'a> {
    /// The path with its query.
    pub path: &'a [u8],
    /// The `webhook-id`, empty without one.
    pub id: &'a [u8],
    /// The body.
    pub body: &'a [u8],
    /// How long it is in all.
    pub bytes: usize,
}

const END: &[u8] = b"\r\n\r\n";

/// The request at the beginning of `input`, once it is there to its last byte.
pub fn read(input: &[u8]) -> Option<Request<'_>> {
    let head_bytes = input.windows(END.len()).position(|window| window == END)?;
    let mut lines = input[..head_bytes].split(|byte| *byte == b'\n');
    let path = lines.next()?.split(|byte| *byte == b' ').nth(1)?;
    let (mut length, mut id) = (0, &input[..0]);
    for line in lines {
        // Two names are wanted; one look at the first byte spares the others a comparison.
        match line.first() {
            Some(b'c' | b'C') => length = value(line, b"content-length:").map_or(length, number),
            Some(b'w' | b'W') => id = value(line, b"webhook-id:").unwrap_or(id),
            _ => {}
        }
    }
    let body_at = head_bytes + END.len();
    let bytes = body_at.checked_add(length)?;
    let body = input.get(body_at..bytes)?;
    Some(Request { path, id, body, bytes })
}

fn value<'a>(line: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let (given, value) = line.split_at_checked(name.len())?;
    given.eq_ignore_ascii_case(name).then(|| value.trim_ascii())
}

fn number(digits: &[u8]) -> usize {
    digits.iter().fold(0, |sum: usize, digit| {
        sum.saturating_mul(10).saturating_add(usize::from(digit.saturating_sub(b'0')))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &[u8] = b"POST /ok/01 HTTP/1.1\r\nhost: h\r\nWebhook-Id: evt_1\r\ncontent-type: a\r\nContent-Length: 2\r\n\r\n{}";

    #[test]
    fn a_request_is_read_once_it_is_complete() {
        let expected = Request { path: b"/ok/01", id: b"evt_1", body: b"{}", bytes: WHOLE.len() };
        assert_eq!(read(WHOLE), Some(expected));
        for cut in 0..WHOLE.len() {
            assert_eq!(read(&WHOLE[..cut]), None);
        }
    }

    #[test]
    fn what_follows_is_left_alone() {
        let two = [WHOLE, WHOLE].concat();
        assert_eq!(read(&two).map(|request| request.bytes), Some(WHOLE.len()));
    }
}
