//! What the labels are: classes, a number, several numbers, or several answers of yes or no.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Holder, Ledger};

use super::answers::{Answer, Answers};
use super::header::Holds;
use super::problem::ArrayProblem;
use super::sums::Sums;
use crate::sketch::Moments;
use crate::target::{Label, Target, Task};
use crate::{Error, Result};

/// Most classes that labels may have: more than any set of images has, and few enough to hold.
pub const MOST_CLASSES: usize = 65_536;

/// What a class takes while labels are read: its text twice, and its place in a tree.
const CLASS_BYTES: u64 = 160;

/// What is predicted for each sample.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Labels {
    /// One value: a number, or the index of a class.
    One(Target),
    /// Yes (1) or no (0), `width` times over: a sample may have several labels, or none.
    Flags {
        width: usize,
        /// What each is called, where that is known.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        names: Vec<String>,
    },
    /// Several numbers.
    Numbers { scales: Vec<Scale> },
}

/// Mean and deviation of a number, for scaling.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Scale {
    pub mean: f64,
    pub deviation: f64,
}

/// What to predict, where the labels alone do not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LabelTask {
    Regression,
    Binary,
    Multiclass,
    /// Rows of yes and no.
    Flags,
}

impl From<Task> for LabelTask {
    fn from(task: Task) -> LabelTask {
        match task {
            Task::Regression => LabelTask::Regression,
            Task::Binary => LabelTask::Binary,
            Task::Multiclass => LabelTask::Multiclass,
        }
    }
}

/// How labels are taken.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabelOptions {
    pub task: Option<LabelTask>,
    /// There are so many classes, numbered from 0, whether the labels show them all or not.
    pub n_classes: Option<usize>,
    /// The labels of a model: what is read is held against them, and never decides anything.
    pub known: Option<Labels>,
}

impl Labels {
    /// Values for each sample.
    pub fn width(&self) -> usize {
        match self {
            Labels::One(_) => 1,
            Labels::Flags { width, .. } => *width,
            Labels::Numbers { scales } => scales.len(),
        }
    }

    /// Classes, in order; empty where a number is predicted.
    pub fn classes(&self) -> Vec<&Label> {
        match self {
            Labels::One(target) => target.labels(),
            Labels::Flags { .. } | Labels::Numbers { .. } => Vec::new(),
        }
    }

    fn of_classes(texts: Vec<String>) -> Labels {
        Labels::One(Target::classes(&texts))
    }
}

/// The labels of all samples.
pub(crate) struct Labelled {
    pub labels: Labels,
    pub values: Values,
}

/// Where labels are.
pub(crate) enum Values {
    /// In memory: `width` values for each sample.
    Here {
        values: Vec<f32>,
        #[expect(dead_code, reason = "held for its drop")]
        grant: Grant,
    },
    /// Beside each sample; known of them is what they come to.
    Beside(Sums),
}

impl Labelled {
    /// Reads the labels of the samples, array after array.
    pub(crate) fn read(arrays: &[Answers], options: &LabelOptions, ledger: &Ledger) -> Result<Labelled> {
        let reading = Reading {
            arrays,
            options,
            holder: ledger.holder("labels"),
        };
        reading.check_widths()?;
        let (labels, classes, one_hot) = match &options.known {
            Some(known) => reading.held_against(known)?,
            None => reading.decide()?,
        };
        let n: u64 = arrays.iter().map(Answers::n).sum();
        let bytes = (n * labels.width() as u64).saturating_mul(4);
        let grant = reading.holder.try_grant(bytes)?.pin();
        let mut values = Vec::with_capacity((bytes / 4) as usize);
        for array in arrays {
            match &classes {
                Some((_, classes)) => array.each_answer(&reading.holder, |_, answer| {
                    values.push(classes.get(&answer).copied().unwrap_or_default() as f32);
                    Ok(())
                })?,
                None if one_hot => array.each_number(&reading.holder, |_, column, value| {
                    if value.number() != 0.0 {
                        values.push(column as f32);
                    }
                    Ok(())
                })?,
                None => array.each_number(&reading.holder, |_, _, value| {
                    values.push(value.number() as f32);
                    Ok(())
                })?,
            }
        }
        match values.len() as u64 * 4 == bytes {
            true => Ok(Labelled {
                labels,
                values: Values::Here { values, grant },
            }),
            false => Err(Error::Changed {
                path: reading.path().into(),
            }),
        }
    }

