//! Metrics: recorded one by one, read back whole, by page, or as curves of a few points.

use std::collections::HashMap;

use rusqlite::{OptionalExtension, Row, Statement, params};
use serde::Serialize;

use crate::envelope::{Envelope, Extremes};
use crate::error;
use crate::run::Metric;
use crate::schema::BLOCK;
use crate::store::{Store, signed};

/// How one metric of a run went, in the order in which it was recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Curve {
    pub name: String,
    pub points: Vec<CurvePoint>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct CurvePoint {
    pub epoch: u32,
    pub step: u64,
    /// `None` is a value that was infinite or not a number.
    pub value: Option<f64>,
}

/// Up to so many metrics of a run are read one by one for its curves, which takes 20 ms; of more, the blocks are.
const ONE_BY_ONE: i64 = 64 * 1024;

impl Store {
    /// Records one value. NaN is kept as "not a number", not as zero.
    pub fn metric(&self, id: &str, metric: &Metric) -> error::Result<()> {
        self.execute(
            "INSERT INTO metrics (run, seq, epoch, step, name, value)
             VALUES (?1, (SELECT coalesce(max(seq), 0) + 1 FROM metrics WHERE run = ?1), ?2, ?3, ?4, ?5)",
            params![
                id,
                metric.epoch,
                signed(Some(metric.step)),
                metric.name,
                metric.value
            ],
        )?;
        Ok(())
    }

    /// The values in the order in which they were recorded.
    pub fn metrics(&self, id: &str) -> error::Result<Vec<Metric>> {
        let all = self.metrics_after(id, 0, usize::MAX)?;
        Ok(all.into_iter().map(|(_, metric)| metric).collect())
    }

    /// The number of the value that was recorded last, 0 where there is none.
    pub fn last_metric(&self, id: &str) -> error::Result<i64> {
        let read = || {
            self.db
                .prepare_cached("SELECT coalesce(max(seq), 0) FROM metrics WHERE run = ?1")?
                .query_row([id], |row| row.get(0))
        };
        read().map_err(|source| self.failed(source))
    }

    /// Values with their numbers, of those whose number is above `seq`, in the order in which they were recorded. Numbers
    /// begin with 1.
    pub fn metrics_after(&self, id: &str, seq: i64, limit: usize) -> error::Result<Vec<(i64, Metric)>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let read = || {
            self.db
                .prepare_cached(
                    "SELECT seq, epoch, step, name, value FROM metrics WHERE run = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3",
                )?
                .query_map(params![id, seq, limit], |row| {
                    let metric = Metric {
                        epoch: row.get(1)?,
                        step: row.get::<_, i64>(2)?.cast_unsigned(),
                        name: row.get(3)?,
                        // SQLite stores NaN as NULL.
                        value: row.get::<_, Option<f64>>(4)?.unwrap_or(f64::NAN),
                    };
                    Ok((row.get(0)?, metric))
                })?
                .collect::<rusqlite::Result<_>>()
        };
        read().map_err(|source| self.failed(source))
    }

    /// The metrics of a run as curves of at most so many points each. Of more values, the smallest and the largest of each
    /// stretch are kept, and that there was one that is no finite number; so are the first and the last. `points` is at least 8
    /// and at most 20,000.
    pub fn metric_curves(&self, id: &str, points: usize) -> error::Result<Vec<Curve>> {
        let read = || {
            let transaction = self.db.unchecked_transaction()?;
            let count: Option<i64> = transaction
                .prepare_cached("SELECT max(seq) FROM metrics WHERE run = ?1")?
                .query_row([id], |row| row.get(0))?;
            let mut curves = Curves::new(points);
            // Without blocks, a schema before the fourth, there is no other way.
            if self.schema < 4 || count.unwrap_or(0) <= ONE_BY_ONE {
                let mut all = transaction
                    .prepare_cached("SELECT seq, name, value FROM metrics WHERE run = ?1 ORDER BY seq")?;
                let mut rows = all.query([id])?;
                while let Some(row) = rows.next()? {
                    let seq = row.get(0)?;
                    curves.push(row, Extremes::of(seq, row.get(2)?))?;
                }
            } else {
                let mut blocks = transaction.prepare_cached(
                    "SELECT block, name, low, low_seq, high, high_seq, gap_seq FROM metric_blocks WHERE run = ?1
                     ORDER BY block, name",
                )?;
                let mut rows = blocks.query([id])?;
                while let Some(row) = rows.next()? {
                    let end = |value, seq| {
                        Ok::<_, rusqlite::Error>(row.get::<_, Option<f64>>(value)?.zip(row.get(seq)?))
                    };
                    let extremes = Extremes {
                        low: end(2, 3)?,
                        high: end(4, 5)?,
                        gap: row.get(6)?,
                    };
                    curves.push(row, extremes)?;
                }
                let mut ends = transaction.prepare_cached(ENDS)?;
                curves.find_ends(id, &mut ends)?;
            }
            let mut point = transaction
                .prepare_cached("SELECT epoch, step, value FROM metrics WHERE run = ?1 AND seq = ?2")?;
            curves.read(id, &mut point)
        };
        read().map_err(|source| self.failed(source))
    }
}

