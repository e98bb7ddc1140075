//! The supervisor: starts a job, holds it under the line, records it, and outlives it.
//!
//! [`supervise`] starts a worker as a child in its own process group and, where the kernel lets us, in
//! its own cgroup with the budget as its limit ([`Confinement`]); elsewhere it samples the worker's memory
//! and stops it at the line. Events come over a pipe ([`Event`]), output is time-stamped into the run's
//! log, memory goes into the flight recorder, and the run store learns how it ended ([`Ended`]). However
//! the worker ends, nothing is left behind: no process of its group, no cgroup, no run that looks alive.
//!
//! What a supervisor that was itself killed leaves behind is found and closed by the next command:
//! [`close_orphans`].
//!
//! The supervisor stays small and never waits for anyone without a bound: it must outlive the crash of
//! what it watches, so it links no trainer and no data reader.

mod error;
mod event;
mod plan;
mod wire;

mod ended;
mod job;
mod supervise;

mod attend;
mod devices;
mod environment;
mod evidence;
mod family;
mod pipes;
mod queue;
mod recorder;
mod sampler;
mod stacks;

mod child;
mod confine;
mod oom_score;
mod plain;
mod scope;
mod signals;
mod stop;
mod terminal;
mod through;

mod identity;
mod recover;

pub mod why;

pub use confine::Confinement;
pub use ended::{Ended, Exit, OverLine, die_of, signal_number};
pub use error::{Error, Result};
pub use event::{Done, EncodedColumn, Event, Failure, MemoryTaken, SeenColumn, WIRE_VERSION};
pub use identity::{boot_id, process_ref, send_signal, this_process};
pub use job::{Devices, Job, OnSignal, Output, RecordedRun, StopReason, Update};
pub use plain::readable;
pub use plan::{Alternative, Change, DevicePlan, Plan, Times};
pub use recover::close_orphans;
pub use scope::UserManager;
pub use stop::stop_flag;
pub use supervise::supervise;
pub use wire::EventWriter;
