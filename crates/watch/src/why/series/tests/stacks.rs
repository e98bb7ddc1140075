//! Stacks written by hand, as text.

use tidegate_runs::{Frame, StackSample, Stacks, ThreadStack};

/// One look: when, at how many megabytes, and its threads. A thread is `gil`, `run` or `wait` and its frames, the outermost
/// first: `gil train.py:9:<module> > train.py:4:load`.
pub(super) type Look<'a> = (u64, u64, &'a [&'a str]);

pub(super) fn stacks(looks: &[Look<'_>]) -> Stacks {
    let mut stacks = Stacks::default();
    add(&mut stacks, 1, looks);
    stacks
}

/// Adds the looks of one more process, and keeps all in the order of time.
pub(super) fn add(stacks: &mut Stacks, pid: i32, looks: &[Look<'_>]) {
    for (time_ms, megabytes, threads) in looks {
        let threads = threads.iter().enumerate().map(|(place, text)| {
            let (state, frames) = text.split_once(' ').expect("a state and frames");
            let mut frames: Vec<u32> = frames.split(" > ").map(|text| number(stacks, text)).collect();
            frames.reverse();
            ThreadStack {
                name: Some(if place == 0 { "MainThread" } else { "Thread-1" }.to_string()),
                active: state != "wait",
                gil: state == "gil",
                frames,
            }
        });
        let threads = threads.collect();
        stacks.samples.push(StackSample {
            time_ms: *time_ms,
            pid,
            start_time: 100,
            held: Some(megabytes * 1_000_000),
            threads,
        });
    }
    stacks.samples.sort_by_key(|sample| sample.time_ms);
}

fn number(stacks: &mut Stacks, text: &str) -> u32 {
    let parts: Vec<&str> = text.rsplitn(3, ':').collect();
    let frame = Frame {
        function: parts[0].to_string(),
        line: parts[1].parse().expect("a line"),
        file: parts[2].to_string(),
    };
    let known = stacks.frames.iter().position(|known| *known == frame);
    known.unwrap_or_else(|| {
        stacks.frames.push(frame);
        stacks.frames.len() - 1
    }) as u32
}
