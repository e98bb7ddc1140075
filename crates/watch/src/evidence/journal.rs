//! The journal of systemd: what the kernel said where its own log may not be read, and what the watchers of memory did.

use std::collections::VecDeque;
use std::os::fd::AsRawFd;
use std::path::Path;
use std::process::{ChildStderr, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::pipes::polled;

/// How long the journal has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// More of a line, or of what it complains about, tells nothing.
const MOST_LINE: usize = 4096;
const MOST_COMPLAINT: usize = 4096;

/// What it prints for want of anything else.
const NOTHING: &[u8] = b"-- No entries --";

/// The watchers that end processes before the kernel has to.
const WATCHERS: [&str; 3] = ["systemd-oomd", "earlyoom", "nohang"];

/// What to ask the journal for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Question {
    /// From when on; `None` is all since the machine started.
    pub(crate) since: Option<SystemTime>,
    /// The kernel's lines, too, not only the watchers'.
    pub(crate) kernel: bool,
}

/// The lines that `wanted` accepts, the last `most` of them, or why there are none to be had.
pub(crate) fn journal(
    program: &Path,
    question: Question,
    most: usize,
    wanted: impl Fn(&str) -> bool,
) -> Result<Vec<String>, String> {
    let mut command = Command::new(program);
    command.args(["--no-pager", "--boot", "--output=short"]);
    if let Some(since) = question.since {
        let seconds = since
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        command.arg(format!("--since=@{seconds}"));
    }
    let watchers = WATCHERS.iter().map(|name| format!("SYSLOG_IDENTIFIER={name}"));
    let kernel = question.kernel.then(|| "_TRANSPORT=kernel".to_owned());
    // Matches are joined by "and" unless told otherwise.
    for (i, matched) in kernel.into_iter().chain(watchers).enumerate() {
        if i > 0 {
            command.arg("+");
        }
        command.arg(matched);
    }
    let streams = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = streams.spawn().map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => "there is no journalctl".to_owned(),
        _ => format!("journalctl: {error}"),
    })?;
    let (Some(out), Some(err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("journalctl has no output".into());
    };
    let mut lines = VecDeque::new();
    let mut heard = 0_u64;
    let mut complaint = Vec::new();
    let late = !listen(&out, &err, |said| match said {
        Said::Line(NOTHING) => {}
        Said::Line(line) => {
            heard += 1;
            let line = String::from_utf8_lossy(line);
            if wanted(&line) {
                lines.push_back(line.into_owned());
                if lines.len() > most {
                    lines.pop_front();
                }
            }
        }
        Said::Complaint(bytes) => {
            complaint.extend_from_slice(bytes);
            complaint.truncate(MOST_COMPLAINT);
        }
    });
    if late {
        let _ = child.kill();
    }
    let failed = !child.wait().is_ok_and(|status| status.success());
    let complaint = String::from_utf8_lossy(&complaint);
    let complaint = complaint.lines().find(|line| !line.trim().is_empty());
    match complaint {
        _ if late => Err(format!("journalctl said nothing for {} s", PATIENCE.as_secs())),
        // It is content with seeing nothing, and says so.
        Some(complaint) if failed || heard == 0 => Err(complaint.trim().to_owned()),
        None if failed => Err("journalctl failed".into()),
        _ => Ok(lines.into()),
    }
}

