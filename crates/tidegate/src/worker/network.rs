//! Networks over arrays in the worker: open, choose, plan, train, keep the model; and predict.

use std::cell::Cell;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::Ordering;

use tidegate_data::Holdout;
use tidegate_data::arrays::{
    ArrayOptions, ArraySource, Keep, Kept, LabelOptions, LabelTask, Labels, LabelsFrom, Part,
};
use tidegate_data::target::Task as TargetTask;
use tidegate_memory::{Ledger, format_bytes};
use tidegate_train::network::{
    self, Design, Layer, Loss, NetworkModel, Options, Outcome, Planned, Preset, Samples, Scaling, Shape,
};
use tidegate_train::{Checkpoint, Error as TrainError, RUNTIME, Report};
use tidegate_watch::{Done, Event};

use super::destination::{Columns, Output};
use super::relay::{About, Relay};
use super::train::{CHECKPOINT_EVERY, Places, hold};
use super::{FLOOR, Rate, Speaker, default_threads, runtime_bytes};
use crate::{ClassWeights, Error, Job, ModelKind, PredictJob, Predicted, Result};

/// Samples of a batch.
const USUAL_BATCH: usize = 64;

/// Whether the data of a job is arrays.
pub(super) fn takes(job: &Job) -> bool {
    matches!(job.data.paths.as_slice(), [path] if tidegate_data::arrays::are_arrays(path))
}

pub(super) fn train(speaker: &Speaker, job: &Job, budget: u64, places: &Places) -> Result<()> {
    let ledger = Ledger::new(budget);
    let runtime = runtime_bytes(budget);
    let _program = hold(&ledger, RUNTIME, runtime)?;
    let path = &job.data.paths[0];
    let source = ArraySource::open(path, &array_options(job), &ledger)?;
    let Some(labels) = source.labels().cloned() else {
        return Err(Error::Usage {
            what: format!("{}: there are no labels to learn", path.display()),
            hint: "name them: --target y.npy, or a key of the archive".into(),
        });
    };
    if job.train.folds.is_some() {
        return Err(Error::Usage {
            what: "--folds is for tables".into(),
            hint: "judge a network over arrays by --holdout or --validation".into(),
        });
    }
    let (validation, holdout) = validation(speaker, job, &source, &labels, &ledger)?;
    let (layers, name) = layers(job, &source)?;
    let part = if holdout.is_none() {
        Part::All
    } else {
        Part::Training(holdout)
    };
    let input = network::input_shape(&source, given_layers(job));
    let design = Design {
        sample: source.shape().to_vec(),
        scaling: Scaling::choose(&source, &layers, &input, part, job.train.seed, &ledger)?,
        input: input.0,
        labels,
        layers,
    };
    describe(speaker, &source, &design, name);
    // What arrays hold already: headers, names and labels.
    let arrays = ledger.used().saturating_sub(runtime);
    let trained = Training {
        speaker,
        job,
        places,
        ledger: &ledger,
        budget,
        held: vec![(RUNTIME.to_string(), runtime), ("arrays".to_string(), arrays)],
        about: About {
            target: Some(job.data.target.clone()).filter(|target| !target.is_empty()),
            rows: Some(source.n_samples()),
            bytes: source.bytes(),
        },
        name,
        design,
        source,
        validation,
        holdout,
        usual_batch: USUAL_BATCH,
    }
    .run()?;
    let Some((model, report)) = trained else {
        return Ok(());
    };
    model.save(&places.model, &report)?;
    // The model says it all now; a checkpoint that stays is only untidy.
    let _ = std::fs::remove_dir_all(&places.checkpoint);
    let headline = report.metrics.first();
    speaker.say(Event::Done(Done {
        model: Some(name.into()),
        rows: Some(report.rows.used),
        metric_name: headline.map(|metric| metric.name.clone()),
        metric_value: headline.map(|metric| metric.value),
        baseline_value: headline.and_then(|metric| metric.baseline),
        ..Done::default()
    }));
    Ok(())
}

/// A network about to be trained.
pub(super) struct Training<'a> {
    pub speaker: &'a Speaker,
    pub job: &'a Job,
    pub places: &'a Places,
    pub ledger: &'a Ledger,
    pub budget: u64,
    /// What is granted already, threads not included.
    pub held: Vec<(String, u64)>,
    pub about: About,
    pub name: &'static str,
    pub design: Design,
    pub source: ArraySource,
    pub validation: Option<ArraySource>,
    pub holdout: Holdout,
    /// Samples at a time, where nothing else was asked for.
    pub usual_batch: usize,
}

