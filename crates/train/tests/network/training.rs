//! Trainings over arrays: they learn, they are taken up again bit for bit, and they say what went wrong.

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tidegate_data::Holdout;
use tidegate_data::arrays::{ArrayOptions, ArraySource, Part};
use tidegate_data::images::{self, ImageOptions};
use tidegate_memory::Ledger;
use tidegate_train::network::{
    Design, Layer, Machine, Moments, NetworkModel, Options, Outcome, Precision, Rule, Samples, Scaling,
    Schedule, input_shape, plan, train,
};
use tidegate_train::{Checkpoint, Error, Event, Report};

/// A `.npy` file of version 1.
fn write_npy(path: &Path, kind: &str, shape: &[usize], bytes: &[u8]) {
    let axes: Vec<String> = shape.iter().map(|axis| format!("{axis},")).collect();
    let mut header = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
        axes.join(" ")
    );
    while (10 + header.len() + 1) % 64 != 0 {
        header.push(' ');
    }
    header.push('\n');
    let mut file = File::create(path).unwrap();
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    file.write_all(bytes).unwrap();
}

fn draw(state: &mut u32) -> u32 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    *state >> 8
}

/// Grey images of 12×10 with a bright bar at one of three places, and noise.
pub(crate) fn write_bars(folder: &Path, n: usize) -> PathBuf {
    let mut state = 5;
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        let class = (i * 7 + i / 5) % 3;
        labels.extend((class as i64).to_le_bytes());
        for row in 0..12 {
            for _ in 0..10 {
                let bright = row / 4 == class && row % 4 < 2;
                let noise = draw(&mut state) % 90;
                pixels.push(if bright { 120 + noise as u8 } else { noise as u8 });
            }
        }
    }
    write_npy(&folder.join("x.npy"), "|u1", &[n, 12, 10], &pixels);
    write_npy(&folder.join("y.npy"), "<i8", &[n], &labels);
    folder.join("x.npy")
}

const LAYERS: &str = r#"[{"conv": 8, "activation": "relu"}, "batch_norm", {"max_pool": 2}, "flatten", {"dropout": 0.2},
    {"dense": 16, "activation": "relu"}]"#;

pub(crate) fn options() -> Options {
    Options {
        loss: None,
        rule: Rule::default(),
        rate: 3e-3,
        schedule: Schedule::Cosine { end: 0.0 },
        warm_up: 0.5,
        clip: None,
        epochs: 3,
        batch: 16,
        accumulate: 1,
        micro_batch: None,
        precision: None,
        moments: None,
        recompute: None,
        begun: None,
        mixes: false,
        patience: None,
        holdout: Holdout::new(0.2, 1),
        seed: 11,
        weights: None,
        checkpoint: None,
        checkpoint_every: Duration::from_secs(3600),
        unpacked: None,
        map: false,
        feed_threads: 1,
        images: String::new(),
    }
}

pub(crate) fn open(path: &Path, ledger: &Ledger) -> ArraySource {
    ArraySource::open(path, &ArrayOptions::default(), ledger).unwrap()
}

pub(crate) fn design(source: &ArraySource, options: &Options, layers: &str, ledger: &Ledger) -> Design {
    let layers: Vec<Layer> = serde_json::from_str(layers).unwrap();
    let part = Part::Training(options.holdout);
    let input = input_shape(source, Some(&layers));
    Design {
        sample: source.shape().to_vec(),
        labels: source.labels().unwrap().clone(),
        scaling: Scaling::choose(source, &layers, &input, part, options.seed, ledger).unwrap(),
        input: input.0,
        layers,
        images: None,
    }
}

/// Trains and returns the outcome, with all events; `stop` is set at the event that says so.
pub(crate) fn run(
    path: &Path,
    options: &Options,
    layers: &str,
    budget: u64,
    resume: Option<&Checkpoint>,
    stops: impl FnMut(&Event) -> bool,
) -> Result<Outcome, Error> {
    let ledger = Ledger::new(budget);
    let source = open(path, &ledger);
    let design = design(&source, options, layers, &ledger);
    run_on(source, &design, options, &ledger, resume, stops)
}

