//! What is left of the memory that a running job was promised: looked at again and again, at next to no cost.
//!
//! A budget is resolved once, and then others live on: a limit is lowered, a neighbour in the same cgroup grows, the host
//! runs low. [`Headroom`] keeps the files of all bounds open and says, whenever it is asked, what the job may hold.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::budget::Limit;
use crate::cgroup::parse_stat;
use crate::hierarchy::{self, Hierarchy};
use crate::host::Host;
use crate::{CgroupVersion, meminfo};

/// Of the budget, this part is kept free before a bound: the kernel takes no less than pages at a time, and a checkpoint
/// that is written leaves some in the page cache.
const RESERVE_PART: u64 = 32;
const LEAST_RESERVE: u64 = 4 << 20;
const MOST_RESERVE: u64 = 256 << 20;
/// Files of the kernel are shorter: the longest is `memory.stat`, of some 2 KB.
const TEXT: usize = 16 << 10;

/// The bounds of a job that runs.
#[derive(Debug)]
pub struct Headroom {
    budget: u64,
    /// `/proc/self/statm`, and the size of a page.
    own: Option<(File, u64)>,
    levels: Vec<Level>,
    text: Box<[u8; TEXT]>,
    /// What the last look allowed.
    last: u64,
}

/// What a job may hold at this moment, by the bound that leaves the least.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Allowance {
    pub bytes: u64,
    /// So near that the next pages may be the last: less than the reserve is left.
    pub near: bool,
    pub bound: TightBound,
}

/// A bound then and now: its limit, and what is used of it by all whom it bounds and could not be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TightBound {
    /// The file that tells it.
    pub name: String,
    pub limit_before: u64,
    pub limit: u64,
    pub used_before: u64,
    pub used: u64,
}

#[derive(Debug)]
struct Level {
    name: String,
    files: Files,
    /// A cgroup of the job alone: it may be filled to the line, as long as that stands where it stood.
    own: bool,
    before: Option<Before>,
}

#[derive(Debug)]
enum Files {
    Cgroup {
        version: CgroupVersion,
        limits: Vec<File>,
        usage: File,
        stat: File,
    },
    Host(File),
}

/// How a bound was when it was first looked at.
#[derive(Debug, Clone, Copy)]
struct Before {
    limit: u64,
    used: u64,
    /// What was left beyond the budget. A machine that was full already has nothing taken away from it.
    spare: u64,
}

impl Headroom {
    /// Opens the bounds of this process, for a job of that budget which runs in a cgroup of at most `line` where it has one
    /// of its own.
    pub fn open(host: &Host, budget: u64, line: u64) -> Headroom {
        let found = hierarchy::find(host, None).unwrap_or_default();
        let cgroups = found
            .iter()
            .flat_map(|found| found.levels().filter_map(|level| cgroup(host, found, level)));
        let machine = File::open(host.path("proc/meminfo")).ok().map(|file| Level {
            name: "/proc/meminfo MemAvailable".into(),
            files: Files::Host(file),
            own: false,
            before: None,
        });
        // SAFETY: sysconf has no memory effects.
        let page = u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096);
        let statm = File::open(host.path("proc/self/statm")).ok();
        let mut headroom = Headroom {
            budget,
            own: statm.map(|file| (file, page)),
            levels: cgroups.chain(machine).collect(),
            text: Box::new([0; TEXT]),
            last: budget,
        };
        let own = headroom.own();
        for level in &mut headroom.levels {
            let Some((limit, used)) = level.files.read(0, &mut headroom.text[..]) else {
                continue;
            };
            level.own &= limit <= line;
            level.before = Some(Before {
                limit,
                used,
                spare: (own + limit.saturating_sub(used)).saturating_sub(budget),
            });
        }
        headroom
    }

    /// What is kept free before a bound.
    pub fn reserve(&self) -> u64 {
        (self.budget / RESERVE_PART).clamp(LEAST_RESERVE, MOST_RESERVE)
    }

    /// What a job to which so much is granted may hold, if that is less than its budget. Far from the bound, a look that
    /// stands alone is not believed: what is freed between two files would look like what others took.
    pub fn look(&mut self, granted: u64) -> Option<Allowance> {
        let found = self.tightest(granted);
        let bytes = found.as_ref().map_or(self.budget, |found| found.bytes);
        let before = std::mem::replace(&mut self.last, bytes);
        match found {
            Some(found) if !found.near && before < self.budget => Some(Allowance {
                bytes: bytes.max(before),
                ..found
            }),
            found => found.filter(|found| found.near),
        }
    }

    fn tightest(&mut self, granted: u64) -> Option<Allowance> {
        let (budget, reserve) = (self.budget, self.reserve());
        let mut tightest: Option<Allowance> = None;
        for at in 0..self.levels.len() {
            let level = &self.levels[at];
            let Some(before) = level.before else { continue };
            let Some((limit, used)) = level.files.read(budget, &mut self.text[..]) else {
                continue;
            };
            if level.own && limit >= before.limit {
                continue;
            }
            // Looked at after what all use: what the job itself took meanwhile is not held against it.
            let own = self.own();
            let level = &self.levels[at];
            let reserve = match limit < before.limit {
                true => reserve,
                false => reserve.min(before.spare),
            };
            let left = limit.saturating_sub(used);
            let bytes = match left.checked_sub(reserve) {
                Some(more) => own.saturating_add(more),
                None => own.min(granted).saturating_sub(reserve - left),
            };
            if bytes >= budget || tightest.as_ref().is_some_and(|other| other.bytes <= bytes) {
                continue;
            }
            tightest = Some(Allowance {
                bytes,
                near: left < reserve,
                bound: TightBound {
                    name: level.name.clone(),
                    limit_before: before.limit,
                    limit,
                    used_before: before.used,
                    used,
                },
            });
        }
        tightest
    }

    /// What this process holds by itself: pages of files are not its own.
    fn own(&mut self) -> u64 {
        let Some((file, page)) = &self.own else { return 0 };
        let Some(text) = read(file, &mut self.text[..]) else {
            return 0;
        };
        let mut pages = text.split_ascii_whitespace().skip(1).map(str::parse::<u64>);
        match (pages.next(), pages.next()) {
            (Some(Ok(resident)), Some(Ok(shared))) => resident.saturating_sub(shared) * page,
            _ => 0,
        }
    }
}

