//! Who the kernel should kill first when the machine runs out: the worker, not its supervisor.

use std::fs;
use std::sync::{Mutex, PoisonError};

const FILE: &str = "/proc/self/oom_score_adj";
/// Half of the scale in either direction: enough to be chosen first, without claiming to be the one
/// process that must go (1000) or must stay (-1000).
const SHIFT: i32 = 500;

/// Supervisors on several threads protect one process: (how many, the score before the first).
static PROTECTED: Mutex<(usize, Option<i32>)> = Mutex::new((0, None));

/// The text for a child's `oom_score_adj`, or `None` where there is no such file.
pub(crate) fn for_worker() -> Option<String> {
    let protected = PROTECTED.lock().unwrap_or_else(PoisonError::into_inner);
    let own = protected.1.or_else(read)?;
    Some((own + SHIFT).min(1000).to_string())
}

/// While this lives the process is a less likely victim. Only root may lower the score; for others
/// nothing changes.
#[derive(Debug)]
pub(crate) struct Protection(());

pub(crate) fn protect() -> Protection {
    let mut protected = PROTECTED.lock().unwrap_or_else(PoisonError::into_inner);
    if protected.0 == 0
        && let Some(own) = read()
        && fs::write(FILE, (own - SHIFT).max(-1000).to_string()).is_ok()
    {
        protected.1 = Some(own);
    }
    protected.0 += 1;
    Protection(())
}

impl Drop for Protection {
    fn drop(&mut self) {
        let mut protected = PROTECTED.lock().unwrap_or_else(PoisonError::into_inner);
        protected.0 -= 1;
        if protected.0 == 0
            && let Some(own) = protected.1.take()
        {
            // Raising it back to what it was is always allowed.
            let _ = fs::write(FILE, own.to_string());
        }
    }
}

fn read() -> Option<i32> {
    fs::read_to_string(FILE).ok()?.trim().parse().ok()
}
