//! What a holder could do without, as it tells itself.

use std::sync::Arc;

use super::Shared;

/// Granted bytes that could be done without, said so until dropped.
#[derive(Debug)]
#[must_use = "what is dropped is no longer told"]
pub struct Spare {
    shared: Arc<Shared>,
    bytes: u64,
}

impl Spare {
    pub(super) fn new(shared: &Arc<Shared>, bytes: u64) -> Spare {
        let mut spare = Spare {
            shared: Arc::clone(shared),
            bytes: 0,
        };
        spare.tell(bytes);
        spare
    }

    /// It is so many bytes from now on.
    pub fn tell(&mut self, bytes: u64) {
        if bytes != self.bytes {
            let mut state = self.shared.lock();
            state.spare = state.spare - self.bytes + bytes;
            self.bytes = bytes;
        }
    }
}

impl Drop for Spare {
    fn drop(&mut self) {
        self.tell(0);
    }
}
