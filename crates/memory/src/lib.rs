//! Budget, ledger, meters and counting allocator: who may hold how many bytes, and who does.
//!
//! The story in reading order. A person writes a size ([`Amount`]). [`resolve`] looks at the machine
//! ([`Host`]) and finds the smallest bound that really holds: a cgroup, Slurm, an rlimit, what the host has
//! left. The resulting [`Budget`] becomes a [`Ledger`], which hands it out as [`Grant`]s to named
//! [`Holder`]s, and [`Headroom`] tells when others take of it. Meanwhile the meters ([`process_memory`], [`tree_memory`], [`Cgroup`], [`memory_pressure`])
//! say what the kernel counted, and [`Counting`] what this program's own allocator did.
//!
//! A counter that could not be read is `None` or [`Limit::Unavailable`], never zero.

mod error;
mod figures;
mod host;
mod size;

mod budget;
mod headroom;
mod hierarchy;
mod slurm;

mod ledger;

mod activity;
mod cards;
mod cgroup;
mod meminfo;
mod pressure;
mod process;
mod tree;

mod counting;

pub use activity::{
    ProcessActivity, held_memory, open_files, process_activity, process_disk, runs_python, shared_memory,
    vm_counter,
};
pub use budget::{Bound, BoundKind, Budget, Limit, resolve};
pub use cards::{Card, cards};
pub use cgroup::{Cgroup, CgroupEvents, CgroupStat, CgroupVersion};
pub use counting::{Counting, give_freed_memory_back};
pub use error::{Error, SizeProblem};
pub use figures::{against, ago, counted, duration, figure, off, short, thousands};
pub use headroom::{Allowance, Headroom, TightBound};
pub use host::Host;
pub use ledger::{Grant, Holder, HolderSnapshot, Ledger, LedgerSnapshot, Refused, Spare};
pub use meminfo::{MemInfo, meminfo};
pub use pressure::{Pressure, Resource, memory_pressure, pressure};
pub use process::{ProcessMemory, process_memory, process_status, start_time};
pub use size::{Amount, format_bytes};
pub use tree::{TreeMemory, process_tree, tree_memory, tree_status};
