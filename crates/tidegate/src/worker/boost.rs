//! Boosted trees in the worker: plan, bin the table, grow, judge, keep.

mod plan;

use std::time::{Duration, Instant};

use tidegate_data::pack::{BinsPack, BinsWriter};
use tidegate_data::target::Task as TargetTask;
use tidegate_data::{PassOptions, Position, Table};
use tidegate_memory::give_freed_memory_back;
use tidegate_train::boost::{
    self, Blocks, FeatureBins, Forest, Growth, Objective, Options, Outcome, Permutation, Plan, Round, Rows,
    Settings, Shape, Trained, Training,
};
use tidegate_train::{
    EarlyStop, Error as TrainError, Event as Told, FeatureImportance, Learned, Model, Report, RowReport,
};
use tidegate_watch::{Event, Times};

use self::plan::{enough, followed, plan, scratch_grant};
use super::Speaker;
use super::pressure::{Shrinking, watched};
use super::relay::{About, Passing, Relay};
use super::times::units;
use super::train::{CHECKPOINT_EVERY, Prepared, end_dry, refuse_device};
use crate::{ClassWeights, Error, Growth as AskedGrowth, Job, Result};

/// Between two words on how far the importance of the columns is known.
const IMPORTANCE_TOLD_EVERY: Duration = Duration::from_millis(200);

