//! The kernel's log from the start of a job to its end.

use std::fs::{File, OpenOptions};
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;

use std::path::Path;
use std::time::SystemTime;

use super::journal::{Question, journal};
use crate::why::KernelLog;

const SOURCE: &str = "/dev/kmsg";
const JOURNAL: &str = "journalctl";
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
    "earlyoom[",
    "nohang[",
];

/// The log, read from where it stood when the job began.
#[derive(Debug)]
pub(crate) struct KernelWatch {
    log: Result<File, String>,
    /// `None` is since the machine started.
    since: Option<SystemTime>,
}

impl Default for KernelWatch {
    fn default() -> KernelWatch {
        KernelWatch {
            log: Err("it was not watched".into()),
            since: None,
        }
    }
}

impl KernelWatch {
    /// The log from now on.
    pub(crate) fn begin() -> KernelWatch {
        KernelWatch {
            since: Some(SystemTime::now()),
            ..KernelWatch::open(SeekFrom::End(0))
        }
    }

    fn open(from: SeekFrom) -> KernelWatch {
        let opened = OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
            .open(SOURCE)
            .and_then(|mut file| file.seek(from).map(|_| file));
        KernelWatch {
            since: None,
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

    /// What came since. Of a job that did not end well, the journal is asked for what the log itself does not tell.
    pub(crate) fn end(self, well: bool) -> KernelLog {
        let (since, own) = (self.since, self.log.map(read));
        if well {
            return of(SOURCE, own.map_err(|why| vec![why]));
        }
        let question = Question {
            since,
            kernel: own.is_err(),
        };
        let journal = journal(Path::new(JOURNAL), question, MOST_LINES, tells);
        match (own, journal) {
            (Ok(lines), Err(_)) => of(SOURCE, Ok(lines)),
            (Ok(lines), Ok(more)) if more.is_empty() => of(SOURCE, Ok(lines)),
            (Ok(lines), Ok(more)) => {
                let both = format!("{SOURCE} and {JOURNAL}");
                of(&both, Ok(lines.into_iter().chain(more).collect()))
            }
            (Err(_), Ok(lines)) => of(JOURNAL, Ok(lines)),
            (Err(why), Err(why_not)) => of(SOURCE, Err(vec![why, why_not])),
        }
    }
}

fn tells(line: &str) -> bool {
    TELLING.iter().any(|word| line.contains(word))
}

fn of(source: &str, lines: Result<Vec<String>, Vec<String>>) -> KernelLog {
    let (lines, unavailable) = match lines {
        Ok(lines) => (lines, None),
        Err(reasons) => (Vec::new(), Some(reasons.join("; "))),
    };
    KernelLog {
        source: source.into(),
        unavailable,
        lines,
    }
}

/// The lines that tell something, from where the log stands.
fn read(mut file: File) -> Vec<String> {
    let mut lines = Vec::new();
    let mut record = [0u8; 8192];
    loop {
        // Each read is one record.
        match file.read(&mut record) {
            Ok(0) => break,
            Ok(read) => {
                let text = String::from_utf8_lossy(&record[..read]);
                let line = text.lines().next().unwrap_or_default();
                if tells(line) {
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
    lines
}
