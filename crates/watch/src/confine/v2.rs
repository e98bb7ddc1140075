//! cgroup v2: a child of our own cgroup, or of the nearest ancestor that is ours to use.
//!
//! A cgroup other than the root may either hold processes or hand the memory controller down to its
//! children, not both. So if we are alone in our cgroup, we first move ourselves into a leaf; and if we
//! are not alone there (a shell's scope), an ancestor that already hands memory down will do, as long as
//! no limit is escaped by it.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tidegate_memory::CgroupVersion;

use super::{Group, control, directories, make, pids, remove_tree, whole_pages};

/// How long to wait for another supervisor that changes the same cgroup; it takes milliseconds.
const PATIENCE: Duration = Duration::from_secs(2);

const LEAF: &str = "tidegate-supervisor-";

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
    /// The cgroups that were below it before.
    before: Vec<PathBuf>,
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
                give_back(moved);
                *slot = None;
            }
        }
    }
}

fn moved() -> MutexGuard<'static, Option<Moved>> {
    MOVED.lock().unwrap_or_else(PoisonError::into_inner)
}

fn give_back(moved: &Moved) {
    let _alone = alone_in(&moved.own);
    // Taking the controller from a cgroup lifts its limit without a word. One that was made since may be
    // that of another supervisor: then memory stays handed down, and we stay where we are.
    let is_new = |path: &PathBuf| !moved.before.contains(path) && moved.leaf.as_ref() != Some(path);
    if !directories(&moved.own).iter().any(is_new) {
        restore(&moved.own, moved.leaf.as_deref());
    }
}

/// In this order: a cgroup that hands controllers down takes no process back.
fn restore(own: &Path, leaf: Option<&Path>) {
    let _ = control(own, "cgroup.subtree_control", "-memory");
    if let Some(leaf) = leaf {
        let _ = control(own, "cgroup.procs", &std::process::id().to_string());
        // A worker that could not join its cgroup is here too.
        for pid in pids(leaf) {
            let _ = control(own, "cgroup.procs", &pid.to_string());
        }
        // Nothing is killed: where the way back is barred, we are still inside.
        let give_up = Instant::now() + Duration::from_secs(1);
        while fs::remove_dir(leaf).is_err() && leaf.exists() && Instant::now() < give_up {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Does what a supervisor that stepped aside and was killed could not do any more: as long as its cgroup
/// hands memory down, no process can be put into it.
pub(super) fn restore_for_the_dead(own: &Path) {
    let _alone = alone_in(own);
    let below = directories(own);
    let is_empty_leaf = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str());
        name.is_some_and(|name| name.starts_with(LEAF)) && pids(path).is_empty()
    };
    if !below.is_empty() && below.iter().all(is_empty_leaf) {
        below.iter().for_each(|leaf| {
            let _ = fs::remove_dir(leaf);
        });
        let _ = control(own, "cgroup.subtree_control", "-memory");
    }
}

/// Keeps other supervisors from changing the same cgroup until the file is closed.
fn alone_in(path: &Path) -> Option<File> {
    let directory = File::open(path).ok()?;
    let give_up = Instant::now() + PATIENCE;
    while directory.try_lock().is_err() {
        if Instant::now() >= give_up {
            return None;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Some(directory)
}

pub(super) fn create(own: &Path, name: &str, limit: Option<u64>) -> Result<Group, String> {
    let first = create_below_own(own, name, limit);
    let Err(reason) = first else { return first };
    let mut level = own;
    // Leaving a limited cgroup would escape a limit that somebody set.
    while !is_limited(level)
        && let Some(parent) = level.parent()
        && parent.join("cgroup.subtree_control").exists()
    {
        if hands_memory_down(parent)
            && let Ok(group) = create_in(parent, name, limit, Undo::default(), alone_in(parent))
        {
            return Ok(group);
        }
        level = parent;
    }
    Err(reason)
}

fn create_below_own(own: &Path, name: &str, limit: Option<u64>) -> Result<Group, String> {
    let mut slot = moved();
    // In the leaf, or in a cgroup that has got memory files since.
    if let Some(moved) = slot.as_mut()
        && own.starts_with(&moved.own)
    {
        moved.users += 1;
        let own = moved.own.clone();
        // Not held while making the cgroup: taking the share back on failure locks it again.
        drop(slot);
        return create_in(&own, name, limit, Undo { share: true }, alone_in(&own));
    }
    if !words(own, "cgroup.controllers").any(|word| word == "memory") {
        return Err(format!("{} has no memory controller to hand down", own.display()));
    }
    // From here on nobody takes the controller back before our cgroup is seen.
    let alone = alone_in(own);
    if hands_memory_down(own) {
        drop(slot);
        return create_in(own, name, limit, Undo::default(), alone);
    }
    if let Some(moved) = slot.as_ref() {
        return Err(format!(
            "another job of this process is in {}",
            moved.own.display()
        ));
    }
    let before = directories(own);
    let leaf = hand_memory_down(own)?;
    *slot = Some(Moved {
        users: 1,
        own: own.to_path_buf(),
        leaf,
        before,
    });
    drop(slot);
    create_in(own, name, limit, Undo { share: true }, alone)
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
        let path = own.join(format!("{LEAF}{me}"));
        make(&path)?;
        leaf = Some(path);
    }
    let done = match &leaf {
        Some(leaf) => control(leaf, "cgroup.procs", &me.to_string()),
        None => Ok(()),
    };
    let done = done.and_then(|()| control(own, "cgroup.subtree_control", "+memory"));
    if let Err(reason) = done {
        restore(own, leaf.as_deref());
        return Err(reason);
    }
    Ok(leaf)
}

fn create_in(
    parent: &Path,
    name: &str,
    limit: Option<u64>,
    mut undo: Undo,
    alone: Option<File>,
) -> Result<Group, String> {
    let path = parent.join(name);
    let made = make(&path).and_then(|()| {
        let limited = limit.map_or(Ok(()), |limit| set_limit(&path, limit));
        if limited.is_err() {
            let _ = remove_tree(&path);
        }
        limited
    });
    // Before undoing, which waits for it.
    drop(alone);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_killed_supervisor_changed_is_changed_back() {
        let own = tempfile::tempdir().unwrap();
        let control = own.path().join("cgroup.subtree_control");
        let leaf = own.path().join(format!("{LEAF}99"));
        fs::write(&control, "memory").unwrap();
        let left = || fs::read_to_string(&control).unwrap();

        restore_for_the_dead(own.path());
        assert_eq!(left(), "memory", "no leaf: somebody else has set it");
        fs::create_dir(&leaf).unwrap();
        fs::write(leaf.join("cgroup.procs"), "99\n").unwrap();
        restore_for_the_dead(own.path());
        assert_eq!(left(), "memory", "the leaf is in use");
        fs::remove_file(leaf.join("cgroup.procs")).unwrap();
        fs::create_dir(own.path().join("tidegate-k7mp2xqa")).unwrap();
        restore_for_the_dead(own.path());
        assert_eq!(left(), "memory", "another job would lose its limit");
        fs::remove_dir(own.path().join("tidegate-k7mp2xqa")).unwrap();
        restore_for_the_dead(own.path());
        assert_eq!((left().as_str(), leaf.exists()), ("-memory", false));
    }
}
