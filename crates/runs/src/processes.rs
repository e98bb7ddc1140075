//! What each process of a run did: a record whenever one of them is looked at and has moved.

use serde::Serialize;

use crate::records::scan::{number, size};
use crate::records::{Fields, Record};

/// A process that lives is recorded at least this often, in milliseconds, whether it moved or not.
pub const PROCESS_AT_LEAST_EVERY_MS: u64 = 10_000;

/// One look at one process. Sizes are bytes; `None` is "not available" or "not read this time".
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct ProcessRecord {
    /// Milliseconds since the start of the recording.
    pub time_ms: u64,
    pub pid: i32,
    pub parent: i32,
    /// Clock ticks since boot: the same pid with another start is another process.
    pub start_time: u64,
    /// As the kernel calls it, at most 15 bytes.
    pub name: String,
    /// `R`, `S`, `D`, `Z`, … as in `/proc/PID/stat`.
    pub state: char,
    pub threads: u32,
    pub resident: Option<u64>,
    pub proportional: Option<u64>,
    /// Pages that no other process has.
    pub private: Option<u64>,
    /// By proportional share where `proportional` is there, else by residence, like the two that follow.
    pub anonymous: Option<u64>,
    pub file: Option<u64>,
    pub shared: Option<u64>,
    pub swap: Option<u64>,
    /// The address space.
    pub virtual_size: Option<u64>,
    /// Since the process started.
    pub minor_faults: Option<u64>,
    pub major_faults: Option<u64>,
    pub cpu_ms: Option<u64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub open_files: Option<u64>,
}

impl ProcessRecord {
    /// By proportional share, else by residence.
    pub fn in_use(&self) -> Option<u64> {
        self.proportional.or(self.resident)
    }
}

/// Fields of a record as it stands in the file.
pub(crate) fn in_use(record: &[u8]) -> Option<u64> {
    size(record, 64).or(size(record, 56))
}

pub(crate) fn pid(record: &[u8]) -> i32 {
    (number(record, 16) as u32).cast_signed()
}

pub(crate) fn start_time(record: &[u8]) -> u64 {
    number(record, 24)
}

pub(crate) fn name(record: &[u8]) -> String {
    let bytes = record.get(32..48).unwrap_or_default();
    let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

impl Record for ProcessRecord {
    const MAGIC: &'static [u8; 8] = b"TGPROCES";
    const SIZES: &'static [usize] = &[176];

    fn put(&self, fields: &mut Fields) {
        fields.put_number(self.time_ms);
        fields.put_count(self.pid.cast_unsigned());
        fields.put_count(self.parent.cast_unsigned());
        fields.put_number(self.start_time);
        fields.put_text::<16>(&self.name);
        fields.put_count(u32::from(self.state));
        fields.put_count(self.threads);
        fields.put_sizes(&[
            self.resident,
            self.proportional,
            self.private,
            self.anonymous,
            self.file,
            self.shared,
            self.swap,
            self.virtual_size,
            self.minor_faults,
            self.major_faults,
            self.cpu_ms,
            self.read_bytes,
            self.written_bytes,
            self.open_files,
        ]);
    }

    fn take(fields: &mut Fields) -> ProcessRecord {
        ProcessRecord {
            time_ms: fields.number(),
            pid: fields.count().cast_signed(),
            parent: fields.count().cast_signed(),
            start_time: fields.number(),
            name: fields.text::<16>(),
            state: char::from_u32(fields.count()).unwrap_or('?'),
            threads: fields.count(),
            resident: fields.size(),
            proportional: fields.size(),
            private: fields.size(),
            anonymous: fields.size(),
            file: fields.size(),
            shared: fields.size(),
            swap: fields.size(),
            virtual_size: fields.size(),
            minor_faults: fields.size(),
            major_faults: fields.size(),
            cpu_ms: fields.size(),
            read_bytes: fields.size(),
            written_bytes: fields.size(),
            open_files: fields.size(),
        }
    }
}
