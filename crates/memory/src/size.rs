//! Sizes as people write them: `2GB`, `1.5GiB`, `512M`, `80%`.
//!
//! `K`, `M`, `G`, `T` and `KB`, `MB`, `GB`, `TB` are decimal. Some programs read `M` as 2^20, others as 10^6;
//! the decimal reading is the smaller one, so a line drawn by it holds under either meaning. `KiB`, `MiB`,
//! `GiB`, `TiB` (also `Ki`, `Mi`, `Gi`, `Ti`) are binary.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::error::{Error, SizeProblem};

/// Each unit with the names it is read by, lower-case. The first name of a unit is not what is printed.
const UNITS: [(u64, &[&str]); 9] = [
    (1, &["", "b", "byte", "bytes"]),
    (1_000, &["k", "kb"]),
    (1_000_000, &["m", "mb"]),
    (1_000_000_000, &["g", "gb"]),
    (1_000_000_000_000, &["t", "tb"]),
    (1 << 10, &["ki", "kib"]),
    (1 << 20, &["mi", "mib"]),
    (1 << 30, &["gi", "gib"]),
    (1 << 40, &["ti", "tib"]),
];

/// An amount of memory as asked for: in bytes, or as a share of what there is.
///
/// ```
/// use tidegate_memory::Amount;
/// assert_eq!("512M".parse(), Ok(Amount::Bytes(512_000_000)));
/// assert_eq!("1.5 gib".parse(), Ok(Amount::Bytes(3 << 29)));
/// assert_eq!("80%".parse::<Amount>().map(|a| a.of(1_000)), Ok(800));
/// assert!("lots".parse::<Amount>().is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Amount {
    Bytes(u64),
    /// Above 0, at most 1.
    Share(f64),
}

impl Amount {
    /// The bytes this means where `whole` is all there is. Bytes are not clipped.
    pub fn of(&self, whole: u64) -> u64 {
        match *self {
            Amount::Bytes(bytes) => bytes,
            // f64 holds 53 bits: the share of exabytes is off by a few hundred bytes, never above the whole.
            Amount::Share(share) => ((whole as f64 * share) as u64).min(whole),
        }
    }
}

impl FromStr for Amount {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        parse(text.trim()).map_err(|problem| Error::Size {
            text: text.to_owned(),
            problem,
        })
    }
}

fn parse(text: &str) -> Result<Amount, SizeProblem> {
    if text.is_empty() {
        return Err(SizeProblem::Empty);
    }
    if text.starts_with(['-', '\u{2212}']) {
        return Err(SizeProblem::Negative);
    }
    let end = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = (&text[..end], text[end..].trim());
    // "." and "1.2.3" fail here; signs, exponents, "inf" and "nan" never get this far.
    let value: f64 = number.parse().map_err(|_| SizeProblem::NoNumber)?;
    if unit == "%" {
        return match value / 100.0 {
            share if share > 1.0 => Err(SizeProblem::OverWhole),
            share if share > 0.0 => Ok(Amount::Share(share)),
            _ => Err(SizeProblem::Zero),
        };
    }
    let name = unit.to_ascii_lowercase();
    let &(factor, _) = UNITS
        .iter()
        .find(|(_, names)| names.contains(&name.as_str()))
        .ok_or_else(|| SizeProblem::UnknownUnit {
            unit: unit.to_owned(),
        })?;
    let bytes = multiply(number, factor).ok_or(SizeProblem::Overflow)?;
    if bytes == 0 {
        Err(SizeProblem::Zero)
    } else {
        Ok(Amount::Bytes(bytes))
    }
}

/// A decimal number times `factor`, rounded to a whole; exact, where f64 would be off above 2^53. Digits
/// beyond the eighteenth behind the point are less than a byte of any unit.
fn multiply(number: &str, factor: u64) -> Option<u64> {
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let fraction = &fraction[..fraction.len().min(18)];
    let digits = |text: &str| match text {
        "" => Some(0),
        text => text.parse::<u64>().ok().map(u128::from),
    };
    let scale = 10u128.pow(fraction.len() as u32);
    let below = digits(fraction)? * u128::from(factor);
    let bytes = digits(whole)? * u128::from(factor) + (below + scale / 2) / scale;
    u64::try_from(bytes).ok()
}

