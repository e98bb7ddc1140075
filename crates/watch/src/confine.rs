//! Holding a worker under the line with the kernel's own limit: a cgroup that is made before the worker
//! starts and gone after it has ended.
//!
//! Three ways, best first. cgroup v2 where a part of the tree is ours to use, cgroup v1 as root, and
//! otherwise the worker is only watched, with the reason why. Making a cgroup never half succeeds:
//! whatever was changed is undone before falling back.

mod v1;
mod v2;

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_memory::{Cgroup, CgroupVersion, Host};

/// How long the removal of a cgroup waits for killed processes to go.
const REMOVAL: Duration = Duration::from_secs(5);

/// How the line is held.
#[derive(Debug)]
pub enum Confinement {
    V1(Group),
    V2(Group),
    /// No cgroup: the supervisor samples the worker's memory and stops it at the line.
    Watched {
        why: String,
    },
}

/// A cgroup of our own with a limit. Dropping it kills what is left inside and removes it.
#[derive(Debug)]
pub struct Group {
    cgroup: Cgroup,
    /// Kept open: the child writes itself into it between fork and exec.
    procs: File,
    oom_kills_before: Option<u64>,
    undo: v2::Undo,
    removed: bool,
}

impl Confinement {
    /// Makes a cgroup `tidegate-<id>` with the limit below our own, or says why it cannot. Without a limit it only
    /// counts.
    pub fn create(host: &Host, id: &str, limit: Option<u64>) -> Confinement {
        let made = Cgroup::of(host, None)
            .map_err(|error| error.to_string())
            .and_then(|own| {
                let name = group_name(id);
                match own.version {
                    CgroupVersion::V1 => v1::create(&own.path, &name, limit).map(Confinement::V1),
                    CgroupVersion::V2 => v2::create(&own.path, &name, limit).map(Confinement::V2),
                }
            });
        made.unwrap_or_else(|why| Confinement::Watched { why })
    }

    /// Lets the kernel kill all processes inside together, for a job that is lost when it has lost one of them. Only
    /// cgroup v2 can.
    pub fn die_together(&self) {
        if let Confinement::V2(group) = self {
            // Missing before Linux 4.19.
            let _ = control(&group.cgroup.path, "memory.oom.group", "1");
        }
    }

    /// `cgroup v1`, `cgroup v2`, or `watched: …` with the reason.
    pub fn describe(&self) -> String {
        match self {
            Confinement::V1(_) => "cgroup v1".into(),
            Confinement::V2(_) => "cgroup v2".into(),
            Confinement::Watched { why } => format!("watched: {why}"),
        }
    }

    pub fn cgroup(&self) -> Option<&Path> {
        self.group().map(|group| group.cgroup.path.as_path())
    }

    pub(crate) fn group(&self) -> Option<&Group> {
        match self {
            Confinement::V1(group) | Confinement::V2(group) => Some(group),
            Confinement::Watched { .. } => None,
        }
    }

    /// Gives up the cgroup, for a worker that could not join it.
    pub(crate) fn fall_back(&mut self, why: String) {
        *self = Confinement::Watched { why };
    }

    /// Kills what is inside and removes the cgroup; says what went wrong, if something did.
    pub(crate) fn remove(&mut self) -> Option<String> {
        match self {
            Confinement::V1(group) | Confinement::V2(group) => group.remove(),
            Confinement::Watched { .. } => None,
        }
    }
}

pub(crate) fn group_name(id: &str) -> String {
    format!("tidegate-{id}")
}

impl Group {
    /// Takes over a cgroup that was just made and limited; on failure it is removed.
    fn adopt(path: PathBuf, version: CgroupVersion, mut undo: v2::Undo) -> Result<Group, String> {
        // `create` for copies of the tree in tests; in a real one the file is always there.
        let mut open = fs::OpenOptions::new();
        let procs = open
            .write(true)
            .create(true)
            .truncate(false)
            .open(path.join("cgroup.procs"));
        let procs = procs.map_err(|error| {
            let _ = remove_tree(&path);
            undo.run();
            format!("cannot open cgroup.procs of {}: {error}", path.display())
        })?;
        let cgroup = Cgroup::at(path, version);
        let oom_kills_before = cgroup.events().oom_kill;
        Ok(Group {
            cgroup,
            procs,
            oom_kills_before,
            undo,
            removed: false,
        })
    }

    pub(crate) fn procs(&self) -> &File {
        &self.procs
    }

    pub(crate) fn usage(&self) -> Option<u64> {
        self.cgroup.usage()
    }

    pub(crate) fn peak(&self) -> Option<u64> {
        self.cgroup.peak()
    }

    /// OOM kills since the cgroup was taken over.
    pub(crate) fn oom_kills(&self) -> Option<u64> {
        Some(
            self.cgroup
                .events()
                .oom_kill?
                .saturating_sub(self.oom_kills_before?),
        )
    }

    pub(crate) fn pressure(&self) -> Option<tidegate_memory::Pressure> {
        self.cgroup.pressure()
    }