pub(crate) fn run_on(
    mut source: ArraySource,
    design: &Design,
    options: &Options,
    ledger: &Ledger,
    resume: Option<&Checkpoint>,
    mut stops: impl FnMut(&Event) -> bool,
) -> Result<Outcome, Error> {
    let held = [("labels".to_string(), ledger.used())];
    let planned = plan(design, &source, None, options, 2, &held, ledger.budget())?;
    source.keep(&planned.keep, ledger)?;
    let stop = AtomicBool::new(false);
    let samples = Samples {
        training: &source,
        validation: None,
    };
    let mut sink = |event: Event| {
        if stops(&event) {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let total = planned.plan.total();
    let outcome = train(
        design, &samples, options, planned, ledger, resume, &stop, &mut sink,
    );
    assert!(
        ledger.peak() <= total,
        "{} granted, {total} planned",
        ledger.peak()
    );
    outcome
}

pub(crate) fn done(outcome: Outcome) -> (NetworkModel, Report) {
    match outcome {
        Outcome::Done(done) => *done,
        Outcome::Stopped { epoch, .. } => panic!("stopped in epoch {epoch}"),
    }
}

pub(crate) fn bits(machine: &Machine) -> Vec<(String, Vec<u32>)> {
    let names: Vec<String> = machine.tensors().map(|(name, ..)| name.to_string()).collect();
    let of = |name: String| {
        let bits = machine
            .tensor(&name)
            .unwrap()
            .iter()
            .map(|value| value.to_bits())
            .collect();
        (name, bits)
    };
    names.into_iter().map(of).collect()
}

pub(crate) fn metric(report: &Report, name: &str) -> f64 {
    report
        .metrics
        .iter()
        .find(|metric| metric.name == name)
        .unwrap()
        .value
}

#[test]
fn a_network_learns_and_comes_back_from_its_folder() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 600);
    let (model, report) = done(run(&path, &options(), LAYERS, 50_000_000, None, |_| false).unwrap());
    assert!(metric(&report, "accuracy") > 0.95, "{:?}", report.metrics);
    assert_eq!(report.classes, ["0", "1", "2"]);
    assert_eq!(report.by_class.len(), 3);
    assert_eq!(report.rows.used, 600);
    let folder = temp.path().join("model");
    model.save(&folder, &report).unwrap();
    assert!(NetworkModel::is_in(&folder));
    let design = NetworkModel::load_design(&folder).unwrap();
    assert_eq!(design, model.design);
    let mut machine = NetworkModel::program(&design, 4, 1).unwrap().build(0).unwrap();
    NetworkModel::fill(&mut machine, &folder).unwrap();
    assert!(bits(&machine) == bits(&model.machine));
}

#[test]
fn stopped_anywhere_and_taken_up_again_it_ends_at_the_same_bits() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 300);
    for (accumulate, patience, clip) in [(1, None, None), (2, Some(2), Some(1.0))] {
        let options = Options {
            accumulate,
            patience,
            clip,
            checkpoint: Some(temp.path().join("checkpoint")),
            checkpoint_every: Duration::ZERO,
            ..options()
        };
        let (expected, report) = done(run(&path, &options, LAYERS, 50_000_000, None, |_| false).unwrap());
        for at in [1, 2, 5, 9, 13, 20] {
            let mut checkpoints = 0;
            let stops = |event: &Event| {
                checkpoints += u32::from(matches!(event, Event::Checkpoint { .. }));
                checkpoints >= at
            };
            let stopped = run(&path, &options, LAYERS, 50_000_000, None, stops).unwrap();
            assert!(
                matches!(stopped, Outcome::Stopped { checkpoint: true, .. }),
                "at {at}"
            );
            let checkpoint = Checkpoint::load(options.checkpoint.as_ref().unwrap()).unwrap();
            // Another budget and other threads make no difference.
            let again = run(&path, &options, LAYERS, 9_000_000, Some(&checkpoint), |_| false).unwrap();
            let (model, resumed) = done(again);
            assert!(bits(&model.machine) == bits(&expected.machine), "stopped at {at}");
            assert_eq!(resumed, report, "stopped at {at}");
        }
    }
}

