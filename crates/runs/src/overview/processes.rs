//! The memory of each process of a run over a span of time.
//!
//! A process is recorded when it moved, and every ten seconds when it did not: between two records it holds what the first
//! one says. A build may start a hundred thousand of them, so the recording is gone through twice: once to find the largest,
//! and once to follow those one by one and the others together.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::path::Path;

use serde::Serialize;

use super::{MOST_POINTS, Span, Timeline};
use crate::error::Result;
use crate::processes::{PROCESS_AT_LEAST_EVERY_MS, ProcessRecord, in_use, name, pid, start_time};
use crate::records::scan::{RecordFile, time_of};

/// One process over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessSeries {
    pub pid: i32,
    /// Clock ticks since boot: the same pid with another start is another process.
    pub start_time: u64,
    /// The last one that it had.
    pub name: String,
    /// The most of all points.
    pub peak: u64,
    /// For each time the most that it held from there to the next: by proportional share, else by residence. `None` before it
    /// was first seen, after it was last seen, and where it did not tell.
    pub points: Vec<Option<u64>>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct ProcessOverview {
    /// In milliseconds since the start of the recording.
    pub times_ms: Vec<u64>,
    /// Those with the largest peaks, the largest first.
    pub processes: Vec<ProcessSeries>,
    /// All others together.
    pub others: Option<ProcessSeries>,
    /// How many there were in the span; of more than 229,376 so many.
    pub n_processes: u64,
}

/// A process that is still there has a record in so much time; longer than the recorder promises, for one that was late.
const LOOKED_AROUND_MS: u64 = 2 * PROCESS_AT_LEAST_EVERY_MS;
/// So many processes are kept in mind at once, 2 MB of them: more would have to live at the same time for anything to be
/// missed of those that are summed. Both are seven eighths of a power of two, which is when tables grow.
const MOST_KNOWN: usize = 28 * 1024;
const MOST_COUNTED: usize = 224 * 1024;
/// Points of all series together.
const MOST_VALUES: usize = 1024 * 1024;

