//! Images in batches: fetched and augmented sample by sample on several threads, in an order that no thread changes.
//!
//! A thread takes one sample all the way, from its file or the pack to the batch, then the next. So there is no number of
//! threads for decoding and another for augmenting to be found: whatever takes longer gets more of them by itself.

use std::ops::ControlFlow;

use tidegate_memory::{Grant, Ledger};

use super::augment::{BatchKey, SampleKey, Sampler};
use super::balance::Balance;
use super::cells::{self, Extent, Filled};
use super::picture::{Pictures, Room, Stored};
use super::store::Images;
use crate::arrays::batch::{Assembly, Base, Place, SampleBatch, Stands};
use crate::arrays::order::Route;
use crate::arrays::walk::Walk;
use crate::arrays::{ArraySource, FeedOptions, Order};
use crate::meter::Stage;
use crate::{Error, Result};

/// What a thread takes of its stack.
const THREAD_BYTES: u64 = 96 << 10;
/// Batches beyond this are no nearer when they are needed.
const MOST_SLOTS: u64 = 64;
/// Batches read ahead where there is room.
const GOOD_SLOTS: u64 = 8;

/// What a feed takes, and what it makes of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FeedNeeds {
    pub threads: u64,
    pub slots: u64,
    /// Room for pictures that are larger than usual.
    pub large: u64,
    pub bytes: u64,
}

/// What a feed is asked to make: batches of so many samples, what is kept of each, and bytes of a value.
#[derive(Clone, Copy)]
struct Asked {
    batch: usize,
    per_sample: u64,
    value: u64,
}

/// A batch of images as numbers, made ready by the threads that bring them.
pub struct ValueBatch<'a> {
    /// Which samples they are, and which of them there are: files may turn out to be no images.
    pub samples: &'a [u64],
    pub present: &'a [bool],
    /// The numbers of all samples, one behind the other, channels last.
    pub values: &'a [f32],
}

/// What the values of a cell are.
pub(crate) trait Value: Copy + Default + Send + Sync {
    /// Makes values of the bytes of a sample.
    fn write(bytes: &[u8], factor: f32, into: &mut [Self]);
    /// The room itself, where bytes can be written at once.
    fn bytes(into: &mut [Self]) -> Option<&mut [u8]>;
}

impl Value for u8 {
    fn write(bytes: &[u8], _: f32, into: &mut [u8]) {
        into.copy_from_slice(bytes);
    }

    fn bytes(into: &mut [u8]) -> Option<&mut [u8]> {
        Some(into)
    }
}

impl Value for f32 {
    fn write(bytes: &[u8], factor: f32, into: &mut [f32]) {
        for (into, byte) in into.iter_mut().zip(bytes) {
            *into = f32::from(*byte) * factor;
        }
    }

    fn bytes(_: &mut [f32]) -> Option<&mut [u8]> {
        None
    }
}

/// What a thread works with.
struct Worker<'a> {
    pictures: Option<Pictures<'a>>,
    row: Vec<u8>,
    sampler: Sampler,
    /// A sample that is to become other values than bytes.
    sample: Vec<u8>,
}

impl Images {
    pub(crate) fn stored_form(&self) -> Stored {
        Stored {
            height: self.stored.0,
            width: self.stored.1,
            channels: self.form.channels,
            resize: self.form.resize,
        }
    }

    fn sample_bytes(&self) -> usize {
        self.form.height * self.form.width * self.form.channels
    }

    /// What each thread takes.
    pub(crate) fn thread_bytes(&self) -> u64 {
        let decoding = match self.decodes() {
            true => self.needs.usual + Pictures::bytes(&self.stored_form()),
            false => 0,
        };
        let samples = (self.row_bytes() + self.sample_bytes()) as u64;
        THREAD_BYTES + samples + Sampler::bytes_needed(self.form.width) + decoding
    }

    /// Of so many bytes, what is of use to decode pictures that take more than usual.
    pub(crate) fn large_bytes(&self, most: u64) -> u64 {
        match self.decodes() {
            true => self.needs.large_within(most),
            false => 0,
        }
    }

    /// What a feed takes: one thread and one batch of values of so many bytes at least; room for large pictures, more
    /// threads and more batches as far as the bytes to read ahead into go. Pictures come first: without threads it takes
    /// longer, without room they are left out.
    pub(crate) fn feed_needs(
        &self,
        options: &FeedOptions,
        batch: u64,
        per_sample: u64,
        value: u64,
    ) -> FeedNeeds {
        let thread = self.thread_bytes();
        let slot = Extent::slot_bytes(batch, self.sample_bytes() as u64, value);
        let large = self.large_bytes(options.prefetch);
        let mut left = options.prefetch - large;
        let more_threads = (options.threads.max(1) as u64 - 1).min(left / thread.max(1));
        left -= more_threads * thread;
        // Which samples are of which class.
        let order = if self.balanced { 4 * self.n_samples() } else { 0 };
        let batches = self.n_samples().div_ceil(batch.max(1));
        let slots = (1 + left / slot.max(1)).min(MOST_SLOTS).min(batches.max(1));
        FeedNeeds {
            threads: 1 + more_threads,
            slots,
            large,
            bytes: (1 + more_threads) * thread
                + large
                + slots * slot
                + batch.saturating_mul(per_sample)
                + order,
        }
    }

