// cause: index_error or failed
// exit: 101
// A Rust program that panics of an index.
fn main() {
    let values = vec![1, 2, 3];
    let at = std::env::args().count() + 9;
    println!("{}", values[at]);
}
