//! The flight recorder: what the memory of a run did, of all its processes together.

use std::path::Path;

use serde::Serialize;

use crate::error::Result;
use crate::records::scan::size;
use crate::records::{self, Fields, FlightHeader, Record, RecordWriter, Recording};

/// One look at a run. Sizes are bytes; `None` is "not available" or "not read this time".
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct FlightRecord {
    /// Milliseconds since the start of the recording.
    pub time_ms: u64,
    /// Of the worker and its descendants together, like the five that follow.
    pub resident: Option<u64>,
    pub proportional: Option<u64>,
    pub anonymous: Option<u64>,
    pub file: Option<u64>,
    pub shared: Option<u64>,
    pub swap: Option<u64>,
    pub cgroup_usage: Option<u64>,
    pub cgroup_peak: Option<u64>,
    pub oom_kills: Option<u64>,
    pub ledger_used: Option<u64>,
    pub ledger_peak: Option<u64>,
    pub budget: Option<u64>,
    /// Share of the last 10 s in which some (all) tasks waited for memory, in percent.
    pub pressure_some: Option<f32>,
    pub pressure_full: Option<f32>,
    pub processes: u32,
    pub epoch: u32,
    pub step: u64,
    /// What the cgroup's memory is made of: anonymous pages, page cache with shared memory in it, shared memory.
    pub cgroup_anonymous: Option<u64>,
    pub cgroup_file: Option<u64>,
    pub cgroup_shared: Option<u64>,
    pub cgroup_swap: Option<u64>,
    /// Of the whole machine: what could still be had without swapping, swap in use, `/dev/shm` in use.
    pub host_available: Option<u64>,
    pub host_swap: Option<u64>,
    pub shared_memory: Option<u64>,
    /// Since the start, over all processes that were ever seen: page faults that needed the disk, milliseconds of
    /// processor time, bytes read from and written to disks.
    pub major_faults: Option<u64>,
    pub cpu_ms: Option<u64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub open_files: Option<u64>,
    pub threads: Option<u64>,
    /// As `pressure_some`, of the processor and of disks.
    pub pressure_cpu: Option<f32>,
    pub pressure_io: Option<f32>,
}

impl FlightRecord {
    /// The memory of the run: what its cgroup counts, else by proportional share, else by residence.
    pub fn in_use(&self) -> Option<u64> {
        self.cgroup_usage.or(self.proportional).or(self.resident)
    }
}

/// The same of a record as it stands in the file.
pub(crate) fn in_use(record: &[u8]) -> Option<u64> {
    const RESIDENT: usize = 16;
    const PROPORTIONAL: usize = 24;
    const CGROUP_USAGE: usize = 64;
    [CGROUP_USAGE, PROPORTIONAL, RESIDENT]
        .into_iter()
        .find_map(|at| size(record, at))
}

/// A recording of a run's memory.
pub type Flight = Recording<FlightRecord>;
/// Writes one.
pub type FlightWriter = RecordWriter<FlightRecord>;

/// Reads a recording, skips what is damaged and says how much that was.
pub fn read_flight(path: &Path) -> Result<Flight> {
    records::read_records(path)
}

/// The newest intact record and the header, without reading the whole file.
pub fn last_record(path: &Path) -> Result<(Option<FlightHeader>, Option<FlightRecord>)> {
    records::last_of(path)
}

impl Record for FlightRecord {
    const MAGIC: &'static [u8; 8] = b"TGFLIGHT";
    const SIZES: &'static [usize] = &[144, 264];

    fn put(&self, fields: &mut Fields) {
        fields.put_number(self.time_ms);
        fields.put_sizes(&[
            self.resident,
            self.proportional,
            self.anonymous,
            self.file,
            self.shared,
            self.swap,
            self.cgroup_usage,
            self.cgroup_peak,
            self.oom_kills,
            self.ledger_used,
            self.ledger_peak,
            self.budget,
        ]);
        fields.put_share(self.pressure_some);
        fields.put_share(self.pressure_full);
        fields.put_count(self.processes);
        fields.put_count(self.epoch);
        fields.put_number(self.step);
        // The first version ended here, with four bytes of nothing.
        fields.put_count(0);
        fields.put_sizes(&[
            self.cgroup_anonymous,
            self.cgroup_file,
            self.cgroup_shared,
            self.cgroup_swap,
            self.host_available,
            self.host_swap,
            self.shared_memory,
            self.major_faults,
            self.cpu_ms,
            self.read_bytes,
            self.written_bytes,
            self.open_files,
            self.threads,
        ]);
        fields.put_share(self.pressure_cpu);
        fields.put_share(self.pressure_io);
    }

    fn take(fields: &mut Fields) -> FlightRecord {
        FlightRecord {
            time_ms: fields.number(),
            resident: fields.size(),
            proportional: fields.size(),
            anonymous: fields.size(),
            file: fields.size(),
            shared: fields.size(),
            swap: fields.size(),
            cgroup_usage: fields.size(),
            cgroup_peak: fields.size(),
            oom_kills: fields.size(),
            ledger_used: fields.size(),
            ledger_peak: fields.size(),
            budget: fields.size(),
            pressure_some: fields.share(),
            pressure_full: fields.share(),
            processes: fields.count(),
            epoch: fields.count(),
            step: {
                let step = fields.number();
                fields.count();
                step
            },
            cgroup_anonymous: fields.size(),
            cgroup_file: fields.size(),
            cgroup_shared: fields.size(),
            cgroup_swap: fields.size(),
            host_available: fields.size(),
            host_swap: fields.size(),
            shared_memory: fields.size(),
            major_faults: fields.size(),
            cpu_ms: fields.size(),
            read_bytes: fields.size(),
            written_bytes: fields.size(),
            open_files: fields.size(),
            threads: fields.size(),
            pressure_cpu: fields.share(),
            pressure_io: fields.share(),
        }
    }
}
