//! What schedulers, container engines and CI services say about the job that they ended.

use super::wording::Mark::After;
use super::wording::{Wording, wording};
use crate::why::Cause::{CgroupOom, DiskFull, Hardware, Killed, OomDaemon, Stopped, TimeLimit};

pub(super) const WORDINGS: &[Wording] = &[
    // Slurm.
    wording(
        &["slurmstepd: error: Detected ", " oom_kill event"],
        CgroupOom,
        "Slurm counted kills for the job's memory limit",
    )
    .unless(&["Detected 0 "]),
    wording(
        &["slurmstepd: error: Detected ", " oom-kill event"],
        CgroupOom,
        "Slurm counted kills for the job's memory limit",
    )
    .unless(&["Detected 0 "]),
    wording(
        &["srun: error: ", "task", ": Out Of Memory"],
        CgroupOom,
        "Slurm says that a task was killed for the job's memory limit",
    ),
    wording(
        &["slurmstepd: error: Exceeded ", "memory limit at some point"],
        CgroupOom,
        "Slurm says that the job came to its memory limit at some time; the kernel may have coped",
    )
    .unknown(),
    wording(
        &["slurmstepd: error: *** ", " DUE TO TIME LIMIT ***"],
        TimeLimit,
        "Slurm ended the job at its time limit",
    ),
    wording(
        &["DUE TO TIME LIMIT"],
        TimeLimit,
        "Slurm ended the job at its time limit",
    )
    .anywhere(),
    wording(
        &["slurmstepd: error: *** ", " DUE TO PREEMPTION ***"],
        Stopped,
        "Slurm took the nodes for another job",
    ),
    wording(
        &["slurmstepd: error: *** ", " DUE TO NODE FAILURE"],
        Hardware,
        "Slurm says that a node failed",
    ),
    wording(
        &["slurmstepd: error: *** ", " CANCELLED AT ", " ***"],
        Stopped,
        "Slurm ended the job or a step of it; who asked for that it does not say",
    )
    .likely()
    .unless(&["DUE TO"]),
    wording(
        &["State: OUT_OF_MEMORY"],
        CgroupOom,
        "Slurm says that the job was killed for its memory limit",
    )
    .anywhere(),
    wording(
        &["JobState=OUT_OF_MEMORY"],
        CgroupOom,
        "Slurm says that the job was killed for its memory limit",
    )
    .anywhere(),
    // A line of `sacct`.
    wording(
        &["OUT_OF_ME", " 0:125"],
        CgroupOom,
        "Slurm says that the job was killed for its memory limit",
    )
    .anywhere(),
    wording(
        &["State: TIMEOUT"],
        TimeLimit,
        "Slurm ended the job at its time limit",
    )
    .anywhere(),
    wording(
        &["JobState=TIMEOUT"],
        TimeLimit,
        "Slurm ended the job at its time limit",
    )
    .anywhere(),
    // LSF.
    wording(
        &["TERM_MEMLIMIT: job killed"],
        OomDaemon,
        "LSF ended the job for its memory",
    ),
    wording(
        &["TERM_SWAP: job killed"],
        OomDaemon,
        "LSF ended the job for its memory",
    ),
    wording(
        &["TERM_RUNLIMIT: job killed"],
        TimeLimit,
        "LSF ended the job at its time limit",
    ),
    wording(
        &["TERM_CPULIMIT: job killed"],
        TimeLimit,
        "LSF ended the job at its limit of processor time",
    ),
    wording(
        &["TERM_OWNER: job killed by owner"],
        Stopped,
        "Its owner ended the job",
    ),
    wording(
        &["TERM_ADMIN: job killed"],
        Stopped,
        "An administrator ended the job",
    ),
    // PBS, Torque, Grid Engine.
    wording(
        &["PBS: job killed: mem ", "exceeded limit "],
        OomDaemon,
        "PBS ended the job for its memory",
    )
    .used(&[After("killed: mem ")])
    .total(After("exceeded limit ")),
    wording(
        &["PBS: job killed: vmem ", "exceeded limit "],
        OomDaemon,
        "PBS ended the job for its address space",
    )
    .used(&[After("killed: vmem ")])
    .total(After("exceeded limit ")),
    wording(
        &["PBS: job killed: pmem ", "exceeded limit "],
        OomDaemon,
        "PBS ended the job for its memory",
    )
    .used(&[After("killed: pmem ")])
    .total(After("exceeded limit ")),
    wording(
        &["PBS: job killed: walltime ", "exceeded limit "],
        TimeLimit,
        "PBS ended the job at its time limit",
    ),
    wording(
        &["PBS: job killed: cput ", "exceeded limit "],
        TimeLimit,
        "PBS ended the job at its limit of processor time",
    ),
    wording(
        &["Cgroup mem limit exceeded: "],
        CgroupOom,
        "PBS says that the job came to the limit of its cgroup",
    ),
    // Kubernetes and Docker.
    wording(
        &["OOMKilled"],
        CgroupOom,
        "The container was killed for its memory limit",
    )
    .whole(),
    wording(
        &["reason: OOMKilled"],
        CgroupOom,
        "The container was killed for its memory limit",
    ),
    wording(
        &["Reason:", "OOMKilled"],
        CgroupOom,
        "The container was killed for its memory limit",
    ),
    wording(
        &["\"reason\":", "\"OOMKilled\""],
        CgroupOom,
        "The container was killed for its memory limit",
    )
    .anywhere(),
    wording(
        &["OOMKilled (exit code 137)"],
        CgroupOom,
        "The container was killed for its memory limit",
    )
    .anywhere(),
    // A line of `kubectl get pods`: READY, STATUS, RESTARTS, AGE.
    wording(
        &["0/", " OOMKilled "],
        CgroupOom,
        "The container was killed for its memory limit",
    )
    .anywhere(),
    wording(
        &["\"OOMKilled\": true"],
        CgroupOom,
        "Docker says that the container was killed for its memory limit",
    ),
    wording(
        &["\"OOMKilled\":true"],
        CgroupOom,
        "Docker says that the container was killed for its memory limit",
    )
    .anywhere(),
    wording(
        &["The node was low on resource: memory"],
        OomDaemon,
        "Kubernetes ended the pod because the node was low on memory",
    )
    .anywhere()
    .used(&[After("was using ")]),
    wording(
        &["The node was low on resource: ephemeral-storage"],
        DiskFull,
        "Kubernetes ended the pod because the node's disk was full",
    )
    .anywhere(),
    wording(
        &["ephemeral local storage usage exceeds the total limit"],
        DiskFull,
        "The pod wrote more to disk than it may",
    )
    .anywhere(),
    wording(
        &["reason: Evicted"],
        OomDaemon,
        "Kubernetes ended the pod; for want of what it does not say here",
    )
    .unknown(),
    wording(
        &["Reason:", "Evicted"],
        OomDaemon,
        "Kubernetes ended the pod; for want of what it does not say here",
    )
    .unknown(),
    wording(
        &["Job was active longer than specified deadline"],
        TimeLimit,
        "Kubernetes ended the job at its time limit",
    )
    .anywhere(),
    wording(
        &["reason: DeadlineExceeded"],
        TimeLimit,
        "Kubernetes ended the job at its time limit",
    ),
    // CI services.
    wording(
        &["The runner has received a shutdown signal"],
        Stopped,
        "The machine of the CI service was told to shut down; want of memory can be behind it",
    )
    .unknown(),
    wording(
        &["runner: ", "lost communication with the server"],
        OomDaemon,
        "The CI service lost its machine, as happens when memory or processor time run out",
    )
    .anywhere()
    .unknown(),
    wording(
        &["has exceeded the maximum execution time of "],
        TimeLimit,
        "The CI service ended the job at its time limit",
    )
    .anywhere(),
    wording(
        &["Job failed: execution took longer than "],
        TimeLimit,
        "The CI service ended the job at its time limit",
    ),
    wording(
        &["The operation was canceled"],
        Stopped,
        "The CI service ended the job",
    )
    .likely(),
    // The cloud takes a machine back.
    wording(
        &["Job failed (system failure): pods ", "not found"],
        Killed,
        "The machine of the job is gone",
    )
    .unknown(),
];
