//! What a training cannot do without, when memory is taken away while it runs.

use tidegate_data::arrays::{ArraySource, Part};

use super::plan::{FEED, Planned, SAMPLES, VALIDATION, feed_options};
use super::train::{Options, Samples};

/// The bytes that a planned training takes when it reads ahead no more than it must and has let go of all samples that can
/// be read again. To be asked before samples are kept.
pub fn least_bytes(planned: &Planned, samples: &Samples, options: &Options) -> u64 {
    let planned_of = |name: &str| planned.plan.bytes(name);
    let sources = || std::iter::once(samples.training).chain(samples.validation);
    let feed = feed_options(options, planned.setting.batch, 0, Part::All);
    // A picture that is decoded needs its room, or it would be left out.
    let feed = match sources().any(ArraySource::is_decoded) {
        true => planned_of(FEED),
        false => {
            let least = sources().map(|source| source.least_feed_bytes(&feed)).max();
            least.unwrap_or(0)
        }
    };
    let kept = |source: Option<&ArraySource>, name: &str| match source {
        Some(source) if !source.can_let_go() => planned_of(name),
        _ => 0,
    };
    let all: u64 = planned.plan.holders.iter().map(|(_, bytes)| bytes).sum();
    let without = [FEED, SAMPLES, VALIDATION].map(planned_of).iter().sum::<u64>();
    all - without + feed + kept(Some(samples.training), SAMPLES) + kept(samples.validation, VALIDATION)
}
