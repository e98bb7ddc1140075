//! What a training may be started on: files and folders below the roots of the page, and nothing else.
//!
//! A path is taken apart before the disk is asked about it: outside of the roots nobody learns what is there. What it
//! really is counts, so that a link leads no further than the path itself may.

use std::ffi::OsStr;
use std::fs::{self, DirEntry};
use std::path::{Component, Path, PathBuf};

use serde::Serialize;

use crate::error::{Error, Result};
use crate::site::Options;

/// Entries of a folder that are looked at, and that are shown of each kind.
const LOOKED_AT: usize = 20_000;
const SHOWN: usize = 400;

/// Endings of files that a table or an array may be in, those of packed ones aside.
const TABLES: [&str; 15] = [
    "csv", "tsv", "tab", "psv", "txt", "jsonl", "ndjson", "json", "parquet", "arrow", "feather", "ipc",
    "sqlite", "db", "zip",
];
const ARRAYS: [&str; 2] = ["npy", "npz"];
const PACKED: [&str; 4] = ["gz", "gzip", "zst", "zstd"];
const PICTURES: [&str; 8] = ["jpg", "jpeg", "png", "bmp", "gif", "tif", "tiff", "webp"];

/// A folder as it may be looked into.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Folder {
    pub(crate) path: PathBuf,
    /// The root that it is in, or is.
    pub(crate) root: PathBuf,
    pub(crate) folders: Vec<PathBuf>,
    pub(crate) files: Vec<DataFile>,
    /// Pictures are many, and are chosen by their folder.
    pub(crate) pictures: usize,
    /// There is more than is told.
    pub(crate) more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct DataFile {
    pub(crate) path: PathBuf,
    pub(crate) bytes: u64,
}

/// The file or folder that a path really is, if it may be used.
pub(crate) fn allowed(options: &Options, asked: &str) -> Result<PathBuf> {
    let refused = |why: &str| {
        Err(Error::Refused {
            what: format!("{asked}: {why}"),
            hint: hint(options),
        })
    };
    let path = Path::new(asked);
    let steps_back = path.components().any(|part| part == Component::ParentDir);
    let bounds = Bounds::of(options);
    if steps_back || !bounds.hold(path) {
        return refused("this is in none of the folders that data may come from");
    }
    let Ok(real) = path.canonicalize() else {
        return Err(Error::NotFound {
            what: format!("{asked}: there is no such file or folder"),
            hint: hint(options),
        });
    };
    if !bounds.hold(&real) {
        return refused("it leads out of the folders that data may come from");
    }
    match real.to_str().is_some() && (real.is_dir() || real.is_file()) {
        true => Ok(real),
        false => refused("this is neither a file nor a folder that can be named"),
    }
}

/// The same where it is to be trained on: no job file names other data. Links inside of a folder are held against the roots
/// by the program when it reads them: to follow all of them beforehand could take minutes.
pub(crate) fn allowed_data(options: &Options, asked: &str) -> Result<PathBuf> {
    let path = allowed(options, asked)?;
    let is_job = ending(&path).is_some_and(|ending| ending == "toml");
    if is_job {
        return Err(Error::Refused {
            what: format!("{asked}: a job file may name any data"),
            hint: "name the data themselves, or train it on the command line: tidegate train JOB.toml".into(),
        });
    }
    Ok(path)
}

/// What is in a folder.
pub(crate) fn folder(options: &Options, asked: &str) -> Result<Folder> {
    let path = allowed(options, asked)?;
    let bounds = Bounds::of(options);
    let root = bounds
        .root_of(&path)
        .map_or_else(|| path.clone(), Path::to_path_buf);
    let entries = fs::read_dir(&path).map_err(|source| Error::Io {
        action: "looked into",
        path: path.clone(),
        source,
    })?;
    let mut found = Folder {
        root,
        folders: Vec::new(),
        files: Vec::new(),
        pictures: 0,
        more: false,
        path,
    };
    for (n, entry) in entries.flatten().enumerate() {
        if n == LOOKED_AT {
            found.more = true;
            break;
        }
        found.add(&bounds, &entry);
    }
    found.folders.sort();
    found.files.sort_by(|a, b| a.path.cmp(&b.path));
    found.more |= found.folders.len() > SHOWN || found.files.len() > SHOWN;
    found.folders.truncate(SHOWN);
    found.files.truncate(SHOWN);
    Ok(found)
}