/// The first and the last metric of a name among these numbers.
const ENDS: &str =
    "SELECT min(seq), max(seq) FROM metrics WHERE run = ?1 AND seq > ?2 AND seq <= ?3 AND name = ?4";

/// Curves as they are found.
struct Curves {
    points: usize,
    numbers: HashMap<String, usize>,
    found: Vec<Found>,
}

struct Found {
    name: String,
    envelope: Envelope,
    /// Of blocks, or of metrics.
    first: i64,
    last: i64,
}

impl Curves {
    fn new(points: usize) -> Curves {
        Curves {
            points,
            numbers: HashMap::new(),
            found: Vec::new(),
        }
    }

    /// Takes a row that begins with a number and a name.
    fn push(&mut self, row: &Row<'_>, extremes: Extremes) -> rusqlite::Result<()> {
        let number = row.get(0)?;
        let name = row.get_ref(1)?.as_str()?;
        let at = match self.numbers.get(name) {
            Some(at) => *at,
            None => {
                let at = self.found.len();
                self.numbers.insert(name.into(), at);
                self.found.push(Found {
                    name: name.into(),
                    envelope: Envelope::new(self.points),
                    first: number,
                    last: number,
                });
                at
            }
        };
        self.found[at].envelope.push(extremes);
        self.found[at].last = number;
        Ok(())
    }

    /// A block tells its smallest and largest, but not what it begins and ends with.
    fn find_ends(&mut self, run: &str, ends: &mut Statement<'_>) -> rusqlite::Result<()> {
        for found in &mut self.found {
            let mut of_block = |block: i64| {
                let range = params![run, block * BLOCK, (block + 1) * BLOCK, found.name];
                ends.query_row(range, |row| {
                    Ok((row.get::<_, Option<i64>>(0)?, row.get::<_, Option<i64>>(1)?))
                })
            };
            let (first, last) = (of_block(found.first)?.0, of_block(found.last)?.1);
            found.envelope.set_ends(first, last);
        }
        Ok(())
    }

    /// In the order in which their names came up.
    fn read(mut self, run: &str, point: &mut Statement<'_>) -> rusqlite::Result<Vec<Curve>> {
        self.found.sort_by_key(|found| found.envelope.first());
        let mut read = |seq: i64| {
            point
                .query_row(params![run, seq], |row| {
                    Ok(CurvePoint {
                        epoch: row.get(0)?,
                        step: row.get::<_, i64>(1)?.cast_unsigned(),
                        value: row.get::<_, Option<f64>>(2)?.filter(|value| value.is_finite()),
                    })
                })
                .optional()
        };
        self.found
            .into_iter()
            .map(|found| {
                let points = found.envelope.numbers().into_iter().map(&mut read);
                Ok(Curve {
                    name: found.name,
                    points: points
                        .filter_map(Result::transpose)
                        .collect::<rusqlite::Result<_>>()?,
                })
            })
            .collect()
    }
}
