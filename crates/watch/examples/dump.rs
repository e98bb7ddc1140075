//! Findings of files as JSON lines.
fn main() {
    for path in std::env::args().skip(1) {
        let Ok(bytes) = std::fs::read(&path) else { continue };
        let source = String::from_utf8_lossy(&bytes);
        let start = std::time::Instant::now();
        let found = tidegate_watch::why::findings(&source, std::path::Path::new(&path));
        let ms = start.elapsed().as_millis() as u64;
        println!(
            "{}",
            serde_json::json!({"file": path, "ms": ms, "findings": found})
        );
    }
}