/// Exact and readable again: `2GB`, `1.5GB`, `3GiB`, `1000001B`, `80%`.
impl fmt::Display for Amount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Amount::Share(share) => {
                // Sixteen digits of 0.29 * 100 are 28.999999999999996; ten are what was written.
                let percent = format!("{:.10}", share * 100.0);
                write!(f, "{}%", percent.trim_end_matches('0').trim_end_matches('.'))
            }
            Amount::Bytes(bytes) => {
                const DECIMAL: [(u64, &str); 4] = [
                    (1_000_000_000_000, "TB"),
                    (1_000_000_000, "GB"),
                    (1_000_000, "MB"),
                    (1_000, "KB"),
                ];
                const BINARY: [(u64, &str); 4] = [
                    (1 << 40, "TiB"),
                    (1 << 30, "GiB"),
                    (1 << 20, "MiB"),
                    (1 << 10, "KiB"),
                ];
                if let Some((unit, name)) = DECIMAL.iter().find(|(u, _)| bytes >= *u && bytes % (u / 10) == 0)
                {
                    let tenths = bytes / (unit / 10);
                    return match tenths % 10 {
                        0 => write!(f, "{}{name}", tenths / 10),
                        tenth => write!(f, "{}.{tenth}{name}", tenths / 10),
                    };
                }
                match BINARY
                    .iter()
                    .find(|(unit, _)| bytes >= *unit && bytes % unit == 0)
                {
                    Some((unit, name)) => write!(f, "{}{name}", bytes / unit),
                    None => write!(f, "{bytes}B"),
                }
            }
        }
    }
}

