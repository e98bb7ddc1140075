//! A step allocates nothing. By itself, for the counter counts all of a process.

#[path = "network/sample.rs"]
mod sample;

use sample::{batch, build_with, fill, learning, networks};
use tidegate_memory::Counting;
use tidegate_train::network::{Learning, Moments, Precision};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

#[test]
fn a_step_allocates_nothing() {
    for (layers, input, outputs) in networks() {
        for (moments, precision) in [
            (Moments::F32, Precision::F32),
            (Moments::Bf16, Precision::F32),
            (Moments::Int8, Precision::F16),
        ] {
            let tokens = input.len() == 1;
            let learning = Learning {
                moments,
                precision,
                ..learning(Some(1.0))
            };
            let mut machine = build_with(layers, &input, outputs, 2, learning);
            fill(&mut machine, 1, outputs, tokens);
            machine.learn(&batch(1, 13));
            let before = ALLOCATOR.allocations();
            for step in 2..6 {
                fill(&mut machine, step, outputs, tokens);
                machine.learn(&batch(step, 13));
                machine.judge(13);
            }
            assert_eq!(ALLOCATOR.allocations() - before, 0, "{moments:?}: {layers}");
        }
    }
}
