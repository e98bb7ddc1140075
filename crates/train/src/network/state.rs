//! Where a training of a network is, in memory and in checkpoints.

use std::path::Path;

use serde::{Deserialize, Serialize};

use super::design::Design;
use super::machine::Machine;
use super::moments::Moments;
use super::precision::LossScale;
use super::setting::Setting;
use super::stall::Fed;
use super::train::Options;
use crate::checkpoint::Draft;
use crate::tensors::Tensor;
use crate::{Checkpoint, Error, Metric, Result};

/// What changes from batch to batch, apart from the weights.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Progress {
    /// From 0.
    pub epoch: u32,
    /// Samples of this epoch that were learned from: the cursor of the feed.
    pub position: u64,
    /// Steps so far, over all epochs.
    pub step: u64,
    /// The sum of the losses of this epoch, each before its sample was learned from.
    pub loss: f64,
    /// Samples of this epoch that there were not after all: their files are broken.
    #[serde(default)]
    pub lacking: u64,
    pub best: Option<Best>,
    /// Mean losses of past epochs, on training samples and on those that judge.
    pub past: Vec<Past>,
    /// How past epochs were fed.
    #[serde(default)]
    pub fed: Vec<Fed>,
    #[serde(default)]
    pub scale: LossScale,
}

/// The best epoch so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Best {
    pub epoch: u32,
    pub loss: f64,
    pub metrics: Vec<Metric>,
}

#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub(super) struct Past {
    pub training: f64,
    pub judged: Option<f64>,
}

/// What must be the same for a training to be taken up again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Settings {
    pub data: u64,
    pub design: Design,
    /// Everything else, in words.
    pub options: String,
}

impl Settings {
    pub(super) fn new(data: u64, design: &Design, options: &Options) -> Settings {
        let mut words = format!(
            "{:?} {:?} {} {:?} {} {:?} {} {} {} {:?}{}",
            options.rule,
            options.loss,
            options.rate,
            options.schedule,
            options.warm_up,
            options.clip,
            options.batch,
            options.accumulate,
            options.seed,
            options.holdout,
            options.images,
        );
        // What is usual is not said: checkpoints from before there was anything else still fit.
        if let Some(moments) = options.moments.filter(|moments| *moments != Moments::default()) {
            words += &format!(" {moments:?} moments");
        }
        if let Some(precision) = options.precision.filter(|precision| precision.is_half()) {
            words += &format!(" {precision:?}");
        }
        Settings {
            data,
            design: design.clone(),
            options: words,
        }
    }
}

#[derive(Serialize, Deserialize)]
struct Saved {
    network: Settings,
    /// How it was trained, where that was chosen.
    #[serde(default)]
    setting: Option<Setting>,
    progress: Progress,
}

/// How the training that left a checkpoint was done.
pub fn begun(checkpoint: &Checkpoint) -> Result<Option<Setting>> {
    let saved: Saved = checkpoint.state()?;
    Ok(saved.setting)
}

/// Weights of the best epoch, in the order of [`Machine::parts`], states left out.
pub(super) type BestWeights = Vec<(String, Vec<f32>)>;

pub(super) fn save(
    machine: &Machine,
    settings: &Settings,
    setting: &Setting,
    progress: &Progress,
    best: Option<&BestWeights>,
    folder: &Path,
) -> Result<()> {
    let saved = Saved {
        network: settings.clone(),
        setting: Some(setting.clone()),
        progress: progress.clone(),
    };
    let mut draft = Draft::new(&saved);
    for (name, values) in machine.parts() {
        draft = draft.with_tensor(match machine.is_packed(&name) {
            true => Tensor::words(&name, values.len(), |i| values[i].to_bits()),
            false => Tensor::shaped(&name, vec![values.len()], |i| values[i]),
        });
    }
    for (name, values) in best.into_iter().flatten() {
        draft = draft.with_tensor(Tensor::shaped(&format!("best/{name}"), vec![values.len()], |i| {
            values[i]
        }));
    }
    draft.save(folder)
}

/// Sets the machine as the checkpoint has it.
pub(super) fn restore(
    machine: &mut Machine,
    settings: &Settings,
    checkpoint: &Checkpoint,
) -> Result<(Progress, Option<BestWeights>)> {
    let saved: Saved = checkpoint.state()?;
    let other = |what: &'static str| Err(Error::OtherCheckpoint { what });
    if saved.network.data != settings.data {
        return other("data");
    }
    if saved.network.design != settings.design {
        return other("network");
    }
    if saved.network.options != settings.options {
        return other("set of options");
    }
    let names: Vec<String> = machine.parts().map(|(name, _)| name).collect();
    let mut best = Vec::new();
    for name in names {
        let packed = machine.is_packed(&name);
        let Some(into) = machine.part_mut(&name) else {
            continue;
        };
        match packed {
            true => checkpoint.fill_words(&name, into)?,
            false => checkpoint.fill(&name, into)?,
        }
        let kept = format!("best/{name}");
        if checkpoint.has(&kept) {
            let mut values = vec![0.0; into.len()];
            checkpoint.fill(&kept, &mut values)?;
            best.push((name, values));
        }
    }
    Ok((saved.progress, (!best.is_empty()).then_some(best)))
}
