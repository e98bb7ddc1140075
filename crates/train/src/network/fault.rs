//! What first was no finite number, and how it is told.

use tidegate_data::arrays::SampleBatch;

/// The first value that is not a finite number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    Input { sample: usize },
    Weight { name: String },
    Layer { name: String, sample: usize },
    Loss { sample: usize },
}

/// In words, of a batch.
pub(super) fn describe(fault: Option<Fault>, batch: &SampleBatch) -> String {
    let sample = |place: usize| {
        batch
            .samples()
            .get(place)
            .map_or(String::new(), |sample| format!(", at sample {sample}"))
    };
    match fault {
        Some(Fault::Input { sample: at }) => format!("the sample itself is not{}", sample(at)),
        Some(Fault::Weight { name }) => format!("the weights {name} are not any more, after the step before"),
        Some(Fault::Layer { name, sample: at }) => {
            format!("what layer {name} makes is the first that is not{}", sample(at))
        }
        Some(Fault::Loss { sample: at }) => format!("the loss is the first that is not{}", sample(at)),
        None => "it was so once, and is not when the batch is looked at again".into(),
    }
}
