//! Batches in order, read ahead by threads into a fixed set of granted slots.
//!
//! There are three ways, and the batches are the same:
//!
//! - samples that are held in memory are taken where they stand;
//! - small samples come by windows: a slot holds a whole window, about 16 MB, read in blocks of 64 KB, and batches are
//!   picked out of it;
//! - samples that are large, or a budget too small for a window, are read one by one: a slot holds one batch.
//!
//! Of mapped files, slots hold no bytes of their own but the right to so many pages.

use std::ops::ControlFlow;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Ledger};

use super::batch::{Assembly, Base, Place, SampleBatch, Stands};
use super::order::{Order, Route, Window};
use super::ring::{self, Steps};
use super::samples::{Mapped, Reader, Samples, Store};
use super::source::{ArraySource, Part};
use super::walk::Walk;
use crate::meter::Meter;
use crate::{Error, Result};

/// What a thread that reads takes of its stack.
const THREAD_BYTES: u64 = 64 << 10;

/// Which samples, in which order, in batches of which size, and how far ahead.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct FeedOptions {
    /// Samples of a batch; the last of an epoch may have fewer.
    pub batch: usize,
    pub order: Order,
    /// Samples of this epoch, and of this part, that were used already: the [cursor](SampleBatch::cursor) of a batch.
    pub start: u64,
    pub part: Part,
    /// Bytes to read ahead into. There is always one slot, however few they are.
    pub prefetch: u64,
    pub threads: usize,
}

/// How samples get into a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Held,
    Windows,
    Samples,
}

/// What a feed takes.
#[derive(Debug, Clone, Copy)]
struct Needs {
    way: Way,
    /// However many slots there are.
    fixed: u64,
    slot: u64,
    /// Slots that the bytes to read ahead into make.
    n_slots: u64,
}

impl ArraySource {
    /// The bytes that a feed is granted, if the ledger has them: known before anything is read.
    pub fn feed_bytes(&self, options: &FeedOptions) -> u64 {
        if let Some(images) = self.images() {
            let batch = self.batch_size(options.batch);
            return images
                .feed_needs(options, batch, Assembly::bytes_per_sample(self), 1)
                .bytes;
        }
        let needs = self.needs(options, self.is_in_memory());
        needs
            .fixed
            .saturating_add(needs.slot.saturating_mul(needs.n_slots))
    }

    /// The bytes without which a feed cannot start.
    pub fn least_feed_bytes(&self, options: &FeedOptions) -> u64 {
        self.feed_bytes(&FeedOptions {
            prefetch: 0,
            ..*options
        })
    }

    /// The bytes that a feed of samples takes that are held in memory as a whole.
    pub fn held_feed_bytes(&self, options: &FeedOptions) -> u64 {
        self.needs(options, true).fixed
    }

    /// The bytes to read ahead into that let reading and training go on side by side: two slots.
    pub fn good_prefetch(&self, batch: usize, threads: usize) -> u64 {
        if let Some(images) = self.images() {
            return images.good_prefetch(self.batch_size(batch), threads);
        }
        let route = Route::new(self.n_samples(), self.samples.sample_bytes(), Order::InPlace);
        match route.per_block() {
            1 => 2 * self.batch_slot_bytes(self.batch_size(batch)),
            _ => 2 * self.window_slot_bytes(&route),
        }
    }

    pub(crate) fn batch_size(&self, batch: usize) -> u64 {
        (batch as u64).clamp(1, self.n_samples().max(1))
    }

    fn batch_slot_bytes(&self, batch: u64) -> u64 {
        batch.saturating_mul(self.samples.sample_bytes() + size_of::<u64>() as u64)
    }

    fn window_slot_bytes(&self, route: &Route) -> u64 {
        let blocks = route.most_blocks();
        // The last window of few samples has no more of them than there are.
        let samples = (blocks * route.per_block()).min(self.n_samples());
        samples * self.samples.sample_bytes() + blocks * size_of::<u64>() as u64
    }

