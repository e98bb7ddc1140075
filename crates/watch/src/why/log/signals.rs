//! What shells and launchers say of a process that a signal ended, and what a signal alone shows.

use super::wording::{is_start, pid_at};
use crate::why::{Cause, Grade};

/// A signal, the words of the C library for it, its name, and what it shows by itself.
pub(super) struct Signal {
    pub(super) number: i32,
    words: &'static str,
    pub(super) name: &'static str,
    pub(super) cause: Cause,
    pub(super) grade: Grade,
    /// After «ended by SIGKILL».
    pub(super) means: &'static str,
}

const SIGNALS: &[Signal] = &[
    Signal {
        number: libc::SIGKILL,
        words: "Killed",
        name: "SIGKILL",
        cause: Cause::Killed,
        grade: Grade::Unknown,
        means: "who sent it, the kernel for want of memory or somebody else, it does not say",
    },
    Signal {
        number: libc::SIGTERM,
        words: "Terminated",
        name: "SIGTERM",
        cause: Cause::Stopped,
        grade: Grade::Likely,
        means: "somebody asked it to stop",
    },
    Signal {
        number: libc::SIGINT,
        words: "Interrupt",
        name: "SIGINT",
        cause: Cause::Stopped,
        grade: Grade::Likely,
        means: "somebody interrupted it",
    },
    Signal {
        number: libc::SIGHUP,
        words: "Hangup",
        name: "SIGHUP",
        cause: Cause::Stopped,
        grade: Grade::Likely,
        means: "its terminal or session went away",
    },
    Signal {
        number: libc::SIGSEGV,
        words: "Segmentation fault",
        name: "SIGSEGV",
        cause: Cause::SegmentationFault,
        grade: Grade::Proven,
        means: "native code touched memory that is not its own",
    },
    Signal {
        number: libc::SIGBUS,
        words: "Bus error",
        name: "SIGBUS",
        cause: Cause::SharedMemory,
        grade: Grade::Unknown,
        means: "/dev/shm was full, a mapped file was cut short, or the machine is at fault",
    },
    Signal {
        number: libc::SIGILL,
        words: "Illegal instruction",
        name: "SIGILL",
        cause: Cause::IllegalInstruction,
        grade: Grade::Proven,
        means: "native code was built for another processor",
    },
    Signal {
        number: libc::SIGABRT,
        words: "Aborted",
        name: "SIGABRT",
        cause: Cause::Abort,
        grade: Grade::Likely,
        means: "native code gave up; a message before it may say why",
    },
    Signal {
        number: libc::SIGFPE,
        words: "Floating point exception",
        name: "SIGFPE",
        cause: Cause::Failed,
        grade: Grade::Likely,
        means: "native code divided a whole number by zero",
    },
    Signal {
        number: libc::SIGXCPU,
        words: "CPU time limit exceeded",
        name: "SIGXCPU",
        cause: Cause::TimeLimit,
        grade: Grade::Likely,
        means: "it came to its limit of processor time",
    },
    Signal {
        number: libc::SIGXFSZ,
        words: "File size limit exceeded",
        name: "SIGXFSZ",
        cause: Cause::DiskFull,
        grade: Grade::Likely,
        means: "a file came to the limit of its size",
    },
    Signal {
        number: libc::SIGPIPE,
        words: "Broken pipe",
        name: "SIGPIPE",
        cause: Cause::Failed,
        grade: Grade::Likely,
        means: "nobody read its output any more",
    },
];

pub(super) fn by_number(number: i32) -> Option<&'static Signal> {
    SIGNALS.iter().find(|signal| signal.number == number)
}

/// By its name, with or without `SIG`.
pub(super) fn by_name(name: &str) -> Option<&'static Signal> {
    let name = name.to_ascii_uppercase();
    SIGNALS
        .iter()
        .find(|signal| signal.name == name || signal.name[3..] == name)
}