    /// Labels told otherwise than by an array: an index of a class for each sample.
    pub(crate) fn of_folders(
        texts: Vec<String>,
        folders: impl ExactSizeIterator<Item = u32>,
        path: &Path,
        options: &LabelOptions,
        ledger: &Ledger,
    ) -> Result<Labelled> {
        let (labels, places) = match &options.known {
            Some(known) => {
                let classes = known.classes();
                let places = texts.iter().map(|text| {
                    let label = Label::new(text);
                    classes
                        .iter()
                        .position(|known| known.is_same(&label))
                        .ok_or_else(|| ArrayProblem::UnknownClass {
                            path: path.join(text),
                            sample: 0,
                            value: text.clone(),
                            known: classes.iter().map(|label| label.text.clone()).collect(),
                        })
                });
                (known.clone(), places.collect::<Result<Vec<usize>, _>>()?)
            }
            None => {
                let labels = Labels::of_classes(texts.clone());
                let classes = labels.classes();
                let places = texts.iter().map(|text| {
                    classes
                        .iter()
                        .position(|label| label.text == *text)
                        .unwrap_or_default()
                });
                let places = places.collect();
                if let [value] = texts.as_slice() {
                    let value = value.clone();
                    return Err(ArrayProblem::OneClass {
                        path: path.into(),
                        value,
                    }
                    .into());
                }
                (labels, places)
            }
        };
        let grant = ledger.holder("labels").try_grant(folders.len() as u64 * 4)?.pin();
        let class = |folder: u32| places.get(folder as usize).copied().unwrap_or_default() as f32;
        Ok(Labelled {
            labels,
            values: Values::Here {
                values: folders.map(class).collect(),
                grant,
            },
        })
    }
}

/// Arrays of labels being looked at.
struct Reading<'a> {
    arrays: &'a [Answers],
    options: &'a LabelOptions,
    holder: Holder,
}

/// Which index every answer has; held for as long as labels are read.
type Classes = Option<(Grant, BTreeMap<Answer, u32>)>;

/// What labels are, the indexes of their answers, and whether rows are one 1 among zeros.
type Decided = (Labels, Classes, bool);

/// What rows of several numbers look like.
struct Rows {
    not_flag: Option<ArrayProblem>,
    not_one_hot: Option<ArrayProblem>,
    /// Columns that hold the one 1 of some row: the first of them, and whether there are others.
    first: Option<usize>,
    several: bool,
    moments: Vec<Moments>,
}