#[test]
fn stopped_while_it_is_judged_it_does_not_wait_for_the_end_of_that() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 300);
    // A rate of zero makes nothing better: with patience, the first weights are put back and judged once more.
    for (rate, patience, at) in [(3e-3, None, 1), (3e-3, None, 3), (0.0, Some(1), 2)] {
        let options = Options {
            rate,
            patience,
            checkpoint: Some(temp.path().join("checkpoint")),
            ..options()
        };
        let layers = r#"[{"conv": 8, "activation": "relu"}, "flatten"]"#;
        let (expected, report) = done(run(&path, &options, layers, 50_000_000, None, |_| false).unwrap());
        let mut judged = Vec::new();
        // All samples of the epoch are learned from, or all of it is judged.
        let stops = |event: &Event| match event {
            Event::Epoch { epoch, .. } => {
                judged.push(*epoch);
                patience.is_some() && *epoch == at
            }
            Event::Progress {
                epoch,
                consumed,
                total,
                ..
            } => patience.is_none() && *epoch == at && consumed == total,
            _ => false,
        };
        let stopped = run(&path, &options, layers, 50_000_000, None, stops).unwrap();
        let Outcome::Stopped { checkpoint: true, .. } = stopped else {
            panic!("it went on in epoch {at}");
        };
        let until = if patience.is_some() { at } else { at - 1 };
        assert!(judged.iter().copied().eq(1..=until), "{judged:?}");
        let checkpoint = Checkpoint::load(options.checkpoint.as_ref().unwrap()).unwrap();
        let again = run(&path, &options, layers, 50_000_000, Some(&checkpoint), |_| false).unwrap();
        let (model, resumed) = done(again);
        assert!(bits(&model.machine) == bits(&expected.machine), "stopped in {at}");
        assert_eq!(resumed, report, "stopped in {at}");
    }
}

#[test]
fn gradients_summed_over_small_batches_are_those_of_a_large_one() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 320);
    // Without values left out and without norms, a step is the same however it is cut.
    let layers = r#"[{"conv": 8, "activation": "relu"}, {"max_pool": 2}, "flatten", {"dense": 16, "activation": "tanh"}]"#;
    let train_with = |batch: usize, accumulate: u32| {
        let options = Options {
            batch,
            accumulate,
            epochs: 1,
            ..options()
        };
        done(run(&path, &options, layers, 50_000_000, None, |_| false).unwrap()).0
    };
    let (large, small) = (train_with(32, 1), train_with(8, 4));
    for (name, ..) in large.machine.tensors() {
        let [a, b] = [&large, &small].map(|model| model.machine.tensor(name).unwrap());
        for (a, b) in a.iter().zip(b) {
            assert!((a - b).abs() < 2e-4, "{name}: {a} {b}");
        }
    }
}

#[test]
fn a_loss_that_is_no_number_stops_it_and_names_the_layer() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    let checkpoint = temp.path().join("checkpoint");
    let options = Options {
        rate: 1e30,
        rule: Rule::Sgd {
            momentum: 0.0,
            nesterov: false,
            weight_decay: 0.0,
        },
        schedule: Schedule::Constant,
        warm_up: 0.0,
        checkpoint: Some(checkpoint.clone()),
        ..options()
    };
    let layers = r#"[{"conv": 8, "activation": "relu"}, "flatten", {"dense": 16, "activation": "relu"}]"#;
    let error = run(&path, &options, layers, 50_000_000, None, |_| false)
        .err()
        .unwrap();
    let Error::WentBad { epoch, step, what } = &error else {
        panic!("{error}")
    };
    assert_eq!(*epoch, 1);
    assert!(
        *step >= 2 && (what.contains("layer") || what.contains("weights")),
        "{what}"
    );
    assert!(error.hint().unwrap().contains("--learning-rate"));
}

#[test]
fn a_budget_that_is_too_small_is_refused_with_the_least_that_would_do() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    // Nothing may be changed that the numbers depend on.
    let options = Options {
        micro_batch: Some(16),
        precision: Some(Precision::F32),
        moments: Some(Moments::F32),
        ..options()
    };
    let error = run(&path, &options, LAYERS, 300_000, None, |_| false)
        .err()
        .unwrap();
    let Error::BudgetTooSmall { least, .. } = error else {
        panic!("{error}")
    };
    let (_, mut report) = done(run(&path, &options, LAYERS, least, None, |_| false).unwrap());
    let (_, roomy) = done(run(&path, &options, LAYERS, 100_000_000, None, |_| false).unwrap());
    // What was not in memory was waited for.
    assert_eq!((report.fed.len(), roomy.fed.len()), (3, 0));
    report.fed.clear();
    assert_eq!(report, roomy, "the budget does not change the result");
}

