//! Opens a set of images: finds them, reads their labels, looks at every header, and says what a person should know.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_memory::Ledger;

use super::augment::Augment;
use super::find::{Named, Set, find, find_unlabelled};
use super::form::{ImageForm, Resize, stored_size};
use super::list::List;
use super::needs::Needs;
use super::picture::Stored;
use super::probe::Probe;
use super::problem::ImageProblem;
use super::store::{BadFileRule, Images};
use super::survey::{BadFiles, Look, Looked, Survey, survey};
use super::table::{self, Asked};
use crate::arrays::ArraySource;
use crate::arrays::labels::{LabelOptions, Labelled, Labels, Values};
use crate::target::Target;
use crate::{Result, SourceOptions};

/// Images of one size are taken as they are up to this side, and all others are made so large where nobody says
/// otherwise.
const USUAL_SIDE: usize = 128;
const MOST_OWN_SIDE: u32 = 256;

/// What to make of images.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ImageOptions {
    /// Height and width; found by the images where it is not given.
    pub size: Option<(usize, usize)>,
    pub channels: Option<usize>,
    pub resize: Resize,
    pub augment: Augment,
    pub bad_files: BadFileRule,
    /// As many samples of each class as of any other.
    pub balanced: bool,
    /// Of a table that lists images: the column of paths, and what is predicted.
    pub column: Option<String>,
    pub target: String,
    pub labels: LabelOptions,
    pub reading: SourceOptions,
    pub threads: usize,
}

impl ImageOptions {
    /// With the form of a training, to judge or to predict: nothing is augmented, and every image comes once.
    fn of_form(self, form: ImageForm) -> ImageOptions {
        ImageOptions {
            size: Some((form.height, form.width)),
            channels: Some(form.channels),
            resize: form.resize,
            augment: Augment::default(),
            balanced: false,
            ..self
        }
    }
}

/// Images with their labels, and what was found of them.
pub struct OpenedImages {
    pub training: ArraySource,
    /// What stands beside for validation, or for a test.
    pub validation: Option<JudgedImages>,
    pub test: Option<JudgedImages>,
    pub form: ImageForm,
    pub survey: Survey,
    pub left_out: LeftOut,
}

/// Images to judge by.
pub struct JudgedImages {
    pub source: ArraySource,
    pub left_out: LeftOut,
}

/// What is not among the samples.
#[derive(Debug, Clone, Default)]
pub struct LeftOut {
    /// Files that are no images.
    pub bad: BadFiles,
    /// Files without a label, and rows of a table without a path or a label.
    pub unlabelled: u64,
    pub incomplete: u64,
    /// Classes that have no image left.
    pub empty_classes: Vec<String>,
}

/// Files and their labels, before anybody looked at them.
struct Labelling {
    list: List,
    labelled: Labelled,
    unlabelled: u64,
    incomplete: u64,
}

/// Files that are images, with their labels.
struct Surveyed {
    list: List,
    labelled: Option<Labelled>,
    survey: Survey,
    needs: Needs,
    /// Samples that take the most to decode, those first that take the most.
    heaviest: Vec<u64>,
    left_out: LeftOut,
}

/// Opens images to learn from; `None` when `looked` ends it.
pub fn open(
    path: &Path,
    options: &ImageOptions,
    ledger: &Ledger,
    looked: &mut Looked<'_>,
) -> Result<Option<OpenedImages>> {
    let opening = Opening {
        path,
        options,
        form: None,
        ledger,
    };
    opening.open(looked)
}

/// Opens images to judge by, with the form and the labels of a training.
pub fn open_as(
    path: &Path,
    form: ImageForm,
    known: &Labels,
    options: &ImageOptions,
    ledger: &Ledger,
    looked: &mut Looked<'_>,
) -> Result<Option<JudgedImages>> {
    let options = ImageOptions {
        labels: LabelOptions {
            known: Some(known.clone()),
            ..LabelOptions::default()
        },
        ..options.clone().of_form(form)
    };
    let opening = Opening {
        path,
        options: &options,
        form: Some(form),
        ledger,
    };
    let opened = opening.open(looked)?;
    Ok(opened.map(|opened| JudgedImages {
        source: opened.training,
        left_out: opened.left_out,
    }))
}

/// Opens images without labels, to predict.
pub fn open_unlabelled(
    path: &Path,
    form: ImageForm,
    options: &ImageOptions,
    ledger: &Ledger,
    looked: &mut Looked<'_>,
) -> Result<Option<(ArraySource, Survey)>> {
    let options = &options.clone().of_form(form);
    let opening = Opening {
        path,
        options,
        form: Some(form),
        ledger,
    };
    let list = find_unlabelled(path, &options.reading.below, &ledger.holder("files"))?;
    let Some(surveyed) = opening.look(list, None, looked)? else {
        return Ok(None);
    };
    let survey = surveyed.survey.clone();
    Ok(Some((
        opening.source(surveyed, form, &Augment::default())?,
        survey,
    )))
}

