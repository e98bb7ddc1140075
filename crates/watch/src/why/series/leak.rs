//! Growth that goes on step after step and is never given back.
//!
//! A leak is claimed only of a floor that rises in all parts of the time, evenly, up to the end, and beyond all that was
//! there before. What rises and then stays (a cache, an allocator that keeps its pages), what rises ever more slowly (a
//! cache that fills), what rises in a few steps (files that are read whole) and what comes down again (epochs) is none.

use super::samples::Point;
use super::shape::{Swing, curve, floors, kept, middle, middle_slope, noise, part, slope, span, trend};

/// Growth from some moment to the end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Rise {
    pub(super) from_seconds: f64,
    pub(super) to_seconds: f64,
    /// What was never given back.
    pub(super) bytes: f64,
    /// Bytes a second.
    pub(super) rate: f64,
    /// The speed in its second half against that in its first.
    end_speed: f64,
}

/// What has to be seen of a rise.
#[derive(Debug, Clone, Copy)]
pub(super) struct Least {
    points: usize,
    seconds: f64,
}

/// Fewer points, or a shorter time, tell no steps from one load.
pub(super) const BY_SHAPE: Least = Least {
    points: 16,
    seconds: 1.5,
};
/// Where it is known that there were steps.
pub(super) const IN_STEPS: Least = Least {
    points: 8,
    seconds: 0.5,
};
/// Growth below this is what any runtime does.
const LEAST_BYTES: f64 = 2e6;
const LEAST_SHARE: f64 = 0.1;
/// Windows that are compared: their floors have to rise from each to the next, with few exceptions.
const WINDOWS: usize = 9;
const LEAST_RISING: usize = 6;
/// The longest time without growth, as a share of all: an eighth, and what the grid adds to it.
const LONGEST_REST: f64 = 0.17;
/// What may come before steady growth: loading libraries and data, at most for this share of the time.
const STARTS: [f64; 6] = [0.0, 0.03, 0.06, 0.12, 0.2, 0.3];
/// Growth before and after such a start differ by at least this factor; without such a break the start is arbitrary, and
/// a part of a curve that flattens would pass for a line. What comes after a steeper part has to go on nearly as fast as
/// it begins, the more so the smaller the break: pairs of the break and of the speed in the second half against the first.
const BREAKS: [(f64, f64); 2] = [(3.0, 0.75), (1.3, 0.85)];
/// Growth that begins late has to last for this share of the time, or for so long.
const LATE_SHARE: f64 = 0.1;
const LATE_SECONDS: f64 = 300.0;

/// The steady growth up to the end of the series, if there is any.
pub(super) fn steady_rise(points: &[Point], least: Least) -> Option<Rise> {
    let first = points.first()?.seconds;
    let starts = STARTS.iter().map(|share| {
        let seconds = first + share * span(points);
        points.partition_point(|point| point.seconds < seconds)
    });
    let found = starts
        .filter_map(|start| Some((start, rises_steadily(&points[start..], least)?)))
        .find(|(start, rise)| *start == 0 || breaks(points, *start, rise));
    found
        .or_else(|| late_rise(points, least))
        .filter(|(start, rise)| is_new_ground(points, *start, rise))
        .map(|(_, rise)| rise)
}

/// Whether what came before is of another kind: much steeper, or none at all.
fn breaks(points: &[Point], start: usize, rise: &Rise) -> bool {
    let (before, after) = (&points[..=start], &points[start..]);
    let grown = before[start].bytes - before[0].bytes;
    let rate = grown / span(before).max(1e-3);
    // In noise as large as the growth any curve is straight.
    let is_clear = rise.bytes >= noise(after) * 11.0;
    let mut breaks = BREAKS.iter();
    let is_steeper = breaks.any(|(least, speed)| rate > rise.rate * least && rise.end_speed >= *speed);
    rate < rise.rate / BREAKS[0].0 || is_steeper && is_clear
}

/// Growth that begins after a long time in which nothing was kept.
fn late_rise(points: &[Point], least: Least) -> Option<(usize, Rise)> {
    let bytes: Vec<f64> = points.iter().map(|point| point.bytes).collect();
    let kept = kept(&bytes);
    let (&low, &high) = kept.first().zip(kept.last())?;
    let start = kept.partition_point(|&kept| kept < low + (high - low) * 0.05);
    let region = &points[start.saturating_sub(1)..];
    let is_long = span(region) >= LATE_SECONDS.min(span(points) * LATE_SHARE);
    is_long
        .then(|| rises_steadily(region, least))?
        .map(|rise| (start.saturating_sub(1), rise))
}

/// At least half of the growth leads beyond all that was there before it began: the last way up of a sawtooth does not.
fn is_new_ground(points: &[Point], start: usize, rise: &Rise) -> bool {
    let before = points[..start].iter().map(|point| point.bytes);
    let highest = before.fold(0.0, f64::max);
    let end = points[start].bytes + rise.bytes;
    end >= highest + rise.bytes * 0.5 || start == 0
}

