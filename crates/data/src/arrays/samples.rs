//! The samples of one or more files as one long array, read by ranges.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock, Weak};

use memmap2::{Advice, Mmap, UncheckedAdvice};
use tidegate_memory::Grant;

use super::element::{Element, swap_bytes};
use super::half::write_halves;
use super::header::{Header, Holds};
use super::problem::{ArrayProblem, shown};
use crate::images::Images;
use crate::input::Places;
use crate::pack::drop_range;
use crate::{Compression, Error, Input, Result};

/// What a file takes as long as the samples live, beside the letters of its path.
pub(crate) const SHARD_BYTES: u64 = 384;
/// Up to so many files stay open while samples are read; of more, each is opened when it is met.
const OPEN_FILES: usize = 128;

/// Read at once: as long as a request is under way, what it reads is in the page cache.
pub(crate) const PIECE: usize = 1 << 20;
/// Read at once where it becomes halves on the way.
const NARROWED: usize = 32 << 10;
/// Maps are dropped by whole pages.
const PAGE: u64 = 4 << 10;
/// What the disk is asked for at once: of one request, the kernel serves no more than a device takes.
const AHEAD: usize = 128 << 10;

pub(crate) struct Samples {
    pub shards: Vec<Shard>,
    pub n_samples: u64,
    /// Of one sample.
    pub shape: Vec<usize>,
    /// Values that stand behind each sample and are its labels.
    pub labels: usize,
    pub element: Element,
    pub store: Store,
    /// The file of all shards, where they are parts of one: read to its end even when it is removed.
    pub file: Option<Places>,
    /// For the list of shards.
    #[expect(dead_code, reason = "held for its drop")]
    pub listed: Grant,
}

/// A file of samples.
pub(crate) struct Shard {
    pub input: Input,
    pub header: Header,
    /// The first of its samples, among all, and how many they are.
    pub first: u64,
    pub n_samples: u64,
    /// The values alone, unpacked, in the order of bytes of the machine.
    pub unpacked: Option<Input>,
    /// Locked for as long as this lives, so that nobody removes what was unpacked.
    pub in_use: Option<File>,
}

/// Where samples are taken from.
pub(crate) enum Store {
    Files,
    /// All of them, unless they were let go: then they are read from their files again.
    Memory(Held),
    /// Every shard.
    Mapped(Vec<Mapped>),
    /// Pictures, from wherever they are kept.
    Images(Box<Images>),
}

/// Samples in memory that can be let go while others look at them.
pub(crate) struct Held {
    now: RwLock<Option<Arc<HeldSamples>>>,
    /// The same, as long as anybody looks at them.
    last: Weak<HeldSamples>,
}

/// All samples, in the order of bytes of the machine.
pub(crate) struct HeldSamples {
    pub bytes: Vec<u8>,
    pub grant: Grant,
}

impl Held {
    pub(crate) fn new(samples: HeldSamples) -> Held {
        let samples = Arc::new(samples);
        Held {
            last: Arc::downgrade(&samples),
            now: RwLock::new(Some(samples)),
        }
    }

