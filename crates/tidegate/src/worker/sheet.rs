//! Contact sheets in the worker.

use std::path::{Path, PathBuf};

use tidegate_data::arrays::{ArraySource, Labels, Order, Permutation};
use tidegate_data::images::{self, ImageForm, ImageOptions, Sheet};
use tidegate_memory::Ledger;
use tidegate_train::network::NetworkModel;
use tidegate_train::{Error as TrainError, Report};
use tidegate_watch::{Done, Event};

use super::images::{image_options, tell_of_bad, tell_of_images};
use super::relay::Passing;
use super::train::hold;
use super::{Speaker, runtime_bytes};
use crate::{Error, Job, Previewed, Result};

/// Tiles beside each other.
const COLUMNS: usize = 6;

/// Shows what the network will see: every image as it is and augmented, or many of them where nothing changes them.
pub(super) fn preview(speaker: &Speaker, job: &Job, output: &Path, rows: usize, budget: u64) -> Result<()> {
    let ledger = Ledger::new(budget);
    let _program = hold(&ledger, tidegate_train::RUNTIME, runtime_bytes(budget))?;
    let mut looking = Passing::before(speaker, &ledger, "look", 0);
    let options = image_options(job)?;
    let opened = images::open(&job.data.paths[0], &options, &ledger, &mut |done, total| {
        looking.tell_of(done, total)
    })?;
    let Some(opened) = opened else {
        speaker.stopped(0, 0, false);
        return Ok(());
    };
    tell_of_images(speaker, &opened, job);
    let source = &opened.training;
    let versions = if job.augment.is_nothing() { 1 } else { COLUMNS };
    let most = rows.max(1) * COLUMNS / versions;
    let n = most.min(source.n_samples() as usize);
    let mut sheet = Sheet::new(n * versions, COLUMNS, 1, opened.form, &ledger)?;
    let order = Permutation::new(source.n_samples(), job.train.seed);
    let mut sample_bytes = vec![0; source.sample_len()];
    let mut files = Vec::new();
    for i in 0..n {
        let sample = order.place(i as u64);
        let label = label(source, sample);
        for version in 0..versions {
            // The first is as it is, the others are those of the first epochs.
            let (order, caption) = match version {
                0 => (Order::InPlace, label.clone()),
                version => {
                    let epoch = version as u64 - 1;
                    let seed = job.train.seed;
                    (Order::Shuffled { seed, epoch }, format!("epoch {version}"))
                }
            };
            if source.show_image(sample, order, &ledger, &mut sample_bytes)? {
                sheet.put(i * versions + version, &sample_bytes, &caption);
                if version == 0 {
                    files.extend(source.file(sample).map(|path| path.display().to_string()));
                }
            }
        }
        if speaker.is_stopped() {
            speaker.stopped(0, i as u64, false);
            return Ok(());
        }
    }
    tell_of_bad(speaker, &source.bad_files());
    finish(speaker, &sheet, output, files, versions as u64)
}

fn label(source: &ArraySource, sample: u64) -> String {
    let values = source.target(sample);
    match source.labels() {
        Some(Labels::One(target)) if !target.labels().is_empty() => {
            let class = values.first().map_or(0, |class| *class as usize);
            target
                .labels()
                .get(class)
                .map_or(String::new(), |label| label.text.clone())
        }
        Some(Labels::Flags { names, .. }) if !names.is_empty() => {
            let set = names.iter().zip(values).filter(|(_, value)| **value != 0.0);
            set.map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(" ")
        }
        _ => values
            .iter()
            .map(|value| value.to_string())
            .collect::<Vec<_>>()
            .join(" "),
    }
}

/// Shows the images that a network was most sure of and wrong about.
pub(super) fn mistakes(
    speaker: &Speaker,
    folder: &Path,
    output: &Path,
    top: usize,
    budget: u64,
) -> Result<()> {
    let ledger = Ledger::new(budget);
    let _program = hold(&ledger, tidegate_train::RUNTIME, runtime_bytes(budget))?;
    let (design, report) = (NetworkModel::load_design(folder)?, Report::load(folder)?);
    let Some(form) = design.images else {
        return Err(Error::Usage {
            what: "this network did not learn from images".into(),
            hint: "mistakes are shown of images alone".into(),
        });
    };
    let worst: Vec<_> = report.mistakes.iter().take(top).collect();
    let mut sheet = Sheet::new(worst.len(), COLUMNS, 3, form, &ledger)?;
    let mut files = Vec::new();
    let (mut gone, mut why) = (0, None);
    for (place, mistake) in worst.iter().enumerate() {
        let class = |class: usize| report.classes.get(class).map_or("?", String::as_str);
        let caption = format!(
            "{}\nsaid {}\n{:.0}% sure",
            class(mistake.truth),
            class(mistake.said),
            mistake.probability * 100.0
        );
        let Some(file) = &mistake.file else { continue };
        match read(&PathBuf::from(file), form, &ledger) {
            Ok(Some(sample)) => {
                sheet.put(place, &sample, &caption);
                files.push(file.clone());
            }
            Ok(None) => gone += 1,
            Err(error) => {
                gone += 1;
                why.get_or_insert(error);
            }
        }
    }
    if gone > 0 {
        let why = why.map_or(String::new(), |why| format!(": {why}"));
        let text = format!("{gone} of the images cannot be shown any more{why}");
        speaker.say(Event::Warning { text });
    }
    finish(speaker, &sheet, output, files, 1)
}

/// One image as it is judged by; `None` if it cannot be decoded.
fn read(path: &Path, form: ImageForm, ledger: &Ledger) -> Result<Option<Vec<u8>>> {
    let options = ImageOptions {
        size: Some((form.height, form.width)),
        channels: Some(form.channels),
        resize: form.resize,
        threads: 1,
        ..ImageOptions::default()
    };
    let opened = images::open_unlabelled(path, form, &options, ledger, &mut |_, _| {
        std::ops::ControlFlow::Continue(())
    })?;
    let Some((source, _)) = opened else {
        return Ok(None);
    };
    let mut sample = vec![0; source.sample_len()];
    let shown = source.show_image(0, Order::InPlace, ledger, &mut sample)?;
    Ok(shown.then_some(sample))
}

fn finish(speaker: &Speaker, sheet: &Sheet, output: &Path, files: Vec<String>, versions: u64) -> Result<()> {
    sheet.write(output).map_err(|source| TrainError::Write {
        path: output.into(),
        source,
    })?;
    let shown = Previewed {
        images: files.len() as u64,
        versions,
        files,
        ..Previewed::default()
    };
    speaker.say(Event::Done(Done {
        details: serde_json::to_value(shown).expect("plain data"),
        ..Done::default()
    }));
    Ok(())
}
