//! The rows of a category table: one flat record of 32-bit words per category, nothing allocated for each.

use serde::{Deserialize, Serialize};

/// Which targets are summed beside the rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Targets {
    /// None: rows are counted, nothing else.
    None,
    /// A class from 0 to `classes` − 1. There is an output for every class but the first, and each is an exact
    /// count of 4 bytes.
    Classes { classes: u32 },
    /// A number: one output, a sum of 8 bytes.
    Number,
}

impl Targets {
    /// How many sums there are in each fold.
    pub fn outputs(&self) -> usize {
        match *self {
            Targets::None => 0,
            Targets::Classes { classes } => classes.saturating_sub(1) as usize,
            Targets::Number => 1,
        }
    }
}

/// What is kept of each category: a count of rows and the sums of the targets, in every fold.
///
/// A record takes `12 + folds · (4 + 4 or 8 · outputs)` bytes: 52 for five folds of a binary target, 16 to
/// count rows alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shape {
    /// At least one.
    pub folds: u8,
    pub targets: Targets,
}

/// Key (two words), and where the name is.
const HEAD: usize = 3;
const NAME: usize = 2;

impl Shape {
    /// Rows are counted, without folds or targets.
    pub const COUNT: Shape = Shape {
        folds: 1,
        targets: Targets::None,
    };

    fn fold_words(&self) -> usize {
        match self.targets {
            Targets::Number => 3,
            _ => 1 + self.targets.outputs(),
        }
    }

    /// The words of a record.
    pub(super) fn words(&self) -> usize {
        HEAD + usize::from(self.folds.max(1)) * self.fold_words()
    }

    /// Counts one row; what is full stays full. A class that does not exist and a target that is missing count
    /// as rows of the first class and of value 0.
    #[inline]
    pub(super) fn add_row(&self, record: &mut [u32], fold: u8, target: f64) {
        let fold = &mut record[HEAD + usize::from(fold) * self.fold_words()..][..self.fold_words()];
        fold[0] = fold[0].saturating_add(1);
        match self.targets {
            Targets::None => (),
            Targets::Classes { .. } => {
                // Class 0 is the reference and has no sum: nothing is added to the count in its place. Without
                // a branch, for no one can foresee a target.
                let class = target as usize;
                let known = class < fold.len();
                let sum = &mut fold[if known { class } else { 0 }];
                *sum = sum.saturating_add(u32::from(known && class > 0));
            }
            Targets::Number if target.is_finite() => add_real(&mut fold[1..3], target),
            Targets::Number => (),
        }
    }

    /// Adds the counts and sums of another record.
    pub(super) fn add_record(&self, record: &mut [u32], other: &[u32]) {
        let folds = record[HEAD..].chunks_exact_mut(self.fold_words());
        for (mine, theirs) in folds.zip(other[HEAD..].chunks_exact(self.fold_words())) {
            mine[0] = mine[0].saturating_add(theirs[0]);
            if self.targets == Targets::Number {
                add_real(&mut mine[1..3], real(&theirs[1..3]));
                continue;
            }
            for (sum, more) in mine[1..].iter_mut().zip(&theirs[1..]) {
                *sum = sum.saturating_add(*more);
            }
        }
    }
}

fn real(words: &[u32]) -> f64 {
    f64::from_bits(u64::from(words[0]) | u64::from(words[1]) << 32)
}

fn add_real(words: &mut [u32], x: f64) {
    let bits = (real(words) + x).to_bits();
    words[0] = bits as u32;
    words[1] = (bits >> 32) as u32;
}

/// One category of a table.
#[derive(Debug, Clone, Copy)]
pub struct Category<'t> {
    pub(super) shape: Shape,
    pub(super) record: &'t [u32],
    /// As it was written, cut to 255 bytes, where there was room to keep it.
    pub name: Option<&'t [u8]>,
}

