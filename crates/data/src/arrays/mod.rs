//! Arrays: samples of one shape, each with its labels, read in any order.
//!
//! The way of a sample, in reading order:
//!
//! 1. [`ArraySource::open`] finds what was named: a `.npy`, `.npz` or IDX file, or a folder of them. It reads headers and
//!    all [`Labels`], which are few, and says what is wrong before anything is trained.
//! 2. [`ArraySource::keep`] holds samples in memory where they fit, and unpacks what is compressed.
//! 3. The [`Order`] of samples is a pure function of seed, epoch and position, by a keyed [`Permutation`].
//! 4. [`ArraySource::feed`] hands them out as [`SampleBatch`]es, read ahead by threads.
//!
//! # Scenarios
//!
//! **The array is larger than the memory.** It is read by windows of about 16 MB that leave nothing in the page cache.
//! [`ArraySource::feed_bytes`] says beforehand what that takes.
//!
//! **The array fits.** It is held as it stands, a byte for a byte, under one grant.
//!
//! **The array is compressed.** It is unpacked once, into memory or into a folder that the caller names, where the next
//! run finds it.
//!
//! **The run is stopped.** The [cursor](SampleBatch::cursor) of the last batch is all that it takes to go on.
//!
//! **The samples are the rows of a table.** [`RowSamples`] encodes them once, each with its label, into packs.
//!
//! **Half the precision will do.** [`ArraySource::narrow`] makes halves of floats wherever samples are held or unpacked, and on
//! their way from files, so that the numbers do not depend on which of it happens.
//!
//! **Memory is taken away on the way.** [`ArraySource::let_go`] drops samples that are held, and a feed that finds its ledger
//! lowered reads ahead less. The batches stay the same.
//!
//! **There is a test part beside**, such as `x_test` and `y_test` or the `t10k` files of MNIST:
//! [`ArraySource::open_test`] opens it with the same labels.

mod answers;
pub(crate) mod batch;
mod element;
mod feed;
mod find;
mod half;
mod header;
mod idx;
mod images;
pub(crate) mod labels;
mod moments;
pub(crate) mod names;
mod npy;
pub(crate) mod order;
mod permutation;
mod pressed;
mod problem;
mod ring;
mod rows;
mod samples;
mod source;
mod sums;
mod unpack;
pub(crate) mod walk;

pub use batch::SampleBatch;
pub use element::Element;
pub use feed::FeedOptions;
pub use find::are_arrays;
pub use labels::{LabelOptions, LabelTask, Labels, MOST_CLASSES, Scale};
pub use order::Order;
pub use permutation::Permutation;
pub use problem::ArrayProblem;
pub use rows::{Foreseen, RowSamples, RowShape, RowsOptions, row_labels};
pub use source::{ArrayOptions, ArraySource, Keep, Kept, LabelsFrom, Part};
