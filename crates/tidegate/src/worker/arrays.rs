//! Arrays in the worker: open, choose a network, train it; and predict.

use std::cell::Cell;
use std::path::Path;

use tidegate_data::Holdout;
use tidegate_data::arrays::{
    ArrayOptions, ArraySource, Keep, LabelOptions, LabelTask, Labels, LabelsFrom, Part,
};
use tidegate_data::target::Task as TargetTask;
use tidegate_memory::Ledger;
use tidegate_train::RUNTIME;
use tidegate_train::network::{self, Design, Layer, NetworkModel, Preset, Scaling, Shape};
use tidegate_watch::Event;

use super::destination::{Columns, Output};
use super::network::{Foresight, Training, asked};
use super::predict::end;
use super::relay::{About, Passing};
use super::train::{Places, Trained, hold, keep};
use super::{FLOOR, Speaker, default_threads, runtime_bytes};
use crate::{Error, Job, KeepAs, ModelKind, PredictJob, Predicted, Result};

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
    let mut source = ArraySource::open(path, &array_options(job), &ledger)?;
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
    let (mut validation, holdout) = validation(speaker, job, &source, &labels, &ledger)?;
    if job.data.keep == KeepAs::F16 {
        narrow(speaker, &mut source, validation.as_mut());
    }
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
        images: None,
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
        about: About::samples(job, &source),
        name,
        design,
        source,
        validation,
        holdout,
        usual_batch: USUAL_BATCH,
        foresight: Foresight::default(),
    }
    .run()?;
    let Some((model, report)) = trained else {
        return Ok(());
    };
    keep(speaker, places, &Trained::Network(Box::new(model), name), &report)
}

/// Keeps samples as halves, or says that there is nothing to gain by it.
fn narrow(speaker: &Speaker, source: &mut ArraySource, validation: Option<&mut ArraySource>) {
    if let Some(validation) = validation {
        validation.narrow();
    }
    let element = source.element();
    if !source.narrow() {
        let text = format!(
            "samples are {} and take no less room as f16: they are kept as they are",
            element.name()
        );
        speaker.say(Event::Notice { text });
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
        below: job.data.below.clone(),
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
pub(super) fn layers(job: &Job, source: &ArraySource) -> Result<(Vec<Layer>, &'static str)> {
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
            (preset.layers(&input), preset.name())
        }
    };
    network::freeze(&mut layers, &job.model.freeze)?;
    Ok((layers, name))
}

/// Says what is predicted and by what.
pub(super) fn describe(speaker: &Speaker, source: &ArraySource, design: &Design, name: &str) {
    let task = match &design.labels {
        Labels::One(target) => match target.task() {
            TargetTask::Regression => "a number".to_string(),
            TargetTask::Binary => "one of two values".into(),
            TargetTask::Multiclass => format!("one of {} classes", target.labels().len()),
        },
        Labels::Flags { width, .. } => format!("{width} flags"),
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
    let columns = columns(&design, "sample");
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
    let rows = Cell::new(0u64);
    let (bytes, n_samples) = (source.bytes(), source.n_samples().max(1));
    let mut passing = Passing::predicting(speaker, bytes);
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
        |done| passing.tell(done, (bytes as f64 * done as f64 / n_samples as f64) as u64, done),
    );
    end(speaker, predicted, output, rows.get(), bytes, |()| Predicted {
        files: 1,
        ..Predicted::default()
    })
}

/// What a table of predictions has.
pub(super) fn columns(design: &Design, place: &'static str) -> Columns {
    let labels = design
        .labels
        .classes()
        .iter()
        .map(|label| label.text.clone())
        .collect();
    let several = match &design.labels {
        Labels::One(_) => Vec::new(),
        Labels::Flags { width, names } if names.is_empty() => {
            (0..*width).map(|i| format!("probability_{i}")).collect()
        }
        Labels::Flags { names, .. } => names.iter().map(|name| format!("probability_{name}")).collect(),
        Labels::Numbers { scales } => (0..scales.len()).map(|i| format!("prediction_{i}")).collect(),
    };
    Columns {
        files: None,
        place,
        named: place == "file",
        labels,
        several,
    }
}