/// The model and its report; `None` when asked to stop, which is said.
pub(super) fn train(mut prepared: Prepared) -> Result<Option<(Model, Report)>> {
    refuse_what_trees_do_not_know(prepared.job, &prepared.table)?;
    refuse_device(prepared.places)?;
    let (speaker, places) = (prepared.speaker, prepared.places);
    let features: Vec<FeatureBins> = std::mem::take(&mut prepared.encoding.cuts)
        .into_iter()
        .map(|column| match column.categories {
            Some(n) => FeatureBins::of_categories(&column.name, n),
            None => FeatureBins::new(&column.name, column.cuts),
        })
        .collect();
    let options = options(prepared.job, &prepared.table, &prepared.encoding.classes);
    let settings = Settings {
        options: options.clone(),
        data: prepared.table.source.fingerprint()?,
    };
    let begun = match places.resume {
        true => Some(boost::load_checkpoint(&places.checkpoint, &settings, &features)?),
        false => None,
    };
    let plan = plan(&mut prepared, &features, &options)?;
    if places.dry.is_some() {
        if let Some(times) = time(&prepared, &features, &options, &plan)? {
            speaker.say(Event::Times(times));
        }
        end_dry(speaker);
        return Ok(None);
    }
    let Some((mut rows, counts)) = rows(&prepared, &features, &plan)? else {
        // Nothing is lost but the reading: the checkpoint, if there is one, is that of the run before.
        let epoch = begun.as_ref().map_or(0, Forest::n_rounds) as u32;
        speaker.stopped(epoch, 0, begun.is_some());
        return Ok(None);
    };
    prepared.table.release_folds();
    give_freed_memory_back();
    let (job, budget, ledger) = (prepared.job, prepared.budget, prepared.ledger.clone());
    let mut relay = Relay::new(speaker, &ledger, About::table(&prepared.table), "boost");
    for text in counts.warnings() {
        relay.tell(Told::Warning { text, error: None });
    }
    let scratch = places.checkpoint.parent().unwrap_or(&places.checkpoint);
    let _in_memory = scratch_grant(scratch, plan.streamed(&options).state, &ledger)?;
    let plan = followed(plan, &mut rows, &options, scratch, &ledger)?;
    let beside = ledger.used().saturating_sub(rows.bytes());
    let shrinking = Shrinking::of_table(&ledger, beside + plan.least(&options).total());
    let training = Training {
        blocks: &mut rows,
        features: &features,
        options: &options,
        plan: &plan,
        ledger: &ledger,
        scratch,
        stop: speaker.stop,
    };
    let n_rows = plan.shape.n_rows as u64;
    let mut saved = Instant::now();
    let mut unsaved: Option<TrainError> = None;
    let mut on_round = |round: Round<'_>| {
        relay.tell(Told::Progress {
            epoch: round.round as u32,
            epochs: options.trees as u32,
            step: round.round as u64,
            consumed: round.round as u64 * n_rows,
            total: options.trees as u64 * n_rows,
            rows: round.round as u64 * n_rows,
            loss: Some(round.held_out_loss.unwrap_or(round.training_loss)),
            fed: None,
        });
        relay.metric(round.round as u32, "training_loss", round.training_loss);
        if let Some(loss) = round.held_out_loss {
            relay.metric(round.round as u32, "held_out_loss", loss);
        }
        if places.keep && saved.elapsed() >= CHECKPOINT_EVERY {
            saved = Instant::now();
            match boost::save_checkpoint(&places.checkpoint, &settings, round.forest) {
                Ok(()) => relay.tell(Told::Checkpoint {
                    epoch: round.round as u32,
                    step: round.round as u64,
                }),
                Err(error) => unsaved = Some(error),
            }
        }
    };
    let outcome = watched(speaker, budget, Some(shrinking), || {
        boost::train(training, begun.as_ref(), &mut on_round)
    })?;
    if let Some(error) = unsaved {
        let text = "a checkpoint could not be written".into();
        relay.tell(Told::Warning {
            text,
            error: Some(error),
        });
    }
    let mut stopped = |forest: Option<&Forest>| -> Result<Option<(Model, Report)>> {
        let epoch = forest.map_or(0, Forest::n_rounds) as u32;
        let kept = match forest.filter(|_| places.keep) {
            Some(forest) => boost::save_checkpoint(&places.checkpoint, &settings, forest).map(|()| true),
            None => Ok(false),
        };
        let enough = enough(&mut prepared, &features, &options, speaker.taken.left());
        speaker.stopped_with(epoch, epoch.into(), matches!(kept, Ok(true)), enough);
        kept?;
        Ok(None)
    };
    match outcome {
        Outcome::Stopped(forest) => stopped(forest.as_deref()),
        Outcome::Done(trained) => {
            // Of what was taken away nothing came back, and columns are to be judged all the same.
            let needs = boost::permutation_bytes(&plan.shape, options.objective.n_outputs());
            if ledger.budget() < budget && ledger.free() < needs {
                rows.keep(0, 0, scratch)?;
            }
            let permutation = Permutation {
                blocks: &rows,
                seed: job.train.seed,
                threads: plan.threads,
                ledger: &ledger,
                stop: speaker.stop,
            };
            let Some(importance) = importance(&trained.forest, &permutation, speaker)? else {
                return stopped(Some(&trained.forest));
            };
            speaker.ledger(&ledger);
            drop(rows);
            let report = report(&prepared.table, &trained, counts, importance);
            let model = Model {
                encoders: prepared.table.encoders.clone(),
                learned: Learned::Boost(trained.forest),
            };
            Ok(Some((model, report)))
        }
    }
}

/// Options of other models must not be dropped without a word.
fn refuse_what_trees_do_not_know(job: &Job, table: &Table) -> Result<()> {
    let refused = |what: &str, hint: &str| {
        Err(Error::Usage {
            what: what.into(),
            hint: hint.into(),
        })
    };
    if job.model.l1 > 0.0 {
        return refused(
            "--l1 is a penalty of linear models",
            "leave it out, or give --model linear; --l2 is for trees too",
        );
    }
    if job.model.class_weights.is_some() && table.encoders.target.labels().is_empty() {
        return refused(
            "--class-weights is for targets of classes, and this one is a number",
            "leave it out",
        );
    }
    Ok(())
}

