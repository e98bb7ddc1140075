//! CSV: the dialect, cutting text into blocks of whole rows, and walking the fields of a block.
//!
//! Quotes follow RFC 4180 with the leniency that real files need: a quote opens a quoted field only at
//! the start of a field, two quotes inside one stand for a quote, and what follows a closing quote up to
//! the separator is ignored. The cutter (`blocks`) and the walker ([`rows`]) share that rule.

pub(crate) mod blocks;
pub mod dialect;
pub(crate) mod part;
pub mod rows;
mod scan;

pub use dialect::{Dialect, DialectOptions};
pub use rows::{RowSink, walk_rows};

/// Bytes that must be readable behind the text of a block, so that the scanner may load whole vectors.
pub const PADDING: usize = 64;
