//! NVIDIA's devices, asked through the library of their driver.

use std::collections::HashMap;
use std::path::Path;

use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::enums::device::UsedGpuMemory;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::struct_wrappers::device::ProcessInfo;
use nvml_wrapper::{Device, EventSet, Nvml};
use tidegate_runs::DeviceRecord;

use super::Look;

pub(super) const NO_DRIVER: &str = "no NVIDIA driver";
/// The namespace of processes that the machine starts with: `PROC_PID_INIT_INO` in the kernel's `proc_ns.h`.
const FIRST_NAMESPACE: &str = "pid:[4026531836]";
/// Errors of one device that are taken at once.
const MOST_EVENTS: usize = 16;

pub(super) struct Nvidia {
    nvml: &'static Nvml,
    devices: Vec<Known>,
    /// Whether the driver and we call processes by the same numbers.
    same_numbers: bool,
}

struct Known {
    index: u32,
    name: String,
    device: Device<'static>,
    /// `None` where it tells no errors.
    events: Option<EventSet<'static>>,
    lost: bool,
}

impl Nvidia {
    /// Opens the driver's library, where the system has it or there; says why it cannot be used.
    pub(super) fn open(library: Option<&Path>) -> Result<Nvidia, String> {
        let mut builder = Nvml::builder();
        if let Some(library) = library {
            builder.lib_path(library.as_os_str());
        }
        let nvml = builder.init().map_err(|error| match error {
            NvmlError::LibloadingError(_) => NO_DRIVER.into(),
            error => format!("NVML: {error}"),
        })?;
        // It is open until this process ends: where nobody else has it open, closing takes the driver seconds.
        let nvml: &'static Nvml = Box::leak(Box::new(nvml));
        let count = nvml.device_count().map_err(|error| format!("NVML: {error}"))?;
        let devices: Vec<Known> = (0..count).filter_map(|index| known(nvml, index)).collect();
        if devices.is_empty() {
            return Err("the NVIDIA driver shows no device".into());
        }
        let namespace = std::fs::read_link("/proc/self/ns/pid");
        Ok(Nvidia {
            nvml,
            devices,
            same_numbers: namespace.is_ok_and(|namespace| namespace == Path::new(FIRST_NAMESPACE)),
        })
    }

    pub(super) fn look(&mut self, living: &[i32]) -> Look {
        let mut look = Look::default();
        for known in self.devices.iter_mut().filter(|known| !known.lost) {
            let xids = known.faults().into_iter();
            look.faults.extend(xids.map(|xid| (known.index, Some(xid))));
            let record = known.record(self.nvml, living, self.same_numbers);
            match known.lost {
                true => look.faults.push((known.index, None)),
                false => look.records.push(record),
            }
        }
        look
    }
}

fn known(nvml: &'static Nvml, index: u32) -> Option<Known> {
    let device = nvml.device_by_index(index).ok()?;
    // A set for each device: one that refuses takes its whole set with it.
    let events = nvml.create_event_set().ok();
    let events = events.and_then(|set| device.register_events(EventTypes::CRITICAL_XID_ERROR, set).ok());
    Some(Known {
        index,
        name: device.name().unwrap_or_else(|_| format!("GPU {index}")),
        device,
        events,
        lost: false,
    })
}

impl Known {
    /// The errors since the last look.
    fn faults(&mut self) -> Vec<u32> {
        let mut xids = Vec::new();
        for _ in 0..MOST_EVENTS {
            let Some(set) = &self.events else { break };
            match set.wait(0) {
                Ok(event) => xids.extend(event.event_data.and_then(|xid| match xid {
                    XidError::Value(xid) => u32::try_from(xid).ok(),
                    XidError::Unknown => None,
                })),
                Err(NvmlError::Timeout) => break,
                Err(error) => {
                    self.lost |= matches!(error, NvmlError::GpuLost);
                    self.events = None;
                }
            }
        }
        xids
    }

    fn record(&mut self, nvml: &Nvml, living: &[i32], same_numbers: bool) -> DeviceRecord {
        let device = &self.device;
        let memory = match device.memory_info() {
            Ok(memory) => Some((memory.used, memory.total)),
            Err(NvmlError::GpuLost) => {
                self.lost = true;
                None
            }
            Err(_) => old_memory(nvml, device),
        };
        let processes = device.running_compute_processes().map(|mut processes| {
            processes.extend(device.running_graphics_processes().unwrap_or_default());
            processes
        });
        let utilization = device.utilization_rates().ok();
        let reasons = device.current_throttle_reasons().ok();
        let errors = device.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile);
        DeviceRecord {
            time_ms: 0,
            index: self.index,
            name: self.name.clone(),
            memory_used: memory.map(|(used, _)| used),
            memory_total: memory.map(|(_, total)| total),
            memory_own: processes.ok().and_then(|all| own(&all, living, same_numbers)),
            utilization: utilization.map(|utilization| utilization.gpu.into()),
            temperature: device.temperature(TemperatureSensor::Gpu).ok().map(u64::from),
            throttle_reasons: reasons.map(|reasons| reasons.bits()),
            uncorrected_errors: errors.ok(),
        }
    }
}

/// Used and total memory, as drivers before 510 tell it.
fn old_memory(nvml: &Nvml, device: &Device<'_>) -> Option<(u64, u64)> {
    let ask = nvml.lib().nvmlDeviceGetMemoryInfo.as_ref().ok()?;
    // SAFETY: three numbers, for which zero is a value.
    let mut memory = unsafe { std::mem::zeroed() };
    // SAFETY: the handle is of this library, which is never closed, and the answer goes into a local structure.
    let answer = unsafe { ask(device.handle(), &mut memory) };
    (answer == 0).then_some((memory.used, memory.total))
}

/// What processes of the job hold. `None` where the driver does not tell, or may speak of other numbers than we do.
fn own(processes: &[ProcessInfo], living: &[i32], same_numbers: bool) -> Option<u64> {
    let ours = |process: &&ProcessInfo| i32::try_from(process.pid).is_ok_and(|pid| living.contains(&pid));
    // One that computes and draws is in both lists, with the same figure.
    let mut held: HashMap<_, u64> = HashMap::new();
    for process in processes.iter().filter(ours) {
        let UsedGpuMemory::Used(bytes) = process.used_gpu_memory else {
            return None;
        };
        let place = (process.pid, process.gpu_instance_id, process.compute_instance_id);
        let held = held.entry(place).or_default();
        *held = bytes.max(*held);
    }
    (same_numbers || !held.is_empty()).then(|| held.into_values().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn process(pid: u32, used: Option<u64>) -> ProcessInfo {
        ProcessInfo {
            pid,
            used_gpu_memory: used.map_or(UsedGpuMemory::Unavailable, UsedGpuMemory::Used),
            gpu_instance_id: None,
            compute_instance_id: None,
        }
    }

    #[test]
    fn own_memory_is_that_of_our_processes_and_unknown_is_not_zero() {
        let check = |processes: &[ProcessInfo], same: bool, expected: Option<u64>| {
            assert_eq!(own(processes, &[7, 8], same), expected, "{processes:?}");
        };
        let both = [process(7, Some(100)), process(8, Some(20)), process(9, Some(3))];
        check(&both, true, Some(120));
        check(&both, false, Some(120));
        check(&[process(7, Some(100)), process(7, Some(100))], true, Some(100));
        check(&[process(9, Some(3))], true, Some(0));
        check(&[process(9, Some(3))], false, None);
        check(&[], true, Some(0));
        check(&[], false, None);
        check(&[process(7, None)], true, None);
    }
}
