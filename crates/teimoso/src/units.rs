//! Durations, sizes, rates and instants as they are written on the command line, and durations as people read them.
//! Deliberately absent: fractions and years; a flag is a whole number of something exact.

use std::num::NonZeroU32;
use std::time::Duration;

use jiff::Timestamp;

const DURATION_UNITS: [(&str, u64); 5] =
    [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

const SIZE_UNITS: [(&str, u64); 8] = [
    ("", 1),
    ("B", 1),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
];

/// The longest duration a flag takes: 100 years, so that adding one to an instant never overflows.
const DURATION_MAX: Duration = Duration::from_secs(100 * 365 * 86_400);

/// Reads `30s`, `500ms`, `5m`, `2h`, `7d`, `1h30m`.
///
/// # Errors
/// A sentence for the user: no unit, an unknown unit, no number, or more than 100 years.
pub fn duration(text: &str) -> Result<Duration, String> {
    let mut rest = text;
    let mut total_ms = 0_u64;
    while !rest.is_empty() {
        let (number, after) = leading_number(rest)?;
        let length = after.find(|c: char| c.is_ascii_digit()).unwrap_or(after.len());
        let (unit, next) = after.split_at(length);
        let factor = factor(unit, &DURATION_UNITS).ok_or_else(|| unknown_unit(unit, "ms, s, m, h or d"))?;
        let part = number.checked_mul(factor).ok_or_else(too_long)?;
        total_ms = total_ms.checked_add(part).ok_or_else(too_long)?;
        rest = next;
    }
    let total = Duration::from_millis(total_ms);
    match text {
        "" => Err("a duration is a number and a unit, such as 30s".to_owned()),
        _ if total > DURATION_MAX => Err(too_long()),
        _ => Ok(total),
    }
}

fn too_long() -> String {
    "longer than 100 years".to_owned()
}

/// Reads a [`duration`] above zero.
///
/// # Errors
/// As [`duration`], and for zero.
pub fn positive_duration(text: &str) -> Result<Duration, String> {
    match duration(text)? {
        Duration::ZERO => Err("must be more than zero".to_owned()),
        positive => Ok(positive),
    }
}

/// Reads a time as curl writes it, `30` or `2.5` seconds, or a [`duration`]; above zero.
///
/// # Errors
/// As [`positive_duration`].
pub fn seconds(text: &str) -> Result<Duration, String> {
    let plain = text.starts_with(|c: char| c.is_ascii_digit())
        && text.chars().all(|c| c.is_ascii_digit() || c == '.');
    if !plain {
        return positive_duration(text);
    }
    let seconds =
        text.parse().map_err(|_| "a time is seconds, such as 2.5, or a duration such as 500ms".to_owned())?;
    match Duration::try_from_secs_f64(seconds) {
        Ok(Duration::ZERO) => Err("must be more than zero".to_owned()),
        Ok(time) if time <= DURATION_MAX => Ok(time),
        _ => Err(too_long()),
    }
}

/// Reads `1000`, `64KiB`, `1MiB`, `1MB` as bytes.
///
/// # Errors
/// A sentence for the user: no number, an unknown unit, or more than 2^64 bytes.
pub fn size_bytes(text: &str) -> Result<u64, String> {
    let (number, unit) = leading_number(text)?;
    let factor =
        factor(unit, &SIZE_UNITS).ok_or_else(|| unknown_unit(unit, "B, kB, MB, GB, KiB, MiB or GiB"))?;
    number.checked_mul(factor).ok_or_else(|| "too large a number of bytes".to_owned())
}

/// Reads `50` or `50/s` as a number per second.
///
/// # Errors
/// A sentence for the user: not a number from 1 on.
pub fn rate_per_second(text: &str) -> Result<NonZeroU32, String> {
    let number = text.strip_suffix("/s").unwrap_or(text);
    number.parse().map_err(|_| "a rate is a number per second from 1 on, such as 50/s".to_owned())
}

/// An instant given outright or as a distance back from now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Moment {
    /// This instant.
    At(Timestamp),
    /// So long before now.
    Ago(Duration),
}

