//! A run drawn in the terminal.

use tidegate_runs::{FlightRecord, ProcessRecord};

use super::super::timeline::timeline;
use super::made::Random;
use crate::ended::Exit;
use crate::why::{Case, EndedChild, SentSignal, SignalReason};

const MB: u64 = 1_000_000;

/// A parent that loads, workers that grow, one of them killed, and a parent that is killed at the line.
fn training() -> Case {
    let random = &mut Random::new(3);
    let mut case = Case::default();
    for time_ms in (0..=41_000).step_by(100) {
        let seconds = time_ms as f64 / 1e3;
        let parent = 150.0 + 900.0 * (seconds / 4.0).min(1.0) + 20.0 * (seconds - 20.0).max(0.0);
        let worker = |born: f64, rate: f64| {
            if seconds < born {
                0.0
            } else {
                80.0 + rate * (seconds - born)
            }
        };
        let third = if seconds < 27.0 { worker(7.0, 30.0) } else { 0.0 };
        let sizes = [
            parent,
            worker(6.0, 32.0),
            worker(6.5, 20.0),
            third,
            worker(3.0, 0.0),
            worker(3.0, 0.1),
        ];
        let mut sum = 0;
        for (place, megabytes) in sizes
            .into_iter()
            .enumerate()
            .filter(|(_, megabytes)| *megabytes > 0.0)
        {
            let bytes = ((megabytes + random.between(0.0, 10.0)) * MB as f64) as u64;
            sum += bytes;
            case.processes.push(ProcessRecord {
                time_ms,
                pid: 4242 + place as i32,
                parent: if place == 0 { 1 } else { 4242 },
                start_time: 1,
                name: if place < 4 { "python3" } else { "sh" }.into(),
                state: 'R',
                resident: Some(bytes),
                proportional: Some(bytes),
                ..ProcessRecord::default()
            });
        }
        case.flight.push(FlightRecord {
            time_ms,
            resident: Some(sum),
            proportional: Some(sum),
            anonymous: Some(sum),
            processes: 6,
            oom_kills: Some(u64::from(time_ms > 27_000)),
            ..FlightRecord::default()
        });
    }
    case.facts.limit = Some(3_900 * MB);
    case.facts.exit = Some(Exit::Signal(libc::SIGKILL));
    case.facts.signals.push(SentSignal {
        time_ms: 38_000,
        signal: libc::SIGUSR1,
        why: SignalReason::NearLine,
    });
    case.facts.ended_children.push(EndedChild {
        time_ms: 27_000,
        pid: 4245,
        parent: 4242,
        name: "python3".into(),
        exit: Some(Exit::Signal(libc::SIGKILL)),
        resident: None,
    });
    case
}

fn alone(seconds: u64, megabytes: impl Fn(f64) -> f64) -> Case {
    let mut case = Case::default();
    for time_ms in (0..=seconds * 1_000).step_by(100) {
        let bytes = (megabytes(time_ms as f64 / 1e3) * MB as f64) as u64;
        let record = FlightRecord {
            time_ms,
            resident: Some(bytes),
            processes: 1,
            ..FlightRecord::default()
        };
        case.flight.push(record);
    }
    case
}

/// A drawing in plain text, after a look at its width with and without colours.
fn shown(case: &Case, width: usize, height: usize) -> String {
    let timeline = timeline(case, width, height);
    for line in timeline.draw(false).iter().chain(&timeline.draw(true)) {
        let mut pieces = line.split("\x1b[");
        let first = pieces.next().unwrap_or_default().chars().count();
        let rest = pieces.map(|piece| piece.split_once('m').expect("a code").1.chars().count());
        assert!(first + rest.sum::<usize>() <= width, "{width}: {line}");
    }
    timeline.draw(false).join("\n")
}

/// What is drawn, between empty lines.
fn check(case: &Case, width: usize, height: usize, expected: &str) {
    let shown = format!("\n{}\n", shown(case, width, height));
    assert_eq!(shown, expected, "{shown}");
}

#[test]
fn a_training_is_drawn_with_its_processes_its_line_and_its_death() {
    check(&training(), 80, 12, TRAINING);
}

const TRAINING: &str = r"
    4 GB ┤╌╌ limit 3.9 GB ╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌✕
         │                                                                    ··
         │                                            ··              ····▓▓▓▓▓▓
    3 GB ┤                                       ···░░░░      ····▓▓▓▓▓▓▓▓▓▓▓▓▓▓
         │                                 ···░░░░░░░░░░··▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒
         │                         ·····░░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
    2 GB ┤                  ····░░░░░░░░░░▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
         │           ·····░░░░▓▓▓▓▓▓▓▓▓▓▓▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒
         │      ·····▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒▒████████████████████████
    1 GB ┤    ▃█████████████████████████████████████████████████████████████████
         │ ▁▅███████████████████████████████████████████████████████████████████
         │▆█████████████████████████████████████████████████████████████████████
         └─────────────────┬────────────────┬────────────────┬──────────────────
          0                10 s             20 s             30 s           41 s
                                                        !                 ▲    ✕

          █ python3 4242, at most 1.48 GB   ▒ python3 4243, at most 1.2 GB
          ▓ python3 4244, at most 774 MB   ░ python3 4245, at most 682 MB
          · others, at most 182 MB
          ! 0:27 the kernel killed python3 4245 for want of memory
          ▲ 0:38 SIGUSR1 near the line   ✕ 0:41 SIGKILL
