//! `tidegate why` shows the accelerators that a run used.

use tidegate_runs::{DeviceRecord, FlightHeader, RecordWriter, Store};

use crate::help::Place;

#[test]
fn a_device_has_a_line_in_the_text_and_a_place_in_the_json() {
    let place = Place::new();
    let said = "echo 'RuntimeError: CUDA error: out of memory' >&2; exit 1";
    assert_eq!(place.run_words(&["run", "--", "sh", "-c", said]).code, Some(1));
    let [id] = &place.run_ids()[..] else {
        panic!("one run was made");
    };
    assert!(place.json("why")["verdict"].get("devices").is_none());
    assert!(!place.ok("why").stdout.contains("\ndevices\n"));

    let header = FlightHeader {
        run_id: id.clone(),
        start_ms: 0,
    };
    let path = Store::open(&place.home).unwrap().run_dir(id).devices();
    // Where there is a device, it is recorded already.
    let _ = std::fs::remove_file(&path);
    let mut writer = RecordWriter::create(&path, &header).unwrap();
    let record = DeviceRecord {
        name: "NVIDIA T4".into(),
        memory_used: Some(15_600_000_000),
        memory_total: Some(16_000_000_000),
        memory_own: Some(15_100_000_000),
        temperature: Some(71),
        throttle_reasons: Some(0x20),
        ..DeviceRecord::default()
    };
    writer.append(&record).unwrap();

    let text = place.ok("why --report").stdout;
    let line = "device 0, NVIDIA T4: 15.6 GB of 16 GB in use at the most, 15.1 GB by this run, at up to 71 °C, slowed down by heat";
    assert!(text.contains(&format!("\ndevices\n  {line}\n")), "{text}");
    assert!(
        text.contains("  observed    15.6 GB of 16 GB in use, 15.1 GB by this run\n"),
        "{text}"
    );
    let devices = place.json("why")["verdict"]["devices"].clone();
    assert_eq!(devices[0]["name"], "NVIDIA T4");
    assert_eq!(devices[0]["memory_own"], 15_100_000_000u64);
    assert_eq!(devices[0]["throttled"][0], "heat");
}