/// Launchers with one wording for all signals; the number stands after it.
const NUMBERED: &[&str] = &[
    "Command terminated by signal ",
    "failed (exitcode: -",
    "exitcode  : -",
    "terminated with signal ",
    "killed by signal ",
    "exited on signal ",
    "exits with return code = -",
    "died with <Signals.",
    "returned non-zero exit status -",
];

/// And those that tell the exit status, which a shell makes of a signal by adding 128.
const STATUSES: &[&str] = &[
    "exit code ",
    "exited with code ",
    "exit status ",
    "exited with non-zero status ",
];

/// The signal that a line says ended a process, and the process.
pub(super) fn spoken(text: &str) -> Option<(&'static Signal, Option<i32>)> {
    shell(text).or_else(|| launcher(text)).or_else(|| status(text))
}

/// `##[error]Process completed with exit code 137.`, `train_1 exited with code 137`: at the end of the line.
fn status(text: &str) -> Option<(&'static Signal, Option<i32>)> {
    let text = text.trim_end().trim_end_matches(['.', ')']);
    let (words, number) = text.rsplit_once(' ')?;
    let told = STATUSES.iter().any(|status| words.ends_with(status.trim_end()));
    let number: i32 = number.parse().ok().filter(|_| told)?;
    by_number(number - 128).map(|signal| (signal, None))
}

/// `Killed`, `Segmentation fault (core dumped)`, `./run.sh: line 3: 1234 Killed    python train.py`,
/// `srun: error: node01: task 0: Killed`, `make: *** [Makefile:22: train] Terminated`, `zsh: killed     python train.py`.
fn shell(text: &str) -> Option<(&'static Signal, Option<i32>)> {
    let text = text.trim();
    if let Some(rest) = text.strip_prefix("zsh: ") {
        let rest = rest.strip_prefix(|c: char| c.is_ascii_digit()).unwrap_or(rest);
        return SIGNALS
            .iter()
            .find(|signal| words_of_zsh(signal).is_some_and(|words| rest.trim_start().starts_with(words)))
            .map(|signal| (signal, None));
    }
    SIGNALS
        .iter()
        .filter(|signal| signal.number != libc::SIGPIPE)
        .find_map(|signal| {
            let at = text.find(signal.words)?;
            let (label, after) = (
                text[..at].trim_end(),
                text[at + signal.words.len()..].trim_start(),
            );
            let after = after.strip_prefix("(core dumped)").unwrap_or(after);
            // The shell of macOS adds the number: `Segmentation fault: 11`.
            let after = after
                .strip_prefix(": ")
                .map_or(after, |number| number.trim_matches(|c: char| c.is_ascii_digit()));
            let alone = after.trim_matches(['.', ' ']).is_empty();
            if label.is_empty() && alone {
                return Some((signal, None));
            }
            // bash names the process and then its command.
            let digits = label.trim_end_matches(|c: char| c.is_ascii_digit());
            let shell = digits.contains(": line ") || digits.trim_end().ends_with("sh:");
            if digits.len() < label.len() && digits.trim_end().ends_with(':') && shell {
                return Some((signal, pid_at(&label[digits.len()..])));
            }
            let launcher = label.starts_with("srun: error: ")
                || label.starts_with("make: *** [")
                || label.starts_with("make[");
            (alone && launcher && is_start(label)).then_some((signal, None))
        })
}

fn words_of_zsh(signal: &Signal) -> Option<&'static str> {
    Some(match signal.number {
        libc::SIGKILL => "killed",
        libc::SIGSEGV => "segmentation fault",
        libc::SIGTERM => "terminated",
        libc::SIGABRT => "abort",
        libc::SIGBUS => "bus error",
        libc::SIGILL => "illegal hardware instruction",
        _ => return None,
    })
}