fn options(job: &Job, table: &Table, classes: &[u64]) -> Options {
    let objective = match table.encoders.target.task() {
        TargetTask::Regression => Objective::Squared,
        TargetTask::Binary => Objective::Logistic,
        TargetTask::Multiclass => Objective::Softmax(table.encoders.target.labels().len()),
    };
    let model = &job.model;
    let rows: u64 = classes.iter().sum();
    let balanced = |n: &u64| (rows as f64 / (classes.len() as f64 * (*n).max(1) as f64)) as f32;
    Options {
        trees: model.trees as usize,
        depth: model.depth as usize,
        leaves: model.leaves.map(|leaves| leaves as usize),
        growth: match model.growth {
            AskedGrowth::Depth => Growth::Depth,
            AskedGrowth::Leaf => Growth::Leaf,
        },
        learning_rate: model.learning_rate(),
        l2: model.l2,
        min_child_weight: model.min_child_weight,
        row_sample: model.row_sample,
        column_sample: model.column_sample,
        early_stopping: job.train.patience.map(|patience| patience as usize),
        class_weights: match model.class_weights {
            Some(ClassWeights::Balanced) if !classes.is_empty() => {
                Some(classes.iter().map(balanced).collect())
            }
            _ => None,
        },
        seed: job.train.seed,
        ..Options::new(objective)
    }
}

/// Trees are timed over so many rows at the most, after one that warms up.
const TIMED_ROWS: usize = 8 * boost::BLOCK_ROWS;
const TIMED_TREES: usize = 3;

/// Grows some trees over the first rows to know how long they take; `None` where there is no room for that beside what
/// reads them. Nothing of it is kept.
fn time(
    prepared: &Prepared,
    features: &[FeatureBins],
    options: &Options,
    plan: &Plan,
) -> Result<Option<Times>> {
    let (speaker, ledger) = (prepared.speaker, &prepared.ledger);
    let shape = Shape {
        n_rows: plan.shape.n_rows.min(TIMED_ROWS),
        ..plan.shape
    };
    let few = Options {
        trees: 1 + TIMED_TREES.min(options.trees),
        early_stopping: None,
        ..options.clone()
    };
    let reading = prepared.table.pass_needs(prepared.threads).bytes();
    let free = ledger.free().saturating_sub(reading);
    let short = Shape {
        rows_at_most: u64::MAX,
        ..shape
    };
    let Ok(sample) = boost::plan(&short, &few, plan.threads, free) else {
        return Ok(None);
    };
    if sample.streamed(&few).rows + sample.streamed(&few).state > 0 {
        return Ok(None);
    }
    let passing = PassOptions {
        threads: prepared.threads,
        holdout: prepared.holdout,
        start: None,
    };
    let mut rows = boost::first_rows(&prepared.table, features, &shape, &passing, ledger)?;
    let training = Training {
        blocks: &mut rows,
        features,
        options: &few,
        plan: &sample,
        ledger,
        scratch: &prepared.places.checkpoint,
        stop: speaker.stop,
    };
    let (mut warm, mut timed) = (None, None);
    boost::train(training, None, &mut |round| match warm {
        None => warm = Some(Instant::now()),
        Some(warm) => timed = Some((round.round - 1, warm.elapsed())),
    })?;
    let (one, all) = units("boost");
    let streams = !plan.rows_fit();
    Ok(timed.map(|(trees, took)| {
        let times_as_many = plan.shape.n_rows as f64 / shape.n_rows as f64;
        let tree = took.as_secs_f64() / trees as f64 * times_as_many;
        Times {
            step: one.into(),
            epoch: all.into(),
            step_seconds: Some(tree),
            epoch_seconds: Some(tree * options.trees as f64),
            basis: format!(
                "by {trees} trees over {} rows{}",
                shape.n_rows,
                if streams {
                    " in memory; the disk is not counted"
                } else {
                    ""
                }
            ),
        }
    }))
}