impl Training<'_> {
    /// Plans, says so, and trains; `None` when asked to stop, which is said.
    pub(super) fn run(self) -> Result<Option<(NetworkModel, Report)>> {
        let Training {
            speaker,
            job,
            places,
            ledger,
            budget,
            design,
            mut source,
            mut validation,
            ..
        } = self;
        let options = options(job, places, &source, &design, self.holdout, self.usual_batch)?;
        let planned = network::plan(
            &design,
            &source,
            validation.as_ref(),
            &options,
            job.threads(),
            &self.held,
            budget.max(FLOOR),
        )
        .map_err(|error| asked(error, budget))?;
        tell_of_program(speaker, &planned);
        let threads = planned.plan.threads as u64 * tidegate_train::THREAD_BYTES;
        let _threads = hold(ledger, RUNTIME, threads)?;
        let kept = source.keep(&planned.keep, ledger)?;
        if kept == Kept::Unpacked {
            let text =
                "the arrays are compressed and larger than the memory: they were unpacked on disk".into();
            speaker.say(Event::Notice { text });
        }
        if let Some(validation) = &mut validation {
            validation.keep(&planned.keep_validation, ledger)?;
        }
        let resume = places
            .resume
            .then(|| Checkpoint::load(&places.checkpoint))
            .transpose()?;
        let mut relay = Relay {
            speaker,
            ledger,
            about: self.about,
            kind: self.name,
            rate: Rate::new(),
        };
        let samples = Samples {
            training: &source,
            validation: validation.as_ref(),
        };
        let mut sink = |event| relay.tell(event);
        let outcome = network::train(
            &design,
            &samples,
            &options,
            planned,
            ledger,
            resume.as_ref(),
            speaker.stop,
            &mut sink,
        )?;
        speaker.ledger(ledger);
        match outcome {
            Outcome::Done(done) => Ok(Some(*done)),
            Outcome::Stopped { epoch, checkpoint } => {
                speaker.say(Event::Stopped {
                    epoch,
                    step: 0,
                    checkpoint,
                });
                Ok(None)
            }
        }
    }
}

/// Says what the program is, and what its arena holds.
fn tell_of_program(speaker: &Speaker, planned: &Planned) {
    let summary = planned.program.shares();
    let parts: Vec<String> = summary
        .iter()
        .map(|share| format!("{} {}", share.name, format_bytes(share.bytes)))
        .collect();
    let (learned, fixed) = planned.program.n_weights();
    let of_them = match fixed {
        0 => String::new(),
        _ => format!(", {learned} of them learned"),
    };
    let text = format!(
        "the network has {} weights{of_them}; its arena takes {}: {}",
        learned + fixed,
        format_bytes(planned.program.bytes()),
        parts.join(" · ")
    );
    speaker.say(Event::Notice { text });
}

/// A refusal in the terms of the budget that was asked for.
fn asked(error: TrainError, budget: u64) -> TrainError {
    match error {
        TrainError::BudgetTooSmall { least, holders, .. } => TrainError::BudgetTooSmall {
            least: least.max(FLOOR),
            budget,
            holders,
        },
        error => error,
    }
}

fn array_options(job: &Job) -> ArrayOptions {
    ArrayOptions {
        samples: job.data.samples.clone(),
        labels_from: match job.data.target.as_str() {
            "" => LabelsFrom::Found,
            name => LabelsFrom::Named(name.into()),
        },
        labels: LabelOptions {
            task: job.model.task.map(LabelTask::from),
            n_classes: network::units_at_the_end(&job.model.layers).filter(|units| *units > 2),
            known: None,
        },
    }
}

/// The samples that judge, if they are others, and what is held out if not.
fn validation(
    speaker: &Speaker,
    job: &Job,
    source: &ArraySource,
    labels: &Labels,
    ledger: &Ledger,
) -> Result<(Option<ArraySource>, Holdout)> {
    let nothing = Holdout::new(0.0, job.train.seed);
    let held_out = Holdout::new(job.data.holdout, job.train.seed);
    let opened = match &job.data.validation {
        Some(path) => {
            let mut options = array_options(job);
            options.labels.known = Some(labels.clone());
            // The training's array of samples and labels may go by other names there.
            options.samples = None;
            options.labels_from = LabelsFrom::Found;
            Some(ArraySource::open(path, &options, ledger)?)
        }
        // Samples that stand beside for a test are for the end: patience would learn from them.
        None if source.has_test() && job.train.patience.is_none() => source.open_test(ledger)?,
        None => None,
    };
    let Some(validation) = opened else {
        return Ok((None, held_out));
    };
    if validation.shape() != source.shape() {
        return Err(Error::Usage {
            what: format!(
                "{}: its samples are {} and those to learn from {}",
                validation.path().display(),
                Shape(validation.shape().to_vec()),
                Shape(source.shape().to_vec())
            ),
            hint: "give samples of the same shape to --validation".into(),
        });
    }
    if job.data.validation.is_none() {
        speaker.say(Event::Notice {
            text: format!(
                "judged by the {} samples of the test beside; all others are learned from",
                validation.n_samples()
            ),
        });
    }
    Ok((Some(validation), nothing))
}

