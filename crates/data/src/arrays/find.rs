//! From what a person names to arrays of samples and of labels: a file, an archive, a folder.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate_memory::{Grant, Holder};

use super::LabelsFrom;
use super::names::{Asked, Pair, Pairs, Split, Unpaired, are_samples, is_array_name, pair, split, stem};
use super::problem::ArrayProblem;
use super::samples::SHARD_BYTES;
use crate::source::zip::members_of;
use crate::{Below, Error, Input, Result};

/// Whether what was named looks like arrays, by its names: a file of them, or a folder that holds such files or folders
/// of them.
pub fn are_arrays(path: &Path) -> bool {
    fn any(folder: &Path, deeper: bool) -> bool {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut entries = entries.filter(|entry| !is_hidden(Path::new(&entry.file_name())));
        entries.any(|entry| {
            // Most names tell, without asking the disk what they are.
            let kind = entry.file_type();
            let is_folder =
                kind.is_ok_and(|kind| kind.is_dir() || (kind.is_symlink() && entry.path().is_dir()));
            let name = entry.file_name();
            match is_folder {
                true => deeper && any(&entry.path(), false),
                false => is_array_name(&name.to_string_lossy()) && !entry.path().is_dir(),
            }
        })
    }
    match path.is_dir() {
        true => any(path, true),
        false => is_array_name(&file_name(path)),
    }
}

/// What was found, for training and beside it for a test.
pub(crate) struct Found {
    pub training: Set,
    pub test: Option<Set>,
}

/// Arrays that belong together, in order.
#[derive(Clone)]
pub(crate) struct Set {
    pub samples: Vec<Input>,
    pub labels: LabelsAt,
    /// Whether every array is one sample; `None` where only the number of labels tells.
    pub single: Option<bool>,
}

#[derive(Clone)]
pub(crate) enum LabelsAt {
    Nowhere,
    /// One array for each of the samples', or one for all.
    Arrays(Vec<Input>),
    /// Every file is a sample of the class whose folder it is in.
    Folders {
        classes: Vec<String>,
        /// For each file.
        of: Vec<u32>,
    },
}

/// What was asked for.
pub(crate) struct Finding<'a> {
    pub samples: Option<&'a str>,
    pub labels: &'a LabelsFrom,
    /// Where files may be.
    pub below: &'a Below,
    pub holder: Holder,
    /// For the list of what is found.
    pub listed: Grant,
}

/// An array by its name, to be opened.
struct Named {
    name: String,
    at: At,
}

enum At {
    File(PathBuf),
    Member(Input),
}

