//! What the memory of a run did, in one word and one sentence.
//!
//! What is claimed can be seen from outside. That an allocator keeps pages which nobody uses looks from there like a cache
//! that stays, so it is only said of a run that told what it has in use; that free memory lies in pieces too small to use
//! is never said, for only the allocator itself knows.

use std::time::Duration;

use tidegate_runs::FlightRecord;

use super::copy_on_write::{Copied, copied};
use super::leak::{BY_SHAPE, IN_STEPS, Rise, rising_bottoms, steady_rise};
use super::lines::{Course, course};
use super::page_cache::{FilePages, file_pages};
use super::samples::{Point, held, limit, living};
use super::shape::{Swing, span, swings, width_of_noise};
use super::words::{length, size};
use crate::ended::Exit;
use crate::why::{Case, Pattern, PatternKind, Scripts};

/// Fewer points have no shape.
const LEAST_POINTS: usize = 5;
const LEAST_SECONDS: f64 = 0.3;
/// Growth below these is none: of any runtime, and of the highest level.
const LEAST_BYTES: f64 = 2e6;
const LEAST_SHARE: f64 = 0.1;

/// What the memory did; `None` where too little of it was seen.
pub fn pattern(case: &Case, scripts: &Scripts) -> Option<Pattern> {
    let points = held(case);
    if points.len() < LEAST_POINTS || span(&points) < LEAST_SECONDS {
        return None;
    }
    if let Some(copied) = copied(case) {
        return Some(copy_on_write(&copied));
    }
    let ways = ways(&points);
    let rise = steady_rise(&points, BY_SHAPE)
        .or_else(|| rising_bottoms(&points, &ways))
        .or_else(|| rise_in_steps(case, scripts, &points));
    if let Some(rise) = rise {
        return Some(match is_one_load(case, scripts, &rise) {
            true => one_load(&rise),
            false => leak(case, &points, &ways, &rise),
        });
    }
    if let Some(pages) = file_pages(case, &points) {
        return Some(page_cache(&pages));
    }
    retention(case, &points)
        .or_else(|| steady(&points))
        .or_else(|| sawtooth(&points, &ways))
        .or_else(|| Some(growth(&points)))
}

/// How long after the end of the recording the line would be reached, if it went on like that.
pub fn time_to_line(case: &Case, pattern: &Pattern) -> Option<Duration> {
    let rate = pattern.rate.filter(|&rate| rate > 0.0)?;
    let left = limit(case)? as f64 - held(case).last()?.bytes;
    Duration::try_from_secs_f64(left.max(0.0) / rate).ok()
}

fn of_kind(kind: PatternKind, sentence: String) -> Pattern {
    Pattern {
        kind,
        sentence,
        rate: None,
    }
}

/// The ways up and down that are more than noise.
fn ways(points: &[Point]) -> Vec<Swing> {
    let (low, high) = range(points);
    swings(
        points,
        ((high - low) * 0.25).max(high * 0.05).max(width_of_noise(points)),
    )
}

fn range(points: &[Point]) -> (f64, f64) {
    let bytes = points.iter().map(|point| point.bytes);
    bytes.fold((f64::INFINITY, 0.0), |(low, high), bytes| {
        (bytes.min(low), bytes.max(high))
    })
}

/// A ramp in one call is one load: a file read whole, a table joined. By the stacks and what the sources say of their
/// lines, where there are any: a loop of one line is steps, though it looks like one call. Else by its speed, at which no
/// step does anything but allocate, the more so where it is known to have computed or read all the time.
fn is_one_load(case: &Case, scripts: &Scripts, rise: &Rise) -> bool {
    const LONGEST_LOAD: f64 = 60.0;
    const LONGEST_FILL: f64 = 10.0;
    const FILL_RATE: f64 = 150e6;
    const BUSY_FILL_RATE: f64 = 80e6;
    let seconds = rise.to_seconds - rise.from_seconds;
    let (from_ms, to_ms) = milliseconds(rise);
    match course(case, scripts, from_ms, to_ms) {
        Some(Course::Steps | Course::Lines) => return false,
        Some(Course::OneCall) => return seconds < LONGEST_LOAD,
        None => {}
    }
    let least = match is_busy(case, from_ms, to_ms, rise.bytes) {
        Some(true) => BUSY_FILL_RATE,
        None => FILL_RATE,
        Some(false) => return false,
    };
    seconds < LONGEST_FILL && rise.rate >= least
}

