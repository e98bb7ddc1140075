//! `tidegate train`

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};
use tidegate::{
    Auto, ClassWeights, Error, Growth, Job, KeepAs, ModelKind, Result, ScheduleChoice, Trained, Worded, train,
};
use tidegate_data::target::Task;
use tidegate_data::{Below, Bottleneck, Source};
use tidegate_memory::{Budget, Ledger};
use tidegate_train::Metric;
use tidegate_train::network::{Loss, Moments, Precision, Recompute, Rule};
use tidegate_watch::Update;

use super::detach::detach;
use super::images::ImageArguments;
use super::reporter::Reporter;
use super::text::{against, columns, counted, duration, figure, metric_name};
use super::{CsvArguments, MemoryArguments, open, print_json, say};

#[derive(Args)]
pub(super) struct TrainArguments {
    /// Files, folders or patterns ('flights/*.csv'), a database, arrays (.npy, .npz, IDX), a folder of
    /// images, or a job file (.toml)
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// The column to predict; of arrays, the labels, if they are not found beside the samples
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// A name for the run
    #[arg(long)]
    name: Option<String>,
    /// What to predict [default: by the target's values]
    #[arg(long, value_enum)]
    task: Option<TaskChoice>,
    /// The kind of model [default: auto]
    #[arg(long, value_enum, value_name = "KIND")]
    model: Option<ModelChoice>,
    /// Passes over the data at the most; fewer when the model has settled [default: 5]
    #[arg(long)]
    epochs: Option<u32>,
    /// The share of rows held out for evaluation [default: 0.1]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    holdout: Option<f64>,
    /// Cross-validation: train so many models, each judged on the rows that the others learned from
    #[arg(long, value_name = "K")]
    folds: Option<u32>,
    /// End when the rows held out have seen so many epochs or trees without a better score
    #[arg(long, value_name = "N")]
    patience: Option<u32>,
    /// Decides which rows are held out, and what a network starts from [default: 7]
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; the result does not depend on it [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    /// Print the result as JSON
    #[arg(long)]
    pub(super) json: bool,
    #[command(flatten)]
    fitting: ModelArguments,
    #[command(flatten)]
    network: NetworkArguments,
    #[command(flatten)]
    images: ImageArguments,
    #[command(flatten)]
    rows: RowArguments,
    #[command(flatten)]
    csv: CsvArguments,
    /// Read nothing that is not below this folder, whatever names and links say; may be repeated. The page says so of its
    /// roots. A run that is taken up again finds it in its job
    #[arg(long, value_name = "FOLDER", hide = true)]
    below: Vec<PathBuf>,
}

/// How a model is fitted.
#[derive(Args)]
#[command(next_help_heading = "Model")]
struct ModelArguments {
    /// The penalty that makes weights zero [default: 0]
    #[arg(long, allow_negative_numbers = true)]
    l1: Option<f64>,
    /// The penalty on the squares of weights, or of the values of leaves [default: 1]
    #[arg(long, allow_negative_numbers = true)]
    l2: Option<f64>,
    /// Trees at the most [default: 100]
    #[arg(long)]
    trees: Option<u32>,
    /// Splits from the root of a tree to its leaves at the most [default: 6]
    #[arg(long)]
    depth: Option<u32>,
    /// Leaves of a tree at the most
    #[arg(long)]
    leaves: Option<u32>,
    /// Which leaves are split next: all of a level, or the one that gains most [default: depth]
    #[arg(long, value_enum)]
    growth: Option<GrowthChoice>,
    /// How much of a tree's advice is taken, or how far a network goes at a step [default: 0.1 for trees, 0.001 for
    /// networks]
    #[arg(long, value_name = "RATE", allow_negative_numbers = true)]
    learning_rate: Option<f64>,
    /// The least curvature of the loss in a leaf [default: 1]
    #[arg(long, value_name = "WEIGHT", allow_negative_numbers = true)]
    min_child_weight: Option<f64>,
    /// The share of rows that each tree sees [default: 1]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    row_sample: Option<f64>,
    /// The share of columns that each tree sees [default: 1]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    column_sample: Option<f64>,
    /// Make every class count as much as any other
    #[arg(long, value_enum, value_name = "HOW")]
    class_weights: Option<WeightChoice>,
}

/// How a network is fitted.
#[derive(Args)]
#[command(next_help_heading = "Networks")]
struct NetworkArguments {
    /// Start from the weights in this safetensors file
    #[arg(long, value_name = "FILE")]
    weights: Option<PathBuf>,
    /// Layers whose name is or begins with this stay as they are; may be repeated
    #[arg(long, value_name = "NAME")]
    freeze: Vec<String>,
    /// Samples at a time [default: 64, rows of a table 256]
    #[arg(long, value_name = "SAMPLES")]
    batch: Option<usize>,
    /// Batches whose gradients are summed before a step [default: 1]
    #[arg(long, value_name = "BATCHES")]
    accumulate: Option<usize>,
    /// How weights follow their gradients [default: adam]
    #[arg(long, value_name = "WORD", value_parser = words::<Rule>())]
    optimizer: Option<Rule>,
    /// Samples of a batch that are learned from at a time [default: as many as fit]
    #[arg(long, value_name = "SAMPLES")]
    micro_batch: Option<usize>,
    /// Which values are made again on the way back, rather than kept [default: auto]
    #[arg(long, value_name = "WORD", value_parser = words::<Auto<Recompute>>())]
    recompute: Option<Auto<Recompute>>,
    /// What activations and slopes wait in; f16 scales the loss [default: auto]
    #[arg(long, value_name = "WORD", value_parser = words::<Auto<Precision>>())]
    precision: Option<Auto<Precision>>,
    /// What the optimizer keeps of each weight [default: auto]
    #[arg(long, value_name = "WORD", value_parser = words::<Auto<Moments>>())]
    moments: Option<Auto<Moments>>,
    /// How much of its last way a weight goes on, for sgd and rmsprop [default: 0]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    momentum: Option<f32>,
    /// How much weights shrink at every step [default: 0.01 for adamw, 0 for others]
    #[arg(long, value_name = "DECAY", allow_negative_numbers = true)]
    weight_decay: Option<f32>,
    /// The course of the learning rate; step takes a tenth after every third of the epochs [default: constant]
    #[arg(long, value_name = "WORD", value_parser = words::<ScheduleChoice>())]
    schedule: Option<ScheduleChoice>,
    /// Epochs during which the learning rate rises from nothing, before its schedule [default: 0]
    #[arg(long, value_name = "EPOCHS", allow_negative_numbers = true)]
    warm_up: Option<f64>,
    /// The norm beyond which gradients are made smaller
    #[arg(long, value_name = "NORM", allow_negative_numbers = true)]
    clip: Option<f64>,
    /// What is made small [default: by the task]
    #[arg(long, value_name = "WORD", value_parser = words::<Loss>())]
    loss: Option<Loss>,
    /// The share of a target that cross-entropy gives to all classes evenly [default: 0]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    smoothing: Option<f64>,
}

/// Takes the words that a job knows, and what they stand for.
fn words<T: Worded + Clone + Send + Sync + 'static>() -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(T::WORDS).try_map(|word| T::named(&word))
}

