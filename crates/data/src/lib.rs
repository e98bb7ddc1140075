//! Sources, decoding and encoding: files in, batches out, every buffer granted by the ledger.
//!
//! The way of a row, in reading order:
//!
//! 0. [`Source`] finds what was named, files, folders, patterns, archives or queries, and hands out their rows.
//! 1. [`Input`] opens a file and hands out its text in sequence, decompressed, without leaving it in
//!    the page cache.
//! 2. [`csv`] cuts the text into blocks of whole rows and walks their fields.
//! 3. [`profile()`] looks at a bounded sample: the dialect, the columns, which of them hold numbers.
//! 4. [`sketch`] holds what one streaming pass keeps of a column, bounded and mergeable.
//! 5. [`encode`] turns a column into numbers, one file per encoder; [`target`] does so for the label.
//! 6. [`Table`] binds the choices together, and [`Table::pass`] streams the file once: blocks are
//!    encoded on several threads and reach the model in the order of the file.
//! 7. [`pack`] keeps what a pass made on disk, so that the next one need not make it again.

pub mod batch;
mod choose;
pub mod chunk;
pub mod csv;
pub mod encode;
mod encoding;
mod error;
pub mod features;
pub mod filter;
mod fit;
mod holdout;
mod input;
mod labels;
mod number;
pub mod pack;
mod pass;
mod pipeline;
mod profile;
pub mod role;
pub mod sketch;
pub mod source;
pub mod table;
pub mod target;

pub use batch::Batch;
pub use batch::RowCounts;
pub use choose::{Planned, Purpose};
pub use encoding::{EncodingPlan, TreeColumn};
pub use error::{Error, Fault, Result};
pub use features::{FeatureOptions, Features};
pub use filter::{Condition, Filter};
pub use fit::{FitOptions, Progress};
pub use holdout::Holdout;
pub use input::{Compression, Input};
pub use number::{Number, parse_number};
pub use pack::{BinsPack, BinsWriter, PackKey, PackOptions, PackProblem, PackStore, TablePack};
pub use pass::{Pass, PassOptions};
pub use profile::{ColumnProfile, Profile};
pub use role::Role;
pub use source::{Position, Source, SourceOptions};
pub use table::{BadRows, Table, TableOptions};