fn given_layers(job: &Job) -> Option<&[Layer]> {
    match job.model.kind {
        ModelKind::Network => Some(&job.model.layers),
        ModelKind::Mlp => Some(&[]),
        _ => None,
    }
}

/// The layers of the network, and what it is called.
fn layers(job: &Job, source: &ArraySource) -> Result<(Vec<Layer>, &'static str)> {
    let input = network::input_shape(source, given_layers(job));
    let (mut layers, name) = match job.model.kind {
        ModelKind::Network => (job.model.layers.clone(), "network"),
        ModelKind::Linear | ModelKind::Boost => {
            return Err(Error::Usage {
                what: format!(
                    "{}: a {} model is for tables",
                    source.path().display(),
                    job.model.kind.as_str()
                ),
                hint: "arrays are learned by networks: --model mlp, cnn, resnet18 or mobilenet".into(),
            });
        }
        kind => {
            let preset = kind.preset().unwrap_or_else(|| Preset::for_samples(&input));
            let name = match preset {
                Preset::Mlp => "mlp",
                Preset::Cnn => "cnn",
                Preset::Resnet18 => "resnet18",
                Preset::Mobilenet => "mobilenet",
            };
            (preset.layers(&input), name)
        }
    };
    network::freeze(&mut layers, &job.model.freeze)?;
    Ok((layers, name))
}

fn options(
    job: &Job,
    places: &Places,
    source: &ArraySource,
    design: &Design,
    holdout: Holdout,
    usual_batch: usize,
) -> Result<Options> {
    let train = &job.train;
    let mut loss = train.loss.clone().unwrap_or_else(|| design.loss());
    if !design.takes(&loss) {
        let labels = match design.loss() {
            Loss::Mse => "numbers",
            Loss::CrossEntropy { .. } => "classes",
            _ => "two values",
        };
        let loss = serde_json::to_value(&loss)
            .ok()
            .and_then(|value| value["kind"].as_str().map(String::from));
        return Err(TrainError::OtherLoss {
            loss: loss.unwrap_or_default(),
            labels,
        }
        .into());
    }
    let weights = match job.model.class_weights {
        Some(ClassWeights::Balanced) => network::balanced(source, holdout),
        None => Vec::new(),
    };
    if job.model.class_weights.is_some() && weights.is_empty() {
        return Err(TrainError::ClassWeights { classes: 0 }.into());
    }
    match &mut loss {
        Loss::CrossEntropy {
            smoothing,
            class_weights,
        } => {
            *smoothing = train.smoothing.map_or(*smoothing, |asked| asked as f32);
            // A loss that was asked for may bring its own.
            if !weights.is_empty() {
                *class_weights = weights;
            }
        }
        _ if train.smoothing.is_some() => {
            return Err(Error::Usage {
                what: "--smoothing is for three classes or more".into(),
                hint: "leave it out".into(),
            });
        }
        Loss::Binary { class_weights } if !weights.is_empty() => *class_weights = weights,
        _ => {}
    }
    Ok(Options {
        loss: Some(loss),
        rule: train.optimizer,
        rate: job.model.learning_rate.unwrap_or(0.001),
        schedule: train.schedule(),
        warm_up: train.warm_up,
        clip: train.clip.map(|clip| clip as f32),
        epochs: train.epochs,
        // No larger than there is anything to fill it with.
        batch: train
            .batch
            .unwrap_or(usual_batch)
            .min(source.n_samples().max(1) as usize),
        accumulate: train.accumulate as u32,
        patience: train.patience,
        holdout,
        seed: train.seed,
        weights: job.model.weights.clone(),
        checkpoint: places.keep.then(|| places.checkpoint.clone()),
        checkpoint_every: CHECKPOINT_EVERY,
        unpacked: Some(places.packs.clone()),
        map: job.data.map,
    })
}

/// Says what is predicted and by what.
fn describe(speaker: &Speaker, source: &ArraySource, design: &Design, name: &str) {
    let task = match &design.labels {
        Labels::One(target) => match target.task() {
            TargetTask::Regression => "a number".to_string(),
            TargetTask::Binary => "one of two values".into(),
            TargetTask::Multiclass => format!("one of {} classes", target.labels().len()),
        },
        Labels::Flags { width } => format!("{width} flags"),
        Labels::Numbers { scales } => format!("{} numbers", scales.len()),
    };
    let text = format!(
        "predicting {task} of {} samples of {} ({}), by a network ({name})",
        source.n_samples(),
        Shape(design.input.clone()),
        source.element().name()
    );
    speaker.say(Event::Notice { text });
}

