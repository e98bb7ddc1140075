//! Training in the worker: look, fit the encoders, say what comes of them, train, keep the model.

use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_data::pack::{PackKey, PackOptions, PackStore};
use tidegate_data::target::Task as TargetTask;
use tidegate_data::{BUFFERS, EncodingPlan, FitOptions, Holdout, Position, Purpose, Role, Source, Table};
use tidegate_memory::{Grant, Ledger, give_freed_memory_back};
use tidegate_train::linear::least_bytes;
use tidegate_train::network::NetworkModel;
use tidegate_train::{Error as TrainError, Metric, Model, RUNTIME, Report, RowReport, THREAD_BYTES};
use tidegate_watch::{Change, Done, EncodedColumn, Event};

use super::pressure::{Shrinking, watched};
use super::relay::Passing;
use super::{FLOOR, Speaker, arrays, boost, floor, images, linear, rows, runtime_bytes, sampling_ledger};
use crate::{Error, Job, ModelKind, Result};

/// Checkpoints inside an epoch.
pub(super) const CHECKPOINT_EVERY: Duration = Duration::from_secs(60);
/// Columns that are told one by one; the shape counts them all.
const TOLD_COLUMNS: usize = 200;

/// Where a training puts what it makes, and where it starts from.
pub(super) struct Places {
    pub checkpoint: PathBuf,
    pub model: PathBuf,
    /// Whether there is a checkpoint to start from.
    pub resume: bool,
    /// Where packs are kept.
    pub packs: PathBuf,
    /// Whether checkpoints are kept: the models of a cross-validation are not taken up again.
    pub keep: bool,
    /// Nothing is trained: it ends with the plan, and leaves nothing behind.
    pub dry: Option<Dry>,
}

/// What a plan alone is asked.
#[derive(Debug, Clone, Copy)]
pub(super) struct Dry {
    /// The memory of an accelerator.
    pub device_memory: Option<u64>,
}

impl Places {
    /// Those of a plan: packs that are there are used.
    pub(super) fn dry(packs: PathBuf, device_memory: Option<u64>) -> Places {
        Places {
            checkpoint: PathBuf::new(),
            model: PathBuf::new(),
            resume: false,
            packs,
            keep: false,
            dry: Some(Dry { device_memory }),
        }
    }
}

/// A training whose table has been looked at and encoded.
pub(super) struct Prepared<'a> {
    pub speaker: &'a Speaker,
    pub job: &'a Job,
    pub places: &'a Places,
    pub table: Table,
    pub encoding: EncodingPlan,
    /// What was chosen of the encoding to fit.
    pub changes: Vec<Change>,
    pub ledger: Ledger,
    pub budget: u64,
    /// What the program and the columns take, already granted.
    pub fixed: [(String, u64); 2],
    pub held: Vec<Grant>,
    pub holdout: Holdout,
    pub threads: usize,
    /// What the program itself took when it began.
    pub runtime: u64,
}

impl Prepared<'_> {
    /// The pack of this table, encoded as planned. The plan tells apart what the budget may change: categories that
    /// had to share a group.
    pub(super) fn pack_options(&self) -> PackOptions {
        let json = |value: serde_json::Result<Vec<u8>>| value.expect("plain data serializes");
        let fingerprint = self.table.source.fingerprint().unwrap_or_default();
        let parts = [
            json(serde_json::to_vec(&self.encoding)),
            json(serde_json::to_vec(&self.job.data)),
            json(serde_json::to_vec(&self.job.features)),
            json(serde_json::to_vec(&self.table.encoders.target)),
            json(serde_json::to_vec(&(
                fingerprint,
                self.job.train.seed,
                self.holdout,
            ))),
        ];
        let parts: Vec<&[u8]> = parts.iter().map(Vec::as_slice).collect();
        PackOptions {
            store: PackStore::at(&self.places.packs),
            key: PackKey::of(&parts),
            description: format!(
                "{}, target {}, {} columns",
                self.job.data.name(),
                self.job.data.target,
                self.encoding.columns.len()
            ),
            n_rows: self.encoding.rows.unwrap_or(0),
        }
    }

    /// What the fit said of the rows, where they are not read again.
    pub(super) fn counted(&self) -> RowReport {
        let mut report = RowReport::default();
        if let Some(counts) = &self.encoding.counts {
            report.add(counts);
        }
        report
    }
}

