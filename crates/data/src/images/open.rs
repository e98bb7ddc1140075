//! Opens a set of images: finds them, reads their labels, looks at every header, and says what a person should know.

use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_memory::Ledger;

use super::augment::Augment;
use super::find::{Named, Set, find, find_unlabelled};
use super::form::{ImageForm, Resize};
use super::list::List;
use super::needs::Needs;
use super::picture::Stored;
use super::probe::Probe;
use super::problem::ImageProblem;
use super::store::{BadFileRule, Images};
use super::survey::{Look, Looked, Survey, survey};
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
    pub validation: Option<ArraySource>,
    pub test: Option<ArraySource>,
    pub form: ImageForm,
    pub survey: Survey,
    /// Files without a label, and rows of a table without a path or a label.
    pub unlabelled: u64,
    pub incomplete: u64,
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
}

/// Opens images to learn from; `None` when `looked` ends it.
pub fn open(
    path: &Path,
    options: &ImageOptions,
    ledger: &Ledger,
    looked: &mut Looked<'_>,
) -> Result<Option<OpenedImages>> {
    let holder = ledger.holder("files");
    let opening = Opening {
        path,
        options,
        ledger,
    };
    let (training, validation, test) = match find(path, &holder)? {
        Named::Table(table) => (opening.listed(&table, &options.labels)?, None, None),
        Named::Folder(found) => (
            opening.labelled(found.training, &options.labels)?,
            found.validation,
            found.test,
        ),
    };
    opening.check_balanced(&training.labelled.labels)?;
    let (unlabelled, incomplete) = (training.unlabelled, training.incomplete);
    let Some(training) = opening.look(training.list, Some(training.labelled), looked)? else {
        return Ok(None);
    };
    let form = opening.form(&training.survey);
    let known = LabelOptions {
        known: training.labelled.as_ref().map(|labelled| labelled.labels.clone()),
        ..LabelOptions::default()
    };
    let mut beside = |set: Option<Set>| -> Result<Option<Option<ArraySource>>> {
        let Some(set) = set else { return Ok(Some(None)) };
        let set = opening.labelled(set, &known)?;
        let surveyed = opening.look(set.list, Some(set.labelled), looked)?;
        let source = |surveyed| opening.source(surveyed, form, &Augment::default());
        Ok(surveyed.map(source).transpose()?.map(Some))
    };
    let (Some(validation), Some(test)) = (beside(validation)?, beside(test)?) else {
        return Ok(None);
    };
    let found = training.survey.clone();
    Ok(Some(OpenedImages {
        training: opening.source(training, form, &options.augment)?,
        validation,
        test,
        form,
        survey: found,
        unlabelled,
        incomplete,
    }))
}

/// Opens images to judge by, with the form and the labels of a training.
pub fn open_as(
    path: &Path,
    form: ImageForm,
    known: &Labels,
    options: &ImageOptions,
    ledger: &Ledger,
    looked: &mut Looked<'_>,
) -> Result<Option<(ArraySource, Survey)>> {
    let options = ImageOptions {
        labels: LabelOptions {
            known: Some(known.clone()),
            ..LabelOptions::default()
        },
        ..options.clone().of_form(form)
    };
    let opened = open(path, &options, ledger, looked)?;
    Ok(opened.map(|opened| (opened.training, opened.survey)))
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
        ledger,
    };
    let list = find_unlabelled(path, &ledger.holder("files"))?;
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
    ledger: &'a Ledger,
}

impl Opening<'_> {
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
        let (height, width) = self.options.augment.stored_size(height, width);
        let stored = Stored {
            height,
            width,
            channels: self.options.channels.unwrap_or(3),
            resize: self.options.resize,
        };
        let holder = self.ledger.holder("files");
        let look = Look {
            root: self.root(),
            threads: self.options.threads,
            need: |probe: &Probe| stored.bytes_to_decode(probe),
            room: self.ledger.budget(),
        };
        let Some((survey, needs, bad)) = survey(&list, &look, &holder, looked)? else {
            return Ok(None);
        };
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
                retain(labelled, is_good);
            }
            list.retain(is_good);
        }
        Ok(Some(Surveyed {
            list,
            labelled,
            survey,
            needs,
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
        }
    }

    fn source(&self, surveyed: Surveyed, form: ImageForm, augment: &Augment) -> Result<ArraySource> {
        let fingerprint = surveyed.survey.fingerprint;
        let mut images = Images::new(surveyed.list, form, augment.clone(), surveyed.needs, fingerprint);
        images.rule = self.options.bad_files;
        images.balanced = self.options.balanced;
        ArraySource::of_images(images, surveyed.labelled, self.path, self.ledger)
    }
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
