//! Counts what a thread allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    static LIVE: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

struct Counting;

fn count(bytes: i64) {
    // A thread that is ending has no count any more.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes);
        PEAK.with(|peak| peak.set(peak.get().max(live.get())));
    });
}

// SAFETY: everything is handed on to the allocator of the system; the counts are plain numbers of the thread.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// The most bytes that were live at once, beyond those before.
pub(super) fn peak<T>(work: impl FnOnce() -> T) -> (T, u64) {
    let before = LIVE.get();
    PEAK.set(before);
    let done = work();
    (done, (PEAK.get() - before) as u64)
}
