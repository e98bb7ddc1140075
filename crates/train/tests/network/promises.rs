//! What a program promises: no buffer is read after its life, the same bits on any number of threads, and a shape that
//! does not fit is named.

use tidegate_train::network::{
    Batch, Fault, Layer, Learning, Loss, Machine, Misfit, Mix, Program, Purpose, Shape,
};

use super::sample::{batch, build_with, fill, learning, networks};

fn build(layers: &str, input: &[usize], outputs: usize, threads: usize, clip: Option<f32>) -> Machine {
    build_with(layers, input, outputs, threads, learning(clip))
}

/// Learns from a few batches, the last of them smaller, and returns losses and all tensors.
fn train(machine: &mut Machine, outputs: usize, tokens: bool) -> (Vec<u64>, Vec<Vec<u32>>) {
    let mut losses = Vec::new();
    for step in 1..=6 {
        fill(machine, step, outputs, tokens);
        let rows = if step == 6 { 7 } else { 13 };
        losses.push(machine.learn(&batch(step, rows)).to_bits());
    }
    let names: Vec<String> = machine.tensors().map(|(name, ..)| name.to_string()).collect();
    let bits = |name: &String| {
        machine
            .tensor(name)
            .unwrap()
            .iter()
            .map(|value| value.to_bits())
            .collect()
    };
    (losses, names.iter().map(bits).collect())
}

#[test]
fn results_are_the_same_on_any_number_of_threads_and_with_dead_buffers_poisoned() {
    for (layers, input, outputs) in networks() {
        for clip in [None, Some(0.3)] {
            let tokens = input.len() == 1;
            let expected = train(&mut build(layers, &input, outputs, 1, clip), outputs, tokens);
            assert!(expected.0.iter().all(|loss| f64::from_bits(*loss).is_finite()));
            for threads in [2, 3, 8] {
                let found = train(
                    &mut build(layers, &input, outputs, threads, clip),
                    outputs,
                    tokens,
                );
                assert!(found == expected, "{threads} threads: {layers}");
            }
            let mut poisoned = build(layers, &input, outputs, 2, clip);
            poisoned.poison();
            assert!(
                train(&mut poisoned, outputs, tokens) == expected,
                "poisoned: {layers}"
            );
        }
    }
}

#[test]
fn gradients_are_what_differences_say() {
    for (layers, input, outputs) in networks() {
        if layers.contains("dropout") || input.len() == 1 {
            continue;
        }
        check_differences(layers, &input, outputs);
    }
    check_differences(
        r#"[{"conv": 5, "kernel": [2, 3], "stride": [2, 1], "dilation": [1, 2], "groups": 1, "activation": "softplus"},
            {"depthwise": 3, "multiplier": 2, "padding": 1}, {"average_pool": [2, 3], "padding": 1}, "flatten",
            {"dense": 9, "activation": "elu"}, {"dense": 4}]"#,
        &[9, 14, 2],
        4,
    );
}

/// Moves single weights up and down a little, and compares with what the gradient promises.
fn check_differences(layers: &str, input: &[usize], outputs: usize) {
    let parsed: Vec<Layer> = serde_json::from_str(layers).unwrap();
    let purpose = Purpose {
        batch: 13,
        threads: 2,
        learning: Some(Learning {
            accumulates: true,
            ..learning(None)
        }),
    };
    let program = Program::compile(&parsed, &Shape(input.to_vec()), outputs, &purpose).unwrap();
    let mut machine = program.build(5).unwrap();
    let still = Batch {
        last: false,
        ..batch(1, 13)
    };
    let loss = |machine: &mut Machine| {
        fill(machine, 9, outputs, false);
        machine.learn(&still) / 13.0
    };
    loss(&mut machine);
    let learned: Vec<String> = machine
        .tensors()
        .filter(|(_, _, learned)| *learned)
        .map(|(name, ..)| name.to_string())
        .collect();
    for name in learned {
        let gradient = machine.gradient(&name).unwrap();
        let values = machine.tensor(&name).unwrap();
        for i in [0, values.len() / 2, values.len() - 1] {
            let mut at = |change: f32| {
                let mut moved = values.clone();
                moved[i] += change;
                assert!(machine.set_tensor(&name, moved.into_iter()));
                let loss = loss(&mut machine);
                assert!(machine.set_tensor(&name, values.iter().copied()));
                loss
            };
            let step = 4e-3;
            let measured = (at(step) - at(-step)) / f64::from(2.0 * step);
            let promised = f64::from(gradient[i]);
            // A difference over a kink (of a relu, or another largest value) is off a little.
            assert!(
                (measured - promised).abs() < 6e-3 + 0.05 * promised.abs(),
                "{name}[{i}]: {measured} measured, {promised} promised in {layers}"
            );
        }
    }
}

