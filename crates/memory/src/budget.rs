//! The true budget: the smallest bound that holds for this process, and every other one beside it.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::error::Error;
use crate::hierarchy::{self, Hierarchy};
use crate::host::{Host, why};
use crate::{Amount, CgroupVersion, format_bytes, meminfo, slurm};

/// The share of the true bound that is taken when nobody says how much: the rest is for the kernel's own
/// pages, the page cache and neighbours.
const DEFAULT_SHARE: f64 = 0.8;

/// Old kernels write "no limit" into v1 files as a number: 2^63 rounded down to a page, or 2^64 - 1. No
/// machine has a quarter of it.
const V1_UNLIMITED: u64 = 1 << 62;

/// What one bound says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Limit {
    Bytes(u64),
    Unlimited,
    /// Could not be found out, and why.
    Unavailable(String),
}

impl Limit {
    pub fn bytes(&self) -> Option<u64> {
        match self {
            Limit::Bytes(bytes) => Some(*bytes),
            Limit::Unlimited | Limit::Unavailable(_) => None,
        }
    }

    /// A limit file of cgroup v2: `max` or bytes.
    pub(crate) fn from_v2(text: &str) -> Limit {
        match text.trim() {
            "max" => Limit::Unlimited,
            text => text
                .parse()
                .map_or_else(|_| Limit::unreadable(text), Limit::Bytes),
        }
    }

    /// A limit of cgroup v1: bytes, where absurdly many (or -1) mean none.
    pub(crate) fn from_v1(text: &str) -> Limit {
        match text.trim() {
            "-1" => Limit::Unlimited,
            text => match text.parse::<u64>() {
                Ok(bytes) if bytes >= V1_UNLIMITED => Limit::Unlimited,
                Ok(bytes) => Limit::Bytes(bytes),
                Err(_) => Limit::unreadable(text),
            },
        }
    }

    fn unreadable(text: &str) -> Limit {
        Limit::Unavailable(format!("`{text}` is not a number of bytes"))
    }
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Bytes(bytes) => f.write_str(&format_bytes(*bytes)),
            Limit::Unlimited => f.write_str("unlimited"),
            Limit::Unavailable(why) => write!(f, "unavailable: {why}"),
        }
    }
}

/// Where a bound comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BoundKind {
    Cgroup2,
    Cgroup1,
    Slurm,
    RlimitAs,
    RlimitData,
    HostAvailable,
    /// The machine tells nothing; what was asked is all we know.
    Asked,
}

/// One bound on the memory of this process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bound {
    pub kind: BoundKind,
    /// With the place it is read from, for example `cgroup v2 limit /sys/fs/cgroup/jobs/memory.max`.
    pub name: String,
    pub limit: Limit,
}

impl Bound {
    pub(crate) fn new(kind: BoundKind, name: impl Into<String>, limit: Limit) -> Bound {
        Bound {
            kind,
            name: name.into(),
            limit,
        }
    }
}

impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.limit)
    }
}

/// The bytes a job may use on this host, and the bound that set them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Budget {
    pub bytes: u64,
    pub asked: Option<Amount>,
    /// The smallest bound.
    pub bound: Bound,
    /// All bounds, it among them: cgroups from the process upwards, Slurm, rlimits, the host.
    pub bounds: Vec<Bound>,
    /// More was asked for than the bound allows.
    pub clipped: bool,
}

impl Budget {
    /// All that the smallest bound allows: what a share is a share of.
    pub fn whole(&self) -> u64 {
        self.bound.limit.bytes().unwrap_or(self.bytes)
    }
}

