//! Where a process's memory cgroup is found: what is mounted, matched with what the process is in.

use std::path::{Component, Path, PathBuf};

use crate::CgroupVersion;
use crate::host::{Host, why};

/// One cgroup hierarchy that may limit memory, as the process sees it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Hierarchy {
    pub(crate) version: CgroupVersion,
    pub(crate) mount_point: PathBuf,
    /// The process's own cgroup, or the deepest ancestor of it that is visible.
    pub(crate) directory: PathBuf,
    /// Why `directory` is not the process's own cgroup, when it is not.
    pub(crate) inexact: Option<String>,
}

impl Hierarchy {
    /// The process's cgroup and its ancestors, up to the mount point.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &Path> {
        self.directory
            .ancestors()
            .take_while(|level| level.starts_with(&self.mount_point))
    }

    /// Why some level may limit memory without being visible here, if so.
    pub(crate) fn hidden(&self, host: &Host) -> Option<String> {
        if let Some(inexact) = &self.inexact {
            return Some(inexact.clone());
        }
        // v1 tells the minimum over all ancestors in memory.stat. Of v2 only the root of all has neither of
        // these files; where they are, the mount shows a part of the tree.
        let is_part = |file: &str| host.path(self.mount_point.join(file)).exists();
        (self.version == CgroupVersion::V2 && (is_part("memory.max") || is_part("cgroup.events")))
            .then(|| "outside this cgroup namespace".to_owned())
    }
}

/// The hierarchies that process `pid` (or this one) is in: v2 and the v1 hierarchy of the memory controller.
/// Only those that are mounted; the reason when there is none.
pub(crate) fn find(host: &Host, pid: Option<i32>) -> Result<Vec<Hierarchy>, String> {
    let process = pid.map_or("self".to_owned(), |pid| pid.to_string());
    let read = |file: &str| {
        host.read(format!("proc/{process}/{file}"))
            .map_err(|e| format!("/proc/{process}/{file}: {}", why(&e)))
    };
    let memberships = read("cgroup")?;
    // Mounts as *we* see them: the directories are for us to read, wherever the process lives.
    let mounts = host
        .read("proc/self/mountinfo")
        .map_err(|e| format!("/proc/self/mountinfo: {}", why(&e)))?;
    let mounts: Vec<Mount> = mounts.lines().filter_map(Mount::parse).collect();
    let found: Vec<Hierarchy> = [CgroupVersion::V2, CgroupVersion::V1]
        .into_iter()
        .filter_map(|version| {
            let path = membership(&memberships, version)?;
            let mount = choose(mounts.iter().filter(|mount| mount.version == version), &path)?;
            Some(locate(host, mount, &path))
        })
        .collect();
    if found.is_empty() {
        Err("no cgroup hierarchy with memory is mounted".to_owned())
    } else {
        Ok(found)
    }
}

/// A cgroup line of mountinfo.
#[derive(Debug, PartialEq, Eq)]
struct Mount {
    version: CgroupVersion,
    /// The cgroup at the mount point, seen from our cgroup namespace: `/`, `/docker/4f2…`, `/../..`.
    root: PathBuf,
    point: PathBuf,
}

impl Mount {
    /// `35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:9 - cgroup cgroup rw,memory`: between the
    /// sixth field and the dash are any number of optional ones.
    fn parse(line: &str) -> Option<Mount> {
        let (front, back) = line.split_once(" - ")?;
        let mut front = front.split(' ').skip(3);
        let (root, point) = (unescape(front.next()?), unescape(front.next()?));
        let mut back = back.split(' ');
        let (file_system, options) = (back.next()?, back.nth(1)?);
        let version = match file_system {
            "cgroup2" => CgroupVersion::V2,
            "cgroup" if options.split(',').any(|option| option == "memory") => CgroupVersion::V1,
            _ => return None,
        };
        Some(Mount { version, root, point })
    }
}

/// Blanks, tabs, newlines and backslashes in mountinfo are written as `\040` and so on.
fn unescape(field: &str) -> PathBuf {
    if !field.contains('\\') {
        return PathBuf::from(field);
    }
    let mut path = String::with_capacity(field.len());
    let mut rest = field;
    while let Some(at) = rest.find('\\') {
        path.push_str(&rest[..at]);
        let code = rest
            .get(at + 1..at + 4)
            .and_then(|digits| u8::from_str_radix(digits, 8).ok());
        match code {
            Some(byte) if byte.is_ascii() => {
                path.push(char::from(byte));
                rest = &rest[at + 4..];
            }
            _ => {
                path.push('\\');
                rest = &rest[at + 1..];
            }
        }
    }
    path.push_str(rest);
    PathBuf::from(path)
}

