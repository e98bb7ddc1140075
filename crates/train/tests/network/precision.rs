//! Scaled slopes: they change no result, and a step whose gradients are not finite is skipped as a whole.

use std::time::Duration;

use tidegate_train::network::{Batch, Learning, Loss, Machine, Options, Outcome, Precision};
use tidegate_train::{Checkpoint, Error, Event};

use super::sample::{batch, build_with, fill, learning, networks};
use super::training::{bits, done, metric, options, run, write_bars};

const LAYERS: &str =
    r#"[{"conv": 8, "activation": "relu"}, {"max_pool": 2}, "flatten", {"dense": 16, "activation": "relu"}]"#;

fn scaled(precision: Precision, clip: Option<f32>) -> Learning {
    Learning {
        precision,
        ..learning(clip)
    }
}

fn learn(machine: &mut Machine, step: u64, scale: f32, outputs: usize, tokens: bool) -> f64 {
    fill(machine, step, outputs, tokens);
    machine.learn(&Batch {
        scale,
        ..batch(step, 13)
    })
}

#[test]
fn a_scale_changes_neither_losses_nor_weights() {
    for (layers, input, outputs) in networks() {
        for clip in [None, Some(0.3)] {
            let train = |scale: f32| {
                let mut machine = build_with(layers, &input, outputs, 2, scaled(Precision::F16, clip));
                let losses: Vec<f64> = (1..=5)
                    .map(|step| learn(&mut machine, step, scale, outputs, input.len() == 1))
                    .collect();
                assert!(!machine.skipped());
                (machine, losses)
            };
            let ((plain, expected), (machine, losses)) = (train(1.0), train(65_536.0));
            for (loss, expected) in losses.iter().zip(expected) {
                assert!(
                    (loss / expected - 1.0).abs() < 1e-2,
                    "{loss}, not {expected}: {layers}"
                );
            }
            // Slopes that wait beside a residual are what the scale is for: without it, small ones are lost.
            if layers.contains("residual") {
                continue;
            }
            for (name, ..) in plain.tensors() {
                let [found, expected] = [&machine, &plain].map(|machine| machine.tensor(name).unwrap());
                for (found, expected) in found.iter().zip(expected) {
                    assert!((found - expected).abs() < 1e-4, "{name}: {found}, not {expected}");
                }
            }
        }
    }
}

#[test]
fn a_step_whose_gradients_are_not_finite_changes_nothing() {
    let (layers, input, outputs) = networks().swap_remove(0);
    for clip in [None, Some(0.3)] {
        let build = || build_with(layers, &input, outputs, 2, scaled(Precision::F16, clip));
        let (mut machine, mut other) = (build(), build());
        let loss = learn(&mut machine, 1, 1024.0, outputs, false);
        assert_eq!(loss, learn(&mut other, 1, 1024.0, outputs, false));
        let before = bits(&machine);
        let loss = learn(&mut machine, 2, f32::MAX, outputs, false);
        assert!(loss.is_finite() && machine.skipped());
        assert!(bits(&machine) == before);
        // Nor do moments change: what follows is as if it had not been.
        for machine in [&mut machine, &mut other] {
            learn(machine, 2, 512.0, outputs, false);
            assert!(!machine.skipped());
        }
        assert!(bits(&machine) == bits(&other) && bits(&machine) != before);
    }
}

/// Losses that are so much larger make gradients so much larger, and Adam's steps no different.
fn heavy(weight: f32) -> Options {
    Options {
        loss: Some(Loss::CrossEntropy {
            smoothing: 0.0,
            class_weights: vec![weight; 3],
        }),
        precision: Some(Precision::F16),
        ..options()
    }
}

#[test]
fn a_training_finds_the_scale_that_it_can_have() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 600);
    for (accumulate, clip) in [(1, None), (2, Some(1e20))] {
        let options = Options {
            accumulate,
            clip,
            batch: 16 / accumulate as usize,
            ..heavy(1e17)
        };
        let mut notices = Vec::new();
        let outcome = run(&path, &options, LAYERS, 50_000_000, None, |event| {
            if let Event::Notice(text) = event {
                notices.push(text.clone());
            }
            false
        });
        let (_, report) = done(outcome.unwrap());
        let skipped = report.skipped_steps;
        assert!((4..14).contains(&skipped), "{skipped} skipped");
        assert!(metric(&report, "accuracy") > 0.95, "{:?}", report.metrics);
        assert_eq!(notices.len(), 1, "{notices:?}");
        let scale = 65_536 >> skipped;
        assert_eq!(
            notices[0],
            format!(
                "{skipped} steps were skipped in epoch 1: gradients overflowed; the loss is scaled by {scale} now"
            )
        );
    }
    let plain = Options {
        precision: Some(Precision::F16),
        ..options()
    };
    let (_, report) = done(run(&path, &plain, LAYERS, 50_000_000, None, |_| false).unwrap());
    assert_eq!(report.skipped_steps, 0);
}

#[test]
fn gradients_that_no_scale_makes_finite_end_it() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 600);
    let error = run(&path, &heavy(1e25), LAYERS, 50_000_000, None, |_| false)
        .err()
        .unwrap();
    let Error::WentBad { epoch, step, what } = &error else {
        panic!("{error}")
    };
    assert_eq!((*epoch, *step), (1, 17));
    assert!(what.contains("slopes"), "{what}");
}

#[test]
fn a_training_that_skips_steps_is_taken_up_again_bit_for_bit() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    let options = Options {
        checkpoint: Some(temp.path().join("checkpoint")),
        checkpoint_every: Duration::ZERO,
        ..heavy(1e17)
    };
    let (expected, report) = done(run(&path, &options, LAYERS, 50_000_000, None, |_| false).unwrap());
    assert!(report.skipped_steps > 3);
    for at in [1, 3, 9, 20] {
        let mut checkpoints = 0;
        let stops = |event: &Event| {
            checkpoints += u32::from(matches!(event, Event::Checkpoint { .. }));
            checkpoints >= at
        };
        let stopped = run(&path, &options, LAYERS, 50_000_000, None, stops).unwrap();
        assert!(matches!(stopped, Outcome::Stopped { checkpoint: true, .. }));
        let checkpoint = Checkpoint::load(options.checkpoint.as_ref().unwrap()).unwrap();
        let again = run(&path, &options, LAYERS, 50_000_000, Some(&checkpoint), |_| false).unwrap();
        let (model, resumed) = done(again);
        assert!(bits(&model.machine) == bits(&expected.machine), "stopped at {at}");
        assert_eq!(resumed, report);
    }
}
