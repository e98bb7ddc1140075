//! Packs: encoded rows on disk, so that later epochs and later runs skip parsing, decoding and encoding.
//!
//! A pack is a folder, `packs/<key>/`, of three files:
//!
//! - `data.arrow`, a plain Arrow IPC file that any Arrow reader opens: one record batch per piece of the source
//!   ([`Layout::Rows`]), per block of binned rows ([`Layout::Bins`]) or per block of samples ([`Layout::Samples`], [`Layout::Pixels`]);
//! - `index`, where each batch stands, how much it holds, and its checksums;
//! - `manifest.json`, written last.
//!
//! # Scenarios
//!
//! **The first epoch** writes the pack while it trains: [`TablePack`] takes every batch on its way to the model. The
//! folder is filled beside, synced and renamed, so a pack is whole or absent.
//!
//! **Later epochs, and later runs with the same key,** read it: the buffers of a batch stand in the file as they
//! stand in memory, and are read straight into it. Batches, counts and positions are those of the source, bit for
//! bit.
//!
//! **Two runs build the same pack.** Each fills a folder of its own; the first rename wins and the other uses it.
//!
//! **The disk is too small, or gets full.** The half pack goes, the run goes on from its source, and
//! [`PackProblem`] tells why.
//!
//! **A pack is damaged.** Its checksums tell when the batch is read. The pack goes, the pass continues from the source
//! at the very place, and the next pass builds it again.

mod bins;
mod build;
mod frame;
mod layout;
mod manifest;
mod problem;
mod read;
mod rows;
mod samples;
mod store;
mod table;
mod write;

pub use bins::{BinsPack, BinsWriter, Part};
pub use build::PackOptions;
pub use layout::Layout;
pub use problem::PackProblem;
pub use store::{PackContents, PackInfo, PackKey, PackStore, Prune};

pub(crate) use store::ARRAY;
pub use table::TablePack;
pub use write::{WRITE_BEHIND_BYTES, WriteBehind, drop_range};

pub(crate) use rows::{RowsFeed, RowsPack, RowsWriter};
pub(crate) use samples::{SamplesPack, SamplesWriter, block_bytes};
