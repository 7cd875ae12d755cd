//! Instants as text: RFC 3339, UTC, milliseconds. Deliberately absent: spans and time zones.

use jiff::Timestamp;
use jiff::fmt::temporal::DateTimePrinter;
use teimoso_delivery::model::Millis;

const PRINTER: DateTimePrinter = DateTimePrinter::new().precision(Some(3));

/// `2026-09-11T13:05:00.349Z`.
pub(crate) fn format(at: Millis) -> String {
    // Millis end in the year 6429, Timestamps in 9999.
    let at = Timestamp::from_millisecond(at.get() as i64).unwrap_or(Timestamp::MAX);
    PRINTER.timestamp_to_string(&at)
}

/// Reads an RFC 3339 instant with an offset. Parts of a millisecond round up, so that nothing is early
/// (G8); before the epoch is the epoch.
pub(crate) fn parse(text: &str) -> Option<Millis> {
    let at: Timestamp = text.parse().ok()?;
    let nanos = at.as_nanosecond().max(0).unsigned_abs();
    Some(Millis::new(u64::try_from(nanos.div_ceil(1_000_000)).unwrap_or(u64::MAX)))
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
        assert_eq!(parse("2026-09-11T11:25:00.349-03:00"), Some(Millis::new(1_789_136_700_349)));
        assert_eq!(parse("1970-01-01T00:00:00.0000001Z"), Some(Millis::new(1)));
        assert_eq!(parse("1960-01-01T00:00:00Z"), Some(Millis::new(0)));
        assert_eq!(parse("2026-09-11T11:25:00"), None);
        assert_eq!(parse("tomorrow"), None);
    }
}
