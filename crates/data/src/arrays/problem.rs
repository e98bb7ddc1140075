//! What can be wrong with arrays, each told before a model sees a sample.

use std::io;
use std::path::PathBuf;

use tidegate_memory::format_bytes;

use crate::error::names::{nearest, quoted};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArrayProblem {
    #[error("{}: is no array: neither NumPy's .npy or .npz, nor IDX", path.display())]
    NotAnArray { path: PathBuf },
    #[error("{}: the {format} header is broken: {what}", path.display())]
    Header {
        path: PathBuf,
        format: &'static str,
        what: String,
    },
    #[error("{}: holds {found}, not numbers", path.display())]
    Element {
        path: PathBuf,
        /// The type, as NumPy writes it: `<c8`.
        found: String,
    },
    #[error("{}: {} in Fortran order: its samples are scattered over the file", path.display(), shown(shape))]
    Fortran { path: PathBuf, shape: Vec<usize> },
    #[error("{}: is cut off: {} of {} should hold {expected} bytes and there are {found}", path.display(), shown(shape), element)]
    Truncated {
        path: PathBuf,
        shape: Vec<usize>,
        element: String,
        expected: u64,
        found: u64,
    },
    #[error("{}: its shape, {}, comes to more bytes than any file has", path.display(), shown(shape))]
    TooLarge { path: PathBuf, shape: Vec<usize> },
    #[error("{}: holds no values: its shape is {}", path.display(), shown(shape))]
    NoValues { path: PathBuf, shape: Vec<usize> },
    #[error("{} has {n_samples} samples and {} has {n_labels} labels", samples.display(), labels.display())]
    Lengths {
        samples: PathBuf,
        n_samples: u64,
        labels: PathBuf,
        n_labels: u64,
    },
    #[error("{} holds samples of {first_holds} and {} of {other_holds}", first.display(), other.display())]
    OtherSamples {
        first: PathBuf,
        /// Type and shape, as `uint8 28×28`.
        first_holds: String,
        other: PathBuf,
        other_holds: String,
    },
    #[error("{}: holds no arrays", path.display())]
    NoArrays { path: PathBuf },
    #[error("{}: there is no array {name:?}", path.display())]
    UnknownArray {
        path: PathBuf,
        name: String,
        there: Vec<String>,
    },
    #[error("{}: which array holds the {what} is not clear: there are {}", path.display(), quoted(there))]
    Unclear {
        path: PathBuf,
        /// `samples` or `labels`.
        what: &'static str,
        there: Vec<String>,
    },
    #[error("{}: there are no labels for it{}", path.display(), beside(there))]
    NoLabels { path: PathBuf, there: Vec<String> },
    #[error("{}: labels of shape {} are neither one value nor one row for each sample", path.display(), shown(shape))]
    LabelShape { path: PathBuf, shape: Vec<usize> },
    #[error("{}: label {sample} is {value}, which is no finite number", path.display())]
    NotFinite {
        path: PathBuf,
        sample: u64,
        value: String,
    },
    #[error("{}: label {sample} is {value}, and with {n_classes} classes they go from 0 to {}", path.display(), n_classes.saturating_sub(1))]
    NotAClass {
        path: PathBuf,
        sample: u64,
        value: String,
        n_classes: usize,
    },
    #[error("{}: label {sample} is {value:?}, and the classes are {}", path.display(), quoted(known))]
    UnknownClass {
        path: PathBuf,
        sample: u64,
        value: String,
        known: Vec<String>,
    },
    #[error("{}: all labels are {value}", path.display())]
    OneClass { path: PathBuf, value: String },
    #[error("{}: has more than {most} different labels", path.display())]
    TooManyClasses { path: PathBuf, most: usize },
    #[error("{}: has {n_classes} classes, not two", path.display())]
    NotBinary { path: PathBuf, n_classes: usize },
    #[error("{}: labels are texts, such as {value:?}, not numbers", path.display())]
    TextLabels { path: PathBuf, value: String },
    #[error("{}: row {sample} of the labels is not one 1 among zeros", path.display())]
    NotOneHot { path: PathBuf, sample: u64 },
    #[error("{}: row {sample} of the labels holds {value}, not only 0 and 1", path.display())]
    NotFlags {
        path: PathBuf,
        sample: u64,
        value: String,
    },
    #[error("{}: labels have {found} values for each sample where {expected} are expected", path.display())]
    LabelWidth {
        path: PathBuf,
        expected: usize,
        found: usize,
    },
    #[error("{}: is compressed; unpacked it takes {}, and {} may be held in memory", path.display(), format_bytes(*bytes), format_bytes(*allowed))]
    Packed { path: PathBuf, bytes: u64, allowed: u64 },
    #[error("{}: is compressed and was not unpacked", path.display())]
    NotUnpacked { path: PathBuf },
    #[error("{}: sample {sample} holds {value}, and half precision goes up to ±65504", path.display())]
    BeyondHalf { path: PathBuf, sample: u64, value: f64 },
    #[error("{}: cannot be written, for what is unpacked there", path.display())]
    Unwritable {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
}

impl ArrayProblem {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ArrayProblem::NotAnArray { .. } => "save it with numpy.save(\"x.npy\", x)".into(),
            ArrayProblem::Header { .. } | ArrayProblem::Truncated { .. } => {
                "the file is cut off or damaged: copy or write it again".into()
            }
            ArrayProblem::Element { found, .. } if found.contains('O') => {
                "it holds Python objects: if they have one shape, stack them, x = numpy.stack(list(x)), and save again"
                    .into()
            }
            ArrayProblem::Element { .. } => "save it as numbers: x.astype(\"float32\")".into(),
            ArrayProblem::Fortran { .. } => "save it as numpy.ascontiguousarray(x)".into(),
            ArrayProblem::TooLarge { .. } | ArrayProblem::NoValues { .. } => "check what wrote the file".into(),
            ArrayProblem::Lengths { .. } => "check that both are of the same part of the data".into(),
            ArrayProblem::OtherSamples { .. } => {
                "bring all samples to one shape and type before saving them".into()
            }
            ArrayProblem::NoArrays { .. } => {
                "name a folder with .npy or IDX files, or with such files in a folder for each class".into()
            }
            ArrayProblem::UnknownArray { name, there, .. } => match nearest(name, there) {
                Some(near) => format!("did you mean {near:?}? There are {}", quoted(there)),
                None => format!("there are {}", quoted(there)),
            },
            ArrayProblem::Unclear { what: "labels", .. } => "say which: --target NAME".into(),
            ArrayProblem::Unclear { .. } => "name the file, or the labels with --target NAME".into(),
            ArrayProblem::NoLabels { .. } => {
                "name them with --target, or call them y.npy or labels.npy and put them beside".into()
            }
            ArrayProblem::LabelShape { .. } => "give one number, text or row for each sample".into(),
            ArrayProblem::NotFinite { .. } => "leave such samples out, or mend their labels".into(),
            ArrayProblem::NotAClass { .. } => {
                "check the number of classes, or leave it out: the labels tell it".into()
            }
            ArrayProblem::UnknownClass { .. } => {
                "the samples trained on have no such label: leave it out, or train with it".into()
            }
            ArrayProblem::OneClass { .. } => {
                "there is nothing to learn: check how the data was selected".into()
            }
            ArrayProblem::TooManyClasses { .. } => {
                "if they are numbers to predict, say --task regression".into()
            }
            ArrayProblem::NotBinary { .. } => "say --task multiclass".into(),
            ArrayProblem::TextLabels { .. } => {
                "leave out --task regression to predict one of the texts".into()
            }
            ArrayProblem::NotOneHot { .. } => {
                "where a sample may have several labels or none, leave out --task multiclass".into()
            }
            ArrayProblem::NotFlags { .. } => "leave out the task: rows of other numbers are numbers to predict".into(),
            ArrayProblem::LabelWidth { .. } => "give labels as those that were trained on".into(),
            ArrayProblem::Packed { bytes, .. } => format!(
                "give at least {} more --memory, or make room on the disk to unpack it",
                format_bytes(*bytes)
            ),
            ArrayProblem::NotUnpacked { .. } => "this is a fault of the program: please report it".into(),
            ArrayProblem::BeyondHalf { .. } => "bring the samples to a smaller scale, or leave out --keep f16".into(),
            ArrayProblem::Unwritable { .. } => {
                "make room on the disk, or name another folder with --home".into()
            }
        };
        Some(hint)
    }

    /// Whether the request was wrong rather than the data: a name or a choice.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(
            self,
            ArrayProblem::NotAnArray { .. }
                | ArrayProblem::NoArrays { .. }
                | ArrayProblem::UnknownArray { .. }
                | ArrayProblem::Unclear { .. }
                | ArrayProblem::NoLabels { .. }
                | ArrayProblem::NotAClass { .. }
                | ArrayProblem::NotBinary { .. }
                | ArrayProblem::TextLabels { .. }
                | ArrayProblem::NotOneHot { .. }
                | ArrayProblem::NotFlags { .. }
        )
    }
}

/// A shape as people write it: `28×28×3`; a single value has none.
pub(crate) fn shown(shape: &[usize]) -> String {
    if shape.is_empty() {
        return "()".into();
    }
    let axes: Vec<String> = shape.iter().map(usize::to_string).collect();
    axes.join("×")
}

fn beside(there: &[String]) -> String {
    match there.is_empty() {
        true => String::new(),
        false => format!("; there are {}", quoted(there)),
    }
}