/// A cgroup that limits memory or may come to.
fn cgroup(host: &Host, found: &Hierarchy, level: &Path) -> Option<Level> {
    let (limits, usage): (&[&str], _) = match found.version {
        CgroupVersion::V1 => (&["memory.limit_in_bytes"], "memory.usage_in_bytes"),
        CgroupVersion::V2 => (&["memory.max", "memory.high"], "memory.current"),
    };
    let open = |file: &str| File::open(host.path(level.join(file))).ok();
    let files = Files::Cgroup {
        version: found.version,
        limits: limits.iter().filter_map(|file| open(file)).collect(),
        usage: open(usage)?,
        stat: open("memory.stat")?,
    };
    Some(Level {
        name: level.join(limits[0]).display().to_string(),
        files,
        own: level == found.directory && found.inexact.is_none(),
        before: None,
    })
}

impl Files {
    /// The limit, and what is used and could not be taken back. Of a bound that leaves `plenty` anyway, what is cached is
    /// not told apart: that takes another file.
    fn read(&self, plenty: u64, text: &mut [u8]) -> Option<(u64, u64)> {
        match self {
            Files::Host(file) => {
                let info = meminfo::parse(read(file, text)?);
                let (total, available) = (info.total?, info.available?);
                Some((total, total.saturating_sub(available)))
            }
            Files::Cgroup {
                version,
                limits,
                usage,
                stat,
            } => {
                let parse = match version {
                    CgroupVersion::V1 => Limit::from_v1,
                    CgroupVersion::V2 => Limit::from_v2,
                };
                // One that is not limited may be later.
                let mut limit = u64::MAX;
                for file in limits {
                    limit = limit.min(parse(read(file, text)?).bytes().unwrap_or(u64::MAX));
                }
                let used: u64 = read(usage, text)?.trim().parse().ok()?;
                if plenty > 0 && limit.saturating_sub(used) > plenty.saturating_mul(2) {
                    return Some((limit, used));
                }
                let stat = parse_stat(read(stat, text)?, *version);
                let stays = stat.shared.unwrap_or(0) + stat.dirty.unwrap_or(0);
                let cached = stat.file.unwrap_or(0).saturating_sub(stays);
                Some((limit, used.saturating_sub(cached)))
            }
        }
    }
}

/// What stands in a file of the kernel now, which is read from its beginning each time.
fn read<'t>(file: &File, text: &'t mut [u8]) -> Option<&'t str> {
    let mut filled = 0;
    while filled < text.len() {
        match file.read_at(&mut text[filled..], filled as u64).ok()? {
            0 => break,
            n => filled += n,
        }
    }
    std::str::from_utf8(&text[..filled]).ok()
}

#[cfg(test)]
mod tests;
