//! A memory cgroup's own counters: usage, peak, limit, what it is made of, and what was killed.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::budget::Limit;
use crate::error::Error;
use crate::hierarchy;
use crate::host::{Host, read, why};
use crate::pressure::{Pressure, Resource};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CgroupVersion {
    V1,
    V2,
}

impl fmt::Display for CgroupVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CgroupVersion::V1 => "v1",
            CgroupVersion::V2 => "v2",
        })
    }
}

/// A cgroup directory with memory files. Each call reads its file anew; a missing one is `None`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cgroup {
    pub version: CgroupVersion,
    pub path: PathBuf,
}

/// What a cgroup's memory is made of, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupStat {
    pub anonymous: Option<u64>,
    /// Page cache, shared memory included, as the kernel counts it.
    pub file: Option<u64>,
    pub shared: Option<u64>,
    pub kernel: Option<u64>,
    /// The part of the page cache that waits to be written and cannot be dropped yet.
    pub dirty: Option<u64>,
}

/// How often something happened since the cgroup was made, its descendants included. Take differences.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CgroupEvents {
    /// Processes killed by the kernel for want of memory. With `memory.oom.group` the kernel counts the one
    /// that set it off twice.
    pub oom_kill: Option<u64>,
    /// Times the limit was reached and nothing could be reclaimed (v2).
    pub oom: Option<u64>,
    /// Times usage was about to cross the limit (v1: `memory.failcnt` and `memory.memsw.failcnt`). Zero proves
    /// nothing on v1: Linux 6.18 was seen to leave both at zero while it killed.
    pub max: Option<u64>,
    /// Times it was throttled above `memory.high` (v2).
    pub high: Option<u64>,
}

impl Cgroup {
    pub fn at(path: impl Into<PathBuf>, version: CgroupVersion) -> Cgroup {
        Cgroup {
            version,
            path: path.into(),
        }
    }

    /// The memory cgroup of process `pid`, or of this one, as a directory that can be read here.
    ///
    /// On hybrid machines memory belongs to v1 and the v2 tree has no memory files. On v2, a cgroup whose
    /// parent does not pass memory on has none either: its nearest ancestor that has is what counts it. The
    /// root of a v2 tree has no `memory.current` and counts all the same.
    pub fn of(host: &Host, pid: Option<i32>) -> Result<Cgroup, Error> {
        let error = |reason: String| Error::NoCgroup {
            process: pid.map_or("self".to_owned(), |pid| pid.to_string()),
            reason,
        };
        let found = hierarchy::find(host, pid).map_err(error)?;
        for hierarchy in &found {
            for level in hierarchy.levels() {
                let cgroup = Cgroup::at(host.path(level), hierarchy.version);
                if cgroup.counts_memory() {
                    return Ok(cgroup);
                }
            }
        }
        Err(error("none of its cgroups has memory files".to_owned()))
    }

    /// The bytes charged to it now, page cache included.
    pub fn usage(&self) -> Option<u64> {
        self.number(self.usage_file())
    }

    /// The most bytes ever charged to it. On v2 since Linux 5.19.
    pub fn peak(&self) -> Option<u64> {
        self.number(match self.version {
            CgroupVersion::V1 => "memory.max_usage_in_bytes",
            CgroupVersion::V2 => "memory.peak",
        })
    }

    /// Its own limit; an ancestor's may be smaller.
    pub fn limit(&self) -> Limit {
        let (file, parse): (_, fn(&str) -> Limit) = match self.version {
            CgroupVersion::V1 => ("memory.limit_in_bytes", Limit::from_v1),
            CgroupVersion::V2 => ("memory.max", Limit::from_v2),
        };
        match read(&self.path.join(file)) {
            Ok(text) => parse(&text),
            Err(error) => Limit::Unavailable(format!("{file}: {}", why(&error))),
        }
    }

    /// The bytes of it that are swapped out.
    pub fn swap(&self) -> Option<u64> {
        match self.version {
            CgroupVersion::V2 => self.number("memory.swap.current"),
            // v1 counts memory and swap together, where it counts swap at all.
            CgroupVersion::V1 => {
                let both = self.number("memory.memsw.usage_in_bytes")?;
                Some(both.saturating_sub(self.usage()?))
            }
        }
    }

    pub fn stat(&self) -> CgroupStat {
        let Some(text) = self.text("memory.stat") else {
            return CgroupStat::default();
        };
        let mut stat = parse_stat(&text, self.version);
        if self.version == CgroupVersion::V1 {
            stat.kernel = self.number("memory.kmem.usage_in_bytes");
        }
        stat
    }

