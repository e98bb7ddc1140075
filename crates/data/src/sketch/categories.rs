//! The categories of a column, their rows and target sums, in a table that never outgrows its bytes.

use serde::{Deserialize, Serialize};

use super::hash::MISSING;
use super::records::{Category, Records, Shape, key, name, set_key, set_name};

/// Longer names are cut.
const LONGEST_NAME: usize = 255;
/// The part of the bytes that names may take.
const NAME_SHARE: usize = 8;
/// Rows looked up together, so that their cache misses overlap: at 500,000 categories a row takes 81 ns instead of
/// 142 one by one.
const TOGETHER: usize = 32;

/// Counts and target sums by category, keyed by the category's [`hash`](super::hash::hash()).
///
/// When the bytes are used up, the lowest bits of all keys are given up, as few as will do, and categories that
/// are now alike become one. So nothing is refused and no row is lost: the table turns, by degrees, into a
/// hashed one. How many bits are left depends only on which categories came, not on their order. Missing values
/// have a record of their own, which is never shared.
///
/// ```
/// use tidegate_data::sketch::hash::{MISSING, hash};
/// use tidegate_data::sketch::{CategoryTable, Shape, Targets};
/// let shape = Shape { folds: 2, targets: Targets::Classes { classes: 2 } };
/// let mut table = CategoryTable::with_capacity_bytes(shape, 1 << 20);
/// let city = |name: &str| hash(name.as_bytes());
/// let keys = [city("Oslo"), city("Rome"), city("Oslo"), MISSING];
/// let names: [&[u8]; 4] = [b"Oslo", b"Rome", b"Oslo", b""];
/// table.add_rows(&keys, &[0, 1, 1, 0], &[1.0, 0.0, 1.0, 1.0], |row| names[row]);
/// let oslo = table.get(city("Oslo")).unwrap();
/// assert_eq!((oslo.count(), oslo.sum(0), oslo.fold_count(0)), (2, 2.0, 1));
/// assert_eq!((table.len(), table.rows(), table.missing().count()), (2, 4, 1));
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CategoryTable {
    shape: Shape,
    max_bytes: usize,
    max_categories: usize,
    shared_bits: u32,
    /// The first is for missing values, the others in the order they came.
    records: Records,
    /// Open addressing by the highest bits of the key: the number of a record in the low bits, bits of its key
    /// above, so that other keys are told apart without a look at their records. 0 is free.
    slots: Vec<u32>,
    names: Vec<u8>,
}

impl CategoryTable {
    /// A table that takes at most `max_bytes`, though never fewer than 16 categories need.
    pub fn with_capacity_bytes(shape: Shape, max_bytes: usize) -> CategoryTable {
        let shape = Shape {
            folds: shape.folds.max(1),
            ..shape
        };
        let room = max_bytes - max_bytes / NAME_SHARE;
        let (mut low, mut high) = (16, (room / shape.words() / 4).clamp(17, 1 << 30));
        while low + 1 < high {
            let middle = low.midpoint(high);
            match bytes_for(shape, middle) <= room {
                true => low = middle,
                false => high = middle,
            }
        }
        let mut records = Records::new(shape.words());
        records.push();
        CategoryTable {
            shape,
            max_bytes,
            max_categories: low,
            shared_bits: 0,
            records,
            slots: Vec::new(),
            names: Vec::new(),
        }
    }

