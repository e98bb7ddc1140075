//! What a run can end of.

use serde::{Deserialize, Serialize};

/// Why a run ended, told apart as far as what to do about it differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    Success,
    /// The kernel killed it because the machine ran out of memory.
    HostOom,
    /// The kernel killed it because its cgroup or container did.
    CgroupOom,
    /// The kernel killed a child or a data-loader worker; the parent went on, hung, or failed of it.
    ChildOom,
    /// systemd-oomd, earlyoom or another watcher killed it before the kernel had to.
    OomDaemon,
    /// We stopped it at the line.
    Line,
    /// Others took the memory that it had been promised, and it stopped by itself in good order.
    MemoryTaken,
    /// SIGKILL from a person or a program, and not for memory.
    Killed,
    /// SIGINT, SIGTERM or SIGHUP from a person or a program.
    Stopped,
    /// A scheduler ended it at its time limit.
    TimeLimit,
    /// Python said `MemoryError`, or NumPy its own kind of it.
    MemoryError,
    /// C++ said `std::bad_alloc`, or another runtime that it cannot allocate.
    BadAlloc,
    /// It came to the limit of its address space, not of memory.
    AddressSpace,
    /// The memory of an accelerator ran out.
    DeviceMemory,
    /// `/dev/shm` ran out.
    SharedMemory,
    /// Nearly all its time went into waiting for swapped pages.
    Thrashing,
    OpenFiles,
    /// Too many threads or processes.
    Processes,
    DiskFull,
    SegmentationFault,
    IllegalInstruction,
    /// Of native code, or Python's own limit of recursion.
    StackOverflow,
    /// Native code gave up by itself: an assertion, a double free.
    Abort,
    /// Nothing moved any more: no processor time, no output.
    Hang,
    /// The loss became infinite or not a number.
    NotANumber,
    IndexError,
    ShapeError,
    TypeError,
    /// A library is missing, or not of the version that another one needs.
    LibraryVersion,
    Permission,
    MissingFile,
    /// The machine itself reported errors: memory, accelerator, heat, disk.
    Hardware,
    /// It ended with an error of its own that is none of the above.
    Failed,
    Unknown,
}

impl Cause {
    pub const ALL: [Cause; 34] = [
        Cause::Success,
        Cause::HostOom,
        Cause::CgroupOom,
        Cause::ChildOom,
        Cause::OomDaemon,
        Cause::Line,
        Cause::MemoryTaken,
        Cause::Killed,
        Cause::Stopped,
        Cause::TimeLimit,
        Cause::MemoryError,
        Cause::BadAlloc,
        Cause::AddressSpace,
        Cause::DeviceMemory,
        Cause::SharedMemory,
        Cause::Thrashing,
        Cause::OpenFiles,
        Cause::Processes,
        Cause::DiskFull,
        Cause::SegmentationFault,
        Cause::IllegalInstruction,
        Cause::StackOverflow,
        Cause::Abort,
        Cause::Hang,
        Cause::NotANumber,
        Cause::IndexError,
        Cause::ShapeError,
        Cause::TypeError,
        Cause::LibraryVersion,
        Cause::Permission,
        Cause::MissingFile,
        Cause::Hardware,
        Cause::Failed,
        Cause::Unknown,
    ];

    /// Whether less memory would have helped.
    pub fn is_memory(self) -> bool {
        use Cause::{
            AddressSpace, BadAlloc, CgroupOom, ChildOom, DeviceMemory, HostOom, Line, MemoryError,
            MemoryTaken, OomDaemon, SharedMemory, Thrashing,
        };
        matches!(
            self,
            HostOom
                | CgroupOom
                | ChildOom
                | OomDaemon
                | Line
                | MemoryTaken
                | MemoryError
                | BadAlloc
                | AddressSpace
                | DeviceMemory
                | SharedMemory
                | Thrashing
        )
    }

    /// As it is written in JSON and in the run store.
    pub fn as_str(self) -> &'static str {
        match self {
            Cause::Success => "success",
            Cause::HostOom => "host_oom",
            Cause::CgroupOom => "cgroup_oom",
            Cause::ChildOom => "child_oom",
            Cause::OomDaemon => "oom_daemon",
            Cause::Line => "line",
            Cause::MemoryTaken => "memory_taken",
            Cause::Killed => "killed",
            Cause::Stopped => "stopped",
            Cause::TimeLimit => "time_limit",
            Cause::MemoryError => "memory_error",
            Cause::BadAlloc => "bad_alloc",
            Cause::AddressSpace => "address_space",
            Cause::DeviceMemory => "device_memory",
            Cause::SharedMemory => "shared_memory",
            Cause::Thrashing => "thrashing",
            Cause::OpenFiles => "open_files",
            Cause::Processes => "processes",
            Cause::DiskFull => "disk_full",
            Cause::SegmentationFault => "segmentation_fault",
            Cause::IllegalInstruction => "illegal_instruction",
            Cause::StackOverflow => "stack_overflow",
            Cause::Abort => "abort",
            Cause::Hang => "hang",
            Cause::NotANumber => "not_a_number",
            Cause::IndexError => "index_error",
            Cause::ShapeError => "shape_error",
            Cause::TypeError => "type_error",
            Cause::LibraryVersion => "library_version",
            Cause::Permission => "permission",
            Cause::MissingFile => "missing_file",
            Cause::Hardware => "hardware",
            Cause::Failed => "failed",
            Cause::Unknown => "unknown",
        }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(self.as_str())
    }
}