/// Which rows and columns are used.
#[derive(Args)]
#[command(next_help_heading = "Data")]
struct RowArguments {
    /// What to ask a database
    #[arg(long, value_name = "SQL")]
    query: Option<String>,
    /// Only rows that meet this condition: "age > 30 and country in ('NO', 'SE')"
    #[arg(long = "where", value_name = "CONDITION")]
    condition: Option<String>,
    /// Only so many rows, or this share of them if below 1
    #[arg(long, value_name = "ROWS|SHARE", allow_negative_numbers = true)]
    sample: Option<f64>,
    /// Only these columns, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    columns: Vec<String>,
    /// All columns but these, separated by commas
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    ignore: Vec<String>,
    /// Read and encode the data again in every epoch, instead of keeping encoded rows on disk
    #[arg(long)]
    no_pack: bool,
    /// Judge by the samples in this file or folder, instead of holding some out
    #[arg(long, value_name = "PATH", conflicts_with = "holdout")]
    validation: Option<PathBuf>,
    /// Which array of an archive or a folder holds the samples
    #[arg(long, value_name = "NAME")]
    samples: Option<String>,
    /// Map plain arrays instead of reading them
    #[arg(long)]
    map: bool,
    /// Keep arrays of floats in half precision, in memory and where they are unpacked: half the bytes
    #[arg(long, value_enum, value_name = "PRECISION", conflicts_with = "map")]
    keep: Option<KeepChoice>,
}

