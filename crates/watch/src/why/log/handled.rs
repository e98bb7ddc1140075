//! Whether a program went on after it had said something bad.

use super::lines::Line;
use super::traceback::Role;

/// So many lines of ordinary output after a message, and it did not end the run.
const ENOUGH_LINES: usize = 20;
/// Or a few, so much later. One alone could be the farewell of a shell script.
const LATER_MS: i64 = 2_000;
const FEW_LINES: usize = 3;

/// The ordinary output of a log, to be asked many times.
pub(super) struct Output {
    /// Line numbers that hold ordinary output, ascending, with the third-latest time at or after each.
    ordinary: Vec<(u64, Option<i64>)>,
    times: Vec<(u64, Option<i64>)>,
}

impl Output {
    pub(super) fn of(lines: &[Line<'_>], roles: &[Role]) -> Output {
        let mut times: Vec<(u64, Option<i64>)> =
            lines.iter().map(|line| (line.number, line.time_ms)).collect();
        times.sort_by_key(|(number, _)| *number);
        let mut ordinary: Vec<(u64, Option<i64>, usize)> = lines
            .iter()
            .zip(roles)
            .filter(|(line, role)| **role == Role::Plain && is_ordinary(&line.text))
            // A line of progress is worth several: nobody prints one on the way out.
            .map(|(line, _)| {
                (
                    line.number,
                    line.time_ms,
                    if is_progress(&line.text) { FEW_LINES } else { 1 },
                )
            })
            .collect();
        ordinary.sort_by_key(|(number, ..)| *number);
        ordinary.dedup_by_key(|(number, ..)| *number);
        let mut latest: Vec<i64> = Vec::new();
        let mut marked: Vec<(u64, Option<i64>)> = Vec::with_capacity(ordinary.len());
        for (number, time, weight) in ordinary.into_iter().rev() {
            latest.extend(
                time.into_iter()
                    .flat_map(|time| std::iter::repeat_n(time, weight)),
            );
            latest.sort_unstable_by(|a, b| b.cmp(a));
            latest.truncate(FEW_LINES);
            marked.push((number, latest.get(FEW_LINES - 1).copied()));
        }
        marked.reverse();
        Output {
            ordinary: marked,
            times,
        }
    }

    /// Clearly ordinary output went on for long after this line.
    pub(super) fn went_on_after(&self, number: u64) -> bool {
        let after = &self.ordinary[self.ordinary.partition_point(|(line, _)| *line <= number)..];
        if after.len() >= ENOUGH_LINES {
            return true;
        }
        let at = self.times.partition_point(|(line, _)| *line <= number);
        let time = self.times[..at].last().and_then(|(_, time)| *time);
        let later = after.first().and_then(|(_, third)| *third);
        later
            .zip(time)
            .is_some_and(|(later, time)| later.saturating_sub(time) >= LATER_MS)
    }
}

/// The program itself says that it copes, in the line or in the one after it.
pub(super) fn says_so(text: &str, next: &str) -> bool {
    const WORDS: [&str; 14] = [
        "skipping batch",
        "skipping this batch",
        "skip this batch",
        "skipping sample",
        "retrying",
        "will retry",
        "recovering",
        "recovered",
        "recover from oom",
        "falling back",
        "halving",
        "reducing batch",
        "reducing the batch",
        "continuing anyway",
    ];
    let copes = |text: &str| {
        let lower = text.to_ascii_lowercase();
        WORDS.iter().any(|word| lower.contains(word))
    };
    copes(text) || copes(next)
}

/// What may stand after the last words of a program: blank lines, what belongs to them, and the ends of those around it.
pub(in crate::why) fn is_farewell(text: &str) -> bool {
    let text = text.trim_end();
    text.is_empty() || text.starts_with([' ', '\t', '|', '│', '╰']) || speaks_of_an_end(text)
}

/// Output of a program that does its work: not indented, and not about errors or endings.
fn is_ordinary(text: &str) -> bool {
    let drawn = text.starts_with([' ', '\t', '|', '│', '╭', '╰', '#', '*', '[', '-', '=', '+', '@']);
    if text.is_empty() || (drawn && !is_progress(text)) {
        return false;
    }
    !speaks_of_an_end(text)
}

fn speaks_of_an_end(text: &str) -> bool {
    const ENDINGS: [&str; 34] = [
        "error",
        "exception",
        "traceback",
        "fatal",
        "fail",
        "killed",
        "killing",
        "abort",
        "dumped",
        "terminat",
        "warn",
        "exit",
        "shut",
        "clean",
        "wandb",
        "srun:",
        "slurm",
        "oom",
        "out of memory",
        "signal",
        "no longer",
        "hint",
        "note:",
        "see ",
        "stack",
        "[bt]",
        "elapsed",
        "allocat",
        "buffer",
        "nccl",
        "file \"",
        "===",
        "---",
        "restart",
    ];
    let lower = text.to_ascii_lowercase();
    ENDINGS.iter().any(|word| lower.contains(word))
}

fn is_progress(text: &str) -> bool {
    const WORDS: [&str; 9] = [
        "epoch", "step", "iter", "batch", "loss", "it/s", "s/it", "%|", "acc",
    ];
    if !text.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let lower = text.to_ascii_lowercase();
    WORDS.iter().any(|word| lower.contains(word))
}
