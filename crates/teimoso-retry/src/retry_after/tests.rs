//! Every edge of the header's grammar. `NOW` is Friday, 15 January 2027, 08:00:00 GMT.

use super::*;

const NOW: Duration = Duration::from_secs(1_800_000_000);
const NOW_AS_DATE: &[u8] = b"Fri, 15 Jan 2027 08:00:00 GMT";

fn hint(line: &str) -> Option<Hint> {
    parse_retry_after([line.as_bytes()], None, NOW)
}

fn seconds(wait: u64) -> Option<Hint> {
    Some(Hint { wait: HintWait::For(Duration::from_secs(wait)), form: HintForm::Seconds })
}

fn date(wait: u64) -> Option<Hint> {
    Some(Hint { wait: HintWait::For(Duration::from_secs(wait)), form: HintForm::Date })
}

#[test]
fn seconds_are_ascii_digits_and_optional_white_space() {
    for (line, wait) in [("120", 120), ("0", 0), ("00000120", 120), (" 120 ", 120), ("\t7\t", 7)] {
        assert_eq!(hint(line), seconds(wait), "{line:?}");
    }
    let zeros = format!("{}5", "0".repeat(1000));
    assert_eq!(hint(&zeros), seconds(5));
}

#[test]
fn anything_else_is_as_good_as_no_header() {
    let invalid = [
        "",
        " ",
        "+120",
        "-1",
        "1.5",
        "1e3",
        "0x10",
        "1_000",
        "120s",
        "1 2",
        "120, 60",
        "120,",
        "1２0",
        "١٢٠",
        "NaN",
        "infinity",
        "null",
        "\u{b}120",
        "120\n",
        "\u{a0}120",
    ];
    for line in invalid {
        assert_eq!(hint(line), None, "{line:?}");
    }
    assert_eq!(hint("１２０"), None);
    for bytes in [&b"\xff"[..], b"12\xff", b"120\0", b"\xb2"] {
        assert_eq!(parse_retry_after([bytes], None, NOW), None, "{bytes:?}");
    }
    assert_eq!(parse_retry_after([], None, NOW), None);
}

#[test]
fn a_number_too_large_for_any_integer_is_beyond_any_cap_and_valid() {
    assert_eq!(hint("18446744073709551615"), seconds(u64::MAX));
    let beyond = Some(Hint { wait: HintWait::BeyondAny, form: HintForm::Seconds });
    assert_eq!(hint("18446744073709551616"), beyond);
    assert_eq!(hint(&"9".repeat(5000)), beyond);
}

#[test]
fn all_three_date_forms_count_from_our_clock_without_a_date_of_the_response() {
    for line in
        ["Fri, 15 Jan 2027 08:00:30 GMT", "Friday, 15-Jan-27 08:00:30 GMT", "Fri Jan 15 08:00:30 2027"]
    {
        assert_eq!(hint(line), date(30), "{line}");
    }
    // A one-digit day is padded with a space in this form alone.
    assert_eq!(hint("Mon Feb  1 08:00:00 2027"), date(17 * 86_400));
    assert_eq!(hint(" Fri, 15 Jan 2027 08:00:30 GMT\t"), date(30));
}

#[test]
fn a_date_counts_from_the_responses_own_date_whatever_our_clock_says() {
    let line = &b"Fri, 15 Jan 2027 08:02:00 GMT"[..];
    for skew in [0, 1, 86_400, 1_799_999_999] {
        let hint = parse_retry_after([line], Some(NOW_AS_DATE), NOW - Duration::from_secs(skew));
        assert_eq!(hint, date(120));
        let hint = parse_retry_after([line], Some(NOW_AS_DATE), NOW + Duration::from_secs(skew));
        assert_eq!(hint, date(120));
    }
}

