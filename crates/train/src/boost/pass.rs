//! One pass over all blocks: threads take them one by one, each with its state.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use super::histogram::Packed;
use super::objective::Losses;
use super::rows::{Block, BlockBuffer, Blocks, Part};
use super::state::{BlockState, Pieces, States};
use crate::{Error, Result};

/// What a thread works with, made once.
#[derive(Debug)]
pub(super) struct Worker {
    pub(super) tools: Tools,
    buffer: BlockBuffer,
    state: Option<BlockState>,
    /// What was written last and may still be in the page cache.
    unsettled: Option<Range<u64>>,
}

/// The part of a worker that is lent to the work on a block.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) packed: Packed,
    /// Room for the order of a block.
    pub(super) spare: Vec<u16>,
}

impl Worker {
    pub(super) fn new(packed: Packed, block_rows: usize, buffer: BlockBuffer, states: &States) -> Worker {
        Worker {
            tools: Tools {
                packed,
                spare: vec![0; block_rows],
            },
            buffer,
            state: states.buffer(),
            unsettled: None,
        }
    }
}

/// Why a pass did not reach its end.
#[derive(Debug)]
pub(super) enum Halt {
    Stopped,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

/// What a pass goes over.
pub(super) struct Site<'a> {
    pub(super) blocks: &'a dyn Blocks,
    pub(super) states: &'a States,
    /// The number of the first row of each block.
    pub(super) first_rows: &'a [u64],
    pub(super) stop: &'a AtomicBool,
}

/// A block with its place in the whole.
pub(super) struct Visited<'b> {
    pub(super) rows: Block<'b>,
    pub(super) first_row: u32,
    pub(super) number: usize,
}

/// What a pass reads of every block.
pub(super) struct Reads {
    rows: Part,
    state: Pieces,
}

impl Reads {
    /// The bins of the rows, and pieces of their state.
    pub(super) fn bins(state: Pieces) -> Reads {
        Reads {
            rows: Part::Bins,
            state,
        }
    }

    /// All of the rows, and pieces of their state.
    pub(super) fn whole(state: Pieces) -> Reads {
        Reads {
            rows: Part::Whole,
            state,
        }
    }
}

/// Visits every block, in no certain order, and then lets every worker `finish`. The losses come back in the
/// order of the blocks.
pub(super) fn pass(
    site: &Site<'_>,
    workers: &mut [Worker],
    (reads, writes): (Reads, Pieces),
    visit: &(dyn Fn(&mut Tools, &Visited<'_>, &mut BlockState) -> Losses + Sync),
    finish: &(dyn Fn(&mut Tools) + Sync),
) -> Result<Vec<Losses>, Halt> {
    let n_blocks = site.blocks.n_blocks();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(None));
    let losses = Mutex::new(vec![Losses::default(); n_blocks]);
    let n_threads = workers.len();
    let work = |worker: &mut Worker| {
        loop {
            let block = next.fetch_add(1, Ordering::Relaxed);
            if block >= n_blocks || site.stop.load(Ordering::Relaxed) {
                break;
            }
            // What this thread comes to next is read while it works on this one, unless another has come to it.
            let ahead = block + n_threads;
            let ahead = (ahead < n_blocks).then_some((ahead, &next));
            match one(site, worker, (block, ahead), &reads, &writes, visit) {
                Ok(found) => losses.lock().expect("no thread panics with it")[block] = found,
                Err(error) => {
                    next.store(n_blocks, Ordering::Relaxed);
                    failed
                        .lock()
                        .expect("no thread panics with it")
                        .get_or_insert(error);
                    break;
                }
            }
        }
        if let Some(place) = worker.unsettled.take() {
            site.states.settle(place);
        }
        finish(&mut worker.tools);
    };
    let (first, others) = workers.split_first_mut().expect("there is a worker");
    std::thread::scope(|scope| {
        for worker in others {
            scope.spawn(|| work(worker));
        }
        work(first);
    });
    if let Some(error) = failed.into_inner().expect("no thread panics with it") {
        return Err(Halt::Failed(error));
    }
    if site.stop.load(Ordering::Relaxed) {
        return Err(Halt::Stopped);
    }
    Ok(losses.into_inner().expect("no thread panics with it"))
}

fn one(
    site: &Site<'_>,
    worker: &mut Worker,
    (block, ahead): (usize, Option<(usize, &AtomicUsize)>),
    reads: &Reads,
    writes: &Pieces,
    visit: &(dyn Fn(&mut Tools, &Visited<'_>, &mut BlockState) -> Losses + Sync),
) -> Result<Losses> {
    let visited = Visited {
        rows: site.blocks.block(block, reads.rows, &mut worker.buffer)?,
        first_row: site.first_rows[block] as u32,
        number: block,
    };
    if let Some((ahead, next)) = ahead
        && next.load(Ordering::Relaxed) <= ahead
    {
        site.blocks.will_read(ahead, reads.rows);
    }
    if let Some(state) = site.states.resident.get(block) {
        let mut state = state.lock().expect("no thread panics with it");
        return Ok(visit(&mut worker.tools, &visited, &mut state));
    }
    let state = worker
        .state
        .as_mut()
        .expect("states that are streamed have a buffer");
    site.states
        .load(block, site.blocks.n_rows(block), state, &reads.state)?;
    let losses = visit(&mut worker.tools, &visited, state);
    // One at a time is in the page cache.
    if let Some(place) = worker.unsettled.take() {
        site.states.settle(place);
    }
    worker.unsettled = Some(site.states.store(block, state, writes)?);
    Ok(losses)
}
