//! What each accelerator of the machine did while a run had it.

use serde::Serialize;

use crate::records::{Fields, Record};

/// One look at one device. `None` is "not available".
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct DeviceRecord {
    /// Milliseconds since the start of the recording.
    pub time_ms: u64,
    pub index: u32,
    pub name: String,
    pub memory_used: Option<u64>,
    pub memory_total: Option<u64>,
    /// Of the memory, what processes of this run hold.
    pub memory_own: Option<u64>,
    /// In percent.
    pub utilization: Option<u64>,
    /// In degrees Celsius.
    pub temperature: Option<u64>,
    /// Why it runs slower than it could, as NVML's bits.
    pub throttle_reasons: Option<u64>,
    /// Memory errors that could not be corrected, since the driver was loaded.
    pub uncorrected_errors: Option<u64>,
}

impl Record for DeviceRecord {
    const MAGIC: &'static [u8; 8] = b"TGDEVICE";
    const SIZES: &'static [usize] = &[120];

    fn put(&self, fields: &mut Fields) {
        fields.put_number(self.time_ms);
        fields.put_text::<32>(&self.name);
        fields.put_sizes(&[
            self.memory_used,
            self.memory_total,
            self.memory_own,
            self.utilization,
            self.temperature,
            self.throttle_reasons,
            self.uncorrected_errors,
        ]);
        fields.put_count(self.index);
    }

    fn take(fields: &mut Fields) -> DeviceRecord {
        DeviceRecord {
            time_ms: fields.number(),
            name: fields.text::<32>(),
            memory_used: fields.size(),
            memory_total: fields.size(),
            memory_own: fields.size(),
            utilization: fields.size(),
            temperature: fields.size(),
            throttle_reasons: fields.size(),
            uncorrected_errors: fields.size(),
            index: fields.count(),
        }
    }
}