    /// The bytes to read ahead into that are of use.
    pub(crate) fn good_prefetch(&self, batch: u64, threads: usize) -> u64 {
        let slot = Extent::slot_bytes(batch, self.sample_bytes() as u64, 1);
        (threads as u64).saturating_sub(1) * self.thread_bytes()
            + self.large_bytes(u64::MAX)
            + (GOOD_SLOTS - 1) * slot
    }

    /// Hands out the samples of a part in order, as bytes.
    pub(crate) fn feed<E: From<Error>>(
        &self,
        source: &ArraySource,
        options: &FeedOptions,
        batch: usize,
        ledger: &Ledger,
        mut take: impl FnMut(&SampleBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<u64, E> {
        let mut assembly = Assembly::new(source, batch, options.start);
        let mut options = FeedOptions {
            prefetch: source.pressed.prefetch(options.prefetch),
            ..*options
        };
        let per_sample = Assembly::bytes_per_sample(source);
        let sample_bytes = self.sample_bytes();
        let mixing = |first: u64, n: usize| match options.order {
            Order::Shuffled { seed, epoch } => {
                let key = BatchKey { seed, epoch, first };
                self.augment.mixing(key, n, (self.form.height, self.form.width))
            }
            Order::InPlace => None,
        };
        let mut had = None;
        // Once, unless it is to read ahead less from some batch on.
        loop {
            options.start = assembly.cursor;
            let mut less = false;
            // Room for large pictures stays: without it they would be left out.
            let large = self.large_bytes(options.prefetch);
            let asked = Asked {
                batch,
                per_sample,
                value: 1,
            };
            let (grant, needs) = self.granted(&options, asked, ledger, had)?;
            had = Some(grant);
            let least = FeedOptions {
                prefetch: large,
                ..options
            };
            let spare = needs.bytes.saturating_sub(self.needs_of(&least, asked).bytes);
            let _spare = ledger.spare(spare);
            let take = |filled: Filled<'_, u8>| {
                for (i, (sample, present)) in filled.samples.iter().zip(filled.present).enumerate() {
                    match present {
                        true => {
                            let at = i * sample_bytes;
                            assembly.push(*sample, Place { base: 0, at });
                        }
                        false => assembly.pass_over(),
                    }
                }
                assembly.mixing = mixing(assembly.first, assembly.len());
                let stands = Stands {
                    base: Base::One(filled.values),
                    carried: &[],
                };
                let taken = take(&assembly.batch(stands))?;
                assembly.clear();
                less = taken.is_continue() && spare > 0 && ledger.over() > 0;
                Ok::<_, E>(match less {
                    true => ControlFlow::Break(()),
                    false => taken,
                })
            };
            self.fill(&options, batch, 1.0, source, needs, take)?;
            if !less {
                return Ok(assembly.cursor);
            }
            let slot = Extent::slot_bytes(batch as u64, sample_bytes as u64, 1);
            let in_use = options.prefetch.min(large + spare);
            options.prefetch = in_use.saturating_sub(ledger.over().max(slot)).max(large);
            source.pressed.lower_prefetch(options.prefetch);
        }
    }

    /// Hands out the samples of a part in order, as numbers: bytes times a factor. Nothing is mixed.
    pub(crate) fn feed_values<E: From<Error>>(
        &self,
        source: &ArraySource,
        options: &FeedOptions,
        batch: usize,
        factor: f32,
        ledger: &Ledger,
        mut take: impl FnMut(&ValueBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let asked = Asked {
            batch,
            per_sample: 0,
            value: size_of::<f32>() as u64,
        };
        let (_granted, needs) = self.granted(options, asked, ledger, None)?;
        self.fill(
            options,
            batch,
            factor,
            source,
            needs,
            |filled: Filled<'_, f32>| {
                take(&ValueBatch {
                    samples: filled.samples,
                    present: filled.present,
                    values: filled.values,
                })
            },
        )
    }

    /// Writes single samples as the network sees them: at this moment of a training, or as they are judged by. `false` if a
    /// file is no image.
    pub(crate) fn show(&self, sample: u64, order: Order, ledger: &Ledger, into: &mut [u8]) -> Result<bool> {
        let large = self.large_bytes(ledger.free() / 2);
        let _granted = ledger.holder("feed").try_grant(self.thread_bytes() + large)?;
        let room = Room::new(self.needs.usual, large);
        let mut worker = self.worker(&room);
        let stored = self.fetch(sample, worker.pictures.as_mut(), &mut worker.row)?;
        let Some(stored) = stored else { return Ok(false) };
        show(&mut worker.sampler, order, sample, stored, into);
        Ok(true)
    }

    fn worker<'a>(&self, room: &'a Room) -> Worker<'a> {
        Worker {
            pictures: self.decodes().then(|| Pictures::new(self.stored_form(), room)),
            row: vec![0; self.row_bytes()],
            sampler: Sampler::new(
                &self.augment,
                self.stored,
                (self.form.height, self.form.width),
                self.form.channels,
            ),
            sample: vec![0; self.sample_bytes()],
        }
    }

    fn needs_of(&self, options: &FeedOptions, asked: Asked) -> FeedNeeds {
        self.feed_needs(options, asked.batch as u64, asked.per_sample, asked.value)
    }

    /// What a feed is granted: as much as was asked for, or the least. One that takes less than it had needs nobody's leave.
    fn granted(
        &self,
        options: &FeedOptions,
        asked: Asked,
        ledger: &Ledger,
        had: Option<Grant>,
    ) -> Result<(Grant, FeedNeeds)> {
        let mut grant = had.map_or_else(|| ledger.holder("feed").try_grant(0), Ok)?;
        let mut needs = self.needs_of(options, asked);
        if grant.try_resize(needs.bytes).is_err() {
            let least = FeedOptions {
                prefetch: 0,
                ..*options
            };
            needs = self.needs_of(&least, asked);
            grant.try_resize(needs.bytes)?;
        }
        Ok((grant.pin(), needs))
    }

    fn fill<T: Value, E: From<Error>>(
        &self,
        options: &FeedOptions,
        batch: usize,
        factor: f32,
        source: &ArraySource,
        needs: FeedNeeds,
        mut take: impl FnMut(Filled<'_, T>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let route = Route::new(self.n_samples(), self.sample_bytes() as u64, options.order);
        let mut walk = match (self.balanced, options.order) {
            (true, Order::Shuffled { seed, epoch }) => {
                Next::Balanced(Balance::new(source, options.part, seed, epoch, options.start))
            }
            _ => Next::Once(Walk::new(&route, options.part, options.start)),
        };
        let room = Room::new(self.needs.usual, needs.large);
        let extent = Extent {
            slots: needs.slots as usize,
            batch,
            cell: self.sample_bytes(),
        };
        let heaviest = self.heaviest.iter().filter(|_| self.rehearsed).take(batch);
        let mut order = heaviest.copied().chain(std::iter::from_fn(|| walk.next()));
        let steps = cells::Steps {
            assign: |samples: &mut Vec<u64>| samples.extend(order.by_ref().take(batch)),
            make: || self.worker(&room),
            fill: |worker: &mut Worker<'_>, turn: u64, into: &mut [T]| {
                let stored = self.fetch(sample_of(turn), worker.pictures.as_mut(), &mut worker.row)?;
                let Some(stored) = stored else { return Ok(false) };
                self.meter.time(Stage::Augment, || {
                    if let Some(into) = T::bytes(into) {
                        show(&mut worker.sampler, options.order, turn, stored, into);
                    } else {
                        show(
                            &mut worker.sampler,
                            options.order,
                            turn,
                            stored,
                            &mut worker.sample,
                        );
                        T::write(&worker.sample, factor, into);
                    }
                });
                Ok(true)
            },
            take: |filled: Filled<'_, T>| {
                // Who takes them knows samples, not turns.
                filled
                    .samples
                    .iter_mut()
                    .for_each(|turn| *turn = sample_of(*turn));
                take(filled)
            },
        };
        cells::run(extent, needs.threads as usize, &self.meter, steps)
    }
}

/// The sample of a turn: one that comes several times in an epoch has another number above this each time, so that it is
/// augmented otherwise.
const SAMPLE_BITS: u32 = 40;

fn sample_of(turn: u64) -> u64 {
    turn & ((1 << SAMPLE_BITS) - 1)
}

/// What the network sees of a stored sample: augmented where it is learned from.
fn show(sampler: &mut Sampler, order: Order, turn: u64, stored: &[u8], into: &mut [u8]) {
    match order {
        Order::Shuffled { seed, epoch } => sampler.apply(
            SampleKey {
                seed,
                epoch,
                sample: turn,
            },
            stored,
            into,
        ),
        Order::InPlace => sampler.centre(stored, into),
    }
}

/// Which sample comes next.
enum Next<'a> {
    Once(Walk<'a>),
    Balanced(Balance),
}

impl Next<'_> {
    fn next(&mut self) -> Option<u64> {
        match self {
            Next::Once(walk) => walk.next(),
            Next::Balanced(balance) => {
                let (sample, again) = balance.next()?;
                Some(sample | again << SAMPLE_BITS)
            }
        }
    }
}
