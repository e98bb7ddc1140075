//! A date or time as its parts: the year, the hour, the day of the week, as numbers or as points on a circle.

use std::f64::consts::TAU;

use serde::{Deserialize, Serialize};

use super::Width;
use super::calendar::{date_from_days, days_from_date};
use crate::sketch::{Resolution, Times};

/// A part of a time in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TimePart {
    /// Seconds since 1970-01-01.
    Elapsed,
    Year,
    /// 1 to 12.
    Month,
    /// 1 to 31.
    Day,
    /// 0 for Monday to 6 for Sunday.
    Weekday,
    /// 1 to 366.
    YearDay,
    Hour,
    Minute,
    Second,
}

impl TimePart {
    /// The part of a time given in seconds since 1970-01-01 in UTC.
    ///
    /// ```
    /// use tidegate_data::encode::{TimePart, parse_time};
    /// let time = parse_time(b"2024-12-31 18:45").unwrap();
    /// let parts = [TimePart::Month, TimePart::Weekday, TimePart::YearDay, TimePart::Hour];
    /// assert_eq!(parts.map(|part| part.of(time)), [12.0, 1.0, 366.0, 18.0]);
    /// ```
    pub fn of(&self, seconds: f64) -> f64 {
        // Three million years either way, so that no arithmetic below can overflow.
        let seconds = seconds.clamp(-1e14, 1e14);
        let days = (seconds / 86_400.0).floor();
        let second_of_day = seconds - days * 86_400.0;
        let days = days as i64;
        let whole = match self {
            TimePart::Elapsed => return seconds,
            TimePart::Year => date_from_days(days).0,
            TimePart::Month => date_from_days(days).1,
            TimePart::Day => date_from_days(days).2,
            // 1970-01-01 was a Thursday.
            TimePart::Weekday => (days + 3).rem_euclid(7),
            TimePart::YearDay => days - days_from_date(date_from_days(days).0, 1, 1) + 1,
            TimePart::Hour => second_of_day as i64 / 3_600,
            TimePart::Minute => second_of_day as i64 / 60 % 60,
            TimePart::Second => second_of_day as i64 % 60,
        };
        whole as f64
    }

    /// The first value and how many there are, for parts that come round again.
    pub fn cycle(&self) -> Option<(f64, f64)> {
        match self {
            TimePart::Elapsed | TimePart::Year => None,
            TimePart::Month => Some((1.0, 12.0)),
            TimePart::Day => Some((1.0, 31.0)),
            TimePart::Weekday => Some((0.0, 7.0)),
            TimePart::YearDay => Some((1.0, 366.0)),
            TimePart::Hour => Some((0.0, 24.0)),
            TimePart::Minute | TimePart::Second => Some((0.0, 60.0)),
        }
    }

    fn word(&self) -> &'static str {
        match self {
            TimePart::Elapsed => "elapsed",
            TimePart::Year => "year",
            TimePart::Month => "month",
            TimePart::Day => "day",
            TimePart::Weekday => "weekday",
            TimePart::YearDay => "yearday",
            TimePart::Hour => "hour",
            TimePart::Minute => "minute",
            TimePart::Second => "second",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TimeOptions {
    /// By default those that vary in the data.
    pub parts: Option<Vec<TimePart>>,
    /// Parts that come round again as sine and cosine, so that December is next to January; else as numbers.
    pub cyclic: bool,
    /// A last output that is 1 where the time is missing. By default where missing times were seen.
    pub flag_missing: Option<bool>,
}

impl Default for TimeOptions {
    fn default() -> TimeOptions {
        TimeOptions {
            parts: None,
            cyclic: true,
            flag_missing: None,
        }
    }
}

/// A part and the range that its numbers are brought from to 0 and 1.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ScaledPart {
    pub part: TimePart,
    pub low: f64,
    pub high: f64,
    pub cyclic: bool,
}

impl ScaledPart {
    /// Sine and cosine for every value of a cycle: a table is ten times as fast as working them out in each row.
    fn circle(&self) -> Vec<[f32; 2]> {
        let values = if self.cyclic {
            (self.high - self.low) as usize
        } else {
            0
        };
        let point = |i: usize| {
            let (sine, cosine) = (TAU * i as f64 / values as f64).sin_cos();
            [sine as f32, cosine as f32]
        };
        (0..values).map(point).collect()
    }
}

/// For each part `(x − low) / (high − low)`, or `sin` and `cos` of `2π (x − first) / length of the cycle`.
///
/// Low and high are those of the data for the year and the time elapsed, and of the cycle for the others. A
/// missing time is 0 everywhere but in its flag.
///
/// ```
/// use tidegate_data::encode::{Time, TimeOptions, TimePart, parse_time};
/// use tidegate_data::sketch::Times;
/// let mut times = Times::default();
/// times.push_slice(&[b"2020-01-01", b"2024-07-01"].map(|text| parse_time(text).unwrap()));
/// let options = TimeOptions { parts: Some(vec![TimePart::Year, TimePart::Month]), ..TimeOptions::default() };
/// let time = Time::fit(&options, &times, 0);
/// let mut out = [0.0; 3];
/// time.encode(&[parse_time(b"2021-04-01").unwrap()], &mut out, 3);
/// assert_eq!(out.map(|x| (x * 100.0).round()), [25.0, 100.0, 0.0]);
/// assert_eq!(time.name("sold", 1), "sold~month sine");
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Time {
    pub parts: Vec<ScaledPart>,
    pub flag_missing: bool,
}

impl Time {
    /// `missing` is how many rows had no time.
    pub fn fit(options: &TimeOptions, times: &Times, missing: u64) -> Time {
        let parts = options.parts.clone().unwrap_or_else(|| varying_parts(times));
        let scaled = |part: TimePart| {
            let cyclic = options.cyclic && part.cycle().is_some();
            let (low, high) = match part.cycle() {
                Some((first, count)) => (first, first + count - if cyclic { 0.0 } else { 1.0 }),
                None => (part.of(times.min), part.of(times.max)),
            };
            ScaledPart {
                part,
                low,
                high,
                cyclic,
            }
        };
        Time {
            parts: parts.into_iter().map(scaled).collect(),
            flag_missing: options.flag_missing.unwrap_or(missing > 0),
        }
    }