/// The path of the process in the hierarchy: `0::/user.slice` (v2) or `4:memory:/docker/4f2…` (v1).
fn membership(text: &str, version: CgroupVersion) -> Option<PathBuf> {
    text.lines().find_map(|line| {
        let mut fields = line.splitn(3, ':');
        let (id, controllers, path) = (fields.next()?, fields.next()?, fields.next()?);
        let ours = match version {
            CgroupVersion::V2 => id == "0" && controllers.is_empty(),
            CgroupVersion::V1 => controllers.split(',').any(|controller| controller == "memory"),
        };
        // A removed cgroup keeps its processes; its ancestors still limit them.
        ours.then(|| PathBuf::from(path.strip_suffix(" (deleted)").unwrap_or(path)))
    })
}

/// Of several mounts of one hierarchy, the one that shows the process with the most ancestors.
fn choose<'a>(mounts: impl Iterator<Item = &'a Mount>, path: &Path) -> Option<&'a Mount> {
    mounts.min_by_key(|mount| (!path.starts_with(&mount.root), mount.root.components().count()))
}

/// The directory of the cgroup `path` under `mount`. Both the path and the mount's root are told relative
/// to our cgroup namespace, so one is stripped from the other even when they climb above it with `..`.
fn locate(host: &Host, mount: &Mount, path: &Path) -> Hierarchy {
    let mut inexact = None;
    let mut directory = mount.point.clone();
    match path.strip_prefix(&mount.root) {
        Ok(below)
            if below
                .components()
                .all(|part| matches!(part, Component::Normal(_))) =>
        {
            directory.push(below);
        }
        // The process is outside what is mounted, or deeper than the names we are told. The mount point is
        // the nearest thing that can be read.
        _ => {
            inexact = Some(format!(
                "{} shows the cgroup {}, the process is in {}",
                mount.point.display(),
                mount.root.display(),
                path.display()
            ));
        }
    }
    while directory != mount.point && !host.path(&directory).is_dir() {
        inexact.get_or_insert_with(|| format!("{} is not visible here", directory.display()));
        directory.pop();
    }
    Hierarchy {
        version: mount.version,
        mount_point: mount.point.clone(),
        directory,
        inexact,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mountinfo_lines_are_read_with_any_optional_fields() {
        let parse = |line| Mount::parse(line).map(|m| (m.version, m.root, m.point));
        assert_eq!(
            parse("35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory"),
            Some((CgroupVersion::V1, "/".into(), "/sys/fs/cgroup/memory".into()))
        );
        assert_eq!(
            parse("30 23 0:26 /a\\040b /my\\134cg rw shared:4 master:2 - cgroup2 cgroup2 rw,nsdelegate"),
            Some((CgroupVersion::V2, "/a b".into(), "/my\\cg".into()))
        );
        assert_eq!(
            parse("32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu,cpuacct"),
            None
        );
        assert_eq!(parse("27 1 254:0 / / rw,relatime - ext4 /dev/vda rw"), None);
        for junk in [
            "",
            " - ",
            "35 31 - cgroup2",
            "a b c d e f - cgroup2 x",
            "\\ \\ \\ \\9 \\0 - cgroup2 a b",
        ] {
            let _ = parse(junk);
        }
    }

    #[test]
    fn paths_are_placed_under_the_mount() {
        let nowhere = Host::recorded("/nonexistent", [("", ""); 0]);
        let place = |root: &str, path: &str| {
            let mount = Mount {
                version: CgroupVersion::V2,
                root: root.into(),
                point: PathBuf::from("/sys/fs/cgroup"),
            };
            locate(&nowhere, &mount, Path::new(path)).inexact
        };
        assert_eq!(place("/", "/"), None);
        assert_eq!(place("/docker/4f2", "/docker/4f2"), None);
        assert_eq!(place("/../..", "/../.."), None);
        // Nothing exists in this host, so a path below the mount is reported by name.
        assert_eq!(
            place("/", "/a/b").as_deref(),
            Some("/sys/fs/cgroup/a/b is not visible here")
        );
        assert_eq!(
            place("/../..", "/../../x").as_deref(),
            Some("/sys/fs/cgroup/x is not visible here")
        );
        assert_eq!(
            place("/../..", "/").as_deref(),
            Some("/sys/fs/cgroup shows the cgroup /../.., the process is in /")
        );
        assert!(place("/docker/4f2", "/other").is_some());
        assert!(place("/", "/../x").is_some());
    }
}
