//! What the labels of all samples come to.

use super::labels::Labels;

/// What labels come to: the samples of each class, or the sum of each number.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sums {
    pub n_samples: u64,
    pub classes: Vec<u64>,
    pub numbers: Vec<f64>,
}

impl Sums {
    pub(crate) fn of(labels: &Labels) -> Sums {
        Sums {
            n_samples: 0,
            classes: vec![0; labels.classes().len()],
            numbers: vec![0.0; labels.width()],
        }
    }

    pub(crate) fn add(&mut self, labels: &[f32]) {
        self.n_samples += 1;
        let class = labels.first().map(|class| *class as usize);
        if let Some(count) = class.and_then(|class| self.classes.get_mut(class)) {
            *count += 1;
        }
        for (sum, label) in self.numbers.iter_mut().zip(labels) {
            *sum += f64::from(*label);
        }
    }
}
