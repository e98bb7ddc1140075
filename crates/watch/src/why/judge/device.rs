//! Ends by a failing accelerator, and what was recorded of accelerators beside the words of a job.

use tidegate_memory::format_bytes;
use tidegate_runs::DeviceRecord;

use super::{Finding, Reading, observed, of_event};
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::devices::{device_source, of_device, slowed, was_used, xid_meaning};
use crate::why::facts::{Counter, CounterKind, DeviceFault};
use crate::why::log::{KernelEvent, KernelKind, Said, xid_is_hardware};
use crate::why::verdict::{Evidence, Grade, Standing};

/// Errors that a program on the device does not survive; others may be none of its business.
const FATAL: [u32; 8] = [48, 64, 74, 79, 94, 95, 119, 120];
/// What the libraries of accelerators call themselves when they fail.
const LIBRARIES: [&str; 8] = [
    "CUDA", "cuda", "NCCL", "CUDNN", "cuDNN", "CUBLAS", "cuBLAS", "GPU",
];

/// The device that the run computed on failed, and nothing that it said speaks against that.
pub(super) fn failing(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    if matches!(facts.exit, Some(Exit::Code(0)) | None) {
        return None;
    }
    let last_words = LastWords::of(reading);
    let hardware = |fault: &&DeviceFault| fault.xid.is_none_or(xid_is_hardware);
    let fault = of_this_run(reading).filter(hardware).last();
    let risen = |counter: &&Counter| counter.kind == CounterKind::DeviceErrors && counter.rise() > Some(0);
    let counter = facts.counters.iter().find(risen);
    let is_hardware = |event: &&KernelEvent| matches!(event.kind, KernelKind::Device { hardware: true, .. });
    let sentence = match (fault, last_words) {
        (_, LastWords::OfOthers) => return None,
        (Some(fault), _) => format!(
            "the GPU failed: {}, on {}",
            meaning(fault),
            named(reading, fault.index)
        ),
        // Without a word of the device, the errors are those of a machine that others use, too.
        (None, LastWords::None) => return None,
        (None, LastWords::OfDevice) => match counter {
            Some(counter) => format!(
                "the GPU failed: it counted {} more errors that it could not correct",
                counter.rise().unwrap_or(0)
            ),
            None => format!(
                "the GPU failed: {}",
                reading.of_this_run().find(is_hardware)?.text
            ),
        },
    };
    let known = fault.is_some_and(|fault| {
        fault.xid.is_none_or(|xid| FATAL.contains(&xid))
            && of_device(reading.case, fault.index).any(|record| record.memory_own > Some(0))
    });
    let lines = reading.kernel.iter().filter(is_hardware);
    let evidence = fault.map(|fault| of_fault(reading, fault)).into_iter();
    Some(Finding {
        cause: Cause::Hardware,
        grade: match known && last_words == LastWords::OfDevice {
            true => Grade::Proven,
            false => Grade::Likely,
        },
        sentence,
        evidence: evidence
            .chain(counter.map(Counter::evidence))
            .chain(lines.map(|event| of_event(event, &facts.kernel.source)))
            .collect(),
    })
}

/// Whom the last words of a job blame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LastWords {
    None,
    OfDevice,
    OfOthers,
}

impl LastWords {
    fn of(reading: &Reading) -> LastWords {
        let unhandled = |said: &&Said| !said.handled && said.grade > Grade::Unknown;
        let said = reading.said.iter().rfind(unhandled);
        let of_device = |text: &str| LIBRARIES.iter().any(|library| text.contains(library));
        let vague = |said: &Said| {
            let causes = [
                Cause::Failed,
                Cause::Hang,
                Cause::Hardware,
                Cause::Abort,
                Cause::SegmentationFault,
            ];
            causes.contains(&said.cause)
        };
        match (said, &reading.traceback) {
            (Some(said), _) if !vague(said) => LastWords::OfOthers,
            (Some(said), _) if said.cause == Cause::Hardware || of_device(&said.text) => LastWords::OfDevice,
            (_, Some(traceback)) if of_device(&traceback.message) => LastWords::OfDevice,
            (_, Some(_)) => LastWords::OfOthers,
            _ => LastWords::None,
        }
    }
}

/// What was recorded of accelerators that is worth knowing with such a cause.
pub(super) fn beside(reading: &Reading, found: &Finding) -> Vec<Evidence> {
    let case = reading.case;
    let mut evidence = Vec::new();
    match found.cause {
        Cause::DeviceMemory => evidence.extend(fullest(reading).map(of_memory)),
        Cause::Hardware
        | Cause::Failed
        | Cause::Hang
        | Cause::Abort
        | Cause::SegmentationFault
        | Cause::IndexError
        | Cause::Unknown => evidence.extend(of_this_run(reading).map(|fault| of_fault(reading, fault))),
        _ => {}
    }
    if found.cause == Cause::Hardware {
        evidence.extend(heat(reading).into_iter().map(|(record, text)| Evidence {
            standing: Standing::Partial,
            text,
            source: device_source(record),
        }));
    }
    evidence.retain(|line| !found.evidence.contains(line));
    // Of a machine without a device, it is no news that there is none.
    let about_devices = matches!(found.cause, Cause::DeviceMemory | Cause::Hardware);
    let unavailable = case.facts.devices_unavailable.as_ref();
    evidence.extend(
        unavailable
            .filter(|_| about_devices || !case.devices.is_empty())
            .map(|why| Evidence {
                standing: Standing::Unavailable,
                text: why.clone(),
                source: "accelerators, NVML".into(),
            }),
    );
    evidence
}

