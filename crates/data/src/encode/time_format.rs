//! Dates and times as people write them, read as seconds since 1970-01-01 in UTC.

use serde::{Deserialize, Serialize};

use super::calendar::{days_from_date, days_in_month};

/// The order of the parts of a date. They are separated by `-`, `/` or `.`; the year has four digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimeFormat {
    /// `2024-01-31`, `2024/01/31`
    YearFirst,
    /// `31.12.2024`, `31/12/2024`
    DayFirst,
    /// `12/31/2024`
    MonthFirst,
}

/// What a sample of a column tells of its dates.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimeGuess {
    pub format: TimeFormat,
    /// Day first and month first both read the whole sample: then `/` means month first, as in `1/2/2024`, and
    /// `.` and `-` mean day first. To be said to the user.
    pub ambiguous: bool,
    /// Values that the format reads, of all in the sample.
    pub read: usize,
    pub of: usize,
}

/// Reads ISO 8601 dates and times; see [`TimeFormat::parse`].
///
/// ```
/// use tidegate_data::encode::parse_time;
/// assert_eq!(parse_time(b"1970-01-02"), Some(86_400.0));
/// assert_eq!(parse_time(b"2024-02-29T12:30:00.5+01:00"), Some(1_709_206_200.5));
/// assert_eq!(parse_time(b"2023-02-29"), None);
/// ```
pub fn parse_time(text: &[u8]) -> Option<f64> {
    TimeFormat::YearFirst.parse(text)
}

impl TimeFormat {
    /// Reads a date and, after `T` or blanks, a time: hours and minutes, seconds and their fraction where
    /// given, then AM or PM, then `Z` or an offset such as `+01:00`. Without one the time is taken as UTC.
    pub fn parse(&self, text: &[u8]) -> Option<f64> {
        let mut rest = text.trim_ascii();
        let (first, first_digits) = number(&mut rest)?;
        let separator = one_of(&mut rest, b"-/.")?;
        let (second, second_digits) = number(&mut rest)?;
        one_of(&mut rest, &[separator])?;
        let (third, third_digits) = number(&mut rest)?;
        let (year, month, day, digits) = match self {
            TimeFormat::YearFirst => (first, second, third, [first_digits, second_digits, third_digits]),
            TimeFormat::DayFirst => (third, second, first, [third_digits, second_digits, first_digits]),
            TimeFormat::MonthFirst => (third, first, second, [third_digits, first_digits, second_digits]),
        };
        let lengths_fit = digits[0] == 4 && digits[1] <= 2 && digits[2] <= 2;
        let in_calendar = (1..=12).contains(&month) && (1..=days_in_month(year, month)).contains(&day);
        if !lengths_fit || !in_calendar {
            return None;
        }
        let seconds = if rest.is_empty() { 0.0 } else { time_of_day(rest)? };
        Some((days_from_date(year, month, day) * 86_400) as f64 + seconds)
    }

    /// The format that reads the most of a sample, if any reads at least nine of ten; see [`TimeGuess`].
    pub fn detect<'t>(sample: impl IntoIterator<Item = &'t [u8]>) -> Option<TimeGuess> {
        let formats = [
            TimeFormat::YearFirst,
            TimeFormat::DayFirst,
            TimeFormat::MonthFirst,
        ];
        let (mut read, mut of, mut slashes) = ([0; 3], 0, 0);
        for text in sample {
            of += 1;
            for (format, read) in formats.iter().zip(&mut read) {
                *read += usize::from(format.parse(text).is_some());
            }
            slashes += usize::from(text.contains(&b'/'));
        }
        let most = read
            .into_iter()
            .max()
            .filter(|&most| most > 0 && most * 10 >= of * 9)?;
        let ambiguous = read[1] == most && read[2] == most;
        let at = match ambiguous {
            true if slashes * 2 > of => 2,
            _ => read.iter().position(|&read| read == most)?,
        };
        Some(TimeGuess {
            format: formats[at],
            ambiguous,
            read: most,
            of,
        })
    }
}

/// Seconds since midnight in UTC, which may lie in the day before or after.
fn time_of_day(mut rest: &[u8]) -> Option<f64> {
    if one_of(&mut rest, b"Tt").is_none() {
        one_of(&mut rest, b" ")?;
        rest = rest.trim_ascii_start();
    }
    let (mut hour, _) = number(&mut rest)?;
    one_of(&mut rest, b":")?;
    let (minute, _) = number(&mut rest)?;
    let (mut second, mut fraction) = (0, 0.0);
    if one_of(&mut rest, b":").is_some() {
        second = number(&mut rest)?.0;
        if one_of(&mut rest, b".,").is_some() {
            let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let text = std::str::from_utf8(&rest[..digits]).ok()?;
            fraction = format!("0.{text}").parse().ok()?;
            rest = &rest[digits..];
        }
    }
    rest = rest.trim_ascii_start();
    if let Some(half) = one_of(&mut rest, b"AaPp") {
        one_of(&mut rest, b"Mm")?;
        if !(1..=12).contains(&hour) {
            return None;
        }
        hour = hour % 12 + if half.eq_ignore_ascii_case(&b'p') { 12 } else { 0 };
        rest = rest.trim_ascii_start();
    }
    // A leap second is written as the 60th.
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let offset = offset(rest)?;
    Some((hour * 3_600 + minute * 60 + second - offset) as f64 + fraction)
}

/// Seconds ahead of UTC: nothing, `Z`, `UTC`, `+01:00`, `+0100` or `+01`.
fn offset(mut rest: &[u8]) -> Option<i64> {
    if rest.is_empty() || rest.eq_ignore_ascii_case(b"z") || rest.eq_ignore_ascii_case(b"utc") {
        return Some(0);
    }
    let sign = if one_of(&mut rest, b"+-")? == b'-' { -1 } else { 1 };
    let (hours, digits) = number(&mut rest)?;
    let (hours, minutes) = match digits {
        4 => (hours / 100, hours % 100),
        _ if one_of(&mut rest, b":").is_some() => (hours, number(&mut rest)?.0),
        _ => (hours, 0),
    };
    (rest.is_empty() && hours < 24 && minutes < 60).then_some(sign * (hours * 3_600 + minutes * 60))
}

/// A number of one to four digits, and how many they are.
fn number(rest: &mut &[u8]) -> Option<(i64, usize)> {
    let digits = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    let (text, after) = rest.split_at(digits);
    *rest = after;
    let value = text
        .iter()
        .take(4)
        .fold(0, |value, byte| value * 10 + i64::from(byte - b'0'));
    (1..=4).contains(&digits).then_some((value, digits))
}

/// The next byte, if it is one of these.
fn one_of(rest: &mut &[u8], bytes: &[u8]) -> Option<u8> {
    let (&first, after) = rest.split_first()?;
    bytes.contains(&first).then(|| {
        *rest = after;
        first
    })
}