    /// What a feed takes, of samples that are held in memory or not.
    fn needs(&self, options: &FeedOptions, held: bool) -> Needs {
        let batch = self.batch_size(options.batch);
        let fixed = batch.saturating_mul(Assembly::bytes_per_sample(self));
        if held {
            let (way, slot, n_slots) = (Way::Held, 0, 0);
            return Needs {
                way,
                fixed,
                slot,
                n_slots,
            };
        }
        let route = Route::new(self.n_samples(), self.samples.sample_bytes(), Order::InPlace);
        let window = self.window_slot_bytes(&route);
        let by_windows = route.per_block() > 1 && options.prefetch >= window;
        let (way, slot, most, carried) = if by_windows {
            let carried = batch.saturating_mul(self.samples.sample_bytes());
            (Way::Windows, window, route.n_windows(), carried)
        } else {
            let slot = self.batch_slot_bytes(batch);
            (Way::Samples, slot, self.n_samples().div_ceil(batch), 0)
        };
        let n_slots = (options.prefetch / slot.max(1)).clamp(1, most.max(1));
        let threads = (options.threads.max(1) as u64).min(n_slots) * THREAD_BYTES;
        Needs {
            way,
            fixed: fixed.saturating_add(carried).saturating_add(threads),
            slot,
            n_slots,
        }
    }

    /// Hands out the samples of a part in order, batch by batch, until they are through or `take` breaks off. Returns
    /// the cursor behind the last batch that was taken.
    ///
    /// Samples and batches depend on the data, `order`, `part`, `batch` and `start` alone; a feed that goes on from the
    /// cursor of a batch hands out what the first one would have.
    pub fn feed<E: From<Error>>(
        &self,
        options: &FeedOptions,
        ledger: &Ledger,
        take: impl FnMut(&SampleBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<u64, E> {
        let batch = self.batch_size(options.batch) as usize;
        if let Some(images) = self.images() {
            return images.feed(self, options, batch, ledger, take);
        }
        let mut take = take;
        let mut options = FeedOptions {
            prefetch: self.pressed.prefetch(options.prefetch),
            ..*options
        };
        let mut had = None;
        // Once, unless it is to take less from some batch on.
        loop {
            let held = self.held();
            if held.is_none() && matches!(self.samples.store, Store::Memory(_)) {
                // Nothing was to be read when it was planned. Of what was let go, a little makes it quick.
                let good = self.good_prefetch(options.batch, options.threads);
                options.prefetch = self.pressed.prefetch(good.min(ledger.free()));
            }
            let (grant, needs, n_slots) = self.granted(&options, held.is_some(), ledger, had)?;
            let spare = grant.bytes().saturating_sub(self.least_feed_bytes(&options));
            let _spare = ledger.spare(spare);
            let mut less = false;
            let take_some = |batch: &SampleBatch<'_>| {
                let taken = take(batch)?;
                less = taken.is_continue()
                    && match held {
                        Some(_) => self.held().is_none(),
                        None => spare > 0 && ledger.over() > 0,
                    };
                Ok::<_, E>(match less {
                    true => ControlFlow::Break(()),
                    false => taken,
                })
            };
            let route = Route::new(self.n_samples(), self.samples.sample_bytes(), options.order);
            let feed = Feed {
                samples: &self.samples,
                meter: &self.meter,
                walk: Walk::new(&route, options.part, options.start),
                assembly: Assembly::new(self, batch, options.start),
                n_slots: n_slots as usize,
                threads: options.threads,
                batch,
            };
            // Nobody is to wait for it, least of all who takes the batches.
            had = Some(grant.pin());
            options.start = match (needs.way, &held) {
                (Way::Held, Some(held)) => feed.held(&held.bytes, take_some)?,
                (Way::Windows, _) => feed.by_windows(take_some)?,
                _ => feed.by_samples(take_some)?,
            };
            if !less {
                return Ok(options.start);
            }
            if needs.way != Way::Held {
                let slots = ledger.over().div_ceil(needs.slot.max(1)).max(1);
                options.prefetch = n_slots.saturating_sub(slots) * needs.slot;
                self.pressed.lower_prefetch(options.prefetch);
            }
        }
    }

    /// What a feed is granted, and the slots that it makes of it: as many as there is room for. One that takes less than it
    /// had needs nobody's leave.
    fn granted(
        &self,
        options: &FeedOptions,
        held: bool,
        ledger: &Ledger,
        had: Option<Grant>,
    ) -> Result<(Grant, Needs, u64)> {
        let mut grant = had.map_or_else(|| ledger.holder("feed").try_grant(0), Ok)?;
        let mut needs = self.needs(options, held);
        let first = |needs: &Needs| needs.fixed.saturating_add(needs.slot);
        if grant.try_resize(first(&needs)).is_err() {
            // A whole window may be too much where a batch is not.
            let least = FeedOptions {
                prefetch: 0,
                ..*options
            };
            needs = self.needs(&least, held);
            grant.try_resize(first(&needs))?;
        }
        let mut n_slots = needs.n_slots.min(1);
        // Deeper as far as there is room.
        while n_slots < needs.n_slots && grant.try_grow(needs.slot).is_ok() {
            n_slots += 1;
        }
        Ok((grant, needs, n_slots))
    }
}

/// A feed about to start.
struct Feed<'a> {
    samples: &'a Samples,
    meter: &'a Meter,
    walk: Walk<'a>,
    assembly: Assembly<'a>,
    n_slots: usize,
    threads: usize,
    batch: usize,
}

