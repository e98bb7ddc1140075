//! Images that a table lists, each row with the path of one and its labels.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tidegate_memory::{Grant, Holder, Ledger};

use super::find::is_image_name;
use super::list::List;
use super::problem::ImageProblem;
use crate::arrays::labels::{LabelOptions, LabelTask, Labelled, Labels, MOST_CLASSES, Scale, Values};
use crate::chunk::{Chunk, Read, Wanted};
use crate::sketch::Moments;
use crate::source::Reading;
use crate::target::{Label, Target};
use crate::{BadRows, Error, Number, Position, Result, Source, SourceOptions, parse_number};

/// What a label takes while lists of them grow.
const LABEL_BYTES: u64 = 3 * 4;
/// What a text takes that is met for the first time, beside its letters twice.
const TEXT_BYTES: u64 = 160;
/// Whole numbers of more values than this are numbers, not classes.
const MOST_NUMBERED: usize = 100;
/// Between the labels of an image that has several.
const BETWEEN: [char; 2] = ['|', ';'];

/// What to read of a table.
pub(crate) struct Asked<'a> {
    /// The column of paths, where it is not to be found by its values.
    pub images: Option<&'a str>,
    /// The column to predict, or several with commas between.
    pub target: &'a str,
    pub labels: &'a LabelOptions,
    pub reading: &'a SourceOptions,
}

/// What a table lists.
pub(crate) struct Listed {
    pub list: List,
    pub labelled: Labelled,
    /// Rows without a path or a label, which are left out.
    pub incomplete: u64,
}

pub(crate) fn read(path: &Path, asked: &Asked, ledger: &Ledger) -> Result<Listed> {
    let targets: Vec<&str> = asked
        .target
        .split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .collect();
    let source = Source::open(&[path.to_path_buf()], asked.reading, &targets, ledger)?;
    let columns: Vec<String> = source
        .columns()
        .iter()
        .map(|column| column.name.clone())
        .collect();
    let images = match asked.images {
        Some(name) => known(path, name, &columns)?,
        None => find_paths(path, &source, &columns, ledger)?,
    };
    let targets = match targets.as_slice() {
        [] => match columns
            .iter()
            .filter(|name| **name != images)
            .collect::<Vec<_>>()
            .as_slice()
        {
            [only] => vec![(*only).clone()],
            _ => {
                return Err(ImageProblem::NoTarget {
                    path: path.into(),
                    columns,
                }
                .into());
            }
        },
        names => names
            .iter()
            .map(|name| known(path, name, &columns))
            .collect::<Result<_, _>>()?,
    };
    let mut gathering = Gathering::new(path, images, targets, ledger)?;
    gathering.gather(&source, ledger)?;
    gathering.finish(asked.labels)
}

fn known(path: &Path, name: &str, columns: &[String]) -> Result<String, ImageProblem> {
    match columns.iter().any(|column| column == name) {
        true => Ok(name.into()),
        false => Err(ImageProblem::UnknownColumn {
            path: path.into(),
            name: name.into(),
            columns: columns.to_vec(),
        }),
    }
}

fn wanted(columns: &[String]) -> Reading {
    let column = |name: &String| Wanted {
        name: name.clone(),
        read: Read::Text,
    };
    Reading {
        wanted: columns.iter().map(column).collect(),
        missing: Vec::new(),
        bad_rows: BadRows::Fail,
    }
}

/// The first column whose first value is the name of an image.
fn find_paths(path: &Path, source: &Source, columns: &[String], ledger: &Ledger) -> Result<String> {
    let mut found = None;
    source.scan(&wanted(columns), Position::default(), ledger, |chunk, _| {
        found = (0..columns.len()).find(|column| {
            let first = (0..chunk.n_rows()).find_map(|row| text(chunk, *column, row));
            first.is_some_and(|value| is_image_name(Path::new(value).as_os_str()))
        });
        ControlFlow::Break(())
    })?;
    found.map(|column| columns[column].clone()).ok_or_else(|| {
        ImageProblem::NoPaths {
            path: path.into(),
            columns: columns.to_vec(),
        }
        .into()
    })
}

fn text(chunk: &Chunk, column: usize, row: usize) -> Option<&str> {
    chunk
        .text(column, row)
        .and_then(|bytes| std::str::from_utf8(bytes).ok())
        .filter(|text| !text.is_empty())
}

/// Rows on their way into lists.
struct Gathering {
    path: PathBuf,
    images: String,
    targets: Vec<String>,
    list: List,
    incomplete: u64,
    /// Of one column: every text by the order in which it was first met, and which one each row has. Of a column with
    /// more texts than there can be classes, only numbers are kept.
    texts: BTreeMap<String, u32>,
    codes: Vec<u32>,
    too_many: bool,
    /// Values as numbers, row by row; those that are none are not a number.
    numbers: Vec<f32>,
    moments: Vec<Moments>,
    /// The first value that is no number: line, column, and what it is.
    first_text: Option<(u64, usize, String)>,
    whole: bool,
    holder: Holder,
    grant: Grant,
}