fn rises_steadily(points: &[Point], least: Least) -> Option<Rise> {
    let span = span(points);
    if points.len() < least.points || span < least.seconds {
        return None;
    }
    let coarse = kept(&floors(points, WINDOWS));
    let bytes = coarse[WINDOWS - 1] - coarse[0];
    if bytes < LEAST_BYTES || bytes < coarse[0] * LEAST_SHARE {
        return None;
    }
    let steps: Vec<f64> = coarse.windows(2).map(|two| two[1] - two[0]).collect();
    let even = bytes / steps.len() as f64;
    let rising = steps.iter().filter(|&&step| step >= even * 0.25).count();
    let largest = steps.iter().copied().fold(0.0, f64::max);
    let late: f64 = steps[steps.len() / 2..].iter().sum();
    if rising < LEAST_RISING || largest > bytes * 0.35 || late < bytes * 0.36 {
        return None;
    }
    let n_fine = (points.len() / 3).clamp(WINDOWS, 48);
    let fine = kept(&floors(points, n_fine));
    let rate = middle_slope(&fine) * n_fine as f64 / span;
    let (rate, end_speed) = match has_teeth(points, rate) {
        true => (rate, speed_of_floor(points, &fine, rate)?),
        false => (slope(points), speed(points)?),
    };
    (longest_rest(&fine) <= LONGEST_REST).then_some(Rise {
        from_seconds: points[0].seconds,
        to_seconds: points[points.len() - 1].seconds,
        bytes,
        rate,
        end_speed,
    })
}

/// Whether it goes up and down on its way, by more than noise.
fn has_teeth(points: &[Point], rate: f64) -> bool {
    let off = points.iter().map(|point| point.bytes - rate * point.seconds);
    let mut off: Vec<f64> = off.collect();
    off.sort_unstable_by(f64::total_cmp);
    let width = off[off.len() * 19 / 20] - off[off.len() / 20];
    // Nine tenths of noise are within 3.3 of its deviation.
    width > rate * span(points) * 0.3 && width > noise(points) * 5.0
}

/// The speed in the second half against that in the first; `None` if it rests anywhere, or slows down to less than half,
/// on its way to a level where it would have stayed.
fn speed(points: &[Point]) -> Option<f64> {
    let least = slope(points) * 0.2;
    let mut starts = (0..=16).map(|place| f64::from(place) * 0.05);
    if starts.any(|start| slope(part(points, start, start + 0.2)) < least) {
        return None;
    }
    let speed = slope(part(points, 0.5, 1.0)) / slope(part(points, 0.0, 0.5)).max(f64::MIN_POSITIVE);
    (speed >= 0.5).then_some(speed)
}

/// The same of a floor below teeth, which is known in steps only.
fn speed_of_floor(points: &[Point], fine: &[f64], rate: f64) -> Option<f64> {
    let curve = curve(fine);
    let speed = curve.slope_at_end / curve.slope_at_start.max(f64::MIN_POSITIVE);
    let is_real = rate * span(points) >= pace(points) * 2.0;
    (is_real && (speed >= 0.5 || curve.certainty < 5.0)).then_some(speed)
}

/// How far it goes up from one point to the next: looks that come ever later after the bottom of each tooth make a floor
/// that seems to rise by that.
fn pace(points: &[Point]) -> f64 {
    let steps = points.windows(2).map(|two| two[1].bytes - two[0].bytes);
    middle(&mut steps.filter(|step| *step > 0.0).collect::<Vec<f64>>())
}

/// The longest way without growth, as a share of all.
fn longest_rest(kept: &[f64]) -> f64 {
    let steps = kept.len() - 1;
    let little = (kept[steps] - kept[0]) * 0.03;
    let mut end = 0;
    let mut longest = 0;
    for (start, from) in kept.iter().enumerate() {
        while end < steps && kept[end + 1] - from <= little {
            end += 1;
        }
        longest = longest.max(end.saturating_sub(start));
    }
    longest as f64 / steps as f64
}

/// The bottoms of a sawtooth that rise, evenly, and with hardly one below an earlier one: too far apart for windows.
pub(super) fn rising_bottoms(points: &[Point], ways: &[Swing]) -> Option<Rise> {
    /// By chance seven bottoms rise from each to the next in one of 5040 cases, and a trend is as clear in one of 4000.
    const LEAST_BOTTOMS: usize = 7;
    const LEAST_TREND: f64 = 3.5;
    let falls: Vec<&Swing> = ways.iter().filter(|way| way.bytes() < 0.0).collect();
    let (first, last) = (falls.first()?.to, falls.last()?.to);
    let bottoms: Vec<f64> = falls.iter().map(|way| way.to.bytes).collect();
    let is_rising = bottoms.is_sorted() || trend(&bottoms) >= LEAST_TREND;
    if bottoms.len() < LEAST_BOTTOMS || !is_rising {
        return None;
    }
    let steps = (bottoms.len() - 1) as f64;
    let step = middle_slope(&bottoms);
    let bytes = step * steps;
    let deepest = falls.iter().map(|way| -way.bytes()).fold(0.0, f64::max);
    let is_much = bytes >= LEAST_BYTES && bytes >= first.bytes * LEAST_SHARE && bytes >= deepest * 0.25;
    let is_real = bytes >= pace(points) * 2.0;
    let kept = kept(&bottoms);
    let largest = kept.windows(2).map(|two| two[1] - two[0]).fold(0.0, f64::max);
    let late_step = middle_slope(&bottoms[bottoms.len() / 2..]);
    let is_even = largest <= bytes * 0.4 && late_step >= step * 0.5;
    let cycle = (last.seconds - first.seconds) / steps;
    let goes_on = points.last()?.seconds - last.seconds <= cycle * 2.0;
    (is_much && is_real && is_even && goes_on).then(|| Rise {
        from_seconds: first.seconds,
        to_seconds: last.seconds,
        bytes,
        rate: step / cycle,
        end_speed: 1.0,
    })
}