/// A window on its way.
struct WindowSlot {
    window: Option<Window>,
    /// Where in the window to begin.
    from: u64,
    /// The number of each of its blocks.
    blocks: Vec<u64>,
    bytes: Vec<u8>,
}

/// A batch on its way.
struct BatchSlot {
    samples: Vec<u64>,
    bytes: Vec<u8>,
}

impl Feed<'_> {
    fn held<E>(
        mut self,
        bytes: &[u8],
        mut take: impl FnMut(&SampleBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<u64, E> {
        let stands = Stands {
            base: Base::One(bytes),
            carried: &[],
        };
        let sample_bytes = self.samples.sample_bytes() as usize;
        loop {
            let next = self.walk.next();
            let full = next.is_some_and(|sample| {
                let at = sample as usize * sample_bytes;
                self.assembly.push(sample, Place { base: 0, at })
            });
            if full || (next.is_none() && self.assembly.len() > 0) {
                let broken_off = take(&self.assembly.batch(stands))?.is_break();
                self.assembly.clear();
                if broken_off {
                    break;
                }
            }
            if next.is_none() {
                break;
            }
        }
        Ok(self.assembly.cursor)
    }

    fn by_samples<E: From<Error>>(
        mut self,
        mut take: impl FnMut(&SampleBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<u64, E> {
        let reading = Reading::new(self.samples)?;
        let sample_bytes = self.samples.sample_bytes() as usize;
        let buffer = if reading.maps().is_some() {
            0
        } else {
            self.batch * sample_bytes
        };
        let slots = (0..self.n_slots).map(|_| BatchSlot {
            samples: Vec::with_capacity(self.batch),
            bytes: vec![0; buffer],
        });
        let (walk, assembly) = (&mut self.walk, &mut self.assembly);
        let steps = Steps {
            assign: |slot: &mut BatchSlot| {
                slot.samples.clear();
                slot.samples
                    .extend(std::iter::from_fn(|| walk.next()).take(self.batch));
                !slot.samples.is_empty()
            },
            fill: |slot: &mut BatchSlot| reading.load(&slot.samples, &mut slot.bytes),
            take: |slot: &mut BatchSlot| {
                for (i, sample) in slot.samples.iter().enumerate() {
                    assembly.push(*sample, reading.place(*sample, i * sample_bytes));
                }
                let stands = Stands {
                    base: reading.base(&slot.bytes),
                    carried: &[],
                };
                let taken = take(&assembly.batch(stands));
                assembly.clear();
                slot.samples.iter().for_each(|sample| reading.unload(*sample, 1));
                taken
            },
        };
        ring::run(slots.collect(), self.threads, self.meter, steps)?;
        Ok(self.assembly.cursor)
    }

    fn by_windows<E: From<Error>>(
        mut self,
        mut take: impl FnMut(&SampleBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<u64, E> {
        let reading = Reading::new(self.samples)?;
        let sample_bytes = self.samples.sample_bytes() as usize;
        let (route, part) = (self.walk.route, self.walk.part);
        let per_block = route.per_block();
        let window_samples = (route.most_blocks() * per_block).min(route.n_samples()) as usize;
        let buffer = if reading.maps().is_some() {
            0
        } else {
            window_samples * sample_bytes
        };
        let slots = (0..self.n_slots).map(|_| WindowSlot {
            window: None,
            from: 0,
            blocks: Vec::with_capacity(route.most_blocks() as usize),
            bytes: vec![0; buffer],
        });
        let mut carried = vec![0; self.batch * sample_bytes];
        let (mut next, mut from) = (self.walk.index, self.walk.at);
        let assembly = &mut self.assembly;
        let mut broken_off = false;
        let steps = Steps {
            assign: |slot: &mut WindowSlot| {
                slot.window = (next < route.n_windows()).then(|| route.window(next));
                slot.from = std::mem::take(&mut from);
                next += 1;
                slot.window.is_some()
            },
            fill: |slot: &mut WindowSlot| {
                let Some(window) = &slot.window else { return Ok(()) };
                let blocks = (0..window.n_blocks).map(|place| route.block(window.first_block + place));
                slot.blocks.clear();
                slot.blocks.extend(blocks);
                reading.load_blocks(route, part, &slot.blocks, &mut slot.bytes)
            },
            take: |slot: &mut WindowSlot| {
                let Some(window) = &slot.window else {
                    return Ok::<_, E>(ControlFlow::Break(()));
                };
                let base = reading.base(&slot.bytes);
                let short = reading.short_block(route, &slot.blocks);
                for position in slot.from..window.n_samples {
                    let (place, offset) = window.sample(position);
                    let sample = slot.blocks[place as usize] * per_block + offset;
                    if !part.contains(sample) {
                        continue;
                    }
                    let before =
                        place * per_block - short.filter(|(at, _)| place > *at).map_or(0, |(_, n)| n);
                    let at = (before + offset) as usize * sample_bytes;
                    if assembly.push(sample, reading.place(sample, at)) {
                        let stands = Stands {
                            base,
                            carried: &carried,
                        };
                        let taken = take(&assembly.batch(stands))?;
                        assembly.clear();
                        if taken.is_break() {
                            broken_off = true;
                            return Ok(taken);
                        }
                    }
                }
                assembly.carry(base, &mut carried);
                for block in &slot.blocks {
                    let (first, n) = route.samples_of(*block);
                    reading.unload(first, n);
                }
                Ok(ControlFlow::Continue(()))
            },
        };
        ring::run(slots.collect(), self.threads, self.meter, steps)?;
        if !broken_off && self.assembly.len() > 0 {
            let stands = Stands {
                base: Base::One(&[]),
                carried: &carried,
            };
            let _ = take(&self.assembly.batch(stands))?;
        }
        Ok(self.assembly.cursor)
    }
}

/// Samples on their way from files: read into buffers, or mapped.
struct Reading<'a> {
    samples: &'a Samples,
    reader: Option<Reader<'a>>,
}

impl<'a> Reading<'a> {
    fn new(samples: &'a Samples) -> Result<Reading<'a>> {
        let reader = match &samples.store {
            Store::Mapped(_) => None,
            Store::Files | Store::Memory(_) | Store::Images(_) => Some(samples.reader()?),
        };
        Ok(Reading { samples, reader })
    }

    fn maps(&self) -> Option<&'a [Mapped]> {
        match &self.samples.store {
            Store::Mapped(maps) => Some(maps),
            Store::Files | Store::Memory(_) | Store::Images(_) => None,
        }
    }

    fn base<'b>(&self, bytes: &'b [u8]) -> Base<'b>
    where
        'a: 'b,
    {
        self.maps().map_or(Base::One(bytes), Base::Maps)
    }

    /// Where a sample stands that a buffer holds at `at`.
    fn place(&self, sample: u64, at: usize) -> Place {
        if self.maps().is_none() {
            return Place { base: 0, at };
        }
        let shard = self.samples.shard_of(sample);
        let here = sample - self.samples.shards[shard].first;
        Place {
            base: shard as u32,
            at: (here * self.samples.sample_bytes()) as usize,
        }
    }

    /// Brings samples in, those that neighbour each other at once.
    fn load(&self, samples: &[u64], mut into: &mut [u8]) -> Result<()> {
        for run in samples.chunk_by(|a, b| *b == a + 1) {
            into = self.load_run(run[0], run.len() as u64, into)?;
        }
        Ok(())
    }

    /// Brings in the blocks that have samples of the part, those that neighbour each other at once.
    fn load_blocks(&self, route: &Route, part: Part, blocks: &[u64], mut into: &mut [u8]) -> Result<()> {
        for run in blocks.chunk_by(|a, b| *b == a + 1) {
            let (first, _) = route.samples_of(run[0]);
            let (last, n) = route.samples_of(run[run.len() - 1]);
            let n = last + n - first;
            // A run of nothing that is asked for is not read, only passed over.
            if (first..first + n).any(|sample| part.contains(sample)) {
                into = self.load_run(first, n, into)?;
            } else if self.maps().is_none() {
                into = &mut into[(n * self.samples.sample_bytes()) as usize..];
            }
        }
        Ok(())
    }

    /// Brings in `n` samples from `first` on, and returns what is left of the buffer.
    fn load_run<'b>(&self, first: u64, n: u64, into: &'b mut [u8]) -> Result<&'b mut [u8]> {
        match &self.reader {
            Some(reader) => {
                let (now, later) = into.split_at_mut((n * self.samples.sample_bytes()) as usize);
                reader.read(first, now)?;
                Ok(later)
            }
            None => {
                self.each_range(first, n, |map, at, bytes| map.load(at, bytes));
                Ok(into)
            }
        }
    }

    /// Lets go of what was mapped.
    fn unload(&self, first: u64, n: u64) {
        if self.reader.is_none() {
            self.each_range(first, n, |map, at, bytes| map.unload(at, bytes));
        }
    }

    fn each_range(&self, mut first: u64, mut n: u64, take: impl Fn(&Mapped, usize, usize)) {
        let Some(maps) = self.maps() else { return };
        let sample_bytes = self.samples.sample_bytes();
        let from = self.samples.shard_of(first);
        for (shard, map) in self.samples.shards.iter().zip(maps).skip(from) {
            let here = first - shard.first;
            let now = n.min(shard.n_samples - here);
            take(map, (here * sample_bytes) as usize, (now * sample_bytes) as usize);
            (first, n) = (first + now, n - now);
            if n == 0 {
                return;
            }
        }
    }

    /// The place of the block among these that is not full, and what it lacks: those behind it stand nearer.
    fn short_block(&self, route: &Route, blocks: &[u64]) -> Option<(u64, u64)> {
        let lacks = |block: &u64| route.per_block() - route.samples_of(*block).1;
        let place = blocks.iter().position(|block| lacks(block) > 0)?;
        Some((place as u64, lacks(&blocks[place])))
    }
}
