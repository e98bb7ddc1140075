//! The run store: the only owner of on-disk run formats.
//!
//! A *run* is one attempt at training. It has a row in a small SQLite database and a folder:
//!
//! ```text
//! HOME/runs.db                    runs and metrics
//! HOME/runs/<id>/job.toml         what was asked, fully resolved
//!                plan.json        what was predicted
//!                encoding.json    what every column of a table becomes
//!                environment.json what it was run with: versions, machine, variables
//!                log.txt          stdout and stderr, time-stamped
//!                flight.bin       the flight recorder: memory over time, fixed-size records, append-only
//!                processes.bin    the same of each process
//!                devices.bin      the same of each accelerator
//!                holders.jsonl    who held how much of the budget
//!                stacks.jsonl     where Python code was, and how large its process was there
//!                facts.json       what the supervisor saw at the end, before it was gone
//!                checkpoint/      weights, optimizer, cursor
//!                model/           the trained model
//!                why.json, explained.json, samples.png, mistakes.png
//!                                 what the page has had told and drawn of it, to be made again at any time
//! ```
//!
//! Several commands may use one home at once: the database waits for its lock, the first
//! [`Store::finish`] of a run wins, and the flight recorder and the log are written record by record,
//! unbuffered, so that what was seen survives a `kill -9` of either side.
//!
//! A figure that was not measured is `None` here and NULL on disk, never zero.

mod beside;
mod devices;
mod envelope;
mod error;
mod find;
mod flight;
mod holders;
mod kept;
mod log;
mod metrics;
mod overview;
mod pages;
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
pub use holders::HolderWriter;
pub use kept::{keep, kept};
pub use log::{
    LogHits, LogLine, LogWindow, LogWriter, Needle, Stream, log_after, log_at_time, log_before, log_search,
    tail,
};
pub use metrics::{Curve, CurvePoint};
pub use overview::{
    HolderOverview, Overview, ProcessOverview, ProcessSeries, Span, flight_overview, holders_overview,
    process_overview,
};
pub use pages::{RunsPage, RunsQuery, SortBy};
pub use paths::RunDir;
pub use processes::{PROCESS_AT_LEAST_EVERY_MS, ProcessRecord};
pub use records::{FlightHeader, RecordWriter, Recording, read_records};
pub use run::{
    Judgement, Metric, NewRun, Outcome, Part, ProcessRef, Run, Started, Status, Summary, metric_name,
};
pub use stacks::{Frame, SeenThread, StackSample, StackWriter, Stacks, ThreadStack, read_stacks};
pub use store::Store;
pub use time::{clock, now_ms, parse_timestamp, timestamp};
