//! Who held the budget over a span of time.

use std::path::Path;

use serde::Serialize;

use super::{Span, Timeline};
use crate::error::Result;
use crate::holders::{Told, read_holders};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct HolderOverview {
    /// In milliseconds since the start of the recording.
    pub times_ms: Vec<u64>,
    /// What each one held at these times, in the order in which they came; only those that held something.
    pub holders: Vec<(String, Vec<u64>)>,
}

/// So many are told apart; the ledger of a job has about ten.
const MOST_HOLDERS: usize = 256;
const MOST_POINTS: usize = 4096;

/// Who held how much, at so many times of the span: from each to the next, as it was when all together held the most. What
/// was held last goes on to the end of the span.
pub fn holders_overview(path: &Path, span: Span, points: usize) -> Result<HolderOverview> {
    let mut ends: Option<(u64, u64)> = None;
    if span.from_ms.is_none() || span.to_ms.is_none() {
        read_holders(path, |told| {
            if let Told::Snapshot { time_ms, .. } = told {
                ends = Some((ends.map_or(time_ms, |(first, _)| first), time_ms));
            }
        })?;
    }
    let (first, last) = ends.unwrap_or_default();
    let (from, to) = (span.from_ms.unwrap_or(first), span.to_ms.unwrap_or(last));
    if from > to {
        return Ok(HolderOverview::default());
    }
    let mut drawn = Drawn {
        timeline: Timeline::new(from, to, points.clamp(2, MOST_POINTS)),
        names: Vec::new(),
        rows: Vec::new(),
        now: Vec::new(),
    };
    read_holders(path, |told| match told {
        Told::Name(name) if drawn.names.len() < MOST_HOLDERS - 1 => drawn.names.push(name),
        Told::Name(_) => drawn.names.resize(MOST_HOLDERS, "others".into()),
        Told::Snapshot { time_ms, used } => drawn.see(time_ms, &used),
    })?;
    Ok(drawn.overview())
}

struct Drawn {
    timeline: Timeline,
    names: Vec<String>,
    /// What stands at the times so far, the last of which may still change.
    rows: Vec<Vec<u64>>,
    now: Vec<u64>,
}

impl Drawn {
    fn see(&mut self, time_ms: u64, used: &[(usize, u64)]) {
        let mut held = vec![0u64; self.names.len()];
        for (holder, bytes) in used {
            let at = (*holder).min(MOST_HOLDERS - 1);
            held[at] = held[at].saturating_add(*bytes);
        }
        if self.timeline.holds(time_ms) {
            let at = self.timeline.at(time_ms);
            self.go_on_to(at);
            let sum = |row: &[u64]| row.iter().fold(0u64, |sum, bytes| sum.saturating_add(*bytes));
            // Time never goes back in a recording of ours.
            if let Some(row) = self.rows.get_mut(at)
                && sum(&held) > sum(row)
            {
                row.clone_from(&held);
            }
        } else if time_ms > self.timeline.to {
            return;
        }
        self.now = held;
    }

    /// Up to this time, nothing has changed.
    fn go_on_to(&mut self, at: usize) {
        while self.rows.len() <= at {
            self.rows.push(self.now.clone());
        }
    }

    fn overview(mut self) -> HolderOverview {
        self.go_on_to(self.timeline.len() - 1);
        let rows = &self.rows;
        let of = |holder: usize| -> Vec<u64> {
            rows.iter()
                .map(|row| row.get(holder).copied().unwrap_or(0))
                .collect()
        };
        let holders = self
            .names
            .into_iter()
            .enumerate()
            .map(|(holder, name)| (name, of(holder)));
        HolderOverview {
            times_ms: self.timeline.times().collect(),
            holders: holders
                .filter(|(_, held)| held.iter().any(|bytes| *bytes > 0))
                .collect(),
        }
    }
}
