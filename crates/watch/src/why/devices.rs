//! What the accelerators did during a run, in a line each.

use serde::{Deserialize, Serialize};
use tidegate_memory::format_bytes;
use tidegate_runs::DeviceRecord;

use super::facts::{Case, DeviceFault};

/// NVML's bits of why a device runs slower than it could; those that no load explains.
const SLOWED: [(u64, &str); 3] = [
    (0x20 | 0x40, "heat"),
    (0x80, "a power brake"),
    // Set with either of the others, too.
    (0x08, "a slowdown of its hardware"),
];
/// Memory that moved by more than this part of all of it was moved by somebody.
const MOVE: u64 = 100;

/// What one accelerator did. `None` is "not available".
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DeviceSummary {
    pub index: u32,
    pub name: String,
    /// The most of its memory that was in use, and that this run held.
    pub memory_used: Option<u64>,
    pub memory_own: Option<u64>,
    pub memory_total: Option<u64>,
    /// The highest, in degrees Celsius.
    pub temperature: Option<u64>,
    /// What slowed it down: `heat`, `a power brake`, …
    pub throttled: Vec<String>,
    /// Memory errors that could not be corrected, during the run.
    pub uncorrected_errors: Option<u64>,
    /// Errors that its driver reported, by NVIDIA's numbers.
    pub xids: Vec<u32>,
}

/// The accelerators that the run used, as far as can be told, and those that failed meanwhile.
pub fn devices(case: &Case) -> Vec<DeviceSummary> {
    let mut indices: Vec<u32> = case.devices.iter().map(|record| record.index).collect();
    indices.sort_unstable();
    indices.dedup();
    let summaries = indices.into_iter().map(|index| {
        let records: Vec<&DeviceRecord> = of_device(case, index).collect();
        (summary(case, &records), was_used(&records))
    });
    summaries
        .filter(|(summary, used)| *used || !summary.xids.is_empty() || summary.uncorrected_errors > Some(0))
        .map(|(summary, _)| summary)
        .collect()
}

impl DeviceSummary {
    /// `device 0, NVIDIA A100: 15.6 GB of 16 GB in use at the most, 15.1 GB by this run, at up to 71 °C`
    pub fn line(&self) -> String {
        let mut parts = Vec::new();
        if let (Some(used), Some(total)) = (self.memory_used, self.memory_total) {
            let (used, total) = (format_bytes(used), format_bytes(total));
            parts.push(format!("{used} of {total} in use at the most"));
        }
        parts.extend(
            self.memory_own
                .map(|own| format!("{} by this run", format_bytes(own))),
        );
        parts.extend(self.temperature.map(|degrees| format!("at up to {degrees} °C")));
        if !self.throttled.is_empty() {
            parts.push(format!("slowed down by {}", self.throttled.join(" and ")));
        }
        let errors = self.uncorrected_errors.filter(|errors| *errors > 0);
        parts.extend(errors.map(|errors| format!("{errors} uncorrected ECC errors")));
        parts.extend(self.xids.iter().map(|xid| format!("Xid {xid}")));
        format!("device {}, {}: {}", self.index, self.name, parts.join(", "))
    }
}

/// Where the figures of a device come from: the kernel's own files for those that are named like them.
pub(crate) fn device_source(record: &DeviceRecord) -> String {
    match record.name.starts_with("amdgpu ") {
        true => format!("sysfs, {}", record.name),
        false => format!("NVML, device {} ({})", record.index, record.name),
    }
}

/// What an error of an NVIDIA device is about, by NVIDIA's catalogue of Xid errors.
pub(super) fn xid_meaning(xid: u32) -> Option<&'static str> {
    Some(match xid {
        13 => "an exception of the graphics engine",
        31 => "code on the GPU touched memory that is not its own",
        43 => "the GPU stopped processing for a program's error",
        45 => "the GPU cleaned up after a program",
        48 => "an ECC error that could not be corrected",
        63 => "a bad row of memory was noted to be replaced",
        64 => "a bad row of memory could not be replaced",
        68 => "an exception of the video decoder",
        74 => "an NVLink error",
        79 => "the GPU has fallen off the bus",
        92 => "many corrected ECC errors",
        94 => "a contained ECC error",
        95 => "an uncontained ECC error",
        119 | 120 => "the GPU's own processor (GSP) failed",
        _ => return None,
    })
}

pub(super) fn of_device(case: &Case, index: u32) -> impl Iterator<Item = &DeviceRecord> {
    case.devices.iter().filter(move |record| record.index == index)
}

/// Whether the run had memory of it; where nobody tells whose it was, whether any came or went.
pub(super) fn was_used(records: &[&DeviceRecord]) -> bool {
    let own: Vec<u64> = records.iter().filter_map(|record| record.memory_own).collect();
    if !own.is_empty() {
        return own.iter().any(|own| *own > 0);
    }
    let used = || records.iter().filter_map(|record| record.memory_used);
    let total = records.iter().filter_map(|record| record.memory_total).max();
    let moved = used().max().unwrap_or(0) - used().min().unwrap_or(0);
    moved > total.unwrap_or(0) / MOVE
}

/// What slowed a device down that no load explains.
pub(super) fn slowed<'r>(records: impl Iterator<Item = &'r DeviceRecord>) -> Vec<&'static str> {
    let bits = records
        .filter_map(|record| record.throttle_reasons)
        .fold(0, |all, bits| all | bits);
    let reasons = SLOWED.iter().filter(|(bit, _)| bits & bit != 0);
    let mut reasons: Vec<&str> = reasons.map(|(_, reason)| *reason).collect();
    if reasons.len() > 1 {
        reasons.retain(|reason| *reason != SLOWED[2].1);
    }
    reasons
}

fn summary(case: &Case, records: &[&DeviceRecord]) -> DeviceSummary {
    let most =
        |field: fn(&DeviceRecord) -> Option<u64>| records.iter().filter_map(|record| field(record)).max();
    let index = records[0].index;
    let errors = || records.iter().filter_map(|record| record.uncorrected_errors);
    let faults = case.facts.device_faults.iter();
    DeviceSummary {
        index,
        name: records[0].name.clone(),
        memory_used: most(|record| record.memory_used),
        memory_own: most(|record| record.memory_own),
        memory_total: most(|record| record.memory_total),
        temperature: most(|record| record.temperature),
        throttled: slowed(records.iter().copied())
            .into_iter()
            .map(str::to_owned)
            .collect(),
        uncorrected_errors: errors()
            .max()
            .zip(errors().min())
            .map(|(most, least)| most - least),
        xids: faults
            .filter(|fault: &&DeviceFault| fault.index == index)
            .filter_map(|fault| fault.xid)
            .collect(),
    }
}
