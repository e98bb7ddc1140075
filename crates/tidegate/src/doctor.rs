//! The verb `doctor`: what this machine allows, measured.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;
use tidegate_memory::{Budget, Cgroup, Host, MemInfo, Pressure, Resource, meminfo, pressure, resolve};
use tidegate_watch::Confinement;

use crate::Result;

/// What was found; `None` could not be read.
#[derive(Debug, Clone, Serialize)]
pub struct Diagnosis {
    pub budget: Budget,
    /// `cgroup v1`, `cgroup v2`, or `watched: …` with the reason.
    pub containment: String,
    /// A limit set on a cgroup of our own can be enforced by the kernel.
    pub enforced: bool,
    pub cgroup: Option<PathBuf>,
    pub memory: MemInfo,
    pub memory_pressure: Option<Pressure>,
    pub io_pressure: Option<Pressure>,
    pub cores: usize,
    pub folder: PathBuf,
    pub free_bytes: Option<u64>,
    pub disk: Option<DiskSpeed>,
}

/// Bytes per second, measured with a file of our own.
#[derive(Debug, Clone, Copy, Serialize)]
pub struct DiskSpeed {
    pub write: f64,
    pub read: f64,
}

/// Looks at the machine and at `folder`; its disk is timed where that is wanted, with a file that takes a moment.
pub fn diagnose(folder: &Path, time_the_disk: bool) -> Result<Diagnosis> {
    let host = Host::live();
    let budget = resolve(&host, None)?;
    // The honest way to know whether a cgroup can be made is to make one.
    let confinement = Confinement::create(&host, "doctor", Some(budget.bytes));
    let (containment, enforced) = (confinement.describe(), confinement.cgroup().is_some());
    drop(confinement);
    let free_bytes = free_space(folder);
    // The file sits in memory until it is written: a small part of what we may use.
    let probe = PROBE_BYTES.min(budget.bytes / 8).next_multiple_of(PIECE as u64);
    let disk = free_bytes
        .filter(|free| time_the_disk && *free > 4 * probe)
        .and_then(|_| disk_speed(folder, probe).ok());
    Ok(Diagnosis {
        containment,
        enforced,
        cgroup: Cgroup::of(&host, None).ok().map(|cgroup| cgroup.path),
        memory: meminfo(&host),
        memory_pressure: pressure(&host, Resource::Memory),
        io_pressure: pressure(&host, Resource::Io),
        cores: crate::worker::default_threads(),
        folder: std::path::absolute(folder).unwrap_or_else(|_| folder.into()),
        free_bytes,
        disk,
        budget,
    })
}

/// Bytes that an ordinary user may still write in the file system of `folder`.
pub(crate) fn free_space(folder: &Path) -> Option<u64> {
    let path = CString::new(folder.as_os_str().as_bytes()).ok()?;
    // SAFETY: all-zero bytes are a valid statvfs, plain integers.
    let mut stat: libc::statvfs = unsafe { std::mem::zeroed() };
    // SAFETY: the path is a C string and `stat` is ours to write.
    let answered = unsafe { libc::statvfs(path.as_ptr(), &mut stat) } == 0;
    answered.then(|| stat.f_bavail * stat.f_frsize)
}

const PROBE_BYTES: u64 = 64 << 20;
const PIECE: usize = 1 << 20;
/// A slow disk is not measured for longer than this each way.
const PATIENCE: Duration = Duration::from_secs(2);

/// Writes and syncs a file, drops it from the page cache, reads it back.
fn disk_speed(folder: &Path, bytes: u64) -> io::Result<DiskSpeed> {
    let path = folder.join(format!(".tidegate-doctor-{}", std::process::id()));
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&path)?;
    // The name goes at once, so that nothing is left however this ends.
    std::fs::remove_file(&path)?;
    // Not zeros: some disks and file systems make those disappear.
    let piece: Vec<u8> = (0..PIECE as u32)
        .map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8)
        .collect();
    let started = Instant::now();
    let mut written = 0;
    while written < bytes && started.elapsed() < PATIENCE {
        (&file).write_all(&piece)?;
        written += PIECE as u64;
    }
    file.sync_data()?;
    let write = written as f64 / started.elapsed().as_secs_f64();
    drop_cached(&file);
    let mut buffer = piece;
    let started = Instant::now();
    let mut read = 0;
    while read < written && started.elapsed() < PATIENCE {
        file.read_exact_at(&mut buffer, read)?;
        read += PIECE as u64;
    }
    Ok(DiskSpeed {
        write,
        read: read as f64 / started.elapsed().as_secs_f64(),
    })
}

fn drop_cached(file: &File) {
    use std::os::fd::AsRawFd;
    // SAFETY: advice on an open descriptor touches no memory of ours.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}
