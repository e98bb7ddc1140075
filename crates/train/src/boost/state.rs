//! What is kept of every row between passes, block by block: in memory while it fits, in a scratch file else.

use std::fs::{File, OpenOptions};
use std::io;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// The state of the rows of a block.
#[derive(Debug)]
pub(super) struct BlockState {
    pub(super) n_rows: usize,
    /// Class by class.
    margins: Vec<f32>,
    /// Packed slopes and curvatures, class by class.
    gradients: Vec<u32>,
    /// The rows that the tree learns from, grouped by node.
    pub(super) order: Vec<u16>,
    /// Where in the order a node begins and ends.
    pub(super) ranges: Vec<[u32; 2]>,
}

impl BlockState {
    pub(super) fn new(n_rows: usize, n_outputs: usize, n_nodes: usize) -> BlockState {
        BlockState {
            n_rows,
            margins: vec![0.0; n_rows * n_outputs],
            gradients: vec![0; n_rows * n_outputs],
            order: vec![0; n_rows],
            ranges: vec![[0; 2]; n_nodes],
        }
    }

    pub(super) fn bytes(n_rows: usize, n_outputs: usize, n_nodes: usize) -> u64 {
        let row = size_of::<u16>() + n_outputs * (size_of::<f32>() + size_of::<u32>());
        (n_rows * row + n_nodes * size_of::<[u32; 2]>()) as u64
    }

    pub(super) fn margins(&mut self, classes: Range<usize>) -> &mut [f32] {
        &mut self.margins[classes.start * self.n_rows..classes.end * self.n_rows]
    }

    pub(super) fn gradients(&self, class: usize) -> &[u32] {
        &self.gradients[class * self.n_rows..(class + 1) * self.n_rows]
    }

    /// Margins and gradients of all classes.
    pub(super) fn both(&mut self, n_outputs: usize) -> (&mut [f32], &mut [u32]) {
        let n = n_outputs * self.n_rows;
        (&mut self.margins[..n], &mut self.gradients[..n])
    }
}

/// The parts of a state that a pass reads or writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    pub(super) margins: Range<usize>,
    pub(super) gradients: Range<usize>,
    pub(super) order: bool,
}

/// The states of all blocks: the first ones in memory, the others in a file.
#[derive(Debug)]
pub(super) struct States {
    pub(super) resident: Vec<Mutex<BlockState>>,
    scratch: Option<Scratch>,
    n_outputs: usize,
    n_nodes: usize,
    /// Of the largest block, which is what every place in the file has room for.
    block_rows: usize,
}

impl States {
    /// `n_rows` has the rows of each block; the first `n_resident` stay in memory.
    pub(super) fn new(
        n_rows: &[usize],
        n_resident: usize,
        n_outputs: usize,
        n_nodes: usize,
        folder: &Path,
    ) -> Result<States> {
        let resident = n_rows.iter().take(n_resident);
        let streams = n_rows.len() > n_resident;
        Ok(States {
            resident: resident
                .map(|n| Mutex::new(BlockState::new(*n, n_outputs, n_nodes)))
                .collect(),
            scratch: streams.then(|| Scratch::new(folder)).transpose()?,
            n_outputs,
            n_nodes,
            block_rows: n_rows.iter().copied().max().unwrap_or(0),
        })
    }

    /// A state to stream others through.
    pub(super) fn buffer(&self) -> Option<BlockState> {
        let state = || BlockState::new(self.block_rows, self.n_outputs, self.n_nodes);
        self.scratch.as_ref().map(|_| state())
    }

    /// Reads pieces of a block's state from the file.
    pub(super) fn load(
        &self,
        block: usize,
        n_rows: usize,
        state: &mut BlockState,
        pieces: &Pieces,
    ) -> Result<()> {
        state.n_rows = n_rows;
        let scratch = self
            .scratch
            .as_ref()
            .expect("a block outside of memory is in the file");
        let places = self.places(block, n_rows);
        let range = &pieces.margins;
        let part = range.start * n_rows..range.end * n_rows;
        let n = size_of::<f32>();
        scratch.read(
            places.margins + (part.start * n) as u64,
            bytes_mut(&mut state.margins[part]),
        )?;
        let range = &pieces.gradients;
        let part = range.start * n_rows..range.end * n_rows;
        scratch.read(
            places.gradients + (part.start * n) as u64,
            bytes_mut(&mut state.gradients[part]),
        )?;
        if pieces.order {
            scratch.read(places.order, bytes_mut(&mut state.order[..n_rows]))?;
            scratch.read(places.ranges, bytes_mut(&mut state.ranges))?;
        }
        Ok(())
    }