/// Finds the true budget of this process on `host`.
///
/// Bytes asked for are clipped to the smallest bound; a share is a share of it; nothing asked is 80% of it.
pub fn resolve(host: &Host, asked: Option<Amount>) -> Result<Budget, Error> {
    let bounds = bounds(host);
    // The first of equals, so that a pod's own limit is named rather than its parent's copy of it.
    let smallest = bounds
        .iter()
        .filter_map(|bound| Some((bound.limit.bytes()?, bound)))
        .min_by_key(|(bytes, _)| *bytes)
        .map(|(bytes, bound)| (bytes, bound.clone()));
    let (whole, bound) = match (smallest, asked) {
        (Some(smallest), _) => smallest,
        (None, Some(Amount::Bytes(bytes))) => (
            bytes,
            Bound::new(BoundKind::Asked, "what was asked for", Limit::Bytes(bytes)),
        ),
        (None, _) => return Err(Error::NoBound { bounds }),
    };
    let wanted = asked.unwrap_or(Amount::Share(DEFAULT_SHARE)).of(whole);
    let bytes = wanted.min(whole);
    if bytes == 0 {
        return Err(Error::NothingLeft { bound, bytes: whole });
    }
    Ok(Budget {
        bytes,
        asked,
        bound,
        bounds,
        clipped: wanted > whole,
    })
}

fn bounds(host: &Host) -> Vec<Bound> {
    let mut bounds = Vec::new();
    match hierarchy::find(host, None) {
        Ok(found) => found
            .iter()
            .for_each(|hierarchy| cgroup_bounds(host, hierarchy, &mut bounds)),
        Err(reason) => bounds.push(Bound::new(
            BoundKind::Cgroup2,
            "cgroup",
            Limit::Unavailable(reason),
        )),
    }
    slurm::bounds(host, &mut bounds);
    rlimit_bounds(host, &mut bounds);
    let available = match meminfo(host).available {
        Some(bytes) => Limit::Bytes(bytes),
        None => Limit::Unavailable("no MemAvailable in /proc/meminfo".to_owned()),
    };
    bounds.push(Bound::new(
        BoundKind::HostAvailable,
        "host available memory /proc/meminfo",
        available,
    ));
    bounds
}

/// The limits of the process's own cgroup and of each ancestor that is visible, upwards.
fn cgroup_bounds(host: &Host, hierarchy: &Hierarchy, bounds: &mut Vec<Bound>) {
    let (kind, version) = match hierarchy.version {
        CgroupVersion::V2 => (BoundKind::Cgroup2, "v2"),
        CgroupVersion::V1 => (BoundKind::Cgroup1, "v1"),
    };
    let before = bounds.len();
    for directory in hierarchy.levels() {
        match hierarchy.version {
            CgroupVersion::V2 => {
                for (file, what) in [("memory.max", "limit"), ("memory.high", "throttle")] {
                    let file = directory.join(file);
                    // No such file: the root of all, or a level whose parent does not pass memory on. Then
                    // the levels above hold.
                    let Some(limit) = read_limit(host, &file, Limit::from_v2) else {
                        continue;
                    };
                    bounds.push(Bound::new(
                        kind,
                        format!("cgroup v2 {what} {}", file.display()),
                        limit,
                    ));
                }
            }
            CgroupVersion::V1 => {
                let file = directory.join("memory.limit_in_bytes");
                if let Some(limit) = read_limit(host, &file, Limit::from_v1) {
                    bounds.push(Bound::new(
                        kind,
                        format!("cgroup v1 limit {}", file.display()),
                        limit,
                    ));
                }
            }
        }
    }
    if hierarchy.version == CgroupVersion::V1 {
        // The kernel's own minimum over all ancestors, those outside a container's view included.
        let file = hierarchy.directory.join("memory.stat");
        let limit = read_limit(host, &file, |stat| {
            let line = stat
                .lines()
                .find_map(|line| line.strip_prefix("hierarchical_memory_limit "));
            line.map_or_else(
                || Limit::Unavailable("no hierarchical_memory_limit".to_owned()),
                Limit::from_v1,
            )
        });
        if let Some(limit) = limit {
            bounds.push(Bound::new(
                kind,
                format!("cgroup v1 limit of all ancestors {}", file.display()),
                limit,
            ));
        }
    }
    if bounds.len() == before {
        let name = format!("cgroup {version} {}", hierarchy.mount_point.display());
        // The root of a v2 tree has the controller and cannot be limited.
        let controllers = host.read(hierarchy.mount_point.join("cgroup.controllers"));
        let limit = match controllers {
            Ok(text) if text.split_whitespace().any(|word| word == "memory") => Limit::Unlimited,
            _ => Limit::Unavailable("no memory controller here".to_owned()),
        };
        bounds.push(Bound::new(kind, name, limit));
    }
    if let Some(hidden) = hierarchy.hidden(host) {
        let name = format!(
            "cgroup {version} levels outside {}",
            hierarchy.mount_point.display()
        );
        bounds.push(Bound::new(kind, name, Limit::Unavailable(hidden)));
    }
}

