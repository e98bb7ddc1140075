//! Images in the worker: look at them, keep them resized, train a network; and predict.

use std::cell::Cell;
use std::path::Path;

use tidegate_data::Holdout;
use tidegate_data::arrays::{ArraySource, Keep, LabelOptions, LabelTask, Labels};
use tidegate_data::images::{
    self, BadFiles, ImageForm, ImageOptions, JudgedImages, LeftOut, OpenedImages, PackNeeds, PackedImages,
    Survey,
};
use tidegate_data::pack::PackStore;
use tidegate_memory::{Ledger, format_bytes};
use tidegate_train::RUNTIME;
use tidegate_train::network::{self, Design, NetworkModel, Scaling};
use tidegate_watch::Event;

use super::arrays::{columns, describe, layers};
use super::destination::Output;
use super::network::{Foresight, Training, asked};
use super::predict::end;
use super::relay::{About, Passing};
use super::train::{Places, Trained, hold, keep};
use super::{FLOOR, Speaker, default_threads, runtime_bytes};
use crate::{Error, Job, PredictJob, Predicted, Result};

/// Samples of a batch.
const USUAL_BATCH: usize = 32;
/// Bad files that are named; the rest are counted.
const NAMED: usize = 3;

pub(super) fn train(speaker: &Speaker, job: &Job, budget: u64, places: &Places) -> Result<()> {
    let ledger = Ledger::new(budget);
    let runtime = runtime_bytes(budget);
    let _program = hold(&ledger, RUNTIME, runtime)?;
    let path = &job.data.paths[0];
    let options = image_options(job)?;
    let mut looking = Passing::before(speaker, &ledger, "look", 0);
    let opened = images::open(path, &options, &ledger, &mut |done, total| {
        looking.tell_of(done, total)
    })?;
    let Some(opened) = opened else {
        speaker.stopped(0, 0, places.resume);
        return Ok(());
    };
    tell_of_images(speaker, &opened, job);
    let mut no_images = opened.left_out.bad.count;
    let OpenedImages {
        training: mut source,
        validation,
        test,
        form,
        ..
    } = opened;
    let Some(labels) = source.labels().cloned() else {
        return Err(Error::Usage {
            what: format!("{}: there are no labels to learn", path.display()),
            hint: "put the images of each class into a folder of its own".into(),
        });
    };
    let judged = judged(speaker, job, form, &labels, validation, test, &options, &ledger)?;
    let Some((judged, holdout)) = judged else {
        speaker.stopped(0, 0, places.resume);
        return Ok(());
    };
    let mut validation = judged.map(|judged| {
        tell_of_left_out(speaker, &judged.left_out);
        no_images += judged.left_out.bad.count;
        judged.source
    });
    // One epoch would write what nobody reads.
    let packs = PackStore::at(&places.packs);
    let (mut disk, mut to_come) = (0, Vec::new());
    if job.train.pack && job.train.epochs > 1 {
        for source in std::iter::once(&mut source).chain(validation.as_mut()) {
            if places.dry.is_some() {
                to_come.extend(source.foresee_pack(&packs, job.threads(), &ledger)?);
                continue;
            }
            match pack(speaker, job, source, &packs, &ledger)? {
                Packed::Stopped => {
                    speaker.stopped(0, 0, places.resume);
                    return Ok(());
                }
                Packed::Now => disk += source.packed_bytes(),
                Packed::Before => {}
            }
        }
    }
    let (layers, name) = layers(job, &source)?;
    let input = source.shape().to_vec();
    let design = Design {
        sample: input.clone(),
        input,
        labels,
        layers,
        scaling: Scaling::Byte,
        images: Some(form),
    };
    describe(speaker, &source, &design, name);
    // What images hold already: names, labels, where they stand in the pack.
    let files = ledger.used().saturating_sub(runtime);
    let held = vec![(RUNTIME.to_string(), runtime), ("files".to_string(), files)];
    let packing = |needs: &PackNeeds| {
        let pack = ("pack".to_string(), needs.memory);
        held.iter().cloned().chain([pack]).collect()
    };
    let foresight = Foresight {
        disk: disk + to_come.iter().map(|needs| needs.disk).sum::<u64>(),
        stages: to_come.iter().map(packing).collect(),
        ..Foresight::default()
    };
    let trained = Training {
        speaker,
        job,
        places,
        ledger: &ledger,
        budget,
        held,
        about: About::samples(job, &source),
        name,
        design,
        source,
        validation,
        holdout,
        usual_batch: USUAL_BATCH,
        foresight,
    }
    .run()?;
    let Some((model, mut report)) = trained else {
        return Ok(());
    };
    report.rows.bad += no_images;
    keep(speaker, places, &Trained::Network(Box::new(model), name), &report)
}