pub(super) fn train(speaker: &Speaker, job: &Job, budget: u64, mut places: Places) -> Result<()> {
    if job.has_images() {
        places.keep = true;
        return images::train(speaker, job, budget, &places);
    }
    if arrays::takes(job) {
        places.keep = true;
        return arrays::train(speaker, job, budget, &places);
    }
    let runtime = runtime_bytes(budget);
    watched(speaker, budget, None, || {
        train_table(speaker, job, budget, runtime, places)
    })
}

/// Trains on a table, fold by fold where that was asked for.
fn train_table(speaker: &Speaker, job: &Job, budget: u64, runtime: u64, mut places: Places) -> Result<()> {
    let site = Site {
        speaker,
        job,
        budget,
        runtime,
    };
    let seed = job.train.seed;
    let (mut folds, mut rounds): (Vec<Vec<Metric>>, u32) = (Vec::new(), 0);
    let n_folds = job.train.folds.unwrap_or(0);
    if places.dry.is_some() {
        // All trainings of a cross-validation take the same.
        let holdout = match n_folds {
            0 => Holdout::new(job.data.holdout, seed),
            n => Holdout::fold(0, n, seed),
        };
        site.train(&places, holdout, true)?;
        return Ok(());
    }
    for fold in 0..n_folds {
        places.keep = false;
        let text = format!("fold {} of {n_folds}", fold + 1);
        speaker.say(Event::Notice { text });
        let resume = std::mem::replace(&mut places.resume, false);
        let trained = site.train(&places, Holdout::fold(fold, n_folds, seed), fold == 0)?;
        places.resume = resume;
        let Some((_, report)) = trained else { return Ok(()) };
        folds.push(report.metrics);
        rounds += report
            .early_stop
            .as_ref()
            .map_or(report.epochs, |stop| stop.best_epoch);
    }
    places.keep = true;
    let mut last = job.clone();
    let holdout = match n_folds {
        0 => Holdout::new(job.data.holdout, seed),
        _ => {
            let mut text = "all folds are judged: the model itself learns from all rows".to_string();
            if last.train.patience.take().is_some() {
                // Nothing is held out to be patient with: it gets as many rounds as the folds had use for.
                let mean = (f64::from(rounds) / f64::from(n_folds)).round().max(1.0) as u32;
                (last.model.trees, last.train.epochs) = (mean, mean);
                text += &format!(", in {mean} rounds, the mean of the folds");
            }
            speaker.say(Event::Notice { text });
            Holdout::new(0.0, seed)
        }
    };
    let site = Site { job: &last, ..site };
    let Some((model, mut report)) = site.train(&places, holdout, n_folds == 0)? else {
        return Ok(());
    };
    report.folds = folds;
    keep(speaker, &places, &model, &report)
}

/// Says which columns' categories are not told apart because there is no room for that.
fn shared(encoding: &EncodingPlan) -> Option<Change> {
    let missed: Vec<(&str, u64)> = encoding
        .columns
        .iter()
        .filter_map(|column| Some((column.name.as_str(), column.missed_bytes?)))
        .collect();
    let names: Vec<String> = missed.iter().map(|(name, _)| format!("{name:?}")).collect();
    (!missed.is_empty()).then(|| Change {
        knob: "encoding".into(),
        to: format!("not all categories of {} told apart", names.join(", ")),
        saves: missed.iter().map(|(_, bytes)| bytes).sum(),
        slowdown: Some(1.0),
        alters: Some("categories share a group".into()),
    })
}

/// Ends what was asked for a plan alone, once that is told.
pub(super) fn end_dry(speaker: &Speaker) {
    speaker.say(Event::Done(Done::default()));
}

