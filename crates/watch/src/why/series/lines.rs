//! Whose code a frame is, and at which line of the user's a process stands.

use std::collections::HashMap;

use tidegate_runs::{Frame, StackSample, Stacks, ThreadStack};

use crate::why::Case;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    User,
    /// Installed: `site-packages` and its like.
    Library,
    /// Python's own, and code that has no file.
    Standard,
}

/// What is known of all frames of a run.
#[derive(Debug)]
pub(super) struct Code<'a> {
    stacks: &'a Stacks,
    owners: Vec<Owner>,
}

/// A place in the user's code, and the calls from there inwards.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Spot {
    /// Like those that follow, a place in [`Stacks::frames`].
    pub(super) place: u32,
    /// The outermost first.
    pub(super) within: Vec<u32>,
}

/// Where a process was.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Standing<'a> {
    /// The threads that may have been growing.
    pub(super) threads: Vec<&'a ThreadStack>,
    pub(super) spots: Vec<Spot>,
    /// They ran; else they waited, and cannot have grown there.
    pub(super) active: bool,
}

impl<'a> Code<'a> {
    pub(super) fn of(case: &'a Case) -> Code<'a> {
        let stacks = &case.stacks;
        let inline = case.facts.command.iter().any(|word| word == "-c") || shows_inline(stacks);
        let owners = stacks.frames.iter().map(|frame| owner(frame, inline));
        Code {
            stacks,
            owners: owners.collect(),
        }
    }

    pub(super) fn frame(&self, number: u32) -> &'a Frame {
        &self.stacks.frames[number as usize]
    }

    /// The lines that a process may have been growing on: that of the thread that had the interpreter's lock, else those
    /// that ran, else that of the main thread. Threads without any code of the user's come after all those.
    pub(super) fn standing(&self, sample: &'a StackSample) -> Option<Standing<'a>> {
        let threads: Vec<&ThreadStack> = sample
            .threads
            .iter()
            .filter(|thread| !thread.frames.is_empty())
            .collect();
        let chosen = |wanted: fn(&ThreadStack) -> bool| -> Option<Vec<&'a ThreadStack>> {
            let threads = threads.iter().copied();
            let chosen: Vec<_> = threads
                .filter(|thread| wanted(thread) && self.is_users(thread))
                .collect();
            (!chosen.is_empty()).then_some(chosen)
        };
        let any = |wanted: fn(&&ThreadStack) -> bool| Some(vec![threads.iter().copied().find(wanted)?]);
        let (threads, active) = None
            .or_else(|| Some((chosen(|thread| thread.gil)?, true)))
            .or_else(|| Some((chosen(|thread| thread.active)?, true)))
            .or_else(|| {
                Some((
                    chosen(|thread| thread.name.as_deref() == Some("MainThread"))?,
                    false,
                ))
            })
            .or_else(|| Some((any(|thread| thread.gil || thread.active)?, true)))
            .or_else(|| Some((any(|_| true)?, false)))?;
        let spots = threads.iter().map(|thread| self.spot(&thread.frames)).collect();
        Some(Standing {
            threads,
            spots,
            active,
        })
    }

    fn is_users(&self, thread: &ThreadStack) -> bool {
        self.innermost(&thread.frames, Owner::User).is_some()
    }

    fn innermost(&self, frames: &[u32], owner: Owner) -> Option<usize> {
        (0..frames.len())
            .find(|&depth| self.owners[frames[depth] as usize] == owner && !self.is_launcher(frames, depth))
    }

    /// `python -c "from multiprocessing.spawn import spawn_main; …"`: how workers are started.
    fn is_launcher(&self, frames: &[u32], depth: usize) -> bool {
        let inner = depth.checked_sub(1).map(|inner| self.frame(frames[inner]));
        self.frame(frames[depth]).file == "<string>"
            && inner.is_some_and(|frame| frame.file.contains("/multiprocessing/"))
    }

    /// The innermost frame of the user's code. A comprehension or a lambda that is called in the same file belongs to the
    /// line that calls it. Frames of libraries alone: the innermost of them.
    fn spot(&self, frames: &[u32]) -> Spot {
        let found = self
            .innermost(frames, Owner::User)
            .or_else(|| self.innermost(frames, Owner::Library))
            .unwrap_or(0);
        let mut depth = found;
        while is_nested(self.frame(frames[depth]))
            && depth + 1 < frames.len()
            && self.frame(frames[depth + 1]).file == self.frame(frames[depth]).file
        {
            depth += 1;
        }
        Spot {
            place: frames[depth],
            within: frames[..found].iter().rev().copied().collect(),
        }
    }
}