    pub(crate) fn made_of(&self) -> tidegate_memory::CgroupStat {
        self.cgroup.stat()
    }

    /// What the kernel cannot take back: pages that are only cached do not count.
    pub(crate) fn held(&self) -> Option<u64> {
        let made_of = self.made_of();
        Some(made_of.anonymous? + made_of.shared.unwrap_or(0))
    }

    pub(crate) fn swap(&self) -> Option<u64> {
        self.cgroup.swap()
    }

    pub(crate) fn pids(&self) -> Vec<i32> {
        pids(&self.cgroup.path)
    }

    /// Sends SIGKILL to everything inside.
    pub(crate) fn kill(&self) {
        kill_inside(&self.cgroup.path);
    }

    fn remove(&mut self) -> Option<String> {
        if self.removed {
            return None;
        }
        self.removed = true;
        let removed = remove_tree(&self.cgroup.path);
        self.undo.run();
        removed
            .err()
            .map(|error| format!("cannot remove the cgroup {}: {error}", self.cgroup.path.display()))
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        // Whoever wants to know of a failure has called `remove`.
        let _ = self.remove();
    }
}

/// Removes the cgroup of a supervisor that is gone, and undoes what it had changed around it.
pub(crate) fn remove_group(path: &Path) -> io::Result<()> {
    remove_tree(path)?;
    if let Some(parent) = path.parent() {
        v2::restore_for_the_dead(parent);
    }
    Ok(())
}

/// Kills what is inside a cgroup of ours, waits for it to be gone, and removes the cgroup with any that
/// the worker made below it.
fn remove_tree(path: &Path) -> io::Result<()> {
    let give_up = Instant::now() + REMOVAL;
    let mut pause = Duration::from_millis(1);
    loop {
        kill_inside(path);
        let removed = children(path)
            .iter()
            .try_for_each(fs::remove_dir)
            .and_then(|()| fs::remove_dir(path));
        match removed {
            Ok(()) => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound && !path.exists() => return Ok(()),
            Err(error) if Instant::now() >= give_up => return Err(error),
            Err(_) => {}
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// Every cgroup below, innermost first.
fn children(path: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for child in directories(path) {
        found.extend(children(&child));
        found.push(child);
    }
    found
}

/// The cgroups right below.
fn directories(path: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(path).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .map(|entry| entry.path())
        .collect()
}

fn kill_inside(path: &Path) {
    // v2 kills a whole tree at once, forks included (Linux 5.14).
    if path.join("cgroup.kill").exists() && fs::write(path.join("cgroup.kill"), "1").is_ok() {
        return;
    }
    let own = std::process::id().cast_signed();
    let inside = children(path).into_iter().chain([path.to_path_buf()]);
    for pid in inside
        .flat_map(|path| pids(&path))
        .filter(|&pid| pid > 1 && pid != own)
    {
        // SAFETY: kill has no memory effects; the process was in a cgroup that only we use a moment ago.
        unsafe { libc::kill(pid, libc::SIGKILL) };
    }
}

fn pids(path: &Path) -> Vec<i32> {
    let text = fs::read_to_string(path.join("cgroup.procs")).unwrap_or_default();
    text.split_whitespace()
        .filter_map(|pid| pid.parse().ok())
        .collect()
}

/// The kernel counts pages; a limit of a part of one would be rounded by it anyway.
fn whole_pages(bytes: u64) -> u64 {
    // SAFETY: sysconf has no memory effects.
    let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) })
        .unwrap_or(4096)
        .max(1);
    bytes / page * page
}

/// Writes a control file, or says why not in words that a person reads.
fn control(path: &Path, file: &str, value: &str) -> Result<(), String> {
    fs::write(path.join(file), value).map_err(|error| {
        let why = match error.raw_os_error() {
            Some(libc::EBUSY) => {
                "more memory is in use than the limit allows, or the cgroup is busy".to_string()
            }
            Some(libc::EACCES | libc::EPERM) => "no permission".into(),
            Some(libc::EROFS) => "the cgroup file system is mounted read-only".into(),
            _ => error.to_string(),
        };
        format!("cannot set {file} of {}: {why}", path.display())
    })
}

/// Makes the directory; a left-over of the same name, which only we would make, is removed first.
fn make(path: &Path) -> Result<(), String> {
    let mut made = fs::create_dir(path);
    if made
        .as_ref()
        .is_err_and(|error| error.kind() == io::ErrorKind::AlreadyExists)
    {
        made = remove_tree(path).and_then(|()| fs::create_dir(path));
    }
    made.map_err(|error| {
        let parent = path.parent().unwrap_or(path).display();
        match error.raw_os_error() {
            Some(libc::EACCES | libc::EPERM) => format!("no permission to make a cgroup in {parent}"),
            Some(libc::EROFS) => format!("{parent} is mounted read-only"),
            _ => format!("cannot make a cgroup in {parent}: {error}"),
        }
    })
}
