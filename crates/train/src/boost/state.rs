//! What is kept of every row between passes, block by block: in memory while it fits, in a scratch file else.

use std::ops::Range;
use std::path::Path;
use std::sync::Mutex;

use super::scratch::{Scratch, bytes_mut, whole_pages};
use crate::Result;

/// The state of the rows of a block, as far as a pass asked for it.
pub(super) struct BlockState<'s> {
    pub(super) n_rows: usize,
    /// Class by class.
    pub(super) margins: &'s mut [f32],
    /// Of several classes, the logarithms of the sums that make their probabilities add up to one.
    pub(super) norms: &'s mut [f32],
    /// Packed slopes and curvatures of the class whose tree grows.
    pub(super) gradients: &'s mut [u32],
    /// The rows that the tree learns from, grouped by node.
    pub(super) order: &'s mut [u16],
    /// Where in the order a node begins and ends.
    pub(super) ranges: &'s mut [[u32; 2]],
}

impl BlockState<'_> {
    /// The margins of one class.
    pub(super) fn margins_of(&mut self, class: usize) -> &mut [f32] {
        &mut self.margins[class * self.n_rows..(class + 1) * self.n_rows]
    }
}

/// What every pass uses while a tree grows.
#[derive(Debug, Default)]
pub(super) struct Hot {
    gradients: Vec<u32>,
    order: Vec<u16>,
    ranges: Vec<[u32; 2]>,
}

impl Hot {
    fn new(n_rows: usize, n_nodes: usize) -> Hot {
        Hot {
            gradients: vec![0; n_rows],
            order: vec![0; n_rows],
            ranges: vec![[0; 2]; n_nodes],
        }
    }

    pub(super) fn bytes(n_rows: usize, n_nodes: usize) -> u64 {
        (n_rows * (size_of::<u32>() + size_of::<u16>()) + n_nodes * size_of::<[u32; 2]>()) as u64
    }
}

/// What is used where a tree ends.
#[derive(Debug, Default)]
pub(super) struct Cold {
    margins: Vec<f32>,
    norms: Vec<f32>,
}

impl Cold {
    fn new(n_rows: usize, n_outputs: usize) -> Cold {
        Cold {
            margins: vec![0.0; n_rows * n_outputs],
            norms: vec![0.0; n_rows * n_norms(n_outputs)],
        }
    }

    pub(super) fn bytes(n_rows: usize, n_outputs: usize) -> u64 {
        (n_rows * (n_outputs + n_norms(n_outputs)) * size_of::<f32>()) as u64
    }
}

/// A single output needs none.
fn n_norms(n_outputs: usize) -> usize {
    usize::from(n_outputs > 1)
}

/// The margins of so many classes are read or written at once: that of a tree, and that of the next.
const CLASSES: usize = 2;

/// The largest part of a state that is read or written at once.
pub(super) fn piece_bytes(n_rows: usize, n_outputs: usize, n_nodes: usize) -> u64 {
    let margins = n_rows * n_outputs.min(CLASSES) * size_of::<f32>();
    margins.max(n_nodes * size_of::<[u32; 2]>()) as u64
}

/// The parts of a state that a pass reads or writes.
#[derive(Debug, Clone, Default)]
pub(super) struct Pieces {
    /// Of these classes.
    pub(super) margins: Range<usize>,
    pub(super) norms: bool,
    pub(super) gradients: bool,
    pub(super) order: bool,
}

impl Pieces {
    fn has_hot(&self) -> bool {
        self.gradients || self.order
    }

    fn has_cold(&self) -> bool {
        self.norms || !self.margins.is_empty()
    }

    /// Only what every pass uses, or only what is used where a tree ends.
    fn hot(&self) -> Pieces {
        Pieces {
            gradients: self.gradients,
            order: self.order,
            ..Pieces::default()
        }
    }

    fn cold(&self) -> Pieces {
        Pieces {
            margins: self.margins.clone(),
            norms: self.norms,
            ..Pieces::default()
        }
    }
}