impl Folder {
    fn add(&mut self, bounds: &Bounds, entry: &DirEntry) {
        let name = entry.file_name();
        let Some(text) = name.to_str().filter(|name| !name.starts_with(['.', '_'])) else {
            return;
        };
        let path = entry.path();
        let kind = Kind::of(Path::new(text));
        let is_link = entry.file_type().is_ok_and(|kind| kind.is_symlink());
        if is_link && !path.canonicalize().is_ok_and(|real| bounds.hold(&real)) {
            return;
        }
        if bounds.is_home(&path) {
            return;
        }
        // Asking the disk about every one of a hundred thousand pictures would take its time.
        if kind == Kind::Picture && !is_link && entry.file_type().is_ok_and(|kind| kind.is_file()) {
            self.pictures += 1;
            return;
        }
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_dir() => self.folders.push(path),
            Ok(metadata) if metadata.is_file() && kind == Kind::Data => {
                let bytes = metadata.len();
                self.files.push(DataFile { path, bytes });
            }
            _ => {}
        }
    }

    /// The folder that it is in, where that may be looked into.
    pub(crate) fn parent(&self) -> Option<&Path> {
        self.path.parent().filter(|_| self.path != self.root)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Data,
    Picture,
    Other,
}

impl Kind {
    fn of(name: &Path) -> Kind {
        let text = name.to_string_lossy().to_lowercase();
        match ending(name) {
            Some(ending) if TABLES.contains(&ending.as_str()) || ARRAYS.contains(&ending.as_str()) => {
                Kind::Data
            }
            Some(ending) if PICTURES.contains(&ending.as_str()) => Kind::Picture,
            // Arrays of the kind that MNIST is in.
            _ if text.contains("-idx") && text.contains("ubyte") => Kind::Data,
            _ => Kind::Other,
        }
    }
}

/// The ending that tells the format, in small letters: `csv` of `a.CSV.gz`.
fn ending(path: &Path) -> Option<String> {
    let lower = |path: &Path| path.extension().and_then(OsStr::to_str).map(str::to_lowercase);
    match lower(path) {
        Some(ending) if PACKED.contains(&ending.as_str()) => lower(Path::new(path.file_stem()?)),
        ending => ending,
    }
}

/// Where data may be.
struct Bounds<'a> {
    roots: &'a [PathBuf],
    /// Where runs are kept: what is in there is no data.
    home: Option<PathBuf>,
}

impl Bounds<'_> {
    fn of(options: &Options) -> Bounds<'_> {
        Bounds {
            roots: &options.roots,
            home: options.home.canonicalize().ok(),
        }
    }

    /// The innermost root that a path is in.
    fn root_of(&self, path: &Path) -> Option<&Path> {
        let roots = self.roots.iter().filter(|root| path.starts_with(root));
        roots
            .map(PathBuf::as_path)
            .max_by_key(|root| root.components().count())
    }

    /// Whether it is below a root, nothing on the way is hidden, and it is not where runs are kept.
    fn hold(&self, path: &Path) -> bool {
        let Some(below) = self.root_of(path).and_then(|root| path.strip_prefix(root).ok()) else {
            return false;
        };
        let is_hidden = |part: Component| part.as_os_str().as_encoded_bytes().starts_with(b".");
        !below.components().any(is_hidden) && !self.is_home(path)
    }

    fn is_home(&self, path: &Path) -> bool {
        self.home.as_ref().is_some_and(|home| path.starts_with(home))
    }
}

fn hint(options: &Options) -> String {
    let roots: Vec<String> = options
        .roots
        .iter()
        .map(|root| root.display().to_string())
        .collect();
    format!(
        "data may come from {}; tidegate ui --root FOLDER allows others",
        roots.join(", ")
    )
}
