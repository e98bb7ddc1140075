// cause: cgroup_oom
// grade: proven
// memory: 96MB
// exit: 137
// Strings that are kept in a map.
use std::collections::HashMap;

fn main() {
    let mut names = HashMap::new();
    for number in 0u64.. {
        names.insert(number, format!("row {number} {}", "x".repeat(100)));
    }
    println!("{}", names.len());
}
