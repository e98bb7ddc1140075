//! Images as samples of one size: taken from memory, from a pack, or decoded from their files.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError, RwLock};

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Ledger};

use super::augment::Augment;
use super::fault::PictureFault;
use super::form::ImageForm;
use super::list::List;
use super::needs::Needs;
use super::picture::Pictures;
use super::problem::ImageProblem;
use super::survey::{BadFiles, BadList};
use crate::Result;
use crate::arrays::Part;
use crate::meter::{Meter, Stage};
use crate::pack::SamplesPack;

/// What is done with a file that turns out to be no image.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum BadFileRule {
    /// It is left out, counted and named.
    #[default]
    Skip,
    /// It ends the run.
    Fail,
}

/// The images of a source.
pub(crate) struct Images {
    pub list: List,
    /// What the network sees, and the size that is kept of every image.
    pub form: ImageForm,
    pub stored: (usize, usize),
    pub augment: Augment,
    pub rule: BadFileRule,
    /// As many of each class as of any other.
    pub balanced: bool,
    pub fingerprint: u64,
    pub needs: Needs,
    /// Where the first samples are held, and all of them are packed.
    held: RwLock<Held>,
    pub pack: Option<SamplesPack<u8>>,
    /// What is reckoned with a pack that is still to be built.
    pub foreseen: bool,
    /// Samples that take the most to decode, and whether feeds begin with them.
    pub heaviest: Vec<u64>,
    pub rehearsed: bool,
    pub meter: Meter,
    bad: Mutex<Bad>,
}

/// The first samples, in memory: block by block, so that some can go while others stay.
#[derive(Default)]
struct Held {
    blocks: Vec<Block>,
    n_samples: u64,
}

struct Block {
    /// As many whole samples as there is room for.
    bytes: Vec<u8>,
    grant: Grant,
}

/// Blocks of samples in memory have about so many bytes: enough to go back to the system when they are dropped.
const BLOCK_BYTES: usize = 4 << 20;

/// Files that turned out to be no images once they were decoded.
#[derive(Default)]
struct Bad {
    samples: BTreeSet<u64>,
    /// Those of them that only lack room.
    too_large: BTreeSet<u64>,
    told: BadList,
}

/// The mark behind a sample that is one.
const PRESENT: u8 = 1;
/// The mark behind one whose file there was no room to decode: with more memory it may become one.
pub(crate) const TOO_LARGE: u8 = 2;

impl Images {
    pub(crate) fn new(
        list: List,
        form: ImageForm,
        augment: Augment,
        needs: Needs,
        fingerprint: u64,
    ) -> Images {
        Images {
            stored: form.stored_size(),
            list,
            form,
            augment,
            rule: BadFileRule::Skip,
            balanced: false,
            fingerprint,
            needs: needs.with_some_more(),
            held: RwLock::default(),
            pack: None,
            foreseen: false,
            heaviest: Vec::new(),
            rehearsed: false,
            meter: Meter::default(),
            bad: Mutex::default(),
        }
    }

    pub(crate) fn n_samples(&self) -> u64 {
        self.list.len() as u64
    }

    /// Bytes of a stored sample.
    pub(crate) fn stored_bytes(&self) -> usize {
        self.stored.0 * self.stored.1 * self.form.channels
    }

    /// Bytes of a stored sample and its mark.
    pub(crate) fn row_bytes(&self) -> usize {
        self.stored_bytes() + 1
    }

    /// Samples that are in memory.
    fn n_held(&self) -> u64 {
        self.held.read().unwrap_or_else(PoisonError::into_inner).n_samples
    }

    /// Samples of a full block.
    fn block_rows(&self) -> usize {
        (BLOCK_BYTES / self.row_bytes()).max(1)
    }

    /// What samples in memory take. They can all go: the pack has them.
    pub(crate) fn held_bytes(&self) -> u64 {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        held.blocks.iter().map(|block| block.grant.bytes()).sum()
    }

    /// Lets go of samples in memory, the last first, until so many bytes are free or none is left. From then on they are
    /// read from the pack.
    pub(crate) fn let_go(&self, bytes: u64) -> u64 {
        let mut held = self.held.write().unwrap_or_else(PoisonError::into_inner);
        let mut freed = 0;
        while freed < bytes
            && let Some(block) = held.blocks.pop()
        {
            freed += block.grant.bytes();
            held.n_samples -= (block.bytes.len() / self.row_bytes()) as u64;
        }
        freed
    }

    /// Whether some samples have to be decoded whenever they are met.
    pub(crate) fn decodes(&self) -> bool {
        self.pack.is_none() && !self.foreseen && self.n_held() < self.n_samples()
    }

    /// Files that could not be decoded so far.
    pub(crate) fn bad_files(&self) -> BadFiles {
        self.bad
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .told
            .files()
    }

