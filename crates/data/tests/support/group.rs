//! Cgroups, whose peaks the kernel measures.

use std::fs;
use std::path::{Path, PathBuf};

/// A cgroup of our own, the file that tells its peak, and the one that sets its limit.
pub(crate) struct Group(pub PathBuf, pub &'static str, pub &'static str);

impl Group {
    /// None where none can be made.
    pub(crate) fn make(name: &str) -> Option<Group> {
        let name = format!("tidegate-test-{name}-{}", std::process::id());
        let places = [
            (
                "/sys/fs/cgroup/memory",
                "memory.max_usage_in_bytes",
                "memory.limit_in_bytes",
            ),
            ("/sys/fs/cgroup", "memory.peak", "memory.max"),
        ];
        places.into_iter().find_map(|(root, peak, limit)| {
            let path = Path::new(root).join(&name);
            fs::create_dir(&path).ok()?;
            let group = Group(path, peak, limit);
            group.0.join(peak).exists().then_some(group)
        })
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        let _ = fs::remove_dir(&self.0);
    }
}