    /// Writes pieces of a block's state to the file and returns where, for [`settle`](Self::settle).
    pub(super) fn store(&self, block: usize, state: &BlockState, pieces: &Pieces) -> Result<Range<u64>> {
        let scratch = self
            .scratch
            .as_ref()
            .expect("a block outside of memory is in the file");
        let n_rows = state.n_rows;
        let places = self.places(block, n_rows);
        let range = &pieces.margins;
        let part = range.start * n_rows..range.end * n_rows;
        let n = size_of::<f32>();
        scratch.write(
            places.margins + (part.start * n) as u64,
            bytes(&state.margins[part]),
        )?;
        let range = &pieces.gradients;
        let part = range.start * n_rows..range.end * n_rows;
        scratch.write(
            places.gradients + (part.start * n) as u64,
            bytes(&state.gradients[part]),
        )?;
        if pieces.order {
            scratch.write(places.order, bytes(&state.order[..n_rows]))?;
            scratch.write(places.ranges, bytes(&state.ranges))?;
        }
        let whole = places.margins..places.margins + self.place_bytes();
        scratch.advise(&whole, Advice::Write);
        Ok(whole)
    }

    /// Waits until what was written at `place` is on disk, and drops it from the page cache, where it would
    /// count against the budget.
    pub(super) fn settle(&self, place: Range<u64>) {
        if let Some(scratch) = &self.scratch {
            scratch.advise(&place, Advice::Drop);
        }
    }

    fn place_bytes(&self) -> u64 {
        BlockState::bytes(self.block_rows, self.n_outputs, self.n_nodes).next_multiple_of(PAGE_BYTES)
    }

    fn places(&self, block: usize, n_rows: usize) -> Places {
        let margins = (block - self.resident.len()) as u64 * self.place_bytes();
        let gradients = margins + (n_rows * self.n_outputs * size_of::<f32>()) as u64;
        let order = gradients + (n_rows * self.n_outputs * size_of::<u32>()) as u64;
        let ranges = order + (n_rows * size_of::<u16>()) as u64;
        Places {
            margins,
            gradients,
            order,
            ranges,
        }
    }
}

struct Places {
    margins: u64,
    gradients: u64,
    order: u64,
    ranges: u64,
}

/// Pages are dropped whole; no machine of ours has larger ones.
const PAGE_BYTES: u64 = 64 << 10;

/// A file without a name: it is gone when the training is, however that ends.
#[derive(Debug)]
struct Scratch {
    file: File,
    path: PathBuf,
}

enum Advice {
    Write,
    Drop,
}

impl Scratch {
    fn new(folder: &Path) -> Result<Scratch> {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = folder.join(format!(".boost-{}-{count}", std::process::id()));
        let open = OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(&path);
        let file = open.and_then(|file| std::fs::remove_file(&path).map(|()| file));
        match file {
            Ok(file) => {
                // Nothing is read that was not asked for: it would stay in the page cache and count.
                // SAFETY: advice on an open descriptor touches no memory of ours.
                unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
                Ok(Scratch { file, path })
            }
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let failed = |source| self.read_failed(source);
        self.file.read_exact_at(bytes, offset).map_err(failed)?;
        self.advise(&(offset..offset + bytes.len() as u64), Advice::Drop);
        Ok(())
    }

    fn read_failed(&self, source: io::Error) -> Error {
        let path = self.path.clone();
        Error::Read { path, source }
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|source| {
            let path = self.path.clone();
            Error::Write { path, source }
        })
    }

    /// Best effort: a file system that knows no advice keeps its pages, and the kernel takes them when needed.
    fn advise(&self, place: &Range<u64>, advice: Advice) {
        // Whole pages: a part of one would stay.
        let (start, end) = (
            place.start / PAGE_BYTES * PAGE_BYTES,
            place.end.next_multiple_of(PAGE_BYTES),
        );
        let (fd, offset, len) = (self.file.as_raw_fd(), start as i64, (end - start) as i64);
        const WAIT: u32 = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        // SAFETY: system calls on a descriptor that is open; they touch no memory of ours.
        unsafe {
            match advice {
                Advice::Write => libc::sync_file_range(fd, offset, len, libc::SYNC_FILE_RANGE_WRITE),
                Advice::Drop => {
                    libc::sync_file_range(fd, offset, len, WAIT);
                    libc::posix_fadvise(fd, offset, len, libc::POSIX_FADV_DONTNEED)
                }
            };
        }
    }
}

/// Numbers that any bytes make up and that have no padding.
trait Plain: Copy {}
impl Plain for f32 {}
impl Plain for u32 {}
impl Plain for u16 {}
impl Plain for [u32; 2] {}

fn bytes<T: Plain>(values: &[T]) -> &[u8] {
    // SAFETY: plain values have no padding, and the slice covers exactly their bytes.
    unsafe { std::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

fn bytes_mut<T: Plain>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and any bytes make up plain values.
    unsafe { std::slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
