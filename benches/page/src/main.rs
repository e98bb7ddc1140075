//! Makes a home of 10,000 runs, one of which has a million of everything and a log of 2 GB: `page-home FOLDER`. Prints the
//! ids of those that are looked at, as JSON.

use std::error::Error;
use std::path::Path;

use tidegate_runs::{
    FlightHeader, FlightRecord, FlightWriter, HolderWriter, Judgement, LogWriter, Metric, NewRun, Outcome,
    ProcessRecord, ProcessRef, RecordWriter, Run, Started, Status, Store, Stream, Summary, now_ms,
};

const RUNS: usize = 10_000;
const SAMPLES: u64 = 1_000_000;
const LOG_BYTES: u64 = 2_000_000_000;
/// Between two looks, as the supervisor takes them.
const EVERY_MS: u64 = 100;
const PROCESSES: i32 = 20;
const BUDGET: u64 = 8 << 30;
/// One of so many lines of the log says something else than the others.
const RARE: u64 = 10_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let home = std::env::args().nth(1).ok_or("name a folder")?;
    let store = Store::open(Path::new(&home))?;
    let large = large(&store)?;
    let mut last = Vec::new();
    for i in 0..RUNS - 1 {
        let run = small(&store, i)?;
        last.push(run.id);
        last.drain(..last.len().saturating_sub(7));
    }
    println!("{}", serde_json::json!({"large": large.id, "others": last}));
    Ok(())
}

/// The same each time, and spread over all of its range.
fn spread(i: u64) -> u64 {
    let x = (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (x ^ (x >> 31)).wrapping_mul(0x94d0_49bb_1331_11eb) >> 11
}

fn begin(store: &Store, i: usize) -> Result<Run, Box<dyn Error>> {
    let at = spread(i as u64) as usize;
    let new = NewRun {
        kind: ["train", "train", "run"][at % 3].into(),
        name: (at % 4 > 0).then(|| format!("experiment-{}", at % 997)),
        model: Some(["linear", "boost", "mlp", "cnn"][at % 4].into()),
        data: Some(format!("/data/{}/flights-{}.csv", at % 31, at % 211)),
        target: Some("delayed".into()),
        budget_bytes: Some(BUDGET),
        command: ["tidegate", "train", "flights.csv", "--target", "delayed"]
            .map(Into::into)
            .into(),
        ..NewRun::default()
    };
    let run = store.create(&new)?;
    let process = ProcessRef {
        pid: 4_000_000,
        start_time: 1,
    };
    let started = Started {
        supervisor: process,
        worker: process,
        containment: "cgroup v2".into(),
        cgroup: None,
        boot_id: None,
    };
    store.started(&run.id, &started)?;
    Ok(run)
}

fn end(store: &Store, run: &Run, i: usize, status: Status) -> Result<(), Box<dyn Error>> {
    let at = spread(i as u64);
    let summary = Summary {
        rows: Some(at % 50_000_000),
        needs_bytes: Some(BUDGET / 2 + at % (BUDGET / 3)),
        ..Summary::default()
    };
    store.update(&run.id, &summary)?;
    let outcome = Outcome {
        peak_bytes: Some(BUDGET / 2 + at % (BUDGET / 2)),
        peak_source: Some("memory.peak".into()),
        metric_name: Some("log_loss".into()),
        metric_value: Some((at % 10_000) as f64 / 10_000.0),
        exit_code: Some(i32::from(status == Status::Failed)),
        ..Outcome::new(status)
    };
    store.finish(&run.id, &outcome)?;
    if status == Status::Failed {
        let judgement = Judgement {
            cause: "cgroup_oom".into(),
            grade: "proven".into(),
            sentence: "the kernel killed it because it came to the limit of its cgroup, 8 GiB".into(),
        };
        store.judge(&run.id, &judgement)?;
    }
    Ok(())
}

fn small(store: &Store, i: usize) -> Result<Run, Box<dyn Error>> {
    let run = begin(store, i)?;
    let status = [Status::Done, Status::Done, Status::Failed, Status::Stopped][spread(i as u64) as usize % 4];
    for epoch in 1..=3 {
        store.metric(&run.id, &metric("loss", epoch, u64::from(epoch)))?;
    }
    end(store, &run, i, status)?;
    Ok(run)
}

fn metric(name: &str, epoch: u32, step: u64) -> Metric {
    Metric {
        epoch,
        step,
        name: name.into(),
        value: 1.0 / (1.0 + step as f64 / 1e4) + (spread(step) % 1_000) as f64 / 1e5,
    }
}

/// A million samples of its memory, of its processes and of its figures, and a log that nobody reads whole.
fn large(store: &Store) -> Result<Run, Box<dyn Error>> {
    let run = begin(store, RUNS)?;
    let dir = store.run_dir(&run.id);
    let header = FlightHeader {
        run_id: run.id.clone(),
        start_ms: now_ms(),
    };
    let mut flight = FlightWriter::create(&dir.flight(), &header)?;
    let mut processes = RecordWriter::<ProcessRecord>::create(&dir.processes(), &header)?;
    let mut holders = HolderWriter::create(&dir.holders())?;
    for i in 0..SAMPLES {
        let used = BUDGET / 4 + BUDGET / 2 * i / SAMPLES + spread(i) % (BUDGET / 10);
        let epoch = (i / (SAMPLES / 100)) as u32 + 1;
        flight.append(&FlightRecord {
            time_ms: i * EVERY_MS,
            resident: Some(used),
            proportional: Some(used),
            anonymous: Some(used / 10 * 9),
            file: Some(used / 10),
            cgroup_usage: Some(used),
            cgroup_peak: Some(used),
            ledger_used: Some(used / 2),
            budget: Some(BUDGET),
            processes: PROCESSES as u32,
            epoch,
            step: i,
            ..FlightRecord::default()
        })?;
        let pid = 1_000 + (i % PROCESSES as u64) as i32;
        processes.append(&ProcessRecord {
            time_ms: i * EVERY_MS,
            pid,
            parent: 999,
            start_time: pid as u64,
            name: format!("worker-{pid}"),
            state: 'S',
            threads: 4,
            resident: Some(used / 20),
            proportional: Some(used / 20),
            ..ProcessRecord::default()
        })?;
        let held = [
            ("rows".to_string(), used / 4),
            ("model".to_string(), used / 8 + spread(i) % used / 8),
        ];
        holders.append(i * EVERY_MS, &held, BUDGET)?;
        store.metric(&run.id, &metric(["loss", "accuracy"][(i % 2) as usize], epoch, i))?;
    }
    holders.end()?;
    let mut log = LogWriter::open(&dir.log())?;
    let (mut bytes, mut n) = (0, 0);
    while bytes < LOG_BYTES {
        let line = match n % RARE {
            0 => format!("a needle in line {n}"),
            5_000_000 => format!("ValueError: the batch of step {n} holds no numbers"),
            _ => format!(
                "epoch {} step {n} \x1b[33mloss\x1b[0m {:.6}",
                n / 100_000,
                1.0 / (1 + n) as f64
            ),
        };
        log.line(Stream::Out, line.as_bytes())?;
        bytes += line.len() as u64 + 29;
        n += 1;
    }
    log.flush()?;
    end(store, &run, RUNS, Status::Failed)?;
    Ok(run)
}
