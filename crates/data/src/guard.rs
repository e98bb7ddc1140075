//! Panics of libraries that read outside bytes become errors.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static GUARDED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic on this thread would be caught and become an error, so that no hook needs to act on it.
pub fn is_guarded() -> bool {
    GUARDED.get()
}

/// What `read` makes; `None` if it panics.
pub(crate) fn guarded<T>(read: impl FnOnce() -> T) -> Option<T> {
    let before = GUARDED.replace(true);
    let read = catch_unwind(AssertUnwindSafe(read));
    GUARDED.set(before);
    read.ok()
}
