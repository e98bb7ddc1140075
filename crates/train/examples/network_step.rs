//! One step of a known network, timed: what `benches/network` compares with other engines.
//!
//! `network_step cnn|mlp|wide|resnet18|mobilenet [--steps N] [--threads N] [--moments f32|bf16|8bit]`

use std::time::Instant;

use tidegate_train::network::{
    Batch, Layer, Learning, Loss, Moment, Moments, Precision, Preset, Program, Purpose, Rule, Shape,
};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let option = |name: &str, default: usize| {
        let at = arguments.iter().position(|argument| argument == name);
        let value = at.and_then(|at| arguments.get(at + 1));
        value.map_or(default, |value| value.parse().expect("a number"))
    };
    let case = arguments.first().map_or("cnn", String::as_str);
    let (steps, threads) = (option("--steps", 10), option("--threads", 2));
    let at = arguments.iter().position(|argument| argument == "--moments");
    let moments = at
        .and_then(|at| arguments.get(at + 1))
        .map_or(Moments::F32, |word| {
            serde_json::from_value(word.as_str().into()).expect("f32, bf16 or 8bit")
        });
    let (layers, input, batch, outputs) = network(case);
    let base = resident();
    let purpose = Purpose {
        batch,
        threads,
        learning: Some(Learning {
            loss: match outputs {
                1 => Loss::Binary {
                    class_weights: Vec::new(),
                },
                _ => Loss::CrossEntropy {
                    smoothing: 0.0,
                    class_weights: Vec::new(),
                },
            },
            rule: Rule::default(),
            clip: None,
            accumulates: false,
            to_sample: false,
            moments,
            precision: Precision::F32,
            recompute: Vec::new(),
        }),
    };
    let program = Program::compile(&layers, &Shape(input), outputs, &purpose).expect("a network that fits");
    let arena = program.bytes();
    let mut machine = program.build(7).expect("memory for the arena");
    let mut times = Vec::new();
    let mut loss = 0.0;
    for step in 0..steps + 3 {
        let mut state = 7u32;
        for value in machine.inputs() {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            *value = (state >> 8) as f32 / (1 << 24) as f32;
        }
        let classes = outputs.max(2);
        for (i, target) in machine.targets().iter_mut().enumerate() {
            *target = (i % classes) as f32;
        }
        let start = Instant::now();
        loss = machine.learn(&Batch {
            rows: batch,
            before: 0,
            share: 1.0 / batch as f32,
            first: true,
            last: true,
            seed: step as u64,
            scale: 1.0,
            mix: None,
            moment: Moment {
                rate: 1e-3,
                step: step as u64 + 1,
            },
        }) / batch as f64;
        if step >= 3 {
            times.push(start.elapsed().as_secs_f64() * 1e3);
        }
    }
    times.sort_by(f64::total_cmp);
    let result = serde_json::json!({
        "case": case,
        "ms": times[times.len() / 2],
        "best": times[0],
        "loss": loss,
        "arena": arena,
        "base": base,
        "peak": status("VmHWM:"),
    });
    println!("{result}");
}

fn network(case: &str) -> (Vec<Layer>, Vec<usize>, usize, usize) {
    let layers = |text: &str| serde_json::from_str::<Vec<Layer>>(text).expect("layers");
    match case {
        "cnn" => {
            let text = r#"[{"conv": 32, "activation": "relu"}, {"max_pool": 2}, {"conv": 64, "activation": "relu"},
                {"max_pool": 2}, "flatten", {"dense": 128, "activation": "relu"}, {"dense": "classes"}]"#;
            (layers(text), vec![150, 150, 3], 32, 10)
        }
        "mlp" => {
            let text = r#"[{"dense": 256, "activation": "relu"}, {"dense": 128, "activation": "relu"}, {"dense": 1}]"#;
            (layers(text), vec![100], 1024, 1)
        }
        // Four million weights and small batches: what the optimizer does counts for more than anything else.
        "wide" => {
            let text = r#"[{"dense": 2048, "activation": "relu"}, {"dense": 1536, "activation": "relu"}, {"dense": 10}]"#;
            (layers(text), vec![512], 32, 10)
        }
        "resnet18" | "mobilenet" => {
            let preset = if case == "resnet18" {
                Preset::Resnet18
            } else {
                Preset::Mobilenet
            };
            let input = vec![64, 64, 3];
            (preset.layers(&Shape(input.clone())), input, 32, 10)
        }
        other => panic!("no case {other}: cnn, mlp, wide, resnet18, mobilenet"),
    }
}

/// What the process holds now, in bytes.
fn resident() -> u64 {
    status("VmRSS:")
}

fn status(key: &str) -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix(key));
    let kilobytes = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    kilobytes.unwrap_or(0) * 1024
}
