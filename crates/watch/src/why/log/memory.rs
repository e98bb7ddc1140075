//! What programs say when they get no memory, and what the kernel and its helpers say when they killed for it.

use super::size::Unit::Kibibytes;
use super::wording::Mark::{After, Shape};
use super::wording::{Wording, wording};
use crate::why::Cause::{BadAlloc, CgroupOom, HostOom, MemoryError, OomDaemon, Processes, StackOverflow};

pub(super) const WORDINGS: &[Wording] = &[
    wording(
        &["Unable to allocate ", "for an array with shape "],
        MemoryError,
        "NumPy got no memory for an array",
    )
    .asked(After("Unable to allocate ")),
    wording(
        &["Unable to allocate array with shape "],
        MemoryError,
        "NumPy got no memory for an array",
    )
    .asked(Shape),
    wording(
        &["ArrowMemoryError: malloc of size ", " failed"],
        MemoryError,
        "Arrow got no memory",
    )
    .anywhere()
    .asked(After("malloc of size ")),
    wording(
        &["ArrowMemoryError: realloc of size ", " failed"],
        MemoryError,
        "Arrow got no memory",
    )
    .anywhere()
    .asked(After("realloc of size ")),
    wording(
        &["DefaultCPUAllocator: can't allocate memory: you tried to allocate "],
        BadAlloc,
        "PyTorch got no memory for a tensor",
    )
    .anywhere()
    .asked(After("you tried to allocate ")),
    wording(
        &["DefaultCPUAllocator: not enough memory: you tried to allocate "],
        BadAlloc,
        "PyTorch got no memory for a tensor",
    )
    .anywhere()
    .asked(After("you tried to allocate ")),
    wording(
        &["Torch: not enough memory: you tried to allocate "],
        BadAlloc,
        "PyTorch got no memory for a tensor",
    )
    .anywhere()
    .asked(After("you tried to allocate ")),
    wording(
        &["OOM when allocating tensor ", "device:CPU:"],
        BadAlloc,
        "TensorFlow got no memory for a tensor",
    )
    .asked(Shape),
    wording(
        &["Out of Memory Error: ", " of size "],
        BadAlloc,
        "DuckDB came to its limit of memory",
    )
    .asked(After(" of size ")),
    wording(
        &["memory allocation of ", " bytes failed"],
        BadAlloc,
        "A Rust program got no memory",
    )
    .asked(After("memory allocation of ")),
    wording(
        &["java.lang.OutOfMemoryError: unable to create"],
        Processes,
        "Java could not start another thread",
    )
    .anywhere(),
    wording(
        &["java.lang.OutOfMemoryError"],
        BadAlloc,
        "Java's heap, or another of its memory areas, was full",
    )
    .anywhere(),
    wording(
        &["There is insufficient memory for the Java Runtime Environment to continue"],
        BadAlloc,
        "The system gave Java no memory",
    )
    .anywhere(),
    wording(
        &["Native memory allocation (", ") failed to "],
        BadAlloc,
        "The system gave Java no memory",
    )
    .anywhere()
    .asked(After("failed to map "))
    .unless(&["--"]),
    wording(
        &["os::commit_memory(", "failed; error='Cannot allocate memory'"],
        BadAlloc,
        "The system gave Java no memory",
    )
    .anywhere(),
    wording(
        &["JavaScript heap out of memory"],
        BadAlloc,
        "Node's heap was full",
    )
    .anywhere()
    .unless(&["--max"]),
    wording(
        &["cannot allocate vector of size "],
        BadAlloc,
        "R got no memory for a vector",
    )
    .asked(After("vector of size ")),
    wording(
        &["vector memory exhausted (limit reached?)"],
        BadAlloc,
        "R came to its limit of memory",
    ),
    wording(
        &["vector memory limit of ", " reached"],
        BadAlloc,
        "R came to its limit of memory",
    )
    .total(After("memory limit of ")),
    wording(&["OutOfMemoryError()"], BadAlloc, "Julia got no memory"),
    wording(
        &["fatal error: runtime: out of memory"],
        BadAlloc,
        "A Go program got no memory",
    ),
    wording(
        &["fatal error: out of memory"],
        BadAlloc,
        "A Go program got no memory",
    ),
    wording(
        &["fatal error: runtime: cannot allocate memory"],
        BadAlloc,
        "A Go program got no memory",
    ),
    wording(
        &["runtime: out of memory: cannot allocate "],
        BadAlloc,
        "A Go program got no memory",
    )
    .asked(After("cannot allocate "))
    .used(&[After("-byte block (")]),
    wording(
        &["[Errno 12] Cannot allocate memory"],
        BadAlloc,
        "The kernel gave no memory",
    ),
    wording(
        &["fork: Cannot allocate memory"],
        BadAlloc,
        "The kernel had no memory for another process",
    ),
    wording(
        &["unable to mmap ", " bytes from file <", "Cannot allocate memory"],
        BadAlloc,
        "PyTorch could not map a file",
    )
    .asked(After("unable to mmap ")),
    wording(&["std::bad_alloc"], BadAlloc, "C++ code got no memory").unless(&["instance of", "cuda", "CUDA"]),
    wording(
        &["AddressSanitizer: ", "allocator is trying to allocate "],
        BadAlloc,
        "AddressSanitizer got no memory",
    )
    .anywhere()
    .asked(After("trying to allocate ")),
    wording(
        &["AddressSanitizer: requested allocation size "],
        BadAlloc,
        "An allocation was larger than can be",
    )
    .anywhere()
    .asked(After("allocation size ")),
    // Recursion: memory too, but of the stack.
    wording(
        &["RecursionError: maximum recursion depth exceeded"],
        StackOverflow,
        "Python came to its limit of recursion",
    )
    .anywhere(),
    wording(
        &["java.lang.StackOverflowError"],
        StackOverflow,
        "Java's stack was full",
    )
    .anywhere(),
    wording(
        &["has overflowed its stack"],
        StackOverflow,
        "The stack of a Rust thread was full",
    )
    .anywhere(),
    wording(
        &["fatal error: stack overflow"],
        StackOverflow,
        "The stack of a Go program was full",
    ),
    wording(
        &["goroutine stack exceeds ", "-byte limit"],
        StackOverflow,
        "The stack of a Go program was full",
    )
    .anywhere()
    .total(After("exceeds ")),
    wording(
        &["C stack usage ", "is too close to the limit"],
        StackOverflow,
        "R's stack was full",
    ),
    wording(
        &["evaluation nested too deeply: infinite recursion"],
        StackOverflow,
        "R came to its limit of recursion",
    ),
    wording(&["StackOverflowError:"], StackOverflow, "Julia's stack was full").whole(),
    wording(
        &["LoadError: StackOverflowError:"],
        StackOverflow,
        "Julia's stack was full",
    ),
    wording(
        &["Maximum call stack size exceeded"],
        StackOverflow,
        "Node's stack was full",
    ),
    wording(
        &["Fatal Python error: Cannot recover from stack overflow"],
        StackOverflow,
        "Python's stack was full",
    )
    .anywhere(),
    wording(
        &["AddressSanitizer: stack-overflow"],
        StackOverflow,
        "The stack was full",
    )
    .anywhere(),
    // The kernel's own words, where its log is part of this one.
    wording(
        &["Memory cgroup out of memory: Kill"],
        CgroupOom,
        "The kernel killed a process for the limit of its cgroup",
    )
    .pid(After("process ")),
    wording(
        &["Out of memory: Kill"],
        HostOom,
        "The kernel killed a process because the machine had no memory left",
    )
    .pid(After("process ")),
    wording(
        &["oom-kill:constraint=CONSTRAINT_MEMCG"],
        CgroupOom,
        "The kernel killed a process for the limit of its cgroup",
    )
    .pid(After(",pid=")),
    wording(
        &["oom-kill:constraint=CONSTRAINT_NONE"],
        HostOom,
        "The kernel killed a process because the machine had no memory left",
    )
    .pid(After(",pid=")),
    // Those who kill before the kernel has to.
    wording(
        &["sending SIGTERM to process ", " badness ", "VmRSS"],
        OomDaemon,
        "earlyoom ended a process for want of memory",
    )
    .pid(After("to process ")),
    wording(
        &["sending SIGKILL to process ", " badness ", "VmRSS"],
        OomDaemon,
        "earlyoom killed a process for want of memory",
    )
    .pid(After("to process ")),
    wording(
        &["sending SIG", "to process ", "oom_score ", "VmRSS"],
        OomDaemon,
        "earlyoom ended a process for want of memory",
    )
    .pid(After("to process ")),
    wording(
        &["killing process ", "with signal ", "badness ", "VmRSS"],
        OomDaemon,
        "earlyoom ended a process for want of memory",
    )
    .pid(After("killing process ")),
    wording(
        &["systemd-oomd[", "Killed ", " due to memory "],
        OomDaemon,
        "systemd-oomd killed a group of processes for want of memory",
    )
    .anywhere(),
    wording(
        &["Killed /", " due to memory pressure for "],
        OomDaemon,
        "systemd-oomd killed a group of processes",
    ),
    wording(
        &["Killed /", " due to memory used ("],
        OomDaemon,
        "systemd-oomd killed a group of processes",
    ),
    wording(
        &["Marked /", " for killing due to memory "],
        OomDaemon,
        "systemd-oomd killed a group of processes",
    ),
    wording(
        &["systemd-oomd killed ", " process(es) in this unit"],
        OomDaemon,
        "systemd-oomd killed processes of this unit",
    )
    .unless(&["killed 0 "]),
    wording(
        &["A process of this unit has been killed by the OOM killer"],
        CgroupOom,
        "systemd says that the OOM killer killed a process of this unit; for which limit it does not say",
    )
    .likely(),
    wording(
        &["Failed with result 'oom-kill'"],
        CgroupOom,
        "systemd says that the OOM killer killed a process of this unit; for which limit it does not say",
    )
    .likely(),
    // Slurm before it left this to the kernel; it counts in kibibytes.
    wording(
        &["exceeded memory limit (", " > ", "being killed"],
        OomDaemon,
        "Slurm killed the job for its memory",
    )
    .anywhere()
    .unit(Kibibytes)
    .used(&[After("memory limit (")])
    .total(After(" > ")),
    wording(
        &["exceeded virtual memory limit (", " > "],
        OomDaemon,
        "Slurm killed the job for its address space",
    )
    .anywhere()
    .unit(Kibibytes)
    .used(&[After("memory limit (")])
    .total(After(" > ")),
];
