//! Images: pictures of any size and format as samples of one size, each with its labels.
//!
//! The way of a picture, in reading order:
//!
//! 1. [`open`] finds what was named: class folders, parts for training and validation, or a table of paths and labels.
//!    It looks at the header of every file (`survey.rs`), so that what decoding takes is known, and what is no image is
//!    left out, before anything is decoded.
//! 2. A picture is decoded no larger than it is needed (`picture.rs`): JPEG by our own decoder (`jpeg/mod.rs`), whose rows
//!    flow straight into the resizer (`resize.rs`), so that even the largest takes little memory.
//! 3. All of them, resized, are kept in a [pack](crate::pack), and as many as fit in memory (`store.rs`).
//! 4. A feed (`feed.rs`) augments them (`augment/mod.rs`) on several threads and hands them out in batches; the order and
//!    the augmentation are functions of seed, epoch and sample.
//!
//! To those who learn from them they are an [`ArraySource`](crate::arrays::ArraySource) like any other: bytes of height,
//! width and channels.
//!
//! # Scenarios
//!
//! **A picture is huge.** Its header tells what decoding takes. Up to 4 MB it is decoded like any other; beyond that one
//! at a time, in a room of its own; beyond that it is left out by name.
//!
//! **A file is broken.** It is left out, counted and named; or the run ends, where that is asked for.
//!
//! **The run is stopped.** The cursor is all that it takes to go on, sample for sample, augmentation included.

pub mod augment;
mod balance;
mod cells;
mod fault;
mod feed;
mod find;
mod form;
mod heaviest;
mod jpeg;
mod list;
mod needs;
mod open;
mod pack;
mod picture;
mod probe;
mod problem;
mod read;
mod resize;
mod sheet;
mod store;
mod survey;
mod table;

pub use augment::{Augment, AugmentFault};
pub use feed::ValueBatch;
pub use find::are_images;
pub use form::{ImageForm, Resize};
pub use open::{ImageOptions, JudgedImages, LeftOut, OpenedImages, open, open_as, open_unlabelled};
pub use pack::{PackNeeds, PackedImages};
pub use problem::ImageProblem;
pub use sheet::Sheet;
pub use store::BadFileRule;
pub use survey::{BadFiles, Looked, Survey};

pub(crate) use store::Images;
