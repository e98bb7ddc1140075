//! Whose code a frame is, and at which line of the user's a process stands.

use std::collections::{HashMap, HashSet};

use tidegate_runs::{Frame, StackSample, Stacks, ThreadStack};

use crate::why::script::Step;
use crate::why::{Case, Scripts};

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
    scripts: &'a Scripts,
    /// Lines that were never seen in a stack, numbered on from those that were.
    unseen: Vec<Frame>,
    /// Frames of the user's at lines that only wait.
    waiting: HashSet<u32>,
    /// For a frame of the user's that a loop runs: the line of that loop that keeps what it makes.
    beside: HashMap<u32, u32>,
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
    pub(super) fn of(case: &'a Case, scripts: &'a Scripts) -> Code<'a> {
        let stacks = &case.stacks;
        let inline = case.facts.command.iter().any(|word| word == "-c") || shows_inline(stacks);
        let owners = stacks.frames.iter().map(|frame| owner(frame, inline));
        let mut code = Code {
            stacks,
            owners: owners.collect(),
            scripts,
            unseen: Vec::new(),
            waiting: HashSet::new(),
            beside: HashMap::new(),
        };
        code.find_waiting();
        code
    }

    fn find_waiting(&mut self) {
        for (number, frame) in (0..).zip(&self.stacks.frames) {
            if self.owners[number as usize] != Owner::User {
                continue;
            }
            if self.scripts.waits(frame) {
                self.waiting.insert(number);
            }
            let Some(kept) = self.scripts.kept_beside(frame) else {
                continue;
            };
            let mut all = self.stacks.frames.iter().chain(&self.unseen);
            let known = all.position(|known| *known == kept);
            let place = known.unwrap_or_else(|| {
                self.unseen.push(kept);
                self.stacks.frames.len() + self.unseen.len() - 1
            });
            self.beside.insert(number, place as u32);
        }
    }

    pub(super) fn frame(&self, number: u32) -> &Frame {
        let place = number as usize;
        let seen = self.stacks.frames.get(place);
        seen.unwrap_or_else(|| &self.unseen[place - self.stacks.frames.len()])
    }

    /// The lines that a process may have been growing on: that of the thread that had the interpreter's lock, else those
    /// that ran, else that of the main thread. Threads without any code of the user's come after all those.
    pub(super) fn standing(&self, sample: &'a StackSample) -> Option<Standing<'a>> {
        let threads: Vec<&ThreadStack> = sample
            .threads
            .iter()
            .filter(|thread| !thread.frames.is_empty())
            .collect();
        let chosen = |wanted: &dyn Fn(&ThreadStack) -> bool| -> Option<Vec<&'a ThreadStack>> {
            let threads = threads.iter().copied();
            let chosen: Vec<_> = threads
                .filter(|thread| wanted(thread) && self.is_users(thread))
                .collect();
            (!chosen.is_empty()).then_some(chosen)
        };
        let any = |wanted: fn(&&ThreadStack) -> bool| Some(vec![threads.iter().copied().find(wanted)?]);
        // Whoever has slept enough and waits for a processor counts as running, but still stands where it slept.
        let sleeps = |thread: &ThreadStack| self.waiting.contains(&thread.frames[0]);
        let is_main = |thread: &ThreadStack| thread.name.as_deref() == Some("MainThread");
        let (threads, active) = None
            .or_else(|| Some((chosen(&|thread| thread.gil && !sleeps(thread))?, true)))
            .or_else(|| Some((chosen(&|thread| thread.active && !sleeps(thread))?, true)))
            .or_else(|| Some((chosen(&|thread| thread.gil || thread.active)?, false)))
            .or_else(|| Some((chosen(&is_main)?, false)))
            .or_else(|| Some((any(|thread| thread.gil || thread.active)?, true)))
            .or_else(|| Some((any(|_| true)?, false)))?;
        let spot = |thread: &&ThreadStack| {
            let kept = (!active).then(|| self.kept_beside(&thread.frames)).flatten();
            kept.unwrap_or_else(|| self.spot(&thread.frames))
        };
        let spots = threads.iter().map(spot).collect();
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

    /// A thread that waits in a loop grew between two waits: on the line of the loop that keeps what it makes, where the
    /// source tells that.
    fn kept_beside(&self, frames: &[u32]) -> Option<Spot> {
        let place = frames.iter().find_map(|number| self.beside.get(number))?;
        Some(Spot {
            place: *place,
            within: Vec::new(),
        })
    }

    /// Whether what a thread did was a step of a loop that keeps something each time; `None` where the source of the
    /// user's innermost line is not known. One call that loads something whole is no step, however long it takes.
    fn is_step(&self, frames: &[u32]) -> Option<bool> {
        let innermost = self.innermost(frames, Owner::User)?;
        let users = frames[innermost..]
            .iter()
            .filter(|number| self.owners[**number as usize] == Owner::User);
        let steps: Vec<Step> = users
            .map_while(|number| self.scripts.step(self.frame(*number)))
            .collect();
        let mut function_keeps = false;
        for step in &steps {
            function_keeps |= step.function_keeps;
            if step.loads {
                return Some(false);
            }
            if step.repeated && (step.loop_keeps || function_keeps) {
                return Some(true);
            }
        }
        (!steps.is_empty()).then_some(false)
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

/// How the process that grew most went on from here to there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Course {
    /// In steps of a loop that keeps something each time, as the source tells.
    Steps,
    /// In one line all that time, so that it was one call.
    OneCall,
    /// In several lines.
    Lines,
}

/// `None` where too little was seen.
pub(super) fn course(case: &Case, scripts: &Scripts, from_ms: u64, to_ms: u64) -> Option<Course> {
    const LEAST_LOOKS: usize = 3;
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
    let code = Code::of(case, scripts);
    let frames: Vec<&[u32]> = samples
        .iter()
        .filter_map(|sample| Some(&code.standing(sample)?.threads[0].frames[..]))
        .collect();
    let mut known: HashMap<&[u32], Option<bool>> = HashMap::new();
    let steps: Vec<bool> = frames
        .iter()
        .filter_map(|frames| *known.entry(frames).or_insert_with(|| code.is_step(frames)))
        .collect();
    let n_steps = steps.iter().filter(|is_step| **is_step).count();
    if steps.len() >= LEAST_LOOKS && n_steps * 2 > frames.len() {
        return Some(Course::Steps);
    }
    // A whole program in one line, as `python -c` has it, says nothing.
    let told: Vec<bool> = frames
        .windows(2)
        .map(|two| (two[0][0], two[1][0]))
        .filter(|(one, _)| !(code.frame(*one).file.starts_with('<') && code.frame(*one).line <= 1))
        .map(|(one, next)| one == next)
        .collect();
    let same = told.iter().filter(|same| **same).count();
    let is_one = same as f64 >= told.len() as f64 * 0.95;
    (told.len() >= LEAST_PAIRS).then_some(if is_one { Course::OneCall } else { Course::Lines })
}
