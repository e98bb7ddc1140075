//! What is known of a pack beside its data: the manifest, and the index of its batches.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};
use tidegate_memory::{Grant, Refused};

use super::Layout;

/// Packs of another version are not read.
pub(crate) const FORMAT: u32 = 1;

/// A manifest is a few hundred bytes; what is larger is none.
const MOST_BYTES: u64 = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    pub format: u32,
    pub layout: Layout,
    /// What it was made from, for people.
    pub description: String,
    /// Seconds since 1970.
    pub created: u64,
    pub n_rows: u64,
    pub n_batches: u64,
    pub data_bytes: u64,
    /// CRC-32 of the index.
    pub index_checksum: u32,
}

impl Manifest {
    /// Reads a manifest; what is not one is an error of its own kind.
    pub(crate) fn read(path: &Path) -> io::Result<Manifest> {
        let mut bytes = Vec::new();
        File::open(path)?.take(MOST_BYTES).read_to_end(&mut bytes)?;
        serde_json::from_slice(&bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
    }

    pub(crate) fn write(&self, path: &Path) -> io::Result<()> {
        let mut file = File::create(path)?;
        file.write_all(&serde_json::to_vec_pretty(self)?)?;
        file.sync_all()
    }
}

/// Where a batch stands and what it holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub offset: u64,
    /// Bytes before the body, which begins on a boundary.
    pub header_bytes: u32,
    pub n_rows: u32,
    /// Sparse values of all rows.
    pub n_values: u32,
    /// CRC-32 of the header, and of the buffers of the body one after another.
    pub header_checksum: u32,
    pub body_checksum: u32,
}

impl Entry {
    /// Its bytes in the index.
    pub(crate) const BYTES: usize = 28;

    fn to_bytes(self) -> [u8; Entry::BYTES] {
        let mut bytes = [0; Entry::BYTES];
        bytes[..8].copy_from_slice(&self.offset.to_le_bytes());
        let words = [
            self.header_bytes,
            self.n_rows,
            self.n_values,
            self.header_checksum,
            self.body_checksum,
        ];
        for (to, word) in bytes[8..].chunks_exact_mut(4).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    fn from_bytes(bytes: [u8; Entry::BYTES]) -> Entry {
        let (offset, words) = bytes.split_at(8);
        let word = |i: usize| u32::from_le_bytes(std::array::from_fn(|at| words[4 * i + at]));
        Entry {
            offset: u64::from_le_bytes(std::array::from_fn(|at| offset[at])),
            header_bytes: word(0),
            n_rows: word(1),
            n_values: word(2),
            header_checksum: word(3),
            body_checksum: word(4),
        }
    }
}

/// Writes the index and returns its checksum.
pub(crate) fn write_index(path: &Path, entries: &[Entry]) -> io::Result<u32> {
    let mut file = BufWriter::new(File::create(path)?);
    let mut checksum = crc32fast::Hasher::new();
    for entry in entries {
        let bytes = entry.to_bytes();
        checksum.update(&bytes);
        file.write_all(&bytes)?;
    }
    file.into_inner()
        .map_err(io::IntoInnerError::into_error)?
        .sync_all()?;
    Ok(checksum.finalize())
}

/// Why there is no index.
pub(crate) enum NoIndex {
    Unreadable(io::Error),
    /// It is not what it should be.
    Damaged,
    Refused(Refused),
}

/// Reads the index of a pack into memory that `grant` grows by.
pub(crate) fn read_index(path: &Path, manifest: &Manifest, grant: &mut Grant) -> Result<Vec<Entry>, NoIndex> {
    let file = File::open(path).map_err(NoIndex::Unreadable)?;
    let bytes = file.metadata().map_err(NoIndex::Unreadable)?.len();
    if Some(bytes) != manifest.n_batches.checked_mul(Entry::BYTES as u64) {
        return Err(NoIndex::Damaged);
    }
    grant
        .try_grow(manifest.n_batches * size_of::<Entry>() as u64)
        .map_err(NoIndex::Refused)?;
    let mut file = BufReader::new(file);
    let mut checksum = crc32fast::Hasher::new();
    let mut entries = Vec::with_capacity(manifest.n_batches as usize);
    let mut bytes = [0; Entry::BYTES];
    for _ in 0..manifest.n_batches {
        file.read_exact(&mut bytes).map_err(NoIndex::Unreadable)?;
        checksum.update(&bytes);
        entries.push(Entry::from_bytes(bytes));
    }
    match checksum.finalize() == manifest.index_checksum {
        true => Ok(entries),
        false => Err(NoIndex::Damaged),
    }
}
