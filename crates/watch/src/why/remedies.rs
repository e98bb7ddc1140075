//! What helps against a cause in general, whatever the code looks like.

use tidegate_memory::format_bytes;

use super::{Case, Cause, Remedy};

/// What to change outside of the code: limits, options, the command itself.
pub fn general_remedies(case: &Case, cause: Cause) -> Vec<Remedy> {
    let mut remedies: Vec<Remedy> = Vec::new();
    let hint = case
        .facts
        .failure
        .as_ref()
        .and_then(|failure| failure.hint.as_ref());
    if let Some(hint) = hint.filter(|_| cause == Cause::Failed) {
        remedies.push(remedy("Do what the worker itself suggests", None, hint));
    }
    remedies.extend(go_on_with_less(case, cause));
    remedies.extend(more_memory(case, cause));
    remedies.extend(fewer_workers(case, cause));
    let runs_python = !case.stacks.samples.is_empty();
    remedies.extend(
        KNOWN
            .iter()
            .filter(|(causes, ..)| causes.contains(&cause))
            .filter(|(_, _, command, _)| *command != FAULT_HANDLER || runs_python)
            .filter(|(_, title, ..)| *title != RAISE_ABOVE || case.facts.limit.is_none())
            .map(|(_, title, command, why)| remedy(title, (!command.is_empty()).then_some(*command), why)),
    );
    remedies
}

fn remedy(title: &str, command: Option<&str>, why: &str) -> Remedy {
    Remedy {
        title: title.into(),
        place: None,
        before: None,
        after: None,
        command: command.map(str::to_string),
        saves: None,
        measured: false,
        why: why.into(),
    }
}

/// What was saved can be taken up again, with what is left where that is enough.
fn go_on_with_less(case: &Case, cause: Cause) -> Option<Remedy> {
    let taken = case
        .facts
        .taken
        .as_ref()
        .filter(|_| cause == Cause::MemoryTaken)?;
    if !case.facts.saved {
        return None;
    }
    let run = case.run.as_deref().unwrap_or("last");
    Some(match taken.enough {
        Some(enough) => remedy(
            "Go on with what is left",
            Some(&format!("tidegate resume {run} --memory {}", as_option(enough))),
            "A plan for what is left fits, and ends at the same model.",
        ),
        None => remedy(
            "Go on when the memory is there again",
            Some(&format!("tidegate resume {run}")),
            &format!(
                "It cannot do with less than {} as it is. Nothing that it learned is lost.",
                format_bytes(taken.needs)
            ),
        ),
    })
}

/// How much more than it was seen to need: the next look may have found more.
const ROOM: f64 = 1.2;

/// A line that is drawn higher, where there is one and the run came to it.
fn more_memory(case: &Case, cause: Cause) -> Option<Remedy> {
    let limit = case.facts.limit?;
    if !matches!(
        cause,
        Cause::Line | Cause::CgroupOom | Cause::ChildOom | Cause::MemoryError | Cause::BadAlloc
    ) {
        return None;
    }
    let over = case.facts.over_line.map(|over| over.used);
    let need = [case.facts.peak, over, Some(limit)].into_iter().flatten().max()?;
    let enough = rounded_up((need as f64 * ROOM) as u64);
    let option = format!("--memory {}", as_option(enough));
    let why = format!(
        "It had {} when it ended, under a line of {}, and wanted more. If it grows with every step, more memory only \
         puts the end off.",
        format_bytes(need),
        format_bytes(limit)
    );
    Some(remedy("Draw the line higher", Some(&option), &why))
}

/// A size as it is written behind `--memory`.
fn as_option(bytes: u64) -> String {
    format_bytes(bytes).replace(' ', "")
}

/// Two figures, upwards: what is asked for is a round number.
fn rounded_up(bytes: u64) -> u64 {
    let digits = bytes.max(1).ilog10();
    let unit = 10_u64.pow(digits.saturating_sub(1));
    bytes.div_ceil(unit).saturating_mul(unit)
}

/// Processes that hold much beside the first one.
fn fewer_workers(case: &Case, cause: Cause) -> Option<Remedy> {
    if !cause.is_memory() || matches!(cause, Cause::DeviceMemory | Cause::SharedMemory) {
        return None;
    }
    let last = case.processes.iter().map(|record| record.time_ms).max()?;
    // The last look of each process is at most some seconds older than the last of all.
    let late = case
        .processes
        .iter()
        .filter(|record| record.time_ms + 5_000 >= last);
    let mut held: std::collections::HashMap<(i32, u64), u64> = std::collections::HashMap::new();
    for record in late {
        let bytes = record.private.or(record.proportional).or(record.resident);
        held.insert((record.pid, record.start_time), bytes.unwrap_or(0));
    }
    let first = case.facts.pid.unwrap_or_default();
    let workers: Vec<u64> = held
        .iter()
        .filter(|((pid, _), _)| *pid != first)
        .map(|(_, bytes)| *bytes)
        .collect();
    let all: u64 = held.values().sum();
    let theirs: u64 = workers.iter().sum();
    let share = theirs as f64 / all.max(1) as f64;
    if workers.len() < 2 || share < 0.3 {
        return None;
    }
    let number = workers.len();
    Some(Remedy {
        saves: Some(theirs / 2),
        measured: true,
        ..remedy(
            "Let half as many processes work side by side",
            None,
            &format!(
                "{number} processes beside the first held {} for themselves in the end, {:.0}% of all. `num_workers`, \
                 `n_jobs` or the size of the pool says how many there are.",
                format_bytes(theirs),
                share * 100.0
            ),
        )
    })
}

