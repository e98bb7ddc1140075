//! A place in a script that takes memory, and the code that would take less.

use serde::{Deserialize, Serialize};

/// A place in a script that takes memory, files, threads or stack.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    pub kind: FindingKind,
    /// The statement, from its first line to its last. Lines are counted from 1, in a notebook in each cell anew.
    pub line: u32,
    pub end_line: u32,
    /// The cell of a notebook, from 1; only cells of code are counted.
    pub cell: Option<u32>,
    pub function: Option<String>,
    /// The line as it stands, without its indentation.
    pub text: String,
    /// The lines that `before` holds, whole, and that `after` would take the place of. Often more than the statement.
    pub change: Lines,
    pub before: String,
    pub after: String,
    /// In a few words, for a list.
    pub title: String,
    pub why: String,
    /// The command that does the whole job within the line.
    pub command: Option<String>,
    pub saving: Saving,
    /// Other lines whose growth is this statement's doing: a graph that is kept here was made there.
    pub grows_at: Vec<Lines>,
}

/// Lines of a script, from the first to the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lines {
    /// Of this cell, if it is a notebook.
    pub cell: Option<u32>,
    pub first: u32,
    pub last: u32,
}

/// What a change would save, as a part of what memory grew by at that place.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Saving {
    PartOfGrowth(f64),
    /// All but the piece that is being worked on.
    AllButPiece,
    /// So many workers have a copy each; `None` where it depends on the machine. One copy stays.
    PerWorker(Option<u32>),
    /// Something, but nobody can say how much.
    Unknown,
    /// It is not memory that it saves.
    Nothing,
}

/// What a piece is taken to be, as a part of the whole: with fewer than ten pieces nobody reads in pieces.
const PIECE: f64 = 0.1;

impl Saving {
    /// About so many bytes less, where memory grew by `bytes`.
    pub fn of(self, bytes: u64) -> Option<u64> {
        let part = match self {
            Saving::PartOfGrowth(part) => part,
            Saving::AllButPiece => 1.0 - PIECE,
            Saving::PerWorker(Some(workers)) => 1.0 - 1.0 / f64::from(workers.max(1)),
            // Two workers at the least, or there would be no copies.
            Saving::PerWorker(None) => 0.5,
            Saving::Unknown | Saving::Nothing => return None,
        };
        Some((bytes as f64 * part.clamp(0.0, 1.0)) as u64)
    }
}

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingKind {
    /// A table that is read whole.
    WholeTable,
    /// Columns that are read and never used.
    UnusedColumns,
    /// An array that is read whole.
    WholeArray,
    /// A file of text that is read whole.
    WholeText,
    /// An object that is unpickled or parsed whole.
    WholeObject,
    /// A dataset, loader or generator of which a list is made.
    WholeDataset,
    /// Images of all files in a list.
    AllImages,
    /// One column for each level, all zeros written out.
    DenseDummies,
    /// A sparse matrix with its zeros written out.
    DenseMatrix,
    BatchSize,
    /// A training loop that could take several small batches for a step.
    NoAccumulation,
    DoublePrecision,
    /// A loss that is kept together with the graph that made it.
    LossKept,
    /// Evaluation that builds graphs nobody uses.
    NoInferenceMode,
    RetainedGraph,
    PredictInLoop,
    ModelInLoop,
    /// Objects that every loader's worker copies by looking at them.
    LoaderCopies,
    /// Processes of joblib or scikit-learn with a copy each.
    JobCopies,
    /// Processes of a pool with a copy of what is global.
    PoolCopies,
    GrowingCollection,
    /// A table or an array that is copied whole for each piece that is added.
    ConcatInLoop,
    UnboundedCache,
    CopyInLoop,
    /// A join that can have more rows than both sides.
    Join,
    /// Chunks that are put together again.
    ChunksJoined,
    /// Words that are stored one by one.
    ObjectColumn,
    OpenFigures,
    RecursionLimit,
    OpenFilesInLoop,
    ThreadsInLoop,
}

impl FindingKind {
    pub const ALL: [FindingKind; 31] = [
        FindingKind::WholeTable,
        FindingKind::UnusedColumns,
        FindingKind::WholeArray,
        FindingKind::WholeText,
        FindingKind::WholeObject,
        FindingKind::WholeDataset,
        FindingKind::AllImages,
        FindingKind::DenseDummies,
        FindingKind::DenseMatrix,
        FindingKind::BatchSize,
        FindingKind::NoAccumulation,
        FindingKind::DoublePrecision,
        FindingKind::LossKept,
        FindingKind::NoInferenceMode,
        FindingKind::RetainedGraph,
        FindingKind::PredictInLoop,
        FindingKind::ModelInLoop,
        FindingKind::LoaderCopies,
        FindingKind::JobCopies,
        FindingKind::PoolCopies,
        FindingKind::GrowingCollection,
        FindingKind::ConcatInLoop,
        FindingKind::UnboundedCache,
        FindingKind::CopyInLoop,
        FindingKind::Join,
        FindingKind::ChunksJoined,
        FindingKind::ObjectColumn,
        FindingKind::OpenFigures,
        FindingKind::RecursionLimit,
        FindingKind::OpenFilesInLoop,
        FindingKind::ThreadsInLoop,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            FindingKind::WholeTable => "whole_table",
            FindingKind::UnusedColumns => "unused_columns",
            FindingKind::WholeArray => "whole_array",
            FindingKind::WholeText => "whole_text",
            FindingKind::WholeObject => "whole_object",
            FindingKind::WholeDataset => "whole_dataset",
            FindingKind::AllImages => "all_images",
            FindingKind::DenseDummies => "dense_dummies",
            FindingKind::DenseMatrix => "dense_matrix",
            FindingKind::BatchSize => "batch_size",
            FindingKind::NoAccumulation => "no_accumulation",
            FindingKind::DoublePrecision => "double_precision",
            FindingKind::LossKept => "loss_kept",
            FindingKind::NoInferenceMode => "no_inference_mode",
            FindingKind::RetainedGraph => "retained_graph",
            FindingKind::PredictInLoop => "predict_in_loop",
            FindingKind::ModelInLoop => "model_in_loop",
            FindingKind::LoaderCopies => "loader_copies",
            FindingKind::JobCopies => "job_copies",
            FindingKind::PoolCopies => "pool_copies",
            FindingKind::GrowingCollection => "growing_collection",
            FindingKind::ConcatInLoop => "concat_in_loop",
            FindingKind::UnboundedCache => "unbounded_cache",
            FindingKind::CopyInLoop => "copy_in_loop",
            FindingKind::Join => "join",
            FindingKind::ChunksJoined => "chunks_joined",
            FindingKind::ObjectColumn => "object_column",
            FindingKind::OpenFigures => "open_figures",
            FindingKind::RecursionLimit => "recursion_limit",
            FindingKind::OpenFilesInLoop => "open_files_in_loop",
            FindingKind::ThreadsInLoop => "threads_in_loop",
        }
    }
}
