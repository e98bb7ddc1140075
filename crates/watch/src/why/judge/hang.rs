//! Ends of a job that had stopped moving before: whoever ended it had waited.

use super::{Finding, Reading, observed};
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::facts::Stall;
use crate::why::verdict::Grade;

/// Stillness right up to the end: this long where the code waits for another thread or process, else this long.
const WAITING_MS: u64 = 8_000;
const SILENT_MS: u64 = 60_000;
/// Between the last move and the end, the signal itself moves something.
const UP_TO_THE_END_MS: u64 = 3_000;

/// The time in which nothing moved up to the end, if it was long.
pub(super) fn still_at_the_end<'r>(reading: &Reading<'r>) -> Option<&'r Stall> {
    let facts = &reading.case.facts;
    let stall = facts.stalls.last()?;
    let long = stall.to_ms.saturating_sub(stall.from_ms) >= WAITING_MS;
    (long && stall.to_ms + UP_TO_THE_END_MS >= facts.duration_ms?).then_some(stall)
}

pub(super) fn hung(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    // It was ended, and did not end by itself.
    let ended = match facts.exit? {
        Exit::Signal(signal) => [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGKILL].contains(&signal),
        Exit::Code(code) => code != 0 && !facts.signals.is_empty(),
        Exit::Unknown => false,
    };
    let stall = still_at_the_end(reading).filter(|_| ended)?;
    let length = stall.to_ms.saturating_sub(stall.from_ms);
    // A thread that waits for time to pass, or for a person or the network, will go on by itself.
    let waits = stall.waits.as_ref();
    let blocked = waits.is_some_and(|waits| {
        let endless = waits.endless || BLOCKED.iter().any(|wait| waits.main.contains(wait));
        endless && !waits.sleeps && !waits.outside
    });
    // Another thread that looks up from time to time may watch over the others, or be what they wait for.
    let watched = waits.is_some_and(|waits| waits.timed);
    let (enough, grade) = match (blocked, waits) {
        (true, _) if !watched => (WAITING_MS, Grade::Proven),
        (true, _) | (false, None) => (SILENT_MS, Grade::Likely),
        (false, Some(_)) => return None,
    };
    if length < enough {
        return None;
    }
    let place = main_stack(reading);
    let wait = place
        .as_ref()
        .map_or(String::new(), |place| format!(", waiting at {place}"));
    let child = stall
        .after_child
        .map_or(String::new(), |pid| format!(", after its child {pid} had died"));
    let mut evidence = vec![observed(
        format!(
            "no processor time, no output, no disk from {:.1} s to {:.1} s",
            stall.from_ms as f64 / 1e3,
            stall.to_ms as f64 / 1e3
        ),
        "flight recorder",
    )];
    evidence.extend(waits.map(|waits| {
        observed(
            format!(
                "the main thread in {}, and none of {} threads asleep for a time or at what comes from outside",
                waits.main, waits.threads
            ),
            "/proc/PID/task/*/syscall, wchan and fdinfo",
        )
    }));
    evidence.extend(place.map(|place| observed(place, "stack of its main thread")));
    Some(Finding {
        cause: Cause::Hang,
        grade,
        sentence: format!(
            "it hung: nothing had moved for {:.0} s{wait}{child} when it was ended",
            length as f64 / 1e3
        ),
        evidence,
    })
}

/// Functions of the kernel in which one waits for another thread or process.
const BLOCKED: [&str; 5] = ["futex", "do_wait", "pipe_", "unix_stream", "wait_for_unix"];

/// Where the main thread was when it was last looked at: the innermost line that is not of a library.
pub(super) fn main_stack(reading: &Reading) -> Option<String> {
    let stacks = &reading.case.stacks;
    let pid = reading.case.facts.pid?;
    let last = stacks
        .samples
        .iter()
        .rfind(|sample| sample.pid == pid)
        .or(stacks.samples.last())?;
    let main = last
        .threads
        .iter()
        .find(|thread| thread.name.as_deref() == Some("MainThread"));
    let thread = main.or(last.threads.last())?;
    let frames: Vec<_> = thread
        .frames
        .iter()
        .filter_map(|at| stacks.frames.get(*at as usize))
        .collect();
    let own = |file: &str| {
        !file.contains("/lib/python") && !file.contains("site-packages") && !file.starts_with("<frozen")
    };
    let place = frames.iter().find(|frame| own(&frame.file)).or(frames.first())?;
    Some(format!("{}:{} ({})", place.file, place.line, place.function))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::why::facts::{Case, Waits};
    use crate::why::judge;

    fn check(seconds: u64, waits: Option<Waits>, expected: (Cause, Grade)) {
        let mut case = Case::default();
        case.facts.exit = Some(Exit::Signal(libc::SIGTERM));
        case.facts.duration_ms = Some((seconds + 1) * 1_000);
        case.facts.stalls.push(Stall {
            from_ms: 1_000,
            to_ms: (seconds + 1) * 1_000,
            after_child: None,
            waits: waits.clone(),
        });
        let verdict = judge(&case);
        assert_eq!((verdict.cause, verdict.grade), expected, "{seconds} s, {waits:?}");
    }

    #[test]
    fn what_may_go_on_by_itself_does_not_hang() {
        use Cause::{Hang, Stopped};
        use Grade::{Likely, Proven};
        let endless = Waits {
            main: "ep_poll".into(),
            endless: true,
            sleeps: false,
            timed: false,
            outside: false,
            threads: 2,
        };
        let with = |change: fn(&mut Waits)| {
            let mut waits = endless.clone();
            change(&mut waits);
            Some(waits)
        };
        check(14, with(|_| {}), (Hang, Proven));
        check(6, with(|_| {}), (Stopped, Proven));
        check(14, with(|waits| waits.sleeps = true), (Stopped, Likely));
        check(14, with(|waits| waits.outside = true), (Stopped, Likely));
        check(14, with(|waits| waits.endless = false), (Stopped, Likely));
        // A bar of progress has a thread that looks up every ten seconds.
        check(14, with(|waits| waits.timed = true), (Stopped, Likely));
        check(90, with(|waits| waits.timed = true), (Hang, Likely));
        check(14, None, (Stopped, Likely));
        check(90, None, (Hang, Likely));
    }
}
