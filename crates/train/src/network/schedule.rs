//! How the learning rate changes from step to step: a pure function of the step, so that a training that is taken up again
//! goes on with it.

use std::f64::consts::PI;

use serde::{Deserialize, Serialize};

/// The course of the learning rate.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Schedule {
    /// Always the same.
    #[default]
    Constant,
    /// Down to `end` of it along half a wave.
    Cosine {
        #[serde(default)]
        end: f64,
    },
    /// Times `factor` after every so many epochs.
    Step {
        epochs: f64,
        #[serde(default = "tenth")]
        factor: f64,
    },
    /// Up from a 25th during the first `rise` of all steps, then down to nearly nothing: both along half a wave.
    OneCycle {
        #[serde(default = "third")]
        rise: f64,
    },
}

fn tenth() -> f64 {
    0.1
}

fn third() -> f64 {
    0.3
}

/// What the rate of a one-cycle starts from and ends with, as PyTorch has it.
const START: f64 = 1.0 / 25.0;
const END: f64 = START / 1e4;

/// A schedule with the numbers it needs.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Course {
    pub schedule: Schedule,
    pub rate: f64,
    /// Epochs during which the rate rises from nothing, before the schedule begins.
    pub warm_up: f64,
    pub epochs: f64,
    pub steps_per_epoch: u64,
}

impl Course {
    /// The learning rate of a step, from 0.
    ///
    /// ```
    /// use tidegate_train::network::{Course, Schedule};
    ///
    /// let schedule = Schedule::Cosine { end: 0.0 };
    /// let course = Course { schedule, rate: 0.1, warm_up: 1.0, epochs: 11.0, steps_per_epoch: 10 };
    /// assert_eq!(course.at(4), 0.05);
    /// assert_eq!(course.at(10), 0.1);
    /// assert!((course.at(60) - 0.05).abs() < 1e-7);
    /// ```
    pub fn at(&self, step: u64) -> f32 {
        let per_epoch = self.steps_per_epoch.max(1) as f64;
        let (step, warm) = (step as f64, self.warm_up * per_epoch);
        if step < warm {
            return (self.rate * (step + 1.0) / warm) as f32;
        }
        let (done, all) = (step - warm, (self.epochs * per_epoch - warm).max(1.0));
        let share = (done / all).min(1.0);
        // From 1 to 0.
        let wave = |share: f64| (1.0 + (PI * share).cos()) / 2.0;
        let factor = match self.schedule {
            Schedule::Constant => 1.0,
            Schedule::Cosine { end } => end + (1.0 - end) * wave(share),
            Schedule::Step { epochs, factor } => factor.powi((done / (epochs * per_epoch)) as i32),
            Schedule::OneCycle { rise } if share < rise => START + (1.0 - START) * wave(1.0 - share / rise),
            Schedule::OneCycle { rise } => END + (1.0 - END) * wave((share - rise) / (1.0 - rise)),
        };
        (self.rate * factor) as f32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn course(schedule: Schedule) -> Course {
        Course {
            schedule,
            rate: 1.0,
            warm_up: 0.0,
            epochs: 10.0,
            steps_per_epoch: 100,
        }
    }

    #[test]
    fn every_schedule_starts_and_ends_where_it_should() {
        let near = |found: f32, expected: f64| {
            assert!((f64::from(found) - expected).abs() < 1e-6, "{found} {expected}")
        };
        let constant = course(Schedule::Constant);
        near(constant.at(0), 1.0);
        near(constant.at(5000), 1.0);
        let cosine = course(Schedule::Cosine { end: 0.1 });
        near(cosine.at(0), 1.0);
        near(cosine.at(500), 0.55);
        near(cosine.at(1000), 0.1);
        let step = course(Schedule::Step {
            epochs: 3.0,
            factor: 0.5,
        });
        near(step.at(299), 1.0);
        near(step.at(300), 0.5);
        near(step.at(999), 0.125);
        let cycle = course(Schedule::OneCycle { rise: 0.3 });
        near(cycle.at(0), 0.04);
        near(cycle.at(300), 1.0);
        near(cycle.at(1000), 0.04 / 1e4);
        // Never higher than asked for, and never zero before its end.
        for schedule in [constant, cosine, step, cycle] {
            for at in 0..1000 {
                assert!((0.0..=1.0 + 1e-6).contains(&f64::from(schedule.at(at))));
            }
        }
    }

    #[test]
    fn a_warm_up_comes_before_it() {
        let warm = Course {
            warm_up: 2.0,
            ..course(Schedule::Cosine { end: 0.0 })
        };
        assert!((warm.at(0) - 0.005).abs() < 1e-7 && (warm.at(99) - 0.5).abs() < 1e-6);
        assert_eq!(warm.at(200), 1.0);
        assert!(warm.at(999) < 1e-4);
    }
}