    /// Counts one row. The name is asked for when the category is new.
    pub fn add<'n>(&mut self, hash: u64, name: impl FnOnce() -> &'n [u8], fold: u8, target: f64) {
        let record = self.find_or_insert(hash, name);
        self.shape.add_row(self.records.get_mut(record), fold, target);
    }

    /// Counts the rows of a block: the category's hash, the fold and the target of each. The target is the
    /// number of the class, or the value; with one fold or no targets those slices may be empty.
    pub fn add_rows<'n>(
        &mut self,
        hashes: &[u64],
        folds: &[u8],
        targets: &[f64],
        mut name: impl FnMut(usize) -> &'n [u8],
    ) {
        for (chunk, hashes) in hashes.chunks(TOGETHER).enumerate() {
            let first_row = chunk * TOGETHER;
            let mut guesses = [0; TOGETHER];
            self.guess(hashes, &mut guesses);
            let bits = self.shared_bits;
            for (i, (&hash, &guess)) in hashes.iter().zip(&guesses).enumerate() {
                let row = first_row + i;
                // Records move when the table becomes coarser, and never else.
                let record = match guess > 0 && bits == self.shared_bits {
                    true => guess as usize,
                    false => self.find_or_insert(hash, || name(row)),
                };
                let fold = folds.get(row).copied().unwrap_or(0);
                let target = targets.get(row).copied().unwrap_or(0.0);
                self.shape.add_row(self.records.get_mut(record), fold, target);
            }
        }
    }

    /// Adds what a later part of the data held. Both tables have the same shape.
    pub fn merge(&mut self, later: &CategoryTable) {
        assert_eq!(self.shape, later.shape, "tables of one column have one shape");
        if later.shared_bits > self.shared_bits {
            self.coarsen(later.shared_bits);
        }
        for i in 0..later.records.len() {
            let theirs = later.category(i);
            let mine = match i {
                0 => 0,
                _ => self.find_or_insert_named(theirs.key(), || theirs.name),
            };
            self.shape.add_record(self.records.get_mut(mine), theirs.record);
        }
    }

    /// How many categories there are, missing not among them.
    pub fn len(&self) -> usize {
        self.records.len() - 1
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All rows, missing ones among them.
    pub fn rows(&self) -> u64 {
        self.missing().count() + self.categories().map(|category| category.count()).sum::<u64>()
    }

    pub fn shape(&self) -> Shape {
        self.shape
    }

    /// The categories in the order they came.
    pub fn categories(&self) -> impl Iterator<Item = Category<'_>> {
        (1..self.records.len()).map(|i| self.category(i))
    }

    /// The rows without a value; their count may be zero.
    pub fn missing(&self) -> Category<'_> {
        self.category(0)
    }

    pub fn get(&self, hash: u64) -> Option<Category<'_>> {
        if hash == MISSING {
            return Some(self.missing());
        }
        self.find(self.kept(hash)).ok().map(|i| self.category(i))
    }

    /// The bits of the hash that were given up, from the lowest.
    pub fn shared_bits(&self) -> u32 {
        self.shared_bits
    }

    /// Whether every category still has a record of its own.
    pub fn is_exact(&self) -> bool {
        self.shared_bits == 0
    }

    /// The most categories it can tell apart.
    pub fn max_categories(&self) -> usize {
        self.max_categories
    }

    pub fn bytes(&self) -> usize {
        self.records.bytes() + self.slots.capacity() * 4 + self.names.capacity()
    }

    /// The most bytes it can take after `more` rows with so many bytes of text in all: each may be a new category.
    pub fn would_need(&self, more: usize, text_bytes: usize) -> usize {
        let categories = self.len().saturating_add(more).min(self.max_categories);
        let end = self.names.len() + more + text_bytes;
        let names = match end > self.names.capacity() {
            true => room_for_names(end).min(self.max_names()),
            false => self.names.capacity(),
        };
        self.bytes().max(bytes_for(self.shape, categories) + names)
    }

    fn max_names(&self) -> usize {
        self.max_bytes / NAME_SHARE
    }

    fn category(&self, i: usize) -> Category<'_> {
        let record = self.records.get(i);
        let name = (name(record) as usize).checked_sub(1).map(|at| {
            let len = usize::from(self.names[at]);
            &self.names[at + 1..][..len]
        });
        Category {
            shape: self.shape,
            record,
            name,
        }
    }

    /// The bits of a hash that are still told apart.
    #[inline]
    fn kept(&self, hash: u64) -> u64 {
        hash >> self.shared_bits << self.shared_bits
    }

    /// The records of many rows, 0 for those that are new or missing. No look at memory waits for another: first
    /// at all slots, then at all records.
    #[inline]
    fn guess(&self, hashes: &[u64], guesses: &mut [u32; TOGETHER]) {
        if self.slots.is_empty() {
            return;
        }
        let (mask, shift) = (self.number_mask(), self.slot_shift());
        for (guess, &hash) in guesses.iter_mut().zip(hashes) {
            *guess = self.slots[(self.kept(hash) >> shift) as usize];
        }
        for (guess, &hash) in guesses.iter_mut().zip(hashes) {
            let tag = self.tag(self.kept(hash));
            if *guess & !mask != tag && *guess != 0 {
                *guess = self.next_alike(self.kept(hash));
            }
            *guess &= mask;
        }
        for (guess, &hash) in guesses.iter_mut().zip(hashes) {
            // A free slot leads to the record of missing values, which is 0 as well.
            let same = key(self.records.get(*guess as usize)) == self.kept(hash) && hash != MISSING;
            *guess = if same { *guess } else { 0 };
        }
    }

    /// The first slot that may be a key's, by its tag, or a free one.
    fn next_alike(&self, key: u64) -> u32 {
        let (tag, mask) = (self.tag(key), self.number_mask());
        let mut at = (key >> self.slot_shift()) as usize;
        loop {
            let slot = self.slots[at];
            if slot == 0 || slot & !mask == tag {
                return slot;
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn find_or_insert<'n>(&mut self, hash: u64, name: impl FnOnce() -> &'n [u8]) -> usize {
        match hash {
            MISSING => 0,
            hash => self.find_or_insert_named(hash, || Some(name())),
        }
    }

    fn find_or_insert_named<'n>(&mut self, hash: u64, name: impl FnOnce() -> Option<&'n [u8]>) -> usize {
        if self.records.len() > most_used(self.slots.len()) {
            self.index();
        }
        let slot = match self.find(self.kept(hash)) {
            Ok(record) => return record,
            Err(slot) => slot,
        };
        let (key, record) = (self.kept(hash), self.records.push());
        self.slots[slot] = self.tag(key) | record as u32;
        let name = name().map_or(0, |name| self.keep_name(name));
        let words = self.records.get_mut(record);
        set_key(words, key);
        set_name(words, name);
        if self.len() <= self.max_categories {
            return record;
        }
        let bits = self.bits_to_share();
        self.coarsen(bits);
        // The new category is either still there or has become one with another.
        self.find(self.kept(hash)).unwrap_or(0)
    }

    /// The record of a key, or the free slot where it belongs.
    #[inline]
    fn find(&self, wanted: u64) -> Result<usize, usize> {
        if self.slots.is_empty() {
            return Err(0);
        }
        let (tag, mask) = (self.tag(wanted), self.number_mask());
        let mut at = (wanted >> self.slot_shift()) as usize;
        loop {
            let slot = self.slots[at];
            if slot == 0 {
                return Err(at);
            }
            let record = (slot & mask) as usize;
            if slot & !mask == tag && key(self.records.get(record)) == wanted {
                return Ok(record);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
    }

    fn slot_shift(&self) -> u32 {
        64 - self.slots.len().trailing_zeros()
    }

    /// The bits of a slot that number a record.
    fn number_mask(&self) -> u32 {
        (self.max_categories as u32 + 2).next_power_of_two() - 1
    }

    /// Bits of a key that its slot does not tell, in the place that the numbers leave.
    fn tag(&self, key: u64) -> u32 {
        ((key << (64 - self.slot_shift())) >> 32) as u32 & !self.number_mask()
    }

    /// Makes the slots anew, twice as many when they are full. The old ones go first.
    fn index(&mut self) {
        let slots = slots_for(self.records.len());
        self.slots = Vec::new();
        self.slots = vec![0; slots];
        for record in 1..self.records.len() {
            let key = key(self.records.get(record));
            // Keys differ, so this finds a free slot.
            if let Err(slot) = self.find(key) {
                self.slots[slot] = self.tag(key) | record as u32;
            }
        }
    }

    /// Where a name is kept, plus one; 0 when there is no room.
    fn keep_name(&mut self, name: &[u8]) -> u32 {
        let name = &name[..name.len().min(LONGEST_NAME)];
        let (at, end) = (self.names.len(), self.names.len() + 1 + name.len());
        if end > self.max_names() || end > u32::MAX as usize {
            return 0;
        }
        if end > self.names.capacity() {
            let room = room_for_names(end).min(self.max_names());
            self.names.reserve_exact(room - at);
        }
        self.names.push(name.len() as u8);
        self.names.extend_from_slice(name);
        at as u32 + 1
    }

    /// The fewest bits to give up so that all fit: between neighbours in order, the bits they have in common
    /// tell when they become one.
    fn bits_to_share(&mut self) -> u32 {
        // The slots are made anew anyway, and the list of keys takes their place.
        self.slots = Vec::new();
        let mut keys: Vec<u64> = (1..self.records.len())
            .map(|i| key(self.records.get(i)))
            .collect();
        keys.sort_unstable();
        let mut told_apart_by = [0usize; 65];
        for pair in keys.windows(2) {
            told_apart_by[(pair[0] ^ pair[1]).leading_zeros() as usize] += 1;
        }
        // With the first `bits` bits kept, neighbours that differ within them stay apart.
        let (mut categories, mut bits) = (1, 0);
        while bits < 64 && categories + told_apart_by[bits] <= self.max_categories {
            categories += told_apart_by[bits];
            bits += 1;
        }
        64 - bits as u32
    }

    /// Gives up the lowest `bits` bits of all keys and joins the categories that are now alike.
    fn coarsen(&mut self, bits: u32) {
        self.shared_bits = bits;
        self.slots = Vec::new();
        self.slots = vec![0; slots_for(self.records.len())];
        let mut record = vec![0; self.shape.words()];
        let mut len = 1;
        for i in 1..self.records.len() {
            record.copy_from_slice(self.records.get(i));
            let kept = self.kept(key(&record));
            set_key(&mut record, kept);
            match self.find(kept) {
                Ok(same) => {
                    let same = self.records.get_mut(same);
                    self.shape.add_record(same, &record);
                    if name(same) == 0 {
                        set_name(same, name(&record));
                    }
                }
                Err(slot) => {
                    self.records.get_mut(len).copy_from_slice(&record);
                    self.slots[slot] = self.tag(kept) | len as u32;
                    len += 1;
                }
            }
        }
        self.records.truncate(len);
    }
}

/// The most records that so many slots serve: three of four, where a search takes two or three looks.
fn most_used(slots: usize) -> usize {
    slots / 4 * 3
}

fn slots_for(records: usize) -> usize {
    (records + 1)
        .div_ceil(3)
        .saturating_mul(4)
        .next_power_of_two()
        .max(16)
}

/// A quarter more than is needed now: what is asked for counts, whether it is used or not, and the allocator moves
/// large pieces without a copy.
fn room_for_names(bytes: usize) -> usize {
    bytes + bytes / 4
}

/// What so many categories take without their names. One more comes in before others are joined, and one
/// record is for missing values.
fn bytes_for(shape: Shape, categories: usize) -> usize {
    let records = categories + 2;
    // While keys are being joined, a list of them takes the place of the slots.
    Records::bytes_for(shape.words(), records) + (slots_for(records) * 4).max(records * 8)
}
