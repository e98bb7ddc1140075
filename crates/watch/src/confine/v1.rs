//! cgroup v1: a child of our own memory cgroup, which takes root.

use std::path::Path;

use tidegate_memory::CgroupVersion;

use super::{Group, control, make, remove_tree, v2, whole_pages};

pub(super) fn create(own: &Path, name: &str, limit: Option<u64>) -> Result<Group, String> {
    let path = own.join(name);
    make(&path)?;
    if let Some(Err(reason)) = limit.map(|limit| set_limit(&path, limit)) {
        let _ = remove_tree(&path);
        return Err(reason);
    }
    Group::adopt(path, CgroupVersion::V1, v2::Undo::default())
}

fn set_limit(path: &Path, limit: u64) -> Result<(), String> {
    let limit = whole_pages(limit).to_string();
    // memory before memory and swap: the kernel refuses a sum below the part.
    control(path, "memory.limit_in_bytes", &limit)?;
    if path.join("memory.memsw.limit_in_bytes").exists() {
        control(path, "memory.memsw.limit_in_bytes", &limit)?;
    } else if path.join("memory.swappiness").exists() {
        // Without swap accounting the next best is not to swap this group at all.
        let _ = control(path, "memory.swappiness", "0");
    }
    // Inherited from the parent: without the OOM killer a worker at its limit would hang, not die.
    let _ = control(path, "memory.oom_control", "0");
    Ok(())
}