enum Said<'b> {
    Line(&'b [u8]),
    Complaint(&'b [u8]),
}

/// Reads both until they end; `false` where that takes too long. Without a thread: a job that ended because there were too
/// many of them is explained, too.
fn listen(out: &ChildStdout, err: &ChildStderr, mut heard: impl FnMut(Said<'_>)) -> bool {
    let give_up = Instant::now() + PATIENCE;
    let mut fds = [out.as_raw_fd(), err.as_raw_fd()].map(|fd| polled(fd, libc::POLLIN));
    let mut buffer = [0u8; 16 * 1024];
    let mut line: Vec<u8> = Vec::new();
    // One that is over is passed over.
    while fds.iter().any(|fd| fd.fd >= 0) {
        let left = give_up.saturating_duration_since(Instant::now());
        let timeout = i32::try_from(left.as_millis()).unwrap_or(i32::MAX);
        // SAFETY: the array has the given length and lives through the call.
        let ready = unsafe { libc::poll(fds.as_mut_ptr(), fds.len() as libc::nfds_t, timeout) };
        if left.is_zero() || ready == 0 {
            return false;
        }
        for (i, fd) in fds.iter_mut().enumerate().filter(|(_, fd)| fd.revents != 0) {
            // SAFETY: reads at most the length of the buffer, from a pipe that is open here.
            let read = unsafe { libc::read(fd.fd, buffer.as_mut_ptr().cast(), buffer.len()) };
            let Ok(read @ 1..) = usize::try_from(read) else {
                fd.fd = -1;
                continue;
            };
            if i == 1 {
                heard(Said::Complaint(&buffer[..read]));
                continue;
            }
            for piece in buffer[..read].split_inclusive(|byte| *byte == b'\n') {
                let (text, ends) = piece
                    .strip_suffix(b"\n")
                    .map_or((piece, false), |text| (text, true));
                let room = MOST_LINE.saturating_sub(line.len());
                line.extend_from_slice(&text[..text.len().min(room)]);
                if ends {
                    heard(Said::Line(&line));
                    line.clear();
                }
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(script: &str, question: Question) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("journalctl");
        // Written by another process: a file that somebody has open for writing cannot be run, and whoever is forked by
        // another test has all that we have.
        let written = Command::new("sh")
            .args(["-c", "printf '%s' \"$1\" > \"$0\" && chmod +x \"$0\""])
            .args([program.as_os_str(), format!("#!/bin/sh\n{script}\n").as_ref()])
            .status();
        assert!(written.unwrap().success());
        journal(&program, question, 2, |line| line.contains("oom"))
    }

    const ALL: Question = Question {
        since: None,
        kernel: true,
    };

    #[test]
    fn the_last_lines_that_tell_something_are_kept() {
        let script = "for i in 1 2 3; do echo \"Nov 16 host kernel: oom $i\"; echo other; done";
        assert_eq!(
            ask(script, ALL).unwrap(),
            ["Nov 16 host kernel: oom 2", "Nov 16 host kernel: oom 3"]
        );
    }

    #[test]
    fn the_question_names_a_time_and_who_is_asked() {
        let since = Some(UNIX_EPOCH + Duration::from_millis(1_700_000_000_500));
        let asked = ask("echo oom \"$@\"", Question { since, kernel: false }).unwrap();
        assert_eq!(
            asked,
            [
                "oom --no-pager --boot --output=short --since=@1700000000 SYSLOG_IDENTIFIER=systemd-oomd \
              + SYSLOG_IDENTIFIER=earlyoom + SYSLOG_IDENTIFIER=nohang"
            ]
        );
    }

    #[test]
    fn what_cannot_be_read_is_said() {
        let hidden = "echo 'No journal files were opened due to insufficient permissions.' >&2; exit 0";
        let why = "No journal files were opened due to insufficient permissions.";
        assert_eq!(ask(hidden, ALL).unwrap_err(), why);
        let none = "echo 'No journal files were found.' >&2; echo '-- No entries --'";
        assert_eq!(ask(none, ALL).unwrap_err(), "No journal files were found.");
        assert_eq!(ask("exit 3", ALL).unwrap_err(), "journalctl failed");
        let missing = journal(Path::new("/nowhere/journalctl"), ALL, 2, |_| true);
        assert_eq!(missing.unwrap_err(), "there is no journalctl");
        // Quiet, and content: there is nothing to tell.
        assert_eq!(ask("exit 0", ALL).unwrap(), Vec::<String>::new());
    }
}
