//! An allocator that counts: live bytes and their peak, over whatever allocator really serves.
//!
//! # Why the system's allocator
//!
//! The one whose resident peak stays closest to the live bytes, in workloads like ours. Resident peak over live
//! peak, and resident MB when all is freed (`cd benches/allocators && cargo run --release`, two cores, means of
//! five runs):
//!
//! | | blocks handed across threads | growing categories | a burst of 400 MB |
//! | --- | --- | --- | --- |
//! | glibc | 1.39, 26 MB | 1.32, 103 MB | 1.01, 37 MB |
//! | **glibc, 2 arenas, mmap from 1 MiB** | **1.09, 5 MB** | **1.25, 66 MB** | **1.01, 35 MB** |
//! | mimalloc | 3.28, 142 MB | 1.50, 160 MB | 1.29, 515 MB |
//! | mimalloc, purge at once | 1.75, 23 MB | 1.32, 9 MB | 1.28, 23 MB |
//! | jemalloc | 1.81, 58 MB | 1.35, 94 MB | 1.04, 98 MB |
//! | jemalloc, 2 arenas, decay 0 | 1.09, 4 MB | 1.24, 18 MB | 1.04, 6 MB |
//!
//! So [`Counting::new`] counts over the system's, and [`give_freed_memory_back`] makes the settings. It maps from
//! 128 KiB: pages of columnar files are just below 1 MiB, and 29 MB of them made 47 MB resident before, 31 MB since.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Forwards to `A` and counts the bytes asked for. Meant as the program's global allocator:
///
/// ```
/// use tidegate_memory::Counting;
///
/// #[global_allocator]
/// static ALLOCATOR: Counting = Counting::new();
///
/// let before = ALLOCATOR.live();
/// let buffer = vec![0u8; 1 << 20];
/// assert!(ALLOCATOR.live() >= before + (1 << 20));
/// drop(buffer);
/// assert!(ALLOCATOR.peak() >= before + (1 << 20));
/// ```
///
/// Live bytes are what the program asked for and has not freed; what the allocator keeps beyond that, and
/// what was asked for but never touched, is the difference to the resident size.
#[derive(Debug)]
pub struct Counting<A = System> {
    inner: A,
    live: AtomicUsize,
    peak: AtomicUsize,
    allocations: AtomicUsize,
}

impl Counting<System> {
    pub const fn new() -> Self {
        Counting::over(System)
    }
}

impl Default for Counting<System> {
    fn default() -> Self {
        Counting::new()
    }
}

impl<A> Counting<A> {
    pub const fn over(inner: A) -> Self {
        let (live, peak, allocations) = (AtomicUsize::new(0), AtomicUsize::new(0), AtomicUsize::new(0));
        Counting {
            inner,
            live,
            peak,
            allocations,
        }
    }

    /// Bytes asked for and not freed.
    pub fn live(&self) -> usize {
        self.live.load(Relaxed)
    }

    /// The most bytes that were live at once.
    pub fn peak(&self) -> usize {
        self.peak.load(Relaxed)
    }

    /// How many times memory was asked for, moves to another size included.
    pub fn allocations(&self) -> usize {
        self.allocations.load(Relaxed)
    }

    fn add(&self, bytes: usize) {
        // Each addition returns a value that `live` really had, so the largest of them is the true peak.
        let live = self.live.fetch_add(bytes, Relaxed).wrapping_add(bytes);
        // Reading first spares the write in all but the few allocations that set a new peak.
        if live > self.peak.load(Relaxed) {
            self.peak.fetch_max(live, Relaxed);
        }
        self.allocations.fetch_add(1, Relaxed);
    }

    fn remove(&self, bytes: usize) {
        self.live.fetch_sub(bytes, Relaxed);
    }
}

// SAFETY: every call goes to `inner` unchanged, which upholds the contract; the counters are not part of it
// and never allocate.
unsafe impl<A: GlobalAlloc> GlobalAlloc for Counting<A> {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises about `layout` are passed on.
        let pointer = unsafe { self.inner.alloc(layout) };
        if !pointer.is_null() {
            self.add(layout.size());
        }
        pointer
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above. Forwarded by itself so that fresh pages are not zeroed twice.
        let pointer = unsafe { self.inner.alloc_zeroed(layout) };
        if !pointer.is_null() {
            self.add(layout.size());
        }
        pointer
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // Counted before it is freed: afterwards another thread could have the bytes and count them on top.
        self.remove(layout.size());
        // SAFETY: the caller's promises about `pointer` and `layout` are passed on.
        unsafe { self.inner.dealloc(pointer, layout) };
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: as above. Forwarded by itself because large blocks can move without being copied.
        let moved = unsafe { self.inner.realloc(pointer, layout, new_size) };
        if !moved.is_null() {
            self.remove(layout.size());
            self.add(new_size);
        }
        moved
    }
}

/// Makes glibc's allocator give freed memory back: two arenas, and pieces from 128 KiB mapped and unmapped by
/// themselves; and what is free now goes back at once. Call it first in `main`, and between two stages of work with
/// different buffers. False where the allocator is another one and has no such settings.
///
/// Fixing the threshold is what matters: left alone, glibc raises it to the largest piece ever freed, and from
/// then on large buffers fragment the heap. The price is fresh pages for each large buffer (about 0.25 s per GB
/// here), so buffers on a hot path should be made once and used again.
pub fn give_freed_memory_back() -> bool {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    {
        const MAPPED_FROM: libc::c_int = 128 << 10;
        const KEPT_FREE: libc::c_int = 1 << 20;
        let settings = [
            (libc::M_ARENA_MAX, 2),
            (libc::M_MMAP_THRESHOLD, MAPPED_FROM),
            (libc::M_TRIM_THRESHOLD, KEPT_FREE),
        ];
        // SAFETY: mallopt takes two integers, locks the allocator itself and returns 1 when it understood.
        let set = settings
            .into_iter()
            .all(|(option, value)| unsafe { libc::mallopt(option, value) } == 1);
        // SAFETY: malloc_trim locks the allocator itself and touches only what is free.
        unsafe { libc::malloc_trim(0) };
        set
    }
    #[cfg(not(all(target_os = "linux", target_env = "gnu")))]
    {
        false
    }
}
