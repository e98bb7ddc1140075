//! Samples and feeds that take less when memory is taken away: what they could give back, and that they do.
//!
//! What comes out is the same. Samples that were held in memory are read from where they came from; a feed breaks off behind
//! a batch, gives back what it has, and goes on from there with less to read ahead into.

use std::sync::atomic::{AtomicU64, Ordering};

use super::samples::{Shard, Store};
use super::source::ArraySource;

/// How far a source is pressed.
#[derive(Debug)]
pub(crate) struct Pressed {
    /// The most that feeds read ahead into.
    prefetch: AtomicU64,
}

impl Default for Pressed {
    fn default() -> Pressed {
        Pressed {
            prefetch: AtomicU64::new(u64::MAX),
        }
    }
}

impl Pressed {
    /// Of so many bytes to read ahead into, those that are still to be had.
    pub(crate) fn prefetch(&self, asked: u64) -> u64 {
        asked.min(self.prefetch.load(Ordering::Relaxed))
    }

    pub(crate) fn lower_prefetch(&self, most: u64) {
        self.prefetch.fetch_min(most, Ordering::Relaxed);
    }
}

impl ArraySource {
    /// The bytes that samples held in memory could do without, if need be; what a feed could, it tells its ledger.
    pub fn spare_bytes(&self) -> u64 {
        match &self.samples.store {
            Store::Images(images) => images.held_bytes(),
            Store::Memory(held) if self.can_let_go() => held.bytes(),
            _ => 0,
        }
    }

    /// Whether samples in memory can be read again from where they came from: not if they are compressed there.
    pub fn can_let_go(&self) -> bool {
        !self.samples.shards.iter().any(Shard::is_packed)
    }

    /// Lets go of samples that are held in memory until so many bytes are free: pictures block by block, arrays as a whole,
    /// and where a feed stands on them, behind its next batch. They come from their files or their pack from then on. Returns
    /// the bytes that are free then.
    pub fn let_go(&self, bytes: u64) -> u64 {
        match &self.samples.store {
            _ if bytes == 0 => 0,
            Store::Images(images) => images.let_go(bytes),
            Store::Memory(held) if self.can_let_go() => {
                let on_their_way = held.bytes();
                held.let_go();
                on_their_way
            }
            _ => 0,
        }
    }
}
