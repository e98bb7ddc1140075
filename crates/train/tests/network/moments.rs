//! Moments of two bytes and of one: they learn as well as those of four, take the bytes they should, and are the same on any
//! number of threads, however gradients come.

use std::time::Duration;

use tidegate_train::network::{
    Layer, Learning, Machine, Moment, Moments, Options, Outcome, Program, Purpose, Rule, Shape,
};
use tidegate_train::{Checkpoint, Event};

use super::sample::{batch, build_with, fill, learning};
use super::training::{bits, done, options, run, write_bars};

const PACKED: [Moments; 2] = [Moments::Bf16, Moments::Int8];

fn rules() -> [Rule; 4] {
    let rule = |text: &str| serde_json::from_str::<Rule>(text).unwrap();
    [
        rule(r#"{"kind": "sgd", "momentum": 0.9}"#),
        rule(r#"{"kind": "adam"}"#),
        rule(r#"{"kind": "adamw", "weight_decay": 0.02}"#),
        rule(r#"{"kind": "rmsprop", "momentum": 0.5}"#),
    ]
}

/// Networks whose large tensors are taken in every way there is: dense, convolved by parts and by taps, in groups, by
/// depth, rows of tokens and of sparse columns.
fn networks() -> Vec<(&'static str, Vec<usize>, usize)> {
    vec![
        (
            r#"[{"conv": 19, "activation": "relu"}, {"max_pool": 2}, {"conv": 37, "padding": "same"}, "flatten", {"dense": 33}]"#,
            vec![21, 29, 3],
            33,
        ),
        (
            r#"[{"conv": 68, "padding": 1, "groups": 2}, {"conv": 460, "kernel": 1}, {"depthwise": 3}, "global_average_pool"]"#,
            vec![7, 8, 18],
            4,
        ),
        (
            r#"[{"conv": 68, "padding": 1, "groups": 2}, "global_average_pool"]"#,
            vec![15, 16, 18],
            4,
        ),
        (
            r#"[{"embedding": 21, "tokens": 300}, {"conv": 60, "kernel": 5, "activation": "tanh"}, "global_max_pool", {"dense": 3}]"#,
            vec![40],
            3,
        ),
        (
            r#"[{"sparse": 17, "places": 500, "pairs": 3}, {"dense": 300, "activation": "relu"}, {"dense": 3}]"#,
            vec![7 + 2 * 3],
            3,
        ),
    ]
}

/// Learns a few batches, the last of them smaller, and returns all tensors.
fn train(machine: &mut Machine, layers: &str, outputs: usize) -> Vec<(String, Vec<u32>)> {
    for step in 1..=5 {
        fill(machine, step, outputs, layers.contains("embedding"));
        if layers.contains("sparse") {
            for (row, sample) in machine.inputs().chunks_exact_mut(13).enumerate() {
                for pair in 0..3 {
                    sample[7 + 2 * pair] = ((step as usize * 29 + row * 7 + pair * 131) % 500) as f32;
                }
            }
        }
        let loss = machine.learn(&batch(step, if step == 5 { 7 } else { 13 }));
        assert!(loss.is_finite());
    }
    bits(machine)
}

#[test]
fn packed_moments_are_the_same_on_any_number_of_threads_and_with_gradients_that_are_kept() {
    for (layers, input, outputs) in networks() {
        let mut ends = Vec::new();
        for moments in [Moments::F32, Moments::Bf16, Moments::Int8] {
            let trained = |threads: usize, clip: Option<f32>, poisons: bool| {
                let learning = Learning {
                    moments,
                    ..learning(clip)
                };
                let mut machine = build_with(layers, &input, outputs, threads, learning);
                if poisons {
                    machine.poison();
                }
                train(&mut machine, layers, outputs)
            };
            let expected = trained(1, None, false);
            for (threads, clip, poisons) in [
                (2, None, true),
                (3, None, false),
                (1, Some(1e9), false),
                (2, Some(1e9), true),
            ] {
                let found = trained(threads, clip, poisons);
                assert!(
                    found == expected,
                    "{moments:?}, {threads} threads, clip {clip:?}: {layers}"
                );
            }
            ends.push(expected);
        }
        assert!(ends[0] != ends[1] && ends[1] != ends[2], "{layers}");
    }
}

/// The mean loss of the last steps of a training on a problem that goes on giving new samples.
fn learned(rule: Rule, rate: f32, moments: Moments) -> f64 {
    let layers: Vec<Layer> = serde_json::from_str(
        r#"[{"dense": 160, "activation": "tanh"}, {"dense": 96, "activation": "tanh"}, {"dense": 4}]"#,
    )
    .unwrap();
    let (batch_len, inputs, steps) = (32, 48, 1200);
    let purpose = Purpose {
        batch: batch_len,
        threads: 2,
        learning: Some(Learning {
            rule,
            moments,
            ..learning(None)
        }),
    };
    let program = Program::compile(&layers, &Shape(vec![inputs]), 4, &purpose).unwrap();
    let mut machine = program.build(3).unwrap();
    let mut state = 17u32;
    let mut draw = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let mut loss = 0.0;
    for step in 1..=steps {
        machine
            .inputs()
            .iter_mut()
            .for_each(|value| *value = 2.0 * draw());
        let classes: Vec<f32> = machine
            .inputs()
            .chunks_exact(inputs)
            .map(|sample| {
                // Which of two sums is positive, and which of two products.
                let sum = |from: usize| sample[from..from + 8].iter().sum::<f32>();
                f32::from(u8::from(sum(0) > 0.0)) + 2.0 * f32::from(u8::from(sum(8) * sample[20] > 0.0))
            })
            .collect();
        machine.targets().copy_from_slice(&classes);
        let mut one = batch(step, batch_len);
        one.moment = Moment { rate, step };
        let of_step = machine.learn(&one) / batch_len as f64;
        if step > steps - 200 {
            loss += of_step / 200.0;
        }
    }
    loss
}

#[test]
fn packed_moments_learn_nearly_as_well() {
    for (rule, rate) in rules().into_iter().zip([0.02, 2e-3, 2e-3, 5e-4]) {
        let expected = learned(rule, rate, Moments::F32);
        for moments in PACKED {
            let found = learned(rule, rate, moments);
            assert!(
                (found / expected - 1.0).abs() < 0.01,
                "{rule:?}, {moments:?}: {found}, not {expected}"
            );
        }
        assert!(expected < 1.2, "{rule:?} learns: {expected}");
    }
}

#[test]
fn the_optimizer_takes_the_bytes_that_its_moments_do() {
    let (inputs, hidden, outputs) = (300, 200, 10);
    let layers = format!(r#"[{{"dense": {hidden}, "activation": "relu"}}, {{"dense": {outputs}}}]"#);
    let layers: Vec<Layer> = serde_json::from_str(&layers).unwrap();
    let bytes = |rule: Rule, moments: Moments| {
        let purpose = Purpose {
            batch: 16,
            threads: 1,
            learning: Some(Learning {
                rule,
                moments,
                ..learning(None)
            }),
        };
        let program = Program::compile(&layers, &Shape(vec![inputs]), outputs, &purpose).unwrap();
        let shares = program.shares();
        assert_eq!(
            shares.iter().map(|share| share.bytes).sum::<u64>(),
            program.bytes()
        );
        let optimizer = shares.iter().find(|share| share.name == "optimizer");
        optimizer.map_or(0, |share| share.bytes as usize)
    };
    let [sgd, adam, ..] = rules();
    let large = inputs * hidden;
    // The biases and the last layer are too small to be worth it.
    let small = hidden + hidden * outputs + outputs;
    // Of the weights of 16 inputs, each 256 have a scale; 300 inputs are 18 times 16, and 12 more.
    let scales = 18 * (16 * hidden).div_ceil(256) + (12 * hidden).div_ceil(256);
    for (rule, n) in [(sgd, 1), (adam, 2)] {
        assert_eq!(bytes(rule, Moments::F32), n * 4 * (large + small));
        assert_eq!(bytes(rule, Moments::Bf16), n * (2 * large + 4 * small));
        assert_eq!(bytes(rule, Moments::Int8), n * (large + 4 * scales + 4 * small));
    }
    let plain = Rule::Sgd {
        momentum: 0.0,
        nesterov: false,
        weight_decay: 0.0,
    };
    assert_eq!(bytes(plain, Moments::Int8), 0);
}

#[test]
fn rows_that_no_sample_has_keep_their_packed_moments() {
    let layers = r#"[{"sparse": 20, "places": 300, "pairs": 2}, {"dense": 3}]"#;
    for moments in PACKED {
        let learning = Learning {
            moments,
            ..learning(None)
        };
        let mut machine = build_with(layers, &[3 + 2 * 2], 3, 2, learning);
        let mut learn = |step: u64, first: usize| {
            fill(&mut machine, step, 3, false);
            for (row, sample) in machine.inputs().chunks_exact_mut(7).enumerate() {
                sample[3] = (first + row % 4) as f32;
                sample[5] = (first + 4 + row % 3) as f32;
            }
            machine.learn(&batch(step, 13));
            machine.tensor("0.weight").unwrap()
        };
        let one = learn(1, 0);
        let two = learn(2, 200);
        assert_eq!(one[..200 * 20], two[..200 * 20]);
        assert!((200..207).all(|place| one[place * 20] != two[place * 20]));
    }
}

#[test]
fn a_training_with_packed_moments_is_taken_up_again_bit_for_bit() {
    let temp = tempfile::tempdir().unwrap();
    let path = write_bars(temp.path(), 200);
    let layers = r#"[{"conv": 8, "activation": "relu"}, {"max_pool": 2}, "flatten", {"dense": 64, "activation": "relu"}]"#;
    for (moments, rule) in PACKED
        .into_iter()
        .flat_map(|moments| rules().map(|rule| (moments, rule)))
    {
        let options = Options {
            rule,
            moments: Some(moments),
            epochs: 2,
            checkpoint: Some(temp.path().join("checkpoint")),
            checkpoint_every: Duration::ZERO,
            ..options()
        };
        let (expected, report) = done(run(&path, &options, layers, 50_000_000, None, |_| false).unwrap());
        for at in [1, 7, 13] {
            let mut checkpoints = 0;
            let stops = |event: &Event| {
                checkpoints += u32::from(matches!(event, Event::Checkpoint { .. }));
                checkpoints >= at
            };
            let stopped = run(&path, &options, layers, 50_000_000, None, stops).unwrap();
            assert!(matches!(stopped, Outcome::Stopped { checkpoint: true, .. }));
            let checkpoint = Checkpoint::load(options.checkpoint.as_ref().unwrap()).unwrap();
            let again = run(&path, &options, layers, 50_000_000, Some(&checkpoint), |_| false).unwrap();
            let (model, resumed) = done(again);
            assert!(
                bits(&model.machine) == bits(&expected.machine),
                "{moments:?} {rule:?} at {at}"
            );
            assert_eq!(resumed, report);
        }
        // Moments of another form are not those of this training.
        let checkpoint = Checkpoint::load(options.checkpoint.as_ref().unwrap()).unwrap();
        let other = Options {
            moments: Some(Moments::F32),
            ..options
        };
        let refused = run(&path, &other, layers, 50_000_000, Some(&checkpoint), |_| false).err();
        assert_eq!(
            refused.unwrap().to_string(),
            "the checkpoint was made with another set of options"
        );
    }
}
