//! A look at the header of every file before anything is decoded: what there is, what decoding will take, what is no image.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tidegate_memory::Holder;
use twox_hash::XxHash3_64;

use super::fault::PictureFault;
use super::heaviest::Heaviest;
use super::list::List;
use super::needs::Needs;
use super::probe::{HEAD_BYTES, Probe, unreadable};
use crate::sketch::hash::mix;
use crate::{Below, Result};

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
    /// Changes with the names, sizes, times and order of the images that can be used.
    pub(crate) fingerprint: u64,
    pub(crate) largest_file: u64,
    pub(crate) heaviest: Heaviest,
}

/// Files that cannot be used.
#[derive(Debug, Clone, Default)]
pub struct BadFiles {
    pub count: u64,
    /// The first of them, in the order of files, and why.
    pub first: Vec<(PathBuf, String)>,
}

/// Files that cannot be used, in the order of files, whichever thread met them first.
#[derive(Debug, Default)]
pub(crate) struct BadList {
    pub count: u64,
    first: BTreeMap<u64, (PathBuf, String)>,
}

impl BadList {
    pub(crate) fn add(&mut self, file: u64, path: PathBuf, fault: &PictureFault) {
        self.count += 1;
        self.first.insert(file, (path, fault.to_string()));
        self.trim();
    }

    fn merge(&mut self, other: BadList) {
        self.count += other.count;
        self.first.extend(other.first);
        self.trim();
    }

    fn trim(&mut self) {
        while self.first.len() > NAMED {
            self.first.pop_last();
        }
    }

    pub(crate) fn files(&self) -> BadFiles {
        BadFiles {
            count: self.count,
            first: self.first.values().cloned().collect(),
        }
    }
}

/// What one thread saw.
#[derive(Default)]
struct Seen {
    survey: Survey,
    sizes: Sizes,
    bad: Vec<usize>,
    told: BadList,
    /// The first file that lies where none may be.
    outside: Option<usize>,
    needs: Needs,
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

/// Says how many files were looked at, of how many; may break off.
pub type Looked<'a> = dyn FnMut(u64, u64) -> ControlFlow<()> + 'a;

/// What a look at all files asks.
pub(crate) struct Look<'a, N> {
    /// Names of files are told apart by what is behind this.
    pub root: &'a Path,
    /// Where they may be.
    pub below: &'a Below,
    pub threads: usize,
    /// What decoding a picture takes, and the most that it may: no feed could have more.
    pub need: N,
    pub room: u64,
}

/// Looks at every file of the list. Returns what there is, what it takes, and which files are no images that can be used;
/// `None` when `looked` ends it.
pub(crate) fn survey<N: Fn(&Probe) -> u64 + Sync>(
    list: &List,
    look: &Look<'_, N>,
    holder: &Holder,
    looked: &mut Looked<'_>,
) -> Result<Option<(Survey, Needs, Vec<usize>)>> {
    let n_files = list.len();
    let threads = look.threads.clamp(1, n_files.div_ceil(STRIDE).max(1));
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
                        seen.look(list.path(file), file, &mut head, look);
                    }
                    done.fetch_add(last - first, Ordering::Relaxed);
                }
                let mut all = all.lock().unwrap_or_else(PoisonError::into_inner);
                all.merge(seen);
                at_work.fetch_sub(1, Ordering::Release);
                caller.unpark();
            });
        }
        // At the beginning and at the end, however short it takes: who waits may always end it.
        loop {
            let is_over = at_work.load(Ordering::Acquire) == 0;
            let flow = looked(done.load(Ordering::Relaxed) as u64, n_files as u64);
            stopped.store(flow.is_break(), Ordering::Relaxed);
            if is_over || flow.is_break() {
                break;
            }
            std::thread::park_timeout(TOLD_EVERY);
        }
    });
    let seen = all.into_inner().unwrap_or_else(PoisonError::into_inner);
    if stopped.load(Ordering::Relaxed) {
        return Ok(None);
    }
    if let Some(file) = seen.outside {
        return Err(look.below.refused(&list.path(file)));
    }
    let mut survey = seen.survey;
    survey.bad = seen.told.files();
    survey.same_size = match seen.sizes {
        Sizes::One(width, height) => Some((width, height)),
        Sizes::None | Sizes::Several => None,
    };
    let mut bad = seen.bad;
    bad.sort_unstable();
    Ok(Some((survey, seen.needs, bad)))
}

impl Seen {
    fn look<N: Fn(&Probe) -> u64>(
        &mut self,
        path: PathBuf,
        file: usize,
        head: &mut Vec<u8>,
        look: &Look<'_, N>,
    ) {
        if !look.below.holds(&path) {
            self.outside = Some(self.outside.map_or(file, |first| first.min(file)));
            return;
        }
        let survey = &mut self.survey;
        survey.files += 1;
        let probed = open(&path).and_then(|opened| {
            let data = opened.metadata().map_err(unreadable)?;
            survey.bytes += data.len();
            let probe = Probe::read(&opened, head)?;
            let needs = (look.need)(&probe);
            match needs <= look.room {
                true => Ok((data, probe, needs)),
                false => Err(PictureFault::TooLarge {
                    width: probe.width,
                    height: probe.height,
                    needs,
                    room: look.room,
                }),
            }
        });
        match probed {
            Ok((data, probe, needs)) => {
                let name = path.strip_prefix(look.root).unwrap_or(&path);
                let mut mark = XxHash3_64::oneshot(name.as_os_str().as_encoded_bytes());
                for value in [
                    data.len(),
                    data.mtime().cast_unsigned(),
                    data.mtime_nsec().cast_unsigned(),
                    file as u64,
                ] {
                    mark = mix(mark ^ value);
                }
                // A sum does not depend on which thread saw a file.
                survey.fingerprint = survey.fingerprint.wrapping_add(mark);
                *survey.formats.entry(probe.format.name()).or_default() += 1;
                survey.gray += u64::from(probe.is_gray());
                survey.colour += u64::from(!probe.is_gray());
                survey.most_pixels = survey.most_pixels.max(probe.pixels());
                survey.largest_file = survey.largest_file.max(probe.file_bytes);
                self.sizes = self.sizes.with(Sizes::One(probe.width, probe.height));
                survey.heaviest.add(file as u64, needs);
                self.needs.add(needs);
            }
            Err(fault) => {
                self.told.add(file as u64, path, &fault);
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
        survey.fingerprint = survey.fingerprint.wrapping_add(its.fingerprint);
        survey.heaviest.merge(&its.heaviest);
        self.sizes = self.sizes.with(other.sizes);
        self.bad.extend(other.bad);
        self.outside = self.outside.into_iter().chain(other.outside).min();
        self.told.merge(other.told);
        self.needs.merge(&other.needs);
    }
}

/// Opens a file of an image. What is no plain file, such as a pipe that nobody writes to, is not waited for.
pub(crate) fn open(path: &Path) -> Result<File, PictureFault> {
    let opened = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK)
        .open(path);
    let file = opened.map_err(|source| match source.kind() {
        io::ErrorKind::NotFound => PictureFault::NotFound,
        // A socket cannot be opened.
        _ if source.raw_os_error() == Some(libc::ENXIO) => PictureFault::NoFile,
        _ => unreadable(source),
    })?;
    match file.metadata().map_err(unreadable)?.is_file() {
        true => Ok(file),
        false => Err(PictureFault::NoFile),
    }
}