pub(super) fn image_options(job: &Job) -> Result<ImageOptions> {
    let part = &job.images;
    Ok(ImageOptions {
        size: part.size.map(|size| size.sides()),
        channels: part.channels,
        resize: part.resize,
        augment: job.augment.clone(),
        bad_files: part.bad_files,
        balanced: part.balanced,
        column: part.column.clone(),
        target: job.data.target.clone(),
        labels: LabelOptions {
            task: job.model.task.map(LabelTask::from),
            n_classes: None,
            known: None,
        },
        reading: job.source_options()?,
        threads: job.threads(),
    })
}

/// The images that judge, if they are others, and what is held out if not; `None` when asked to stop.
#[expect(
    clippy::too_many_arguments,
    reason = "each is another subject, and there is one caller"
)]
fn judged(
    speaker: &Speaker,
    job: &Job,
    form: ImageForm,
    labels: &Labels,
    validation: Option<JudgedImages>,
    test: Option<JudgedImages>,
    options: &ImageOptions,
    ledger: &Ledger,
) -> Result<Option<(Option<JudgedImages>, Holdout)>> {
    let nothing = Holdout::new(0.0, job.train.seed);
    if let Some(path) = &job.data.validation {
        let mut looking = Passing::before(speaker, ledger, "look", 0);
        let opened = images::open_as(path, form, labels, options, ledger, &mut |done, total| {
            looking.tell_of(done, total)
        })?;
        return Ok(opened.map(|judged| (Some(judged), nothing)));
    }
    // Samples that stand beside for a test are for the end: patience would learn from them.
    let beside = match (validation, test.filter(|_| job.train.patience.is_none())) {
        (Some(validation), _) => Some((validation, "validation")),
        (None, Some(test)) => Some((test, "test")),
        (None, None) => None,
    };
    let Some((judged, what)) = beside else {
        return Ok(Some((None, Holdout::new(job.data.holdout, job.train.seed))));
    };
    speaker.say(Event::Notice {
        text: format!(
            "judged by the {} images of the {what} folder beside; all others are learned from",
            judged.source.n_samples()
        ),
    });
    Ok(Some((Some(judged), nothing)))
}

/// What became of a pack.
enum Packed {
    Now,
    /// It was there, or cannot be made.
    Before,
    Stopped,
}

/// Decodes all images once.
fn pack(
    speaker: &Speaker,
    job: &Job,
    source: &mut ArraySource,
    packs: &PackStore,
    ledger: &Ledger,
) -> Result<Packed> {
    let total = source.n_samples();
    let mut passing = Passing::before(speaker, ledger, "decode", total);
    let packed = source.pack_images(packs, job.threads(), ledger, &mut |done| {
        passing.tell(done, done, done)
    })?;
    let mut became = Packed::Before;
    match packed {
        PackedImages::Found => {
            let text = "using the pack of these images".into();
            speaker.say(Event::Notice { text });
        }
        PackedImages::Not(problem) => speaker.say(Event::Warning {
            text: format!("images are not packed, and so are decoded again in every epoch: {problem}"),
        }),
        PackedImages::Stopped => return Ok(Packed::Stopped),
        PackedImages::Built => became = Packed::Now,
    }
    tell_of_bad(speaker, &source.bad_files());
    Ok(became)
}

/// Says what was found.
pub(super) fn tell_of_images(speaker: &Speaker, opened: &OpenedImages, job: &Job) {
    let (survey, form) = (&opened.survey, opened.form);
    let formats: Vec<String> = survey
        .formats
        .iter()
        .map(|(format, n)| format!("{n} {format}"))
        .collect();
    let size = match survey.same_size {
        Some((width, height)) => format!("all {height}×{width}"),
        None => format!("up to {:.1} megapixels", survey.most_pixels as f64 / 1e6),
    };
    let how = match form.resize {
        images::Resize::Stretch => "resized",
        images::Resize::Fit => "fitted",
        images::Resize::Crop => "cropped",
    };
    let colour = if form.channels == 1 { "gray" } else { "RGB" };
    let hint = match job.images.size {
        Some(_) => "",
        None => " (--image-size changes it)",
    };
    speaker.say(Event::Notice {
        text: format!(
            "{}, {}, {size}; {how} to {}×{} {colour}{hint}",
            formats.join(" · "),
            format_bytes(survey.bytes),
            form.height,
            form.width
        ),
    });
    if survey.gray > 0 && survey.colour > 0 {
        let text = format!(
            "{} gray and {} in colour: all are read as {colour}",
            survey.gray, survey.colour
        );
        speaker.say(Event::Notice { text });
    }
    if !job.augment.is_nothing() {
        let text = format!("augmented: {}", job.augment.describe());
        speaker.say(Event::Notice { text });
    }
    tell_of_left_out(speaker, &opened.left_out);
}

