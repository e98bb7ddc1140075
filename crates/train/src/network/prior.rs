//! What the labels alone say: the trivial model, and how much classes should count.

use tidegate_data::Holdout;
use tidegate_data::arrays::{ArraySource, Labels, Part};
use tidegate_data::target::{Target, Task};

/// What the trivial model says: a mean, a share, or one for each class.
pub(super) fn prior(source: &ArraySource, part: Part) -> Vec<f64> {
    let Some(labels) = source.labels() else {
        return Vec::new();
    };
    match labels {
        Labels::One(target) if target.task() == Task::Multiclass => {
            let counts = source.class_counts(part);
            let all = counts.iter().sum::<u64>().max(1) as f64;
            counts.iter().map(|count| *count as f64 / all).collect()
        }
        _ => source.target_means(part),
    }
}

/// The weights of classes that make every class count as much as any other, one in the mean over samples.
pub fn balanced(source: &ArraySource, holdout: Holdout) -> Vec<f32> {
    if !matches!(
        source.labels(),
        Some(Labels::One(Target::Classes { .. } | Target::Binary { .. }))
    ) {
        return Vec::new();
    }
    let part = if holdout.is_none() {
        Part::All
    } else {
        Part::Training(holdout)
    };
    let counts = source.class_counts(part);
    let (all, there) = (
        counts.iter().sum::<u64>() as f64,
        counts.iter().filter(|count| **count > 0).count() as f64,
    );
    let weight = |count: &u64| {
        if *count > 0 {
            (all / (there * *count as f64)) as f32
        } else {
            1.0
        }
    };
    counts.iter().map(weight).collect()
}