/// Too short for its shape to tell, but the source tells that it was steps which keep something.
fn rise_in_steps(case: &Case, scripts: &Scripts, points: &[Point]) -> Option<Rise> {
    let rise = steady_rise(points, IN_STEPS)?;
    let (from_ms, to_ms) = milliseconds(&rise);
    (course(case, scripts, from_ms, to_ms) == Some(Course::Steps)).then_some(rise)
}

fn milliseconds(rise: &Rise) -> (u64, u64) {
    let from_ms = (rise.from_seconds * 1e3) as u64;
    (from_ms, (rise.to_seconds * 1e3).ceil() as u64)
}

/// Whether it computed most of that time, on a machine that may have others to serve, or read what it grew by; `None`
/// where neither was recorded.
fn is_busy(case: &Case, from_ms: u64, to_ms: u64, bytes: f64) -> Option<bool> {
    let within: Vec<&FlightRecord> = living(case)
        .into_iter()
        .filter(|record| (from_ms..=to_ms).contains(&record.time_ms))
        .collect();
    let (first, last) = within.first().zip(within.last())?;
    let computed = last.cpu_ms?.saturating_sub(first.cpu_ms?);
    let read = last
        .read_bytes
        .unwrap_or(0)
        .saturating_sub(first.read_bytes.unwrap_or(0));
    let time_ms = last.time_ms - first.time_ms;
    Some(computed as f64 >= time_ms as f64 * 0.4 || read as f64 >= bytes * 0.3)
}

fn copy_on_write(copied: &Copied) -> Pattern {
    let who = match copied.children {
        1 => "a forked process".to_string(),
        n => format!("{n} forked processes"),
    };
    let resident = match copied.resident < copied.bytes * 0.05 {
        true => "stayed as they were".to_string(),
        false => format!("grew by only {}", size(copied.resident)),
    };
    of_kind(
        PatternKind::CopyOnWrite,
        format!(
            "{who} copied {} of what they had in common within {}, while their resident sizes {resident}",
            size(copied.bytes),
            length(copied.seconds),
        ),
    )
}

fn one_load(rise: &Rise) -> Pattern {
    let seconds = rise.to_seconds - rise.from_seconds;
    of_kind(
        PatternKind::Burst,
        format!(
            "memory grew by {} in one go of {}, up to the end",
            size(rise.rate * seconds),
            length(seconds),
        ),
    )
}

fn leak(case: &Case, points: &[Point], ways: &[Swing], rise: &Rise) -> Pattern {
    let rate = size(rise.rate);
    let seconds = length(rise.to_seconds - rise.from_seconds);
    let given_back = ways
        .iter()
        .filter(|way| way.from.seconds >= rise.from_seconds)
        .any(|way| way.bytes() < -0.2 * rise.bytes);
    let mut sentence = match given_back {
        true => format!("memory goes up and down, but its bottom rose by {rate} a second for {seconds}"),
        false => format!("memory grew by {rate} a second for {seconds} and gave nothing back"),
    };
    let mut pattern = Pattern {
        kind: PatternKind::Leak,
        sentence: String::new(),
        rate: Some(rise.rate),
    };
    // Between the last look and the end it may have come far.
    let is_dead = matches!(case.facts.exit, Some(Exit::Signal(_)));
    let peak = case.facts.peak.filter(|_| is_dead).unwrap_or(0) as f64;
    let end = points.last().map_or(0.0, |point| point.bytes).max(peak);
    match (limit(case), time_to_line(case, &pattern)) {
        (Some(limit), _) if end >= limit as f64 * 0.95 => {
            sentence += &format!(", up to the line of {}", size(limit as f64));
        }
        (Some(_), Some(left)) => {
            sentence += &format!(
                "; at this rate the line is reached after {}",
                length(left.as_secs_f64())
            );
        }
        _ => {}
    }
    pattern.sentence = sentence;
    pattern
}

fn page_cache(pages: &FilePages) -> Pattern {
    let what = match pages.of_cgroup {
        true => "the page cache",
        false => "what it has mapped of files",
    };
    of_kind(
        PatternKind::PageCache,
        format!(
            "{what} grew by {}, which the kernel takes back when it needs it; what the run itself holds is {}",
            size(pages.bytes),
            size(pages.held),
        ),
    )
}