/// For a limit that somebody else has set.
const RAISE_ABOVE: &str = "Raise the limit of the container or the job";
/// Makes Python print its stack when it crashes.
const FAULT_HANDLER: &str = "PYTHONFAULTHANDLER=1";

/// What is known to help: the causes, a title, a command and why.
const KNOWN: &[(&[Cause], &str, &str, &str)] = &[
    (
        &[Cause::HostOom, Cause::OomDaemon, Cause::Thrashing],
        "Give the run a line of its own",
        "--memory 80%",
        "Then only this run ends when it needs too much, before the machine does, and what it needed is on record.",
    ),
    (
        &[Cause::CgroupOom],
        RAISE_ABOVE,
        "",
        "`--memory` of Docker, `resources.limits.memory` of Kubernetes, `--mem` of Slurm; page cache and shared memory count.",
    ),
    (
        &[Cause::AddressSpace],
        "Take the limit off the address space",
        "ulimit -v unlimited",
        "What ran out is addresses, not memory: libraries reserve far more of them than they use.",
    ),
    (
        &[Cause::SharedMemory],
        "Make /dev/shm larger",
        "docker run --shm-size=8g",
        "Workers hand over batches through `/dev/shm`, which a container has 64 MB of unless told otherwise.",
    ),
    (
        &[Cause::SharedMemory],
        "Load in the process itself",
        "",
        "With `num_workers=0` nothing goes through shared memory; fewer workers and smaller batches need less of it.",
    ),
    (
        &[Cause::OpenFiles],
        "Allow more open files",
        "ulimit -n 65536",
        "The soft limit is often 1,024 and can be raised up to the hard one without being root.",
    ),
    (
        &[Cause::OpenFiles],
        "Share tensors by file name",
        "",
        "`torch.multiprocessing.set_sharing_strategy(\"file_system\")`: each tensor that a worker hands over else holds a file open.",
    ),
    (
        &[Cause::Processes],
        "Start fewer threads",
        "OMP_NUM_THREADS=1",
        "Every worker starts a thread for each core in each library of numbers: OpenMP, OpenBLAS, MKL.",
    ),
    (
        &[Cause::Processes],
        "Allow more processes",
        "ulimit -u 65536",
        "Threads count as processes; a container has its own limit (`--pids-limit` of Docker).",
    ),
    (
        &[Cause::DeviceMemory],
        "Let PyTorch put free pieces together",
        "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
        "Helps where much is reserved and not in use: the message says how much.",
    ),
    (
        &[Cause::DeviceMemory],
        "Compute in half precision",
        "",
        "`torch.autocast(\"cuda\", dtype=torch.bfloat16)` halves the activations; `torch.utils.checkpoint` computes them again \
         instead of keeping them.",
    ),
    (
        &[Cause::DiskFull],
        "Make room, or write elsewhere",
        "df -h . /tmp",
        "`TMPDIR` says where temporary files go, `TIDEGATE_HOME` where runs and packs are kept; old checkpoints can go.",
    ),
    (
        &[Cause::StackOverflow],
        "Allow a larger stack",
        "ulimit -s unlimited",
        "Only where the recursion ends by itself; one that never ends needs another end.",
    ),
    (
        &[Cause::SegmentationFault, Cause::Abort, Cause::IllegalInstruction],
        "Let Python say where it was",
        FAULT_HANDLER,
        "The next time the line of Python that called into native code is printed before the process dies.",
    ),
    (
        &[Cause::SegmentationFault, Cause::Abort],
        "Keep the memory of the next crash",
        "ulimit -c unlimited",
        "`coredumpctl gdb`, or `gdb PROGRAM core` where there is no systemd, then shows the calls that led to it (`bt`).",
    ),
    (
        &[Cause::IllegalInstruction],
        "Install a build for this processor",
        "lscpu",
        "A library was built with instructions that this processor does not have, such as AVX2 or AVX-512.",
    ),
    (
        &[Cause::TimeLimit],
        "Ask for more time, or save on the way",
        "",
        "A checkpoint every few minutes lets the next job go on where this one was ended.",
    ),
    (
        &[Cause::Hang],
        "See whether it hangs without workers",
        "",
        "`num_workers=0`, and `multiprocessing.set_start_method(\"spawn\")`: a lock that a thread held at the moment of a fork \
         stays locked in the child for ever.",
    ),
    (
        &[Cause::NotANumber],
        "Find the step that it began in",
        "",
        "`torch.autograd.set_detect_anomaly(True)` names the operation; a lower learning rate, clipped gradients and a look at \
         the data for missing values are what mostly helps.",
    ),
    (
        &[Cause::Hardware],
        "Run it on another machine",
        "",
        "Errors of memory, devices or disks come back, and results in between cannot be trusted.",
    ),
];