impl Gathering {
    fn new(path: &Path, images: String, targets: Vec<String>, ledger: &Ledger) -> Result<Gathering> {
        let holder = ledger.holder("labels");
        let mut list = List::new(&ledger.holder("files"))?;
        list.add_folder(path.parent().unwrap_or(Path::new("")))?;
        Ok(Gathering {
            path: path.into(),
            images,
            moments: vec![Moments::default(); targets.len()],
            targets,
            list,
            incomplete: 0,
            texts: BTreeMap::new(),
            codes: Vec::new(),
            too_many: false,
            numbers: Vec::new(),
            first_text: None,
            whole: true,
            grant: holder.try_grant(0)?,
            holder,
        })
    }

    fn gather(&mut self, source: &Source, ledger: &Ledger) -> Result<()> {
        let columns: Vec<String> = std::iter::once(&self.images)
            .chain(&self.targets)
            .cloned()
            .collect();
        let mut failed = Ok(());
        source.scan(&wanted(&columns), Position::default(), ledger, |chunk, _| {
            failed = (0..chunk.n_rows()).try_for_each(|row| self.row(chunk, row));
            match failed.is_ok() {
                true => ControlFlow::Continue(()),
                false => ControlFlow::Break(()),
            }
        })?;
        failed
    }

    fn row(&mut self, chunk: &Chunk, row: usize) -> Result<()> {
        let n = self.targets.len();
        let (Some(image), true) = (
            text(chunk, 0, row),
            (1..=n).all(|column| text(chunk, column, row).is_some()),
        ) else {
            self.incomplete += 1;
            return Ok(());
        };
        self.list.push(0, Path::new(image).as_os_str())?;
        self.grant.try_grow(LABEL_BYTES * (n as u64 + 1))?;
        for column in 0..n {
            let value = text(chunk, column + 1, row).unwrap_or_default();
            let number = match parse_number(value.as_bytes()) {
                Number::Value(number) if number.is_finite() => number,
                _ => {
                    self.first_text
                        .get_or_insert_with(|| (chunk.lines[row], column, value.to_string()));
                    f64::NAN
                }
            };
            self.whole &= number.fract() == 0.0;
            self.moments[column].push(number);
            self.numbers.push(number as f32);
        }
        if n == 1 && !self.too_many {
            self.code(text(chunk, 1, row).unwrap_or_default())?;
        }
        Ok(())
    }

    fn code(&mut self, value: &str) -> Result<()> {
        let code = match self.texts.get(value) {
            Some(code) => *code,
            None if self.texts.len() == MOST_CLASSES => {
                self.too_many = true;
                (self.texts, self.codes) = (BTreeMap::new(), Vec::new());
                return Ok(());
            }
            None => {
                self.grant.try_grow(TEXT_BYTES + 2 * value.len() as u64)?;
                let code = self.texts.len() as u32;
                self.texts.insert(value.into(), code);
                code
            }
        };
        self.codes.push(code);
        Ok(())
    }

    fn finish(mut self, options: &LabelOptions) -> Result<Listed> {
        if self.list.len() == 0 {
            return Err(ImageProblem::NoImages { path: self.path }.into());
        }
        self.list.close();
        let (labels, values) = self.decide(options)?;
        // What growing took goes with the lists.
        self.grant.shrink(u64::MAX);
        let grant = self.holder.try_grant(values.len() as u64 * 4)?.pin();
        Ok(Listed {
            list: self.list,
            labelled: Labelled {
                labels,
                values: Values::Here { values, grant },
            },
            incomplete: self.incomplete,
        })
    }

    fn decide(&mut self, options: &LabelOptions) -> Result<(Labels, Vec<f32>)> {
        let numeric = self.first_text.is_none();
        if let Some(known) = &options.known {
            return self.held_against(known);
        }
        if self.targets.len() > 1 {
            self.expect_numbers()?;
            let flags = self.numbers.iter().all(|value| *value == 0.0 || *value == 1.0);
            let labels = match options.task {
                Some(LabelTask::Regression) => self.scales(),
                _ if flags => Labels::Flags {
                    width: self.targets.len(),
                    names: self.targets.clone(),
                },
                _ => self.scales(),
            };
            return Ok((labels, std::mem::take(&mut self.numbers)));
        }
        let several = || self.texts.keys().any(|text| text.contains(BETWEEN));
        match options.task {
            Some(LabelTask::Regression) => self.number(),
            Some(LabelTask::Flags) => self.tags(None),
            Some(LabelTask::Binary | LabelTask::Multiclass) => self.classes(options),
            None if numeric && (!self.whole || self.too_many || self.texts.len() > MOST_NUMBERED) => {
                self.number()
            }
            None if !numeric && several() => self.tags(None),
            None => self.classes(options),
        }
    }

    fn expect_numbers(&self) -> Result<(), ImageProblem> {
        match &self.first_text {
            None => Ok(()),
            Some((line, column, value)) => Err(ImageProblem::NotANumber {
                path: self.path.clone(),
                line: *line,
                column: self.targets[*column].clone(),
                value: value.clone(),
            }),
        }
    }

