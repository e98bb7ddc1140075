//! Why a run ended: from what is left of it to a verdict with its evidence and its remedies.
//!
//! Everything here is a function of data: a [`Case`] goes in, a [`Verdict`] comes out. Who collects the case is another
//! matter: the supervisor at the end of a run, or whoever asks about a job that was run without it.

mod cause;
mod collect;
mod devices;
mod facts;
mod foreign;
mod judge;
mod log;
mod pattern;
mod remedies;
mod script;
mod series;
mod verdict;

pub use cause::Cause;
pub use collect::{collect, log_line};
pub(crate) use devices::device_source;
pub use devices::{DeviceSummary, devices};
pub use facts::{
    Case, Counter, CounterKind, Crash, DeviceFault, EndedChild, Facts, Foreign, KernelLog, LogLine, Refused,
    Scope, SentSignal, SignalReason, Stall, Waits,
};
pub use foreign::{ForeignJob, case_of_job};
pub use judge::{judge, judge_told};
pub use log::{
    Constraint, KernelEvent, KernelKind, OomKill, Said, Traceback, explain_exit, kernel_events, said,
    tracebacks,
};
pub use pattern::{Pattern, PatternKind};
pub use remedies::general_remedies;
pub use script::{
    Finding, FindingKind, Lines, Notebook, Saving, Scripts, cell_of, findings, in_its_source, read_sources,
    remedies, sources,
};
pub use series::{
    Layer, Moment, MomentKind, Thrashing, Timeline, growing_now, growth, pattern, thrashing, time_to_line,
    timeline,
};
pub use verdict::{Evidence, Grade, Growth, Remedy, Standing, Verdict};
