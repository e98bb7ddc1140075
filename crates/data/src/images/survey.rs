//! A look at the header of every file before anything is decoded: what there is, what decoding will take, what is no image.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_memory::Holder;
use twox_hash::XxHash3_64;

use super::fault::PictureFault;
use super::list::List;
use super::probe::{HEAD_BYTES, Probe, unreadable};
use crate::Result;
use crate::sketch::hash::mix;

/// Files that a thread takes at once.
const STRIDE: usize = 64;
/// What a thread takes: the beginning of a file, and its stack.
const THREAD_BYTES: u64 = (HEAD_BYTES as u64) + (64 << 10);
/// Between two words on how far it is.
const TOLD_EVERY: Duration = Duration::from_millis(100);
/// Files that are named; the rest are counted.
const NAMED: usize = 5;

/// What the headers of all files say.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
    /// By format, as people write it.
    pub formats: BTreeMap<&'static str, u64>,
    /// Images of one channel, and all others.
    pub gray: u64,
    pub colour: u64,
    /// The size that all images have, where it is one; and the most pixels that one has.
    pub same_size: Option<(u32, u32)>,
    pub most_pixels: u64,
    pub bad: BadFiles,
    /// Changes with the names, sizes and times of files.
    pub(crate) fingerprint: u64,
    pub(crate) largest_file: u64,
}

/// Files that cannot be used.
#[derive(Debug, Clone, Default)]
pub struct BadFiles {
    pub count: u64,
    /// The first of them, in the order of files, and why.
    pub first: Vec<(PathBuf, String)>,
}

impl BadFiles {
    pub(crate) fn add(&mut self, path: PathBuf, fault: &PictureFault) {
        self.count += 1;
        self.first.push((path, fault.to_string()));
    }

    /// In the order of files, whichever thread met them first.
    fn finish(&mut self) {
        self.first.sort();
        self.first.truncate(NAMED);
    }
}

/// What one thread saw.
#[derive(Default)]
struct Seen {
    survey: Survey,
    sizes: Sizes,
    bad: Vec<usize>,
    /// What decoding the largest takes; those beyond a bound are counted apart.
    probes: Needs,
}

#[derive(Default, Clone, Copy, PartialEq)]
enum Sizes {
    #[default]
    None,
    One(u32, u32),
    Several,
}

impl Sizes {
    fn with(self, other: Sizes) -> Sizes {
        match (self, other) {
            (Sizes::None, other) => other,
            (one, other) if one == other || other == Sizes::None => one,
            _ => Sizes::Several,
        }
    }
}

/// What decoding takes, of the usual images and of the largest.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Needs {
    /// Of images that take no more than [`USUAL_BYTES`], the most.
    pub usual: u64,
    /// Of all, the most.
    pub most: u64,
}

/// Images that take no more than this are decoded on all threads at once; larger ones one after another.
pub(crate) const USUAL_BYTES: u64 = 4 << 20;

impl Needs {
    fn add(&mut self, bytes: u64) {
        if bytes <= USUAL_BYTES {
            self.usual = self.usual.max(bytes);
        }
        self.most = self.most.max(bytes);
    }

    /// The size that was counted for may not be the one that is chosen.
    pub(crate) fn with_some_more(self) -> Needs {
        Needs {
            usual: self.usual + self.usual / 8,
            most: self.most + self.most / 8,
        }
    }

    fn with(self, other: Needs) -> Needs {
        Needs {
            usual: self.usual.max(other.usual),
            most: self.most.max(other.most),
        }
    }
}

