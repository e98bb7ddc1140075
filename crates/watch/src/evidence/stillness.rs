//! Times in which a job did nothing at all.

use std::time::{Duration, Instant};

use tidegate_memory::Host;
use tidegate_runs::FlightRecord;

use super::waiting::waits_of;
use crate::ended::Exit;
use crate::why::{EndedChild, Stall, Waits};

/// Shorter than this is a pause.
const SHORTEST_MS: u64 = 5_000;
/// With a dead child, it is said after so long.
const SAID_AFTER_MS: u64 = 10_000;
/// Less of a processor than this is nothing.
const IDLE_SHARE: f64 = 0.01;
/// A child that died so shortly before is what may be waited for.
const SHORTLY_MS: u64 = 5_000;
const MOST_STALLS: usize = 50;
const ASK_EVERY: Duration = Duration::from_secs(1);

/// Follows whether anything moves.
#[derive(Debug, Default)]
pub(crate) struct Stillness {
    /// The last look at which something had moved.
    since: Option<FlightRecord>,
    said: bool,
    /// What was waited for when it was last looked at.
    waits: Option<Waits>,
    asked: Option<Instant>,
    pub(crate) stalls: Vec<Stall>,
}

impl Stillness {
    /// Takes in a look, and whether the job has said something since the one before. Returns the child that is waited
    /// for in vain, once.
    pub(crate) fn look(
        &mut self,
        now: &FlightRecord,
        spoke: bool,
        ended: &[EndedChild],
    ) -> Option<EndedChild> {
        let since = *self.since.get_or_insert(*now);
        let elapsed = now.time_ms.saturating_sub(since.time_ms);
        let used = now.cpu_ms.unwrap_or(0).saturating_sub(since.cpu_ms.unwrap_or(0));
        let disk = (now.read_bytes, now.written_bytes) != (since.read_bytes, since.written_bytes);
        // Of a short time, one tick of the clock is already a large share.
        if spoke || disk || used as f64 > IDLE_SHARE * elapsed as f64 + 20.0 {
            self.moved(now.time_ms, ended);
            self.since = Some(*now);
            return None;
        }
        let child = dead_child(ended, since.time_ms)?;
        let first = elapsed >= SAID_AFTER_MS && !std::mem::replace(&mut self.said, elapsed >= SAID_AFTER_MS);
        first.then(|| child.clone())
    }

    /// Whether nothing has moved for so long that it is worth asking what is waited for.
    pub(crate) fn is_still(&self, time_ms: u64) -> bool {
        self.since
            .is_some_and(|since| time_ms.saturating_sub(since.time_ms) >= SHORTEST_MS / 2)
    }

    /// Asks what all threads of these processes wait for, `root` being the first; not more often than is worth it.
    pub(crate) fn ask(&mut self, host: &Host, root: i32, pids: impl Iterator<Item = i32>) {
        if !host.is_live() || self.asked.is_some_and(|asked| asked.elapsed() < ASK_EVERY) {
            return;
        }
        self.asked = Some(Instant::now());
        let pids: Vec<i32> = pids.collect();
        self.waits = waits_of(root, &pids).or(self.waits.take());
    }

    /// The end of a stall, or of the job.
    pub(crate) fn moved(&mut self, time_ms: u64, ended: &[EndedChild]) {
        let Some(since) = self.since else { return };
        self.said = false;
        if time_ms.saturating_sub(since.time_ms) >= SHORTEST_MS && self.stalls.len() < MOST_STALLS {
            self.stalls.push(Stall {
                from_ms: since.time_ms,
                to_ms: time_ms,
                after_child: dead_child(ended, since.time_ms).map(|child| child.pid),
                waits: self.waits.take(),
            });
        }
    }
}

/// A child that did not end in good order, shortly before the stillness or in it.
fn dead_child(ended: &[EndedChild], since_ms: u64) -> Option<&EndedChild> {
    let badly = |child: &&EndedChild| !matches!(child.exit, Some(Exit::Code(0)) | None);
    let recent = |child: &&EndedChild| child.time_ms + SHORTLY_MS >= since_ms;
    ended.iter().rev().filter(recent).find(badly)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(time_ms: u64, cpu_ms: u64) -> FlightRecord {
        FlightRecord {
            time_ms,
            cpu_ms: Some(cpu_ms),
            ..FlightRecord::default()
        }
    }

    #[test]
    fn a_dead_child_and_silence_are_said_once_and_work_is_not() {
        let dead = EndedChild {
            time_ms: 900,
            pid: 77,
            parent: 7,
            name: "worker".into(),
            exit: Some(Exit::Signal(9)),
            resident: None,
        };
        let ended = [dead.clone()];
        let mut stillness = Stillness::default();
        let mut said = Vec::new();
        for time_ms in (0..60_000).step_by(500) {
            // It works for a second, hangs for half a minute, and works again.
            let cpu_ms = match time_ms {
                0..1_000 => time_ms,
                1_000..30_000 => 1_000 + (time_ms - 1_000) / 500,
                _ => time_ms - 28_900,
            };
            let known = if time_ms < 900 { &[][..] } else { &ended[..] };
            if let Some(child) = stillness.look(&look(time_ms, cpu_ms), false, known) {
                said.push((time_ms, child.pid));
            }
        }
        assert_eq!(said.len(), 1, "{said:?}");
        assert!(
            (10_000..13_000).contains(&said[0].0) && said[0].1 == 77,
            "{said:?}"
        );
        assert_eq!(stillness.stalls.len(), 1, "{:?}", stillness.stalls);
        let stall = &stillness.stalls[0];
        assert!(
            stall.from_ms <= 1_500 && (29_500..=31_000).contains(&stall.to_ms),
            "{stall:?}"
        );
        assert_eq!(stall.after_child, Some(77));
    }

    #[test]
    fn output_is_a_sign_of_life() {
        let mut stillness = Stillness::default();
        for time_ms in (0..60_000).step_by(500) {
            stillness.look(&look(time_ms, 5), time_ms % 4_000 == 0, &[]);
        }
        assert!(stillness.stalls.is_empty());
    }
}
