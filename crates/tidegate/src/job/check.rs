//! What can be seen to be wrong with a job without looking at the data's contents.

use std::path::{Path, PathBuf};

use tidegate_train::network::{Loss, Rule, Schedule};

use super::arrays::{are_arrays, is_array_name};
use super::{Job, ModelKind, ModelPart, ScheduleChoice, TrainPart, check_path, is_url};
use crate::{Error, Result};

/// Deeper trees than this take more memory for their nodes than any data is worth.
const MOST_DEPTH: u32 = 16;
/// More samples than this at a time, or batches in a step, are a slip of the hand.
const MOST_AT_ONCE: usize = 1_000_000;

fn usage<T>(what: impl Into<String>, hint: impl Into<String>) -> Result<T> {
    Err(Error::Usage {
        what: what.into(),
        hint: hint.into(),
    })
}

impl Job {
    /// Refuses what can be seen to be wrong without looking at the data's contents.
    pub fn check(&self) -> Result<()> {
        self.check_model()?;
        self.check_train()?;
        self.check_data()?;
        match self.is_network() {
            true => self.check_network()?,
            false => self.refuse_networks_options()?,
        }
        for (column, options) in &self.features {
            if let Err(wrong) = options.check(column) {
                return usage(wrong.to_string(), wrong.hint);
            }
        }
        self.source_options()?;
        self.table_options()?;
        self.check_paths()
    }

    fn check_model(&self) -> Result<()> {
        let model = &self.model;
        for (name, value, default) in [("l1", model.l1, 0), ("l2", model.l2, 1)] {
            if !(value.is_finite() && value >= 0.0) {
                let hint = format!("give 0 or more; {default} is the default");
                return usage(format!("--{name} {value} is not a penalty"), hint);
            }
        }
        for (name, value) in [
            ("row-sample", model.row_sample),
            ("column-sample", model.column_sample),
        ] {
            if !(value > 0.0 && value <= 1.0) {
                return usage(
                    format!("--{name} {value} is not a share"),
                    "give more than 0, at most 1",
                );
            }
        }
        if model
            .learning_rate
            .is_some_and(|rate| !(rate > 0.0 && rate <= 10.0))
        {
            let usual = if self.is_network() { 0.001 } else { 0.1 };
            return usage(
                format!("--learning-rate {} would not learn", model.learning_rate()),
                format!("give more than 0, at most 10; {usual} is the default"),
            );
        }
        if !(model.min_child_weight.is_finite() && model.min_child_weight >= 0.0) {
            return usage(
                format!("--min-child-weight {} is not a weight", model.min_child_weight),
                "give 0 or more; 1 is the default",
            );
        }
        if model.trees == 0 || model.depth == 0 || model.leaves.is_some_and(|leaves| leaves < 2) {
            return usage(
                "a forest needs a tree, a tree a split",
                "give --trees and --depth of 1 or more, --leaves of 2 or more",
            );
        }
        if model.depth > MOST_DEPTH {
            return usage(
                format!("--depth {} is more than trees may have", model.depth),
                "give 16 at the most; --leaves bounds a tree without bounding its depth",
            );
        }
        match (model.kind, model.layers.is_empty()) {
            (ModelKind::Network, true) => usage(
                "a network needs its layers",
                "list them in a job file: layers = [\"flatten\", { dense = 128, activation = \"relu\" }, { dense = \"classes\" }]",
            ),
            (kind, false) if kind != ModelKind::Network => usage(
                format!(
                    "layers make a network of their own, and the model is {}",
                    kind.as_str()
                ),
                "leave the layers out, or give kind = \"network\"",
            ),
            _ => Ok(()),
        }
    }

    fn check_train(&self) -> Result<()> {
        let (data, train) = (&self.data, &self.train);
        if !(0.0..1.0).contains(&data.holdout) {
            return usage(
                format!("--holdout {} is not a share of the rows", data.holdout),
                "0 holds out nothing, 0.1 every tenth row",
            );
        }
        if train.epochs == 0 {
            return usage("--epochs 0 would learn nothing", "give 1 or more");
        }
        if train.threads == Some(0) {
            return usage("--threads 0 would do nothing", "give 1 or more, or leave it out");
        }
        if train.patience == Some(0) {
            return usage(
                "--patience 0 would end at once",
                "give 1 or more, or leave it out",
            );
        }
        let judged = data.holdout > 0.0 || data.validation.is_some() || train.folds.is_some();
        if train.patience.is_some() && !judged {
            return usage(
                "--patience needs rows to judge by",
                "hold some out: --holdout 0.1",
            );
        }
        if train.folds.is_some_and(|folds| !(2..=100).contains(&folds)) {
            return usage("--folds is not a number of folds", "give 2 to 100; 5 is usual");
        }
        if train.folds.is_some() && data.validation.is_some() {
            return usage(
                "--folds judges by the data itself, --validation by other samples",
                "leave one of them out",
            );
        }
        Ok(())
    }