/// An accelerator is of no use to what is learned row by row.
pub(super) fn refuse_device(places: &Places) -> Result<()> {
    match places.dry.is_some_and(|dry| dry.device_memory.is_some()) {
        false => Ok(()),
        true => Err(Error::Usage {
            what: "--device-memory is for networks: linear models and trees stay on the host".into(),
            hint: "leave it out, or give a network: --model mlp".into(),
        }),
    }
}

/// Saves the model, and says so.
pub(super) fn keep(speaker: &Speaker, places: &Places, model: &Trained, report: &Report) -> Result<()> {
    model.save(&places.model, report)?;
    // The model says it all now; a checkpoint that stays is only untidy.
    let _ = std::fs::remove_dir_all(&places.checkpoint);
    let headline = report
        .metrics
        .first()
        .map(|metric| (metric.name.clone(), metric.value, metric.baseline));
    let headline = headline.or_else(|| {
        report
            .over_folds()
            .into_iter()
            .next()
            .map(|(name, mean, _)| (name, mean, None))
    });
    speaker.say(Event::Done(Done {
        model: Some(model.kind().into()),
        rows: Some(report.rows.used),
        metric_name: headline.as_ref().map(|(name, ..)| name.clone()),
        metric_value: headline.as_ref().map(|(_, value, _)| *value),
        baseline_value: headline.and_then(|(.., baseline)| baseline),
        ..Done::default()
    }));
    Ok(())
}

/// What came of a training.
pub(super) enum Trained {
    Model(Box<Model>),
    /// And what it is called.
    Network(Box<NetworkModel>, &'static str),
}

impl Trained {
    fn save(&self, folder: &Path, report: &Report) -> Result<()> {
        match self {
            Trained::Model(model) => model.save(folder, report)?,
            Trained::Network(network, _) => network.save(folder, report)?,
        }
        Ok(())
    }

    fn kind(&self) -> &'static str {
        match self {
            Trained::Model(model) => model.learned.kind(),
            Trained::Network(_, name) => name,
        }
    }
}

/// A table that has been looked at, and what the program takes for it.
struct Looked {
    table: Table,
    kind: ModelKind,
    fixed: [(String, u64); 2],
    held: Vec<Grant>,
    threads: usize,
}

/// What all trainings of a job have in common.
struct Site<'a> {
    speaker: &'a Speaker,
    job: &'a Job,
    budget: u64,
    /// What the program itself took when it began.
    runtime: u64,
}

