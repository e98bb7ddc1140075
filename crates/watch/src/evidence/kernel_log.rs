//! The kernel's log from the start of a job to its end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use crate::why::KernelLog;

const SOURCE: &str = "/dev/kmsg";
/// Lines that are kept: those that can tell why a job ended, and no more than so many.
const MOST_LINES: usize = 300;
const TELLING: &[&str] = &[
    "oom",
    "Out of memory",
    "Killed process",
    "Kill process",
    "segfault",
    "traps:",
    "general protection",
    "EDAC",
    "mce:",
    "Hardware Error",
    "Xid",
    "throttled",
    "I/O error",
    "EXT4-fs error",
    "XFS",
    "blocked for more than",
    "fork rejected",
    "Memory failure",
];

/// The log, read from where it stood when the job began.
#[derive(Debug)]
pub(crate) struct KernelWatch {
    log: Result<File, String>,
}

impl Default for KernelWatch {
    fn default() -> KernelWatch {
        KernelWatch {
            log: Err("it was not watched".into()),
        }
    }
}

impl KernelWatch {
    /// The log from now on.
    pub(crate) fn begin() -> KernelWatch {
        KernelWatch::open(SeekFrom::End(0))
    }

    fn open(from: SeekFrom) -> KernelWatch {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(SOURCE)
            .and_then(|mut file| file.seek(from).map(|_| file));
        KernelWatch {
            log: opened.map_err(|error| match error.kind() {
                std::io::ErrorKind::PermissionDenied => {
                    "no permission (kernel.dmesg_restrict; CAP_SYSLOG would do)".into()
                }
                _ => error.to_string(),
            }),
        }
    }

    /// The log from its oldest line that is left.
    pub(crate) fn whole() -> KernelWatch {
        KernelWatch::open(SeekFrom::Start(0))
    }

    /// What came since.
    pub(crate) fn end(self) -> KernelLog {
        let mut file = match self.log {
            Ok(file) => file,
            Err(unavailable) => {
                return KernelLog {
                    source: SOURCE.into(),
                    unavailable: Some(unavailable),
                    lines: Vec::new(),
                };
            }
        };
        let mut lines = Vec::new();
        let mut record = [0u8; 8192];
        loop {
            // Each read is one record.
            match file.read(&mut record) {
                Ok(0) => break,
                Ok(read) => {
                    let text = String::from_utf8_lossy(&record[..read]);
                    let line = text.lines().next().unwrap_or_default();
                    if TELLING.iter().any(|word| line.contains(word)) {
                        lines.push(line.to_owned());
                    }
                }
                // Records were overwritten before they were read: go on with the oldest that is left.
                Err(error) if error.raw_os_error() == Some(libc::EPIPE) => {}
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
            if lines.len() > MOST_LINES {
                lines.remove(0);
            }
        }
        KernelLog {
            source: SOURCE.into(),
            unavailable: None,
            lines,
        }
    }
}
