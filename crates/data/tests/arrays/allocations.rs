//! Nothing is allocated batch by batch: a feed takes what it needs at its start.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::ops::ControlFlow;

use tidegate_data::Error;
use tidegate_data::arrays::{FeedOptions, Keep, Order};
use tidegate_memory::Ledger;

use crate::help::{Folder, ROOMY, in_place};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// Counts what each thread asks for.
struct Counting;

// SAFETY: everything is handed on to the allocator of the system; the count is a plain number of the thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread that is ending has no count any more.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[test]
fn batches_are_handed_out_without_allocating() {
    let folder = Folder::images(30_000, &[33, 33]);
    let mut source = folder.open("x.npy").unwrap();
    let ledger = Ledger::new(ROOMY);
    let mut inputs = vec![0.0; 64 * source.sample_len()];
    let options = FeedOptions {
        batch: 64,
        order: Order::Shuffled { seed: 1, epoch: 0 },
        ..in_place()
    };
    for (prefetch, memory) in [(1 << 20, 0), (17 << 20, 0), (40 << 20, 0), (0, 64 << 20)] {
        let keep = Keep {
            memory,
            ..Keep::default()
        };
        source.keep(&keep, &ledger).unwrap();
        let (mut n_batches, mut first) = (0, 0);
        let options = FeedOptions { prefetch, ..options };
        let taken = source.feed(&options, &ledger, |batch| {
            batch.write_inputs(&mut inputs);
            let now = ALLOCATIONS.get();
            n_batches += 1;
            if n_batches == 1 {
                first = now;
            }
            assert_eq!(now, first, "batch {n_batches}, {prefetch} bytes ahead");
            Ok::<_, Error>(ControlFlow::Continue(()))
        });
        assert_eq!(taken.unwrap(), 30_000);
        assert_eq!(n_batches, 30_000usize.div_ceil(64));
    }
}