fn launcher(text: &str) -> Option<(&'static Signal, Option<i32>)> {
    NUMBERED.iter().find_map(|words| {
        let rest = &text[text.find(words)? + words.len()..];
        let signal = match rest.strip_prefix("SIG") {
            Some(name) => by_name(
                &name[..name
                    .find(|c: char| !c.is_ascii_alphanumeric())
                    .unwrap_or(name.len())],
            )?,
            None => by_number(pid_at(rest)?)?,
        };
        let pid = ["(pid: ", "with PID ", "process "]
            .iter()
            .find_map(|word| pid_at(&text[text.find(word)? + word.len()..]));
        Some((signal, pid))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shells_and_launchers_name_signals() {
        for (text, signal, pid) in [
            ("Killed", libc::SIGKILL, None),
            (
                "./run.sh: line 3: 12345 Killed                  python train.py",
                libc::SIGKILL,
                Some(12345),
            ),
            (
                "/bin/bash: line 1:   77 Segmentation fault      (core dumped) python -c 'import torch'",
                libc::SIGSEGV,
                Some(77),
            ),
            (
                "bash:  1180 Aborted                 ./train > log.txt 2>&1",
                libc::SIGABRT,
                Some(1180),
            ),
            ("Segmentation fault (core dumped)", libc::SIGSEGV, None),
            ("Segmentation fault: 11", libc::SIGSEGV, None),
            ("Illegal instruction (core dumped)", libc::SIGILL, None),
            ("Bus error (core dumped)", libc::SIGBUS, None),
            ("Aborted (core dumped)", libc::SIGABRT, None),
            ("Aborted.", libc::SIGABRT, None),
            ("Terminated", libc::SIGTERM, None),
            ("Floating point exception (core dumped)", libc::SIGFPE, None),
            (
                "srun: error: Orion-18-69: task 289: Bus error",
                libc::SIGBUS,
                None,
            ),
            ("srun: error: node01: task 0: Killed", libc::SIGKILL, None),
            (
                "srun: error: n1: tasks 0-3: Segmentation fault (core dumped)",
                libc::SIGSEGV,
                None,
            ),
            ("make: *** [Makefile:22: test] Terminated", libc::SIGTERM, None),
            ("make: *** [train] Killed", libc::SIGKILL, None),
            ("zsh: killed     python train.py", libc::SIGKILL, None),
            (
                "zsh: segmentation fault (core dumped)  python x.py",
                libc::SIGSEGV,
                None,
            ),
            ("Command terminated by signal 9", libc::SIGKILL, None),
            (
                "ERROR:torch.distributed.elastic.multiprocessing.api:failed (exitcode: -9) local_rank: 0 (pid: 1234) of binary: /usr/bin/python",
                libc::SIGKILL,
                Some(1234),
            ),
            (
                "subprocess.CalledProcessError: Command '['python', 'x.py']' died with <Signals.SIGSEGV: 11>.",
                libc::SIGSEGV,
                None,
            ),
            (
                "##[error]Process completed with exit code 137.",
                libc::SIGKILL,
                None,
            ),
            ("train_1 exited with code 139", libc::SIGSEGV, None),
            ("ERROR: Job failed: exit status 143", libc::SIGTERM, None),
            (
                "mpirun noticed that process rank 0 with PID 4242 on node n1 exited on signal 9 (Killed).",
                libc::SIGKILL,
                Some(4242),
            ),
            (
                "[2024-01-01 00:00:00,123] [ERROR] [launch.py:321:sigkill_handler] ['/usr/bin/python', 'train.py'] exits with return code = -9",
                libc::SIGKILL,
                None,
            ),
            (
                "distributed.nanny - WARNING - Worker process 30448 was killed by signal 15",
                libc::SIGTERM,
                Some(30448),
            ),
        ] {
            let found = spoken(text).map(|(signal, pid)| (signal.number, pid));
            assert_eq!(found, Some((signal, pid)), "{text}");
        }
    }

    #[test]
    fn words_about_signals_are_none() {
        for text in [
            "Killed 3 stale workers",
            "Killed process list: none",
            "The job was Killed in the last run",
            "Aborted runs: 0",
            "Terminated early: validation did not improve",
            "no Segmentation fault so far",
            "If you see Bus error raise --shm-size",
            "retrying: Killed workers are restarted",
            "killed by signal 99",
            "exit code 1",
            "exit code 137 often means that memory ran out",
            "",
        ] {
            assert!(spoken(text).is_none(), "{text}");
        }
    }
}
