//! The three HTTP-date forms (RFC 9110 §5.6.7), as a time since the Unix epoch; absent: dates before 1970, which are
//! invalid here and so fall back to the schedule.
//!
//! `httpdate` reads the fixed forms. It refuses a leap second and turns two-digit years at 70; both are put right here.

use std::time::{Duration, SystemTime};

/// A Gregorian year, on average.
const YEAR_SECONDS: u64 = 31_556_952;
/// How far ahead a two-digit year may lie.
const FIFTY_YEARS: Duration = Duration::from_secs(50 * YEAR_SECONDS);

/// The instant, or `None` for anything that is not an HTTP-date. `now` settles the century of a two-digit year.
pub(super) fn parse(value: &[u8], now: Duration) -> Option<Duration> {
    // Real dates are 24 to 33 characters; nothing longer needs to be looked at.
    if value.len() > 40 || !value.is_ascii() {
        return None;
    }
    let text = std::str::from_utf8(value).ok()?;
    let (text, leap) = without_leap_second(text);
    let instant = match rfc850_parts(&text) {
        Some(parts) => parse_rfc850(&parts, now)?,
        None => parse_four_digit_year(&text)?,
    };
    instant.checked_add(leap)
}

fn parse_four_digit_year(text: &str) -> Option<Duration> {
    let instant = httpdate::parse_http_date(text).ok()?;
    instant.duration_since(SystemTime::UNIX_EPOCH).ok()
}

/// Second 60 is valid grammar: it is read as second 59 and one second more.
fn without_leap_second(text: &str) -> (String, Duration) {
    if let Some(colon) = text.rfind(':')
        && text[colon..].starts_with(":60")
    {
        return (format!("{}:59{}", &text[..colon], &text[colon + 3..]), Duration::from_secs(1));
    }
    (text.to_owned(), Duration::ZERO)
}

struct Rfc850<'a> {
    weekday: &'static str,
    day: &'a str,
    month: &'a str,
    year_of_century: u64,
    rest: &'a str,
}

/// `Sunday, 06-Nov-94 08:49:37 GMT`, taken apart; `None` when it has not this shape.
fn rfc850_parts(text: &str) -> Option<Rfc850<'_>> {
    let (name, rest) = text.split_once(", ")?;
    let weekday = match name {
        "Monday" => "Mon",
        "Tuesday" => "Tue",
        "Wednesday" => "Wed",
        "Thursday" => "Thu",
        "Friday" => "Fri",
        "Saturday" => "Sat",
        "Sunday" => "Sun",
        _ => return None,
    };
    let (date, rest) = rest.split_once(' ')?;
    let mut fields = date.split('-');
    let (day, month, year) = (fields.next()?, fields.next()?, fields.next()?);
    let two_digits = year.len() == 2 && year.bytes().all(|byte| byte.is_ascii_digit());
    if !two_digits || fields.next().is_some() {
        return None;
    }
    Some(Rfc850 { weekday, day, month, year_of_century: year.parse().ok()?, rest })
}

/// The latest year with these two digits that is not more than 50 years ahead and whose calendar has that weekday.
fn parse_rfc850(parts: &Rfc850<'_>, now: Duration) -> Option<Duration> {
    let Rfc850 { weekday, day, month, year_of_century, rest } = parts;
    let century = (1970 + now.as_secs() / YEAR_SECONDS) / 100 * 100;
    let latest = now.saturating_add(FIFTY_YEARS);
    [century + 100, century, century.saturating_sub(100)].into_iter().find_map(|century| {
        let year = century + year_of_century;
        parse_four_digit_year(&format!("{weekday}, {day} {month} {year:04} {rest}"))
            .filter(|instant| *instant <= latest)
    })
}
