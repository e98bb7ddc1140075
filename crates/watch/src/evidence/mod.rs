//! What only the supervisor can see, and only while the job runs: counters before and after, the kernel's log in between,
//! the limits the job was started with, the code it ran, the notebooks of its kernels, the times in which nothing moved.

mod counters;
mod journal;
mod kernel_log;
mod limits;
mod modules;
mod notebooks;
mod stillness;
mod waiting;

pub(crate) use counters::Counters;
pub(crate) use kernel_log::KernelWatch;
pub(crate) use limits::{Limits, limits};
pub(crate) use modules::Modules;
pub(crate) use notebooks::Notebooks;
pub(crate) use stillness::Stillness;
pub(crate) use waiting::waits_of;
