//! What can be seen to be wrong with a job without looking at the data's contents.

use std::path::{Path, PathBuf};

use tidegate_data::arrays::are_arrays;

use super::{ImagesPart, Job, KeepAs, ModelKind, TrainPart, check_path, is_url};
use crate::{Error, Result};

mod network;

/// Deeper trees than this take more memory for their nodes than any data is worth.
const MOST_DEPTH: u32 = 16;
/// Images of more pixels in one direction are a slip of the hand.
const MOST_SIDE: usize = 4096;

fn usage<T>(what: impl Into<String>, hint: impl Into<String>) -> Result<T> {
    Err(Error::Usage {
        what: what.into(),
        hint: hint.into(),
    })
}

impl Job {
    /// Refuses what can be seen to be wrong without looking at the data's contents.
    pub fn check(&self) -> Result<()> {
        self.check_below()?;
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

    /// Refuses a name that lies outside of where data may be, before anybody looks whether it is there. What it links to
    /// or lists is refused by the source that reads it.
    pub fn check_below(&self) -> Result<()> {
        let others = self.data.validation.iter().chain(&self.model.weights);
        let mut paths = self.data.paths.iter().chain(others);
        Ok(paths.try_for_each(|path| self.data.below.check(path))?)
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
        if self.has_images() {
            return self.check_images();
        }
        let usual = ImagesPart::default();
        let of_images = [
            ("--image-size", self.images.size.is_some()),
            ("--channels", self.images.channels.is_some()),
            ("--augment", !self.augment.is_nothing()),
            ("--resize", self.images.resize != usual.resize),
            ("--bad-files", self.images.bad_files != usual.bad_files),
            ("--balanced", self.images.balanced),
            ("--images", self.images.column.is_some()),
        ];
        if let Some((option, _)) = of_images.iter().find(|(_, given)| *given) {
            return usage(
                format!("{option} is for images, and there are none in {}", data.name()),
                "name a folder of images, or a table of their paths with --images COLUMN",
            );
        }
        if self.is_network() && self.has_arrays() {
            return self.check_arrays();
        }
        // A folder may hold tables beside arrays: then a target tells which are meant.
        let meant = |path: &&PathBuf| (!path.is_dir() || data.target.is_empty()) && are_arrays(path);
        if let Some(array) = data.paths.iter().find(meant) {
            return match self.has_arrays() {
                false => usage(
                    "arrays and tables do not go together",
                    format!("{} is an array; name either", array.display()),
                ),
                true => usage(
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
        let of_arrays = [
            ("--samples", data.samples.is_some()),
            ("--map", data.map),
            ("--keep", data.keep != KeepAs::AsTheyAre),
        ];
        if let Some((option, _)) = of_arrays.iter().find(|(_, given)| *given) {
            return usage(
                format!("{option} is for arrays, and the data are a table"),
                "leave it out",
            );
        }
        if self.is_network() && data.validation.is_some() {
            return usage(
                "--validation is for arrays, and the data are a table",
                "judge it by --holdout or --folds",
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

    fn check_images(&self) -> Result<()> {
        let (data, images) = (&self.data, &self.images);
        if matches!(self.model.kind, ModelKind::Linear | ModelKind::Boost) {
            return usage(
                format!(
                    "images are for networks, and the model is {}",
                    self.model.kind.as_str()
                ),
                "give --model cnn or --model resnet18, or leave it out",
            );
        }
        let of_others = [
            ("--query", data.query.is_some()),
            ("--where", data.condition.is_some()),
            ("--sample", data.sample.is_some()),
            ("--columns", !data.columns.is_empty()),
            ("--ignore", !data.ignore.is_empty()),
            ("--samples", data.samples.is_some()),
            ("--map", data.map),
            ("--keep", data.keep != KeepAs::AsTheyAre),
            ("[features]", !self.features.is_empty()),
            ("--folds", self.train.folds.is_some()),
        ];
        if let Some((option, _)) = of_others.iter().find(|(_, given)| *given) {
            return usage(format!("{option} is not for images"), "leave it out");
        }
        if let Some(size) = images.size {
            let (height, width) = size.sides();
            if !(1..=MOST_SIDE).contains(&height) || !(1..=MOST_SIDE).contains(&width) {
                return usage(
                    format!("--image-size {size} is out of range"),
                    format!("give 1 to {MOST_SIDE} pixels in each direction; 128 to 256 are usual"),
                );
            }
        }
        if images
            .channels
            .is_some_and(|channels| channels != 1 && channels != 3)
        {
            return usage(
                "images have 1 channel or 3",
                "give --channels 1 for gray, 3 for colours",
            );
        }
        self.augment.check().map_err(|fault| Error::Usage {
            what: fault.to_string(),
            hint: fault.hint(),
        })
    }

    fn check_arrays(&self) -> Result<()> {
        let data = &self.data;
        if data.paths.len() > 1 {
            return usage(
                format!("{}: arrays are named one at a time", data.name()),
                "put them into one folder and name that",
            );
        }
        if data.map && data.keep == KeepAs::F16 {
            return usage(
                "--map and --keep f16 do not go together: what is mapped stays as it is",
                "leave one of them out",
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

    /// What only networks know.
    fn refuse_networks_options(&self) -> Result<()> {
        let (model, train, usual) = (&self.model, &self.train, TrainPart::default());
        let of_networks = [
            ("--weights", model.weights.is_some()),
            ("--freeze", !model.freeze.is_empty()),
            ("--validation", self.data.validation.is_some()),
            ("--batch", train.batch.is_some()),
            ("--accumulate", train.accumulate != usual.accumulate),
            ("--optimizer", train.optimizer != usual.optimizer),
            ("--moments", train.moments != usual.moments),
            ("--precision", train.precision != usual.precision),
            ("--recompute", train.recompute != usual.recompute),
            ("--micro-batch", train.micro_batch.is_some()),
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