impl Category<'_> {
    /// The hash of the category, without the bits that the table gave up.
    pub fn key(&self) -> u64 {
        key(self.record)
    }

    /// Rows in all folds.
    pub fn count(&self) -> u64 {
        self.folds().map(|fold| u64::from(fold[0])).sum()
    }

    pub fn fold_count(&self, fold: usize) -> u64 {
        self.folds().nth(fold).map_or(0, |fold| u64::from(fold[0]))
    }

    /// The sum of a target over all folds.
    pub fn sum(&self, output: usize) -> f64 {
        self.folds().map(|fold| self.output(fold, output)).sum()
    }

    pub fn fold_sum(&self, fold: usize, output: usize) -> f64 {
        self.folds()
            .nth(fold)
            .map_or(0.0, |fold| self.output(fold, output))
    }

    fn folds(&self) -> impl Iterator<Item = &[u32]> {
        self.record[HEAD..].chunks_exact(self.shape.fold_words())
    }

    fn output(&self, fold: &[u32], output: usize) -> f64 {
        match self.shape.targets {
            Targets::Number => real(&fold[1..3]),
            _ => f64::from(fold[1 + output]),
        }
    }
}

#[inline]
pub(super) fn key(record: &[u32]) -> u64 {
    u64::from(record[0]) | u64::from(record[1]) << 32
}

pub(super) fn set_key(record: &mut [u32], key: u64) {
    record[0] = key as u32;
    record[1] = (key >> 32) as u32;
}

pub(super) fn name(record: &[u32]) -> u32 {
    record[NAME]
}

pub(super) fn set_name(record: &mut [u32], name: u32) {
    record[NAME] = name;
}

/// Records in segments that never move: growing needs no second copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Records {
    words: usize,
    len: usize,
    segments: Vec<Vec<u32>>,
}

/// Records in a segment.
const SEGMENT: usize = 256;

impl Records {
    pub(super) fn new(words: usize) -> Records {
        Records {
            words,
            len: 0,
            segments: Vec::new(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn get(&self, i: usize) -> &[u32] {
        &self.segments[i / SEGMENT][i % SEGMENT * self.words..][..self.words]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, i: usize) -> &mut [u32] {
        &mut self.segments[i / SEGMENT][i % SEGMENT * self.words..][..self.words]
    }

    /// Appends a record of zeros and says which it is.
    pub(super) fn push(&mut self) -> usize {
        let (segment, place) = (self.len / SEGMENT, self.len % SEGMENT);
        if place == 0 && segment == self.segments.len() {
            self.segments.push(Vec::new());
        }
        // A first segment grows by doubling, so that a column of three categories takes little.
        let all = match segment {
            0 => (place + 1).next_power_of_two().max(4),
            _ => SEGMENT,
        };
        let words = &mut self.segments[segment];
        words.reserve_exact((all * self.words).saturating_sub(words.len()));
        words.resize((place + 1) * self.words, 0);
        self.len += 1;
        self.len - 1
    }

    /// Forgets the records from `len` on.
    pub(super) fn truncate(&mut self, len: usize) {
        self.len = len;
        self.segments.truncate(len.div_ceil(SEGMENT));
        if let Some(last) = self.segments.last_mut() {
            last.truncate(((len - 1) % SEGMENT + 1) * self.words);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        let held: usize = self.segments.iter().map(Vec::capacity).sum();
        held * 4 + self.segments.capacity() * size_of::<Vec<u32>>()
    }

    /// The most that so many records take.
    pub(super) fn bytes_for(words: usize, len: usize) -> usize {
        let segments = len.div_ceil(SEGMENT);
        let in_segments = match segments {
            0 | 1 => len.next_power_of_two().max(4),
            _ => segments * SEGMENT,
        };
        // The list of segments doubles, from 4.
        in_segments * words * 4 + segments.next_power_of_two().max(4) * size_of::<Vec<u32>>()
    }
}
