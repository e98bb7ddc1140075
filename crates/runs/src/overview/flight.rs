//! The memory of a run over a span of time, by real records.

use std::path::Path;

use serde::Serialize;

use super::{MOST_POINTS, Span, Timeline};
use crate::error::Result;
use crate::flight::{FlightRecord, in_use};
use crate::records::FlightHeader;
use crate::records::scan::{RecordFile, time_of};

/// A span of a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// `None` when it is damaged.
    pub header: Option<FlightHeader>,
    /// In the order of their times.
    pub records: Vec<FlightRecord>,
    /// How many there are in the span.
    pub n_records: u64,
    /// Records of the span that were torn, misplaced, or found not to match their checksum: that of one that is not shown is
    /// not looked at.
    pub damaged: u64,
    /// Of the whole recording.
    pub first_ms: Option<u64>,
    pub last_ms: Option<u64>,
}

/// The records of a span, at most `points` (and at least 4): of each of many equal parts of its time the one with the most
/// memory in use and the one with the least ([`FlightRecord::in_use`]), and always the first and the last.
pub fn flight_overview(path: &Path, span: Span, points: usize) -> Result<Overview> {
    let file = RecordFile::<FlightRecord>::open(path)?;
    let ends = file.ends()?;
    if file.header.is_none() && ends.is_none() {
        return Err(file.not_a_recording());
    }
    let mut overview = Overview {
        header: file.header.clone(),
        records: Vec::new(),
        n_records: 0,
        damaged: u64::from(file.is_torn),
        first_ms: ends.map(|(first, _)| first),
        last_ms: ends.map(|(_, last)| last),
    };
    let Some((first, last)) = ends else {
        overview.damaged += file.count;
        return Ok(overview);
    };
    let (from, to) = (
        span.from_ms.unwrap_or(first).max(first),
        span.to_ms.unwrap_or(last).min(last),
    );
    if from > to {
        return Ok(overview);
    }
    let points = points.clamp(4, MOST_POINTS);
    let range = file.between(span.from_ms, span.to_ms)?;
    let all = range.end - range.start <= points as u64;
    // All of them, or two of each part beside the first and the last.
    let parts = if all { points } else { (points - 2) / 2 };
    let timeline = Timeline::new(from, to, parts);
    let torn = overview.damaged;
    // Checksums are looked at of all only where one of those to be shown is wrong.
    for checked in [all, true] {
        let mut chosen = Chosen::new(&timeline, all);
        let mut damaged = torn;
        damaged += file.scan(range.clone(), |at, record| {
            let time = time_of(record);
            if checked && !file.is_intact(record) {
                damaged += 1;
            } else if timeline.holds(time) {
                chosen.see(at, timeline.at(time), in_use(record));
            }
        })?;
        (overview.n_records, overview.damaged) = (chosen.n_records, damaged);
        let places = chosen.places();
        let records: Vec<Option<FlightRecord>> =
            places.iter().map(|at| file.get(*at)).collect::<Result<_>>()?;
        let whole = records.iter().all(Option::is_some);
        overview.records = records.into_iter().flatten().collect();
        if whole {
            break;
        }
    }
    overview.records.sort_by_key(|record| record.time_ms);
    Ok(overview)
}

/// The places of the records to show.
struct Chosen {
    n_records: u64,
    first: Option<u64>,
    last: Option<u64>,
    /// Of each part, the most and the least with their places.
    parts: Vec<Option<[(u64, u64); 2]>>,
    all: Option<Vec<u64>>,
}

impl Chosen {
    fn new(timeline: &Timeline, all: bool) -> Chosen {
        Chosen {
            n_records: 0,
            first: None,
            last: None,
            parts: vec![None; timeline.len()],
            all: all.then(Vec::new),
        }
    }

    fn see(&mut self, at: u64, part: usize, in_use: Option<u64>) {
        self.n_records += 1;
        self.first = self.first.or(Some(at));
        self.last = Some(at);
        if let Some(all) = &mut self.all {
            all.push(at);
            return;
        }
        // What tells nothing of memory is shown where nothing else is there.
        let (most, least) = (
            in_use.map_or(0, |bytes| bytes.saturating_add(1)),
            in_use.unwrap_or(u64::MAX),
        );
        match &mut self.parts[part] {
            Some([top, bottom]) => {
                if most > top.0 {
                    *top = (most, at);
                }
                if least < bottom.0 {
                    *bottom = (least, at);
                }
            }
            none => *none = Some([(most, at), (least, at)]),
        }
    }

    fn places(self) -> Vec<u64> {
        let of_parts = self.parts.into_iter().flatten().flatten().map(|(_, at)| at);
        let mut places: Vec<u64> = of_parts.chain(self.first).chain(self.last).collect();
        places.extend(self.all.into_iter().flatten());
        places.sort_unstable();
        places.dedup();
        places
    }
}
