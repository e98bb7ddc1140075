//! Finding out what the target is: a number, or one of several values.

use std::ops::ControlFlow;

use tidegate_memory::Ledger;

use crate::chunk::{Chunk, Read, Wanted};
use crate::filter::{Condition, Held, Ranked, Ranking, Sample, SampleSize};
use crate::pass::row_key;
use crate::profile::Profile;
use crate::source::{Kind, Place};
use crate::target::{Label, MOST_CLASSES, Target, Task};
use crate::{BadRows, Error, Fault, Number, Result, Table, TableOptions, parse_number};

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
        let (mut numbers, mut texts) = (sample.numbers, sample.text);
        // A condition may leave other values than the sample shows.
        let filtered = !self.filter.is_none();
        if filtered || (values.len() < 2 && !profile.complete) {
            let seen = self.scan_target(3, ledger)?;
            if filtered && seen.rows == 0 {
                return Err(self.no_row_used());
            }
            (numbers, texts) = (seen.numbers, seen.texts);
            values = seen.values();
        } else if values.len() == 2 && !profile.complete && task.is_none() && are_words(&values) {
            return self.scan_beyond(&values, column, ledger);
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
        let mostly_numbers = numbers > texts * 9;
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
                // That row may be left out; if it is not, the first pass over the rows tells.
                Some((line, value)) if self.reading.bad_rows == BadRows::Fail && !filtered => {
                    Err(Error::BadRow {
                        path: path(),
                        line: *line,
                        fault: Box::new(Fault::TargetNotANumber {
                            column,
                            value: value.clone(),
                        }),
                    })
                }
                _ if numbers == 0 => Err(Error::TargetNotANumber {
                    path: path(),
                    column,
                    values,
                }),
                _ => Ok(Target::number(sample)),
            },
        }
    }

    fn no_row_used(&self) -> Error {
        let condition = self.filter.condition.as_ref().map(Condition::text);
        let (path, sampled) = (self.source.path().into(), self.filter.sample.is_some());
        let which = match (condition, sampled) {
            (Some(text), false) => format!("meets --where {text:?}"),
            (Some(text), true) => format!("of the sample meets --where {text:?}"),
            (None, _) => "is in the sample".into(),
        };
        Error::NoRowUsed { path, which }
    }

    /// All values of a target of classes: a model must know them before the first row.
    fn scan_classes(&self, column: String, ledger: &Ledger) -> Result<Target> {
        let seen = self.scan_target(MOST_CLASSES + 1, ledger)?;
        self.classes(seen, column)
    }

    /// Decides whether two words, which are all that the sample shows, are two of more classes. A value that next to no
    /// row has is none: it is a fault of its row, and told as such.
    fn scan_beyond(&self, two: &[String], column: String, ledger: &Ledger) -> Result<Target> {
        let seen = self.scan_target(MOST_CLASSES + 1, ledger)?;
        let two_labels: Vec<Label> = two.iter().map(|value| Label::new(value)).collect();
        let of_two = seen
            .labels
            .iter()
            .filter(|(label, _)| two_labels.iter().any(|known| known.is_same(label)));
        let others = seen.numbers + seen.texts - of_two.map(|(_, rows)| rows).sum::<u64>();
        match others * STRAY < seen.rows {
            true => Ok(Target::classes(two)),
            false => self.classes(seen, column),
        }
    }

    fn classes(&self, seen: Seen, column: String) -> Result<Target> {
        let values = seen.values();
        match values.len() > MOST_CLASSES {
            true => Err(Error::TooManyClasses {
                path: self.source.path().into(),
                column,
                most: MOST_CLASSES,
            }),
            false => Ok(Target::classes(&values)),
        }
    }

    /// The distinct values of the target in the rows that are used, up to so many.
    fn scan_target(&self, most: usize, ledger: &Ledger) -> Result<Seen> {
        let mut reading = self.reading.clone();
        reading.wanted = vec![Wanted {
            name: self.encoders.target_column.clone(),
            read: Read::Text,
        }];
        self.filter.add_columns(&mut reading.wanted);
        let mut all = Seen::default();
        self.chunks(
            &reading,
            1,
            0,
            ledger,
            |place, chunk| {
                let mut seen = Seen::default();
                let key = |line| row_key(place, line);
                self.filter
                    .select(chunk, key, |row| seen.look(chunk.text(0, row), most));
                Ok(seen)
            },
            |_, seen, _| {
                all.add(seen, most);
                Ok(match all.labels.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                })
            },
        )?;
        Ok(all)
    }

    /// Fits the condition to what the columns hold, so that every pass selects the same rows.
    fn bind_condition(&mut self) -> Result<()> {
        let held = |name: &str| {
            let declared = self.source.columns().iter().find(|column| column.name == name);
            let judged = self.columns.iter().find(|column| column.name == name);
            Held {
                kind: declared.map(|column| column.kind).unwrap_or_default(),
                read: judged.map(|column| column.judged.read),
                used: judged.is_some_and(|column| column.judged.role.is_used()),
            }
        };
        let bound = self
            .filter
            .condition
            .as_ref()
            .map(|condition| condition.bound(held));
        self.filter.condition = bound.transpose()?;
        Ok(())
    }

    /// The sample that was asked for, of the rows that meet the condition, which is fitted to the table first. A
    /// number of rows is found by looking at all of them, for exactly so many are to be used.
    pub(crate) fn resolve_sample(
        &mut self,
        options: &TableOptions,
        ledger: &Ledger,
    ) -> Result<Option<Sample>> {
        self.bind_condition()?;
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

/// One row in so many may have a value beside two words before that value is a class.
const STRAY: u64 = 1000;

/// What the target holds in rows that were looked at.
#[derive(Default)]
struct Seen {
    /// Each value with its rows.
    labels: Vec<(Label, u64)>,
    rows: u64,
    numbers: u64,
    texts: u64,
}

impl Seen {
    fn look(&mut self, text: Option<&[u8]>, most: usize) {
        self.rows += 1;
        let Some(text) = text else { return };
        match parse_number(text) {
            Number::Text => self.texts += 1,
            _ => self.numbers += 1,
        }
        let is_it = |(label, _): &(Label, u64)| label.text.as_bytes() == text;
        match self.labels.iter().position(is_it) {
            Some(at) => self.labels[at].1 += 1,
            None if self.labels.len() < most => {
                self.labels.push((Label::new(&String::from_utf8_lossy(text)), 1));
            }
            None => {}
        }
    }

    fn add(&mut self, later: Seen, most: usize) {
        self.rows += later.rows;
        self.numbers += later.numbers;
        self.texts += later.texts;
        for (label, more) in later.labels {
            let is_it = |(known, _): &(Label, u64)| known.is_same(&label);
            match self.labels.iter().position(is_it) {
                Some(at) => self.labels[at].1 += more,
                None if self.labels.len() < most => self.labels.push((label, more)),
                None => {}
            }
        }
    }

    fn values(self) -> Vec<String> {
        self.labels.into_iter().map(|(label, _)| label.text).collect()
    }
}

/// Whether one of the values is no number.
fn are_words(values: &[String]) -> bool {
    let is_number = |value: &String| matches!(parse_number(value.as_bytes()), Number::Value(_));
    !values.iter().all(is_number)
}