impl Moment {
    /// The instant meant, counted from `now`; never before the year -9999.
    #[must_use]
    pub fn resolve(self, now: Timestamp) -> Timestamp {
        match self {
            Moment::At(instant) => instant,
            Moment::Ago(distance) => now.checked_sub(distance).unwrap_or(Timestamp::MIN),
        }
    }
}

/// Reads an RFC 3339 instant, or a duration counted back from now.
///
/// # Errors
/// A sentence for the user.
pub fn moment(text: &str) -> Result<Moment, String> {
    match duration(text) {
        Ok(distance) => Ok(Moment::Ago(distance)),
        Err(_) => instant(text).map(Moment::At).map_err(|error| format!("{error}, or a duration such as 2h")),
    }
}

/// Reads an RFC 3339 instant.
///
/// # Errors
/// A sentence for the user.
pub fn instant(text: &str) -> Result<Timestamp, String> {
    text.parse()
        .map_err(|_| "an instant is RFC 3339 with its offset, such as 2026-01-31T12:00:00Z".to_owned())
}

fn leading_number(text: &str) -> Result<(u64, &str), String> {
    let length = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(length);
    match digits.parse() {
        Ok(number) => Ok((number, rest)),
        Err(_) if digits.is_empty() => Err(format!("a whole number is missing before `{text}`")),
        Err(_) => Err(format!("the number {digits} is too large")),
    }
}

fn factor(unit: &str, units: &[(&str, u64)]) -> Option<u64> {
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor)
}

fn unknown_unit(unit: &str, known: &str) -> String {
    match unit {
        "" => format!("the unit is missing: {known}"),
        _ => format!("unknown unit `{unit}`: {known}"),
    }
}

/// A duration as people read it, exact in its two largest units: `300ms`, `2.5s`, `5m`, `5m 30s`, `75h 35m`.
#[must_use]
pub fn human(duration: Duration) -> String {
    let ms = duration.as_millis();
    match ms {
        0 => "0s".to_owned(),
        1..1_000 => format!("{ms}ms"),
        1_000..60_000 => decimal_seconds(ms),
        60_000..3_600_000 => two(ms / 60_000, "m", ms % 60_000 / 1_000, "s"),
        _ => two(ms / 3_600_000, "h", ms % 3_600_000 / 60_000, "m"),
    }
}

fn decimal_seconds(ms: u128) -> String {
    let text = format!("{}.{:03}", ms / 1_000, ms % 1_000);
    format!("{}s", text.trim_end_matches('0').trim_end_matches('.'))
}

fn two(large: u128, large_unit: &str, small: u128, small_unit: &str) -> String {
    match small {
        0 => format!("{large}{large_unit}"),
        _ => format!("{large}{large_unit} {small}{small_unit}"),
    }
}