    pub(crate) fn get(&self) -> Option<Arc<HeldSamples>> {
        self.now.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What they take, also when they were let go and are not gone yet.
    pub(crate) fn bytes(&self) -> u64 {
        self.last.upgrade().map_or(0, |samples| samples.grant.bytes())
    }

    /// They are gone once nobody looks at them any more.
    pub(crate) fn let_go(&self) {
        *self.now.write().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

/// A file, mapped.
pub(crate) struct Mapped {
    map: Mmap,
    file: File,
    /// Where the map begins in the file, and the values in the map.
    start: u64,
    data_at: usize,
}

impl Samples {
    /// Joins arrays end to end; `single` where every one is a sample of its own.
    pub(crate) fn join(arrays: Vec<(Input, Header)>, single: bool, listed: Grant) -> Result<Samples> {
        let mut samples: Option<Samples> = None;
        let mut grant = Some(listed);
        for (input, header) in arrays {
            let Holds::Number(element) = header.holds else {
                let (path, found) = (input.path().into(), header.holds.name());
                return Err(ArrayProblem::Element { path, found }.into());
            };
            let (n, shape) = match header.shape.split_first() {
                _ if single => (1, header.shape.as_slice()),
                Some((n, shape)) => (*n as u64, shape),
                None => (1, &[][..]),
            };
            // A sample of one number has one axis, too.
            let shape = if shape.is_empty() { &[1][..] } else { shape };
            let joined = match &mut samples {
                Some(joined) => joined,
                none => none.insert(Samples {
                    shards: Vec::new(),
                    n_samples: 0,
                    shape: shape.to_vec(),
                    labels: 0,
                    element,
                    store: Store::Files,
                    file: None,
                    listed: grant.take().ok_or_else(|| Error::Stopped {
                        path: input.path().into(),
                    })?,
                }),
            };
            if (joined.element, joined.shape.as_slice()) != (element, shape) {
                return Err(ArrayProblem::OtherSamples {
                    first: joined.path().into(),
                    first_holds: format!("{} {}", joined.element, shown(&joined.shape)),
                    other: input.path().into(),
                    other_holds: format!("{element} {}", shown(shape)),
                }
                .into());
            }
            joined.shards.push(Shard {
                input,
                header,
                first: joined.n_samples,
                n_samples: n,
                unpacked: None,
                in_use: None,
            });
            joined.n_samples += n;
        }
        let samples = samples.ok_or(ArrayProblem::NoArrays { path: PathBuf::new() })?;
        // Each shard fits into a file; all together may not.
        match samples.n_samples.checked_mul(samples.sample_bytes()) {
            Some(bytes) if bytes <= i64::MAX as u64 => Ok(samples),
            _ => Err(ArrayProblem::TooLarge {
                path: samples.path().into(),
                shape: samples.shape,
            }
            .into()),
        }
    }

    /// The first file, for messages.
    pub(crate) fn path(&self) -> &Path {
        self.shards
            .first()
            .map_or(Path::new(""), |shard| shard.input.path())
    }

    /// Numbers in a sample.
    pub(crate) fn sample_len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Bytes from one sample to the next.
    pub(crate) fn sample_bytes(&self) -> u64 {
        ((self.sample_len() + self.labels) * self.element.bytes()) as u64
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.n_samples * self.sample_bytes()
    }

    /// The shard that a sample is in.
    pub(crate) fn shard_of(&self, sample: u64) -> usize {
        self.shards
            .partition_point(|shard| shard.first <= sample)
            .saturating_sub(1)
    }

    /// Why samples cannot be those of one source with `first`.
    pub(crate) fn differ_from(&self, first: &Samples) -> ArrayProblem {
        ArrayProblem::OtherSamples {
            first: first.path().into(),
            first_holds: format!("{} {}", first.element, shown(&first.shape)),
            other: self.path().into(),
            other_holds: format!("{} {}", self.element, shown(&self.shape)),
        }
    }

    pub(crate) fn reader(&self) -> Result<Reader<'_>> {
        if let Some(packed) = self.shards.iter().find(|shard| shard.is_packed()) {
            let path = packed.input.path().into();
            return Err(ArrayProblem::NotUnpacked { path }.into());
        }
        let n_open = match self.shards.len() {
            _ if self.file.is_some() => 0,
            few @ 0..=OPEN_FILES => few,
            _ => 0,
        };
        let open = self.shards.iter().take(n_open);
        let open = open.map(|shard| shard.plain().0.unchanged_places());
        Ok(Reader {
            samples: self,
            open: open.collect::<Result<_>>()?,
        })
    }
}

impl Shard {
    /// Whether it cannot be read at any place.
    pub(crate) fn is_packed(&self) -> bool {
        self.unpacked.is_none() && self.input.compression() != Compression::Plain
    }

    /// The file that its values stand in, and from where.
    pub(crate) fn plain(&self) -> (&Input, u64) {
        match &self.unpacked {
            Some(unpacked) => (unpacked, 0),
            None => (&self.input, self.header.data_at),
        }
    }

    /// What its file holds, where that is not what samples are made of: it becomes halves when it is read.
    pub(crate) fn narrowed(&self, element: Element) -> Option<Element> {
        match self.header.holds {
            Holds::Number(holds) if self.unpacked.is_none() && holds != element => Some(holds),
            _ => None,
        }
    }

    /// A number that half precision does not have, by its place among those of the shard.
    pub(crate) fn beyond_half(&self, place: u64, value: f64) -> ArrayProblem {
        let len = self.header.n_values().unwrap_or(0) / self.n_samples.max(1);
        ArrayProblem::BeyondHalf {
            path: self.input.path().into(),
            sample: self.first + place / len.max(1),
            value,
        }
    }

    /// Whether values are to be turned around once read.
    pub(crate) fn is_turned(&self) -> bool {
        self.unpacked.is_none() && self.header.big_endian && self.header.holds.bytes() > 1
    }
}

/// Reads samples from their files, leaving nothing in the page cache.
pub(crate) struct Reader<'a> {
    samples: &'a Samples,
    /// Every shard, where they are few.
    open: Vec<Places>,
}

impl Reader<'_> {
    /// Fills `into` with the samples that stand together from `first` on, in the order of bytes of the machine.
    pub(crate) fn read(&self, mut first: u64, mut into: &mut [u8]) -> Result<()> {
        let sample_bytes = self.samples.sample_bytes();
        let mut at = self.samples.shard_of(first);
        while !into.is_empty() {
            let shard = &self.samples.shards[at];
            let here = first - shard.first;
            let n = (shard.n_samples - here).min(into.len() as u64 / sample_bytes);
            let (now, later) = into.split_at_mut((n * sample_bytes) as usize);
            let (input, data_at) = shard.plain();
            let opened;
            let places = match self.samples.file.as_ref().or_else(|| self.open.get(at)) {
                Some(places) => places,
                None => {
                    opened = input.unchanged_places()?;
                    &opened
                }
            };
            if let Some(holds) = shard.narrowed(self.samples.element) {
                read_halves(shard, holds, places, here * self.samples.sample_len() as u64, now)?;
                (first, into, at) = (first + n, later, at + 1);
                continue;
            }
            let mut from = data_at + here * sample_bytes;
            for piece in now.chunks_mut(PIECE) {
                if !places.fill_at(piece, from)? {
                    return Err(Error::Changed {
                        path: input.path().into(),
                    });
                }
                from += piece.len() as u64;
            }
            if shard.is_turned() {
                swap_bytes(now, shard.header.holds.bytes());
            }
            (first, into, at) = (first + n, later, at + 1);
        }
        Ok(())
    }
}