#[test]
fn an_invalid_date_of_the_response_falls_back_to_our_clock() {
    let line = &b"Fri, 15 Jan 2027 08:02:00 GMT"[..];
    for response_date in [&b"yesterday"[..], b"", b"\xff", b"1800000000"] {
        assert_eq!(parse_retry_after([line], Some(response_date), NOW), date(120));
    }
}

#[test]
fn seconds_do_not_look_at_any_clock() {
    assert_eq!(parse_retry_after([&b"30"[..]], Some(b"Thu, 01 Jan 1970 00:00:00 GMT"), NOW), seconds(30));
}

#[test]
fn a_part_of_a_millisecond_on_our_clock_is_rounded_up_never_down() {
    let line = &b"Fri, 15 Jan 2027 08:00:30 GMT"[..];
    let wait = |now_nanos| match parse_retry_after([line], None, NOW + Duration::from_nanos(now_nanos)) {
        Some(Hint { wait: HintWait::For(wait), form: HintForm::Date }) => wait,
        other => panic!("{other:?}"),
    };
    assert_eq!(wait(0), Duration::from_secs(30));
    assert_eq!(wait(1), Duration::from_secs(30));
    assert_eq!(wait(1_000_000), Duration::from_millis(29_999));
    assert_eq!(wait(1_000_001), Duration::from_millis(29_999));
}

#[test]
fn a_date_in_the_past_asks_for_no_wait() {
    for line in
        ["Fri, 15 Jan 2027 07:59:59 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 01 Jan 1970 00:00:00 GMT"]
    {
        assert_eq!(hint(line), date(0), "{line}");
    }
    assert_eq!(
        parse_retry_after([NOW_AS_DATE], Some(b"Fri, 15 Jan 2027 09:00:00 GMT"), Duration::ZERO),
        date(0)
    );
}

#[test]
fn a_leap_second_is_a_second() {
    let after_midnight = 57_600;
    for line in
        ["Fri, 15 Jan 2027 23:59:60 GMT", "Friday, 15-Jan-27 23:59:60 GMT", "Fri Jan 15 23:59:60 2027"]
    {
        assert_eq!(hint(line), date(after_midnight), "{line}");
    }
    assert_eq!(hint("Fri, 15 Jan 2027 23:59:61 GMT"), None);
    assert_eq!(hint("Fri, 15 Jan 2027 23:59:600 GMT"), None);
}

#[test]
fn a_two_digit_year_lies_at_most_fifty_years_ahead() {
    // January 2076 is within fifty years of January 2027. February 2077, a Monday, is not: it must be 1977, a Tuesday.
    let ahead = hint("Wednesday, 15-Jan-76 08:00:00 GMT");
    assert_eq!(ahead, date(3_346_300_800 - 1_800_000_000));
    assert_eq!(hint("Tuesday, 15-Feb-77 08:00:00 GMT"), date(0));
    assert_eq!(hint("Monday, 15-Feb-77 08:00:00 GMT"), None);
    assert_eq!(hint("Sunday, 06-Nov-94 08:49:37 GMT"), date(0));
    // Late in a century "05" is the next one's.
    let in_2090 = Duration::from_secs(3_786_912_000);
    let line = &b"Thursday, 01-Jan-05 00:00:00 GMT"[..];
    let expected = Duration::from_secs(4_260_211_200) - in_2090;
    let hint = parse_retry_after([line], None, in_2090);
    assert_eq!(hint, Some(Hint { wait: HintWait::For(expected), form: HintForm::Date }));
}

