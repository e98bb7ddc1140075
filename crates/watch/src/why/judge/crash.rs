//! Where native code crashed: the function, and the line of Python that had called it.

use tidegate_runs::Frame;

use super::{Reading, observed};
use crate::why::cause::Cause;
use crate::why::facts::Crash;
use crate::why::log::KernelKind;
use crate::why::verdict::{Evidence, Standing};

/// A stack that was seen so long before the end says where it was then, not where it ended.
const SHORTLY_MS: u64 = 2_000;
const MOST_FRAMES: usize = 5;

/// What is known of the place of a crash; nothing of other ends.
pub(super) fn place(reading: &Reading, cause: Cause) -> Vec<Evidence> {
    let crashes = [
        Cause::SegmentationFault,
        Cause::IllegalInstruction,
        Cause::Abort,
        Cause::StackOverflow,
    ];
    if !crashes.contains(&cause) {
        return Vec::new();
    }
    let ours = |crash: &&Crash| reading.pids.contains(&crash.pid);
    // Python's own fault handler has said more.
    let told = reading
        .said
        .iter()
        .any(|said| said.text.starts_with("Fatal Python error"));
    let functions = reading.case.facts.crashes.iter().filter(ours).map(of_crash);
    functions.chain(last_stack(reading).filter(|_| !told)).collect()
}

fn of_crash(crash: &Crash) -> Evidence {
    observed(
        format!("process {} crashed in {}", crash.pid, crash.function),
        format!("the symbols of {}", crash.module.display()),
    )
}

/// The last stack of Python that was seen of the process that crashed.
fn last_stack(reading: &Reading) -> Option<Evidence> {
    let case = reading.case;
    let faults = reading.of_this_run().filter(|event| {
        matches!(
            event.kind,
            KernelKind::Segfault { .. }
                | KernelKind::InvalidOpcode { .. }
                | KernelKind::GeneralProtection { .. }
        )
    });
    let pid = faults.filter_map(|event| event.pid).last().or(case.facts.pid)?;
    let sample = case.stacks.samples.iter().rfind(|sample| sample.pid == pid)?;
    let before_ms = case.facts.duration_ms?.saturating_sub(sample.time_ms);
    // The thread that did something, if only one did.
    let thread = sample
        .threads
        .iter()
        .find(|thread| thread.active)
        .or(sample.threads.first())?;
    let frames: Vec<&Frame> = thread
        .frames
        .iter()
        .filter_map(|number| case.stacks.frames.get(*number as usize))
        .filter(|frame| !frame.file.starts_with("<frozen "))
        .take(MOST_FRAMES)
        .collect();
    if frames.is_empty() || before_ms > SHORTLY_MS {
        return None;
    }
    let lines: Vec<String> = frames
        .iter()
        .map(|frame| format!("{}:{} in {}", frame.file, frame.line, frame.function))
        .collect();
    Some(Evidence {
        standing: Standing::Partial,
        text: lines.join(", called by "),
        source: format!("its stack of Python {before_ms} ms before the end"),
    })
}
