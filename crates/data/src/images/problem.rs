//! What can be wrong with a set of images, each told before a model sees one of them.

use std::path::PathBuf;

use crate::error::names::{nearest, quoted};

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImageProblem {
    #[error("{}: is neither a folder of images nor a table of their paths", path.display())]
    NotAFolder { path: PathBuf },
    #[error("{}: holds no images", path.display())]
    NoImages { path: PathBuf },
    #[error("{}: holds {files} images and no folder of them: nothing says what they show", path.display())]
    NoLabels { path: PathBuf, files: u64 },
    #[error("{}: {fault}", path.display())]
    BadFile { path: PathBuf, fault: String },
    #[error("{}: {bad} of {files} files are no images that can be used; the first is {}: {fault}", path.display(), first.display())]
    MostlyBad {
        path: PathBuf,
        bad: u64,
        files: u64,
        first: PathBuf,
        fault: String,
    },
    #[error("{}: no column holds paths of images; there are {}", path.display(), quoted(columns))]
    NoPaths { path: PathBuf, columns: Vec<String> },
    #[error("{}: there is no column {name:?}", path.display())]
    UnknownColumn {
        path: PathBuf,
        name: String,
        columns: Vec<String>,
    },
    #[error("{}: nothing says which column is to be predicted; there are {}", path.display(), quoted(columns))]
    NoTarget { path: PathBuf, columns: Vec<String> },
    #[error("{}:{line}: {column:?} holds {value:?}, which is no number", path.display())]
    NotANumber {
        path: PathBuf,
        line: u64,
        column: String,
        value: String,
    },
    #[error("{}: {column:?} holds {value:?}, and the classes are {}", path.display(), quoted(known))]
    UnknownClass {
        path: PathBuf,
        column: String,
        value: String,
        known: Vec<String>,
    },
    #[error("{}: its folders are the classes, and there is no column {target:?}", path.display())]
    TargetOfFolders { path: PathBuf, target: String },
    #[error("{}: images of {class} alone can be read; {}: {fault}", path.display(), first.display())]
    OneClassLeft {
        path: PathBuf,
        class: String,
        first: PathBuf,
        fault: String,
    },
    #[error("{}: {column:?} is {value:?} for all images", path.display())]
    OneValue {
        path: PathBuf,
        column: String,
        value: String,
    },
    #[error("{}: {column:?} has more than {most} different values", path.display())]
    TooManyClasses {
        path: PathBuf,
        column: String,
        most: usize,
    },
    #[error("{}: {column:?} has {n_classes} values, not two", path.display())]
    NotBinary {
        path: PathBuf,
        column: String,
        n_classes: usize,
    },
    #[error("{}: {labels} labels for each image where the model knows {expected}", path.display())]
    OtherLabels {
        path: PathBuf,
        labels: usize,
        expected: usize,
    },
    #[error("{}: there are no classes to be balanced: {predicted} predicted", path.display())]
    NoClasses { path: PathBuf, predicted: &'static str },
}

impl ImageProblem {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        let hint = match self {
            ImageProblem::NotAFolder { .. } => {
                "name a folder with a folder of images for each class, or a CSV or JSON lines file of paths and labels".into()
            }
            ImageProblem::NoImages { .. } => {
                "images end in .jpg, .png, .webp, .bmp, .gif or .tif; look whether the folder is the right one".into()
            }
            ImageProblem::NoLabels { .. } => {
                "put the images of each class into a folder of its own, or name a CSV or JSON lines file of paths and labels"
                    .into()
            }
            ImageProblem::BadFile { .. } => {
                "mend or remove it, or leave such files out: --bad-files skip".into()
            }
            ImageProblem::MostlyBad { .. } => "look at the files: something is wrong with most of them".into(),
            ImageProblem::NoPaths { .. } => {
                "name the column: --images COLUMN; paths are relative to the folder of the table".into()
            }
            ImageProblem::UnknownColumn { name, columns, .. } => {
                return nearest(name, columns).map(|near| format!("did you mean {near:?}?"));
            }
            ImageProblem::NoTarget { .. } => "name it: --target COLUMN, or several: --target a,b,c".into(),
            ImageProblem::NotANumber { .. } => {
                "mend the value, or say that it is one of several classes: --task multiclass".into()
            }
            ImageProblem::UnknownClass { .. } => "only classes that the training has can be judged by".into(),
            ImageProblem::TargetOfFolders { .. } => {
                "leave --target out, or name the table that lists images and labels".into()
            }
            ImageProblem::OneClassLeft { .. } => {
                "mend the files of the other classes: there is nothing to learn from one".into()
            }
            ImageProblem::OneValue { .. } => {
                "there is nothing to learn: give images of at least two kinds".into()
            }
            ImageProblem::TooManyClasses { .. } => "is it the right column? Numbers are predicted with --task regression".into(),
            ImageProblem::NotBinary { .. } => "leave --task out, or say --task multiclass".into(),
            ImageProblem::OtherLabels { .. } => "give labels as the training has".into(),
            ImageProblem::NoClasses { .. } => "leave --balanced out".into(),
        };
        Some(hint)
    }

    /// Whether the request was wrong rather than the data.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            ImageProblem::NotAFolder { .. }
                | ImageProblem::NoPaths { .. }
                | ImageProblem::UnknownColumn { .. }
                | ImageProblem::NoTarget { .. }
                | ImageProblem::NoClasses { .. }
        )
    }
}
