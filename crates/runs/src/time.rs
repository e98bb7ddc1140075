//! Wall-clock time as the store writes it: milliseconds since 1970, and UTC text for people.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970-01-01, negative before it.
pub fn now_ms() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(after) => after.as_millis().try_into().unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_millis()).unwrap_or(i64::MAX),
    }
}

/// `2026-11-15T20:15:30.123Z`. Years outside 0000–9999 are written with as many digits as they need.
///
/// ```
/// assert_eq!(tidegate_runs::timestamp(1_794_773_730_123), "2026-11-15T20:15:30.123Z");
/// assert_eq!(tidegate_runs::timestamp(-1), "1969-12-31T23:59:59.999Z");
/// ```
pub fn timestamp(ms: i64) -> String {
    let (year, month, day) = civil(ms.div_euclid(86_400_000));
    format!(
        "{year:04}-{month:02}-{day:02}T{}.{:03}Z",
        clock(ms),
        ms.rem_euclid(1000)
    )
}

/// Reads what [`timestamp`] writes, of the years with four digits.
///
/// ```
/// assert_eq!(tidegate_runs::parse_timestamp("2026-11-15T20:15:30.123Z"), Some(1_794_773_730_123));
/// assert_eq!(tidegate_runs::parse_timestamp("yesterday"), None);
/// ```
pub fn parse_timestamp(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let marks = [
        (4, b'-'),
        (7, b'-'),
        (10, b'T'),
        (13, b':'),
        (16, b':'),
        (19, b'.'),
        (23, b'Z'),
    ];
    if bytes.len() != 24 || !marks.iter().all(|(at, mark)| bytes[*at] == *mark) {
        return None;
    }
    let number = |from: usize, to: usize| text.get(from..to)?.parse::<i64>().ok().filter(|n| *n >= 0);
    let (year, month, day) = (number(0, 4)?, number(5, 7)?, number(8, 10)?);
    // The inverse of `civil`: years that begin in March.
    let shifted = if month <= 2 { year - 1 } else { year };
    let (era, year_of_era) = (shifted.div_euclid(400), shifted.rem_euclid(400));
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let days =
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468;
    let seconds = (number(11, 13)? * 60 + number(14, 16)?) * 60 + number(17, 19)?;
    Some(days * 86_400_000 + seconds * 1000 + number(20, 23)?)
}

/// The time of day in UTC, `20:15:30`.
pub fn clock(ms: i64) -> String {
    let seconds = ms.div_euclid(1000).rem_euclid(86_400);
    format!(
        "{:02}:{:02}:{:02}",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Year, month and day of a count of days since 1970-01-01 in the Gregorian calendar.
/// The algorithm is Howard Hinnant's `civil_from_days`: eras of 400 years, years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let era = shifted.div_euclid(146_097);
    let day_of_era = shifted.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * march_month + 2) / 5 + 1;
    let month = if march_month < 10 {
        march_month + 3
    } else {
        march_month - 9
    };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_days() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (4_107_542_399_999, "2100-02-28T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(timestamp(ms), text);
            assert_eq!(parse_timestamp(text), Some(ms));
        }
    }

    #[test]
    fn extremes_do_not_panic() {
        timestamp(i64::MAX);
        timestamp(i64::MIN);
    }
}
