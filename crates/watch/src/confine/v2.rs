//! cgroup v2: a child of our own cgroup, or of the nearest ancestor that is ours to use.
//!
//! A cgroup other than the root may either hold processes or hand the memory controller down to its
//! children, not both. So if we are alone in our cgroup, we first move ourselves into a leaf; and if we
//! are not alone there (a shell's scope), an ancestor that already hands memory down will do, as long as
//! no limit is escaped by it.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tidegate_memory::CgroupVersion;

use super::{Group, control, make, pids, remove_group, whole_pages};

/// What was changed around our own cgroup. A process has one, so its supervisors share the change, and
/// the last of them changes it back.
static MOVED: Mutex<Option<Moved>> = Mutex::new(None);

#[derive(Debug)]
struct Moved {
    users: usize,
    /// The cgroup that now hands memory down.
    own: PathBuf,
    /// Where we moved, if we were in the way.
    leaf: Option<PathBuf>,
}

/// A share of [`MOVED`]; none by default.
#[derive(Debug, Default)]
pub(super) struct Undo {
    share: bool,
}

impl Undo {
    pub(super) fn run(&mut self) {
        if !std::mem::take(&mut self.share) {
            return;
        }
        let mut slot = moved();
        if let Some(moved) = slot.as_mut() {
            moved.users -= 1;
            if moved.users == 0 {
                give_back(&moved.own, moved.leaf.as_deref());
                *slot = None;
            }
        }
    }
}

fn moved() -> MutexGuard<'static, Option<Moved>> {
    MOVED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// In this order: a cgroup that hands controllers down takes no process back.
fn give_back(own: &Path, leaf: Option<&Path>) {
    let _ = control(own, "cgroup.subtree_control", "-memory");
    if let Some(leaf) = leaf {
        let _ = control(own, "cgroup.procs", &std::process::id().to_string());
        let _ = remove_group(leaf);
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
    let mut slot = moved();
    if let Some(moved) = slot.as_mut()
        && (moved.own == own || moved.leaf.as_deref() == Some(own))
    {
        moved.users += 1;
        let own = moved.own.clone();
        // Not held while making the cgroup: taking the share back on failure locks it again.
        drop(slot);
        return create_in(&own, name, limit, Undo { share: true });
    }
    if !words(own, "cgroup.controllers").any(|word| word == "memory") {
        return Err(format!("{} has no memory controller to hand down", own.display()));
    }
    if hands_memory_down(own) {
        drop(slot);
        return create_in(own, name, limit, Undo::default());
    }
    let leaf = hand_memory_down(own)?;
    *slot = Some(Moved {
        users: 1,
        own: own.to_path_buf(),
        leaf,
    });
    drop(slot);
    create_in(own, name, limit, Undo { share: true })
}

/// Makes `own` hand the memory controller down; returns the leaf to which we moved ourselves out of the
/// way, if need was.
fn hand_memory_down(own: &Path) -> Result<Option<PathBuf>, String> {
    let me = std::process::id().cast_signed();
    let inside = pids(own);
    let mut leaf = None;
    // The root of the whole tree has no `cgroup.type` and may do both.
    if !inside.is_empty() && own.join("cgroup.type").exists() {
        if inside != [me] {
            return Err(format!(
                "{} holds other processes ({} in all)",
                own.display(),
                inside.len()
            ));
        }
        let path = own.join(format!("tidegate-supervisor-{me}"));
        make(&path)?;
        leaf = Some(path);
    }
    let done = match &leaf {
        Some(leaf) => control(leaf, "cgroup.procs", &me.to_string()),
        None => Ok(()),
    };
    let done = done.and_then(|()| control(own, "cgroup.subtree_control", "+memory"));
    if let Err(reason) = done {
        give_back(own, leaf.as_deref());
        return Err(reason);
    }
    Ok(leaf)
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
    Group::adopt(path, CgroupVersion::V2, undo)
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
