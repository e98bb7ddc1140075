//! The memory of a reader of typed files: promised as a whole when reading starts, drawn on buffer by buffer.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tidegate_memory::{Grant, Holder, Refused};

/// What one reader may hold. It is granted at the start, so that no slot of the pipeline takes it meanwhile, and
/// grows where a page turns out larger than those that were seen.
pub(crate) struct Pool {
    state: Mutex<State>,
}

struct State {
    grant: Grant,
    used: u64,
}

impl Pool {
    /// Takes `promised` bytes at once where there are so many; otherwise they are asked for as they are needed.
    pub(crate) fn new(holder: &Holder, promised: u64) -> Result<Arc<Pool>, Refused> {
        let grant = holder.try_grant(promised).or_else(|_| holder.try_grant(0))?;
        let state = Mutex::new(State { grant, used: 0 });
        Ok(Arc::new(Pool { state }))
    }

    pub(crate) fn take(self: &Arc<Pool>, bytes: u64) -> Result<Share, Refused> {
        let mut state = self.lock();
        let lacking = (state.used.saturating_add(bytes)).saturating_sub(state.grant.bytes());
        if lacking > 0 {
            state.grant.try_grow(lacking)?;
        }
        state.used += bytes;
        Ok(Share {
            pool: self.clone(),
            bytes,
        })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // No code of ours panics halfway through a change, so the state behind a poisoned lock is whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes of a pool; dropping it gives them back.
pub(crate) struct Share {
    pool: Arc<Pool>,
    bytes: u64,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.pool.lock().used -= self.bytes;
    }
}

/// Bytes that keep what was granted for them, for as long as anybody holds a part of them.
pub(crate) struct Held<B> {
    pub bytes: B,
    #[expect(dead_code, reason = "held for its drop")]
    pub share: Arc<Share>,
}

impl<B: AsRef<[u8]>> AsRef<[u8]> for Held<B> {
    fn as_ref(&self) -> &[u8] {
        self.bytes.as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tidegate_memory::Ledger;

    #[test]
    fn a_pool_grows_and_gives_all_back() {
        let ledger = Ledger::new(100);
        let pool = Pool::new(&ledger.holder("pages"), 40).unwrap();
        assert_eq!(ledger.used(), 40);
        let a = pool.take(30).unwrap();
        let b = pool.take(30).unwrap();
        assert_eq!(ledger.used(), 60);
        assert!(pool.take(50).is_err());
        drop(a);
        let c = pool.take(50).unwrap();
        assert_eq!(ledger.used(), 80);
        drop((b, c, pool));
        assert_eq!(ledger.used(), 0);
    }
}
