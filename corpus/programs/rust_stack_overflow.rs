// cause: stack_overflow
// near-miss of: abort
// exit: 134
// Rust notices, says so and aborts.
fn depth(level: u64) -> u64 {
    let frame = [level; 100];
    std::hint::black_box(&frame);
    depth(level + 1) + frame[level as usize % 100]
}

fn main() {
    println!("{}", depth(0));
}
