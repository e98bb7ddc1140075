//! What is kept of every row between passes, block by block: in memory while it fits, in a scratch file else.

use std::fs::{File, OpenOptions};
use std::io::{self, IoSliceMut};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_data::direct::{DirectFile, PAGE_BYTES, is_unsupported};

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

    /// The largest part of it that is read or written at once.
    pub(super) fn piece_bytes(n_rows: usize, n_nodes: usize) -> u64 {
        (n_rows * size_of::<f32>()).max(n_nodes * size_of::<[u32; 2]>()) as u64
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
        let scratch = self.scratch();
        for class in pieces.margins.clone() {
            let values = &mut state.margins[class * n_rows..(class + 1) * n_rows];
            scratch.read(self.place(block, Piece::Margins(class)), bytes_mut(values))?;
        }
        for class in pieces.gradients.clone() {
            let values = &mut state.gradients[class * n_rows..(class + 1) * n_rows];
            scratch.read(self.place(block, Piece::Gradients(class)), bytes_mut(values))?;
        }
        if pieces.order {
            let order = bytes_mut(&mut state.order[..n_rows]);
            scratch.read(self.place(block, Piece::Order), order)?;
            scratch.read(self.place(block, Piece::Ranges), bytes_mut(&mut state.ranges))?;
        }
        Ok(())
    }

    /// Writes pieces of a block's state to the file and returns where, for [`settle`](Self::settle).
    pub(super) fn store(&self, block: usize, state: &BlockState, pieces: &Pieces) -> Result<Range<u64>> {
        let (scratch, n_rows) = (self.scratch(), state.n_rows);
        for class in pieces.margins.clone() {
            let values = &state.margins[class * n_rows..(class + 1) * n_rows];
            scratch.write(self.place(block, Piece::Margins(class)), bytes(values))?;
        }
        for class in pieces.gradients.clone() {
            let values = &state.gradients[class * n_rows..(class + 1) * n_rows];
            scratch.write(self.place(block, Piece::Gradients(class)), bytes(values))?;
        }
        if pieces.order {
            scratch.write(self.place(block, Piece::Order), bytes(&state.order[..n_rows]))?;
            scratch.write(self.place(block, Piece::Ranges), bytes(&state.ranges))?;
        }
        let start = self.place(block, Piece::Margins(0));
        let whole = start..start + self.block_bytes();
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

    fn scratch(&self) -> &Scratch {
        self.scratch
            .as_ref()
            .expect("a block outside of memory is in the file")
    }

    /// Where a piece of a block stands: every one begins a page.
    fn place(&self, block: usize, piece: Piece) -> u64 {
        let (values, order) = self.piece_bytes();
        let n = self.n_outputs as u64;
        let within = match piece {
            Piece::Margins(class) => class as u64 * values,
            Piece::Gradients(class) => (n + class as u64) * values,
            Piece::Order => 2 * n * values,
            Piece::Ranges => 2 * n * values + order,
        };
        (block - self.resident.len()) as u64 * self.block_bytes() + within
    }

    /// What the values of a class and the order of the largest block take, in whole pages.
    fn piece_bytes(&self) -> (u64, u64) {
        let pages = |bytes: usize| bytes.next_multiple_of(PAGE_BYTES) as u64;
        (
            pages(self.block_rows * size_of::<f32>()),
            pages(self.block_rows * size_of::<u16>()),
        )
    }

    fn block_bytes(&self) -> u64 {
        let (values, order) = self.piece_bytes();
        let ranges = (self.n_nodes * size_of::<[u32; 2]>()).next_multiple_of(PAGE_BYTES) as u64;
        2 * self.n_outputs as u64 * values + order + ranges
    }
}

/// A part of a block's state, with a place of its own in the file.
enum Piece {
    Margins(usize),
    Gradients(usize),
    Order,
    Ranges,
}

/// Pages that went through the cache are dropped whole; no machine of ours has larger ones.
const CACHED_BYTES: u64 = 64 << 10;

/// A file without a name: it is gone when the training is, however that ends. Past the page cache where the file system
/// can.
#[derive(Debug)]
struct Scratch {
    through: Through,
    path: PathBuf,
}

