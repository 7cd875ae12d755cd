//! Big-endian numbers and counted texts, written and read in order.

use super::Unreadable;

/// Reads a value from its beginning; everything that is not there is [`Unreadable`].
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    pub(crate) const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// What is left.
    pub(crate) const fn rest(self) -> &'a [u8] {
        self.0
    }

    pub(crate) fn take(&mut self, length: usize) -> Result<&'a [u8], Unreadable> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(Unreadable)?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Unreadable> {
        self.take(N)?.try_into().map_err(|_| Unreadable)
    }

    pub(crate) fn u8(&mut self) -> Result<u8, Unreadable> {
        self.array().map(u8::from_be_bytes)
    }

    pub(crate) fn u16(&mut self) -> Result<u16, Unreadable> {
        self.array().map(u16::from_be_bytes)
    }

    pub(crate) fn u32(&mut self) -> Result<u32, Unreadable> {
        self.array().map(u32::from_be_bytes)
    }

    pub(crate) fn u64(&mut self) -> Result<u64, Unreadable> {
        self.array().map(u64::from_be_bytes)
    }

    pub(crate) fn u128(&mut self) -> Result<u128, Unreadable> {
        self.array().map(u128::from_be_bytes)
    }

    /// Bytes behind their length.
    pub(crate) fn counted(&mut self) -> Result<&'a [u8], Unreadable> {
        let length = usize::try_from(self.u32()?).map_err(|_| Unreadable)?;
        self.take(length)
    }

    /// A text behind its length.
    pub(crate) fn text(&mut self) -> Result<&'a str, Unreadable> {
        std::str::from_utf8(self.counted()?).map_err(|_| Unreadable)
    }

    /// The version every value begins with, which must be this one.
    pub(crate) fn version(&mut self, known: u8) -> Result<(), Unreadable> {
        if self.u8()? == known { Ok(()) } else { Err(Unreadable) }
    }
}

/// Appends a text or bytes behind their length. What is longer than 4 GiB is cut, which no limit allows to happen.
pub(crate) fn put_counted(out: &mut Vec<u8>, bytes: &[u8]) {
    let length = u32::try_from(bytes.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes());
    out.extend_from_slice(bytes.get(..length as usize).unwrap_or(bytes));
}