impl Site<'_> {
    /// Trains one model; `None` when asked to stop. Says what columns become where `told`.
    fn train(&self, places: &Places, holdout: Holdout, told: bool) -> Result<Option<(Trained, Report)>> {
        let Site {
            speaker,
            job,
            budget,
            runtime,
        } = *self;
        let sampling = sampling_ledger(budget);
        let target = job.data.target.as_str();
        let source = Source::open(&job.data.paths, &job.source_options()?, &[target], &sampling)?;
        let mut table = Table::open(source, target, &job.table_options()?, &sampling)?;
        let (kind, why) = choose(job, &table);
        if told {
            describe(speaker, &table, kind, &why);
        }
        let threads = match kind == ModelKind::Linear && table.is_numeric() {
            // Without a fit the whole plan is known already, and so is the least budget.
            true => {
                let options = FitOptions {
                    threads: 1,
                    holdout,
                    seed: job.train.seed,
                    bytes: 0,
                };
                table.fit_encoders(purpose_of(kind), &options, &sampling)?;
                let asked = |error| match error {
                    TrainError::BudgetTooSmall { least, holders, .. } => TrainError::BudgetTooSmall {
                        least,
                        budget,
                        holders,
                    },
                    error => error,
                };
                let threads = job.threads();
                let planned =
                    |table: &Table| tidegate_train::linear::plan(table, threads, runtime, floor(budget));
                table.read_ahead_while(|table| planned(table).is_ok_and(|plan| plan.threads == threads));
                let plan = planned(&table).map_err(asked)?;
                if budget < FLOOR {
                    let (least, holders) = (FLOOR, plan.holders);
                    return Err(TrainError::BudgetTooSmall {
                        least,
                        budget,
                        holders,
                    }
                    .into());
                }
                plan.threads
            }
            false => threads_that_fit(&mut table, job.threads(), runtime, budget)?,
        };
        let fixed = [
            (RUNTIME.to_string(), runtime + threads as u64 * THREAD_BYTES),
            ("columns".to_string(), table.columns_bytes()),
        ];
        let ledger = Ledger::new(budget);
        let held = fixed.iter().map(|(name, bytes)| hold(&ledger, name, *bytes));
        let held = held.collect::<Result<Vec<Grant>>>()?;
        let looked = Looked {
            table,
            kind,
            fixed,
            held,
            threads,
        };
        let shrinking = Shrinking::of_table(&ledger, 0);
        let trained = watched(speaker, budget, Some(shrinking), || {
            self.fit_and_train(places, holdout, looked, &ledger, told)
        });
        match trained {
            // What was granted in time stays, so it is a stage to come that has no room any more.
            Err(error) if speaker.taken.explains(&error) => {
                speaker.stopped(0, 0, places.checkpoint.exists());
                Ok(None)
            }
            trained => trained,
        }
    }

    /// Fits the encoders, and trains the model.
    fn fit_and_train(
        &self,
        places: &Places,
        holdout: Holdout,
        looked: Looked,
        ledger: &Ledger,
        told: bool,
    ) -> Result<Option<(Trained, Report)>> {
        let Site {
            speaker,
            job,
            budget,
            runtime,
        } = *self;
        let Looked {
            mut table,
            kind,
            fixed,
            held,
            threads,
        } = looked;
        let free = ledger.free().saturating_sub(table.fit_needs(threads).bytes());
        let options = FitOptions {
            threads,
            holdout,
            seed: job.train.seed,
            // Half of what is left: the model and its buffers come later and need room too.
            bytes: free / 2,
        };
        let mut passing = Passing::before(speaker, ledger, "fit", table.source.bytes());
        let mut progress = |position: Position, rows| passing.tell(position.piece, position.consumed, rows);
        let Some(mut encoding) =
            table.fit_encoders_with(purpose_of(kind), &options, ledger, &mut progress)?
        else {
            speaker.stopped(0, 0, places.resume);
            return Ok(None);
        };
        give_freed_memory_back();
        let narrowed = match kind {
            ModelKind::Linear => {
                let (held_out, patient) = (!holdout.is_none(), job.train.patience.is_some());
                let least = |table: &Table| least_bytes(table, held_out, patient, runtime);
                linear::narrow(&mut table, &mut encoding, places, least, budget)?
            }
            _ => None,
        };
        if told {
            tell(speaker, &encoding);
        }
        let prepared = Prepared {
            speaker,
            job,
            places,
            table,
            changes: shared(&encoding).into_iter().chain(narrowed).collect(),
            encoding,
            ledger: ledger.clone(),
            // What was taken away meanwhile is not planned with.
            budget: ledger.budget(),
            fixed,
            held,
            holdout,
            threads,
            runtime,
        };
        let of_table = |(model, report)| (Trained::Model(Box::new(model)), report);
        match kind {
            ModelKind::Linear => Ok(linear::train(prepared)?.map(of_table)),
            ModelKind::Boost => Ok(boost::train(prepared)?.map(of_table)),
            _ => {
                let trained = rows::train(prepared)?;
                Ok(
                    trained
                        .map(|(network, name, report)| (Trained::Network(Box::new(network), name), report)),
                )
            }
        }
    }
}

pub(super) fn hold(ledger: &Ledger, name: &str, bytes: u64) -> Result<Grant> {
    let granted = ledger.holder(name).try_grant(bytes);
    Ok(granted.map(Grant::pin).map_err(|source| TrainError::Memory {
        what: "the program itself",
        source,
    })?)
}