    /// How many of a part could not be decoded so far.
    pub(crate) fn n_bad(&self, part: Part) -> u64 {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        let of_part = bad.samples.iter().filter(|sample| part.contains(**sample));
        of_part.count() as u64
    }

    /// Brings a stored sample: where it stands, or in `row`; `None` if its file is no image.
    pub(crate) fn fetch<'a>(
        &'a self,
        sample: u64,
        pictures: Option<&mut Pictures>,
        row: &'a mut [u8],
    ) -> Result<Option<&'a [u8]>> {
        if self.fetch_held(sample, row) {
            return Ok(present(row));
        }
        if let Some(pack) = &self.pack {
            self.meter.time(Stage::Read, || pack.read(sample, row))?;
            return Ok(present(row));
        }
        let Some(pictures) = pictures else { return Ok(None) };
        if self.is_known_bad(sample) {
            return Ok(None);
        }
        let (stored, mark) = row.split_at_mut(self.stored_bytes());
        let path = self.list.path(sample as usize);
        match pictures.read(&path, stored, &self.meter) {
            Ok(()) => {
                mark[0] = PRESENT;
                Ok(Some(stored))
            }
            Err(fault) => {
                mark[0] = 0;
                self.set_aside(sample, path, &fault)?;
                Ok(None)
            }
        }
    }

    /// Copies a sample that is in memory: where it stands it may go at any time.
    fn fetch_held(&self, sample: u64, row: &mut [u8]) -> bool {
        let held = self.held.read().unwrap_or_else(PoisonError::into_inner);
        let (block, at) = (
            sample as usize / self.block_rows(),
            sample as usize % self.block_rows(),
        );
        let Some(block) = held.blocks.get(block) else {
            return false;
        };
        match block.bytes.chunks_exact(self.row_bytes()).nth(at) {
            Some(stored) => {
                row.copy_from_slice(stored);
                true
            }
            None => false,
        }
    }

    /// Whether a sample only lacked the room to be decoded.
    pub(crate) fn is_too_large(&self, sample: u64) -> bool {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        bad.too_large.contains(&sample)
    }

    fn is_known_bad(&self, sample: u64) -> bool {
        let bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        bad.samples.contains(&sample)
    }

    pub(crate) fn set_aside(
        &self,
        sample: u64,
        path: PathBuf,
        fault: &PictureFault,
    ) -> Result<(), ImageProblem> {
        if self.rule == BadFileRule::Fail {
            return Err(ImageProblem::BadFile {
                path,
                fault: fault.to_string(),
            });
        }
        let mut bad = self.bad.lock().unwrap_or_else(PoisonError::into_inner);
        if bad.samples.insert(sample) {
            bad.told.add(sample, path, fault);
        }
        if matches!(fault, PictureFault::TooLarge { .. }) {
            bad.too_large.insert(sample);
        }
        let (count, files) = (bad.told.count, self.n_samples());
        // Half of them may be lost; beyond that it is another set of images than the one that was meant.
        if count * 2 > files
            && let Some((first, fault)) = bad.told.files().first.first()
        {
            return Err(ImageProblem::MostlyBad {
                path: self.list.path(0).parent().unwrap_or(&self.list.path(0)).into(),
                bad: count,
                files,
                first: first.clone(),
                fault: fault.clone(),
            });
        }
        Ok(())
    }

    /// What holding samples takes, of so many bytes that it may.
    pub(crate) fn hold_bytes(&self, most: u64) -> u64 {
        let row = self.row_bytes() as u64;
        match self.pack.is_some() || self.foreseen {
            true => (most / row).min(self.n_samples()) * row,
            false => 0,
        }
    }

    /// Holds as many of the first samples in memory as `most` bytes have room for and the ledger has left. They come from
    /// the pack.
    pub(crate) fn hold(&mut self, most: u64, ledger: &Ledger) -> Result<u64> {
        let row = self.row_bytes();
        let n = (most / row as u64).min(self.n_samples());
        let (Some(pack), true) = (&self.pack, n > 0) else {
            return Ok(self.n_held());
        };
        let Ok(grant) = ledger.holder("samples").try_grant(n * row as u64) else {
            return Ok(0);
        };
        let mut grant = grant.pin();
        let mut held = Held::default();
        while held.n_samples < n {
            let rows = (self.block_rows() as u64).min(n - held.n_samples);
            let mut bytes = vec![0; rows as usize * row];
            for (sample, into) in (held.n_samples..).zip(bytes.chunks_exact_mut(row)) {
                pack.read(sample, into)?;
            }
            let grant = grant.split(bytes.len() as u64);
            held.n_samples += rows;
            held.blocks.push(Block { bytes, grant });
        }
        self.held = RwLock::new(held);
        Ok(n)
    }
}

fn present(row: &[u8]) -> Option<&[u8]> {
    let (mark, stored) = row.split_last()?;
    (*mark == PRESENT).then_some(stored)
}