#[test]
fn weights_start_from_a_file_and_the_outputs_may_be_others() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 300);
    let (model, report) = done(run(&path, &options(), LAYERS, 50_000_000, None, |_| false).unwrap());
    let folder = temp.path().join("model");
    model.save(&folder, &report).unwrap();
    // Frozen, they stay; the head is new.
    let frozen = LAYERS.replace(r#""conv": 8,"#, r#""conv": 8, "frozen": true,"#);
    let from = Options {
        weights: Some(folder.join("weights.safetensors")),
        ..options()
    };
    let mut notices = Vec::new();
    let outcome = run(&path, &from, &frozen, 50_000_000, None, |event| {
        if let Event::Notice(text) = event {
            notices.push(text.clone());
        }
        false
    });
    let (again, _) = done(outcome.unwrap());
    assert!(notices[0].starts_with("all 10 tensors start from"), "{notices:?}");
    assert_eq!(again.machine.tensor("0.weight"), model.machine.tensor("0.weight"));
    assert_ne!(again.machine.tensor("5.weight"), model.machine.tensor("5.weight"));
    let other = LAYERS.replace(r#""conv": 8"#, r#""conv": 9"#);
    let error = run(&path, &from, &other, 50_000_000, None, |_| false)
        .err()
        .unwrap();
    assert!(
        matches!(&error, Error::OtherWeights { name, .. } if name == "0.weight"),
        "{error}"
    );
}

/// Images of 4×4 as BMP, some of which end too early.
fn write_images(folder: &Path, n: usize, is_broken: impl Fn(usize) -> bool) {
    let mut state = 11;
    for i in 0..n {
        let class = i % 2;
        let mut bytes = b"BM\x66\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0\x04\0\0\0\x04\0\0\0\x01\0\x18\0".to_vec();
        bytes.resize(54, 0);
        bytes.extend((0..48).map(|_| (draw(&mut state) % 90) as u8 + 120 * class as u8));
        if is_broken(i) {
            bytes.truncate(60);
        }
        let inside = folder.join(["dark", "light"][class]);
        std::fs::create_dir_all(&inside).unwrap();
        std::fs::write(inside.join(format!("{i:03}.bmp")), bytes).unwrap();
    }
}

#[test]
fn a_step_is_what_its_images_make_of_it_however_its_batches_are_cut() {
    let temp = tempfile::tempdir().unwrap();
    write_images(temp.path(), 40, |i| i % 5 == 3);
    let train = |batch: usize, accumulate: u32| {
        let ledger = Ledger::new(50_000_000);
        let looked = &mut |_, _| ControlFlow::Continue(());
        let opened = images::open(temp.path(), &ImageOptions::default(), &ledger, looked);
        let opened = opened.unwrap().unwrap();
        let source = opened.training;
        let layers = r#"["flatten", {"dense": 5, "activation": "tanh"}]"#;
        let design = Design {
            sample: source.shape().to_vec(),
            input: source.shape().to_vec(),
            labels: source.labels().unwrap().clone(),
            scaling: Scaling::Byte,
            layers: serde_json::from_str(layers).unwrap(),
            images: Some(opened.form),
        };
        let options = Options {
            rule: Rule::Sgd {
                momentum: 0.5,
                nesterov: false,
                weight_decay: 0.0,
            },
            rate: 0.05,
            batch,
            accumulate,
            ..options()
        };
        let (model, report) = done(run_on(source, &design, &options, &ledger, None, |_| false).unwrap());
        let weights: Vec<f32> = bits(&model.machine)
            .into_iter()
            .flat_map(|(_, bits)| bits.into_iter().map(f32::from_bits))
            .collect();
        (weights, report.rows)
    };
    let (whole, rows) = train(6, 2);
    // Of 40, a fifth is broken: neither learned from nor judged by.
    assert_eq!(rows.used, 32);
    // Many of these batches have no image at all, first, last or between others.
    for (batch, accumulate) in [(1, 12), (2, 6), (3, 4)] {
        let (cut, other) = train(batch, accumulate);
        assert_eq!((other.used, other.held_out), (rows.used, rows.held_out));
        for (a, b) in whole.iter().zip(&cut) {
            assert!((a - b).abs() < 1e-5, "{a} and {b} with {batch} at a time");
        }
    }
}
