//! What a log says of why a run ended: tracebacks, messages known by their wording, the kernel's events, exit statuses.
//!
//! Functions of text, without any I/O. What a message shows by itself is all that is said here; to weigh it against
//! counters and recordings is the business of others. Any bytes may come in: nothing here panics on them.

mod lines;
mod size;
mod wording;

mod code;
mod device;
mod limits;
mod loss;
mod memory;
mod scheduler;
mod signals;
mod workers;

mod crash;
mod drawn;
mod errors;
mod handled;
mod prefix;
mod python;
mod traceback;

mod exit;
mod kernel;
mod machine;
mod messages;

#[cfg(test)]
mod tests;

pub use exit::explain_exit;
pub(super) use handled::is_farewell;
pub use kernel::{Constraint, KernelEvent, KernelKind, OomKill, kernel_events};
pub(in crate::why) use loss::reports_of_loss;
pub(in crate::why) use machine::xid_is_hardware;
pub use messages::{Said, said};
pub(super) use traceback::last_of;
pub use traceback::{Traceback, tracebacks};