/// Says how many files were looked at, of how many; may break off.
pub type Looked<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// Looks at every file of the list. `need` tells what decoding takes. Returns what there is, what it takes, and which files
/// are no images; `None` when `looked` ends it.
pub(crate) fn survey(
    list: &List,
    root: &Path,
    threads: usize,
    holder: &Holder,
    need: impl Fn(&Probe) -> u64 + Sync,
    looked: &mut Looked<'_>,
) -> Result<Option<(Survey, Needs, Vec<usize>)>> {
    let n_files = list.len();
    let threads = threads.clamp(1, n_files.div_ceil(STRIDE).max(1));
    let _granted = holder.try_grant(THREAD_BYTES * threads as u64)?;
    let (next, done, at_work) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(threads),
    );
    let stopped = AtomicBool::new(false);
    let all = Mutex::new(Seen::default());
    let caller = std::thread::current();
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                let mut seen = Seen::default();
                let mut head = Vec::with_capacity(HEAD_BYTES);
                loop {
                    let first = next.fetch_add(STRIDE, Ordering::Relaxed);
                    if first >= n_files || stopped.load(Ordering::Relaxed) {
                        break;
                    }
                    let last = (first + STRIDE).min(n_files);
                    for file in first..last {
                        seen.look(list.path(file), root, file, &mut head, &need);
                        // A long header is rare; its room is not kept.
                        head.truncate(HEAD_BYTES);
                        head.shrink_to(HEAD_BYTES);
                    }
                    done.fetch_add(last - first, Ordering::Relaxed);
                }
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.merge(seen);
                at_work.fetch_sub(1, Ordering::Relaxed);
                caller.unpark();
            });
        }
        while at_work.load(Ordering::Relaxed) > 0 && !stopped.load(Ordering::Relaxed) {
            std::thread::park_timeout(TOLD_EVERY);
            let flow = looked(done.load(Ordering::Relaxed) as u64, n_files as u64);
            stopped.store(flow.is_break(), Ordering::Relaxed);
        }
    });
    let seen = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    if stopped.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let mut survey = seen.survey;
    survey.bad.finish();
    survey.same_size = match seen.sizes {
        Sizes::One(width, height) => Some((width, height)),
        Sizes::None | Sizes::Several => None,
    };
    let mut bad = seen.bad;
    bad.sort_unstable();
    Ok(Some((survey, seen.probes, bad)))
}

impl Seen {
    fn look(
        &mut self,
        path: PathBuf,
        root: &Path,
        file: usize,
        head: &mut Vec<u8>,
        need: &impl Fn(&Probe) -> u64,
    ) {
        let survey = &mut self.survey;
        survey.files += 1;
        let probed = open(&path).and_then(|opened| {
            let data = opened.metadata().map_err(unreadable)?;
            let size = data.len();
            let name = path.strip_prefix(root).unwrap_or(&path);
            let mut mark = XxHash3_64::oneshot(name.as_os_str().as_encoded_bytes());
            for value in [
                size,
                data.mtime().cast_unsigned(),
                data.mtime_nsec().cast_unsigned(),
            ] {
                mark = mix(mark ^ value);
            }
            // A sum does not depend on which thread saw a file.
            survey.fingerprint = survey.fingerprint.wrapping_add(mark);
            survey.bytes += size;
            Probe::read(&opened, head)
        });
        match probed {
            Ok(probe) => {
                *survey.formats.entry(probe.format.name()).or_default() += 1;
                survey.gray += u64::from(probe.is_gray());
                survey.colour += u64::from(!probe.is_gray());
                survey.most_pixels = survey.most_pixels.max(probe.pixels());
                survey.largest_file = survey.largest_file.max(probe.file_bytes);
                self.sizes = self.sizes.with(Sizes::One(probe.width, probe.height));
                self.probes.add(need(&probe));
            }
            Err(fault) => {
                survey.bad.add(path, &fault);
                survey.bad.finish();
                self.bad.push(file);
            }
        }
    }

    fn merge(&mut self, other: Seen) {
        let (survey, its) = (&mut self.survey, other.survey);
        survey.files += its.files;
        survey.bytes += its.bytes;
        for (format, n) in its.formats {
            *survey.formats.entry(format).or_default() += n;
        }
        survey.gray += its.gray;
        survey.colour += its.colour;
        survey.most_pixels = survey.most_pixels.max(its.most_pixels);
        survey.largest_file = survey.largest_file.max(its.largest_file);
        survey.bad.count += its.bad.count;
        survey.bad.first.extend(its.bad.first);
        survey.fingerprint = survey.fingerprint.wrapping_add(its.fingerprint);
        self.sizes = self.sizes.with(other.sizes);
        self.bad.extend(other.bad);
        self.probes = self.probes.with(other.probes);
    }
}

/// Opens a file of an image.
pub(crate) fn open(path: &Path) -> Result<File, PictureFault> {
    File::open(path).map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => PictureFault::NotFound,
        _ => unreadable(source),
    })
}
