//! Decodes all images once and keeps them, resized, so that later epochs and runs need not decode them again.

use std::ops::ControlFlow;

use tidegate_memory::{Grant, Ledger, Refused};

use super::cells::{self, Extent, Filled};
use super::fault::PictureFault;
use super::picture::{Pictures, Room};
use super::store::{Images, TOO_LARGE};
use crate::pack::{
    PackKey, PackOptions, PackProblem, SamplesPack, SamplesWriter, WRITE_BEHIND_BYTES, block_bytes,
};
use crate::{Error, Result};

/// Samples that are filled at a time.
const BATCH: usize = 16;
/// Batches that wait for the disk.
const SLOTS: u64 = 4;

/// What became of a pack.
#[derive(Debug)]
pub enum PackedImages {
    /// Built now, or found.
    Built,
    Found,
    /// It could not be built: images are decoded in every epoch.
    Not(PackProblem),
    /// Somebody asked to stop.
    Stopped,
}

/// What building a pack will take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackNeeds {
    /// While it is built.
    pub memory: u64,
    pub disk: u64,
}

impl Images {
    /// The key of the pack of these images, and of whatever else they depend on.
    pub(crate) fn pack_key(&self) -> PackKey {
        let form = serde_json::to_vec(&(
            self.fingerprint,
            self.stored,
            self.form.channels,
            self.form.resize,
        ));
        PackKey::of(&[b"images 1", &form.expect("plain data serializes")])
    }

