//! Sources, decoding and encoding: files in, batches out, every buffer granted by the ledger.
//!
//! The way of a row, in reading order:
//!
//! 1. [`Source`] finds what was named, files, folders, patterns, archives or queries, and hands out their rows in
//!    pieces that are cut by the data alone.
//! 2. [`Input`] opens a file and hands out its bytes, decompressed, without leaving them in the page cache; [`csv`]
//!    cuts text into blocks of whole rows and walks their fields.
//! 3. [`chunk`] holds the rows of a piece column by column: what follows knows nothing of formats.
//! 4. [`Profile`] is a look at a bounded sample, from which every column gets a [`role`]; [`filter`] tells which rows
//!    are used at all.
//! 5. [`sketch`] holds what one streaming pass keeps of a column, bounded and mergeable.
//! 6. [`encode`] turns a column into numbers, one file per encoder; [`target`] does so for the label. An
//!    [`EncodingPlan`] says beforehand what every column becomes, and why.
//! 7. [`Table`] binds the choices together, and [`Table::pass`] streams the source once: pieces are encoded on several
//!    threads and reach the model as a [`Batch`] each, in order.
//! 8. [`pack`] keeps what a pass made on disk, so that the next one need not make it again.
//!
//! Samples of one shape go another way: see [`arrays`], and [`images`] for pictures.

pub mod arrays;
pub mod batch;
mod below;
mod choose;
pub mod chunk;
pub mod csv;
pub mod direct;
pub mod disk;
pub mod encode;
mod encoding;
mod error;
pub mod features;
pub mod filter;
mod fit;
mod guard;
mod holdout;
pub mod images;
mod input;
mod labels;
mod meter;
mod narrow;
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
pub use below::{Below, Outside};
pub use choose::{Planned, Purpose};
pub use encoding::{EncodingPlan, TreeColumn};
pub use error::{Error, Fault, Result};
pub use features::{FeatureOptions, Features};
pub use filter::{Condition, Filter};
pub use fit::{FitOptions, Progress};
pub use guard::is_guarded;
pub use holdout::Holdout;
pub use input::{Compression, Input};
pub use meter::{Bottleneck, FeedTimes};
pub use narrow::Narrowed;
pub use number::{Number, parse_number};
pub use pack::{BinsPack, BinsWriter, PackKey, PackOptions, PackProblem, PackStore, TablePack};
pub use pass::{BUFFERS, Pass, PassOptions};
pub use profile::{ColumnProfile, Profile};
pub use role::Role;
pub use source::{Position, Source, SourceOptions};
pub use table::{BadRows, Table, TableOptions};