/// The processes of a span of time: the `most` with the largest peaks each for itself, the others as a sum.
pub fn process_overview(path: &Path, span: Span, points: usize, most: usize) -> Result<ProcessOverview> {
    let file = RecordFile::<ProcessRecord>::open(path)?;
    let ends = file.ends()?;
    if file.header.is_none() && ends.is_none() {
        return Err(file.not_a_recording());
    }
    let Some((first, last)) = ends else {
        return Ok(ProcessOverview::default());
    };
    let (from, to) = (
        span.from_ms.unwrap_or(first).max(first),
        span.to_ms.unwrap_or(last).min(last),
    );
    if from > to {
        return Ok(ProcessOverview::default());
    }
    let timeline = Timeline::new(from, to, points.clamp(2, MOST_POINTS));
    let around = (
        from.saturating_sub(LOOKED_AROUND_MS),
        to.saturating_add(LOOKED_AROUND_MS),
    );
    let range = file.between(Some(around.0), Some(around.1))?;
    let is_near = |record: &[u8]| (around.0..=around.1).contains(&time_of(record));

    let mut peaks = Peaks::default();
    file.scan(range.clone(), |_, record| {
        if is_near(record) {
            peaks.see(record, &timeline, || file.is_intact(record));
        }
    })?;
    let (largest, n_processes) = (
        peaks.largest(most.min(MOST_VALUES / timeline.len())),
        peaks.seen.len() as u64,
    );
    drop(peaks);

    let mut followed: Vec<Followed> = largest.iter().map(|key| Followed::new(*key, timeline)).collect();
    let places: Map<Key, usize> = largest
        .into_iter()
        .enumerate()
        .map(|(at, key)| (key, at))
        .collect();
    let mut others = Others::new(timeline);
    file.scan(range, |_, record| {
        if !is_near(record) || !file.is_intact(record) {
            return;
        }
        match places.get(&Key::of(record)) {
            Some(at) => followed[*at].see(record),
            None => others.see(record),
        }
    })?;
    let mut processes: Vec<ProcessSeries> = followed.into_iter().map(Followed::series).collect();
    processes.retain(|series| series.points.iter().any(Option::is_some));
    processes.sort_by_key(|series| (std::cmp::Reverse(series.peak), series.start_time, series.pid));
    Ok(ProcessOverview {
        times_ms: timeline.times().collect(),
        processes,
        others: others.series(),
        n_processes,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Key {
    start_time: u64,
    pid: i32,
}

impl Key {
    fn of(record: &[u8]) -> Key {
        Key {
            start_time: start_time(record),
            pid: pid(record),
        }
    }

    /// Another one for every process: there are at most 4,194,304 at once.
    fn number(self) -> u64 {
        (self.start_time << 22) ^ u64::from(self.pid.cast_unsigned())
    }
}

type Map<K, V> = HashMap<K, V, BuildHasherDefault<Mixed>>;

/// Mixes numbers by multiplication. The recording is of processes of ours, and whoever forges one for collisions only makes
/// their own picture late: the default, which cannot be forged for, made a million records take 60 ms longer.
#[derive(Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u64(u64::from(*byte)));
    }

    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0.rotate_left(26) ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn write_i32(&mut self, value: i32) {
        self.write_u64(u64::from(value.cast_unsigned()));
    }

    fn finish(&self) -> u64 {
        self.0 ^ (self.0 >> 32)
    }
}

/// The first time through: who held the most.
#[derive(Default)]
struct Peaks {
    known: Map<Key, Peak>,
    seen: HashSet<u64, BuildHasherDefault<Mixed>>,
}

#[derive(Clone, Copy, Default)]
struct Peak {
    /// Held on the last record, which may be of before the span.
    held: Option<u64>,
    /// In the span.
    peak: Option<u64>,
}

impl Peaks {
    fn see(&mut self, record: &[u8], timeline: &Timeline, is_intact: impl Fn() -> bool) {
        let (key, time, held) = (Key::of(record), time_of(record), in_use(record));
        let known = self.known.get(&key).copied();
        // Most records raise nothing, and need no checksum.
        if known.is_none_or(|known| held > known.peak) && !is_intact() {
            return;
        }
        let before = known.unwrap_or_default();
        let mut now = Peak { held, ..before };
        if time >= timeline.from {
            now.peak = now.peak.max(before.held);
            if timeline.holds(time) {
                now.peak = now.peak.max(held);
            }
            if (now.peak.is_some() || timeline.holds(time)) && self.seen.len() < MOST_COUNTED {
                self.seen.insert(key.number());
            }
        }
        if known.is_none() && self.known.len() >= MOST_KNOWN {
            self.forget_the_smaller_half();
        }
        self.known.insert(key, now);
    }

    /// Whoever belongs to the largest in the end is among the larger half at any time after its peak.
    fn forget_the_smaller_half(&mut self) {
        let size = |peak: &Peak| peak.peak.max(peak.held);
        let mut sizes: Vec<Option<u64>> = self.known.values().map(size).collect();
        let (_, middle, _) = sizes.select_nth_unstable(MOST_KNOWN / 2);
        let middle = *middle;
        let mut equal = 0;
        self.known.retain(|_, peak| match size(peak).cmp(&middle) {
            std::cmp::Ordering::Less => false,
            std::cmp::Ordering::Greater => true,
            // Any of them will do, but not all.
            std::cmp::Ordering::Equal => {
                equal += 1;
                equal <= MOST_KNOWN / 4
            }
        });
    }

    fn largest(&self, most: usize) -> Vec<Key> {
        let mut all: Vec<(u64, Key)> = self
            .known
            .iter()
            .filter_map(|(key, peak)| Some((peak.peak?, *key)))
            .collect();
        all.sort_unstable_by_key(|(peak, key)| (std::cmp::Reverse(*peak), *key));
        all.truncate(most);
        all.into_iter().map(|(_, key)| key).collect()
    }
}

/// What a process holds, from one record to the next.
#[derive(Clone, Copy, Default)]
struct Holding {
    /// The point of the last record, and the most that it held there. `None` before the span.
    point: Option<usize>,
    most: Option<u64>,
    now: Option<u64>,
}

impl Holding {
    /// Takes the next record: `fill` hears what was held at a point, and from one point up to but not another. Of the last
    /// point nothing is said until it is over.
    fn see(
        &mut self,
        time: u64,
        held: Option<u64>,
        timeline: &Timeline,
        mut fill: impl FnMut(usize, usize, Option<u64>),
    ) {
        if time < timeline.from {
            self.now = held;
            return;
        }
        let (point, is_within) = match timeline.holds(time) {
            true => (timeline.at(time), true),
            // Seen after the span, it was there to its end.
            false => (timeline.len(), false),
        };
        match self.point {
            Some(last) if last >= point => self.most = self.most.max(held.filter(|_| is_within)),
            last => {
                let mut from = 0;
                if let Some(last) = last {
                    fill(last, last + 1, self.most);
                    from = last + 1;
                }
                fill(from, point, self.now);
                self.most = if is_within { self.now.max(held) } else { None };
                self.point = Some(point);
            }
        }
        self.now = held;
    }

    /// It was seen for the last time.
    fn end(self, timeline: &Timeline, mut fill: impl FnMut(usize, usize, Option<u64>)) {
        if let Some(last) = self.point.filter(|last| *last < timeline.len()) {
            fill(last, last + 1, self.most);
        }
    }
}

/// One of the largest.
struct Followed {
    key: Key,
    name: String,
    holding: Holding,
    points: Vec<Option<u64>>,
    timeline: Timeline,
}

impl Followed {
    fn new(key: Key, timeline: Timeline) -> Followed {
        Followed {
            key,
            name: String::new(),
            holding: Holding::default(),
            points: vec![None; timeline.len()],
            timeline,
        }
    }

    fn see(&mut self, record: &[u8]) {
        let (time, points) = (time_of(record), &mut self.points);
        self.holding
            .see(time, in_use(record), &self.timeline, |from, to, held| {
                points[from..to].fill(held);
            });
        if time <= self.timeline.to || self.name.is_empty() {
            self.name = name(record);
        }
    }

    fn series(mut self) -> ProcessSeries {
        let points = &mut self.points;
        self.holding
            .end(&self.timeline, |from, to, held| points[from..to].fill(held));
        ProcessSeries {
            pid: self.key.pid,
            start_time: self.key.start_time,
            name: self.name,
            peak: self.points.iter().flatten().copied().max().unwrap_or(0),
            points: self.points,
        }
    }
}

/// All the others. They are summed at many more times than are asked for, and the largest sum counts: hundreds of processes
/// that lived one after the other between two points did not hold what they would have held together.
struct Others {
    living: Map<Key, Holding>,
    /// At each time, by how much the sum, and the number of those who are part of it, differ from the time before.
    steps: Vec<(u64, u32)>,
    fine: Timeline,
    timeline: Timeline,
}

/// An hour in steps of 55 ms, in 1 MB.
const FINE: usize = 64 * 1024;

impl Others {
    fn new(timeline: Timeline) -> Others {
        let fine = Timeline::new(timeline.from, timeline.to, FINE);
        Others {
            living: Map::default(),
            steps: vec![(0, 0); fine.len() + 1],
            fine,
            timeline,
        }
    }

    fn see(&mut self, record: &[u8]) {
        let key = Key::of(record);
        if self.living.len() >= MOST_KNOWN && !self.living.contains_key(&key) {
            self.let_go_of_the_silent();
        }
        let (holding, steps) = (self.living.entry(key).or_default(), &mut self.steps);
        holding.see(time_of(record), in_use(record), &self.fine, |from, to, held| {
            add(steps, from, to, held);
        });
    }

    /// Those that were not heard of for longest are taken for gone.
    fn let_go_of_the_silent(&mut self) {
        let mut last: Vec<Option<usize>> = self.living.values().map(|holding| holding.point).collect();
        let middle = *last.select_nth_unstable(MOST_KNOWN / 2).1;
        let (steps, fine) = (&mut self.steps, &self.fine);
        self.living.retain(|_, holding| {
            let stays = holding.point > middle;
            if !stays {
                holding.end(fine, |from, to, held| add(steps, from, to, held));
            }
            stays
        });
    }

    fn series(mut self) -> Option<ProcessSeries> {
        for holding in std::mem::take(&mut self.living).into_values() {
            let steps = &mut self.steps;
            holding.end(&self.fine, |from, to, held| add(steps, from, to, held));
        }
        let mut points: Vec<Option<u64>> = vec![None; self.timeline.len()];
        let (mut sum, mut count) = (0u64, 0u32);
        for (time, (bytes, more)) in self.fine.times().zip(&self.steps) {
            (sum, count) = (sum.wrapping_add(*bytes), count.wrapping_add(*more));
            if count > 0 {
                let point = &mut points[self.timeline.at(time)];
                *point = (*point).max(Some(sum));
            }
        }
        Some(ProcessSeries {
            pid: 0,
            start_time: 0,
            name: "others".into(),
            peak: points.iter().flatten().copied().max()?,
            points,
        })
    }
}

/// What goes below zero comes back to where it was.
fn add(steps: &mut [(u64, u32)], from: usize, to: usize, held: Option<u64>) {
    let Some(held) = held.filter(|_| from < to) else {
        return;
    };
    for (at, bytes, count) in [(from, held, 1), (to, held.wrapping_neg(), u32::MAX)] {
        steps[at] = (steps[at].0.wrapping_add(bytes), steps[at].1.wrapping_add(count));
    }
}