/// What drivers reported and what ran hot, whatever the end.
pub(super) fn notes(reading: &Reading) -> Vec<String> {
    let faults = reading.case.facts.device_faults.iter().take(5);
    let faults = faults.map(|fault| {
        let device = named(reading, fault.index);
        format!(
            "the driver reported of {device}: {} ({})",
            meaning(fault),
            after(fault)
        )
    });
    let heat = heat(reading).into_iter();
    let heat = heat.map(|(record, text)| format!("{}: {text}", named(reading, record.index)));
    faults.chain(heat).collect()
}

/// Errors of devices that the run used, or may have used.
fn of_this_run<'r>(reading: &'r Reading) -> impl Iterator<Item = &'r DeviceFault> {
    let ours = |fault: &&DeviceFault| {
        let records: Vec<&DeviceRecord> = of_device(reading.case, fault.index).collect();
        records.is_empty() || was_used(&records)
    };
    reading.case.facts.device_faults.iter().filter(ours)
}

/// The devices of this run that were too hot, with what to say of it.
fn heat<'r>(reading: &'r Reading) -> Vec<(&'r DeviceRecord, String)> {
    let mut found: Vec<(&DeviceRecord, String)> = Vec::new();
    for record in &reading.case.devices {
        if found.iter().any(|(known, _)| known.index == record.index) {
            continue;
        }
        let records: Vec<&DeviceRecord> = of_device(reading.case, record.index).collect();
        let reasons = slowed(records.iter().copied());
        if reasons.contains(&"heat") && was_used(&records) {
            let hottest = records.iter().filter_map(|record| record.temperature).max();
            let hottest = hottest.map_or(String::new(), |degrees| format!(", at up to {degrees} °C"));
            found.push((
                record,
                format!("it was slowed down by {}{hottest}", reasons.join(" and ")),
            ));
        }
    }
    found
}

/// The fullest moment of a device of this run; of any device where none is known to be.
fn fullest<'r>(reading: &'r Reading) -> Option<&'r DeviceRecord> {
    let records = &reading.case.devices;
    let owned = |index: u32| of_device(reading.case, index).any(|record| record.memory_own > Some(0));
    let any = records.iter().any(|record| record.memory_own > Some(0));
    let part = |record: &&DeviceRecord| {
        let (used, total) = (
            record.memory_used?,
            record.memory_total.filter(|total| *total > 0)?,
        );
        Some(used as f64 / total as f64)
    };
    let candidates = records.iter().filter(|record| !any || owned(record.index));
    let with_part = candidates.filter_map(|record| Some((part(&record)?, record)));
    with_part
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, record)| record)
}

fn of_memory(record: &DeviceRecord) -> Evidence {
    let size = |bytes: Option<u64>| bytes.map_or("unavailable".into(), format_bytes);
    let whose = match (record.memory_used, record.memory_own) {
        (Some(used), Some(own)) if own < used / 2 => {
            format!("{} by this run: others held most of it", format_bytes(own))
        }
        (_, Some(own)) => format!("{} by this run", format_bytes(own)),
        (_, None) => "how much of it by this run is not known".into(),
    };
    Evidence {
        standing: match record.memory_own {
            Some(_) => Standing::Observed,
            None => Standing::Partial,
        },
        text: format!(
            "{} of {} in use, {whose}",
            size(record.memory_used),
            size(record.memory_total)
        ),
        source: device_source(record),
    }
}

fn of_fault(reading: &Reading, fault: &DeviceFault) -> Evidence {
    let record = of_device(reading.case, fault.index).next();
    let source = record.map_or_else(|| format!("NVML, device {}", fault.index), device_source);
    observed(format!("{}, {}", meaning(fault), after(fault)), source)
}

fn meaning(fault: &DeviceFault) -> String {
    let Some(xid) = fault.xid else {
        return "its driver has lost it".into();
    };
    match xid_meaning(xid) {
        Some(meaning) => format!("Xid {xid}, {meaning}"),
        None => format!("Xid {xid}"),
    }
}

fn after(fault: &DeviceFault) -> String {
    format!("{:.1} s after the start", fault.time_ms as f64 / 1e3)
}

fn named(reading: &Reading, index: u32) -> String {
    match of_device(reading.case, index).next() {
        Some(record) => format!("device {index} ({})", record.name),
        None => format!("device {index}"),
    }
}

#[cfg(test)]
mod tests;