/// Whether the later of two looks is deeper in the call where the earlier one was.
pub(super) fn is_deeper(earlier: &Standing<'_>, later: &Standing<'_>) -> bool {
    let (&[earlier], &[later]) = (&earlier.threads[..], &later.threads[..]) else {
        return false;
    };
    later.frames.len() > earlier.frames.len() && later.frames.ends_with(&earlier.frames)
}

/// Some sample of the run began in code that has no file and is no launcher of workers.
fn shows_inline(stacks: &Stacks) -> bool {
    let begins = |frame: &Frame| frame.file == "<string>" && frame.function == "<module>";
    if !stacks.frames.iter().any(begins) {
        return false;
    }
    let frame = |number: u32| &stacks.frames[number as usize];
    let threads = stacks.samples.iter().flat_map(|sample| &sample.threads);
    threads.into_iter().any(|thread| match thread.frames[..] {
        [only] => begins(frame(only)),
        [.., inner, outermost] => {
            begins(frame(outermost)) && !frame(inner).file.contains("/multiprocessing/")
        }
        [] => false,
    })
}

fn is_nested(frame: &Frame) -> bool {
    matches!(
        frame.function.as_str(),
        "<listcomp>" | "<setcomp>" | "<dictcomp>" | "<genexpr>" | "<lambda>"
    )
}

fn owner(frame: &Frame, inline: bool) -> Owner {
    let file = frame.file.as_str();
    if file.starts_with('<') {
        let is_users = matches!(file, "<stdin>" | "<console>")
            || file.starts_with("<ipython-input-")
            || file == "<string>" && inline;
        return if is_users { Owner::User } else { Owner::Standard };
    }
    if file.contains("/site-packages/") || file.contains("/dist-packages/") || is_command(file) {
        return Owner::Library;
    }
    match is_standard(file) {
        true => Owner::Standard,
        false => Owner::User,
    }
}

/// `lib/python3.11/json/decoder.py`, wherever that is installed, or in a zip archive.
fn is_standard(file: &str) -> bool {
    ["/lib/python", "/lib64/python", "/lib/pypy"]
        .iter()
        .any(|folder| {
            let after = file.split_once(folder).map_or("", |(_, after)| after);
            after.starts_with(|first: char| first.is_ascii_digit())
        })
}

/// `/usr/bin/torchrun`: a command that a library brings.
fn is_command(file: &str) -> bool {
    let mut parts = file.rsplit('/');
    let name = parts.next().unwrap_or_default();
    parts.next() == Some("bin") && !name.contains('.')
}

/// The cell of a notebook that a frame belongs to, where its name tells: `<ipython-input-3-4f2a…>`. Newer ones are
/// `/tmp/ipykernel_77/123456.py`, where the number is a hash of the cell.
pub(super) fn cell(frame: &Frame) -> Option<u32> {
    let (count, _) = frame.file.strip_prefix("<ipython-input-")?.split_once('-')?;
    count.parse().ok()
}

/// Whether the process that grew most from here to there stood in one line all that time, so that it was one call rather
/// than steps. `None` where too little was seen.
pub(super) fn is_one_call(case: &Case, from_ms: u64, to_ms: u64) -> Option<bool> {
    const LEAST_PAIRS: usize = 8;
    let mut by_process: HashMap<(i32, u64), Vec<&StackSample>> = HashMap::new();
    for sample in &case.stacks.samples {
        if (from_ms..=to_ms).contains(&sample.time_ms) {
            by_process
                .entry((sample.pid, sample.start_time))
                .or_default()
                .push(sample);
        }
    }
    let grown = |samples: &[&StackSample]| {
        let mut held = samples.iter().filter_map(|sample| sample.held);
        let first = held.next().unwrap_or(0);
        held.next_back().unwrap_or(0).saturating_sub(first)
    };
    let samples = by_process.into_values().max_by_key(|samples| grown(samples))?;
    let code = Code::of(case);
    let innermost: Vec<u32> = samples
        .iter()
        .filter_map(|sample| code.standing(sample)?.threads[0].frames.first().copied())
        .collect();
    // A whole program in one line, as `python -c` has it, says nothing.
    let told: Vec<bool> = innermost
        .windows(2)
        .filter(|two| !(code.frame(two[0]).file.starts_with('<') && code.frame(two[0]).line <= 1))
        .map(|two| two[0] == two[1])
        .collect();
    let same = told.iter().filter(|same| **same).count();
    (told.len() >= LEAST_PAIRS).then_some(same as f64 >= told.len() as f64 * 0.95)
}
