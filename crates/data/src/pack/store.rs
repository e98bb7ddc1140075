//! The folder of all packs: what is there, how much it takes, and what can go.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_memory::Holder;
use twox_hash::XxHash3_64;

use super::manifest::{FORMAT, Manifest, NoIndex, read_index};
use super::read::PackFile;
use super::{Layout, PackProblem};
use crate::{Error, Result};

pub(crate) const DATA: &str = "data.arrow";
pub(crate) const INDEX: &str = "index";
pub(crate) const MANIFEST: &str = "manifest.json";

/// How the files end that hold unpacked arrays, which are kept here, too.
pub(crate) const ARRAY: &str = ".array";

/// Leftovers without an owner go after this, even where their process number is in use again.
const ABANDONED: Duration = Duration::from_secs(3600);

/// What a pack is found by: a number made of everything that its rows depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PackKey(u64);

impl PackKey {
    /// The key of these parts, in this order: the data's fingerprint, the encoders, the target, what is held out and
    /// whatever else the rows depend on. XXH3 of each, beginning from the one before.
    pub fn of(parts: &[&[u8]]) -> PackKey {
        let hash = |seed, part: &&[u8]| XxHash3_64::oneshot_with_seed(seed, part);
        PackKey(parts.iter().fold(u64::from(FORMAT), hash))
    }
}

impl fmt::Display for PackKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for PackKey {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> std::result::Result<PackKey, Self::Err> {
        u64::from_str_radix(text, 16).map(PackKey)
    }
}

/// A pack as the store finds it.
#[derive(Debug, Clone, PartialEq)]
pub struct PackInfo {
    pub key: PackKey,
    /// On disk, all files of it.
    pub bytes: u64,
    pub last_used: Option<SystemTime>,
    /// `None` when the pack is torn: the next run with its key drops it.
    pub contents: Option<PackContents>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct PackContents {
    pub layout: Layout,
    pub n_rows: u64,
    pub created: SystemTime,
    /// What it was made from.
    pub description: String,
}

/// Which packs may go. Torn ones always do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Prune {
    /// Those used longest ago go until the others take no more than this.
    pub keep_bytes: Option<u64>,
    /// Those that were not used for so long go.
    pub older_than: Option<Duration>,
}

/// A folder of packs. It is made with the first of them.
#[derive(Debug, Clone)]
pub struct PackStore {
    root: PathBuf,
}

impl PackStore {
    pub fn at(path: impl Into<PathBuf>) -> PackStore {
        PackStore { root: path.into() }
    }

    pub fn path(&self) -> &Path {
        &self.root
    }

    /// The folder of a pack.
    pub fn folder(&self, key: PackKey) -> PathBuf {
        self.root.join(key.to_string())
    }

    /// All packs, the one used last first.
    pub fn list(&self) -> Result<Vec<PackInfo>> {
        let mut packs = Vec::new();
        for (name, path) in self.entries()? {
            if let Some(key) = key_of(&name) {
                packs.push(info(key, &path));
            } else if let Some(key) = name.strip_suffix(ARRAY).and_then(key_of) {
                packs.extend(array_info(key, &path));
            }
        }
        packs.sort_by_key(|pack| (std::cmp::Reverse(pack.last_used), pack.key));
        Ok(packs)
    }