fn read_limit(host: &Host, file: &std::path::Path, parse: impl Fn(&str) -> Limit) -> Option<Limit> {
    match host.read(file) {
        Ok(text) => Some(parse(&text)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => None,
        Err(error) => Some(Limit::Unavailable(why(&error))),
    }
}

/// The soft limits on address space and data. They are read from `/proc`, which a recorded machine has too.
fn rlimit_bounds(host: &Host, bounds: &mut Vec<Bound>) {
    let text = host.read("proc/self/limits");
    for (kind, name, row) in [
        (BoundKind::RlimitAs, "RLIMIT_AS (ulimit -v)", "Max address space"),
        (BoundKind::RlimitData, "RLIMIT_DATA (ulimit -d)", "Max data size"),
    ] {
        let limit = match &text {
            Ok(text) => rlimit(text, row),
            Err(error) => Limit::Unavailable(format!("/proc/self/limits: {}", why(error))),
        };
        bounds.push(Bound::new(kind, name, limit));
    }
}

fn rlimit(text: &str, row: &str) -> Limit {
    let soft = text
        .lines()
        .find_map(|line| line.strip_prefix(row))
        .and_then(|rest| rest.split_whitespace().next());
    match soft {
        None => Limit::Unavailable(format!("no `{row}` in /proc/self/limits")),
        Some("unlimited") => Limit::Unlimited,
        Some(soft) => soft
            .parse()
            .map_or_else(|_| Limit::unreadable(soft), Limit::Bytes),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn v1_has_many_ways_to_say_unlimited() {
        for text in [
            "9223372036854771712\n",
            "9223372036854775807",
            "18446744073709551615",
            "-1",
        ] {
            assert_eq!(Limit::from_v1(text), Limit::Unlimited, "{text}");
        }
        assert_eq!(Limit::from_v1("536870912\n"), Limit::Bytes(536_870_912));
        assert_eq!(
            Limit::from_v1("junk").to_string(),
            "unavailable: `junk` is not a number of bytes"
        );
        assert_eq!(Limit::from_v2("max\n"), Limit::Unlimited);
        assert_eq!(Limit::from_v2("2000000000\n").to_string(), "2 GB");
    }

    #[test]
    fn a_machine_that_tells_nothing_needs_bytes() {
        let nowhere = Host::recorded("/nonexistent", [("", ""); 0]);
        let error = resolve(&nowhere, None).expect_err("no bound");
        assert!(matches!(error, Error::NoBound { .. }) && error.hint().is_some());
        assert!(resolve(&nowhere, Some(Amount::Share(0.5))).is_err());
        let budget = resolve(&nowhere, Some(Amount::Bytes(5_000))).expect("bytes are enough");
        assert_eq!(
            (budget.bytes, budget.bound.kind, budget.clipped),
            (5_000, BoundKind::Asked, false)
        );
    }

    #[test]
    fn limits_serialize_for_programs() {
        let json = |limit: Limit| serde_json::to_string(&limit).expect("json");
        assert_eq!(json(Limit::Bytes(5)), r#"{"bytes":5}"#);
        assert_eq!(json(Limit::Unlimited), r#""unlimited""#);
        assert_eq!(
            json(Limit::Unavailable("why".to_owned())),
            r#"{"unavailable":"why"}"#
        );
    }
}