fn misfit(layers: &str, input: &[usize]) -> Misfit {
    let layers: Vec<Layer> = serde_json::from_str(layers).unwrap();
    let purpose = Purpose {
        batch: 1,
        threads: 1,
        learning: None,
    };
    Program::compile(&layers, &Shape(input.to_vec()), 10, &purpose)
        .err()
        .unwrap()
}

#[test]
fn a_shape_that_does_not_fit_names_the_layer() {
    let says = |layers: &str, input: &[usize], text: &str| {
        let found = misfit(layers, input).to_string();
        assert_eq!(found, text, "{layers}");
    };
    says(
        r#"[{"conv": 8, "kernel": 5}, {"conv": 8, "kernel": 5}]"#,
        &[7, 7, 1],
        "layer 1 conv gets 3×3×8 and needs at least 5 rows, or padding",
    );
    says(
        r#"["flatten", {"conv": 8}]"#,
        &[7, 7, 1],
        "layer 1 conv gets 49 and needs a sequence (length×channels) or an image (rows×columns×channels)",
    );
    says(
        r#"[{"residual": [{"conv": 8}]}]"#,
        &[7, 7, 8],
        "layer 0 residual gets 5×5×8 from its layers and 7×7×8 from its shortcut and needs the same from both: give the \
         shortcut a convolution that makes it so",
    );
    says(
        r#"[{"conv": 9, "groups": 2}]"#,
        &[7, 7, 8],
        "layer 0 conv gets 7×7×8 and needs channels that 2 groups divide, before and after",
    );
    says(
        r#"[{"reshape": [5, 10]}]"#,
        &[49],
        "layer 0 reshape gets 49 and needs 50 values, as 5×10 has",
    );
    says(
        r#"["flatten", {"dense": 12}]"#,
        &[7, 7, 1],
        "layer 1 dense gets 12 units to end with and needs 10, as the labels do: write dense = \"classes\"",
    );
    says(
        r#"[{"conv": 8}, {"dense": "classes"}]"#,
        &[7, 7, 1],
        "layer the outputs gets 5×5×10 and needs the values of one axis, as 10 outputs are made of: put flatten or \
         global_average_pool before the last dense layer",
    );
}

#[test]
fn places_that_no_row_has_stay_as_they_are_and_keep_their_moments() {
    let layers = r#"[{"sparse": 5, "places": 30, "pairs": 2}, {"dense": 3}]"#;
    // Gradients taken at once, and kept until their norm is known.
    let ends: Vec<Vec<f32>> = [None, Some(1e9)]
        .into_iter()
        .map(|clip| {
            let mut machine = build(layers, &[3 + 2 * 2], 3, 2, clip);
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
            let two = learn(2, 20);
            // Seven places each: the first are left alone by the second step.
            assert_eq!(one[..7 * 5], two[..7 * 5]);
            assert!((20..27).all(|place| one[place * 5] != two[place * 5]));
            assert_eq!(one[7 * 5..20 * 5], two[7 * 5..20 * 5]);
            learn(3, 0)
        })
        .collect();
    assert_eq!(ends[0], ends[1]);
}

