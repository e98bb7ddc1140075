//! Whether what was named looks like arrays, by its names.

use std::path::Path;

/// A file of arrays, or a folder that holds such files or folders of them.
pub(super) fn are_arrays(path: &Path) -> bool {
    match path.is_dir() {
        true => any_in(path, true),
        false => is_array_name(path),
    }
}

fn any_in(folder: &Path, deeper: bool) -> bool {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut paths = entries.map(|entry| entry.path());
    paths.any(|path| match path.is_dir() {
        true => deeper && any_in(&path, false),
        false => is_array_name(&path),
    })
}

/// `x.npy`, `x.npz`, `train-images-idx3-ubyte`, also `.gz`.
pub(super) fn is_array_name(path: &Path) -> bool {
    let name = path
        .file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .to_lowercase();
    let idx = name.strip_suffix(".gz").unwrap_or(&name);
    let idx = idx.strip_suffix("-ubyte").is_some_and(|rest| {
        let rank = rest
            .rsplit(['-', '.'])
            .next()
            .and_then(|last| last.strip_prefix("idx"));
        matches!(rank, Some("1" | "2" | "3" | "4"))
    });
    !name.starts_with('.') && (idx || name.ends_with(".npy") || name.ends_with(".npz"))
}