impl Reading<'_> {
    fn path(&self) -> &Path {
        self.arrays
            .first()
            .map_or(Path::new(""), |array| array.input.path())
    }

    fn width(&self) -> usize {
        self.arrays.first().map_or(1, Answers::width)
    }

    fn check_widths(&self) -> Result<(), ArrayProblem> {
        for array in self.arrays {
            if array.width() > 1 && !matches!(array.holds(), Holds::Number(_)) {
                return Err(ArrayProblem::LabelShape {
                    path: array.input.path().into(),
                    shape: array.shape().to_vec(),
                });
            }
            if array.width() != self.width() {
                return Err(ArrayProblem::LabelWidth {
                    path: array.input.path().into(),
                    expected: self.width(),
                    found: array.width(),
                });
            }
        }
        Ok(())
    }

    /// What the labels are, by their type, shape and values.
    fn decide(&self) -> Result<Decided> {
        let float = |array: &Answers| matches!(array.holds(), Holds::Number(element) if element.is_float());
        if self.width() > 1 {
            return self.decide_rows();
        }
        match self.options.task {
            Some(LabelTask::Flags) => self.decide_rows(),
            Some(LabelTask::Regression) => self.number(),
            None if self.options.n_classes.is_none() && self.arrays.iter().any(float) => self.number(),
            Some(LabelTask::Binary | LabelTask::Multiclass) | None => self.classes(),
        }
    }

    /// Rows of several values.
    fn decide_rows(&self) -> Result<Decided> {
        let (width, path) = (self.width(), self.path().to_path_buf());
        let rows = self.look_at_rows()?;
        let (classes, flags) = match self.options.task {
            Some(LabelTask::Regression) => (false, false),
            Some(LabelTask::Flags) => (false, true),
            Some(LabelTask::Binary | LabelTask::Multiclass) => (true, false),
            None => {
                let flags = rows.not_flag.is_none();
                let one_hot = flags && rows.not_one_hot.is_none();
                (one_hot, flags && !one_hot)
            }
        };
        if !classes && !flags {
            let scales = rows.moments.iter().map(Scale::of).collect();
            return Ok((Labels::Numbers { scales }, None, false));
        }
        if let Some(problem) = rows.not_flag {
            return Err(problem.into());
        }
        if flags {
            let names = Vec::new();
            return Ok((Labels::Flags { width, names }, None, false));
        }
        if let Some(problem) = rows.not_one_hot {
            return Err(problem.into());
        }
        if self.options.n_classes.is_some_and(|expected| expected != width) {
            let expected = self.options.n_classes.unwrap_or_default();
            return Err(ArrayProblem::LabelWidth {
                path,
                expected,
                found: width,
            }
            .into());
        }
        if let (Some(first), false) = (rows.first, rows.several) {
            let value = first.to_string();
            return Err(ArrayProblem::OneClass { path, value }.into());
        }
        if self.options.task == Some(LabelTask::Binary) && width != 2 {
            return Err(ArrayProblem::NotBinary {
                path,
                n_classes: width,
            }
            .into());
        }
        let labels = Labels::of_classes((0..width).map(|class| class.to_string()).collect());
        Ok((labels, None, true))
    }

    fn look_at_rows(&self) -> Result<Rows> {
        let width = self.width();
        let _granted = self.holder.try_grant((width * size_of::<Moments>()) as u64)?;
        let mut rows = Rows {
            not_flag: None,
            not_one_hot: None,
            first: None,
            several: false,
            moments: vec![Moments::default(); width],
        };
        for array in self.arrays {
            let path = || array.input.path().to_path_buf();
            let mut ones = 0;
            array.each_number(&self.holder, |sample, column, value| {
                let number = value.number();
                rows.moments[column].push(number);
                if number != 0.0 && number != 1.0 && rows.not_flag.is_none() {
                    let value = value.to_string();
                    rows.not_flag = Some(ArrayProblem::NotFlags {
                        path: path(),
                        sample,
                        value,
                    });
                }
                if number == 1.0 {
                    ones += 1;
                    rows.several |= rows.first.is_some_and(|first| first != column);
                    rows.first.get_or_insert(column);
                }
                if column + 1 == width && std::mem::take(&mut ones) != 1 && rows.not_one_hot.is_none() {
                    rows.not_one_hot = Some(ArrayProblem::NotOneHot { path: path(), sample });
                }
                Ok(())
            })?;
        }
        Ok(rows)
    }

    /// One number for each sample.
    fn number(&self) -> Result<Decided> {
        let mut moments = Moments::default();
        for array in self.arrays {
            array.each_number(&self.holder, |_, _, value| {
                moments.push(value.number());
                Ok(())
            })?;
        }
        if moments.min == moments.max {
            let (path, value) = (self.path().into(), moments.min.to_string());
            return Err(ArrayProblem::OneClass { path, value }.into());
        }
        let Scale { mean, deviation } = Scale::of(&moments);
        Ok((Labels::One(Target::Number { mean, deviation }), None, false))
    }

    /// One of several values for each sample.
    fn classes(&self) -> Result<Decided> {
        let (grant, mut classes) = self.distinct()?;
        let path = || self.path().to_path_buf();
        if let Some((value, None)) = Some(classes.keys()).map(|mut keys| (keys.next(), keys.next())) {
            let value = value.map(Answer::shown).unwrap_or_default();
            return Err(ArrayProblem::OneClass { path: path(), value }.into());
        }
        let are_numbers = classes.keys().all(|answer| !matches!(answer, Answer::Text(_)));
        let labels = match self.options.n_classes {
            Some(n_classes) if are_numbers => {
                for (answer, index) in &mut classes {
                    let class = answer.integer().and_then(|value| u32::try_from(value).ok());
                    match class.filter(|class| (*class as usize) < n_classes) {
                        Some(class) => *index = class,
                        None => {
                            return Err(self.find(answer, |path, sample, value| ArrayProblem::NotAClass {
                                path,
                                sample,
                                value,
                                n_classes,
                            }));
                        }
                    }
                }
                Labels::of_classes((0..n_classes).map(|class| class.to_string()).collect())
            }
            _ => {
                let bools = self
                    .arrays
                    .iter()
                    .all(|array| matches!(array.holds(), Holds::Number(super::Element::Bool)));
                let shown = |answer: &Answer| match (bools, answer) {
                    (true, Answer::Integer(0)) => "false".into(),
                    (true, Answer::Integer(_)) => "true".into(),
                    _ => answer.shown(),
                };
                let labels = Labels::of_classes(classes.keys().map(shown).collect());
                self.give_places(&mut classes, &labels, shown);
                labels
            }
        };
        let n_classes = labels.classes().len();
        if self.options.task == Some(LabelTask::Binary) && n_classes != 2 {
            return Err(ArrayProblem::NotBinary {
                path: path(),
                n_classes,
            }
            .into());
        }
        Ok((labels, Some((grant, classes)), false))
    }

    /// The index of each answer among the classes, which may be in another order: numbers written as texts.
    fn give_places(
        &self,
        classes: &mut BTreeMap<Answer, u32>,
        labels: &Labels,
        shown: impl Fn(&Answer) -> String,
    ) {
        let ordered = labels.classes();
        let places: BTreeMap<&str, u32> = ordered.iter().map(|label| label.text.as_str()).zip(0..).collect();
        for (answer, index) in classes {
            *index = places.get(shown(answer).as_str()).copied().unwrap_or_default();
        }
    }

    /// Every answer once.
    fn distinct(&self) -> Result<(Grant, BTreeMap<Answer, u32>)> {
        let mut grant = self.holder.try_grant(0)?;
        let mut classes = BTreeMap::new();
        for array in self.arrays {
            array.each_answer(&self.holder, |_, answer| {
                if classes.contains_key(&answer) {
                    return Ok(());
                }
                if classes.len() == MOST_CLASSES {
                    return Err(ArrayProblem::TooManyClasses {
                        path: array.input.path().into(),
                        most: MOST_CLASSES,
                    }
                    .into());
                }
                let letters = if let Answer::Text(text) = &answer {
                    text.len()
                } else {
                    20
                };
                grant.try_grow(CLASS_BYTES + 3 * letters as u64)?;
                classes.insert(answer, 0);
                Ok(())
            })?;
        }
        Ok((grant, classes))
    }

    /// An error about the first sample that has this label.
    fn find(
        &self,
        wanted: &Answer,
        problem: impl Fn(std::path::PathBuf, u64, String) -> ArrayProblem,
    ) -> Error {
        for array in self.arrays {
            let found = array.each_answer(&self.holder, |sample, answer| match answer == *wanted {
                true => Err(problem(array.input.path().into(), sample, answer.shown()).into()),
                false => Ok(()),
            });
            if let Err(error) = found {
                return error;
            }
        }
        problem(self.path().into(), 0, wanted.shown()).into()
    }

    /// What is known already, and how these labels fit.
    fn held_against(&self, known: &Labels) -> Result<Decided> {
        let texts: Vec<String> = known.classes().iter().map(|label| label.text.clone()).collect();
        let path = self.path().to_path_buf();
        let one_hot = !texts.is_empty() && self.width() > 1;
        let expected = if one_hot { texts.len() } else { known.width() };
        if self.width() != expected {
            return Err(ArrayProblem::LabelWidth {
                path,
                expected,
                found: self.width(),
            }
            .into());
        }
        if one_hot || matches!(known, Labels::Flags { .. }) {
            let rows = self.look_at_rows()?;
            let problem = rows.not_flag.or(rows.not_one_hot.filter(|_| one_hot));
            return problem.map_or(Ok((known.clone(), None, one_hot)), |problem| Err(problem.into()));
        }
        if texts.is_empty() {
            return Ok((known.clone(), None, false));
        }
        let (grant, mut classes) = self.distinct()?;
        let labels: Vec<Label> = texts.iter().map(|text| Label::new(text)).collect();
        let places: BTreeMap<&str, usize> = texts.iter().map(String::as_str).zip(0..).collect();
        for (answer, index) in &mut classes {
            let bool_text = match answer {
                Answer::Integer(0) => "false",
                Answer::Integer(1) => "true",
                _ => "",
            };
            let shown = answer.shown();
            let place = places
                .get(shown.as_str())
                .or_else(|| places.get(bool_text))
                .copied();
            // The same number may be written otherwise: 1 and 1.0.
            let is_same = |known: &Label| known.is_same(&Label::new(&shown));
            match place.or_else(|| labels.iter().position(is_same)) {
                Some(place) => *index = place as u32,
                None => {
                    return Err(
                        self.find(answer, |path, sample, value| ArrayProblem::UnknownClass {
                            path,
                            sample,
                            value,
                            known: texts.clone(),
                        }),
                    );
                }
            }
        }
        Ok((known.clone(), Some((grant, classes)), false))
    }
}

impl Scale {
    pub(crate) fn of(moments: &Moments) -> Scale {
        let deviation = moments.deviation();
        Scale {
            mean: moments.mean,
            // Numbers that are all the same are not scaled.
            deviation: if deviation > 0.0 && deviation.is_finite() {
                deviation
            } else {
                1.0
            },
        }
    }
}
