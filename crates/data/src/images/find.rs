//! From what a person names to files of images: a folder of class folders, one with parts for training and validation, or a
//! table of paths and labels.

use std::ffi::OsStr;
use std::fs;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use tidegate_memory::Holder;

use super::list::List;
use super::problem::ImageProblem;
use crate::arrays::names::{Split, split};
use crate::{Below, Error, Result};

/// Endings of the formats that are decoded.
const ENDINGS: [&str; 11] = [
    "jpg", "jpeg", "jpe", "jfif", "png", "webp", "bmp", "dib", "gif", "tif", "tiff",
];
/// Endings of tables that may list images.
const TABLES: [&str; 6] = ["csv", "tsv", "jsonl", "ndjson", "parquet", "arrow"];
/// Folders in folders are followed so far.
const DEEPEST: usize = 64;

/// Files that belong together, in order.
pub(crate) struct Set {
    /// The folder of the class folders.
    pub path: PathBuf,
    pub list: List,
    /// The class of every folder.
    pub folders: Folders,
    /// Files beside the class folders, which have no label.
    pub unlabelled: u64,
}

/// Folders that are classes.
#[derive(Debug, Clone)]
pub(crate) struct Folders {
    pub classes: Vec<String>,
    /// The class of each folder of the list.
    pub of: Vec<u32>,
}

/// What a folder holds.
pub(crate) struct Found {
    pub training: Set,
    pub validation: Option<Set>,
    pub test: Option<Set>,
}

/// What was named.
pub(crate) enum Named {
    Folder(Box<Found>),
    /// A table that lists images.
    Table(PathBuf),
}

pub(crate) fn is_image_name(name: &OsStr) -> bool {
    has_ending(Path::new(name), &ENDINGS)
}

fn has_ending(path: &Path, endings: &[&str]) -> bool {
    let ending = path.extension().and_then(OsStr::to_str);
    ending.is_some_and(|ending| endings.iter().any(|known| known.eq_ignore_ascii_case(ending)))
}

fn is_hidden(name: &OsStr) -> bool {
    name.as_encoded_bytes().starts_with(b".")
}

/// Whether what was named looks like images: a folder that holds them, or folders of them; one image; or a table whose
/// first row names an image that is there. Nothing outside of where files may be is looked at.
pub fn are_images(path: &Path, below: &Below) -> bool {
    if !below.holds(path) {
        return false;
    }
    match path.is_dir() {
        // The folder, its classes, or the classes of its parts, and whatever is in those.
        true => match read(path, below) {
            // Tables of anything may have pictures beside them: folders of classes say that those are meant.
            Ok(inside) if !inside.files.is_empty() => {
                let in_folder = |name: &PathBuf| holds_images(&path.join(name), below, 2);
                let in_parts = inside.part(Split::Training).is_some_and(in_folder);
                in_parts
                    || inside
                        .folders
                        .iter()
                        .filter(|name| in_folder(name))
                        .nth(1)
                        .is_some()
                    || matches!(inside.files.as_slice(), [table] if lists_images(&path.join(table), below))
            }
            _ => holds_images(path, below, 3),
        },
        false => has_ending(path, &ENDINGS) || lists_images(path, below),
    }
}

fn holds_images(folder: &Path, below: &Below, deeper: usize) -> bool {
    let entries = || {
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter(|entry| !is_hidden(&entry.file_name()))
    };
    entries().any(|entry| is_image_name(&entry.file_name()))
        || (deeper > 0
            && entries()
                .map(|entry| entry.path())
                .filter(|path| path.is_dir() && below.holds(path))
                .any(|path| holds_images(&path, below, deeper - 1)))
}

/// Looked at of a table to see whether it lists images.
const LOOKED_AT: u64 = 64 << 10;

/// Whether the first rows of a text table name an image that is there.
fn lists_images(path: &Path, below: &Below) -> bool {
    if !has_ending(path, &TABLES[..4]) || !below.holds(path) {
        return false;
    }
    let mut head = Vec::new();
    let read = fs::File::open(path).and_then(|file| file.take(LOOKED_AT).read_to_end(&mut head));
    let folder = path.parent().unwrap_or(Path::new(""));
    let text = String::from_utf8_lossy(&head);
    let named = |line: &str| {
        let mut fields = line.split([',', '\t', ';', '"', '\'', '|']).map(str::trim);
        let is_there = |image: PathBuf| below.holds(&image) && image.is_file();
        fields.any(|field| is_image_name(OsStr::new(field)) && is_there(folder.join(field)))
    };
    // The first may be a header.
    read.is_ok() && text.lines().take(3).any(named)
}

/// Finds images with the labels that folders give.
pub(crate) fn find(path: &Path, below: &Below, holder: &Holder) -> Result<Named> {
    below.check(path)?;
    if !is_folder(path)? {
        return match has_ending(path, &TABLES) {
            true => Ok(Named::Table(path.into())),
            false => Err(ImageProblem::NotAFolder { path: path.into() }.into()),
        };
    }
    let inside = read(path, below)?;
    if let Some(training) = inside.part(Split::Training) {
        let set = |name: &PathBuf| classes(&path.join(name), below, holder);
        return Ok(Named::Folder(Box::new(Found {
            training: set(training)?,
            validation: inside.part(Split::Validation).map(set).transpose()?,
            test: inside.part(Split::Test).map(set).transpose()?,
        })));
    }
    if let [table] = inside.files.as_slice() {
        let table = path.join(table);
        let folders = inside.folders.iter().map(|folder| path.join(folder));
        let n_classes = folders
            .filter(|folder| holds_images(folder, below, 2))
            .take(2)
            .count();
        // All images may be in one folder, which is no class if a table says what they show.
        if n_classes == 0 || (n_classes == 1 && lists_images(&table, below)) {
            return Ok(Named::Table(table));
        }
    }
    Ok(Named::Folder(Box::new(Found {
        training: classes(path, below, holder)?,
        validation: None,
        test: None,
    })))
}