    fn check_data(&self) -> Result<()> {
        let data = &self.data;
        if data
            .sample
            .is_some_and(|sample| !(sample.is_finite() && sample > 0.0))
        {
            return usage(
                "--sample is neither a number of rows nor a share",
                "give 100000 for so many rows, 0.1 for a tenth of them",
            );
        }
        if data.paths.is_empty() {
            return usage("there is no data to read", "name a file, a folder or a pattern");
        }
        if self.is_network() && self.has_arrays() {
            return self.check_arrays();
        }
        // A folder may hold tables beside arrays: then a target tells which are meant.
        let meant = |path: &&PathBuf| is_array_name(path) || (data.target.is_empty() && are_arrays(path));
        if let Some(array) = data.paths.iter().find(meant) {
            return match self.is_network() {
                true => usage(
                    "arrays and tables do not go together",
                    format!("{} is an array; name either", array.display()),
                ),
                false => usage(
                    format!(
                        "{}: arrays are for networks, and the model is {}",
                        array.display(),
                        self.model.kind.as_str()
                    ),
                    "give --model mlp or --model cnn, or leave it out",
                ),
            };
        }
        if data.target.is_empty() {
            return usage("which column is to be predicted?", "say --target COLUMN");
        }
        let of_arrays = [("--samples", data.samples.is_some()), ("--map", data.map)];
        if let Some((option, _)) = of_arrays.iter().find(|(_, given)| *given) {
            return usage(
                format!("{option} is for arrays, and the data are a table"),
                "leave it out",
            );
        }
        if matches!(
            self.model.kind,
            ModelKind::Cnn | ModelKind::Resnet18 | ModelKind::Mobilenet
        ) {
            return usage(
                format!(
                    "{} is for arrays of images, and the data are a table",
                    self.model.kind.as_str()
                ),
                "give --model mlp, or list layers in a job file",
            );
        }
        Ok(())
    }

    fn check_arrays(&self) -> Result<()> {
        let data = &self.data;
        if data.paths.len() > 1 {
            return usage(
                format!("{}: arrays are named one at a time", data.name()),
                "put them into one folder and name that",
            );
        }
        let of_tables = [
            ("--query", data.query.is_some()),
            ("--where", data.condition.is_some()),
            ("--columns", !data.columns.is_empty()),
            ("--ignore", !data.ignore.is_empty()),
            ("--delimiter", data.delimiter.is_some()),
            ("--quote", data.quote.is_some()),
            ("--header", data.header.is_some()),
            ("--missing", !data.missing.is_empty()),
            ("[features]", !self.features.is_empty()),
        ];
        match of_tables.iter().find(|(_, given)| *given) {
            Some((option, _)) => usage(
                format!("{option} is for tables, and the data are arrays"),
                "leave it out",
            ),
            None => Ok(()),
        }
    }

    /// What only trees and linear models know, and the numbers of a network.
    fn check_network(&self) -> Result<()> {
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
        for (name, value) in [("batch", train.batch), ("accumulate", train.accumulate)] {
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
            (Some(task), ..) => self.loss(task).map(drop),
            (None, Some(loss), Some(_)) if !matches!(loss, Loss::CrossEntropy { .. }) => usage(
                format!(
                    "--smoothing is of cross-entropy, and the loss is {}",
                    super::loss_word(loss)
                ),
                "leave it out, or give --loss cross_entropy",
            ),
            _ => Ok(()),
        }
    }

    /// What only networks know.
    fn refuse_networks_options(&self) -> Result<()> {
        let (model, train, usual) = (&self.model, &self.train, TrainPart::default());
        let of_networks = [
            ("--weights", model.weights.is_some()),
            ("--freeze", !model.freeze.is_empty()),
            ("--validation", self.data.validation.is_some()),
            ("--batch", train.batch != usual.batch),
            ("--accumulate", train.accumulate != usual.accumulate),
            ("--optimizer", train.optimizer != usual.optimizer),
            ("--schedule", train.schedule != usual.schedule),
            ("--warm-up", train.warm_up != usual.warm_up),
            ("--clip", train.clip.is_some()),
            ("--loss", train.loss.is_some()),
            ("--smoothing", train.smoothing.is_some()),
        ];
        match of_networks.iter().find(|(_, given)| *given) {
            Some((option, _)) => usage(
                format!("{option} is for networks"),
                "leave it out, or give a network: --model mlp",
            ),
            None => Ok(()),
        }
    }

    /// Whether what is named can be opened.
    fn check_paths(&self) -> Result<()> {
        for path in &self.data.paths {
            exists(path)?;
        }
        if let Some(validation) = &self.data.validation {
            exists(validation)?;
        }
        if let Some(weights) = &self.model.weights {
            check_path(weights)?;
            tidegate_data::Input::open(weights)?;
        }
        Ok(())
    }
}

/// Folders, patterns and databases are looked into by the worker.
fn exists(path: &Path) -> Result<()> {
    check_path(path)?;
    let pattern = path.to_string_lossy().contains(['*', '?', '[']);
    if !is_url(path) && !path.is_dir() && (!pattern || path.exists()) {
        tidegate_data::Input::open(path)?;
    }
    Ok(())
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
