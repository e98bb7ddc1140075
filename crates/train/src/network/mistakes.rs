//! The samples that a network is most sure of and wrong about.

use serde::{Deserialize, Serialize};
use tidegate_data::arrays::Labels;
use tidegate_data::target::Task;

/// Mistakes that are kept.
const MOST: usize = 48;

/// A sample that was taken for another.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Mistake {
    /// Which of the samples that judge.
    pub sample: u64,
    /// Its file, where it is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// What it is, and what it was taken for, as places among the classes.
    pub truth: usize,
    pub said: usize,
    /// How sure the network was.
    pub probability: f64,
}

/// The worst mistakes so far.
#[derive(Default)]
pub(super) struct Mistakes {
    worst: Vec<Mistake>,
}

impl Mistakes {
    pub(super) const BYTES: u64 = (2 * MOST * size_of::<Mistake>()) as u64;

    /// Looks at the scores of a sample. Of equals, the first is kept.
    pub(super) fn look(&mut self, labels: &Labels, sample: u64, scores: &[f64], truth: &[f32]) {
        let Labels::One(target) = labels else { return };
        let (said, probability) = match target.task() {
            Task::Regression => return,
            Task::Binary => match scores[0] >= 0.5 {
                true => (1, scores[0]),
                false => (0, 1.0 - scores[0]),
            },
            Task::Multiclass => {
                let most = scores.iter().copied().enumerate();
                match most.max_by(|a, b| a.1.total_cmp(&b.1)) {
                    Some(most) => most,
                    None => return,
                }
            }
        };
        let truth = truth[0] as usize;
        if said == truth || !probability.is_finite() {
            return;
        }
        let place = self
            .worst
            .partition_point(|worse| worse.probability >= probability);
        if place == MOST {
            return;
        }
        self.worst.truncate(MOST - 1);
        self.worst.insert(
            place,
            Mistake {
                sample,
                file: None,
                truth,
                said,
                probability,
            },
        );
    }

    pub(super) fn worst(self) -> Vec<Mistake> {
        self.worst
    }
}
