//! Ways to train in less memory: what they save, and that the numbers are those of the plain way.

use tidegate_train::network::{Batch, Layer, Learning, Machine, Precision, Preset, Program, Purpose, Shape};

use super::sample::{batch, fill, learning, networks};

const BATCH: usize = 13;

fn program(layers: &str, input: &[usize], outputs: usize, threads: usize, learning: Learning) -> Program {
    let layers: Vec<Layer> = serde_json::from_str(layers).unwrap();
    let purpose = Purpose {
        batch: BATCH,
        threads,
        learning: Some(learning),
    };
    Program::compile(&layers, &Shape(input.to_vec()), outputs, &purpose).unwrap()
}

fn names(machine: &Machine) -> Vec<String> {
    machine.tensors().map(|(name, ..)| name.to_string()).collect()
}

/// Learns from a few batches, the last of them smaller; losses, and all tensors.
fn train(machine: &mut Machine, outputs: usize, tokens: bool) -> (Vec<f64>, Vec<Vec<f32>>) {
    let steps = 1..=6;
    let losses = steps.map(|step| {
        fill(machine, step, outputs, tokens);
        machine.learn(&batch(step, if step == 6 { 7 } else { BATCH }))
    });
    let losses = losses.collect();
    let tensors = names(machine)
        .iter()
        .map(|name| machine.tensor(name).unwrap())
        .collect();
    (losses, tensors)
}

#[test]
fn what_is_made_again_is_what_it_was_to_the_last_bit() {
    for (layers, input, outputs) in networks() {
        let tokens = input.len() == 1;
        for clip in [None, Some(0.3)] {
            let of = |recompute: Vec<usize>| {
                let learning = Learning {
                    recompute,
                    ..learning(clip)
                };
                program(layers, &input, outputs, 2, learning)
            };
            let expected = train(&mut of(Vec::new()).build(3).unwrap(), outputs, tokens);
            let single = (1..20).map(|node| vec![node]);
            let sets = single.chain([
                (1..40).collect(),
                (1..40).step_by(2).collect(),
                (2..40).step_by(2).collect(),
                (1..40).filter(|node| node % 3 > 0).collect(),
            ]);
            for recompute in sets {
                let mut machine = of(recompute.clone()).build(3).unwrap();
                // What is read after its life shows.
                machine.poison();
                assert!(
                    train(&mut machine, outputs, tokens) == expected,
                    "{recompute:?} of {layers}"
                );
            }
        }
    }
}

/// Many layers of one size: most of what they make waits.
const DEEP: &str = r#"[{"conv": 16, "padding": "same", "activation": "relu"}, {"conv": 16, "padding": "same", "activation": "relu"},
    {"conv": 16, "padding": "same", "activation": "relu"}, {"conv": 16, "padding": "same", "activation": "relu"},
    {"conv": 16, "padding": "same", "activation": "relu"}, {"conv": 16, "padding": "same", "activation": "relu"},
    {"conv": 16, "padding": "same", "activation": "relu"}, {"conv": 16, "padding": "same", "activation": "relu"},
    {"conv": 16, "padding": "same", "activation": "relu"}, "global_average_pool"]"#;

fn deep(precision: Precision, recompute: Vec<usize>) -> u64 {
    let learning = Learning {
        precision,
        recompute,
        ..learning(None)
    };
    program(DEEP, &[32, 32, 3], 5, 1, learning).bytes()
}

#[test]
fn values_made_again_or_of_two_bytes_take_less_memory() {
    let plain = deep(Precision::F32, Vec::new());
    let again = deep(Precision::F32, (1..9).filter(|node| node % 3 > 0).collect());
    assert!(again < plain * 7 / 10, "{again} of {plain}");
    let half = deep(Precision::Bf16, Vec::new());
    assert!(half < plain * 8 / 10, "{half} of {plain}");
}

#[test]
fn a_norm_goes_back_in_the_place_of_its_slope() {
    let layers = r#"[{"conv": 16, "padding": "same", "bias": false}, {"norm": "batch", "activation": "relu"}, {"max_pool": 2},
        "global_average_pool"]"#;
    let shares = program(layers, &[32, 32, 3], 5, 1, learning(None)).shares();
    let activations = shares.iter().find(|share| share.name == "activations").unwrap();
    // What was normed and its slope; the rest are samples, and what the pool made.
    let made = 4 * (BATCH * 32 * 32 * 16) as u64;
    assert!(
        activations.bytes < made * 27 / 10,
        "{} of {made}",
        activations.bytes
    );
}