pub(super) fn predict(
    speaker: &Speaker,
    job: &PredictJob,
    budget: u64,
    folder: &Path,
    packs: &Path,
) -> Result<()> {
    let design = NetworkModel::load_design(folder)?;
    let ledger = Ledger::new(budget);
    let runtime = runtime_bytes(budget);
    let _program = hold(&ledger, RUNTIME, runtime)?;
    let [path] = job.data.as_slice() else {
        return Err(Error::Usage {
            what: "a network predicts one array at a time".into(),
            hint: "name one file or one folder".into(),
        });
    };
    let options = ArrayOptions {
        labels_from: LabelsFrom::Nowhere,
        ..ArrayOptions::default()
    };
    let mut source = ArraySource::open(path, &options, &ledger)?;
    if source.shape() != design.sample.as_slice() {
        return Err(Error::Usage {
            what: format!(
                "{}: its samples are {} and the model takes {}",
                path.display(),
                Shape(source.shape().to_vec()),
                Shape(design.sample.clone())
            ),
            hint: "give samples of the shape that it was trained on".into(),
        });
    }
    let columns = columns(&design);
    let format = job.format();
    let output = Output::bytes(format, &columns, source.n_samples());
    let arrays = ledger.used().saturating_sub(runtime);
    let held = [
        (RUNTIME.to_string(), runtime),
        ("arrays".to_string(), arrays),
        ("output".to_string(), output),
    ];
    let threads = job.threads.unwrap_or_else(default_threads);
    let plan = |memory: u64| {
        let keep = Keep {
            memory,
            folder: Some(packs.into()),
            map: false,
        };
        network::predict_plan(&design, &source, threads, &keep, &held, budget.max(FLOOR))
    };
    // What is compressed is unpacked into memory where it fits, and on disk otherwise.
    let planned = match source.is_packed() {
        true => plan(u64::MAX).or_else(|_| plan(0)),
        false => plan(0),
    };
    let planned = planned.map_err(|error| asked(error, budget))?;
    let _threads = hold(
        &ledger,
        RUNTIME,
        planned.plan.threads as u64 * tidegate_train::THREAD_BYTES,
    )?;
    source.keep(&planned.keep, &ledger)?;
    let mut output = Output::open(job.output.as_deref(), format, columns, &ledger)?;
    let (rows, mut rate) = (Cell::new(0u64), Rate::new());
    let (bytes, n_samples) = (source.bytes(), source.n_samples().max(1));
    let predicted = network::predict(
        &design,
        folder,
        &source,
        planned,
        &ledger,
        |prediction| {
            rows.set(rows.get() + 1);
            output.write(prediction)
        },
        |done| {
            speaker.say(Event::Progress {
                epoch: 1,
                epochs: 1,
                step: done,
                done_bytes: (bytes as f64 * done as f64 / n_samples as f64) as u64,
                total_bytes: Some(bytes),
                rows: done,
                rows_per_second: rate.at(1, done),
                loss: None,
                phase: Some("predict".into()),
            });
            match speaker.stop.load(Ordering::Relaxed) {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    );
    let stopped = speaker.stop.load(Ordering::Relaxed);
    let finished = predicted.and_then(|()| match stopped {
        true => Ok(()),
        false => output.finish(),
    });
    match finished {
        // Whoever read our output has read enough: `tidegate predict … | head`.
        Err(TrainError::Write { source, .. }) if source.kind() == io::ErrorKind::BrokenPipe => {}
        finished => finished?,
    }
    let rows = rows.get();
    if stopped {
        speaker.say(Event::Stopped {
            epoch: 1,
            step: rows,
            checkpoint: false,
        });
        return Ok(());
    }
    let report = Predicted {
        rows,
        files: 1,
        ..Predicted::default()
    };
    speaker.say(Event::Done(Done {
        rows: Some(rows),
        data_bytes: Some(bytes),
        details: serde_json::to_value(report).expect("plain data"),
        ..Done::default()
    }));
    Ok(())
}

/// What a table of predictions has.
fn columns(design: &Design) -> Columns {
    let labels = design
        .labels
        .classes()
        .iter()
        .map(|label| label.text.clone())
        .collect();
    let several = match &design.labels {
        Labels::One(_) => Vec::new(),
        Labels::Flags { width } => (0..*width).map(|i| format!("probability_{i}")).collect(),
        Labels::Numbers { scales } => (0..scales.len()).map(|i| format!("prediction_{i}")).collect(),
    };
    Columns {
        files: None,
        place: "sample",
        labels,
        several,
    }
}