/// The states of all blocks: those of the first ones in memory, the others in a file.
#[derive(Debug)]
pub(super) struct States {
    hot: Vec<Mutex<Hot>>,
    cold: Vec<Mutex<Cold>>,
    scratch: Option<Scratch>,
    n_rows: Vec<usize>,
    n_outputs: usize,
    n_nodes: usize,
    /// Of the largest block, which is what every place in the file has room for.
    block_rows: usize,
}

/// Where the state of a block is that does not stay in memory; empty if all of them do.
#[derive(Debug, Default)]
pub(super) struct StateBuffer {
    hot: Hot,
    cold: Cold,
}

impl States {
    /// `n_rows` has the rows of each block. Of the first `n_hot` and `n_cold` that part stays in memory.
    pub(super) fn new(
        n_rows: &[usize],
        (n_hot, n_cold): (usize, usize),
        n_outputs: usize,
        n_nodes: usize,
        folder: &Path,
    ) -> Result<States> {
        let streams = n_rows.len() > n_hot.min(n_cold);
        let first = |n: usize| n_rows.iter().copied().take(n);
        Ok(States {
            hot: first(n_hot).map(|n| Mutex::new(Hot::new(n, n_nodes))).collect(),
            cold: first(n_cold)
                .map(|n| Mutex::new(Cold::new(n, n_outputs)))
                .collect(),
            scratch: streams.then(|| Scratch::new(folder)).transpose()?,
            n_rows: n_rows.to_vec(),
            n_outputs,
            n_nodes,
            block_rows: n_rows.iter().copied().max().unwrap_or(0),
        })
    }

    /// Whether all that is asked for of a block is in memory.
    pub(super) fn in_memory(&self, block: usize, pieces: &Pieces) -> bool {
        (block < self.hot.len() || !pieces.has_hot()) && (block < self.cold.len() || !pieces.has_cold())
    }

    /// Room for what does not stay in memory of any block.
    pub(super) fn buffer(&self) -> StateBuffer {
        let (n_blocks, n_rows) = (self.n_rows.len(), self.block_rows);
        let mut buffer = StateBuffer::default();
        if self.hot.len() < n_blocks {
            buffer.hot = Hot::new(n_rows, self.n_nodes);
        }
        if self.cold.len() < n_blocks {
            buffer.cold = Cold::new(n_rows, self.n_outputs);
        }
        buffer
    }

    /// Lets go of all state but that of the first blocks: the others are written to the file, the last first.
    pub(super) fn keep(&mut self, n_hot: usize, n_cold: usize, folder: &Path) -> Result<()> {
        if self.hot.len() <= n_hot && self.cold.len() <= n_cold {
            return Ok(());
        }
        if self.scratch.is_none() {
            self.scratch = Some(Scratch::new(folder)?);
        }
        let all = Pieces {
            margins: 0..self.n_outputs,
            norms: true,
            gradients: true,
            order: true,
        };
        let of_nobody = "nobody has it between two passes";
        let mut buffer = StateBuffer::default();
        while self.cold.len() > n_cold
            && let Some(cold) = self.cold.pop()
        {
            buffer.cold = cold.into_inner().expect(of_nobody);
            self.write(self.cold.len(), &mut buffer, &all.cold())?;
        }
        while self.hot.len() > n_hot
            && let Some(hot) = self.hot.pop()
        {
            buffer.hot = hot.into_inner().expect(of_nobody);
            self.write(self.hot.len(), &mut buffer, &all.hot())?;
        }
        Ok(())
    }

