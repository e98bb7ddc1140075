//! The journal of systemd: what the kernel said where its own log may not be read, and what the watchers of memory did.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// How long the journal has to answer.
const PATIENCE: Duration = Duration::from_secs(5);

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
    let (Some(out), Some(mut err)) = (child.stdout.take(), child.stderr.take()) else {
        return Err("journalctl has no output".into());
    };
    let pid = child.id().cast_signed();
    let (done, timed_out) = std::sync::mpsc::channel::<()>();
    let watch = std::thread::spawn(move || {
        let late = timed_out.recv_timeout(PATIENCE) == Err(std::sync::mpsc::RecvTimeoutError::Timeout);
        if late {
            // SAFETY: the child is waited for only after this thread has ended, so the number is its own.
            unsafe { libc::kill(pid, libc::SIGKILL) };
        }
        late
    });
    let mut lines = std::collections::VecDeque::new();
    let mut heard = 0_u64;
    for line in BufReader::new(out).split(b'\n').map_while(Result::ok) {
        heard += 1;
        let line = String::from_utf8_lossy(&line);
        if wanted(&line) {
            lines.push_back(line.into_owned());
            if lines.len() > most {
                lines.pop_front();
            }
        }
    }
    let mut complaint = String::new();
    let _ = err.by_ref().take(4096).read_to_string(&mut complaint);
    drop(done);
    let late = watch.join().unwrap_or(false);
    let failed = !child.wait().is_ok_and(|status| status.success());
    let complaint = complaint.lines().find(|line| !line.trim().is_empty());
    match complaint {
        _ if late => Err(format!("journalctl said nothing for {} s", PATIENCE.as_secs())),
        // It is content with seeing nothing, and says so.
        Some(complaint) if failed || heard == 0 => Err(complaint.trim().to_owned()),
        None if failed => Err("journalctl failed".into()),
        _ => Ok(lines.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn ask(script: &str, question: Question) -> Result<Vec<String>, String> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("journalctl");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
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
        assert_eq!(ask("exit 3", ALL).unwrap_err(), "journalctl failed");
        let missing = journal(Path::new("/nowhere/journalctl"), ALL, 2, |_| true);
        assert_eq!(missing.unwrap_err(), "there is no journalctl");
        // Quiet, and content: there is nothing to tell.
        assert_eq!(ask("exit 0", ALL).unwrap(), Vec::<String>::new());
    }
}
