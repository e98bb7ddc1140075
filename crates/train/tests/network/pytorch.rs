//! Every layer, loss and optimizer against PyTorch's values.

use std::collections::BTreeMap;

use serde::Deserialize;
use tidegate_train::network::{
    Batch, Layer, Learning, Loss, Machine, Moment, Moments, Precision, Program, Purpose, Rule, Shape,
};

#[derive(Deserialize)]
struct Cases {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    input: Vec<usize>,
    batch: usize,
    layers: Vec<Layer>,
    loss: Loss,
    optimizer: Option<serde_json::Map<String, serde_json::Value>>,
    x: Vec<f32>,
    target: Vec<f32>,
    weights: BTreeMap<String, Tensor>,
    output: Vec<f32>,
    /// What it makes when it does not learn, where that is something else.
    prediction: Option<Vec<f32>>,
    loss_value: f64,
    gradients: BTreeMap<String, Vec<f32>>,
    x_gradient: Option<Vec<f32>>,
    #[serde(default)]
    running: BTreeMap<String, Vec<f32>>,
    #[serde(default)]
    steps: BTreeMap<String, Vec<f32>>,
}

#[derive(Deserialize)]
struct Tensor {
    shape: Vec<usize>,
    values: Vec<f32>,
}

fn cases() -> Vec<Case> {
    serde_json::from_str::<Cases>(include_str!("pytorch.json"))
        .unwrap()
        .cases
}

/// Sets up the network of a case with its weights and samples.
fn build(case: &Case, learning: Learning, threads: usize) -> Machine {
    let purpose = Purpose {
        batch: case.batch,
        threads,
        learning: Some(learning),
    };
    let outputs = case.output.len() / case.batch;
    let input = Shape(case.input.clone());
    let program = Program::compile(&case.layers, &input, outputs, &purpose).unwrap();
    let mut machine = program.build(1).unwrap();
    for (name, tensor) in &case.weights {
        let known: Vec<(String, Vec<usize>)> = machine
            .tensors()
            .map(|(name, shape, _)| (name.to_string(), shape))
            .collect();
        let shape = known.iter().find(|(known, _)| known == name);
        assert_eq!(shape.map(|(_, shape)| shape), Some(&tensor.shape), "{name}");
        assert!(machine.set_tensor(name, tensor.values.iter().copied()));
    }
    machine.poison();
    machine
}

fn fill(case: &Case, machine: &mut Machine) {
    machine.inputs().copy_from_slice(&case.x);
    machine.targets().copy_from_slice(&case.target);
}

fn share(case: &Case) -> f32 {
    let weights = match case.loss.n_targets(2) {
        1 => case.target.iter().map(|target| case.loss.weight(*target)).sum(),
        _ => case.batch as f32,
    };
    1.0 / weights
}

/// Values of one tensor, near those expected, by the largest of them.
fn compare(what: &str, found: &[f32], expected: &[f32], tolerance: f32) -> Result<(), String> {
    if found.len() != expected.len() {
        return Err(format!("{what}: {} values, not {}", found.len(), expected.len()));
    }
    let size = expected.iter().fold(1e-2f32, |size, value| size.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let away = (found - expected).abs();
        if away.is_nan() || away > tolerance * size {
            return Err(format!("{what}[{i}]: {found}, not {expected}"));
        }
    }
    Ok(())
}

fn learning(case: &Case, rule: Rule, clip: Option<f32>, accumulates: bool) -> Learning {
    Learning {
        loss: case.loss.clone(),
        rule,
        clip,
        accumulates,
        to_sample: !accumulates || case.x_gradient.is_some(),
        moments: Moments::F32,
        precision: Precision::F32,
        recompute: Vec::new(),
    }
}

fn check_gradients(case: &Case, threads: usize) -> Result<(), String> {
    let sgd = Rule::Sgd {
        momentum: 0.0,
        nesterov: false,
        weight_decay: 0.0,
    };
    let mut machine = build(case, learning(case, sgd, None, true), threads);
    fill(case, &mut machine);
    let batch = Batch {
        rows: case.batch,
        before: 0,
        share: share(case),
        first: true,
        last: false,
        seed: 1,
        scale: 1.0,
        mix: None,
        moment: Moment { rate: 0.0, step: 1 },
    };
    let loss = machine.learn(&batch) * f64::from(batch.share);
    compare("loss", &[loss as f32], &[case.loss_value as f32], 2e-5)?;
    for (name, expected) in &case.gradients {
        let found = machine.gradient(name).ok_or(format!("no gradient of {name}"))?;
        compare(&format!("gradient of {name}"), &found, expected, 3e-5)?;
    }
    for (name, _, learned) in machine.tensors() {
        if learned != case.gradients.contains_key(name) {
            return Err(format!("{name} learned: {learned}"));
        }
    }
    if let Some(expected) = &case.x_gradient {
        let found = machine.input_slope().ok_or("no slope of the sample")?;
        compare("slope of the sample", found, expected, 3e-5)?;
    }
    for (name, expected) in &case.running {
        compare(
            name,
            &machine.tensor(name).ok_or(format!("no {name}"))?,
            expected,
            1e-5,
        )?;
    }
    fill(case, &mut machine);
    machine.judge(case.batch);
    let expected = case.prediction.as_ref().unwrap_or(&case.output);
    compare("outputs", machine.outputs(), expected, 2e-5)?;
    Ok(())
}

#[test]
fn gradients_are_those_of_pytorch() {
    let cases = cases();
    assert!(cases.len() >= 100);
    let mut wrong = Vec::new();
    for case in &cases {
        for threads in [1, 3] {
            if let Err(error) = check_gradients(case, threads) {
                wrong.push(format!("{} on {threads}: {error}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

/// Three steps on the same batch, with gradients taken at once and with gradients kept until all are there.
fn check_steps(case: &Case, keep: bool) -> Result<(), String> {
    let Some(mut options) = case.optimizer.clone() else {
        return Ok(());
    };
    let rate = options
        .remove("learning_rate")
        .and_then(|rate| rate.as_f64())
        .unwrap() as f32;
    let clip = options
        .remove("clip_norm")
        .and_then(|clip| clip.as_f64())
        .map(|clip| clip as f32);
    let rule: Rule = serde_json::from_value(serde_json::Value::Object(options)).unwrap();
    let mut machine = build(case, learning(case, rule, clip, keep), 2);
    for step in 1..=3 {
        fill(case, &mut machine);
        machine.learn(&Batch {
            rows: case.batch,
            before: 0,
            share: share(case),
            first: true,
            last: true,
            seed: 1,
            scale: 1.0,
            mix: None,
            moment: Moment { rate, step },
        });
    }
    for (name, expected) in &case.steps {
        compare(
            name,
            &machine.tensor(name).ok_or(format!("no {name}"))?,
            expected,
            3e-5,
        )?;
    }
    Ok(())
}

#[test]
fn steps_are_those_of_pytorch() {
    let cases = cases();
    let with_steps: Vec<&Case> = cases.iter().filter(|case| !case.steps.is_empty()).collect();
    assert!(with_steps.len() >= 10);
    let mut wrong = Vec::new();
    for case in with_steps {
        for keep in [false, true] {
            if let Err(error) = check_steps(case, keep) {
                wrong.push(format!("{} keeping {keep}: {error}", case.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}