";

#[test]
fn a_run_of_one_process_is_drawn_in_eighths_of_a_row() {
    let case = alone(3, |seconds| 20.0 + 30.0 * seconds);
    check(&case, 60, 5, ONE_PROCESS);
}

const ONE_PROCESS: &str = r"
  100 MB ┤                                        ▁▂▂▃▃▄▅▅▆▇
         │                            ▁▁▂▃▃▅▅▆▇▇████████████
   50 MB ┤               ▁▂▂▃▃▄▅▅▆▆▇████████████████████████
         │   ▁▁▂▃▃▄▄▆▇▇█████████████████████████████████████
         │▇█████████████████████████████████████████████████
         └────────────────┬────────────────┬────────────────
          0               1 s              2 s           3 s

          █ all processes, at most 110 MB
";

#[test]
fn a_long_run_has_hours_and_a_far_line_is_told() {
    let mut case = alone(36_000, |seconds| 1_000.0 + seconds / 36.0);
    case.facts.limit = Some(64_000 * MB);
    check(&case, 70, 4, LONG);
}

const LONG: &str = r"
    2 GB ┤                                 ▁▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▆▆▆▆▇▇▇▇
         │   ▁▁▁▂▂▂▂▃▃▃▃▄▄▄▄▅▅▅▅▆▆▆▆▇▇▇███████████████████████████████
    1 GB ┤████████████████████████████████████████████████████████████
         │████████████████████████████████████████████████████████████
         └────────────────────────┬───────────────────────────────────
          0                       4 h                         10:00:00

          █ all processes, at most 2 GB   limit 64 GB, far above
";

#[test]
fn no_drawing_is_wider_than_asked_for() {
    let random = &mut Random::new(7);
    for seed in 0..60 {
        let mut case = if seed % 2 == 0 {
            training()
        } else {
            alone(random.count(1, 100) as u64, |_| 50.0)
        };
        case.flight.truncate(random.count(0, 300));
        case.processes.truncate(random.count(0, 300));
        shown(&case, random.count(0, 160), random.count(0, 30));
    }
    shown(&Case::default(), 80, 10);
}

#[test]
fn layers_stand_within_the_total() {
    let timeline = timeline(&training(), 100, 10);
    let labels: Vec<&str> = timeline.layers.iter().map(|layer| layer.label.as_str()).collect();
    assert_eq!(
        labels,
        [
            "python3 4242",
            "python3 4243",
            "python3 4244",
            "python3 4245",
            "others"
        ]
    );
    for (column, total) in timeline.total.iter().enumerate() {
        let sum: u64 = timeline.layers.iter().map(|layer| layer.bytes[column]).sum();
        assert!(sum.abs_diff(*total) <= 5, "{column}: {sum} of {total}");
    }
    // The worker that was killed is gone in the last third.
    assert!(
        timeline.layers[3].bytes[..60]
            .iter()
            .any(|&bytes| bytes > 600 * MB)
    );
    assert!(timeline.layers[3].bytes[62..].iter().all(|&bytes| bytes == 0));
}

#[test]
fn what_only_a_cgroup_counted_is_drawn() {
    let mut case = alone(10, |_| 0.0);
    for record in &mut case.flight {
        *record = FlightRecord {
            time_ms: record.time_ms,
            cgroup_usage: Some(record.time_ms * MB),
            ..FlightRecord::default()
        };
    }
    let timeline = timeline(&case, 60, 5);
    assert_eq!(timeline.layers.len(), 1);
    assert_eq!(timeline.total.iter().max(), Some(&(10_000 * MB)));
}

#[test]
fn the_death_is_at_the_end_and_what_led_to_it_comes_before() {
    let mut case = Case::default();
    for time_ms in (0..=2_000).step_by(100) {
        case.flight.push(FlightRecord {
            time_ms,
            resident: Some(time_ms * MB / 10),
            anonymous: Some(time_ms * MB / 10),
            processes: 1,
            oom_kills: Some(0),
            ..FlightRecord::default()
        });
    }
    // When all is over.
    case.flight.push(FlightRecord {
        time_ms: 2_200,
        oom_kills: Some(1),
        ..FlightRecord::default()
    });
    case.facts.limit = Some(205 * MB);
    case.facts.exit = Some(Exit::Signal(libc::SIGKILL));
    let lines = timeline(&case, 60, 6).draw(false);
    assert!(lines[0].ends_with('✕'), "{}", lines.join("\n"));
    let marks = lines
        .iter()
        .find(|line| line.trim() == "✕")
        .expect("a line of marks");
    assert_eq!(marks.chars().count(), 60);
    let told = lines
        .iter()
        .position(|line| line.contains("! 2.0 s the kernel killed"));
    let death = lines.iter().position(|line| line.contains("✕ 2.0 s SIGKILL"));
    assert!(told.is_some() && told < death, "{}", lines.join("\n"));
}