    /// Writes the outputs of each row, rows being `stride` apart.
    pub fn encode(&self, seconds: &[f64], out: &mut [f32], stride: usize) {
        let width = self.width().dense;
        let circles: Vec<Vec<[f32; 2]>> = self.parts.iter().map(ScaledPart::circle).collect();
        for (row, &x) in seconds.iter().enumerate() {
            self.encode_row(x, &circles, &mut out[row * stride..][..width]);
        }
    }

    fn encode_row(&self, seconds: f64, circles: &[Vec<[f32; 2]>], out: &mut [f32]) {
        out.fill(0.0);
        if !seconds.is_finite() {
            if let (true, Some(flag)) = (self.flag_missing, out.last_mut()) {
                *flag = 1.0;
            }
            return;
        }
        let mut at = 0;
        for (scaled, circle) in self.parts.iter().zip(circles) {
            let beyond = scaled.part.of(seconds) - scaled.low;
            if scaled.cyclic {
                out[at..at + 2].copy_from_slice(&circle.get(beyond as usize).copied().unwrap_or_default());
            } else {
                let range = scaled.high - scaled.low;
                out[at] = (beyond / if range > 0.0 { range } else { 1.0 }) as f32;
            }
            at += 1 + usize::from(scaled.cyclic);
        }
    }

    pub fn width(&self) -> Width {
        let parts: usize = self.parts.iter().map(|part| 1 + usize::from(part.cyclic)).sum();
        Width::dense(parts + usize::from(self.flag_missing))
    }

    pub fn name(&self, column: &str, output: usize) -> String {
        let mut names = self.parts.iter().flat_map(|scaled| {
            let word = scaled.part.word();
            match scaled.cyclic {
                true => vec![format!("{column}~{word} sine"), format!("{column}~{word} cosine")],
                false => vec![format!("{column}~{word}")],
            }
        });
        names.nth(output).unwrap_or_else(|| format!("{column}=missing"))
    }
}

/// The parts that vary between the first time and the last, as finely as the times are told.
fn varying_parts(times: &Times) -> Vec<TimePart> {
    let differs = |part: TimePart| part.of(times.min) != part.of(times.max);
    let span = times.max - times.min;
    let days = span / 86_400.0;
    let mut parts = Vec::new();
    let mut choose = |part, wanted: bool| {
        if wanted {
            parts.push(part);
        }
    };
    choose(TimePart::Elapsed, span > 0.0);
    choose(TimePart::Year, differs(TimePart::Year));
    choose(TimePart::Month, differs(TimePart::Month) || days >= 31.0);
    choose(TimePart::Day, differs(TimePart::Day) || days >= 28.0);
    choose(TimePart::Weekday, days >= 1.0);
    choose(
        TimePart::Hour,
        times.resolution >= Resolution::Hour && span >= 3_600.0,
    );
    choose(
        TimePart::Minute,
        times.resolution >= Resolution::Minute && span >= 60.0,
    );
    choose(
        TimePart::Second,
        times.resolution >= Resolution::Second && span >= 1.0,
    );
    parts
}