#[derive(Clone, Copy, ValueEnum)]
enum KeepChoice {
    F16,
}

#[derive(Clone, Copy, ValueEnum)]
enum TaskChoice {
    Regression,
    Binary,
    Multiclass,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModelChoice {
    Auto,
    Linear,
    Boost,
    Mlp,
    Cnn,
    Resnet18,
    Mobilenet,
    Network,
}

#[derive(Clone, Copy, ValueEnum)]
enum GrowthChoice {
    Depth,
    Leaf,
}

#[derive(Clone, Copy, ValueEnum)]
enum WeightChoice {
    Balanced,
}

/// A job, and how it is started.
#[derive(Args)]
pub(super) struct StartArguments {
    #[command(flatten)]
    train: TrainArguments,
    /// Leave it to itself once it is under way
    #[arg(long)]
    detach: bool,
}

impl TrainArguments {
    /// The job that the arguments describe; an option overrides what a job file says.
    pub(super) fn job(&self, home: &Path) -> Result<Job> {
        let job = self.job_without_target(home)?;
        match job.data.target.is_empty() && !job.has_arrays() && !job.has_images() {
            true => Err(no_target(&job)),
            false => Ok(job),
        }
    }

    /// The same where nobody has yet said what is to be predicted.
    pub(super) fn job_without_target(&self, home: &Path) -> Result<Job> {
        let is_job = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "toml");
        let below = Below::new(&self.below, Some(home))?;
        let mut job = match self.data.as_slice() {
            [file] if is_job(file) => {
                below.check(file)?;
                Job::read(file)?
            }
            data => Job::new(data.to_vec(), ""),
        };
        if !below.is_anywhere() {
            job.data.below = below;
        }
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        set(&mut job.data.target, self.target.clone());
        job.memory = self.memory.memory.or(job.memory);
        job.name = self.name.clone().or(job.name);
        job.model.task = self
            .task
            .map(|task| match task {
                TaskChoice::Regression => Task::Regression,
                TaskChoice::Binary => Task::Binary,
                TaskChoice::Multiclass => Task::Multiclass,
            })
            .or(job.model.task);
        let kind = self.model.map(|kind| match kind {
            ModelChoice::Auto => ModelKind::Auto,
            ModelChoice::Linear => ModelKind::Linear,
            ModelChoice::Boost => ModelKind::Boost,
            ModelChoice::Mlp => ModelKind::Mlp,
            ModelChoice::Cnn => ModelKind::Cnn,
            ModelChoice::Resnet18 => ModelKind::Resnet18,
            ModelChoice::Mobilenet => ModelKind::Mobilenet,
            ModelChoice::Network => ModelKind::Network,
        });
        let growth = self.fitting.growth.map(|growth| match growth {
            GrowthChoice::Depth => Growth::Depth,
            GrowthChoice::Leaf => Growth::Leaf,
        });
        let (fitting, model) = (&self.fitting, &mut job.model);
        set(&mut model.kind, kind);
        set(&mut model.l1, fitting.l1);
        set(&mut model.l2, fitting.l2);
        set(&mut model.trees, fitting.trees);
        set(&mut model.depth, fitting.depth);
        set(&mut model.growth, growth);
        set(&mut model.min_child_weight, fitting.min_child_weight);
        set(&mut model.row_sample, fitting.row_sample);
        set(&mut model.column_sample, fitting.column_sample);
        model.learning_rate = fitting.learning_rate.or(model.learning_rate);
        model.leaves = fitting.leaves.or(model.leaves);
        if let Some(WeightChoice::Balanced) = fitting.class_weights {
            model.class_weights = Some(ClassWeights::Balanced);
        }
        job.train.folds = self.folds.or(job.train.folds);
        job.train.patience = self.patience.or(job.train.patience);
        job.train.pack &= !self.rows.no_pack;
        let rows = &self.rows;
        job.data.query = rows.query.clone().or(job.data.query);
        job.data.condition = rows.condition.clone().or(job.data.condition);
        job.data.sample = rows.sample.or(job.data.sample);
        job.data.columns.extend(rows.columns.iter().cloned());
        job.data.ignore.extend(rows.ignore.iter().cloned());
        job.data.validation = rows.validation.clone().or(job.data.validation);
        job.data.samples = rows.samples.clone().or(job.data.samples);
        job.data.map |= rows.map;
        set(&mut job.data.keep, rows.keep.map(|KeepChoice::F16| KeepAs::F16));
        set(&mut job.train.epochs, self.epochs);
        set(&mut job.train.seed, self.seed);
        job.train.threads = self.threads.or(job.train.threads);
        set(&mut job.data.holdout, self.holdout);
        job.data.delimiter = self.csv.delimiter.clone().or(job.data.delimiter);
        job.data.quote = self.csv.quote.clone().or(job.data.quote);
        job.data.header = self.csv.header().or(job.data.header);
        job.data.missing.extend(self.csv.missing.iter().cloned());
        set(&mut job.data.bad_rows, self.csv.bad_rows.map(Into::into));
        self.images.apply(&mut job);
        // What kind of data they are is found out by looking at them.
        job.check_below()?;
        self.network.apply(&mut job)?;
        Ok(job)
    }
}

