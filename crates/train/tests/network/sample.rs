//! Networks with every kind of operation, and batches for them.

use tidegate_train::network::{
    Batch, Layer, Learning, Loss, Machine, Moment, Moments, Precision, Program, Purpose, Rule, Shape,
};

/// Networks that have every kind of operation, in sizes that divide by nothing.
pub(crate) fn networks() -> Vec<(&'static str, Vec<usize>, usize)> {
    vec![
        (
            r#"[{"conv": 19, "activation": "relu"}, {"max_pool": 2}, {"conv": 37, "padding": "same", "activation": "gelu"},
                {"average_pool": 2}, "flatten", {"dropout": 0.3}, {"dense": 70, "activation": "relu"}, {"dense": "classes"}]"#,
            vec![31, 29, 3],
            5,
        ),
        (
            r#"[{"conv": 16, "stride": 2, "padding": 1, "bias": false}, {"norm": "batch", "activation": "relu"},
                {"residual": [{"conv": 24, "stride": 2, "padding": 1}, "batch_norm", "relu", {"depthwise": 3, "padding": 1},
                    {"norm": "group", "groups": 4}], "shortcut": [{"conv": 24, "kernel": 1, "stride": 2}], "activation": "relu"},
                {"residual": [{"conv": 24, "kernel": 1, "activation": "silu"}]}, "layer_norm", {"max_pool": 3, "stride": 2, "padding": 1},
                "global_average_pool"]"#,
            vec![25, 23, 3],
            4,
        ),
        (
            r#"[{"embedding": 9, "tokens": 50}, {"conv": 12, "kernel": 5, "activation": "tanh"}, "global_max_pool", {"dense": 3}]"#,
            vec![40],
            3,
        ),
        (
            r#"[{"conv": 16, "activation": "relu"}, {"max_pool": 2}, {"residual": [{"conv": 16, "padding": 1}], "activation": "relu"},
                {"conv": 32, "activation": "tanh"}, "global_average_pool"]"#,
            vec![33, 35, 3],
            4,
        ),
        (
            r#"[{"sparse": 11, "places": 50, "pairs": 6}, {"dense": 20, "activation": "relu"}, {"dense": 3}]"#,
            vec![7 + 2 * 6],
            3,
        ),
    ]
}

pub(crate) fn learning(clip: Option<f32>) -> Learning {
    Learning {
        loss: Loss::CrossEntropy {
            smoothing: 0.1,
            class_weights: Vec::new(),
        },
        rule: Rule::default(),
        clip,
        accumulates: false,
        to_sample: false,
        moments: Moments::F32,
        precision: Precision::F32,
        recompute: Vec::new(),
    }
}

pub(crate) fn build_with(
    layers: &str,
    input: &[usize],
    outputs: usize,
    threads: usize,
    learning: Learning,
) -> Machine {
    let layers: Vec<Layer> = serde_json::from_str(layers).unwrap();
    let purpose = Purpose {
        batch: 13,
        threads,
        learning: Some(learning),
    };
    let program = Program::compile(&layers, &Shape(input.to_vec()), outputs, &purpose).unwrap();
    program.build(3).unwrap()
}

pub(crate) fn fill(machine: &mut Machine, step: u64, outputs: usize, tokens: bool) {
    let mut state = step as u32 + 1;
    for value in machine.inputs() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let draw = (state >> 8) as f32 / (1 << 24) as f32;
        *value = if tokens { (draw * 50.0).floor() } else { draw - 0.5 };
    }
    for (i, target) in machine.targets().iter_mut().enumerate() {
        *target = ((i as u64 + step) % outputs as u64) as f32;
    }
}

pub(crate) fn batch(step: u64, rows: usize) -> Batch {
    Batch {
        rows,
        before: 0,
        share: 1.0 / rows as f32,
        first: true,
        last: true,
        seed: step,
        scale: 1.0,
        mix: None,
        moment: Moment { rate: 1e-2, step },
    }
}
