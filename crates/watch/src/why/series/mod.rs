//! What the recordings of a run show: what its memory did, on which lines it grew, when it only waited for its pages.
//!
//! Everything is a function of a [`Case`](super::Case). Series that do not compare are made comparable in one place
//! (`samples.rs`); from there on a series is points, and its shape is figures (`shape.rs`).

mod samples;
mod shape;
mod words;

mod copy_on_write;
mod leak;
mod page_cache;
mod pattern;

mod account;
mod growth;
mod lines;

mod drawing;
mod timeline;

mod thrashing;

pub use growth::{growing_now, growth};
pub use pattern::{pattern, time_to_line};
pub use thrashing::{Thrashing, thrashing};
pub use timeline::{Layer, Moment, MomentKind, Timeline, timeline};

#[cfg(test)]
mod tests;
