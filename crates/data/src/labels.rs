//! Finding out what the target is: a number, or one of several values.

use std::ops::ControlFlow;

use tidegate_memory::Ledger;

use crate::chunk::{Chunk, Read, Wanted};
use crate::filter::{Ranked, Ranking, Sample, SampleSize};
use crate::pass::row_key;
use crate::profile::Profile;
use crate::source::{Kind, Place};
use crate::target::{Label, MOST_CLASSES, Target, Task};
use crate::{BadRows, Error, Fault, Result, Table, TableOptions};

impl Table {
    /// Decides between a number and one of several values, by the sample and, where that does not show them
    /// all, by the source.
    pub(crate) fn choose_target(
        &self,
        profile: &Profile,
        task: Option<Task>,
        ledger: &Ledger,
    ) -> Result<Target> {
        let path = || self.source.path().to_path_buf();
        let column = self.encoders.target_column.clone();
        let sample = profile.columns.iter().find(|look| look.name == column);
        let Some(sample) = sample.filter(|look| look.kind != Kind::Unsupported) else {
            return Err(Error::TargetMissing { path: path(), column });
        };
        let mut values = sample.distinct.clone();
        // A condition may leave other values than the sample shows.
        if !self.filter.is_none() || (values.len() < 2 && !profile.complete) {
            values = self.scan_target(3, ledger)?;
        }
        match values.len() {
            0 => return Err(Error::TargetMissing { path: path(), column }),
            1 => {
                return Err(Error::TargetConstant {
                    path: path(),
                    column,
                    value: values.swap_remove(0),
                });
            }
            _ => {}
        }
        let mostly_numbers = sample.numbers > sample.text * 9;
        match task {
            Some(Task::Binary) if values.len() > 2 => Err(Error::TargetNotBinary {
                path: path(),
                column,
                values,
            }),
            Some(Task::Binary) => Ok(Target::classes(&values)),
            None if values.len() == 2 => Ok(Target::classes(&values)),
            Some(Task::Multiclass) => self.scan_classes(column, ledger),
            None if !mostly_numbers => self.scan_classes(column, ledger),
            None | Some(Task::Regression) => match &sample.first_text {
                Some((line, value)) if self.reading.bad_rows == BadRows::Fail => Err(Error::BadRow {
                    path: path(),
                    line: *line,
                    fault: Box::new(Fault::TargetNotANumber {
                        column,
                        value: value.clone(),
                    }),
                }),
                _ if sample.numbers == 0 => Err(Error::TargetNotANumber {
                    path: path(),
                    column,
                    values,
                }),
                _ => Ok(Target::number(sample)),
            },
        }
    }

    /// All values of a target of classes: a model must know them before the first row.
    fn scan_classes(&self, column: String, ledger: &Ledger) -> Result<Target> {
        let values = self.scan_target(MOST_CLASSES + 1, ledger)?;
        match values.len() > MOST_CLASSES {
            true => Err(Error::TooManyClasses {
                path: self.source.path().into(),
                column,
                most: MOST_CLASSES,
            }),
            false => Ok(Target::classes(&values)),
        }
    }

    /// The distinct values of the target, up to so many.
    fn scan_target(&self, most: usize, ledger: &Ledger) -> Result<Vec<String>> {
        let mut reading = self.reading.clone();
        reading.wanted = vec![Wanted {
            name: self.encoders.target_column.clone(),
            read: Read::Text,
        }];
        self.filter.add_columns(&mut reading.wanted);
        let mut values: Vec<Label> = Vec::new();
        self.chunks(
            &reading,
            1,
            0,
            ledger,
            |place, chunk| {
                let mut seen: Vec<Label> = Vec::new();
                self.filter.select(
                    chunk,
                    |line| row_key(place, line),
                    |row| {
                        let Some(text) = chunk.text(0, row) else { return };
                        if seen.len() < most && !seen.iter().any(|label| label.text.as_bytes() == text) {
                            seen.push(Label::new(&String::from_utf8_lossy(text)));
                        }
                    },
                );
                Ok(seen)
            },
            |_, seen, _| {
                for label in seen {
                    if values.len() < most && !values.iter().any(|known| known.is_same(&label)) {
                        values.push(label);
                    }
                }
                Ok(match values.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            },
        )?;
        Ok(values.into_iter().map(|label| label.text).collect())
    }

    /// The sample that was asked for. A number of rows is found by looking at all of them, for exactly so many are
    /// to be used.
    pub(crate) fn resolve_sample(&self, options: &TableOptions, ledger: &Ledger) -> Result<Option<Sample>> {
        let rows = match options.sample {
            None => return Ok(None),
            Some(SampleSize::Share(share)) => return Ok(Some(Sample::share(share, options.seed))),
            Some(SampleSize::Rows(rows)) => rows,
        };
        let mut reading = self.reading.clone();
        reading.wanted.clear();
        self.filter.add_columns(&mut reading.wanted);
        let _held = ledger.holder("sample").try_grant(2 * Ranking::BYTES)?;
        let mut ranking = Ranking::new(rows, options.seed);
        loop {
            let look = |place: &Place, chunk: &Chunk| {
                let mut keys = Vec::new();
                let key = |line| row_key(place, line);
                self.filter
                    .select(chunk, key, |row| keys.push(key(chunk.lines[row])));
                Ok(keys)
            };
            self.chunks(&reading, 1, 0, ledger, look, |_, keys: Vec<u64>, _| {
                keys.into_iter().for_each(|key| ranking.look(key));
                Ok(ControlFlow::Continue(()))
            })?;
            match ranking.finish() {
                Ranked::Sample(sample) => return Ok(Some(sample)),
                Ranked::Again(again) => ranking = again,
            }
        }
    }
}