impl NetworkArguments {
    /// Overrides what the job says of a network.
    fn apply(&self, job: &mut Job) -> Result<()> {
        // The job holds them as settings of its optimizer, by which name they would be refused.
        let of_optimizer = [
            ("--momentum", self.momentum.is_some()),
            ("--weight-decay", self.weight_decay.is_some()),
        ];
        if let (Some((option, _)), false) = (of_optimizer.iter().find(|(_, given)| *given), job.is_network())
        {
            return Err(Error::Usage {
                what: format!("{option} is for networks"),
                hint: "leave it out, or give a network: --model mlp".into(),
            });
        }
        let (model, train) = (&mut job.model, &mut job.train);
        model.weights = self.weights.clone().or(model.weights.take());
        model.freeze.extend(self.freeze.iter().cloned());
        train.batch = self.batch.or(train.batch);
        train.accumulate = self.accumulate.unwrap_or(train.accumulate);
        train.optimizer = self.optimizer.unwrap_or(train.optimizer);
        train.moments = self.moments.unwrap_or(train.moments);
        train.precision = self.precision.unwrap_or(train.precision);
        train.recompute = self.recompute.unwrap_or(train.recompute);
        train.micro_batch = self.micro_batch.or(train.micro_batch);
        if let Some(asked) = self.momentum {
            match &mut train.optimizer {
                Rule::Sgd { momentum, .. } | Rule::RmsProp { momentum, .. } => *momentum = asked,
                Rule::Adam { .. } | Rule::AdamW { .. } => {
                    return Err(Error::Usage {
                        what: "--momentum is for sgd and rmsprop".into(),
                        hint: "give --optimizer sgd, or leave it out".into(),
                    });
                }
            }
        }
        let (Rule::Sgd { weight_decay, .. }
        | Rule::Adam { weight_decay, .. }
        | Rule::AdamW { weight_decay, .. }
        | Rule::RmsProp { weight_decay, .. }) = &mut train.optimizer;
        *weight_decay = self.weight_decay.unwrap_or(*weight_decay);
        train.schedule = self.schedule.unwrap_or(train.schedule);
        train.warm_up = self.warm_up.unwrap_or(train.warm_up);
        train.clip = self.clip.or(train.clip);
        train.loss = self.loss.clone().or(train.loss.take());
        train.smoothing = self.smoothing.or(train.smoothing);
        Ok(())
    }
}

/// Asks for the target, with the columns to choose from.
fn no_target(job: &Job) -> Error {
    let ledger = Ledger::new(64_000_000);
    let options = job.source_options();
    let source = options.and_then(|options| Ok(Source::open(&job.data.paths, &options, &[], &ledger)?));
    match source {
        Err(error) => error,
        Ok(source) => {
            let columns = source.columns();
            let names: Vec<&str> = columns
                .iter()
                .take(20)
                .map(|column| column.name.as_str())
                .collect();
            let more = if columns.len() > names.len() { ", …" } else { "" };
            Error::Usage {
                what: "which column is to be predicted?".into(),
                hint: format!("say --target COLUMN; the columns are {}{more}", names.join(", ")),
            }
        }
    }
}