#[test]
fn what_is_nearly_a_date_is_invalid() {
    let invalid = [
        "fri, 15 jan 2027 08:00:30 gmt",
        "Fri, 15 Jan 2027 08:00:30 gmt",
        "Fri, 15 Jan 2027 08:00:30 UTC",
        "Fri, 15 Jan 2027 08:00:30 +0000",
        "Fri, 15 Jan 2027 08:00:30",
        "15 Jan 2027 08:00:30 GMT",
        "Fri, 5 Jan 2027 08:00:30 GMT",
        "Fri, 15 Jan 2027 08:00 GMT",
        "Friday, 15-Jan-2027 08:00:30 GMT",
        "friday, 15-Jan-27 08:00:30 GMT",
        "Fri, 15-Jan-27 08:00:30 GMT",
        "Friday, 15-Jan-27 08:00:30 UTC",
        "Friday, 15-Jan-+7 08:00:30 GMT",
        "Friday, 15-Jan-27-27 08:00:30 GMT",
        "Mon Feb 1 08:00:00 2027",
        "Mon, 15 Jan 2027 08:00:30 GMT",
        "Sun, 30 Feb 2027 08:00:30 GMT",
        "Fri, 15 Jan 2027 24:00:00 GMT",
        "Fri, 15 Jan 2027 08:60:00 GMT",
        "Wed, 31 Dec 1969 23:59:59 GMT",
        "2027-01-15T08:00:30Z",
        "Fri, 15 Jan 2027 08:00:30 GMT, 60",
        ":60",
        ":",
        ", ",
    ];
    for line in invalid {
        assert_eq!(hint(line), None, "{line}");
    }
}

#[test]
fn the_last_year_there_is_is_far_away_and_valid() {
    assert_eq!(hint("Fri, 31 Dec 9999 23:59:59 GMT"), date(253_402_300_799 - 1_800_000_000));
}

#[test]
fn of_several_lines_the_largest_valid_one_counts() {
    let of = |lines: &[&str]| parse_retry_after(lines.iter().map(|line| line.as_bytes()), None, NOW);
    assert_eq!(of(&["5", "120", "60"]), seconds(120));
    assert_eq!(of(&["soon", "7", ""]), seconds(7));
    assert_eq!(of(&["7", "Fri, 15 Jan 2027 08:00:30 GMT"]), date(30));
    assert_eq!(of(&["31", "Fri, 15 Jan 2027 08:00:30 GMT"]), seconds(31));
    assert_eq!(of(&["99999999999999999999", "31"]).map(|hint| hint.wait), Some(HintWait::BeyondAny));
    assert_eq!(of(&["+1", "-1"]), None);
}

#[test]
fn a_rule_reads_its_forms_and_keeps_its_cap() {
    let minute = Duration::from_secs(60);
    let rule = |forms, beyond| RetryAfterRule::new(forms, minute, beyond, false).unwrap();
    let seconds = |wait| Hint { wait: HintWait::For(wait), form: HintForm::Seconds };
    let date = Hint { wait: HintWait::For(minute), form: HintForm::Date };
    let longer = minute + Duration::from_nanos(1);
    assert_eq!(rule(Forms::Both, Beyond::GiveUp).told(seconds(minute)), Told::Wait(minute));
    assert_eq!(rule(Forms::Both, Beyond::GiveUp).told(seconds(longer)), Told::BeyondCap);
    assert_eq!(rule(Forms::Both, Beyond::Clamp).told(seconds(longer)), Told::Wait(minute));
    assert_eq!(rule(Forms::Both, Beyond::Clamp).told(date), Told::Wait(minute));
    assert_eq!(rule(Forms::Seconds, Beyond::Clamp).told(date), Told::Ignored);
    assert_eq!(rule(Forms::Off, Beyond::Clamp).told(seconds(minute)), Told::Ignored);
    assert_eq!(RetryAfterRule::OFF.told(seconds(Duration::ZERO)), Told::Ignored);
}

#[test]
fn a_rule_without_a_cap_is_refused() {
    let field =
        |cap| RetryAfterRule::new(Forms::Both, cap, Beyond::Clamp, true).err().map(|error| error.field());
    assert_eq!(field(Duration::ZERO), Some("retry_after.cap"));
    assert_eq!(field(Duration::MAX), Some("retry_after.cap"));
    assert_eq!(field(MAX_WAIT), None);
}
