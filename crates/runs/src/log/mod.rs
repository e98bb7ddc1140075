//! The log of a run: its output, line by line, with the time at which each line came.
//!
//! ```text
//! 2026-11-15T20:15:30.123Z out epoch 1
//! 2026-11-15T20:15:31.007Z err warning: …
//! ```
//!
//! Reading costs what is shown, not what the file holds: a piece of it is read from any place on, back from any place, from
//! a time on, or searched. Any bytes may stand in it.

mod errors;
mod lines;
mod search;
mod tail;
mod window;
mod writer;

pub use lines::LogLine;
pub use search::{LogHits, Needle, log_search};
pub use tail::tail;
pub use window::{LogWindow, log_after, log_at_time, log_before};
pub use writer::{LogWriter, Stream};
