//! The two handles: a holder asks, a grant holds until it is dropped.

use std::sync::{Arc, PoisonError};

use super::state::Request;
use super::{Refused, Shared};

/// A name that bytes are granted to. Cheap to clone; clones share the account.
#[derive(Debug, Clone)]
pub struct Holder {
    shared: Arc<Shared>,
    account: usize,
    name: Arc<str>,
    privileged: bool,
}

impl Holder {
    pub(super) fn new(shared: &Arc<Shared>, name: &str, privileged: bool) -> Holder {
        let account = shared.lock().account(name, privileged);
        Holder {
            shared: Arc::clone(shared),
            account,
            name: name.into(),
            privileged,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// The bytes granted to it now.
    pub fn held(&self) -> u64 {
        self.shared.lock().held_by(self.account)
    }

    /// Bytes now or a refusal now. A grant of zero bytes always succeeds, as something to grow.
    pub fn try_grant(&self, bytes: u64) -> Result<Grant, Refused> {
        if bytes > 0 {
            self.shared.lock().try_take(self.request(bytes))?;
        }
        Ok(self.granted(bytes))
    }

    /// Bytes as soon as there are enough, after those who asked before. Refused only when that can never be.
    pub fn grant(&self, bytes: u64) -> Result<Grant, Refused> {
        if bytes > 0 {
            self.shared.take(self.request(bytes))?;
        }
        Ok(self.granted(bytes))
    }

    /// Like [`grant`](Self::grant) for an asker that keeps `holding` while it waits, so that the ledger does not
    /// count on those to come back. It goes before fresh requests, as a grower does.
    pub fn grant_holding(&self, bytes: u64, holding: &[&Grant]) -> Result<Grant, Refused> {
        let mut request = Request {
            grower: !holding.is_empty(),
            ..self.request(bytes)
        };
        for grant in holding
            .iter()
            .filter(|grant| !grant.pinned && Arc::ptr_eq(&grant.shared, &self.shared))
        {
            request.keep(grant);
        }
        if bytes > 0 {
            self.shared.take(request)?;
        }
        Ok(self.granted(bytes))
    }

    fn request(&self, bytes: u64) -> Request {
        let account = self.account;
        Request {
            account,
            bytes,
            keeps_ordinary: 0,
            keeps_privileged: 0,
            grower: false,
            pinned: false,
        }
    }

    fn granted(&self, bytes: u64) -> Grant {
        let Holder {
            ref shared,
            account,
            privileged,
            ..
        } = *self;
        Grant {
            shared: Arc::clone(shared),
            account,
            privileged,
            bytes,
            pinned: false,
        }
    }
}

/// Bytes of the budget, held until dropped. It can be handed to another thread together with the buffer it
/// stands for.
#[derive(Debug)]
#[must_use = "a grant that is dropped gives its bytes back"]
pub struct Grant {
    shared: Arc<Shared>,
    account: usize,
    privileged: bool,
    bytes: u64,
    pinned: bool,
}

impl Grant {
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_pinned(&self) -> bool {
        self.pinned
    }

    /// More bytes now, or a refusal now that leaves the grant as it was.
    pub fn try_grow(&mut self, more: u64) -> Result<(), Refused> {
        if more > 0 {
            self.shared.lock().try_take(self.request(more))?;
            self.bytes += more;
        }
        Ok(())
    }

    /// More bytes as soon as there are enough, keeping those it has meanwhile.
    pub fn grow(&mut self, more: u64) -> Result<(), Refused> {
        if more > 0 {
            self.shared.take(self.request(more))?;
            self.bytes += more;
        }
        Ok(())
    }

    /// Gives `less` bytes back, or all when it has fewer.
    pub fn shrink(&mut self, less: u64) {
        let less = less.min(self.bytes);
        if less > 0 {
            self.bytes -= less;
            let mut state = self.shared.lock();
            state.give_back(self.account, less, self.pinned);
            self.shared.settle(state);
        }
    }

    /// Grows, waiting, or shrinks to exactly `bytes`.
    pub fn resize(&mut self, bytes: u64) -> Result<(), Refused> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// Grows without waiting, or shrinks to exactly `bytes`.
    pub fn try_resize(&mut self, bytes: u64) -> Result<(), Refused> {
        match bytes.checked_sub(self.bytes) {
            Some(more) => self.try_grow(more),
            None => {
                self.shrink(self.bytes - bytes);
                Ok(())
            }
        }
    }

    /// Moves `bytes` of this grant, or all when it has fewer, into one of their own, of the same holder.
    pub fn split(&mut self, bytes: u64) -> Grant {
        let bytes = bytes.min(self.bytes);
        self.bytes -= bytes;
        let Grant {
            ref shared,
            account,
            privileged,
            pinned,
            ..
        } = *self;
        Grant {
            shared: Arc::clone(shared),
            account,
            privileged,
            bytes,
            pinned,
        }
    }

    /// Says that these bytes stay until the end of the job, so nobody waits for them. Those who could only be
    /// served from them are refused. Dropping the grant still gives the bytes back.
    pub fn pin(mut self) -> Grant {
        if !self.pinned {
            self.pinned = true;
            let mut state = self.shared.lock();
            state.pin(self.account, self.bytes);
            self.shared.settle(state);
        }
        self
    }

    fn request(&self, bytes: u64) -> Request {
        let Grant { account, pinned, .. } = *self;
        let mut request = Request {
            account,
            bytes,
            keeps_ordinary: 0,
            keeps_privileged: 0,
            grower: true,
            pinned,
        };
        if !pinned {
            request.keep(self);
        }
        request
    }
}

impl Drop for Grant {
    fn drop(&mut self) {
        self.shrink(self.bytes);
    }
}

impl Request {
    fn keep(&mut self, grant: &Grant) {
        let keeps = if grant.privileged {
            &mut self.keeps_privileged
        } else {
            &mut self.keeps_ordinary
        };
        *keeps += grant.bytes;
    }
}

impl Shared {
    /// Takes the bytes, waiting for them when needed.
    fn take(&self, request: Request) -> Result<(), Refused> {
        let mut state = self.lock();
        let Some(ticket) = state.take_or_wait(request)? else {
            return Ok(());
        };
        // The newcomer may go before others (a grower, the reserve) and fit at once.
        if state.settle() {
            self.answered.notify_all();
        }
        loop {
            if let Some(answer) = state.answer(ticket) {
                return answer;
            }
            state = self.answered.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}
