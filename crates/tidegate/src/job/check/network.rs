//! What can be seen to be wrong with the settings of a network.

use tidegate_train::network::{Loss, Rule, Schedule};

use super::usage;
use crate::Result;
use crate::job::{Job, ModelPart, ScheduleChoice, TrainPart, loss_word};

/// More samples than this at a time, or batches in a step, are a slip of the hand.
const MOST_AT_ONCE: usize = 1_000_000;

impl Job {
    /// What only trees and linear models know, and the numbers of a network.
    pub(super) fn check_network(&self) -> Result<()> {
        let (model, train, usual) = (&self.model, &self.train, ModelPart::default());
        let of_trees = [
            ("--trees", model.trees != usual.trees),
            ("--depth", model.depth != usual.depth),
            ("--leaves", model.leaves.is_some()),
            ("--growth", model.growth != usual.growth),
            (
                "--min-child-weight",
                model.min_child_weight != usual.min_child_weight,
            ),
            ("--row-sample", model.row_sample != usual.row_sample),
            ("--column-sample", model.column_sample != usual.column_sample),
        ];
        if let Some((option, _)) = of_trees.iter().find(|(_, given)| *given) {
            return usage(
                format!("{option} is for boosted trees, not for networks"),
                "leave it out, or give --model boost",
            );
        }
        for (option, given) in [("--l1", model.l1 != usual.l1), ("--l2", model.l2 != usual.l2)] {
            if given {
                return usage(
                    format!("{option} is a penalty of other models, not of networks"),
                    "networks have --weight-decay",
                );
            }
        }
        let at_once = train.batch.map(|batch| ("batch", batch));
        for (name, value) in at_once.into_iter().chain([("accumulate", train.accumulate)]) {
            if !(1..=MOST_AT_ONCE).contains(&value) {
                return usage(
                    format!("--{name} {value} is out of range"),
                    format!("give 1 to {MOST_AT_ONCE}"),
                );
            }
        }
        if train.clip.is_some_and(|clip| !(clip.is_finite() && clip > 0.0)) {
            return usage(
                format!("--clip {} is not a norm", train.clip.unwrap_or_default()),
                "give more than 0, or leave it out",
            );
        }
        if model.freeze.iter().any(String::is_empty) {
            return usage("--freeze names no layer", "give a name such as --freeze conv1");
        }
        check_optimizer(&train.optimizer)?;
        check_schedule(train)?;
        self.check_loss()
    }

    fn check_loss(&self) -> Result<()> {
        let train = &self.train;
        if let Some(smoothing) = train.smoothing {
            share("--smoothing", smoothing)?;
        }
        match &train.loss {
            Some(Loss::CrossEntropy {
                smoothing,
                class_weights,
            }) => {
                share("the loss's smoothing", f64::from(*smoothing))?;
                if class_weights
                    .iter()
                    .any(|weight| !(weight.is_finite() && *weight >= 0.0))
                {
                    return usage(
                        "the loss's class_weights are not weights",
                        "give 0 or more for each class, in order",
                    );
                }
                if !class_weights.is_empty() && self.model.class_weights.is_some() {
                    return usage(
                        "classes are weighed twice: by the loss and by --class-weights",
                        "leave one of them out",
                    );
                }
            }
            Some(Loss::Huber { delta }) if !(delta.is_finite() && *delta > 0.0) => {
                return usage(
                    format!("the loss's delta {delta} is not a distance"),
                    "give more than 0; 1 is the default",
                );
            }
            _ => (),
        }
        // Which loss suits is known beforehand where the task was said.
        match (self.model.task, &train.loss, train.smoothing) {
            (Some(task), ..) => self.check_loss_for(task),
            (None, Some(loss), Some(_)) if !matches!(loss, Loss::CrossEntropy { .. }) => usage(
                format!(
                    "--smoothing is of cross-entropy, and the loss is {}",
                    loss_word(loss)
                ),
                "leave it out, or give --loss cross_entropy",
            ),
            _ => Ok(()),
        }
    }
}

fn share(name: &str, value: f64) -> Result<()> {
    match (0.0..1.0).contains(&value) {
        true => Ok(()),
        false => usage(
            format!("{name} {value} is not a share"),
            "give 0 or more, below 1",
        ),
    }
}

fn check_optimizer(rule: &Rule) -> Result<()> {
    let (Rule::Sgd { weight_decay, .. }
    | Rule::Adam { weight_decay, .. }
    | Rule::AdamW { weight_decay, .. }
    | Rule::RmsProp { weight_decay, .. }) = rule;
    if !(weight_decay.is_finite() && *weight_decay >= 0.0) {
        return usage(
            format!("--weight-decay {weight_decay} is not a penalty"),
            "give 0 or more; 0.0001 is usual",
        );
    }
    let (shares, epsilon) = match *rule {
        Rule::Sgd { momentum, .. } => (vec![("--momentum", momentum)], None),
        Rule::Adam {
            beta1,
            beta2,
            epsilon,
            ..
        }
        | Rule::AdamW {
            beta1,
            beta2,
            epsilon,
            ..
        } => (
            vec![("the optimizer's beta1", beta1), ("the optimizer's beta2", beta2)],
            Some(epsilon),
        ),
        Rule::RmsProp {
            smoothing,
            epsilon,
            momentum,
            ..
        } => (
            vec![("--momentum", momentum), ("the optimizer's smoothing", smoothing)],
            Some(epsilon),
        ),
    };
    for (name, value) in shares {
        if !(0.0..1.0).contains(&value) {
            return usage(
                format!("{name} {value} is not a share"),
                "give 0 or more, below 1",
            );
        }
    }
    if let Some(epsilon) = epsilon.filter(|epsilon| !(epsilon.is_finite() && *epsilon > 0.0)) {
        return usage(
            format!("the optimizer's epsilon {epsilon} is out of range"),
            "give a little more than 0; 1e-8 is the default",
        );
    }
    match rule {
        Rule::Sgd {
            momentum: 0.0,
            nesterov: true,
            ..
        } => usage(
            "nesterov is a way of momentum, and there is none",
            "give the optimizer a momentum, such as 0.9",
        ),
        _ => Ok(()),
    }
}

fn check_schedule(train: &TrainPart) -> Result<()> {
    let epochs = f64::from(train.epochs);
    if !(0.0..epochs).contains(&train.warm_up) {
        return usage(
            format!(
                "--warm-up {} leaves nothing of {} epochs",
                train.warm_up, train.epochs
            ),
            "give 0 or more, fewer than --epochs",
        );
    }
    let ScheduleChoice::Given(schedule) = train.schedule else {
        return Ok(());
    };
    let (setting, value, fine, hint) = match schedule {
        Schedule::Constant => return Ok(()),
        Schedule::Cosine { end } => (
            "end",
            end,
            (0.0..=1.0).contains(&end),
            "give 0 to 1; 0 is the default",
        ),
        Schedule::Step { epochs, .. } if !(epochs.is_finite() && epochs > 0.0) => {
            ("epochs", epochs, false, "give more than 0")
        }
        Schedule::Step { factor, .. } => (
            "factor",
            factor,
            factor > 0.0 && factor <= 1.0,
            "give more than 0, at most 1; 0.1 is the default",
        ),
        Schedule::OneCycle { rise } => (
            "rise",
            rise,
            (0.0..1.0).contains(&rise),
            "give 0 or more, below 1; 0.3 is the default",
        ),
    };
    match fine {
        true => Ok(()),
        false => usage(format!("the schedule's {setting} {value} is out of range"), hint),
    }
}