    /// Removes a pack; `false` if there is none. A run that is reading it reads on.
    pub fn remove(&self, key: PackKey) -> Result<bool> {
        let folder = self.folder(key);
        // In one step, so that nobody meets half of it.
        let aside = self.aside(key, "old");
        match fs::rename(&folder, &aside) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => return self.remove_array(key),
            Err(source) => return Err(Error::Packs { path: folder, source }),
        }
        fs::remove_dir_all(&aside).map_err(|source| Error::Packs { path: aside, source })?;
        Ok(true)
    }

    /// Those who read an array open it again and again, and have a lock on it: then it stays.
    fn remove_array(&self, key: PackKey) -> Result<bool> {
        let path = self.root.join(format!("{key}{ARRAY}"));
        if File::open(&path).is_ok_and(|file| matches!(file.try_lock(), Err(fs::TryLockError::WouldBlock))) {
            return Ok(false);
        }
        match fs::remove_file(&path) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(source) => Err(Error::Packs { path, source }),
        }
    }

    /// Removes what may go, and says what it was.
    pub fn prune(&self, prune: &Prune) -> Result<Vec<PackInfo>> {
        self.sweep()?;
        let (now, mut kept, mut full) = (SystemTime::now(), 0, false);
        let mut gone = Vec::new();
        for pack in self.list()? {
            let unused = pack.last_used.and_then(|used| now.duration_since(used).ok());
            let old = prune
                .older_than
                .is_some_and(|limit| unused.unwrap_or_default() > limit);
            let goes = pack.contents.is_none() || old;
            // Behind the first that does not fit, no pack stays: those used longest ago go first.
            full |= !goes && prune.keep_bytes.is_some_and(|limit| kept + pack.bytes > limit);
            if (goes || full) && self.remove(pack.key)? {
                gone.push(pack);
            } else {
                kept += pack.bytes;
            }
        }
        Ok(gone)
    }

    /// Removes what builders left that were killed; returns how many.
    pub fn sweep(&self) -> Result<usize> {
        let mut swept = 0;
        for (name, path) in self.entries()? {
            if builder_of(&name).is_some_and(|pid| is_abandoned(&path, pid)) {
                fs::remove_dir_all(&path).map_err(|source| Error::Packs { path, source })?;
                swept += 1;
            }
        }
        Ok(swept)
    }

    /// Notes that a pack is used now. Where that cannot be written it is not.
    pub fn touch(&self, key: PackKey) {
        let manifest = File::options().append(true).open(self.folder(key).join(MANIFEST));
        let _ = manifest.and_then(|file| file.set_modified(SystemTime::now()));
    }

    /// Opens a pack of this layout; `None` if there is none. A torn one is dropped, and the problem says so.
    pub(crate) fn open(
        &self,
        key: PackKey,
        layout: Layout,
        holder: &Holder,
    ) -> Result<Option<PackFile>, PackProblem> {
        let Some(manifest) = self.manifest(key)? else {
            return Ok(None);
        };
        if (manifest.format, manifest.layout) != (FORMAT, layout) {
            let what = format!("it holds {}, version {}", manifest.layout, manifest.format);
            return Err(self.damaged(key, what));
        }
        let mut grant = holder.try_grant(0)?;
        let path = self.folder(key).join(INDEX);
        let entries = match read_index(&path, &manifest, &mut grant) {
            Ok(entries) => entries,
            Err(NoIndex::Damaged) => return Err(self.damaged(key, "its index is not whole".into())),
            Err(NoIndex::Unreadable(source)) => return Err(self.unreadable(key, path, source)),
            Err(NoIndex::Refused(refused)) => return Err(refused.into()),
        };
        let pack = PackFile::new(self, key, manifest, entries, grant)?;
        self.touch(key);
        Ok(Some(pack))
    }

    /// What a pack holds; `None` if there is none. A torn one is dropped, and the problem says so.
    pub(crate) fn layout(&self, key: PackKey) -> Result<Option<Layout>, PackProblem> {
        Ok(self.manifest(key)?.map(|manifest| manifest.layout))
    }

    fn manifest(&self, key: PackKey) -> Result<Option<Manifest>, PackProblem> {
        let folder = self.folder(key);
        if !folder.exists() {
            return Ok(None);
        }
        let path = folder.join(MANIFEST);
        match Manifest::read(&path) {
            Ok(manifest) => Ok(Some(manifest)),
            Err(source) => Err(self.unreadable(key, path, source)),
        }
    }

    fn unreadable(&self, key: PackKey, path: PathBuf, source: io::Error) -> PackProblem {
        match source.kind() {
            io::ErrorKind::NotFound | io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                self.damaged(key, format!("{}: {source}", path.display()))
            }
            _ => PackProblem::Unreadable { path, source },
        }
    }

    /// Drops a pack that is not what it should be.
    pub(crate) fn damaged(&self, key: PackKey, what: String) -> PackProblem {
        // What cannot be removed is found damaged again, and never read.
        let _ = self.remove(key);
        PackProblem::Damaged {
            path: self.folder(key),
            what,
        }
    }

    /// A folder beside that of a pack which no other builder uses: `<key>.new-<pid>-<n>`.
    pub(crate) fn aside(&self, key: PackKey, what: &str) -> PathBuf {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (pid, n) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        self.root.join(format!("{key}.{what}-{pid}-{n}"))
    }

    /// Names and paths of what is in the folder; nothing where there is none.
    fn entries(&self) -> Result<Vec<(String, PathBuf)>> {
        let failed = |source| Error::Packs {
            path: self.root.clone(),
            source,
        };
        let entries = match fs::read_dir(&self.root) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let named = |entry: io::Result<fs::DirEntry>| {
            let entry = entry.map_err(failed)?;
            Ok((entry.file_name().to_string_lossy().into_owned(), entry.path()))
        };
        entries.map(named).collect()
    }
}

