//! `tidegate train`

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use tidegate::{Error, Job, Result, Trained, train};
use tidegate_data::target::Task;
use tidegate_data::{Source, SourceOptions};
use tidegate_memory::{Budget, Ledger};
use tidegate_train::Metric;
use tidegate_watch::Update;

use super::reporter::Reporter;
use super::text::{against, columns, counted, duration, figure, metric_name};
use super::{CsvArguments, MemoryArguments, open, print_json, say};

#[derive(Args)]
pub(super) struct TrainArguments {
    /// A CSV file (plain, gzip or zstd), or a job file (.toml)
    data: PathBuf,
    /// The column to predict
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
    /// The kind of model: linear
    #[arg(long, value_name = "KIND")]
    model: Option<String>,
    /// Passes over the data at the most; fewer when the model has settled [default: 5]
    #[arg(long)]
    epochs: Option<u32>,
    /// The share of rows held out for evaluation [default: 0.1]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true)]
    holdout: Option<f64>,
    /// The penalty on weights of standardised columns [default: 1]
    #[arg(long, allow_negative_numbers = true)]
    l2: Option<f64>,
    /// Decides which rows are held out [default: 7]
    #[arg(long)]
    seed: Option<u64>,
    /// Threads; the result does not depend on it [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    #[command(flatten)]
    csv: CsvArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum TaskChoice {
    Regression,
    Binary,
}

impl TrainArguments {
    /// The job that the arguments describe; an option overrides what a job file says.
    fn job(&self) -> Result<Job> {
        let is_job = self.data.extension().is_some_and(|extension| extension == "toml");
        let mut job = match (&self.target, is_job) {
            (_, true) => Job::read(&self.data)?,
            (Some(target), false) => Job::new(&self.data, target),
            (None, false) => return Err(no_target(&self.data)),
        };
        if let (Some(target), true) = (&self.target, is_job) {
            job.data.target.clone_from(target);
        }
        fn set<T>(place: &mut T, value: Option<T>) {
            if let Some(value) = value {
                *place = value;
            }
        }
        job.memory = self.memory.memory.or(job.memory);
        job.name = self.name.clone().or(job.name);
        job.model.task = self
            .task
            .map(|task| match task {
                TaskChoice::Regression => Task::Regression,
                TaskChoice::Binary => Task::Binary,
            })
            .or(job.model.task);
        set(&mut job.model.kind, self.model.clone());
        set(&mut job.model.l2, self.l2);
        set(&mut job.train.epochs, self.epochs);
        set(&mut job.train.seed, self.seed);
        job.train.threads = self.threads.or(job.train.threads);
        set(&mut job.data.holdout, self.holdout);
        job.data.delimiter = self.csv.delimiter.clone().or(job.data.delimiter);
        job.data.quote = self.csv.quote.clone().or(job.data.quote);
        job.data.header = self.csv.header().or(job.data.header);
        job.data.missing.extend(self.csv.missing.iter().cloned());
        set(&mut job.data.bad_rows, self.csv.bad_rows.map(Into::into));
        Ok(job)
    }
}

/// Asks for the target, with the columns to choose from.
fn no_target(data: &Path) -> Error {
    let look = || {
        let ledger = Ledger::new(64_000_000);
        Source::open(&[data.into()], &SourceOptions::default(), &[], &ledger)
    };
    match look() {
        Err(error) => error.into(),
        Ok(source) => {
            let columns = source.columns();
            let names: Vec<&str> = columns.iter().take(20).map(|column| column.name.as_str()).collect();
            let more = if columns.len() > names.len() {
                ", …"
            } else {
                ""
            };
            Error::Usage {
                what: "which column is to be predicted?".into(),
                hint: format!("say --target COLUMN; the columns are {}{more}", names.join(", ")),
            }
        }
    }
}

pub(super) fn run(home: &Path, arguments: TrainArguments) -> Result<()> {
    let job = arguments.job()?;
    job.check()?;
    let session = open(home)?;
    report(arguments.json, |watch| train(&session, &job, watch))
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
    let settled = if report.converged { ", settled" } else { "" };
    let epochs = counted(report.epochs.into(), "epoch");
    say!(
        "trained on {} in {}: {epochs}{settled}",
        counted(report.rows.used - report.rows.held_out, "row"),
        duration(trained.seconds)
    );
    let left_out = [
        (report.rows.bad, "bad"),
        (report.rows.without_target, "without a target"),
    ];
    for (n, what) in left_out.iter().filter(|(n, _)| *n > 0) {
        say!("  left out {}: {what}", counted(*n, "row"));
    }
    if report.metrics.is_empty() {
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
    say!(
        "  memory: peak {} ({}), {}",
        against(run.peak_bytes, run.budget_bytes),
        run.peak_source.as_deref().unwrap_or("unavailable"),
        oom_kills(run.oom_kills)
    );
    say!("  run {}: tidegate show {0} · tidegate predict {0} DATA", run.id);
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