/// What the first pass over the data takes, beside what the encoders come to.
fn needs_to_fit(table: &Table, threads: usize, runtime: u64) -> Vec<(String, u64)> {
    vec![
        (RUNTIME.to_string(), runtime + threads as u64 * THREAD_BYTES),
        ("columns".into(), table.columns_bytes()),
        (BUFFERS.into(), table.fit_needs(threads).bytes()),
    ]
}

/// The least that it takes, as long as the table reads ahead as it does.
pub(super) fn least_to_fit(table: &Table, runtime: u64) -> u64 {
    let needs = needs_to_fit(table, 1, runtime);
    needs.iter().map(|(_, bytes)| bytes).sum::<u64>().max(FLOOR)
}

/// As many threads as the first pass over the data has room for, which reads ahead as far as there is room for.
fn threads_that_fit(table: &mut Table, threads: usize, runtime: u64, budget: u64) -> Result<usize> {
    let needs = |table: &Table, threads: usize| needs_to_fit(table, threads, runtime);
    let total = |table: &Table, threads| {
        let needs = needs(table, threads);
        needs.iter().map(|(_, bytes)| bytes).sum::<u64>().max(FLOOR)
    };
    table.read_ahead_while(|table| total(table, threads.max(1)) <= budget);
    match (1..=threads.max(1))
        .rev()
        .find(|threads| total(table, *threads) <= budget)
    {
        Some(threads) => Ok(threads),
        None => Err(TrainError::BudgetTooSmall {
            least: total(table, 1),
            budget,
            holders: needs(table, 1),
        }
        .into()),
    }
}

/// What columns are encoded for.
fn purpose_of(kind: ModelKind) -> Purpose {
    match kind {
        ModelKind::Boost => Purpose::Trees,
        // Networks take what linear models do.
        _ => Purpose::Linear,
    }
}

/// The kind of model, and why where it was not asked for.
fn choose(job: &Job, table: &Table) -> (ModelKind, String) {
    if job.model.kind != ModelKind::Auto {
        return (job.model.kind, String::new());
    }
    let used = table
        .columns
        .iter()
        .filter(|column| column.judged.role.is_used())
        .count();
    let texts = table.count_roles(Role::Text);
    match texts > 0 && texts * 2 >= used {
        true => (
            ModelKind::Linear,
            format!("a linear model, for {texts} of {used} columns are texts, which trees do not take"),
        ),
        false => (
            ModelKind::Boost,
            "boosted trees, the best choice for most tables".into(),
        ),
    }
}

/// Says what is predicted and by what.
fn describe(speaker: &Speaker, table: &Table, kind: ModelKind, why: &str) {
    let target = &table.encoders.target;
    let task = match target.task() {
        TargetTask::Regression => "a number".to_string(),
        TargetTask::Binary => "one of two values".into(),
        TargetTask::Multiclass => format!("one of {} values", target.labels().len()),
    };
    let by = match kind {
        ModelKind::Linear => "a linear model",
        ModelKind::Boost | ModelKind::Auto => "boosted trees",
        _ => "a network",
    };
    let by = if why.is_empty() { by } else { why };
    let text = format!("predicting {:?}: {task}, by {by}", table.encoders.target_column);
    speaker.say(Event::Notice { text });
}

/// Says what every column becomes.
fn tell(speaker: &Speaker, encoding: &EncodingPlan) {
    let column = |planned: &tidegate_data::Planned| EncodedColumn {
        name: planned.name.clone(),
        role: planned.role.as_str().into(),
        distinct: planned.distinct,
        missing: planned.missing_share,
        encoding: planned.encoding.clone(),
        dense: planned.width.dense as u64,
        sparse: planned.width.sparse as u64,
        bytes_per_row: planned.bytes_per_row,
        why: planned.why.clone(),
    };
    speaker.say(Event::Encoding {
        columns: encoding.columns.iter().take(TOLD_COLUMNS).map(column).collect(),
        shape: encoding.shape(),
    });
}