/// A run that tells what it has in use: much less than once, and the process is as large as ever.
fn retention(case: &Case, points: &[Point]) -> Option<Pattern> {
    let living = living(case);
    let used: Vec<f64> = living
        .iter()
        .filter_map(|record| record.ledger_used)
        .map(|used| used as f64)
        .collect();
    let most = used.iter().copied().fold(0.0, f64::max);
    let now = *used.last()?;
    let (_, high) = range(points);
    let end = points.last()?.bytes;
    let is_kept = end >= high * 0.8 && end >= most * 0.8 && end - now >= (most * 0.3).max(LEAST_BYTES * 10.0);
    (now <= most * 0.5 && is_kept).then(|| {
        of_kind(
            PatternKind::Retention,
            format!(
                "memory stays at {} though only {} of it is in use, down from {}: the allocator keeps what was freed",
                size(end),
                size(now),
                size(most),
            ),
        )
    })
}

/// Nothing but what a runtime takes to start, and what comes and goes too fast to be seen.
fn steady(points: &[Point]) -> Option<Pattern> {
    const LONGEST_START: f64 = 2.0;
    const LARGEST_START: f64 = 128e6;
    const MOST_NOISE: f64 = 0.4;
    let first = points.first()?;
    let started = first.seconds + LONGEST_START.min(span(points) * 0.2);
    let start = points.partition_point(|point| point.seconds < started);
    let grown = points.get(start)?.bytes - first.bytes;
    let settled = if grown < LARGEST_START {
        &points[start..]
    } else {
        points
    };
    let (low, high) = range(settled);
    let (_, highest) = range(points);
    let little = (high * LEAST_SHARE).max(LEAST_BYTES).max(width_of_noise(settled));
    if high - low > little || highest > high + little {
        return None;
    }
    let seconds = length(span(settled));
    Some(match high - low {
        // Noise as large as that is what comes and goes between two looks.
        range if range > high * MOST_NOISE => of_kind(
            PatternKind::Sawtooth,
            format!(
                "memory went up and down between {} and {} for {seconds}, faster than it was looked at",
                size(low),
                size(high)
            ),
        ),
        range if range < high * 0.01 => of_kind(
            PatternKind::Steady,
            format!("memory stayed at {} for {seconds} after the start", size(high)),
        ),
        _ => of_kind(
            PatternKind::Steady,
            format!(
                "memory stayed between {} and {} for {seconds} after the start",
                size(low),
                size(high)
            ),
        ),
    })
}

/// Up and down at least twice, and not just higher than ever at the end.
fn sawtooth(points: &[Point], ways: &[Swing]) -> Option<Pattern> {
    let falls: Vec<&Swing> = ways.iter().filter(|way| way.bytes() < 0.0).collect();
    let last_fall = falls.last()?;
    let (_, highest) = range(points);
    let before = falls.iter().map(|way| way.from.bytes).fold(0.0, f64::max);
    let bottom = falls.iter().map(|way| way.to.bytes).fold(f64::INFINITY, f64::min);
    if falls.len() < 2 || highest - bottom > (before - bottom) * 1.4 {
        return None;
    }
    let first_fall = falls[0];
    let risen = last_fall.to.bytes - first_fall.to.bytes;
    let floor = match risen.abs() <= (before - bottom) * 0.15 {
        true => "its bottom stayed".to_string(),
        false if risen > 0.0 => format!("its bottom rose by {} in all", size(risen)),
        false => format!("its bottom fell by {} in all", size(-risen)),
    };
    Some(of_kind(
        PatternKind::Sawtooth,
        format!(
            "memory went up and down {} times between {} and {}; {floor}",
            falls.len(),
            size(bottom),
            size(before.max(highest)),
        ),
    ))
}