/// Reads the values of a shard from one of them on, and makes halves of them.
fn read_halves(
    shard: &Shard,
    holds: Element,
    places: &Places,
    mut first: u64,
    into: &mut [u8],
) -> Result<()> {
    let (input, data_at) = shard.plain();
    // On the stack, of which a thread that reads has enough.
    let mut piece = [0; NARROWED];
    for into in into.chunks_mut(NARROWED / holds.bytes() * Element::F16.bytes()) {
        let n = into.len() / Element::F16.bytes();
        let piece = &mut piece[..n * holds.bytes()];
        if !places.fill_at(piece, data_at + first * holds.bytes() as u64)? {
            return Err(Error::Changed {
                path: input.path().into(),
            });
        }
        if shard.is_turned() {
            swap_bytes(piece, holds.bytes());
        }
        write_halves(holds, piece, into)
            .map_err(|(place, value)| shard.beyond_half(first + place as u64, value))?;
        first += n as u64;
    }
    Ok(())
}

impl Mapped {
    pub(crate) fn new(shard: &Shard) -> Result<Mapped> {
        let (input, data_at) = shard.plain();
        let (file, start) = input.open_at()?;
        let failed = |source| Error::Unreadable {
            path: input.path().into(),
            source,
        };
        let length = (data_at + shard.header.data_bytes()) as usize;
        // SAFETY: the map is only read. That nobody changes the file meanwhile is what a person agrees to who asks for
        // files to be mapped.
        let map =
            unsafe { memmap2::MmapOptions::new().offset(start).len(length).map(&file) }.map_err(failed)?;
        // Advice may be refused; nothing depends on it.
        let _ = map.advise(Advice::Random);
        Ok(Mapped {
            map,
            file,
            start,
            data_at: data_at as usize,
        })
    }

    /// The values.
    pub(crate) fn values(&self) -> &[u8] {
        self.map.get(self.data_at..).unwrap_or_default()
    }

    /// Brings a part of the values into memory: first asks the disk for all of it, which otherwise would come page by
    /// page, then waits for it.
    pub(crate) fn load(&self, at: usize, bytes: usize) {
        let start = self.data_at + at;
        for ahead in (0..bytes).step_by(AHEAD) {
            // Advice may be refused; nothing depends on it.
            let length = AHEAD.min(bytes - ahead);
            let _ = self.map.advise_range(Advice::WillNeed, start + ahead, length);
        }
        // Before Linux 5.14 there is no advice to wait: a look at each page does the same.
        if self.map.advise_range(Advice::PopulateRead, start, bytes).is_err() {
            let pages = self.values().get(at..at + bytes).unwrap_or_default();
            std::hint::black_box(pages.iter().step_by(4 << 10).fold(0u8, |sum, byte| sum ^ byte));
        }
    }

    /// Gives a part of the values back, to be read again when it is met again.
    pub(crate) fn unload(&self, at: usize, bytes: usize) {
        let start = self.data_at + at;
        // SAFETY: of a file's map that is only read, pages come back as they were.
        let _ = unsafe {
            self.map
                .unchecked_advise_range(UncheckedAdvice::DontNeed, start, bytes)
        };
        // Pages that reach beyond are dropped whole, or those at both ends would stay for good.
        let (start, page) = (self.start + start as u64, PAGE);
        drop_range(
            &self.file,
            start / page * page,
            (start + bytes as u64).next_multiple_of(page),
        );
    }
}