#[test]
fn numbers_that_no_memory_holds_are_refused_before_they_are_multiplied() {
    for (layers, name) in [
        (r#"["flatten", {"dense": 4294967296}]"#, "1 dense"),
        (r#"[{"conv": 8, "kernel": [4294967296, 4294967296]}]"#, "0 conv"),
        (r#"[{"conv": 8, "padding": [9223372036854775807, 1]}]"#, "0 conv"),
        (r#"[{"conv": 0}]"#, "0 conv"),
        (
            r#"[{"depthwise": 3, "multiplier": 18446744073709551615}]"#,
            "0 depthwise",
        ),
        (
            r#"[{"max_pool": 2, "padding": 18446744073709551615}]"#,
            "0 max_pool",
        ),
        (r#"[{"reshape": [4294967296, 4294967296, 49]}]"#, "0 reshape"),
        (
            r#"["flatten", {"dense": 16777216}, {"dense": 16777216}]"#,
            "2 dense",
        ),
        (r#"[{"conv": 16777216, "kernel": 1, "padding": 40000}]"#, "0 conv"),
    ] {
        let found = misfit(layers, &[7, 7, 1]);
        assert_eq!(found.layer, name, "{found}");
    }
}

#[test]
fn what_first_went_bad_is_named_and_weights_stay() {
    let (layers, input, outputs) = networks().swap_remove(0);
    let mut machine = build(layers, &input, outputs, 2, None);
    let before = machine.tensor("6.weight").unwrap();
    fill(&mut machine, 1, outputs, false);
    assert_eq!(machine.find_fault(&batch(1, 13)), None);
    machine.inputs()[31 * 29 * 3 * 4 + 17] = f32::INFINITY;
    assert!(!machine.learn(&batch(1, 13)).is_finite());
    assert!(machine.tensor("6.weight").unwrap() == before);
    assert_eq!(
        machine.find_fault(&batch(1, 13)),
        Some(Fault::Input { sample: 4 })
    );
    fill(&mut machine, 1, outputs, false);
    let huge: Vec<f32> = before.iter().map(|value| value * 1e30).collect();
    machine.set_tensor("6.weight", huge.iter().map(|value| value * 1e10));
    let infinite = machine.find_fault(&batch(1, 13));
    assert!(
        matches!(infinite, Some(Fault::Weight { ref name }) if name == "6.weight"),
        "{infinite:?}"
    );
    let first = machine.tensor("0.weight").unwrap();
    machine.set_tensor("6.weight", huge.into_iter());
    machine.set_tensor("0.weight", first.into_iter().map(|value| value * 1e20));
    let found = machine.find_fault(&batch(1, 13));
    assert!(
        matches!(found, Some(Fault::Layer { ref name, .. }) if name == "6 dense"),
        "{found:?}"
    );
}

#[test]
fn the_arena_is_as_large_as_its_parts() {
    for (layers, input, outputs) in networks() {
        let layers: Vec<Layer> = serde_json::from_str(layers).unwrap();
        let purpose = Purpose {
            batch: 64,
            threads: 2,
            learning: Some(learning(None)),
        };
        let compile =
            |purpose: &Purpose| Program::compile(&layers, &Shape(input.clone()), outputs, purpose).unwrap();
        let training = compile(&purpose);
        let parts: u64 = training.shares().iter().map(|share| share.bytes).sum();
        assert_eq!(parts, training.bytes());
        let predicting = compile(&Purpose {
            learning: None,
            ..purpose.clone()
        });
        assert!(predicting.bytes() < training.bytes());
        let smaller = compile(&Purpose { batch: 8, ..purpose });
        assert!(smaller.bytes() < training.bytes());
    }
}

#[test]
fn mixed_samples_have_the_losses_of_both_targets() {
    let layers: Vec<Layer> =
        serde_json::from_str(r#"[{"dense": 7, "activation": "tanh"}, {"dense": 3}]"#).unwrap();
    let binary = Loss::Binary {
        class_weights: vec![1.0, 3.0],
    };
    let entropy = Loss::CrossEntropy {
        smoothing: 0.1,
        class_weights: vec![1.0, 2.0, 0.5],
    };
    for loss in [entropy, binary, Loss::Mse] {
        let purpose = Purpose {
            batch: 13,
            threads: 1,
            learning: Some(Learning {
                loss: loss.clone(),
                accumulates: true,
                ..learning(None)
            }),
        };
        let n_targets = loss.n_targets(3);
        let program = Program::compile(&layers, &Shape(vec![5]), 3, &purpose).unwrap();
        let mut machine = program.build(5).unwrap();
        let names: Vec<String> = machine.tensors().map(|(name, ..)| name.to_string()).collect();
        // Targets of each sample, or of the one that is so far on in the batch.
        let mut learn = |turned: usize, mix: Option<Mix>| {
            fill(&mut machine, 9, 3, false);
            let targets: Vec<f32> = (0..13 * n_targets)
                .map(|i| {
                    ((i / n_targets + turned) % 13 * 31 + i % n_targets) as f32
                        % if n_targets == 1 { 3.0 } else { 2.0 }
                })
                .collect();
            machine.targets()[..targets.len()].copy_from_slice(&targets);
            let loss = machine.learn(&Batch {
                last: false,
                mix,
                ..batch(1, 13)
            });
            let gradients = names.iter().flat_map(|name| machine.gradient(name).unwrap());
            (loss, gradients.collect::<Vec<f32>>())
        };
        let (own, partner) = (learn(0, None), learn(4, None));
        let mix = Mix {
            distance: 4,
            share: 0.3,
        };
        let mixed = learn(0, Some(mix));
        assert!(
            (mixed.0 - (0.3 * own.0 + 0.7 * partner.0)).abs() < 1e-4,
            "{loss:?}"
        );
        for ((mixed, own), partner) in mixed.1.iter().zip(&own.1).zip(&partner.1) {
            assert!((mixed - (0.3 * own + 0.7 * partner)).abs() < 1e-5, "{loss:?}");
        }
        assert!((own.0 - partner.0).abs() > 1e-2, "targets are not told apart");
    }
}
