//! The run store: the only owner of on-disk run formats.
//!
//! A *run* is one attempt at training. It has a row in a small SQLite database and a folder:
//!
//! ```text
//! HOME/runs.db                    runs and metrics
//! HOME/runs/<id>/job.toml         what was asked, fully resolved
//!                log.txt          stdout and stderr, time-stamped
//!                flight.bin       the flight recorder: memory over time, fixed-size records, append-only
//!                processes.bin    the same of each process
//!                devices.bin      the same of each accelerator
//!                stacks.jsonl     where Python code was, and how large its process was there
//!                facts.json       what the supervisor saw at the end, before it was gone
//!                checkpoint/      weights, optimizer, cursor
//!                model/           the trained model
//! ```
//!
//! Several commands may use one home at once: the database waits for its lock, the first
//! [`Store::finish`] of a run wins, and the flight recorder and the log are written record by record,
//! unbuffered, so that what was seen survives a `kill -9` of either side.
//!
//! A figure that was not measured is `None` here and NULL on disk, never zero.

mod beside;
mod devices;
mod error;
mod find;
mod flight;
mod log;
mod paths;
mod processes;
mod records;
mod run;
mod schema;
mod stacks;
mod store;
mod time;

pub use beside::write_beside;
pub use devices::DeviceRecord;
pub use error::{Error, Result};
pub use find::ListOptions;
pub use flight::{Flight, FlightRecord, FlightWriter, last_record, read_flight};
pub use log::{LogWriter, Stream, tail};
pub use paths::RunDir;
pub use processes::ProcessRecord;
pub use records::{FlightHeader, RecordWriter, Recording, read_records};
pub use run::{Judgement, Metric, NewRun, Outcome, Part, ProcessRef, Run, Started, Status, Summary};
pub use stacks::{Frame, SeenThread, StackSample, StackWriter, Stacks, ThreadStack, read_stacks};
pub use store::Store;
pub use time::{clock, now_ms, parse_timestamp, timestamp};