impl Serialize for Amount {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Amount {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

/// Bytes for people, decimal, at most three significant digits: `512 B`, `256 MB`, `1.9 GB`, `2 GB`.
pub fn format_bytes(bytes: u64) -> String {
    const NAMES: [&str; 7] = ["B", "KB", "MB", "GB", "TB", "PB", "EB"];
    let mut value = bytes as f64;
    let mut unit = 0;
    // 999.5 would print as 1000: it belongs to the next unit.
    while value >= 999.5 && unit + 1 < NAMES.len() {
        value /= 1_000.0;
        unit += 1;
    }
    let digits = match value {
        v if unit == 0 || v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    let mut text = format!("{value:.digits$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    format!("{text} {}", NAMES[unit])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn people_write_sizes_in_many_ways() {
        for (text, bytes) in [
            ("2GB", 2_000_000_000),
            ("2gb", 2_000_000_000),
            ("2 GB", 2_000_000_000),
            (" 2G ", 2_000_000_000),
            ("1.5GiB", 1_610_612_736),
            ("1.5 Gi", 1_610_612_736),
            ("512M", 512_000_000),
            ("512MiB", 536_870_912),
            ("64k", 64_000),
            ("64 KiB", 65_536),
            ("1TB", 1_000_000_000_000),
            ("1TiB", 1 << 40),
            ("1000000", 1_000_000),
            ("7 bytes", 7),
            (".5GB", 500_000_000),
            ("7746933.6465775803TB", 7_746_933_646_577_580_300),
            ("0.1M", 100_000),
            ("18446744073709551615", u64::MAX),
        ] {
            assert_eq!(text.parse(), Ok(Amount::Bytes(bytes)), "{text}");
        }
        assert_eq!("80%".parse(), Ok(Amount::Share(0.8)));
        assert_eq!("100 %".parse(), Ok(Amount::Share(1.0)));
        assert_eq!("12.5%".parse(), Ok(Amount::Share(0.125)));
    }

    #[test]
    fn nonsense_is_refused_with_examples() {
        let unit = |unit: &str| SizeProblem::UnknownUnit {
            unit: unit.to_owned(),
        };
        for (text, problem) in [
            ("", SizeProblem::Empty),
            ("   ", SizeProblem::Empty),
            ("-1GB", SizeProblem::Negative),
            ("\u{2212}5%", SizeProblem::Negative),
            ("0", SizeProblem::Zero),
            ("0GB", SizeProblem::Zero),
            ("0.0001B", SizeProblem::Zero),
            ("0%", SizeProblem::Zero),
            ("NaN", SizeProblem::NoNumber),
            ("inf", SizeProblem::NoNumber),
            ("GB", SizeProblem::NoNumber),
            ("%", SizeProblem::NoNumber),
            (".", SizeProblem::NoNumber),
            ("1.2.3GB", SizeProblem::NoNumber),
            ("lots", SizeProblem::NoNumber),
            ("100.1%", SizeProblem::OverWhole),
            ("101%", SizeProblem::OverWhole),
            ("2XB", unit("XB")),
            ("1e9", unit("e9")),
            ("1,000", unit(",000")),
            ("2GB!", unit("GB!")),
            ("2 G B", unit("G B")),
            ("2Gbit", unit("Gbit")),
            ("5°", unit("°")),
            ("18446744073709551616", SizeProblem::Overflow),
            ("20000000TB", SizeProblem::Overflow),
            ("99999999999999999999999999.5TB", SizeProblem::Overflow),
        ] {
            let error = text.parse::<Amount>().expect_err(text);
            assert_eq!(
                error,
                Error::Size {
                    text: text.to_owned(),
                    problem
                },
                "{text}"
            );
            for example in ["`2GB`", "`1.5GiB`", "`512M`", "`80%`"] {
                assert!(error.to_string().contains(example), "{error}");
            }
        }
    }

    #[test]
    fn bytes_are_printed_in_three_digits() {
        for (bytes, text) in [
            (0, "0 B"),
            (512, "512 B"),
            (999, "999 B"),
            (1_000, "1 KB"),
            (1_234, "1.23 KB"),
            (99_949, "99.9 KB"),
            (99_950, "100 KB"),
            (999_499, "999 KB"),
            (999_500, "1 MB"),
            (256_000_000, "256 MB"),
            (1_900_000_000, "1.9 GB"),
            (2_000_000_000, "2 GB"),
            (2_004_000_000, "2 GB"),
            (24_906_067_968, "24.9 GB"),
            (u64::MAX, "18.4 EB"),
        ] {
            assert_eq!(format_bytes(bytes), text);
        }
    }

    #[test]
    fn amounts_print_shortly() {
        for text in ["2GB", "1.5GB", "512MB", "3GiB", "1001B", "29%", "80%", "12.5%"] {
            assert_eq!(
                text.parse::<Amount>().map(|amount| amount.to_string()),
                Ok(text.to_owned())
            );
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn bytes_come_back_exactly(bytes in 1..=u64::MAX) {
            let amount = Amount::Bytes(bytes);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        }

        #[test]
        fn round_bytes_come_back_exactly(count in 1u64..100_000, unit in 0usize..9) {
            let amount = Amount::Bytes(count * UNITS[unit].0);
            prop_assert_eq!(amount.to_string().parse(), Ok(amount));
        }

        #[test]
        fn shares_come_back(share in 1e-6f64..=1.0) {
            let Ok(Amount::Share(back)) = Amount::Share(share).to_string().parse() else {
                return Err(TestCaseError::fail("not a share"));
            };
            prop_assert!((back - share).abs() < 1e-11);
        }

        #[test]
        fn a_share_never_exceeds_the_whole(whole: u64, share in 1e-6f64..=1.0) {
            prop_assert!(Amount::Share(share).of(whole) <= whole);
        }

        #[test]
        fn no_text_panics(text in "\\PC{0,12}") {
            let _ = text.parse::<Amount>();
        }

        #[test]
        fn printed_bytes_are_near(bytes: u64) {
            // "1.23 KB" reads back as an amount within half a unit of the third digit.
            if bytes > 0 {
                let Ok(Amount::Bytes(back)) = format_bytes(bytes).replace("EB", "000000TB")
                    .replace("PB", "000TB").parse() else { return Ok(()) };
                if bytes < 1_000_000_000_000_000 {
                    prop_assert!(back.abs_diff(bytes) as f64 <= bytes as f64 * 0.005 + 1.0);
                }
            }
        }
    }
}
