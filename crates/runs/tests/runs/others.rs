//! Records of processes and devices, and stacks: what was written is read, and a torn end costs only itself.

use std::fs;

use tidegate_runs::{
    DeviceRecord, FlightHeader, Frame, ProcessRecord, RecordWriter, SeenThread, StackSample, StackWriter,
    read_records, read_stacks,
};

fn header() -> FlightHeader {
    FlightHeader {
        run_id: "k7mp2xqa".into(),
        start_ms: 5,
    }
}

#[test]
fn processes_and_devices_come_back() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("processes.bin");
    let process = ProcessRecord {
        time_ms: 1,
        pid: 77,
        parent: 1,
        start_time: 99,
        name: "python3".into(),
        state: 'D',
        threads: 4,
        resident: Some(1),
        proportional: Some(2),
        private: Some(3),
        anonymous: Some(4),
        file: Some(5),
        shared: Some(6),
        swap: None,
        virtual_size: Some(8),
        minor_faults: Some(9),
        major_faults: Some(0),
        cpu_ms: Some(11),
        read_bytes: Some(12),
        written_bytes: None,
        open_files: Some(14),
    };
    let mut writer = RecordWriter::create(&path, &header()).unwrap();
    writer.append(&process).unwrap();
    writer.append(&ProcessRecord::default()).unwrap();
    let mut bytes = fs::read(&path).unwrap();
    bytes.truncate(bytes.len() - 1);
    fs::write(&path, bytes).unwrap();
    let found = read_records::<ProcessRecord>(&path).unwrap();
    assert_eq!((found.records, found.damaged), (vec![process], 1));

    let path = dir.path().join("devices.bin");
    let device = DeviceRecord {
        time_ms: 1,
        index: 3,
        name: "a device with a name that is far too long for it".into(),
        memory_used: Some(2),
        memory_total: Some(3),
        memory_own: None,
        utilization: Some(99),
        temperature: Some(71),
        throttle_reasons: Some(4),
        uncorrected_errors: Some(0),
    };
    RecordWriter::create(&path, &header())
        .unwrap()
        .append(&device)
        .unwrap();
    let found = read_records::<DeviceRecord>(&path).unwrap().records;
    let cut = DeviceRecord {
        name: "a device with a name that is far".into(),
        ..device
    };
    assert_eq!(found, [cut]);
    assert!(read_records::<ProcessRecord>(&path).is_err(), "of another kind");
}

#[test]
fn stacks_come_back_and_frames_are_written_once() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("stacks.jsonl");
    let frame = |line| Frame {
        file: "/home/ada/train \"1\".py".into(),
        line,
        function: "load".into(),
    };
    let sample = |time_ms| StackSample {
        time_ms,
        pid: 7,
        start_time: 8,
        held: Some(9),
        threads: Vec::new(),
    };
    let thread = |lines: &[u32]| SeenThread {
        name: Some("MainThread".into()),
        active: true,
        gil: true,
        frames: lines.iter().map(|line| frame(*line)).collect(),
    };
    let mut writer = StackWriter::create(&path).unwrap();
    writer.append(&sample(1), &[thread(&[5, 1])]).unwrap();
    writer
        .append(&sample(2), &[thread(&[6, 1]), thread(&[])])
        .unwrap();
    let text = fs::read_to_string(&path).unwrap();
    assert_eq!(
        text.lines().filter(|line| line.starts_with("{\"frame\"")).count(),
        3
    );
    assert_eq!(writer.bytes(), text.len() as u64);

    let whole = read_stacks(&path).unwrap();
    assert_eq!(
        (whole.frames.len(), whole.samples.len(), whole.damaged),
        (3, 2, 0)
    );
    let lines = |sample: &StackSample| -> Vec<Vec<u32>> {
        let line = |frame: &u32| whole.frames[*frame as usize].line;
        let threads = sample.threads.iter();
        threads
            .map(|thread| thread.frames.iter().map(line).collect())
            .collect()
    };
    assert_eq!(lines(&whole.samples[0]), [[5, 1]]);
    assert_eq!(lines(&whole.samples[1]), [vec![6, 1], vec![]]);

    fs::write(&path, &text[..text.len() - 9]).unwrap();
    let torn = read_stacks(&path).unwrap();
    assert_eq!((torn.samples.len(), torn.damaged), (1, 1));
}
