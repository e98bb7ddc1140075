//! Building a pack: filled beside, synced, renamed; gone without a trace when anything fails.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use tidegate_memory::{Grant, Holder};

use super::layout::{Body, Layout};
use super::manifest::{Entry, FORMAT, Manifest, write_index};
use super::read::{self, PackFile};
use super::store::{DATA, INDEX, MANIFEST, PackKey, PackStore};
use super::write::{WRITE_BEHIND_BYTES, WriteBehind, is_full};
use super::{PackProblem, frame};
use crate::disk::Disk;

/// What a new pack is.
#[derive(Debug, Clone)]
pub struct PackOptions {
    pub store: PackStore,
    pub key: PackKey,
    /// What it is made from, for people: `flights.csv, 21 columns, target delayed`.
    pub description: String,
    /// The rows that are expected, to compare with the disk before; a guess will do.
    pub n_rows: u64,
}

/// What stays free on the disk beside a twentieth of the pack: checkpoints, logs and others need some too.
const SPARE_BYTES: u64 = 64 << 20;

/// Entries are granted in steps of this many.
const ENTRIES: usize = 1024;

/// A pack being written. Dropped before it is finished, it leaves nothing behind.
pub(crate) struct Builder {
    store: PackStore,
    key: PackKey,
    folder: PathBuf,
    layout: Layout,
    description: String,
    data: WriteBehind,
    /// Locked for as long as this lives, so that nobody takes the folder for a leftover.
    #[expect(dead_code, reason = "held for its drop")]
    lock: File,
    entries: Vec<Entry>,
    n_rows: u64,
    holder: Holder,
    /// For the entries.
    grant: Grant,
    /// For what the page cache holds until the disk has it.
    #[expect(dead_code, reason = "held for its drop")]
    behind: Grant,
}

impl Builder {
    /// Begins a pack of about so many bytes, if the disk has the room.
    pub(crate) fn create(
        options: &PackOptions,
        layout: Layout,
        bytes: u64,
        holder: &Holder,
    ) -> Result<Builder, PackProblem> {
        let PackOptions { store, key, .. } = options;
        let behind = holder.try_grant(WRITE_BEHIND_BYTES)?;
        let folder = store.aside(*key, "new");
        let unwritable = |source| PackProblem::Unwritable {
            path: folder.clone(),
            source,
        };
        fs::create_dir_all(store.path()).map_err(unwritable)?;
        // Room that dead builders take is room for this one; if they cannot be removed, the disk tells.
        let _ = store.sweep();
        let expected = bytes.saturating_add(bytes / 20);
        let needed = expected.saturating_add(SPARE_BYTES);
        let disk = Disk::of(store.path()).map_err(unwritable)?;
        if disk.free < needed {
            let free = disk.free;
            return Err(PackProblem::NoSpace { needed, free });
        }
        // The kernel charges what is written there to whoever writes it.
        let in_memory = if disk.is_memory { expected } else { 0 };
        let grant = holder.try_grant(in_memory).map_err(|_| PackProblem::InMemory {
            path: store.path().into(),
            needed: expected,
        })?;
        fs::create_dir(&folder).map_err(unwritable)?;
        let begun = (|| {
            let file = File::create_new(folder.join(DATA))?;
            let lock = file.try_clone()?;
            // Where a file system has no locks, process numbers have to do.
            let _ = lock.try_lock();
            let mut data = WriteBehind::new(file);
            data.write(&frame::opening(&layout))?;
            Ok((data, lock))
        })();
        let (data, lock) = begun.map_err(|source| {
            let _ = fs::remove_dir_all(&folder);
            match is_full(&source) {
                true => PackProblem::Full { written: 0 },
                false => unwritable(source),
            }
        })?;
        Ok(Builder {
            store: store.clone(),
            key: *key,
            folder,
            layout,
            description: options.description.clone(),
            data,
            lock,
            entries: Vec::new(),
            n_rows: 0,
            grant,
            holder: holder.clone(),
            behind,
        })
    }

