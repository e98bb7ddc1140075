//! Errors of the machine itself, from counters before and after and from the kernel's log: a cause where nothing else
//! explains the end, and worth a note in any case.

use super::{Finding, Reading, device, of_event};
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::facts::{Counter, CounterKind};
use crate::why::log::{KernelEvent, KernelKind};
use crate::why::verdict::Grade;

/// Errors that end programs, when this one ended badly.
pub(super) fn failing(reading: &Reading) -> Option<Finding> {
    // A program that says what it stumbled over did not stumble over the machine.
    if matches!(reading.case.facts.exit, Some(Exit::Code(0))) || reading.traceback.is_some() {
        return None;
    }
    let grave = |counter: &&Counter| {
        let kinds = [
            CounterKind::UncorrectedErrors,
            CounterKind::MachineChecks,
            CounterKind::DiskErrors,
            CounterKind::DeviceErrors,
        ];
        kinds.contains(&counter.kind) && counter.rise() > Some(0)
    };
    let counter = reading.case.facts.counters.iter().find(grave);
    let event = reading.kernel.iter().find(|event| {
        matches!(
            event.kind,
            KernelKind::MemoryErrors { corrected: false, .. }
                | KernelKind::MachineCheck
                | KernelKind::Device { hardware: true, .. }
                | KernelKind::DiskError { .. }
        )
    });
    let what = match (counter, event) {
        (Some(counter), _) => of_counter(counter.kind),
        (None, Some(event)) => of_kind(&event.kind),
        (None, None) => return None,
    };
    let lines = event
        .iter()
        .map(|event| of_event(event, &reading.case.facts.kernel.source));
    Some(Finding {
        cause: Cause::Hardware,
        // Others may have met the errors: the machine counts for all.
        grade: Grade::Likely,
        sentence: format!("the machine reported {what} while it ran"),
        evidence: counter.map(Counter::evidence).into_iter().chain(lines).collect(),
    })
}

/// What the machine reported, whatever the end.
pub(super) fn notes(reading: &Reading) -> Vec<String> {
    let risen = |counter: &&Counter| {
        !matches!(counter.kind, CounterKind::OomKills | CounterKind::SwappedIn) && counter.rise() > Some(0)
    };
    let counters = reading.case.facts.counters.iter().filter(risen).map(|counter| {
        let rise = counter.rise().unwrap_or(0);
        format!(
            "the machine counted {rise} more {} ({})",
            of_counter(counter.kind),
            counter.source
        )
    });
    let hardware = |event: &&KernelEvent| event.cause() == Cause::Hardware;
    let events = reading.kernel.iter().filter(hardware).take(5);
    counters
        .chain(events.map(|event| format!("the kernel reported {}: {}", of_kind(&event.kind), event.text)))
        .chain(device::notes(reading))
        .collect()
}

fn of_counter(kind: CounterKind) -> &'static str {
    match kind {
        CounterKind::OomKills => "kills for want of memory",
        CounterKind::CorrectedErrors => "corrected memory errors",
        CounterKind::UncorrectedErrors => "memory errors that could not be corrected",
        CounterKind::MachineChecks => "machine checks",
        CounterKind::Throttled => "times of less speed for heat",
        CounterKind::DiskErrors => "disk errors",
        CounterKind::SwappedIn => "pages from swap",
        CounterKind::DeviceErrors => "errors of an accelerator",
    }
}

fn of_kind(kind: &KernelKind) -> &'static str {
    match kind {
        KernelKind::MemoryErrors { corrected: true, .. } => "corrected memory errors",
        KernelKind::MemoryErrors { .. } => "memory errors that could not be corrected",
        KernelKind::MachineCheck => "machine checks",
        KernelKind::Throttled => "that it slowed down for heat",
        KernelKind::Device { .. } => "errors of an accelerator",
        KernelKind::DiskError { .. } => "disk errors",
        _ => "an error",
    }
}
