//! What one process grew by, line by line: an account of what each look added or took away.
//!
//! From outside only the size is seen, and now and then the line that runs. So growth between two looks goes to the lines of
//! both, and what is given back is taken off whoever most likely had it. In a loop where much comes and goes this says
//! little of the little that stays; there the line is looked for that grew by just as much as stayed, all the time.

use std::collections::HashMap;

use tidegate_runs::StackSample;

use super::lines::{Code, Spot, Standing, is_deeper};
use super::samples::Point;
use super::shape::{floors, kept};

/// Growth on one line without growth on another in between.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Run {
    pub(super) from_ms: u64,
    pub(super) to_ms: u64,
    /// A place in the stacks' frames.
    pub(super) place: u32,
    pub(super) bytes: f64,
    /// The process ran there. One that waited must have grown elsewhere, between two looks.
    active: bool,
}

impl Run {
    /// As if it had grown evenly.
    pub(super) fn bytes_since(&self, time_ms: u64) -> f64 {
        let length = self.to_ms.saturating_sub(self.from_ms).max(1) as f64;
        let since = self.to_ms.saturating_sub(time_ms.max(self.from_ms)) as f64;
        self.bytes * (since / length).min(1.0)
    }
}

/// What one process grew by, in order.
#[derive(Debug, Default)]
pub(super) struct Account {
    /// What it still holds.
    pub(super) runs: Vec<Run>,
    /// By the line and the calls from there inwards, with what it gave back.
    pub(super) within: HashMap<(u32, Vec<u32>), f64>,
}

/// What happened between two looks.
struct Change {
    from_ms: u64,
    to_ms: u64,
    /// Below zero where it gave back.
    bytes: f64,
    /// The lines that it may have been, and whether they ran.
    spots: Vec<(Spot, bool)>,
}

/// What a process held more than at its first look, by the lines that it grew on; what it gave back is taken off.
pub(super) fn account(code: &Code<'_>, samples: &[&StackSample], until_ms: u64) -> Account {
    let mut changes = Vec::new();
    let mut points = Vec::new();
    let mut looks: HashMap<u32, f64> = HashMap::new();
    let mut before: Option<(u64, f64, Standing<'_>)> = None;
    for sample in samples.iter().take_while(|sample| sample.time_ms <= until_ms) {
        let (Some(held), Some(standing)) = (sample.held, code.standing(sample)) else {
            continue;
        };
        let held = held as f64;
        points.push(Point {
            seconds: sample.time_ms as f64 / 1e3,
            bytes: held,
        });
        for spot in &standing.spots {
            *looks.entry(spot.place).or_default() += 1.0;
        }
        if let Some((from_ms, was_held, earlier)) = &before {
            changes.push(Change {
                from_ms: *from_ms,
                to_ms: sample.time_ms,
                bytes: held - was_held,
                spots: candidates(earlier, &standing, held > *was_held),
            });
        }
        before = Some((sample.time_ms, held, standing));
    }
    let rates = rates(&changes, &looks);
    let mut account = Account::default();
    let mut grown: Vec<Run> = Vec::new();
    for change in &changes {
        for (spot, active, bytes) in split(change, &rates) {
            *account
                .within
                .entry((spot.place, spot.within.clone()))
                .or_default() += bytes;
            add(&mut account.runs, change, spot.place, bytes, active);
            add(&mut grown, change, spot.place, bytes, active);
        }
        if change.bytes < 0.0 {
            take(&mut account.runs, change);
        }
    }
    place_waiting(&mut account.runs);
    place_waiting(&mut grown);
    if let Some(place) = keeper(&points, &grown) {
        give(&mut account.runs, grown, place);
    }
    account
}

/// Growth is of the line of both looks; of the later one if that is deeper in the same call; of the one that ran if the
/// other waited; else of both.
fn candidates(earlier: &Standing<'_>, later: &Standing<'_>, grew: bool) -> Vec<(Spot, bool)> {
    let sides: &[&Standing<'_>] = match (earlier.active, later.active) {
        _ if !grew => &[earlier, later],
        (true, false) => &[earlier],
        (false, true) => &[later],
        _ if earlier.spots == later.spots || is_deeper(earlier, later) => &[later],
        _ => &[earlier, later],
    };
    let spots = sides
        .iter()
        .flat_map(|side| side.spots.iter().map(|spot| (spot.clone(), side.active)));
    spots.collect()
}

/// The growth of a change in parts, by how fast the lines that it may be of are known to grow.
fn split<'a>(
    change: &'a Change,
    rates: &'a HashMap<u32, f64>,
) -> impl Iterator<Item = (&'a Spot, bool, f64)> {
    let rate = |spot: &Spot| rates.get(&spot.place).copied().unwrap_or(0.0) + 1e-9;
    let all: f64 = change.spots.iter().map(|(spot, _)| rate(spot)).sum();
    let spots = change.spots.iter().filter(|_| change.bytes > 0.0);
    spots.map(move |(spot, active)| (spot, *active, change.bytes * rate(spot) / all))
}