/// What grew and is neither a leak nor comes and goes: at once, or slowly up to a level.
fn growth(points: &[Point]) -> Pattern {
    let climb = climb(points);
    let end = points[points.len() - 1].bytes;
    if climb.bytes() < climb.high * LEAST_SHARE {
        return of_kind(
            PatternKind::Steady,
            format!(
                "memory never rose above the {} of its beginning, and was {} at the end",
                size(climb.high),
                size(end)
            ),
        );
    }
    let span = span(points);
    let given_back = climb.high - end;
    let is_abrupt = climb.seconds(0.1, 0.9) <= (span * 0.06).max(2.0) || climb.few_steps().is_some();
    let rest = points[points.len() - 1].seconds - climb.reached(0.95);
    let middle = points[0].seconds + span / 2.0;
    let late = 1.0 - climb.share_at(middle);
    if !is_abrupt && given_back < climb.bytes() * 0.3 && (rest >= span * 0.2 || late < 0.35) {
        return plateau(&climb, rest, late, span);
    }
    let how = match climb.few_steps() {
        Some(n) if n > 1 => format!("in {n} steps"),
        _ if climb.seconds(0.05, 0.95) < 0.05 => "at once".to_string(),
        _ => format!("within {}", length(climb.seconds(0.05, 0.95))),
    };
    let after = if given_back >= climb.bytes() * 0.5 {
        format!(" and gave {} of it back", size(given_back))
    } else if rest >= span * 0.1 && rest >= 1.0 {
        " and stays there".to_string()
    } else {
        ", at the end".to_string()
    };
    of_kind(
        PatternKind::Burst,
        format!(
            "memory grew by {} {how}, {} after the start{after}",
            size(climb.bytes()),
            length(climb.reached(0.05)),
        ),
    )
}

fn plateau(climb: &Climb, rest: f64, late: f64, span: f64) -> Pattern {
    let grown = size(climb.bytes());
    of_kind(
        PatternKind::Plateau,
        match rest >= span * 0.2 {
            true => format!(
                "memory grew by {grown} in the first {} and stays there since, for {}",
                length(climb.reached(0.95)),
                length(rest),
            ),
            false => format!(
                "memory grew by {grown}, ever more slowly: {} of it in the first half of the time, {} in the second",
                size(climb.bytes() * (1.0 - late)),
                size(climb.bytes() * late),
            ),
        },
    )
}

/// The way to the highest point: at each moment the highest so far.
struct Climb {
    low: f64,
    high: f64,
    points: Vec<Point>,
}

fn climb(points: &[Point]) -> Climb {
    let mut highest = points[0].bytes;
    let so_far = points.iter().map(|point| {
        highest = highest.max(point.bytes);
        Point {
            bytes: highest,
            ..*point
        }
    });
    Climb {
        low: points[0].bytes,
        points: so_far.collect(),
        high: range(points).1,
    }
}

impl Climb {
    fn bytes(&self) -> f64 {
        self.high - self.low
    }

    /// When so much of the way was done.
    fn reached(&self, share: f64) -> f64 {
        let bytes = self.low + self.bytes() * share;
        let place = self.points.partition_point(|point| point.bytes < bytes);
        self.points[place.min(self.points.len() - 1)].seconds
    }

    fn seconds(&self, from: f64, to: f64) -> f64 {
        self.reached(to) - self.reached(from)
    }

    fn share_at(&self, seconds: f64) -> f64 {
        let place = self.points.partition_point(|point| point.seconds <= seconds);
        let bytes = self.points[place.saturating_sub(1)].bytes;
        (bytes - self.low) / self.bytes().max(1.0)
    }

    /// The number of single steps that most of the way was done in, if they are few: each is short against the whole.
    fn few_steps(&self) -> Option<usize> {
        const CELLS: usize = 50;
        const MOST_STEPS: usize = 5;
        let n_cells = CELLS.min(self.points.len() / 2).max(4);
        let levels = super::shape::peaks(&self.points, n_cells);
        let mut cells: Vec<(usize, f64)> = levels
            .windows(2)
            .enumerate()
            .map(|(place, two)| (place, two[1] - two[0]))
            .collect();
        cells.sort_by(|a, b| b.1.total_cmp(&a.1));
        let mut taken = 0.0;
        let mut chosen: Vec<usize> = Vec::new();
        for (place, bytes) in cells.into_iter().take(MOST_STEPS * 2) {
            if taken >= self.bytes() * 0.75 {
                break;
            }
            taken += bytes;
            chosen.push(place);
        }
        chosen.sort_unstable();
        // A step that falls on the border of two cells is one.
        let steps = chosen
            .chunk_by(|before, after| after - before <= 1)
            .collect::<Vec<_>>();
        let are_short = steps.iter().all(|step| step.len() <= 2);
        (taken >= self.bytes() * 0.75
            && steps.len() <= MOST_STEPS
            && are_short
            && chosen.len() * 6 <= n_cells)
            .then_some(steps.len())
    }
}