    /// Appends a batch: one slice for each segment of its body, and their checksum.
    pub(crate) fn push(
        &mut self,
        n_rows: usize,
        n_values: usize,
        note: Option<&str>,
        body: &[&[u8]],
        body_checksum: u32,
    ) -> Result<(), PackProblem> {
        // Arrow counts sparse values in 31 bits.
        let (Ok(rows), Ok(values)) = (u32::try_from(n_rows), i32::try_from(n_values)) else {
            return Err(self.unwritable(io::ErrorKind::FileTooLarge.into()));
        };
        if self.entries.len() == self.entries.capacity() {
            self.grant.try_grow((ENTRIES * size_of::<Entry>()) as u64)?;
            self.entries.reserve_exact(ENTRIES);
        }
        let plan = self.layout.body(n_rows as u64, n_values as u64);
        let header = frame::header(&plan, n_rows as u64, note);
        if header.len() as u64 > frame::MOST_HEADER_BYTES {
            return Err(self.unwritable(io::ErrorKind::FileTooLarge.into()));
        }
        let offset = self.data.written;
        if let Err(error) = self.write(&header, &plan, body) {
            return Err(self.failed(error));
        }
        self.n_rows += n_rows as u64;
        self.entries.push(Entry {
            offset,
            header_bytes: header.len() as u32,
            n_rows: rows,
            n_values: values as u32,
            header_checksum: crc32fast::hash(&header),
            body_checksum,
        });
        Ok(())
    }

    fn write(&mut self, header: &[u8], plan: &Body, body: &[&[u8]]) -> io::Result<()> {
        self.data.write(header)?;
        let start = self.data.written;
        let zeros = [0; frame::ALIGN as usize];
        for (segment, bytes) in plan.segments.iter().zip(body) {
            let gap = start + segment.at - self.data.written;
            self.data.write(&zeros[..gap as usize])?;
            debug_assert_eq!(bytes.len() as u64, segment.bytes);
            self.data.write(bytes)?;
        }
        let gap = start + plan.bytes - self.data.written;
        self.data.write(&zeros[..gap as usize])
    }

    /// Puts the pack in its place, or takes the one that another builder put there meanwhile.
    pub(crate) fn finish(mut self) -> Result<PackFile, PackProblem> {
        let mut manifest = Manifest {
            format: FORMAT,
            layout: self.layout,
            description: std::mem::take(&mut self.description),
            created: SystemTime::now()
                .duration_since(UNIX_EPOCH)
                .map_or(0, |since| since.as_secs()),
            n_rows: self.n_rows,
            n_batches: self.entries.len() as u64,
            data_bytes: 0,
            index_checksum: 0,
        };
        // The end of the file names every batch again: as a list, as a message that doubles while it grows, and
        // as bytes to write.
        let closing = self.holder.try_grant(self.entries.len() as u64 * 24 * 4)?;
        let ended = (|| {
            self.data.write(&read::closing(&manifest, &self.entries))?;
            manifest.data_bytes = self.data.written;
            manifest.index_checksum = write_index(&self.folder.join(INDEX), &self.entries)?;
            self.data.sync()?;
            manifest.write(&self.folder.join(MANIFEST))?;
            sync_folder(&self.folder)
        })();
        drop(closing);
        if let Err(error) = ended {
            return Err(self.failed(error));
        }
        let place = self.store.folder(self.key);
        match fs::rename(&self.folder, &place).and_then(|()| sync_folder(self.store.path())) {
            Ok(()) => {
                let (entries, grant) = (std::mem::take(&mut self.entries), self.grant.split(u64::MAX));
                PackFile::new(&self.store, self.key, manifest, entries, grant)
            }
            Err(error) if is_taken(&error) => {
                let opened = self.store.open(self.key, self.layout, &self.holder)?;
                opened.ok_or_else(|| self.unwritable(error))
            }
            Err(error) => Err(self.failed(error)),
        }
    }

    fn failed(&self, error: io::Error) -> PackProblem {
        match is_full(&error) {
            true => PackProblem::Full {
                written: self.data.written,
            },
            false => self.unwritable(error),
        }
    }

    fn unwritable(&self, source: io::Error) -> PackProblem {
        PackProblem::Unwritable {
            path: self.folder.clone(),
            source,
        }
    }
}

impl Drop for Builder {
    fn drop(&mut self) {
        // A finished pack is in another place by now.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Another folder with something in it is in the place.
fn is_taken(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::DirectoryNotEmpty | io::ErrorKind::AlreadyExists
    )
}

fn sync_folder(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}
