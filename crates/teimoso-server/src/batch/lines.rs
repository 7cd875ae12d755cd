//! Cuts chunks into lines, copying only what two chunks share. Deliberately absent: what a line says.

use bytes::{Bytes, BytesMut};

/// A line of a batch, without its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    /// Its number from 1, empty lines counted, and its bytes.
    Whole(u64, Bytes),
    /// One longer than the limit; the rest of it is skipped in constant memory.
    TooLong(u64),
}

/// The input as far as it has come.
#[derive(Debug)]
pub(super) struct Lines {
    limit: usize,
    chunk: Bytes,
    partial: BytesMut,
    skipping: bool,
    number: u64,
}

impl Lines {
    /// Lines of at most `limit` bytes.
    pub(super) fn new(limit: usize) -> Self {
        Self { limit, chunk: Bytes::new(), partial: BytesMut::new(), skipping: false, number: 1 }
    }

    /// Adds input, once [`Lines::next`] has returned `None`.
    pub(super) fn push(&mut self, chunk: Bytes) {
        debug_assert!(self.chunk.is_empty(), "the previous chunk is used up");
        self.chunk = chunk;
    }

    /// The number of the line that comes next or is incomplete.
    pub(super) const fn number(&self) -> u64 {
        self.number
    }

    /// The next line that is not blank.
    pub(super) fn next(&mut self) -> Option<Line> {
        loop {
            let Some(end) = self.chunk.iter().position(|byte| *byte == b'\n') else {
                return self.keep_partial();
            };
            let mut tail = self.chunk.split_to(end + 1);
            tail.truncate(end);
            let number = self.number;
            self.number += 1;
            if std::mem::take(&mut self.skipping) {
                continue;
            }
            if self.partial.len() + tail.len() > self.limit {
                self.partial.clear();
                return Some(Line::TooLong(number));
            }
            let line = self.complete(tail);
            if !is_blank(&line) {
                return Some(Line::Whole(number, line));
            }
        }
    }

    /// The last line, if it has no end.
    pub(super) fn finish(&mut self) -> Option<Line> {
        let rest = self.partial.split().freeze();
        (!is_blank(&rest)).then_some(Line::Whole(self.number, rest))
    }

    fn complete(&mut self, tail: Bytes) -> Bytes {
        if self.partial.is_empty() {
            return tail;
        }
        self.partial.extend_from_slice(&tail);
        self.partial.split().freeze()
    }

    fn keep_partial(&mut self) -> Option<Line> {
        let rest = std::mem::take(&mut self.chunk);
        if self.skipping {
            return None;
        }
        if self.partial.len() + rest.len() > self.limit {
            self.partial = BytesMut::new();
            self.skipping = true;
            return Some(Line::TooLong(self.number));
        }
        self.partial.extend_from_slice(&rest);
        None
    }
}

fn is_blank(line: &[u8]) -> bool {
    line.iter().all(|byte| matches!(byte, b' ' | b'\t' | b'\r'))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn cut(limit: usize, chunks: &[&[u8]]) -> Vec<Line> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        for chunk in chunks {
            lines.push(Bytes::copy_from_slice(chunk));
            found.extend(std::iter::from_fn(|| lines.next()));
        }
        found.extend(lines.finish());
        found
    }

    fn whole(number: u64, text: &'static str) -> Line {
        Line::Whole(number, Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn lines_are_cut_across_chunks_and_blank_ones_are_skipped_but_counted() {
        let found = cut(10, &[b"a\n\r\nb", b"c", b"\n\n  \nlast"]);
        assert_eq!(found, [whole(1, "a"), whole(3, "bc"), whole(6, "last")]);
    }

    #[test]
    fn g11_a_line_that_is_too_long_is_told_once_and_skipped() {
        let found = cut(4, &[b"abcde\nok\nabc", b"def", b"ghi\nfine"]);
        assert_eq!(found, [Line::TooLong(1), whole(2, "ok"), Line::TooLong(3), whole(4, "fine")]);
        assert_eq!(cut(4, &[b"abcd\nabcd"]), [whole(1, "abcd"), whole(2, "abcd")]);
        assert_eq!(cut(4, &[b"abc", b"de"]), [Line::TooLong(1)]);
    }

    proptest! {
        #[test]
        fn where_the_chunks_end_makes_no_difference(text in "[a\n]{0,60}", cuts in prop::collection::vec(0usize..60, 0..8)) {
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|at| at.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let chunks: Vec<&[u8]> = cuts.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(cut(8, &chunks), cut(8, &[bytes]));
        }
    }
}
