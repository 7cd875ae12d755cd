//! Instants as text: RFC 3339, UTC, milliseconds. Deliberately absent: spans and time zones.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use jiff::fmt::temporal::{DateTimePrinter, Pieces};
use teimoso_delivery::model::Millis;

const DAY_SECONDS: u32 = 86_400;
const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// `2026-09-11T13:05:00.349Z`.
pub(crate) fn format(at: Millis) -> String {
    // Millis end in the year 6429, Timestamps in 9999.
    let at = Timestamp::from_millisecond(at.get() as i64).unwrap_or(Timestamp::MAX);
    PRINTER.timestamp_to_string(&at)
}

/// Why a text is no instant of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unreadable {
    /// It is no RFC 3339 instant with an offset.
    Form,
    /// Its offset is beyond ±23:59, which RFC 3339 §5.6 has no digits for.
    Offset,
    /// It is later than [`Millis::MAX`].
    TooLate,
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Form => {
                f.write_str("must be an RFC 3339 instant with an offset, such as 2026-09-11T14:25:00Z")
            }
            Self::Offset => f.write_str("must have an offset of at most 23:59"),
            Self::TooLate => write!(f, "must be at most {}", format(Millis::MAX)),
        }
    }
}

/// Reads an RFC 3339 instant with an offset. Parts of a millisecond round up, so that nothing is early
/// (G8), those of a nanosecond are dropped; before the epoch is the epoch.
pub(crate) fn parse(text: &str) -> Result<Millis, Unreadable> {
    let text = to_nanoseconds(text);
    let pieces = Pieces::parse(&*text).map_err(|_| Unreadable::Form)?;
    let (Some(time), Some(offset)) = (pieces.time(), pieces.to_numeric_offset()) else {
        return Err(Unreadable::Form);
    };
    if offset.seconds().unsigned_abs() >= DAY_SECONDS {
        return Err(Unreadable::Offset);
    }
    let at = pieces.date().to_datetime(time);
    // A Timestamp reaches from the year -9999 to 9999, less an offset.
    let nanos = match offset.to_timestamp(at) {
        Ok(at) => at.as_nanosecond().max(0).unsigned_abs(),
        Err(_) if at.year() < 0 => 0,
        Err(_) => return Err(Unreadable::TooLate),
    };
    let millis = u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX);
    if millis > Millis::MAX.get() { Err(Unreadable::TooLate) } else { Ok(Millis::new(millis)) }
}

/// The same for a bound of a search, where an instant later than all is as good as the last.
pub(crate) fn parse_bound(text: &str) -> Result<Millis, Unreadable> {
    match parse(text) {
        Err(Unreadable::TooLate) => Ok(Millis::MAX),
        read => read,
    }
}

/// The text without the digits of its fraction past the ninth: RFC 3339 §5.6 allows any number of them.
fn to_nanoseconds(text: &str) -> Cow<'_, str> {
    let Some(digits) = text.find('.').map(|point| point + 1) else { return text.into() };
    let length = text[digits..].bytes().take_while(u8::is_ascii_digit).count();
    if length <= 9 {
        return text.into();
    }
    (text[..digits + 9].to_owned() + &text[digits + length..]).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_utc_with_milliseconds() {
        assert_eq!(format(Millis::new(1_789_136_700_349)), "2026-09-11T14:25:00.349Z");
        assert_eq!(format(Millis::new(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(format(Millis::MAX), "6429-10-17T02:45:55.327Z");
    }

    #[test]
    fn what_is_read_has_an_offset_and_is_never_early() {
        assert_eq!(parse("2026-09-11T11:25:00.349-03:00"), Ok(Millis::new(1_789_136_700_349)));
        assert_eq!(parse("1970-01-01T00:00:00.0000001Z"), Ok(Millis::new(1)));
        assert_eq!(parse("1960-01-01T00:00:00Z"), Ok(Millis::new(0)));
        for text in
            ["2026-09-11T11:25:00", "2026-09-11", "tomorrow", "", ".", "2026-09-11T11:25:00.Z", ".\u{e9}"]
        {
            assert_eq!(parse(text), Err(Unreadable::Form), "{text}");
        }
    }

    #[test]
    fn a_fraction_may_be_of_any_length() {
        let long = |digits: &str| parse(&format!("1970-01-01T00:00:00.{digits}Z"));
        assert_eq!(long(&"3".repeat(500)), Ok(Millis::new(334)));
        assert_eq!(long("0010000000001"), Ok(Millis::new(1)));
        assert_eq!(long("0000000019"), Ok(Millis::new(1)));
        assert_eq!(parse("1970-01-01T01:00:00.1234567890123+01:00"), Ok(Millis::new(124)));
    }

    #[test]
    fn an_offset_is_less_than_a_day() {
        assert_eq!(parse("1970-01-02T00:00:00+23:59"), Ok(Millis::new(60_000)));
        assert_eq!(parse("1970-01-01T00:00:00-23:59"), Ok(Millis::new(86_340_000)));
        for offset in ["+24:00", "-24:00", "+25:59", "-25:59"] {
            assert_eq!(parse(&format!("1970-01-02T00:00:00{offset}")), Err(Unreadable::Offset), "{offset}");
        }
        assert_eq!(parse("1970-01-02T00:00:00+26:00"), Err(Unreadable::Form));
    }

    #[test]
    fn what_no_store_can_keep_is_refused_and_as_a_bound_is_the_last_instant() {
        assert_eq!(parse("6429-10-17T02:45:55.327Z"), Ok(Millis::MAX));
        for late in ["6429-10-17T02:45:55.327000001Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59-23:59"] {
            assert_eq!(parse(late), Err(Unreadable::TooLate), "{late}");
            assert_eq!(parse_bound(late), Ok(Millis::MAX), "{late}");
        }
        assert_eq!(parse("-009999-01-01T00:00:00+23:59"), Ok(Millis::new(0)));
        assert_eq!(parse_bound("tomorrow"), Err(Unreadable::Form));
    }
}