/// A wait as the attempt lines give it (S2.14): tenths of a second below a minute, else as [`human`].
#[must_use]
pub fn human_wait(wait: Duration) -> String {
    let tenths = wait.as_millis().saturating_add(50) / 100;
    match u64::try_from(tenths / 10) {
        Ok(seconds @ 60..) => human(Duration::from_secs(seconds)),
        _ => format!("{}.{}s", tenths / 10, tenths % 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_numbers_with_units() {
        let table = [
            ("0s", 0),
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("2h", 7_200_000),
            ("7d", 604_800_000),
            ("1h30m", 5_400_000),
        ];
        for (text, ms) in table {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)), "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_says_why() {
        let table = [
            ("", "a duration is a number and a unit, such as 30s"),
            ("30", "the unit is missing: ms, s, m, h or d"),
            ("s", "a whole number is missing before `s`"),
            ("-1s", "a whole number is missing before `-1s`"),
            ("1.5s", "unknown unit `.`: ms, s, m, h or d"),
            ("3 s", "unknown unit ` s`: ms, s, m, h or d"),
            ("3weeks", "unknown unit `weeks`: ms, s, m, h or d"),
            ("99999999999999999999s", "the number 99999999999999999999 is too large"),
            ("18446744073709551615d", "longer than 100 years"),
            ("36501d", "longer than 100 years"),
        ];
        for (text, sentence) in table {
            assert_eq!(duration(text), Err(sentence.to_owned()), "{text}");
        }
        assert_eq!(positive_duration("0s"), Err("must be more than zero".to_owned()));
    }

    #[test]
    fn times_may_be_plain_seconds_as_in_curl() {
        let table = [("30", 30_000), ("2.5", 2_500), ("0.25", 250), ("500ms", 500), ("2m", 120_000)];
        for (text, ms) in table {
            assert_eq!(seconds(text), Ok(Duration::from_millis(ms)), "{text}");
        }
        for zero in ["0", "0.0", "0s", "0.0000000001"] {
            assert_eq!(seconds(zero), Err("must be more than zero".to_owned()), "{zero}");
        }
        for none in ["", "-1", ".5", "1.2.3", "1e3", "inf", "5 s"] {
            assert!(seconds(none).is_err(), "{none}");
        }
        assert_eq!(seconds("99999999999999999999"), Err("longer than 100 years".to_owned()));
    }

    #[test]
    fn sizes_know_both_kinds_of_units() {
        let table =
            [("0", 0), ("12", 12), ("12B", 12), ("1kB", 1_000), ("64KiB", 65_536), ("1MiB", 1_048_576)];
        for (text, bytes) in table {
            assert_eq!(size_bytes(text), Ok(bytes), "{text}");
        }
        assert_eq!(size_bytes("1mb"), Err("unknown unit `mb`: B, kB, MB, GB, KiB, MiB or GiB".to_owned()));
        assert_eq!(size_bytes("18446744073709551615KiB"), Err("too large a number of bytes".to_owned()));
    }

    #[test]
    fn rates_are_per_second() {
        assert_eq!(rate_per_second("50/s").map(NonZeroU32::get), Ok(50));
        assert_eq!(rate_per_second("7").map(NonZeroU32::get), Ok(7));
        assert!(rate_per_second("0/s").is_err());
        assert!(rate_per_second("1/m").is_err());
    }

    #[test]
    fn moments_are_instants_or_distances_back() {
        let now: Timestamp = "2026-01-31T12:00:00Z".parse().expect("an instant");
        let resolved = |text| moment(text).map(|moment| moment.resolve(now).to_string());
        assert_eq!(resolved("2h"), Ok("2026-01-31T10:00:00Z".to_owned()));
        assert_eq!(resolved("2026-01-31T09:00:00-03:00"), Ok("2026-01-31T12:00:00Z".to_owned()));
        assert!(resolved("2026-01-31").is_err(), "a date without a time is no instant");
        assert!(resolved("yesterday").is_err());
    }

    #[test]
    fn durations_read_well() {
        let table = [
            (0, "0s"),
            (300, "300ms"),
            (2_000, "2s"),
            (2_520, "2.52s"),
            (300_000, "5m"),
            (330_000, "5m 30s"),
            (7_200_000, "2h"),
            (272_105_000, "75h 35m"),
        ];
        for (ms, text) in table {
            assert_eq!(human(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn s2_14_waits_have_one_decimal() {
        let table = [
            (0, "0.0s"),
            (2_900, "2.9s"),
            (2_949, "2.9s"),
            (59_949, "59.9s"),
            (59_950, "1m"),
            (300_400, "5m"),
            (18_000_000, "5h"),
        ];
        for (ms, text) in table {
            assert_eq!(human_wait(Duration::from_millis(ms)), text);
        }
    }
}