#[derive(Debug)]
enum Through {
    Direct(DirectFile),
    Cache(File),
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
        match Through::create(&path) {
            Ok(through) => Ok(Scratch { through, path }),
            Err(source) => Err(Error::Write { path, source }),
        }
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) -> Result<()> {
        let read = match &self.through {
            Through::Direct(file) => file.read(offset, &mut [IoSliceMut::new(bytes)]),
            Through::Cache(file) => file.read_exact_at(bytes, offset),
        };
        self.advise(&(offset..offset + bytes.len() as u64), Advice::Drop);
        read.map_err(|source| {
            let path = self.path.clone();
            Error::Read { path, source }
        })
    }

    fn write(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let written = match &self.through {
            Through::Direct(file) => file.write(offset, bytes),
            Through::Cache(file) => file.write_all_at(bytes, offset),
        };
        written.map_err(|source| {
            let path = self.path.clone();
            Error::Write { path, source }
        })
    }

    /// Best effort: a file system that knows no advice keeps its pages, and the kernel takes them when needed.
    fn advise(&self, place: &Range<u64>, advice: Advice) {
        let Through::Cache(file) = &self.through else {
            return;
        };
        // Whole pages: a part of one would stay.
        let (start, end) = (
            place.start / CACHED_BYTES * CACHED_BYTES,
            place.end.next_multiple_of(CACHED_BYTES),
        );
        let (fd, offset, len) = (file.as_raw_fd(), start as i64, (end - start) as i64);
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

impl Through {
    fn create(path: &Path) -> io::Result<Through> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true);
        let direct = DirectFile::open(path, &mut options.clone())?;
        // One that was refused may have been made all the same.
        let removed = std::fs::remove_file(path);
        if let Some(file) = direct {
            removed?;
            // Some file systems say only now that they cannot.
            match file.write(0, &[0; PAGE_BYTES]) {
                Err(error) if is_unsupported(&error) => {}
                done => return done.map(|()| Through::Direct(file)),
            }
        }
        let file = options.open(path)?;
        std::fs::remove_file(path)?;
        // Nothing is read that was not asked for: it would stay in the page cache and count.
        // SAFETY: advice on an open descriptor touches no memory of ours.
        unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
        Ok(Through::Cache(file))
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Every piece of every block comes back as it was written, whatever else is written around it.
    fn check_pieces(scratch: Scratch) {
        let (n_rows, n_outputs, n_nodes) = (1_500, 3, 700);
        let states = States {
            resident: Vec::new(),
            scratch: Some(scratch),
            n_outputs,
            n_nodes,
            block_rows: n_rows,
        };
        let made = |block: usize, n_rows: usize| {
            let mut state = BlockState::new(n_rows, n_outputs, n_nodes);
            let number = |i: usize| (block * 100_003 + i) as u32;
            (0..state.margins.len()).for_each(|i| state.margins[i] = number(i) as f32);
            (0..state.gradients.len()).for_each(|i| state.gradients[i] = number(i) ^ 0xabcd);
            (0..n_rows).for_each(|i| state.order[i] = number(i) as u16);
            (0..n_nodes).for_each(|i| state.ranges[i] = [number(i), 1]);
            state
        };
        let all = Pieces {
            margins: 0..n_outputs,
            gradients: 0..n_outputs,
            order: true,
        };
        let rows = [n_rows, n_rows, 77];
        for (block, n) in rows.into_iter().enumerate().rev() {
            let place = states.store(block, &made(block, n), &all).unwrap();
            states.settle(place);
        }
        // One class of one block anew: its neighbours stay.
        let mut other = made(1, n_rows);
        other.margins[n_rows..2 * n_rows].fill(-1.0);
        let one = Pieces {
            margins: 1..2,
            ..Pieces::default()
        };
        states.store(1, &other, &one).unwrap();
        for (block, n) in rows.into_iter().enumerate() {
            let wanted = if block == 1 { &other } else { &made(block, n) };
            let mut found = states.buffer().unwrap();
            states.load(block, n, &mut found, &all).unwrap();
            let values = n * n_outputs;
            assert!(found.margins[..values] == wanted.margins[..], "block {block}");
            assert!(found.gradients[..values] == wanted.gradients[..], "block {block}");
            assert!(found.order[..n] == wanted.order[..] && found.ranges == wanted.ranges);
        }
    }

    #[test]
    fn pieces_come_back_past_the_page_cache_and_through_it() {
        let folder = tempfile::tempdir().unwrap();
        check_pieces(Scratch::new(folder.path()).unwrap());
        check_pieces(Scratch {
            through: Through::Cache(tempfile::tempfile().unwrap()),
            path: folder.path().into(),
        });
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            0,
            "nothing is left"
        );
    }
}