    fn scales(&self) -> Labels {
        Labels::Numbers {
            scales: self.moments.iter().map(Scale::of).collect(),
        }
    }

    fn number(&mut self) -> Result<(Labels, Vec<f32>)> {
        self.expect_numbers()?;
        let moments = &self.moments[0];
        if moments.min == moments.max {
            return Err(self.one_value(moments.min.to_string()));
        }
        let Scale { mean, deviation } = Scale::of(moments);
        let labels = Labels::One(Target::Number { mean, deviation });
        Ok((labels, std::mem::take(&mut self.numbers)))
    }

    fn classes(&mut self, options: &LabelOptions) -> Result<(Labels, Vec<f32>)> {
        let (path, column) = (self.path.clone(), self.targets[0].clone());
        if self.too_many {
            return Err(ImageProblem::TooManyClasses {
                path,
                column,
                most: MOST_CLASSES,
            }
            .into());
        }
        if let (Some(value), 1) = (self.texts.keys().next(), self.texts.len()) {
            return Err(self.one_value(value.clone()));
        }
        let n_classes = self.texts.len();
        if options.task == Some(LabelTask::Binary) && n_classes != 2 {
            return Err(ImageProblem::NotBinary {
                path,
                column,
                n_classes,
            }
            .into());
        }
        let texts: Vec<String> = self.texts.keys().cloned().collect();
        let labels = Labels::One(Target::classes(&texts));
        let values = self.places(&labels)?;
        Ok((labels, values))
    }

    /// The place of each row's text among the classes.
    fn places(&self, labels: &Labels) -> Result<Vec<f32>> {
        let classes = labels.classes();
        let mut places = vec![0.0; self.texts.len()];
        for (text, code) in &self.texts {
            let label = Label::new(text);
            let place = classes.iter().position(|class| class.is_same(&label));
            let place =
                place.ok_or_else(|| self.unknown(text, classes.iter().map(|class| class.text.clone())))?;
            places[*code as usize] = place as f32;
        }
        Ok(self.codes.iter().map(|code| places[*code as usize]).collect())
    }

    /// Several labels for each image, in one text.
    fn tags(&mut self, known: Option<&[String]>) -> Result<(Labels, Vec<f32>)> {
        let split = |text: &str| -> Vec<String> {
            let tags = text.split([BETWEEN[0], BETWEEN[1], ',']).map(str::trim);
            tags.filter(|tag| !tag.is_empty()).map(String::from).collect()
        };
        let names = match known {
            Some(known) => known.to_vec(),
            None => {
                let mut names: Vec<String> = self.texts.keys().flat_map(|text| split(text)).collect();
                names.sort();
                names.dedup();
                names
            }
        };
        let width = names.len();
        if width < 2 && known.is_none() {
            return Err(self.one_value(names.first().cloned().unwrap_or_default()));
        }
        self.grant
            .try_grow(4 * width as u64 * (self.texts.len() + self.codes.len()) as u64)?;
        let mut rows = vec![0.0; self.texts.len() * width];
        for (text, code) in &self.texts {
            for tag in split(text) {
                let place = names
                    .binary_search(&tag)
                    .ok()
                    .or_else(|| names.iter().position(|name| *name == tag));
                let place = place.ok_or_else(|| self.unknown(&tag, names.iter().cloned()))?;
                rows[*code as usize * width + place] = 1.0;
            }
        }
        let row = |code: &u32| &rows[*code as usize * width..(*code as usize + 1) * width];
        let values = self.codes.iter().flat_map(row).copied().collect();
        Ok((Labels::Flags { width, names }, values))
    }

    /// What is known already, and how these labels fit.
    fn held_against(&mut self, known: &Labels) -> Result<(Labels, Vec<f32>)> {
        let values = match known {
            Labels::Flags { names, .. } if self.targets.len() == 1 && !names.is_empty() => {
                return self.tags(Some(names));
            }
            Labels::One(Target::Number { .. }) | Labels::Flags { .. } | Labels::Numbers { .. } => {
                self.expect_numbers()?;
                if self.targets.len() != known.width() {
                    return Err(ImageProblem::OtherLabels {
                        path: self.path.clone(),
                        labels: self.targets.len(),
                        expected: known.width(),
                    }
                    .into());
                }
                std::mem::take(&mut self.numbers)
            }
            Labels::One(_) => self.places(known)?,
        };
        Ok((known.clone(), values))
    }

    fn one_value(&self, value: String) -> Error {
        ImageProblem::OneValue {
            path: self.path.clone(),
            column: self.targets[0].clone(),
            value,
        }
        .into()
    }

    fn unknown(&self, value: &str, known: impl Iterator<Item = String>) -> ImageProblem {
        ImageProblem::UnknownClass {
            path: self.path.clone(),
            column: self.targets.first().cloned().unwrap_or_default(),
            value: value.into(),
            known: known.collect(),
        }
    }
}