struct Opening<'a> {
    path: &'a Path,
    options: &'a ImageOptions,
    /// The form of a training, where there was one.
    form: Option<ImageForm>,
    ledger: &'a Ledger,
}

impl Opening<'_> {
    fn open(&self, looked: &mut Looked<'_>) -> Result<Option<OpenedImages>> {
        let (path, options, holder) = (self.path, self.options, self.ledger.holder("files"));
        let (training, validation, test) = match find(path, &options.reading.below, &holder)? {
            Named::Table(table) => (self.listed(&table, &options.labels)?, None, None),
            Named::Folder(_) if self.form.is_none() && !options.target.is_empty() => {
                return Err(ImageProblem::TargetOfFolders {
                    path: path.into(),
                    target: options.target.clone(),
                }
                .into());
            }
            Named::Folder(found) => (
                self.labelled(found.training, &options.labels)?,
                found.validation,
                found.test,
            ),
        };
        self.check_balanced(&training.labelled.labels)?;
        let Some(training) = self.look_at_labelled(training, looked)? else {
            return Ok(None);
        };
        self.check_classes(&training)?;
        let form = self.form(&training.survey);
        let known = LabelOptions {
            known: training.labelled.as_ref().map(|labelled| labelled.labels.clone()),
            ..LabelOptions::default()
        };
        let mut beside = |set: Option<Set>| -> Result<Option<Option<JudgedImages>>> {
            let Some(set) = set else { return Ok(Some(None)) };
            let set = self.labelled(set, &known)?;
            let Some(surveyed) = self.look_at_labelled(set, looked)? else {
                return Ok(None);
            };
            Ok(Some(Some(JudgedImages {
                left_out: surveyed.left_out.clone(),
                source: self.source(surveyed, form, &Augment::default())?,
            })))
        };
        let (Some(validation), Some(test)) = (beside(validation)?, beside(test)?) else {
            return Ok(None);
        };
        let (survey, left_out) = (training.survey.clone(), training.left_out.clone());
        Ok(Some(OpenedImages {
            training: self.source(training, form, &options.augment)?,
            validation,
            test,
            form,
            survey,
            left_out,
        }))
    }

    fn listed(&self, table: &Path, labels: &LabelOptions) -> Result<Labelling> {
        let asked = Asked {
            images: self.options.column.as_deref(),
            target: &self.options.target,
            labels,
            reading: &self.options.reading,
        };
        let listed = table::read(table, &asked, self.ledger)?;
        Ok(Labelling {
            list: listed.list,
            labelled: listed.labelled,
            unlabelled: 0,
            incomplete: listed.incomplete,
        })
    }

    fn labelled(&self, set: Set, labels: &LabelOptions) -> Result<Labelling> {
        let of = set.folders.of;
        let folders = (0..set.list.len()).map(|file| of[set.list.folder_of(file) as usize]);
        let labelled = Labelled::of_folders(set.folders.classes, folders, &set.path, labels, self.ledger)?;
        Ok(Labelling {
            list: set.list,
            labelled,
            unlabelled: set.unlabelled,
            incomplete: 0,
        })
    }

    /// Classes can be balanced, and nothing else can.
    fn check_balanced(&self, labels: &Labels) -> Result<(), ImageProblem> {
        let predicted = match labels {
            _ if !self.options.balanced => return Ok(()),
            Labels::One(Target::Number { .. }) | Labels::Numbers { .. } => "numbers are",
            Labels::One(_) => return Ok(()),
            Labels::Flags { .. } => "several labels of each image are",
        };
        Err(ImageProblem::NoClasses {
            path: self.path.into(),
            predicted,
        })
    }

    fn look_at_labelled(&self, labelling: Labelling, looked: &mut Looked<'_>) -> Result<Option<Surveyed>> {
        let surveyed = self.look(labelling.list, Some(labelling.labelled), looked)?;
        Ok(surveyed.map(|mut surveyed| {
            surveyed.left_out.unlabelled = labelling.unlabelled;
            surveyed.left_out.incomplete = labelling.incomplete;
            surveyed
        }))
    }

    /// Refuses to learn from one class alone, where all files of the others turned out to be no images.
    fn check_classes(&self, training: &Surveyed) -> Result<(), ImageProblem> {
        let (
            Some(labelled),
            LeftOut {
                bad, empty_classes, ..
            },
        ) = (&training.labelled, &training.left_out)
        else {
            return Ok(());
        };
        let classes = labelled.labels.classes();
        let mut left = classes
            .iter()
            .filter(|class| !empty_classes.contains(&class.text));
        match (left.next(), left.next(), bad.first.first()) {
            (Some(class), None, Some((first, fault))) if self.form.is_none() && !empty_classes.is_empty() => {
                Err(ImageProblem::OneClassLeft {
                    path: self.path.into(),
                    class: class.text.clone(),
                    first: first.clone(),
                    fault: fault.clone(),
                })
            }
            _ => Ok(()),
        }
    }

    /// Looks at all files and leaves out what is no image.
    fn look(
        &self,
        mut list: List,
        mut labelled: Option<Labelled>,
        looked: &mut Looked<'_>,
    ) -> Result<Option<Surveyed>> {
        // Before the size is known, what decoding takes is counted for the largest that is chosen unasked.
        let (height, width) = self
            .options
            .size
            .unwrap_or((MOST_OWN_SIDE as usize, MOST_OWN_SIDE as usize));
        let margin = self
            .form
            .map_or(self.options.augment.crop.is_some(), |form| form.margin);
        let (height, width) = stored_size(height, width, margin);
        let stored = Stored {
            height,
            width,
            channels: self.options.channels.unwrap_or(3),
            resize: self.options.resize,
        };
        let holder = self.ledger.holder("files");
        let look = Look {
            root: self.root(),
            below: &self.options.reading.below,
            threads: self.options.threads,
            need: |probe: &Probe| stored.bytes_to_decode(probe),
            room: self.ledger.budget(),
        };
        let Some((survey, needs, bad)) = survey(&list, &look, &holder, looked)? else {
            return Ok(None);
        };
        let heaviest = survey.heaviest.samples(&bad);
        let mut empty_classes = Vec::new();
        if let Some((first, fault)) = survey.bad.first.first() {
            let (first, fault) = (first.clone(), fault.clone());
            if self.options.bad_files == BadFileRule::Fail {
                return Err(ImageProblem::BadFile { path: first, fault }.into());
            }
            if survey.bad.count * 2 > survey.files {
                return Err(ImageProblem::MostlyBad {
                    path: self.path.into(),
                    bad: survey.bad.count,
                    files: survey.files,
                    first,
                    fault,
                }
                .into());
            }
            let is_good = |file: usize| bad.binary_search(&file).is_err();
            if let Some(labelled) = &mut labelled {
                let before = present_classes(labelled);
                retain(labelled, is_good);
                let after = present_classes(labelled);
                let classes = labelled
                    .labels
                    .classes()
                    .into_iter()
                    .zip(before.iter().zip(after));
                let emptied = classes.filter(|(_, (before, after))| **before && !after);
                empty_classes = emptied.map(|(class, _)| class.text.clone()).collect();
            }
            list.retain(is_good);
        }
        let left_out = LeftOut {
            bad: survey.bad.clone(),
            empty_classes,
            ..LeftOut::default()
        };
        Ok(Some(Surveyed {
            list,
            labelled,
            survey,
            needs,
            heaviest,
            left_out,
        }))
    }

    /// Names of files are told apart by what is behind this.
    fn root(&self) -> &Path {
        match self.path.is_dir() {
            true => self.path,
            false => self.path.parent().unwrap_or(Path::new("")),
        }
    }

    fn form(&self, survey: &Survey) -> ImageForm {
        if let Some(form) = self.form {
            return form;
        }
        let own = survey
            .same_size
            .filter(|(width, height)| *width.max(height) <= MOST_OWN_SIDE);
        let found = own.map_or((USUAL_SIDE, USUAL_SIDE), |(width, height)| {
            (height as usize, width as usize)
        });
        let (height, width) = self.options.size.unwrap_or(found);
        let gray = survey.colour == 0;
        ImageForm {
            height,
            width,
            channels: self.options.channels.unwrap_or(if gray { 1 } else { 3 }),
            resize: self.options.resize,
            margin: self.options.augment.crop.is_some(),
        }
    }

    fn source(&self, surveyed: Surveyed, form: ImageForm, augment: &Augment) -> Result<ArraySource> {
        let fingerprint = surveyed.survey.fingerprint;
        let mut images = Images::new(surveyed.list, form, augment.clone(), surveyed.needs, fingerprint);
        images.rule = self.options.bad_files;
        images.balanced = self.options.balanced;
        images.heaviest = surveyed.heaviest;
        ArraySource::of_images(images, surveyed.labelled, self.path, self.ledger)
    }
}

/// Which classes have samples.
fn present_classes(labelled: &Labelled) -> Vec<bool> {
    let mut present = vec![false; labelled.labels.classes().len()];
    if let Values::Here { values, .. } = &labelled.values {
        for value in values {
            if let Some(class) = present.get_mut(*value as usize) {
                *class = true;
            }
        }
    }
    present
}

/// Leaves out the labels of samples that `keep` refuses.
fn retain(labelled: &mut Labelled, keep: impl Fn(usize) -> bool) {
    let width = labelled.labels.width();
    if let Values::Here { values, .. } = &mut labelled.values {
        let mut place = 0;
        values.retain(|_| {
            place += 1;
            keep((place - 1) / width)
        });
    }
}