/// How much each line grows by from look to look. Where two lines are possible each has its part by its rate, which
/// changes the rates: a few rounds settle that (expectation and maximization).
fn rates(changes: &[Change], looks: &HashMap<u32, f64>) -> HashMap<u32, f64> {
    const ROUNDS: usize = 6;
    /// Of a line that was seen so often its own rate counts as much as that of all.
    const UNSURE: f64 = 2.0;
    let mut rates: HashMap<u32, f64> = looks.keys().map(|&place| (place, 1.0)).collect();
    for _ in 0..ROUNDS {
        let mut grown: HashMap<u32, f64> = HashMap::new();
        for change in changes {
            for (spot, _, bytes) in split(change, &rates) {
                *grown.entry(spot.place).or_default() += bytes;
            }
        }
        let usual = grown.values().sum::<f64>() / looks.values().sum::<f64>();
        for (place, rate) in &mut rates {
            let grown = grown.get(place).copied().unwrap_or(0.0);
            *rate = (grown + usual * UNSURE) / (looks[place] + UNSURE);
        }
    }
    rates
}

fn add(runs: &mut Vec<Run>, change: &Change, place: u32, bytes: f64, active: bool) {
    match runs.last_mut() {
        Some(last) if last.place == place && last.active == active => {
            last.bytes += bytes;
            last.to_ms = change.to_ms;
        }
        _ => runs.push(Run {
            from_ms: change.from_ms,
            to_ms: change.to_ms,
            place,
            bytes,
            active,
        }),
    }
}

/// Takes off what was given back: from growth of about that size, for what is freed at once was mostly had at once; else
/// from that of the same line; else from the last that was as large; else from the last of all.
fn take(runs: &mut Vec<Run>, change: &Change) {
    /// How far back growth is looked for.
    const REMEMBERED: usize = 256;
    let mut bytes = -change.bytes;
    while bytes > 0.0 && !runs.is_empty() {
        let newest_first = || (runs.len().saturating_sub(REMEMBERED)..runs.len()).rev();
        let is_like = |run: &Run| (0.8..=1.25).contains(&(run.bytes / bytes));
        let is_here = |run: &Run| change.spots.iter().any(|(spot, _)| spot.place == run.place);
        let place = newest_first()
            .find(|&place| is_like(&runs[place]))
            .or_else(|| newest_first().find(|&place| is_here(&runs[place])))
            .or_else(|| newest_first().find(|&place| runs[place].bytes >= bytes))
            .unwrap_or(runs.len() - 1);
        let part = bytes.min(runs[place].bytes);
        bytes -= part;
        runs[place].bytes -= part;
        if runs[place].bytes < 1.0 {
            runs.remove(place);
        }
    }
}

