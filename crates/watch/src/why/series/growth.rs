//! Which lines the memory of a run grew on.

use std::collections::HashMap;

use tidegate_runs::{Frame, StackSample};

use super::account::{Run, account};
use super::lines::{Code, cell};
use super::samples::{held, processes};
use crate::why::{Case, Growth, Scripts};

/// What grew less than this share of all is left out.
const LEAST_SHARE: f64 = 0.01;

/// The lines that hold what the run held when it held the most, the most first. Only what was seen with a stack counts,
/// and what was given back before that moment does not.
pub fn growth(case: &Case, scripts: &Scripts) -> Vec<Growth> {
    let code = Code::of(case, scripts);
    let peak_ms = peak_ms(case);
    let ends: HashMap<(i32, u64), Option<u64>> = processes(case)
        .iter()
        .map(|process| ((process.pid, process.start_time), process.end_ms))
        .collect();
    let mut places: HashMap<(&str, u32), Place<'_>> = HashMap::new();
    let mut all = 0.0;
    for process in by_process(case) {
        if !process.lives_at(peak_ms, ends.get(&process.identity)) {
            continue;
        }
        // The peak may lie between two looks at the stack.
        let account = account(&code, &process.samples, peak_ms.saturating_add(500));
        for run in &account.runs {
            let frame = code.frame(run.place);
            let place = places.entry((&frame.file, frame.line)).or_insert_with(|| Place {
                frame,
                bytes: 0.0,
                within: HashMap::new(),
            });
            place.bytes += run.bytes;
            all += run.bytes;
        }
        for ((number, within), bytes) in account.within {
            let frame = code.frame(number);
            if let Some(place) = places.get_mut(&(frame.file.as_str(), frame.line)) {
                *place.within.entry(within).or_default() += bytes;
            }
        }
    }
    let mut growth: Vec<Growth> = places
        .into_values()
        .filter(|place| place.bytes >= 1.0 && place.bytes >= all * LEAST_SHARE)
        .map(|place| place.growth(&code, all))
        .collect();
    growth.sort_by(|a, b| {
        let by_place = || (&a.place.file, a.place.line).cmp(&(&b.place.file, b.place.line));
        b.bytes.cmp(&a.bytes).then_with(by_place)
    });
    growth
}

/// The line that the run was growing on when it ended: that of the last two seconds, or of the last fifth of what it held
/// more than at the start.
pub fn growing_now(case: &Case, scripts: &Scripts) -> Option<Frame> {
    let code = Code::of(case, scripts);
    let mut runs: Vec<Run> = by_process(case)
        .iter()
        .flat_map(|process| account(&code, &process.samples, u64::MAX).runs)
        .collect();
    // The newest first, and of one moment the later line.
    runs.reverse();
    runs.sort_by_key(|run| std::cmp::Reverse(run.to_ms));
    let all: f64 = runs.iter().map(|run| run.bytes).sum();
    let end_ms = case.stacks.samples.last()?.time_ms;
    let mut taken = 0.0;
    let mut places: Vec<(&Frame, f64)> = Vec::new();
    for run in &runs {
        let recent = run.bytes_since(end_ms.saturating_sub(2_000));
        let wanted = (all * 0.2 - taken).clamp(0.0, run.bytes).max(recent);
        let frame = code.frame(run.place);
        let is_here = |place: &&mut (&Frame, f64)| (&place.0.file, place.0.line) == (&frame.file, frame.line);
        match places.iter_mut().find(is_here) {
            Some(place) => place.1 += wanted,
            None => places.push((frame, wanted)),
        }
        taken += wanted;
    }
    // Of two that are even, the newer.
    let most = places.iter().rev().max_by(|a, b| a.1.total_cmp(&b.1))?;
    (most.1 >= 1.0).then(|| most.0.clone())
}

/// A line with all its growth.
struct Place<'a> {
    frame: &'a Frame,
    bytes: f64,
    /// By the calls from there inwards, with what was given back.
    within: HashMap<Vec<u32>, f64>,
}

impl Place<'_> {
    fn growth(self, code: &Code<'_>, all: f64) -> Growth {
        // Of two that are even, the shorter, so that the answer is always the same.
        let most = self.within.into_iter().max_by(|a, b| {
            let shorter = || b.0.len().cmp(&a.0.len()).then_with(|| b.0.cmp(&a.0));
            a.1.total_cmp(&b.1).then_with(shorter)
        });
        let within = most.map(|(frames, _)| frames).unwrap_or_default();
        Growth {
            place: self.frame.clone(),
            bytes: self.bytes.round() as u64,
            // Rounded down, so that all shares together are not more than all.
            share: (self.bytes / all * 1e6).floor() / 1e6,
            within: within
                .into_iter()
                .map(|number| code.frame(number).clone())
                .collect(),
            cell: cell(self.frame),
            code: None,
        }
    }
}

/// All samples of one process that told its size.
struct Sampled<'a> {
    identity: (i32, u64),
    samples: Vec<&'a StackSample>,
}

impl Sampled<'_> {
    /// By its records; without those, by whether it was still looked at.
    fn lives_at(&self, time_ms: u64, recorded_end: Option<&Option<u64>>) -> bool {
        let (Some(first), Some(last)) = (self.samples.first(), self.samples.last()) else {
            return false;
        };
        let usual = (last.time_ms - first.time_ms) / self.samples.len() as u64;
        match recorded_end {
            Some(end_ms) => end_ms.is_none_or(|end_ms| end_ms >= time_ms),
            None => last.time_ms + 5_000.max(usual * 5) >= time_ms,
        }
    }
}

fn by_process(case: &Case) -> Vec<Sampled<'_>> {
    let mut all: Vec<Sampled<'_>> = Vec::new();
    let mut places = HashMap::new();
    for sample in case.stacks.samples.iter().filter(|sample| sample.held.is_some()) {
        let identity = (sample.pid, sample.start_time);
        let place = *places.entry(identity).or_insert(all.len());
        if place == all.len() {
            all.push(Sampled {
                identity,
                samples: Vec::new(),
            });
        }
        all[place].samples.push(sample);
    }
    all
}

/// When the run held the most, the last time it came within 2% of that. By the flight, else by the samples themselves.
fn peak_ms(case: &Case) -> u64 {
    let mut sums: Vec<(u64, f64)> = held(case)
        .iter()
        .map(|point| ((point.seconds * 1e3).round() as u64, point.bytes))
        .collect();
    if sums.is_empty() {
        let mut last = HashMap::new();
        let mut sum = 0.0;
        for sample in &case.stacks.samples {
            let now = sample.held.unwrap_or(0) as f64;
            sum += now - last.insert((sample.pid, sample.start_time), now).unwrap_or(0.0);
            sums.push((sample.time_ms, sum));
        }
    }
    let most = sums.iter().map(|(_, bytes)| *bytes).fold(0.0, f64::max);
    let near = sums.iter().rev().find(|(_, bytes)| *bytes >= most * 0.98);
    near.map_or(u64::MAX, |(time_ms, _)| *time_ms)
}
