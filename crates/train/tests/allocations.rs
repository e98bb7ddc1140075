//! A step allocates nothing. By itself, for the counter counts all of a process.

#[path = "network/sample.rs"]
mod sample;

use sample::{batch, build, fill, networks};
use tidegate_memory::Counting;

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

#[test]
fn a_step_allocates_nothing() {
    for (layers, input, outputs) in networks() {
        let tokens = input.len() == 1;
        let mut machine = build(layers, &input, outputs, 2, Some(1.0));
        fill(&mut machine, 1, outputs, tokens);
        machine.learn(&batch(1, 13));
        let before = ALLOCATOR.allocations();
        for step in 2..6 {
            fill(&mut machine, step, outputs, tokens);
            machine.learn(&batch(step, 13));
            machine.judge(13);
        }
        assert_eq!(ALLOCATOR.allocations() - before, 0, "{layers}");
    }
}
