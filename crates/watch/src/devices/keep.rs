//! What of the looks at devices is kept: figures at a rate that stays small, errors all.

use std::collections::HashMap;
use std::path::PathBuf;

use tidegate_runs::{DeviceRecord, FlightHeader, RecordWriter};

use super::{Look, Seen};
use crate::why::{Counter, CounterKind, DeviceFault, Scope, device_source};

/// Every look of the first minute is kept; after it, one in so long and those that moved: 1 MB a day for each device.
const DENSE_MS: u64 = 60_000;
const SPARSE_MS: u64 = 10_000;
/// A move is this part of the device's memory, or so many degrees.
const MOVE: u64 = 100;
const WARMER: u64 = 3;

#[derive(Debug)]
pub(super) struct Keeper {
    path: PathBuf,
    header: FlightHeader,
    /// Made with the first record: most machines have no device.
    writer: Option<RecordWriter<DeviceRecord>>,
    /// What was last kept, and last seen, of each device.
    kept: HashMap<u32, DeviceRecord>,
    last: HashMap<u32, DeviceRecord>,
    faults: Vec<DeviceFault>,
    counters: Vec<Counter>,
}

impl Keeper {
    pub(super) fn new(path: PathBuf, header: FlightHeader) -> Keeper {
        Keeper {
            path,
            header,
            writer: None,
            kept: HashMap::new(),
            last: HashMap::new(),
            faults: Vec::new(),
            counters: Vec::new(),
        }
    }

    /// Takes in a look, and returns whether the memory of any device moved since the one before.
    pub(super) fn keep(&mut self, look: Look, time_ms: u64) -> bool {
        let mut moves = false;
        for mut record in look.records {
            record.time_ms = time_ms;
            self.count(&record);
            if self
                .kept
                .get(&record.index)
                .is_none_or(|kept| is_due(kept, &record))
            {
                self.write(&record);
                self.kept.insert(record.index, record.clone());
            }
            let last = self.last.insert(record.index, record.clone());
            moves |= last.is_some_and(|last| memory_moved(&last, &record));
        }
        for (index, xid) in look.faults {
            // A storm of the same error says no more than the first of it.
            let known = |fault: &DeviceFault| (fault.index, fault.xid) == (index, xid);
            if !self.faults.iter().any(known) {
                self.faults.push(DeviceFault { time_ms, index, xid });
            }
        }
        moves
    }

    pub(super) fn tell(&self, seen: &mut Seen) {
        seen.faults.clone_from(&self.faults);
        seen.counters.clone_from(&self.counters);
    }

    /// Follows the errors of a device that counts them.
    fn count(&mut self, record: &DeviceRecord) {
        let Some(errors) = record.uncorrected_errors else {
            return;
        };
        let source = format!("{}, uncorrected ECC errors", device_source(record));
        match self.counters.iter_mut().find(|counter| counter.source == source) {
            Some(counter) => counter.after = Some(errors),
            None => self.counters.push(Counter {
                kind: CounterKind::DeviceErrors,
                scope: Scope::Host,
                source,
                before: Some(errors),
                after: Some(errors),
            }),
        }
    }

    fn write(&mut self, record: &DeviceRecord) {
        if self.writer.is_none() {
            self.writer = RecordWriter::create(&self.path, &self.header).ok();
        }
        if let Some(writer) = &mut self.writer {
            // A full disk is said by the other recordings.
            let _ = writer.append(record);
        }
    }
}

fn is_due(kept: &DeviceRecord, now: &DeviceRecord) -> bool {
    let warmth = kept.temperature.zip(now.temperature);
    now.time_ms < DENSE_MS
        || now.time_ms >= kept.time_ms + SPARSE_MS
        || memory_moved(kept, now)
        || warmth.is_some_and(|(before, now)| before.abs_diff(now) >= WARMER)
        || kept.throttle_reasons != now.throttle_reasons
        || kept.uncorrected_errors != now.uncorrected_errors
}

fn memory_moved(before: &DeviceRecord, now: &DeviceRecord) -> bool {
    let least = now.memory_total.unwrap_or(0) / MOVE;
    let moved = |before: Option<u64>, now: Option<u64>| match (before, now) {
        (Some(before), Some(now)) => before.abs_diff(now) > least,
        (before, now) => before.is_some() != now.is_some(),
    };
    moved(before.memory_used, now.memory_used) || moved(before.memory_own, now.memory_own)
}

#[cfg(test)]
mod tests {
    use tidegate_runs::read_records;

    use super::*;

    fn look(used: u64, errors: u64, faults: &[(u32, Option<u32>)]) -> Look {
        Look {
            records: vec![DeviceRecord {
                name: "GPU".into(),
                memory_used: Some(used),
                memory_total: Some(1_000),
                throttle_reasons: Some(0),
                uncorrected_errors: Some(errors),
                ..DeviceRecord::default()
            }],
            faults: faults.to_vec(),
        }
    }

    #[test]
    fn a_long_quiet_run_stays_small_and_moves_errors_and_the_first_fault_are_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("devices.bin");
        let header = FlightHeader {
            run_id: "r".into(),
            start_ms: 0,
        };
        let mut keeper = Keeper::new(path.clone(), header);
        assert!(!path.exists());
        for second in 0..3_600u64 {
            let used = if second == 1_805 { 900 } else { 100 + second % 5 };
            let faults = if second > 3_000 { &[(0, Some(31))][..] } else { &[] };
            let moves = keeper.keep(look(used, second / 3_500, faults), second * 1_000);
            assert_eq!(moves, (1_805..=1_806).contains(&second), "{second}");
        }
        let records = read_records::<DeviceRecord>(&path).unwrap().records;
        assert!((400..450).contains(&records.len()), "{}", records.len());
        assert!(records.iter().any(|record| record.memory_used == Some(900)));
        let mut seen = Seen::default();
        keeper.tell(&mut seen);
        let fault = DeviceFault {
            time_ms: 3_001_000,
            index: 0,
            xid: Some(31),
        };
        assert_eq!(seen.faults, [fault]);
        assert_eq!(seen.counters.len(), 1);
        assert_eq!(seen.counters[0].rise(), Some(1));
        assert_eq!(
            seen.counters[0].source,
            "NVML, device 0 (GPU), uncorrected ECC errors"
        );
    }
}