    /// Builds the pack, or takes the one that is there. `progress` is told how many images are done.
    pub(crate) fn build_pack(
        &mut self,
        options: &PackOptions,
        threads: usize,
        ledger: &Ledger,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<PackedImages> {
        let holder = ledger.holder("pack");
        match SamplesPack::<u8>::open(&options.store, options.key, &holder) {
            Ok(Some(pack)) if pack.n_samples() == self.n_samples() && pack.values == self.row_bytes() => {
                if self.take_pack(pack, ledger)? {
                    return Ok(PackedImages::Found);
                }
                options.store.remove(options.key)?;
            }
            // Of other images, or torn: it goes.
            Ok(Some(_)) => {
                options.store.remove(options.key)?;
            }
            Ok(None) | Err(PackProblem::Damaged { .. }) => {}
            Err(problem) => return Ok(PackedImages::Not(problem)),
        }
        let writer = match SamplesWriter::<u8>::create(options, self.row_bytes(), &holder) {
            Ok(writer) => writer,
            Err(problem) => return Ok(PackedImages::Not(problem)),
        };
        match self.write_pack(writer, threads, ledger, progress)? {
            Written::Done(pack) => {
                self.pack = Some(pack);
                Ok(PackedImages::Built)
            }
            Written::Not(problem) => Ok(PackedImages::Not(problem)),
            Written::Stopped => Ok(PackedImages::Stopped),
        }
    }

    /// Holds a pack against its checksums, and learns which images it lacks. `false` where it lacks some that there is room
    /// for by now.
    fn take_pack(&mut self, pack: SamplesPack<u8>, ledger: &Ledger) -> Result<bool> {
        let mut sample = 0;
        let mut lacking = Vec::new();
        pack.each(&ledger.holder("pack"), |row| {
            match row.last() {
                Some(&TOO_LARGE) => lacking.push((sample, PictureFault::TooLargeToPack)),
                Some(0) => lacking.push((sample, PictureFault::NotPacked)),
                _ => {}
            }
            sample += 1;
        })?;
        // What is left where all that writing takes is granted.
        let writing = block_bytes::<u8>(self.row_bytes())
            + WRITE_BEHIND_BYTES
            + self.thread_bytes()
            + self.slots_bytes();
        let free = ledger.free().saturating_sub(writing);
        let room = self.large_bytes(spared(free)).max(self.needs.usual);
        let has_room = |sample: u64| {
            let needs = self.stored_form().needs_of(&self.list.path(sample as usize));
            needs.is_ok_and(|needs| needs <= room)
        };
        let mut too_large = lacking
            .iter()
            .filter(|(_, fault)| *fault == PictureFault::TooLargeToPack);
        if too_large.any(|(sample, _)| has_room(*sample)) {
            return Ok(false);
        }
        for (sample, fault) in lacking {
            self.set_aside(sample, self.list.path(sample as usize), &fault)?;
        }
        self.pack = Some(pack);
        Ok(true)
    }

    /// Takes the pack that is there, and leaves it as it is; `false` if there is none that holds all of these images.
    pub(crate) fn find_pack(&mut self, options: &PackOptions, ledger: &Ledger) -> Result<bool> {
        match SamplesPack::<u8>::open(&options.store, options.key, &ledger.holder("pack")) {
            Ok(Some(pack)) if pack.n_samples() == self.n_samples() && pack.values == self.row_bytes() => {
                self.take_pack(pack, ledger)
            }
            _ => Ok(false),
        }
    }

    /// What building the pack takes, of so many free bytes.
    pub(crate) fn pack_needs(&self, threads: usize, free: u64) -> PackNeeds {
        let thread = self.thread_bytes();
        let mut memory =
            block_bytes::<u8>(self.row_bytes()) + WRITE_BEHIND_BYTES + thread + self.slots_bytes();
        memory += self.large_bytes(spared(free.saturating_sub(memory)));
        let more = (threads.max(1) as u64 - 1).min(free.saturating_sub(memory) / thread);
        PackNeeds {
            memory: memory + more * thread,
            disk: self.packed_bytes(),
        }
    }

    /// What the pack takes on disk.
    pub(crate) fn packed_bytes(&self) -> u64 {
        self.n_samples() * self.row_bytes() as u64
    }

    fn slots_bytes(&self) -> u64 {
        SLOTS * Extent::slot_bytes(BATCH as u64, self.row_bytes() as u64, 1)
    }

    fn write_pack(
        &self,
        mut writer: SamplesWriter<u8>,
        threads: usize,
        ledger: &Ledger,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<Written> {
        let stored = self.stored_form();
        let thread = self.thread_bytes();
        let holder = ledger.holder("feed");
        let mut grant = holder.try_grant(thread + self.slots_bytes())?;
        let large = self.grow_for_large(&mut grant, ledger);
        let more = (1..threads.max(1))
            .take_while(|_| grant.try_grow(thread).is_ok())
            .count();
        let room = Room::new(self.needs.usual, large);
        let (mut next, mut done, mut stopped, mut problem) = (0, 0, false, None);
        let steps = cells::Steps {
            assign: |samples: &mut Vec<u64>| {
                samples.extend((next..self.n_samples()).take(BATCH));
                next += samples.len() as u64;
            },
            make: || Pictures::new(stored, &room),
            fill: |pictures: &mut Pictures<'_>, sample: u64, row: &mut [u8]| {
                let present = self.fetch(sample, Some(pictures), row)?.is_some();
                if !present {
                    row.fill(0);
                }
                if let (false, true, Some(mark)) = (present, self.is_too_large(sample), row.last_mut()) {
                    *mark = TOO_LARGE;
                }
                Ok(true)
            },
            take: |filled: Filled<'_, u8>| {
                for row in filled.values.chunks_exact(self.row_bytes()) {
                    if let Err(error) = writer.push(|into| into.copy_from_slice(row)) {
                        problem = Some(error);
                        return Ok(ControlFlow::Break(()));
                    }
                }
                done += filled.samples.len() as u64;
                let flow = progress(done);
                stopped = flow.is_break();
                Ok::<_, Error>(flow)
            },
        };
        let extent = Extent {
            slots: SLOTS as usize,
            batch: BATCH,
            cell: self.row_bytes(),
        };
        cells::run(extent, 1 + more, &self.meter, steps)?;
        if stopped {
            return Ok(Written::Stopped);
        }
        Ok(match problem.map_or_else(|| writer.finish(), Err) {
            Ok(pack) => Written::Done(pack),
            Err(problem) => Written::Not(problem),
        })
    }
}

/// Of what the ledger has left, this part stays for what writing takes as it goes on.
const SPARE: u64 = 16;

fn spared(free: u64) -> u64 {
    free - free / SPARE
}

impl Images {
    /// Grows a grant by room for pictures that take more than usual; so much it became.
    fn grow_for_large(&self, grant: &mut Grant, ledger: &Ledger) -> u64 {
        let mut free = ledger.free();
        loop {
            let large = self.large_bytes(spared(free));
            match grant.try_grow(large) {
                Ok(()) => return large,
                // Some of it is kept for others.
                Err(Refused::Exhausted { free: less, .. }) if less < free => free = less,
                Err(_) => return 0,
            }
        }
    }
}

enum Written {
    Done(SamplesPack<u8>),
    Not(PackProblem),
    Stopped,
}