/// Norms before pools: of all kinds, over what others ask for, too, and over the sample itself.
const POOLED: [(&str, [usize; 3]); 6] = [
    (
        r#"[{"conv": 19, "stride": 2, "padding": 3, "kernel": 7, "bias": false}, {"norm": "batch", "activation": "relu"}, POOL,
            {"residual": [{"conv": 19, "padding": 1}], "activation": "relu"}, "global_average_pool"]"#,
        [37, 41, 3],
    ),
    (
        r#"[{"conv": 64, "padding": 1}, {"norm": "batch", "activation": "silu"}, POOL, "global_average_pool"]"#,
        [33, 30, 3],
    ),
    (
        r#"[{"conv": 16, "activation": "relu"}, "batch_norm", POOL, {"conv": 8}, {"norm": "batch", "activation": "gelu"}, POOL,
            "flatten"]"#,
        [27, 29, 2],
    ),
    (
        r#"[{"conv": 24}, {"residual": [{"depthwise": 3, "padding": 1}, {"norm": "batch", "activation": "relu"}, POOL],
            "shortcut": [{"norm": "batch"}, POOL], "activation": "relu"}, "global_max_pool"]"#,
        [24, 25, 3],
    ),
    (
        r#"[{"conv": 20, "padding": 1}, {"residual": ["batch_norm"]}, "batch_norm", POOL, {"residual": [{"norm": "batch"}]},
            "global_average_pool"]"#,
        [21, 19, 3],
    ),
    (
        r#"["batch_norm", POOL, {"conv": 8}, "global_average_pool"]"#,
        [20, 22, 5],
    ),
];

#[test]
fn a_norm_takes_the_slope_of_a_pool_as_one_that_stands_apart() {
    let pools = [
        r#"{"max_pool": 3, "stride": 2, "padding": 1}"#,
        r#"{"max_pool": 2}"#,
        r#"{"max_pool": 2, "stride": 3}"#,
        r#"{"average_pool": 3, "stride": 2, "padding": 1}"#,
    ];
    for ((layers, input), pool) in POOLED.iter().flat_map(|of| pools.map(|pool| (of, pool))) {
        let train = |pool: &str, recompute: Vec<usize>, precision: Precision, threads: usize| {
            let learning = Learning {
                accumulates: true,
                to_sample: true,
                recompute,
                precision,
                ..learning(None)
            };
            let layers = layers.replace("POOL", pool);
            let mut machine = program(&layers, input, 4, threads, learning).build(3).unwrap();
            machine.poison();
            let trained = train(&mut machine, 4, false);
            let slope = machine.input_slope().unwrap()[..7 * input.iter().product::<usize>()].to_vec();
            let names = names(&machine);
            let gradients: Vec<_> = names.iter().map(|name| machine.gradient(name)).collect();
            (trained, slope, gradients)
        };
        // What drops nothing stands between them.
        let apart = format!(r#"{{"dropout": 0.0}}, {pool}"#);
        let expected = train(&apart, Vec::new(), Precision::F32, 2);
        for recompute in [vec![], vec![1], vec![1, 2], vec![3], (1..20).collect()] {
            for threads in [1, 3] {
                let found = train(pool, recompute.clone(), Precision::F32, threads);
                assert!(
                    found == expected,
                    "{pool}, {recompute:?} on {threads} threads: {layers}"
                );
            }
        }
        let half = train(pool, vec![1], Precision::Bf16, 2);
        for (found, expected) in half.0.0.iter().zip(&expected.0.0) {
            assert!(
                (found - expected).abs() <= 0.1 * expected.abs(),
                "{found} instead of {expected} with {pool}: {layers}"
            );
        }
    }
}

#[test]
fn a_norm_before_a_pool_goes_back_in_the_place_of_what_it_was_given() {
    let layers = r#"[{"conv": 16, "padding": "same", "bias": false}, {"norm": "batch", "activation": "relu"},
        {"max_pool": 3, "stride": 2, "padding": 1}, {"conv": 4}, "global_average_pool"]"#;
    let made = 4 * (BATCH * 32 * 32 * 16) as u64;
    let learning = Learning {
        recompute: vec![1],
        ..learning(None)
    };
    let shares = program(layers, &[32, 32, 3], 5, 1, learning).shares();
    let activations = shares.iter().find(|share| share.name == "activations").unwrap();
    // What was normed or its slope; the rest are samples, and what the pool made.
    assert!(
        activations.bytes < made * 19 / 10,
        "{} of {made}",
        activations.bytes
    );
}

#[test]
fn a_convolution_goes_back_in_the_place_of_what_it_was_given() {
    // Of wide and of small images: the slope of what a norm made takes the place of that.
    for (side, channels) in [(32, 16), (8, 48)] {
        let layers = format!(
            r#"[{{"conv": {channels}, "padding": "same", "bias": false}}, {{"norm": "batch", "activation": "relu"}},
                {{"conv": {channels}, "padding": "same"}}, "global_average_pool"]"#
        );
        let recompute = vec![1];
        let learning = Learning {
            recompute,
            ..learning(None)
        };
        let layers = program(&layers, &[side, side, 3], 5, 1, learning).layers();
        let made = 4 * (BATCH * side * side * channels) as u64;
        let weights = 4 * (9 * channels * channels) as u64;
        // Beside that it takes the weights, turned, or sums of their gradients.
        let conv = layers.iter().find(|(name, _)| name == "2 conv").unwrap().1;
        assert!(conv < made / 2 + weights, "{conv} of {made}");
    }
}

