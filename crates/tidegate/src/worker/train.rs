//! Training in the worker.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use tidegate_data::target::Task as TargetTask;
use tidegate_data::{Holdout, Source, Table};
use tidegate_memory::Ledger;
use tidegate_train::linear::{self, Outcome};
use tidegate_train::{Checkpoint, Event as Told};
use tidegate_watch::{Done, Event};

use super::{Rate, Speaker, runtime_bytes, sampling_ledger, working_ledger};
use crate::{Error, Job, Result};

/// Checkpoints inside an epoch.
const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
/// Snapshots of the ledger go to the supervisor this often.
const LEDGER_EVERY: Duration = Duration::from_millis(200);

/// Where a training puts what it makes, and where it starts from.
pub(super) struct Places {
    pub checkpoint: PathBuf,
    pub model: PathBuf,
    /// Whether there is a checkpoint to start from.
    pub resume: bool,
}

pub(super) fn train(speaker: &Speaker, job: &Path, budget: u64, places: Places) -> Result<()> {
    let job = Job::read(job)?;
    let sampling = sampling_ledger(budget);
    let target = job.data.target.as_str();
    let source = Source::open(&job.data.paths, &job.source_options()?, &[target], &sampling)?;
    let table = Table::open(source, target, &job.table_options(), &sampling)?;
    describe(speaker, &table);
    let plan = linear::plan(&table, job.threads(), runtime_bytes(), budget)?;
    let (ledger, _held) = working_ledger(&plan)?;
    let resume = places
        .resume
        .then(|| Checkpoint::load(&places.checkpoint))
        .transpose()?;
    let options = linear::Options {
        epochs: job.train.epochs,
        l2: job.model.l2,
        holdout: Holdout::new(job.data.holdout, job.train.seed),
        checkpoint: Some(places.checkpoint.clone()),
        checkpoint_every: CHECKPOINT_EVERY,
    };
    let mut relay = Relay {
        speaker,
        ledger: &ledger,
        table: &table,
        rate: Rate::new(),
        told: Instant::now(),
    };
    let mut sink = |event| relay.tell(event);
    match linear::train(
        &table,
        &options,
        &plan,
        &ledger,
        resume.as_ref(),
        speaker.stop,
        &mut sink,
    )? {
        Outcome::Done(done) => {
            let (model, report) = *done;
            model.save(&places.model, &report)?;
            // The model says it all now; a checkpoint that stays is only untidy.
            let _ = std::fs::remove_dir_all(&places.checkpoint);
            speaker.ledger(&ledger);
            let first = report.metrics.first();
            speaker.say(Event::Done(Done {
                model: Some("linear".into()),
                rows: Some(report.rows.used),
                data_bytes: Some(table.source.bytes()),
                metric_name: first.map(|metric| metric.name.clone()),
                metric_value: first.map(|metric| metric.value),
                baseline_value: first.and_then(|metric| metric.baseline),
                ..Done::default()
            }));
        }
        Outcome::Stopped { epoch, checkpoint } => speaker.say(Event::Stopped {
            epoch,
            step: 0,
            checkpoint,
        }),
    }
    Ok(())
}

/// Says what was inferred.
fn describe(speaker: &Speaker, table: &Table) {
    let encoders = &table.encoders;
    let task = match encoders.target.task() {
        TargetTask::Regression => "a number, by least squares",
        TargetTask::Binary => "one of two values, by logistic regression",
        TargetTask::Multiclass => "one of several values, by logistic regression",
    };
    speaker.say(Event::Notice {
        text: format!("predicting {:?}: {task}", encoders.target_column),
    });
    let text = format!("from {}", counted(encoders.features.len(), "numeric column"));
    speaker.say(Event::Notice { text });
    if !table.ignored.is_empty() {
        let shown: Vec<&str> = table.ignored.iter().take(8).map(String::as_str).collect();
        let more = if table.ignored.len() > shown.len() {
            ", …"
        } else {
            ""
        };
        let text = format!(
            "left out {} without numbers: {}{more}",
            counted(table.ignored.len(), "column"),
            shown.join(", ")
        );
        speaker.say(Event::Notice { text });
    }
}

fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// Turns what the trainer says into events on the wire.
struct Relay<'a> {
    speaker: &'a Speaker,
    ledger: &'a Ledger,
    table: &'a Table,
    rate: Rate,
    told: Instant,
}

impl Relay<'_> {
    fn tell(&mut self, event: Told) {
        if self.told.elapsed() >= LEDGER_EVERY {
            self.told = Instant::now();
            self.speaker.ledger(self.ledger);
        }
        match event {
            Told::Plan { holders } => {
                let needs = holders.iter().map(|(_, bytes)| bytes).sum();
                self.speaker.say(Event::Plan {
                    holders,
                    needs,
                    note: None,
                    model: Some("linear".into()),
                    target: Some(self.table.encoders.target_column.clone()),
                    rows: self.table.source.rows_guess(),
                    data_bytes: Some(self.table.source.bytes()),
                });
            }
            Told::Notice(text) => self.speaker.say(Event::Notice { text }),
            Told::Warning { text, error } => {
                self.speaker.say(Event::Warning {
                    text: format!("{text}: {}", Error::from(error).message()),
                });
            }
            Told::Progress {
                epoch,
                epochs,
                step,
                consumed,
                total,
                rows,
                loss,
            } => {
                let rows_per_second = self.rate.at(epoch, rows);
                self.speaker.say(Event::Progress {
                    epoch,
                    epochs,
                    step,
                    done_bytes: consumed,
                    total_bytes: Some(total),
                    rows,
                    rows_per_second,
                    loss,
                    phase: None,
                });
            }
            Told::Epoch { epoch, loss, metrics } => {
                let metric = |name: String, value: f64| Event::Metric {
                    epoch,
                    step: 0,
                    name,
                    value,
                };
                self.speaker.say(metric("training_loss".into(), loss));
                metrics
                    .into_iter()
                    .for_each(|m| self.speaker.say(metric(m.name, m.value)));
            }
            Told::Checkpoint { epoch, step } => self.speaker.say(Event::Checkpoint {
                epoch,
                step,
                bytes: None,
            }),
        }
    }
}
