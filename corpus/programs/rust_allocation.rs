// cause: bad_alloc
// exit: 134
// Rust gives up where it cannot allocate.
fn main() {
    let size = std::env::args().count() << 50;
    let mut table: Vec<u8> = Vec::with_capacity(size);
    table.push(1);
    println!("{}", table.len());
}