/// Growth of a process that only waited when it was looked at is given to the lines that it was seen to grow on meanwhile:
/// a loop that mostly sleeps grows in between. Where there are none it stays where the process waited, as one does for
/// threads that are not Python's.
fn place_waiting(runs: &mut Vec<Run>) {
    let waiting = |run: &&Run| !run.active;
    let from_ms = runs.iter().filter(waiting).map(|run| run.from_ms).min();
    let to_ms = runs.iter().filter(waiting).map(|run| run.to_ms).max();
    let (Some(from_ms), Some(to_ms)) = (from_ms, to_ms) else {
        return;
    };
    let is_meanwhile = |run: &Run| run.active && run.from_ms >= from_ms && run.to_ms <= to_ms;
    let waited: f64 = runs.iter().filter(waiting).map(|run| run.bytes).sum();
    let seen: f64 = runs
        .iter()
        .filter(|run| is_meanwhile(run))
        .map(|run| run.bytes)
        .sum();
    if seen < waited * 0.01 {
        return;
    }
    for run in runs.iter_mut().filter(|run| is_meanwhile(run)) {
        run.bytes *= 1.0 + waited / seen;
    }
    runs.retain(|run| run.active);
}

/// The line that grew by what stayed, in each part of the time, where much more came and went. All others then gave back
/// what they had.
fn keeper(points: &[Point], grown: &[Run]) -> Option<u32> {
    const WINDOWS: usize = 9;
    const LEAST_POINTS: usize = 60;
    if points.len() < LEAST_POINTS {
        return None;
    }
    let kept = kept(&floors(points, WINDOWS));
    let stayed: Vec<f64> = kept.windows(2).map(|two| two[1] - two[0]).collect();
    let all: f64 = stayed.iter().sum();
    let gross: f64 = grown.iter().map(|run| run.bytes).sum();
    if all <= 0.0 || gross < all * 1.5 {
        return None;
    }
    let (start, end) = (points[0].seconds, points[points.len() - 1].seconds);
    let mut by_place: HashMap<u32, Vec<f64>> = HashMap::new();
    for run in grown {
        let middle = (run.from_ms + run.to_ms) as f64 / 2e3;
        // Floors stand for the middles of their windows, growth lies between them.
        let window = (middle - start) / (end - start) * WINDOWS as f64 - 0.5;
        let window = (window.max(0.0) as usize).min(WINDOWS - 2);
        by_place
            .entry(run.place)
            .or_insert_with(|| vec![0.0; WINDOWS - 1])[window] += run.bytes;
    }
    let mut off: Vec<(f64, u32)> = by_place
        .iter()
        .map(|(place, grown)| {
            let off = grown
                .iter()
                .zip(&stayed)
                .map(|(grown, stayed)| (grown - stayed).abs());
            (off.sum::<f64>() / all, *place)
        })
        .collect();
    off.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (least, place) = *off.first()?;
    let is_alone = off.get(1).is_none_or(|(next, _)| *next >= least + 0.1);
    (least <= 0.7 && is_alone).then_some(place)
}

/// Gives what stayed to one line, as it grew.
fn give(runs: &mut Vec<Run>, grown: Vec<Run>, place: u32) {
    let held: f64 = runs.iter().map(|run| run.bytes).sum();
    let of_place: f64 = grown
        .iter()
        .filter(|run| run.place == place)
        .map(|run| run.bytes)
        .sum();
    let given = of_place.min(held);
    let others: f64 = runs
        .iter()
        .filter(|run| run.place != place)
        .map(|run| run.bytes)
        .sum();
    runs.retain(|run| run.place != place);
    for run in runs.iter_mut() {
        run.bytes *= (held - given) / others.max(1.0);
    }
    runs.extend(grown.into_iter().filter(|run| run.place == place).map(|run| Run {
        bytes: run.bytes * given / of_place,
        ..run
    }));
}
