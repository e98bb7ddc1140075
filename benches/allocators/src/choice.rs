//! The allocator chosen by the environment, so that one program compares them all.

use std::alloc::{GlobalAlloc, Layout, System};
use std::ffi::CStr;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use mimalloc::MiMalloc;
use tikv_jemallocator::Jemalloc;

/// 0 before the first allocation, then the choice.
static CHOICE: AtomicU8 = AtomicU8::new(0);

/// Forwards to the system's allocator, mimalloc or jemalloc, as `ALLOCATOR` says.
pub struct Chosen;

fn choice() -> u8 {
    match CHOICE.load(Relaxed) {
        0 => choose(),
        chosen => chosen,
    }
}

#[cold]
fn choose() -> u8 {
    // SAFETY: the name ends in NUL. `std::env` would allocate, and nothing changes the environment.
    let value = unsafe { libc::getenv(c"ALLOCATOR".as_ptr()) };
    let chosen = if value.is_null() {
        1
    } else {
        // SAFETY: getenv returns text that ends in NUL.
        match unsafe { CStr::from_ptr(value) }.to_bytes() {
            b"mimalloc" => 2,
            b"jemalloc" => 3,
            _ => 1,
        }
    };
    CHOICE.store(chosen, Relaxed);
    chosen
}

macro_rules! forward {
    ($method:ident ( $($argument:expr),* )) => {
        // SAFETY: the caller's promises are passed on, always to the same allocator.
        unsafe {
            match choice() {
                2 => MiMalloc.$method($($argument),*),
                3 => Jemalloc.$method($($argument),*),
                _ => System.$method($($argument),*),
            }
        }
    };
}

// SAFETY: the choice is made once, before the first allocation, so every block returns to where it came from.
unsafe impl GlobalAlloc for Chosen {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        forward!(alloc(layout))
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        forward!(alloc_zeroed(layout))
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        forward!(dealloc(pointer, layout))
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        forward!(realloc(pointer, layout, new_size))
    }
}

/// glibc's settings, as a program would make them itself.
pub fn apply_settings() {
    for (name, option) in [
        ("ARENAS", libc::M_ARENA_MAX),
        ("MMAP", libc::M_MMAP_THRESHOLD),
        ("TRIM", libc::M_TRIM_THRESHOLD),
    ] {
        if let Some(value) = std::env::var(name).ok().and_then(|value| value.parse().ok()) {
            // SAFETY: mallopt takes two integers and says whether it understood them.
            assert_eq!(unsafe { libc::mallopt(option, value) }, 1, "{name}");
        }
    }
}
