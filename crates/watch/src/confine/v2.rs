//! cgroup v2: a child of our own cgroup, or of the nearest ancestor that is ours to use.
//!
//! A cgroup other than the root may either hold processes or hand the memory controller down to its
//! children, not both. So if we are alone in our cgroup, we first move ourselves into a leaf; and if we
//! are not alone there (a shell's scope), an ancestor that already hands memory down will do, as long as
//! no limit is escaped by it.

use std::fs;
use std::path::{Path, PathBuf};

use tidegate_memory::CgroupVersion;

use super::{Group, control, make, pids, remove_group, whole_pages};

/// What was changed around the new cgroup, to be changed back when it is gone.
#[derive(Debug, Default)]
pub(super) struct Undo {
    /// The cgroup to which we gave the memory controller, and the leaf to which we moved.
    enabled: Option<PathBuf>,
    leaf: Option<(PathBuf, PathBuf)>,
}

impl Undo {
    pub(super) fn run(&mut self) {
        // In this order: a cgroup that hands controllers down takes no process back.
        if let Some(own) = self.enabled.take() {
            let _ = control(&own, "cgroup.subtree_control", "-memory");
        }
        if let Some((own, leaf)) = self.leaf.take() {
            let _ = control(&own, "cgroup.procs", &std::process::id().to_string());
            let _ = remove_group(&leaf);
        }
    }
}

pub(super) fn create(own: &Path, name: &str, limit: u64) -> Result<Group, String> {
    let first = create_below_own(own, name, limit);
    let Err(reason) = first else { return first };
    let mut level = own;
    // Leaving a limited cgroup would escape a limit that somebody set.
    while !is_limited(level)
        && let Some(parent) = level.parent()
        && parent.join("cgroup.subtree_control").exists()
    {
        if hands_memory_down(parent)
            && let Ok(group) = create_in(parent, name, limit, Undo::default())
        {
            return Ok(group);
        }
        level = parent;
    }
    Err(reason)
}

fn create_below_own(own: &Path, name: &str, limit: u64) -> Result<Group, String> {
    if !words(own, "cgroup.controllers").any(|word| word == "memory") {
        return Err(format!("{} has no memory controller to hand down", own.display()));
    }
    let mut undo = Undo::default();
    if !hands_memory_down(own) {
        let prepared = prepare(own, &mut undo);
        if let Err(reason) = prepared {
            undo.run();
            return Err(reason);
        }
    }
    create_in(own, name, limit, undo)
}

/// Makes `own` hand the memory controller down, moving ourselves out of the way if need be.
fn prepare(own: &Path, undo: &mut Undo) -> Result<(), String> {
    let me = std::process::id().cast_signed();
    let inside = pids(own);
    // The root of the whole tree has no `cgroup.type` and may do both.
    if !inside.is_empty() && own.join("cgroup.type").exists() {
        if inside != [me] {
            return Err(format!(
                "{} holds other processes ({} in all)",
                own.display(),
                inside.len()
            ));
        }
        let leaf = own.join(format!("tidegate-supervisor-{me}"));
        make(&leaf)?;
        undo.leaf = Some((own.to_path_buf(), leaf.clone()));
        control(&leaf, "cgroup.procs", &me.to_string())?;
    }
    control(own, "cgroup.subtree_control", "+memory")?;
    undo.enabled = Some(own.to_path_buf());
    Ok(())
}

fn create_in(parent: &Path, name: &str, limit: u64, mut undo: Undo) -> Result<Group, String> {
    let path = parent.join(name);
    let made = make(&path).and_then(|()| {
        let limited = set_limit(&path, limit);
        if limited.is_err() {
            let _ = remove_group(&path);
        }
        limited
    });
    if let Err(reason) = made {
        undo.run();
        return Err(reason);
    }
    let group = Group::adopt(path.clone(), CgroupVersion::V2, undo);
    group.map_err(|error| {
        let _ = remove_group(&path);
        format!("cannot open cgroup.procs of {}: {error}", path.display())
    })
}

fn set_limit(path: &Path, limit: u64) -> Result<(), String> {
    control(path, "memory.max", &whole_pages(limit).to_string())?;
    // Missing where the kernel does not count swap; then there is nothing to forbid.
    let _ = control(path, "memory.swap.max", "0");
    // A worker that has lost one of its processes is lost: kill them together.
    let _ = control(path, "memory.oom.group", "1");
    Ok(())
}

fn hands_memory_down(path: &Path) -> bool {
    words(path, "cgroup.subtree_control").any(|word| word == "memory")
}

fn is_limited(path: &Path) -> bool {
    fs::read_to_string(path.join("memory.max")).is_ok_and(|limit| limit.trim() != "max")
}

fn words(path: &Path, file: &str) -> impl Iterator<Item = String> {
    let text = fs::read_to_string(path.join(file)).unwrap_or_default();
    text.split_whitespace()
        .map(str::to_string)
        .collect::<Vec<_>>()
        .into_iter()
}