/// Bins the table, or takes it binned from a pack; `None` when asked to stop meanwhile.
fn rows(prepared: &Prepared, features: &[FeatureBins], plan: &Plan) -> Result<Option<(Rows, RowReport)>> {
    let (speaker, ledger) = (prepared.speaker, &prepared.ledger);
    let all_fit = plan.rows_fit();
    if !all_fit && !prepared.job.train.pack {
        return Err(TrainError::RowsDoNotFit {
            needed: plan.bytes_of_all_rows(),
            planned: plan.bytes(boost::ROWS),
        }
        .into());
    }
    let mut writer = None;
    if !all_fit {
        let options = prepared.pack_options();
        let holder = ledger.holder("pack");
        match BinsPack::open(&options.store, options.key, features.len(), &holder) {
            Ok(Some(pack)) if Rows::fits(&pack, &plan.shape) => {
                let text = format!("using the pack {}", options.key);
                speaker.say(Event::Notice { text });
                let rows = Rows::from_pack(pack, plan, ledger)?;
                return Ok(Some((rows, prepared.counted())));
            }
            Ok(Some(_)) => {
                // Of other rows, or in other blocks: it would stand in the way.
                let removed = options.store.remove(options.key);
                removed.map_err(TrainError::Data)?;
            }
            Ok(None) => {}
            Err(problem) => speaker.say(Event::Warning {
                text: problem.to_string(),
            }),
        }
        let made = BinsWriter::create(&options, features.len(), &holder);
        writer = Some(made.map_err(|problem| TrainError::Data(problem.into()))?);
    }
    let options = PassOptions {
        threads: prepared.threads,
        holdout: prepared.holdout,
        start: None,
    };
    let mut passing = Passing::before(speaker, ledger, "encode", prepared.table.source.bytes());
    let progress = |position: Position, rows| passing.tell(position.piece, position.consumed, rows);
    let filled = boost::fill(
        &prepared.table,
        features,
        plan,
        writer,
        &options,
        ledger,
        progress,
    )?;
    Ok(filled.map(|(rows, counts)| {
        let mut report = RowReport::default();
        report.add(&counts);
        (rows, report)
    }))
}

/// What the trees made of each column, and what shuffling it costs where rows are held out; `None` when asked to stop.
fn importance(
    forest: &Forest,
    permutation: &Permutation,
    speaker: &Speaker,
) -> Result<Option<Vec<FeatureImportance>>> {
    let (n_features, mut told) = (forest.features.len() as u64, Instant::now());
    let permuted = boost::permutation_importance(forest, permutation, &mut |done| {
        if told.elapsed() < IMPORTANCE_TOLD_EVERY {
            return;
        }
        told = Instant::now();
        speaker.say(Event::Progress {
            epoch: 0,
            epochs: 0,
            step: done as u64,
            done_bytes: done as u64,
            total_bytes: Some(n_features),
            rows: 0,
            rows_per_second: 0.0,
            loss: None,
            phase: Some("importance".into()),
            stall: None,
            bottleneck: None,
        });
    });
    let permuted = match permuted {
        Ok(Some(permuted)) => permuted,
        Ok(None) => return Ok(None),
        // The trees are grown, and what they gained is known: no reason to lose them.
        Err(error @ TrainError::Memory { .. }) => {
            let text = format!("columns are not shuffled to see what they are worth: {error}");
            speaker.say(Event::Warning { text });
            Vec::new()
        }
        Err(error) => return Err(error.into()),
    };
    let mut all: Vec<FeatureImportance> = forest
        .importance()
        .into_iter()
        .enumerate()
        .map(|(i, found)| FeatureImportance {
            feature: found.feature,
            gain: found.gain,
            splits: found.splits,
            permutation: permuted.get(i).map(|permuted| permuted.rise),
        })
        .collect();
    all.sort_by(|a, b| b.gain.total_cmp(&a.gain));
    Ok(Some(all))
}

fn report(table: &Table, trained: &Trained, rows: RowReport, importance: Vec<FeatureImportance>) -> Report {
    let labels = table.encoders.target.labels();
    let best = trained.forest.n_rounds();
    let early_stop = trained
        .held_out_loss
        .filter(|_| best < trained.rounds)
        .map(|loss| EarlyStop {
            best_epoch: best as u32,
            epochs: trained.rounds as u32,
            loss,
        });
    let report = Report {
        metrics: Vec::new(),
        classes: labels.iter().map(|label| label.text.clone()).collect(),
        confusion: Vec::new(),
        by_class: Vec::new(),
        calibration: Vec::new(),
        residuals: None,
        rows,
        epochs: best as u32,
        converged: early_stop.is_some(),
        early_stop,
        training_loss: trained.training_loss,
        weights: Vec::new(),
        importance,
        folds: Vec::new(),
        fed: Vec::new(),
        mistakes: Vec::new(),
        skipped_steps: 0,
    };
    report.with_quality(trained.quality.clone())
}