fn key_of(name: &str) -> Option<PackKey> {
    let key: PackKey = name.parse().ok()?;
    (key.to_string() == name).then_some(key)
}

/// The process that made a folder beside a pack.
fn builder_of(name: &str) -> Option<u32> {
    let (key, rest) = name.split_once('.')?;
    key_of(key)?;
    let rest = rest.strip_prefix("new-").or_else(|| rest.strip_prefix("old-"))?;
    rest.split('-').next()?.parse().ok()
}

/// Whether nobody works on a folder any more. A builder holds a lock on its data, which also tells of builders
/// whose process numbers mean nothing here: in other containers.
fn is_abandoned(path: &Path, pid: u32) -> bool {
    let lock = File::open(path.join(DATA)).map(|file| file.try_lock());
    let locked = matches!(lock, Ok(Err(fs::TryLockError::WouldBlock)));
    let alive = Path::new("/proc").join(pid.to_string()).exists();
    let age = fs::metadata(path)
        .and_then(|metadata| metadata.modified())
        .ok()
        .and_then(|at| at.elapsed().ok());
    !locked && (!alive || age.is_some_and(|age| age > ABANDONED))
}

fn info(key: PackKey, folder: &Path) -> PackInfo {
    let manifest = folder.join(MANIFEST);
    let bytes = [DATA, INDEX, MANIFEST]
        .iter()
        .filter_map(|name| fs::metadata(folder.join(OsStr::new(name))).ok())
        .map(|metadata| metadata.len());
    let bytes = bytes.sum();
    let read = Manifest::read(&manifest)
        .ok()
        .filter(|manifest| manifest.format == FORMAT);
    let whole = |manifest: &Manifest| {
        fs::metadata(folder.join(DATA)).is_ok_and(|metadata| metadata.len() == manifest.data_bytes)
    };
    PackInfo {
        key,
        bytes,
        last_used: fs::metadata(&manifest)
            .and_then(|metadata| metadata.modified())
            .ok(),
        contents: read.filter(whole).and_then(|manifest| {
            Some(PackContents {
                layout: manifest.layout,
                n_rows: manifest.n_rows,
                created: UNIX_EPOCH.checked_add(Duration::from_secs(manifest.created))?,
                description: manifest.description,
            })
        }),
    }
}

/// An unpacked array; `None` if it went meanwhile.
fn array_info(key: PackKey, path: &Path) -> Option<PackInfo> {
    let metadata = fs::metadata(path).ok()?;
    let used = metadata.modified().ok().max(metadata.accessed().ok());
    Some(PackInfo {
        key,
        bytes: metadata.len(),
        last_used: used,
        contents: Some(PackContents {
            layout: Layout::Unpacked,
            n_rows: 0,
            created: metadata.created().ok().or(used)?,
            description: "a compressed array".into(),
        }),
    })
}
