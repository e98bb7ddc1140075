//! How long a training takes, by its first steps.

use std::time::{Duration, Instant};

use tidegate_watch::Times;

/// Steps are timed for so long, and at least so many of them unless they take long.
const LEAST: Duration = Duration::from_millis(500);
const LEAST_STEPS: u64 = 3;
/// An epoch that is over sooner tells nothing.
const LEAST_EPOCH: Duration = Duration::from_millis(50);

/// Where a training was when its first steps were over: they warm up, and are not counted.
#[derive(Debug, Clone, Copy)]
struct Mark {
    at: Instant,
    epoch: u32,
    step: u64,
    consumed: u64,
}

/// Hears how far a training is until its times are known.
pub(super) struct FirstSteps {
    kind: &'static str,
    start: Option<Mark>,
    told: bool,
}

impl FirstSteps {
    pub(super) fn of(kind: &'static str) -> FirstSteps {
        FirstSteps {
            kind,
            start: None,
            told: false,
        }
    }

    /// The times, once.
    pub(super) fn hear(&mut self, epoch: u32, step: u64, consumed: u64, total: u64) -> Option<Times> {
        if self.told {
            return None;
        }
        // Trees count their rounds as epochs, and are told by all of them.
        let epoch = if self.kind == "boost" { 1 } else { epoch };
        let Some(start) = self.start.filter(|start| start.epoch == epoch) else {
            self.start = Some(Mark {
                at: Instant::now(),
                epoch,
                step,
                consumed,
            });
            return None;
        };
        let took = start.at.elapsed();
        let steps = step.saturating_sub(start.step);
        let done = consumed.saturating_sub(start.consumed);
        let enough = (took >= LEAST && steps >= LEAST_STEPS) || took >= 4 * LEAST;
        let over = consumed >= total && took >= LEAST_EPOCH;
        if steps == 0 || done == 0 || !(enough || over) {
            return None;
        }
        self.told = true;
        let seconds = took.as_secs_f64();
        let (one, all) = units(self.kind);
        let counted = match steps {
            1 => format!("by 1 {one}"),
            n => format!("by {n} {one}s"),
        };
        Some(Times {
            step: one.into(),
            epoch: all.into(),
            // A linear model's steps are pieces of its file, which are nobody's concern.
            step_seconds: (self.kind != "linear").then(|| seconds / steps as f64),
            epoch_seconds: Some(seconds * total as f64 / done as f64),
            basis: match self.kind {
                "linear" => format!("by {seconds:.1} s of its first epoch"),
                _ => format!("{counted} of the training itself"),
            },
        })
    }
}

/// What is done again and again, and all of it.
pub(super) fn units(kind: &str) -> (&'static str, &'static str) {
    match kind {
        "boost" => ("tree", "forest"),
        _ => ("step", "epoch"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_timed_once_the_first_are_over() {
        let mut first = FirstSteps::of("cnn");
        assert_eq!(first.hear(1, 2, 20, 100), None);
        assert_eq!(first.hear(1, 3, 30, 100), None);
        // Another epoch begins: the one before was too short.
        assert_eq!(first.hear(2, 12, 20, 100), None);
        std::thread::sleep(LEAST_EPOCH);
        let times = first.hear(2, 20, 100, 100).unwrap();
        let (step, epoch) = (times.step_seconds.unwrap(), times.epoch_seconds.unwrap());
        assert!((epoch / step - 10.0).abs() < 1e-6, "{step} {epoch}");
        assert_eq!(times.basis, "by 8 steps of the training itself");
        assert_eq!(first.hear(2, 21, 100, 100), None);
    }
}