    /// Lends the state of a block: from memory, and from the buffer where it has been read.
    pub(super) fn lend<R>(
        &self,
        block: usize,
        buffer: Option<&mut StateBuffer>,
        with: impl FnOnce(&mut BlockState<'_>) -> R,
    ) -> R {
        const HELD: &str = "no thread panics with it";
        let n_rows = self.n_rows[block];
        let (hot, cold) = (self.hot.get(block), self.cold.get(block));
        let (mut hot, mut cold) = (
            hot.map(|hot| hot.lock().expect(HELD)),
            cold.map(|cold| cold.lock().expect(HELD)),
        );
        // What a pass neither reads nor writes is nowhere.
        let mut none = StateBuffer::default();
        let buffer = buffer.unwrap_or(&mut none);
        let hot = hot.as_deref_mut().unwrap_or(&mut buffer.hot);
        let cold = cold.as_deref_mut().unwrap_or(&mut buffer.cold);
        with(&mut BlockState {
            n_rows,
            margins: beginning(&mut cold.margins, n_rows * self.n_outputs),
            norms: beginning(&mut cold.norms, n_rows * n_norms(self.n_outputs)),
            gradients: beginning(&mut hot.gradients, n_rows),
            order: beginning(&mut hot.order, n_rows),
            ranges: &mut hot.ranges,
        })
    }

    /// Reads from the file what is not in memory of these pieces.
    pub(super) fn read(&self, block: usize, buffer: &mut StateBuffer, pieces: &Pieces) -> Result<()> {
        self.each(block, buffer, pieces, |scratch, place, bytes| {
            scratch.read(place, bytes)
        })
    }

    /// Writes to the file what is not in memory of these pieces.
    pub(super) fn write(&self, block: usize, buffer: &mut StateBuffer, pieces: &Pieces) -> Result<()> {
        self.each(block, buffer, pieces, |scratch, place, bytes| {
            scratch.write(place, bytes)
        })
    }

    /// Every piece that is in the file, with its place there.
    fn each(
        &self,
        block: usize,
        buffer: &mut StateBuffer,
        pieces: &Pieces,
        mut piece: impl FnMut(&Scratch, u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let Some(scratch) = &self.scratch else {
            return Ok(());
        };
        let mut piece = |place: u64, bytes: &mut [u8]| piece(scratch, place, bytes);
        if block >= self.cold.len() {
            self.each_cold(block, &mut buffer.cold, pieces, &mut piece)?;
        }
        if block >= self.hot.len() {
            self.each_hot(block, &mut buffer.hot, pieces, &mut piece)?;
        }
        Ok(())
    }

    fn each_cold(
        &self,
        block: usize,
        cold: &mut Cold,
        pieces: &Pieces,
        piece: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (n_rows, n) = (self.n_rows[block], self.n_outputs);
        // Those of a block that fills its pages stand one behind the other.
        let at_once = if self.values_bytes() == (n_rows * size_of::<f32>()) as u64 {
            CLASSES
        } else {
            1
        };
        for class in pieces.margins.clone().step_by(at_once) {
            let end = (class + at_once).min(pieces.margins.end);
            let margins = &mut cold.margins[class * n_rows..end * n_rows];
            piece(self.place(block, class), bytes_mut(margins))?;
        }
        if pieces.norms && n_norms(n) > 0 {
            piece(self.place(block, n), bytes_mut(&mut cold.norms[..n_rows]))?;
        }
        Ok(())
    }

    fn each_hot(
        &self,
        block: usize,
        hot: &mut Hot,
        pieces: &Pieces,
        piece: &mut dyn FnMut(u64, &mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let (n_rows, n) = (self.n_rows[block], self.n_outputs);
        if pieces.gradients {
            piece(self.place(block, n + 1), bytes_mut(&mut hot.gradients[..n_rows]))?;
        }
        if pieces.order {
            let place = self.place(block, n + 2);
            piece(place, bytes_mut(&mut hot.order[..n_rows]))?;
            piece(place + self.order_bytes(), bytes_mut(&mut hot.ranges))?;
        }
        Ok(())
    }

    /// Where the values of a block begin in the file: those of each class, then norms, slopes, order and ranges, each of
    /// which begins a page. What is in memory leaves a hole.
    fn place(&self, block: usize, values: usize) -> u64 {
        let ranges = whole_pages(self.n_nodes * size_of::<[u32; 2]>());
        let of_block = (self.n_outputs as u64 + 2) * self.values_bytes() + self.order_bytes() + ranges;
        block as u64 * of_block + values as u64 * self.values_bytes()
    }

    fn values_bytes(&self) -> u64 {
        whole_pages(self.block_rows * size_of::<f32>())
    }

    fn order_bytes(&self) -> u64 {
        whole_pages(self.block_rows * size_of::<u16>())
    }
}

/// Buffers have room for the largest block, or for none.
fn beginning<T>(values: &mut [T], n: usize) -> &mut [T] {
    let n = n.min(values.len());
    &mut values[..n]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every piece of every block comes back as it was written, whatever else is written around it.
    fn check_pieces(scratch: Scratch, rows: [usize; 3], (n_hot, n_cold): (usize, usize)) {
        let (n_outputs, n_nodes) = (3, 700);
        let folder = tempfile::tempdir().unwrap();
        let mut states = States::new(&rows, (n_hot, n_cold), n_outputs, n_nodes, folder.path()).unwrap();
        states.scratch = Some(scratch);
        let number = |block: usize, i: usize| (block * 100_003 + i) as u32;
        let make = |block: usize, state: &mut BlockState<'_>| {
            (0..state.margins.len()).for_each(|i| state.margins[i] = number(block, i) as f32);
            (0..state.norms.len()).for_each(|i| state.norms[i] = -(number(block, i) as f32));
            (0..state.gradients.len()).for_each(|i| state.gradients[i] = number(block, i) ^ 0xabcd);
            (0..state.order.len()).for_each(|i| state.order[i] = number(block, i) as u16);
            (0..state.ranges.len()).for_each(|i| state.ranges[i] = [number(block, i), 1]);
        };
        let all = Pieces {
            margins: 0..n_outputs,
            norms: true,
            gradients: true,
            order: true,
        };
        let one = Pieces {
            margins: 1..2,
            ..Pieces::default()
        };
        let mut buffer = states.buffer();
        for block in (0..rows.len()).rev() {
            states.lend(block, Some(&mut buffer), |state| make(block, state));
            states.write(block, &mut buffer, &all).unwrap();
        }
        // One class of one block anew: its neighbours stay.
        states.read(1, &mut buffer, &all).unwrap();
        states.lend(1, Some(&mut buffer), |state| state.margins_of(1).fill(-1.0));
        states.write(1, &mut buffer, &one).unwrap();
        // Half of what is in memory is let go.
        states.keep(n_hot / 2, n_cold / 2, folder.path()).unwrap();
        assert_eq!((states.hot.len(), states.cold.len()), (n_hot / 2, n_cold / 2));
        for (block, n_rows) in rows.into_iter().enumerate() {
            let mut wanted = (Hot::new(n_rows, n_nodes), Cold::new(n_rows, n_outputs));
            let (hot, cold) = &mut wanted;
            let mut wanted = BlockState {
                n_rows,
                margins: &mut cold.margins,
                norms: &mut cold.norms,
                gradients: &mut hot.gradients,
                order: &mut hot.order,
                ranges: &mut hot.ranges,
            };
            make(block, &mut wanted);
            if block == 1 {
                wanted.margins_of(1).fill(-1.0);
            }
            let mut buffer = states.buffer();
            states.read(block, &mut buffer, &all).unwrap();
            states.lend(block, Some(&mut buffer), |found| {
                assert!(found.margins == wanted.margins, "block {block}");
                assert!(found.norms == wanted.norms, "block {block}");
                assert!(found.gradients == wanted.gradients, "block {block}");
                assert!(found.order == wanted.order && found.ranges == wanted.ranges);
            });
        }
    }

    #[test]
    fn pieces_come_back_past_the_page_cache_and_through_it() {
        let folder = tempfile::tempdir().unwrap();
        // With blocks that fill their pages and with others.
        for rows in [[1_500, 1_500, 77], [2_048, 2_048, 77]] {
            for kept in [(0, 0), (1, 0), (2, 1), (3, 0)] {
                check_pieces(Scratch::new(folder.path()).unwrap(), rows, kept);
                check_pieces(Scratch::cached(folder.path()), rows, kept);
            }
        }
        let left = std::fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, 0, "nothing is left");
    }
}