impl Finding<'_> {
    pub(crate) fn find(&mut self, path: &Path) -> Result<Found> {
        self.below.check(path)?;
        let metadata = fs::metadata(path).map_err(|source| Error::of_path(path, source))?;
        if metadata.is_dir() {
            return self.folder(path);
        }
        let input = self.open_file(path)?;
        match is_zip(&input)? {
            true => self.archive(&input),
            false => self.file(path),
        }
    }

    /// One array; its labels are in a file beside it.
    fn file(&mut self, path: &Path) -> Result<Found> {
        let name = file_name(path);
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut beside = self.list(folder.unwrap_or(Path::new(".")), Some(&name))?.files;
        if !beside.iter().any(|array| array.name == name) {
            beside.push(Named {
                name: name.clone(),
                at: At::File(path.into()),
            });
        }
        let itself = beside.iter().position(|array| array.name == name);
        self.choose(beside, path, itself, false)
    }

    fn archive(&mut self, archive: &Input) -> Result<Found> {
        let is_npy = |path: &Path| path.extension().is_some_and(|ending| ending == "npy");
        let members = members_of(archive, is_npy, &self.holder, &mut self.listed);
        let members = members.map_err(|error| match error {
            Error::NoTables { path, .. } => ArrayProblem::NoArrays { path }.into(),
            other => other,
        })?;
        let named = members.into_iter().map(|member| {
            let name = member
                .path()
                .strip_prefix(archive.path())
                .unwrap_or(member.path());
            Named {
                name: stem(&name.to_string_lossy()).to_string(),
                at: At::Member(member),
            }
        });
        let named = named.collect();
        self.choose(named, archive.path(), None, false)
    }

    fn folder(&mut self, path: &Path) -> Result<Found> {
        let Listed { files, folders } = self.list(path, None)?;
        if let [
            Named {
                at: At::File(only), ..
            },
        ] = files.as_slice()
            && let input = self.open_file(only)?
            && is_zip(&input)?
        {
            return self.archive(&input);
        }
        if files.is_empty() {
            return self.folders(path, folders);
        }
        self.choose(files, path, None, true)
    }

    /// A folder for each class, or for each part of the data.
    fn folders(&mut self, path: &Path, folders: Vec<PathBuf>) -> Result<Found> {
        let of_split = |wanted: Split| {
            let mut found = folders
                .iter()
                .filter(|folder| split(&file_name(folder)) == Some(wanted));
            found.next().cloned()
        };
        if let Some(training) = of_split(Split::Training) {
            let mut found = self.folder(&training)?;
            let beside = of_split(Split::Test).or_else(|| of_split(Split::Validation));
            if let Some(beside) = beside {
                found.test = Some(self.folder(&beside)?.training);
            }
            return Ok(found);
        }
        let (mut samples, mut classes, mut of) = (Vec::new(), Vec::new(), Vec::new());
        for folder in folders {
            let Listed { files, folders } = self.list(&folder, None)?;
            if let Some(inner) = folders.into_iter().next() {
                return Err(Error::NestedFolder { path: folder, inner });
            }
            if files.is_empty() {
                continue;
            }
            for file in files {
                samples.push(self.open(&file)?);
                of.push(classes.len() as u32);
            }
            classes.push(file_name(&folder));
        }
        if samples.is_empty() {
            return Err(ArrayProblem::NoArrays { path: path.into() }.into());
        }
        let labels = match self.labels {
            LabelsFrom::Nowhere => LabelsAt::Nowhere,
            LabelsFrom::Found => LabelsAt::Folders { classes, of },
            LabelsFrom::Named(name) => LabelsAt::Arrays(vec![self.named_file(name, path)?]),
        };
        let training = Set {
            samples,
            labels,
            single: Some(true),
        };
        Ok(Found { training, test: None })
    }

    /// Tells samples and labels among these apart. `itself` is the place of the file that was named.
    fn choose(
        &mut self,
        arrays: Vec<Named>,
        path: &Path,
        itself: Option<usize>,
        in_folder: bool,
    ) -> Result<Found> {
        let names: Vec<String> = arrays.iter().map(|array| array.name.clone()).collect();
        let place = |name: &str| {
            let is_it = |there: &String| there == name || stem(there) == stem(name);
            let exactly = names.iter().position(|there| there == name);
            exactly.or_else(|| names.iter().position(is_it))
        };
        let unknown = |name: &str| ArrayProblem::UnknownArray {
            path: path.into(),
            name: name.into(),
            there: names.clone(),
        };
        let samples = match self.samples {
            Some(name) => Some(place(name).ok_or_else(|| unknown(name))?),
            None => itself,
        };
        let mut elsewhere = None;
        let labels = match self.labels {
            LabelsFrom::Named(name) => match place(name) {
                Some(place) => Some(place),
                None => {
                    let file = self.named_file(name, path);
                    elsewhere = Some(file.map_err(|error| match error {
                        Error::NotFound { .. } => unknown(name).into(),
                        other => other,
                    })?);
                    None
                }
            },
            LabelsFrom::Found | LabelsFrom::Nowhere => None,
        };
        let asked = Asked {
            samples,
            labels,
            labelled: *self.labels != LabelsFrom::Nowhere && elsewhere.is_none(),
            sharing: in_folder,
        };
        let Pairs { training, test } = pair(&names, asked).map_err(|unpaired| match unpaired {
            Unpaired::UnclearSamples => ArrayProblem::Unclear {
                path: path.into(),
                what: "samples",
                there: names.clone(),
            },
            Unpaired::UnclearLabels => ArrayProblem::Unclear {
                path: path.into(),
                what: "labels",
                there: names.clone(),
            },
            Unpaired::NoLabels => ArrayProblem::NoLabels {
                path: path.into(),
                there: names.iter().filter(|_| itself.is_none()).cloned().collect(),
            },
        })?;
        let single = match training.samples.as_slice() {
            [first, _, ..] if in_folder => match training.labels.as_slice() {
                // Files that no word calls samples are a sample each.
                [] if elsewhere.is_none() => Some(!are_samples(&names[*first])),
                [_, _, ..] => Some(false),
                // How many labels there are tells.
                _ => None,
            },
            _ => Some(false),
        };
        let set = |pair: Pair| -> Result<Set> {
            let open = |places: Vec<usize>| -> Result<Vec<Input>> {
                places
                    .into_iter()
                    .map(|place| self.open(&arrays[place]))
                    .collect()
            };
            let (samples, labels) = (open(pair.samples)?, open(pair.labels)?);
            Ok(Set {
                samples,
                labels: if labels.is_empty() {
                    LabelsAt::Nowhere
                } else {
                    LabelsAt::Arrays(labels)
                },
                single,
            })
        };
        let mut training = set(training)?;
        if let Some(labels) = elsewhere {
            training.labels = LabelsAt::Arrays(vec![labels]);
        }
        let test = test.map(set).transpose()?;
        Ok(Found { training, test })
    }

    /// A file of labels that was named: from the folder of the samples, or from here, if it may be anywhere.
    fn named_file(&self, name: &str, path: &Path) -> Result<Input> {
        let folder = if path.is_dir() { Some(path) } else { path.parent() };
        let beside = folder.map(|folder| folder.join(name));
        match beside.filter(|path| !self.below.is_anywhere() || path.is_file()) {
            Some(beside) => self.open_file(&beside),
            None => self.open_file(Path::new(name)),
        }
    }

    fn open(&self, array: &Named) -> Result<Input> {
        match &array.at {
            At::File(path) => self.open_file(path),
            At::Member(input) => Ok(input.clone()),
        }
    }

    fn open_file(&self, path: &Path) -> Result<Input> {
        self.below.check(path)?;
        Input::open(path)
    }

    /// The arrays and folders in a folder, in the order of their names; the file that was `named` among them.
    fn list(&mut self, path: &Path, named: Option<&str>) -> Result<Listed> {
        let unreadable = |source| Error::Unreadable {
            path: path.into(),
            source,
        };
        let mut listed = Listed {
            files: Vec::new(),
            folders: Vec::new(),
        };
        self.below.check(path)?;
        for entry in fs::read_dir(path).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?.path();
            let name = file_name(&entry);
            if is_hidden(&entry) {
                continue;
            }
            if entry.is_dir() {
                listed.folders.push(entry);
            } else if is_array_name(&name) {
                // The path, the name, and the path once more when it is opened.
                self.listed
                    .try_grow(SHARD_BYTES + 3 * entry.as_os_str().len() as u64)?;
                listed.files.push(Named {
                    name,
                    at: At::File(entry),
                });
            }
        }
        // A file that was unpacked stands beside its compressed original: they are one array.
        let names: HashSet<String> = listed.files.iter().map(|array| array.name.clone()).collect();
        listed.files.retain(|array| {
            let plain = array.name.strip_suffix(".gz");
            Some(array.name.as_str()) == named || plain.is_none_or(|plain| !names.contains(plain))
        });
        listed.files.sort_by(|a, b| a.name.cmp(&b.name));
        listed.folders.sort();
        Ok(listed)
    }
}

struct Listed {
    files: Vec<Named>,
    folders: Vec<PathBuf>,
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned()
}

fn is_hidden(path: &Path) -> bool {
    file_name(path).starts_with(['.', '_'])
}

fn is_zip(input: &Input) -> Result<bool> {
    let mut mark = [0; 4];
    // An archive of nothing begins with its end.
    Ok(input.places()?.fill_at(&mut mark, 0)? && [*b"PK\x03\x04", *b"PK\x05\x06"].contains(&mark))
}