pub(super) fn run(home: &Path, arguments: StartArguments) -> Result<()> {
    let job = arguments.train.job(home)?;
    job.check()?;
    let train = |watch: &mut dyn FnMut(&Budget, Update)| train(&open(home)?, &job, watch);
    match arguments.detach {
        true => detach(home, arguments.train.json, train),
        false => report(arguments.train.json, train),
    }
}

/// Runs a training, shows it on its way and prints its result.
pub(super) fn report(
    json: bool,
    training: impl FnOnce(&mut dyn FnMut(&Budget, Update)) -> Result<Trained>,
) -> Result<()> {
    let mut reporter = Reporter::new(json);
    let trained = training(&mut |budget, update| reporter.update(budget, update));
    reporter.finish();
    let trained = trained?;
    if json {
        print_json(&trained);
    } else {
        print_trained(&trained);
    }
    Ok(())
}

/// The result as a person reads it.
fn print_trained(trained: &Trained) {
    let (run, report) = (&trained.run, &trained.report);
    let what = if run.model.as_deref() == Some("boost") {
        "tree"
    } else {
        "epoch"
    };
    let settled = match (&report.early_stop, report.converged) {
        (Some(stop), _) => format!(", the best of {}", stop.epochs),
        (None, true) => ", settled".into(),
        (None, false) => String::new(),
    };
    let epochs = counted(report.epochs.into(), what);
    say!(
        "trained on {} in {}: {epochs}{settled}",
        counted(report.rows.used - report.rows.held_out, "row"),
        duration(trained.seconds)
    );
    let left_out = [
        (report.rows.bad, "bad"),
        (report.rows.without_target, "without a target"),
        (report.rows.not_asked, "not asked for"),
    ];
    for (n, what) in left_out.iter().filter(|(n, _)| *n > 0) {
        say!("  left out {}: {what}", counted(*n, "row"));
    }
    if !report.folds.is_empty() {
        say!("  over {} folds:", report.folds.len());
        let lines = fold_lines(&report.over_folds());
        lines.iter().for_each(|line| say!("    {line}"));
    } else if report.metrics.is_empty() {
        say!(
            "  no rows were held out: the training loss is {}",
            figure(report.training_loss)
        );
    } else {
        say!("  on {} held out:", counted(report.rows.held_out, "row"));
        metric_lines(&report.metrics)
            .iter()
            .for_each(|line| say!("    {line}"));
    }
    if let Some(fed) = report.fed.last() {
        let waited = format!("waited {:.1}% of the last epoch for samples", fed.stall * 100.0);
        match fed.bottleneck {
            Bottleneck::Model => say!("  fed: the model {waited}"),
            bottleneck => say!("  fed: the model {waited}, held up by {}", bottleneck.in_words()),
        }
    }
    say!(
        "  memory: peak {} ({}), {}",
        against(run.peak_bytes, run.budget_bytes),
        run.peak_source.as_deref().unwrap_or("unavailable"),
        oom_kills(run.oom_kills)
    );
    say!("  run {}: tidegate show {0} · tidegate predict {0} DATA", run.id);
}

/// The metrics over all folds: their means and how much they differ.
pub(super) fn fold_lines(over_folds: &[(String, f64, f64)]) -> Vec<String> {
    let row = |(name, mean, deviation): &(String, f64, f64)| {
        vec![
            metric_name(name),
            figure(*mean),
            format!("± {}", figure(*deviation)),
        ]
    };
    let rows: Vec<Vec<String>> = over_folds.iter().map(row).collect();
    columns(&rows)
}

pub(super) fn metric_lines(metrics: &[Metric]) -> Vec<String> {
    let row = |metric: &Metric| {
        let baseline = metric
            .baseline
            .map(|baseline| format!("baseline {}", figure(baseline)));
        vec![
            metric_name(&metric.name),
            figure(metric.value),
            baseline.unwrap_or_default(),
        ]
    };
    columns(&metrics.iter().map(row).collect::<Vec<_>>())
}

pub(super) fn oom_kills(kills: Option<u64>) -> String {
    match kills {
        Some(0) => "no OOM kills".into(),
        Some(1) => "1 OOM kill".into(),
        Some(kills) => format!("{kills} OOM kills"),
        None => "OOM kills unavailable".into(),
    }
}
