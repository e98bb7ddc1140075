//! The crate at its public surface: recorded machines, and this one.

mod hostile;
mod layouts;
mod live;
mod meters;

use std::path::PathBuf;

use tidegate_memory::Host;

/// The recorded machine of that name, with the environment recorded in its `env` file.
fn recorded(layout: &str) -> Host {
    let root = hosts().join(layout);
    let env = std::fs::read_to_string(root.join("env")).unwrap_or_default();
    let env: Vec<(String, String)> = env
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    Host::recorded(root, env)
}

fn hosts() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/hosts")
}