/// Says what is not among the samples.
fn tell_of_left_out(speaker: &Speaker, left_out: &LeftOut) {
    let counts = [
        (
            left_out.unlabelled,
            [
                "image beside the class folders, which has no label",
                "images beside the class folders, which have no label",
            ],
        ),
        (
            left_out.incomplete,
            [
                "row that lacks a path or a label",
                "rows that lack a path or a label",
            ],
        ),
    ];
    for (n, [one, several]) in counts.into_iter().filter(|(n, _)| *n > 0) {
        let what = if n == 1 { one } else { several };
        let text = format!("left out: {n} {what}");
        speaker.say(Event::Warning { text });
    }
    tell_of_bad(speaker, &left_out.bad);
    if let [classes @ .., last] = left_out.empty_classes.as_slice() {
        let (named, have) = match classes {
            [] => (last.clone(), "has"),
            classes => (format!("{} and {last}", classes.join(", ")), "have"),
        };
        speaker.say(Event::Warning {
            text: format!("{named} {have} no image that can be read"),
        });
    }
}

pub(super) fn tell_of_bad(speaker: &Speaker, bad: &BadFiles) {
    if bad.count == 0 {
        return;
    }
    let named: Vec<String> = bad
        .first
        .iter()
        .take(NAMED)
        .map(|(path, fault)| format!("{}: {fault}", path.display()))
        .collect();
    let more = match bad.count.saturating_sub(named.len() as u64) {
        0 => String::new(),
        more => format!("; and {more} more"),
    };
    let what = if bad.count == 1 { "file is" } else { "files are" };
    speaker.say(Event::Warning {
        text: format!("{} {what} left out: {}{more}", bad.count, named.join("; ")),
    });
}

pub(super) fn predict(
    speaker: &Speaker,
    job: &PredictJob,
    budget: u64,
    folder: &Path,
    form: ImageForm,
) -> Result<()> {
    let design = NetworkModel::load_design(folder)?;
    let ledger = Ledger::new(budget);
    let runtime = runtime_bytes(budget);
    let _program = hold(&ledger, RUNTIME, runtime)?;
    let [path] = job.data.as_slice() else {
        return Err(Error::Usage {
            what: "images are predicted one folder at a time".into(),
            hint: "name one folder or one image".into(),
        });
    };
    let threads = job.threads.unwrap_or_else(default_threads);
    let options = ImageOptions {
        size: Some((form.height, form.width)),
        channels: Some(form.channels),
        resize: form.resize,
        bad_files: job.bad_files,
        threads,
        ..ImageOptions::default()
    };
    let mut looking = Passing::before(speaker, &ledger, "look", 0);
    let opened = images::open_unlabelled(path, form, &options, &ledger, &mut |done, total| {
        looking.tell_of(done, total)
    })?;
    let Some((source, Survey { bad, .. })) = opened else {
        speaker.stopped(1, 0, false);
        return Ok(());
    };
    tell_of_bad(speaker, &bad);
    let columns = columns(&design, "file");
    let format = job.format();
    let output = Output::bytes(format, &columns, source.n_samples());
    let files = ledger.used().saturating_sub(runtime);
    let held = [
        (RUNTIME.to_string(), runtime),
        ("files".to_string(), files),
        ("output".to_string(), output),
    ];
    let planned = network::predict_plan(
        &design,
        &source,
        threads,
        &Keep::default(),
        &held,
        budget.max(FLOOR),
    )
    .map_err(|error| asked(error, budget))?;
    let threads = planned.plan.threads as u64 * tidegate_train::THREAD_BYTES;
    let _threads = hold(&ledger, RUNTIME, threads)?;
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
    let later = source.bad_files();
    tell_of_bad(speaker, &later);
    let first = bad.first.iter().chain(&later.first).next();
    let first_bad = first.map(|(path, fault)| format!("{}: {fault}", path.display()));
    end(speaker, predicted, output, rows.get(), bytes, |()| Predicted {
        files: rows.get(),
        bad: bad.count + later.count,
        first_bad,
        ..Predicted::default()
    })
}
