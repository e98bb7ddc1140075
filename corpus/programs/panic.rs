// cause: failed
// exit: 101
// A Rust program that panics.
fn main() {
    let settings: Result<f64, _> = "fast".parse::<f64>();
    println!("{}", settings.expect("rate is a number"));
}