#[test]
fn a_residual_network_in_half_precision_takes_little_more_than_its_widest_layer() {
    let input = Shape(vec![64, 64, 3]);
    let kept = [3, 8, 13, 25, 32, 37, 44];
    let purpose = Purpose {
        batch: 64,
        threads: 1,
        learning: Some(Learning {
            precision: Precision::Bf16,
            recompute: (1..49).filter(|node| !kept.contains(node)).collect(),
            ..learning(None)
        }),
    };
    let program = Program::compile(&Preset::Resnet18.layers(&input), &input, 10, &purpose).unwrap();
    let shares = program.shares();
    let activations = shares.iter().find(|share| share.name == "activations").unwrap();
    // The widest layer, what the pool makes of it and where it found that, and the samples in two bytes.
    let (widest, samples) = (4 * 64 * 32 * 32 * 64, 2 * 64 * 64 * 64 * 3);
    let least = widest + widest / 4 + widest / 16 + samples;
    assert!(
        activations.bytes < least * 101 / 100,
        "{} of {least}",
        activations.bytes
    );
}

#[test]
fn values_that_wait_in_half_precision_are_nearly_the_same() {
    for (layers, input, outputs) in networks() {
        let tokens = input.len() == 1;
        let of = |precision: Precision, recompute: &[usize], threads: usize| {
            let learning = Learning {
                precision,
                recompute: recompute.to_vec(),
                ..learning(None)
            };
            program(layers, &input, outputs, threads, learning)
        };
        let expected = train(&mut of(Precision::F32, &[], 2).build(3).unwrap(), outputs, tokens);
        for (precision, off) in [(Precision::Bf16, [0.02, 0.15]), (Precision::F16, [0.01, 0.02])] {
            let (all, odd): (Vec<usize>, Vec<usize>) = ((1..40).collect(), (1..40).step_by(2).collect());
            for recompute in [&[][..], &[2, 3, 5, 7], &all, &odd] {
                let mut machine = of(precision, recompute, 2).build(3).unwrap();
                machine.poison();
                let found = train(&mut machine, outputs, tokens);
                for (step, (found, expected)) in found.0.iter().zip(&expected.0).enumerate() {
                    // The first steps differ by their own rounding, later ones by what it has led to.
                    let off = off[usize::from(step >= 3)];
                    assert!(
                        (found - expected).abs() <= off * expected.abs(),
                        "{precision:?}, {recompute:?}: {found} instead of {expected} in {layers}"
                    );
                }
                let on_three = train(
                    &mut of(precision, recompute, 3).build(3).unwrap(),
                    outputs,
                    tokens,
                );
                assert!(on_three == found, "{precision:?} on three threads: {layers}");
            }
        }
    }
}

/// A step over all samples, in batches of so many.
fn step_in(machine: &mut Machine, outputs: usize, tokens: bool, rows: usize, size: usize) {
    fill(machine, 1, outputs, tokens);
    let inputs = machine.inputs().to_vec();
    let targets = machine.targets().to_vec();
    let (n_inputs, n_targets) = (inputs.len() / BATCH, targets.len() / BATCH);
    for before in (0..rows).step_by(size) {
        let n = size.min(rows - before);
        machine.inputs()[..n * n_inputs].copy_from_slice(&inputs[before * n_inputs..(before + n) * n_inputs]);
        machine.targets()[..n * n_targets]
            .copy_from_slice(&targets[before * n_targets..(before + n) * n_targets]);
        machine.learn(&Batch {
            rows: n,
            before,
            share: 1.0 / rows as f32,
            first: before == 0,
            // The gradients are looked at.
            last: false,
            ..batch(1, rows)
        });
    }
}

#[test]
fn gradients_of_small_batches_add_up_to_those_of_the_large_one() {
    for (layers, input, outputs) in networks() {
        // What batch norm sees is another batch.
        if layers.contains("batch") {
            continue;
        }
        let tokens = input.len() == 1;
        let learning = Learning {
            accumulates: true,
            ..learning(None)
        };
        let mut machine = program(layers, &input, outputs, 2, learning).build(3).unwrap();
        // The last step of an epoch may have fewer samples, and its last batch fewer still.
        for rows in [BATCH, 11] {
            step_in(&mut machine, outputs, tokens, rows, rows);
            let learned = machine.tensors().filter(|(_, _, learned)| *learned);
            let learned: Vec<String> = learned.map(|(name, ..)| name.to_string()).collect();
            let expected: Vec<Vec<f32>> = learned
                .iter()
                .map(|name| machine.gradient(name).unwrap())
                .collect();
            for size in [1, 4, 6] {
                step_in(&mut machine, outputs, tokens, rows, size);
                for (name, expected) in learned.iter().zip(&expected) {
                    let found = machine.gradient(name).unwrap();
                    let most = expected.iter().fold(0.0f32, |most, value| most.max(value.abs()));
                    for (found, expected) in found.iter().zip(expected) {
                        assert!(
                            (found - expected).abs() <= 2e-5 * most.max(1e-3),
                            "{name} by {size} of {rows}: {found} instead of {expected} in {layers}"
                        );
                    }
                }
            }
        }
    }
}
