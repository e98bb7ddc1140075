//! What a disk has room for, and whether it is one.

use std::io;
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// The file system of a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Disk {
    /// What an ordinary user may still write to it.
    pub free: u64,
    /// It has no disk: what is written to it stays in memory.
    pub is_memory: bool,
}

impl Disk {
    pub fn of(folder: &Path) -> io::Result<Disk> {
        const RAMFS_MAGIC: u32 = 0x8584_58f6;
        let path = std::ffi::CString::new(folder.as_os_str().as_bytes())?;
        let mut disk = MaybeUninit::<libc::statfs>::zeroed();
        // SAFETY: `path` ends with a zero, and `disk` has room for the answer.
        if unsafe { libc::statfs(path.as_ptr(), disk.as_mut_ptr()) } != 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: all fields are numbers, for which zeros would do, and the call has written them.
        let disk = unsafe { disk.assume_init() };
        // The magic numbers have 32 bits, whatever the type is on this machine.
        let kind = disk.f_type as u32;
        Ok(Disk {
            free: disk.f_bavail.saturating_mul(disk.f_frsize as u64),
            is_memory: kind == libc::TMPFS_MAGIC as u32 || kind == RAMFS_MAGIC,
        })
    }
}
