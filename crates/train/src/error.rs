//! What can go wrong in a training.

use std::io;
use std::path::PathBuf;

use tidegate_memory::{Refused, format_bytes};

pub type Result<T, E = Error> = std::result::Result<T, E>;

#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    #[error(transparent)]
    Data(#[from] tidegate_data::Error),
    #[error("this job needs {} and the budget is {}{}: {}", format_bytes(*least), format_bytes(*budget), most(holders), parts(holders))]
    BudgetTooSmall {
        least: u64,
        budget: u64,
        holders: Vec<(String, u64)>,
    },
    #[error("the binned rows take {}, and the budget has room for {} of them", format_bytes(*needed), format_bytes(*planned))]
    RowsDoNotFit { needed: u64, planned: u64 },
    #[error(
        "{} is in memory (a tmpfs), where the {} of state that do not fit would count against the budget",
        path.display(),
        format_bytes(*needed)
    )]
    ScratchInMemory { path: PathBuf, needed: u64 },
    #[error("not enough memory for {what}")]
    Memory {
        what: &'static str,
        #[source]
        source: Refused,
    },
    #[error("{}: no row can be used: {bad} bad, {without_target} without a target", path.display())]
    NoRows {
        path: PathBuf,
        bad: u64,
        without_target: u64,
    },
    #[error("the class weights do not fit a target of {classes} classes")]
    ClassWeights { classes: usize },
    #[error("{rows} rows have a target that is neither a finite number nor one of the classes")]
    ImpossibleTargets { rows: u64 },
    #[error("no row is left to train on: all are held out")]
    NothingToTrainOn,
    #[error("the loss is no longer a finite number in epoch {epoch}")]
    Diverged { epoch: u32 },
    #[error(transparent)]
    Misfit(#[from] crate::network::Misfit),
    #[error("the loss is no finite number in step {step}, epoch {epoch}: {what}")]
    WentBad { epoch: u32, step: u64, what: String },
    #[error("the loss {loss} is none for {labels}")]
    OtherLoss { loss: String, labels: &'static str },
    #[error("sample {sample} has the token {token}, and the embedding takes whole numbers from 0 to {}", tokens - 1)]
    UnknownToken { sample: u64, token: f64, tokens: usize },
    #[error("the layers to freeze are not in the network: {}", names.join(", "))]
    NothingToFreeze { names: Vec<String> },
    #[error("no memory for the arena of the network")]
    Arena {
        #[source]
        source: io::Error,
    },
    #[error("{}: the tensor {name} is {} there and {} in the network", path.display(), crate::network::Shape(found.clone()), crate::network::Shape(needed.clone()))]
    OtherWeights {
        path: PathBuf,
        name: String,
        found: Vec<usize>,
        needed: Vec<usize>,
    },
    #[error("{}: it has no tensor of the network", path.display())]
    NoWeights {
        path: PathBuf,
        has: Vec<String>,
        needs: Vec<String>,
    },
    #[error("{}: cannot be written", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: is not a model folder: it has no {file}", path.display())]
    NotAModel { path: PathBuf, file: &'static str },
    #[error("{}: cannot be read", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    #[error("{}: this file is damaged: {what}", path.display())]
    Damaged { path: PathBuf, what: String },
    #[error("{}: was written by a newer version ({found}, this one knows {known})", path.display())]
    Newer { path: PathBuf, found: u32, known: u32 },
    #[error("the checkpoint was made with another {what}")]
    OtherCheckpoint { what: &'static str },
    /// Asked to stop; a checkpoint has been written if there was a place for it.
    #[error("stopped in epoch {epoch}")]
    Stopped { epoch: u32, checkpoint: bool },
}

impl Error {
    /// What to do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Error::Data(error) => error.hint(),
            Error::BudgetTooSmall { least, .. } => Some(format!(
                "--memory {} is the least that would do",
                megabytes(*least)
            )),
            Error::RowsDoNotFit { needed, planned } => Some(format!(
                "leave out --no-pack to keep them on disk, or give {} more --memory",
                megabytes(needed - planned)
            )),
            Error::ScratchInMemory { .. } => {
                Some("choose a folder on a disk with --home, or give more --memory".into())
            }
            Error::Memory { .. } => Some("give more --memory".into()),
            Error::NoRows { .. } => {
                Some("check --target, and run without --bad-rows skip to see the first bad row".into())
            }
            Error::ClassWeights { classes: 0 } => {
                Some("a number has no classes: leave the weights out".into())
            }
            Error::ClassWeights { .. } => {
                Some("give one weight for each value of the target, none below 0 and not all 0".into())
            }
            Error::ImpossibleTargets { .. } => Some("check the values of the target column".into()),
            Error::NothingToTrainOn => Some("hold fewer rows out, or give more rows".into()),
            Error::Diverged { .. } => Some("check the data for extreme values".into()),
            Error::Misfit(_) => None,
            Error::WentBad { .. } => Some(
                "a smaller --learning-rate, --clip 1 or a --warm-up may help; `tidegate resume` goes on from the last checkpoint"
                    .into(),
            ),
            Error::OtherLoss { labels, .. } => Some(match *labels {
                "numbers" => "give mse, mae or huber".into(),
                "classes" => "leave it out, or give cross_entropy".into(),
                _ => "leave it out, or give binary".into(),
            }),
            Error::UnknownToken { .. } => Some("give the embedding as many tokens as the data has".into()),
            Error::NothingToFreeze { .. } => {
                Some("a layer goes by its name, or by its place in the list from 0".into())
            }
            Error::Arena { .. } => Some("give less --memory, or free some on this machine".into()),
            Error::OtherWeights { .. } => Some("give the weights of the same network".into()),
            Error::NoWeights { has, needs, .. } => Some(format!(
                "it has {}, …; the network has {}, …",
                has.join(", "),
                needs.join(", ")
            )),
            Error::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("free some disk space, or choose another place".into())
            }
            Error::Write { .. } => Some("check that the folder exists and may be written".into()),
            Error::Read { .. } => None,
            Error::NotAModel { .. } => {
                Some("name a run (see `tidegate runs`) or a folder with a model.toml".into())
            }
            Error::Damaged { .. } => Some("train again, or restore the file from a copy".into()),
            Error::Newer { .. } => Some("update tidegate".into()),
            Error::OtherCheckpoint { .. } => Some("start a new training instead".into()),
            Error::Stopped { .. } => None,
        }
    }

    /// Whether more memory is what it wanted.
    pub fn is_for_memory(&self) -> bool {
        match self {
            Error::Data(error) => error.is_for_memory(),
            _ => matches!(
                self,
                Error::BudgetTooSmall { .. } | Error::Memory { .. } | Error::RowsDoNotFit { .. }
            ),
        }
    }

    /// Whether the request was wrong rather than the data or the machine.
    pub fn is_usage(&self) -> bool {
        match self {
            Error::Data(error) => error.is_usage(),
            Error::BudgetTooSmall { .. }
            | Error::NotAModel { .. }
            | Error::OtherCheckpoint { .. }
            | Error::Misfit(_)
            | Error::OtherLoss { .. }
            | Error::NothingToFreeze { .. }
            | Error::OtherWeights { .. }
            | Error::NoWeights { .. }
            | Error::ClassWeights { .. } => true,
            _ => false,
        }
    }
}

/// A size that can be given to `--memory` and is not below `bytes`.
fn megabytes(bytes: u64) -> String {
    format!("{}MB", bytes.div_ceil(1_000_000))
}

/// What dominates, where one holder takes more than all others.
fn most(holders: &[(String, u64)]) -> String {
    let all: u64 = holders.iter().map(|(_, bytes)| bytes).sum();
    let largest = holders.iter().max_by_key(|(_, bytes)| *bytes);
    let dominates = largest.filter(|(_, bytes)| 2 * bytes > all && holders.len() > 1);
    dominates.map_or(String::new(), |(name, _)| format!(", most of it for {name}"))
}

fn parts(holders: &[(String, u64)]) -> String {
    holders
        .iter()
        .map(|(name, bytes)| format!("{name} {}", format_bytes(*bytes)))
        .collect::<Vec<_>>()
        .join(" · ")
}