/// Finds images alone: all that a folder holds, or one.
pub(crate) fn find_unlabelled(path: &Path, below: &Below, holder: &Holder) -> Result<List> {
    below.check(path)?;
    let mut list = List::new(holder)?;
    match is_folder(path)? {
        true => collect(path, below, &mut list, &mut Vec::new())?,
        false => {
            let folder = list.add_folder(path.parent().unwrap_or(Path::new("")))?;
            list.push(folder, path.file_name().unwrap_or_default())?;
        }
    }
    list.close();
    match list.len() {
        0 => Err(ImageProblem::NoImages { path: path.into() }.into()),
        _ => Ok(list),
    }
}

fn is_folder(path: &Path) -> Result<bool> {
    let metadata = fs::metadata(path).map_err(|source| Error::of_path(path, source))?;
    Ok(metadata.is_dir())
}

/// What a folder holds that is not hidden, folders in the order of their names.
struct Inside {
    folders: Vec<PathBuf>,
    files: Vec<PathBuf>,
}

impl Inside {
    /// The folder of a part.
    fn part(&self, wanted: Split) -> Option<&PathBuf> {
        let mut folders = self.folders.iter();
        folders.find(|name| name.to_str().and_then(split) == Some(wanted))
    }
}

fn read(folder: &Path, below: &Below) -> Result<Inside> {
    let mut inside = Inside {
        folders: Vec::new(),
        files: Vec::new(),
    };
    each(folder, below, |name, is_folder| {
        if is_folder {
            inside.folders.push(name.into());
        } else if has_ending(Path::new(name), &TABLES) {
            inside.files.push(name.into());
        }
        Ok(())
    })?;
    inside.folders.sort();
    inside.files.sort();
    Ok(inside)
}

/// Names what stands in a folder, one after another, and whether it is a folder.
fn each(folder: &Path, below: &Below, mut take: impl FnMut(&OsStr, bool) -> Result<()>) -> Result<()> {
    below.check(folder)?;
    let unreadable = |source| Error::Unreadable {
        path: folder.into(),
        source,
    };
    for entry in fs::read_dir(folder).map_err(unreadable)? {
        let entry = entry.map_err(unreadable)?;
        let name = entry.file_name();
        if is_hidden(&name) {
            continue;
        }
        let kind = entry.file_type().map_err(unreadable)?;
        // A link counts as what it leads to.
        let is_folder = kind.is_dir() || (kind.is_symlink() && entry.path().is_dir());
        take(&name, is_folder)?;
    }
    Ok(())
}

/// A folder, whatever links lead to it: its device, and its number there.
type Identity = (u64, u64);

fn identity(folder: &Path) -> Result<Identity> {
    let data = fs::metadata(folder).map_err(|source| Error::Unreadable {
        path: folder.into(),
        source,
    })?;
    Ok((data.dev(), data.ino()))
}

/// Adds all images of a folder and of those within it. `above` are the folders that this one is in: a link to one of them
/// would lead round in a circle.
fn collect(folder: &Path, below: &Below, list: &mut List, above: &mut Vec<Identity>) -> Result<()> {
    let own = identity(folder)?;
    if above.contains(&own) || above.len() > DEEPEST {
        return Ok(());
    }
    let (number, first) = (list.add_folder(folder)?, list.len());
    let mut folders: Vec<PathBuf> = Vec::new();
    each(folder, below, |name, is_folder| {
        if is_folder {
            folders.push(folder.join(name));
        } else if is_image_name(name) {
            list.push(number, name)?;
        }
        Ok(())
    })?;
    list.sort_from(first)?;
    folders.sort();
    above.push(own);
    for folder in &folders {
        collect(folder, below, list, above)?;
    }
    above.pop();
    Ok(())
}

/// The images of a folder whose folders are classes.
fn classes(path: &Path, below: &Below, holder: &Holder) -> Result<Set> {
    let mut list = List::new(holder)?;
    let mut found = Folders {
        classes: Vec::new(),
        of: Vec::new(),
    };
    for folder in read(path, below)?.folders {
        let (first, before) = (list.len(), list.n_folders());
        let mut above = vec![identity(path)?];
        collect(&path.join(&folder), below, &mut list, &mut above)?;
        let class = found.classes.len() as u32;
        found.of.resize(list.n_folders(), class);
        if list.len() > first {
            found.classes.push(folder.display().to_string());
        } else {
            // A folder without images is no class.
            found.of.truncate(before);
            list.drop_folders(before);
        }
    }
    list.close();
    let mut beside = 0;
    each(path, below, |name, is_folder| {
        beside += u64::from(!is_folder && is_image_name(name));
        Ok(())
    })?;
    match (list.len(), beside) {
        (0, 0) => Err(ImageProblem::NoImages { path: path.into() }.into()),
        (0, files) => Err(ImageProblem::NoLabels {
            path: path.into(),
            files,
        }
        .into()),
        _ => Ok(Set {
            path: path.into(),
            list,
            folders: found,
            unlabelled: beside,
        }),
    }
}