    pub fn events(&self) -> CgroupEvents {
        match self.version {
            CgroupVersion::V2 => {
                let text = self.text("memory.events");
                let value = |name: &str| text.as_deref().and_then(|text| line_value(text, name));
                CgroupEvents {
                    oom_kill: value("oom_kill"),
                    oom: value("oom"),
                    max: value("max"),
                    high: value("high"),
                }
            }
            CgroupVersion::V1 => CgroupEvents {
                oom_kill: self
                    .text("memory.oom_control")
                    .and_then(|text| line_value(&text, "oom_kill")),
                oom: None,
                // Where swap is counted, memory and swap together are charged first, and fail there.
                max: [self.number("memory.failcnt"), self.number("memory.memsw.failcnt")]
                    .into_iter()
                    .flatten()
                    .reduce(u64::saturating_add),
                high: None,
            },
        }
    }

    /// The time its tasks waited for memory (v2; on v1 see [`memory_pressure`](crate::memory_pressure)).
    pub fn pressure(&self) -> Option<Pressure> {
        self.pressure_on(Resource::Memory)
    }

    pub fn pressure_on(&self, resource: Resource) -> Option<Pressure> {
        Pressure::parse(&self.text(match resource {
            Resource::Memory => "memory.pressure",
            Resource::Cpu => "cpu.pressure",
            Resource::Io => "io.pressure",
        })?)
    }

    fn counts_memory(&self) -> bool {
        self.path.join(self.usage_file()).exists()
            || self.version == CgroupVersion::V2
                && self
                    .text("cgroup.controllers")
                    .is_some_and(|text| text.split_whitespace().any(|controller| controller == "memory"))
    }

    fn usage_file(&self) -> &'static str {
        match self.version {
            CgroupVersion::V1 => "memory.usage_in_bytes",
            CgroupVersion::V2 => "memory.current",
        }
    }

    fn text(&self, file: &str) -> Option<String> {
        read(&self.path.join(file)).ok()
    }

    fn number(&self, file: &str) -> Option<u64> {
        self.text(file)?.trim().parse().ok()
    }
}

/// The value of a line `name value`.
fn line_value(text: &str, name: &str) -> Option<u64> {
    text.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok())
}

/// One pass over `memory.stat`. On v1 the `total_` lines are those that count descendants, as v2's all do.
pub(crate) fn parse_stat(text: &str, version: CgroupVersion) -> CgroupStat {
    let mut stat = CgroupStat::default();
    for line in text.lines() {
        let Some((name, value)) = line.split_once(' ') else {
            continue;
        };
        let field = match (version, name) {
            (CgroupVersion::V2, "anon") | (CgroupVersion::V1, "total_rss") => &mut stat.anonymous,
            (CgroupVersion::V2, "file") | (CgroupVersion::V1, "total_cache") => &mut stat.file,
            (CgroupVersion::V2, "shmem") | (CgroupVersion::V1, "total_shmem") => &mut stat.shared,
            (CgroupVersion::V2, "file_dirty") | (CgroupVersion::V1, "total_dirty") => &mut stat.dirty,
            (CgroupVersion::V2, "kernel") => &mut stat.kernel,
            _ => continue,
        };
        *field = value.trim().parse().ok();
    }
    stat
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stat_lines_are_read_by_version() {
        let v2 = parse_stat(
            "anon 100\nfile 200\nkernel 30\nshmem 5\nfile_dirty 1\nanon_thp 9\n",
            CgroupVersion::V2,
        );
        assert_eq!(
            (v2.anonymous, v2.file, v2.shared, v2.kernel),
            (Some(100), Some(200), Some(5), Some(30))
        );
        let v1 = parse_stat(
            "cache 1\nrss 2\ntotal_cache 10\ntotal_rss 20\n",
            CgroupVersion::V1,
        );
        assert_eq!(
            (v1.anonymous, v1.file, v1.shared, v1.kernel),
            (Some(20), Some(10), None, None)
        );
    }

    #[test]
    fn a_name_is_not_mistaken_for_a_longer_one() {
        let text = "low 0\nhigh 3\nmax 12\noom 2\noom_kill 1\noom_group_kill 0\n";
        assert_eq!(
            (line_value(text, "oom"), line_value(text, "oom_kill")),
            (Some(2), Some(1))
        );
        assert_eq!(
            line_value("oom_kill_disable 0\nunder_oom 0\noom_kill 4\n", "oom_kill"),
            Some(4)
        );
        assert_eq!(line_value("oom_kill_disable 0\n", "oom_kill"), None);
    }

    #[test]
    fn a_cgroup_that_is_not_there_tells_nothing() {
        let cgroup = Cgroup::at("/nonexistent", CgroupVersion::V2);
        assert_eq!(
            (cgroup.usage(), cgroup.peak(), cgroup.swap(), cgroup.pressure()),
            (None, None, None, None)
        );
        assert_eq!(
            (cgroup.stat(), cgroup.events()),
            (CgroupStat::default(), CgroupEvents::default())
        );
        assert_eq!(
            cgroup.limit(),
            Limit::Unavailable("memory.max: no such file".to_owned())
        );
    }
}
