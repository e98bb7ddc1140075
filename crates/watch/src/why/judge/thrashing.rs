//! Ends of a job that did little but wait for pages which had been taken from it: whoever ended it had waited, too.

use super::{Finding, Reading, observed};
use crate::ended::Exit;
use crate::why::cause::Cause;
use crate::why::series::{Thrashing, thrashing};
use crate::why::verdict::Grade;

/// It was still so shortly before the end; a signal takes a while to be heard by a job whose pages are gone.
const UP_TO_THE_END_MS: u64 = 10_000;

/// The share of the time, in percent, that makes waiting certain.
const WAITED: f32 = 50.0;

pub(super) fn waited_for_pages(reading: &Reading) -> Option<Finding> {
    let facts = &reading.case.facts;
    // It was ended, and did not end by itself.
    let ended = match facts.exit? {
        Exit::Signal(signal) => [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGKILL].contains(&signal),
        Exit::Code(code) => code != 0 && !facts.signals.is_empty(),
        Exit::Unknown => false,
    };
    let found = thrashing(reading.case)?;
    if !ended || found.to_ms + UP_TO_THE_END_MS < facts.duration_ms? {
        return None;
    }
    // Faults alone may be quick; that it waited shows only where the kernel measured it.
    let waited = found.pressure_full >= Some(WAITED);
    let mut evidence = vec![found.evidence()];
    evidence.extend(found.swapped_in.map(|pages| {
        observed(
            format!("{pages} pages read from swap while it ran"),
            "/proc/vmstat, pswpin",
        )
    }));
    Some(Finding {
        cause: Cause::Thrashing,
        grade: if waited { Grade::Proven } else { Grade::Likely },
        sentence: format!("{}, when it was ended", sentence(&found)),
        evidence,
    })
}

/// Worth telling of a run that came through, too.
pub(super) fn note(reading: &Reading) -> Option<String> {
    let found = thrashing(reading.case)?;
    Some(format!("{}: {}", sentence(&found), found.evidence().text))
}

fn sentence(found: &Thrashing) -> String {
    let seconds = (found.to_ms - found.from_ms) as f64 / 1e3;
    let which = match found.swap {
        Some(1..) => "swapped pages",
        _ => "pages that the kernel had taken from it",
    };
    format!(
        "it had been busy with {which} for {seconds:.0} s, {:.0} of them a second",
        found.faults
    )
}
