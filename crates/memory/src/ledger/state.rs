//! The account itself, without threads: who holds and waits, who is served next, who never could be.

use super::{HolderSnapshot, LedgerSnapshot, Refused};

/// All amounts of the ledger, behind its lock.
#[derive(Debug)]
pub(super) struct State {
    pub(super) budget: u64,
    reserve: u64,
    /// Held by ordinary holders, and by those who may use the reserve.
    ordinary: u64,
    privileged: u64,
    pub(super) peak: u64,
    /// Of what is held, so much could be done without.
    pub(super) spare: u64,
    accounts: Vec<Account>,
    /// In the order they came.
    waiters: Vec<Waiter>,
    next_ticket: u64,
    closed: bool,
}

/// One holder's line in the account.
#[derive(Debug)]
struct Account {
    name: String,
    /// May use the reserve.
    privileged: bool,
    held: u64,
    pinned: u64,
    peak: u64,
    /// Held when the whole account was at its peak.
    at_peak: u64,
}

/// What is asked, by whom, and what the asker keeps while it waits.
#[derive(Debug, Clone, Copy)]
pub(super) struct Request {
    pub(super) account: usize,
    pub(super) bytes: u64,
    /// Unpinned bytes that only come back once this is served: those of the growing grant and of grants the
    /// asker says it holds. By class, because ordinary bytes help ordinary waiters.
    pub(super) keeps_ordinary: u64,
    pub(super) keeps_privileged: u64,
    /// Already holds something: goes before fresh requests.
    pub(super) grower: bool,
    /// The bytes will be pinned when they are granted, so they never come back.
    pub(super) pinned: bool,
}

#[derive(Debug)]
struct Waiter {
    ticket: u64,
    request: Request,
    answer: Option<Result<(), Refused>>,
}

/// What waiters can count on: bytes of the whole budget, and of the part that ordinary holders may use. Less than nothing
/// where the budget was lowered below what is held: so much has to come back before anybody gets any.
#[derive(Debug, Clone, Copy)]
struct Room {
    all: i128,
    ordinary: i128,
}

impl State {
    pub(super) fn new(budget: u64, reserve: u64) -> State {
        State {
            budget,
            reserve,
            ordinary: 0,
            privileged: 0,
            peak: 0,
            spare: 0,
            accounts: Vec::new(),
            waiters: Vec::new(),
            next_ticket: 0,
            closed: false,
        }
    }

    pub(super) fn account(&mut self, name: &str, privileged: bool) -> usize {
        let known = self
            .accounts
            .iter()
            .position(|a| a.name == name && a.privileged == privileged);
        known.unwrap_or_else(|| {
            self.accounts.push(Account {
                name: name.to_owned(),
                privileged,
                held: 0,
                pinned: 0,
                peak: 0,
                at_peak: 0,
            });
            self.accounts.len() - 1
        })
    }

    pub(super) fn name(&self, account: usize) -> &str {
        &self.accounts[account].name
    }

    pub(super) fn held_by(&self, account: usize) -> u64 {
        self.accounts[account].held
    }

    pub(super) fn is_privileged(&self, account: usize) -> bool {
        self.accounts[account].privileged
    }

    pub(super) fn used(&self) -> u64 {
        self.ordinary + self.privileged
    }

    /// What is not granted, as an ordinary holder or one that may use the reserve sees it.
    pub(super) fn free(&self, privileged: bool) -> u64 {
        self.room().of(privileged)
    }

    fn room(&self) -> Room {
        Room {
            all: i128::from(self.budget) - i128::from(self.used()),
            ordinary: i128::from(self.ceiling(false)) - i128::from(self.ordinary),
        }
    }

    /// What is granted beyond a budget that was lowered.
    pub(super) fn over(&self) -> u64 {
        let all = self.used().saturating_sub(self.budget);
        all.max(self.ordinary.saturating_sub(self.ceiling(false)))
    }

    /// From now on nothing is granted above this. Whoever can never be served any more is refused by the next
    /// [`settle`](Self::settle).
    pub(super) fn lower(&mut self, budget: u64) {
        self.budget = self.budget.min(budget);
        self.reserve = self.reserve.min(self.budget);
    }

    fn ceiling(&self, privileged: bool) -> u64 {
        if privileged {
            self.budget
        } else {
            self.budget - self.reserve
        }
    }

    /// Grants at once or refuses. Waiters are not overtaken: a stream of small requests would starve a large one.
    pub(super) fn try_take(&mut self, request: Request) -> Result<(), Refused> {
        self.refuse_impossible(&request)?;
        let promised = self.promised(&request);
        let free = self
            .free(self.is_privileged(request.account))
            .saturating_sub(promised);
        if request.bytes > free {
            let Request {
                account,
                bytes: asked,
                ..
            } = request;
            let (holder, budget, held) = (self.name(account).to_owned(), self.budget, self.held());
            return Err(Refused::Exhausted {
                holder,
                asked,
                free,
                budget,
                held,
            });
        }
        // Bytes that stay may be the ones a waiter counts on; others come back.
        if request.pinned && !self.stranded(Some(&request)).is_empty() {
            return Err(self.deadlock(&request));
        }
        self.take(&request);
        Ok(())
    }

    /// Grants at once (`None`), refuses, or queues and returns the ticket to wait with.
    pub(super) fn take_or_wait(&mut self, request: Request) -> Result<Option<u64>, Refused> {
        match self.try_take(request) {
            Ok(()) => return Ok(None),
            Err(Refused::Exhausted { .. }) => {}
            // A pinned grow that fits but would strand a waiter may wait until that waiter is through.
            Err(Refused::Deadlock { .. }) => {}
            Err(refused) => return Err(refused),
        }
        let ticket = self.next_ticket;
        self.waiters.push(Waiter {
            ticket,
            request,
            answer: None,
        });
        if !self.stranded(None).is_empty() {
            self.waiters.pop();
            return Err(self.deadlock(&request));
        }
        self.next_ticket += 1;
        Ok(Some(ticket))
    }

    /// The answer to that ticket, once there is one.
    pub(super) fn answer(&mut self, ticket: u64) -> Option<Result<(), Refused>> {
        let index = self.waiters.iter().position(|waiter| waiter.ticket == ticket)?;
        self.waiters[index]
            .answer
            .is_some()
            .then(|| self.waiters.remove(index).answer)?
    }

    pub(super) fn give_back(&mut self, account: usize, bytes: u64, pinned: bool) {
        let account = &mut self.accounts[account];
        account.held -= bytes;
        if pinned {
            account.pinned -= bytes;
        }
        let side = if account.privileged {
            &mut self.privileged
        } else {
            &mut self.ordinary
        };
        *side -= bytes;
    }

    /// From now on these bytes stay. Whoever counted on them is refused by the next [`settle`](Self::settle).
    pub(super) fn pin(&mut self, account: usize, bytes: u64) {
        self.accounts[account].pinned += bytes;
    }

    pub(super) fn close(&mut self) {
        self.closed = true;
    }

    /// Serves and refuses waiters after a change; true when somebody got an answer.
    pub(super) fn settle(&mut self) -> bool {
        let mut answered = false;
        if self.closed {
            for index in 0..self.waiters.len() {
                if self.waiters[index].answer.is_none() {
                    let refused = self.closed_refusal(&self.waiters[index].request);
                    self.waiters[index].answer = Some(Err(refused));
                    answered = true;
                }
            }
            return answered;
        }
        loop {
            while let Some(index) = self.next_served() {
                let request = self.waiters[index].request;
                self.take(&request);
                self.waiters[index].answer = Some(Ok(()));
                answered = true;
            }
            // Refuse the latest of those who can never be served, one at a time: what it keeps may come back
            // now, and those it stood before may be next.
            let Some(&index) = self.stranded(None).last() else {
                return answered;
            };
            let refused = self.deadlock(&self.waiters[index].request);
            self.waiters[index].answer = Some(Err(refused));
            answered = true;
        }
    }

    fn take(&mut self, request: &Request) {
        let account = &mut self.accounts[request.account];
        account.held += request.bytes;
        account.peak = account.peak.max(account.held);
        if request.pinned {
            account.pinned += request.bytes;
        }
        let side = if account.privileged {
            &mut self.privileged
        } else {
            &mut self.ordinary
        };
        *side += request.bytes;
        if self.used() > self.peak {
            self.peak = self.used();
            for account in &mut self.accounts {
                account.at_peak = account.held;
            }
        }
    }

    /// The waiter to serve now: growers before fresh requests, each in the order they came. A grower that does
    /// not fit lets the next grower try, for that one may be what frees the bytes; fresh requests behind
    /// somebody who does not fit wait their turn.
    fn next_served(&self) -> Option<usize> {
        let room = self.room();
        // Somebody who waits for ordinary bytes blocks those behind it who do; one of the reserve, all.
        let (mut all_blocked, mut ordinary_blocked) = (false, false);
        for grower in [true, false] {
            for (index, waiter) in self.waiting().filter(|(_, w)| w.request.grower == grower) {
                let request = &waiter.request;
                let privileged = self.is_privileged(request.account);
                let blocked = !grower && (all_blocked || (ordinary_blocked && !privileged));
                // Bytes that stay are granted only when nobody is stranded by it. Until then they stand in
                // nobody's way, for the others have to go first.
                if request.pinned && !self.stranded(Some(request)).is_empty() {
                    continue;
                }
                if !blocked && request.bytes <= room.of(privileged) {
                    return Some(index);
                }
                all_blocked |= privileged;
                ordinary_blocked = true;
            }
        }
        None
    }

    /// Bytes that are free but promised to waiters who go before a new request of this kind.
    fn promised(&self, request: &Request) -> u64 {
        let privileged = self.is_privileged(request.account);
        self.waiting()
            .filter(|(_, waiter)| waiter.request.grower || !request.grower)
            // An ordinary waiter does not hold up the reserve's holders.
            .filter(|(_, waiter)| !privileged || self.is_privileged(waiter.request.account))
            .fold(0, |sum, (_, waiter)| waiter.request.bytes.saturating_add(sum))
    }

    /// The waiters that can never be served, by the banker's reckoning: start from what is free or can come
    /// back from those who run, let everybody who fits finish and give back what it keeps, repeat. Waiters
    /// whose bytes will stay go last, when there is the most room. With `pinned`, supposing that this request,
    /// whose bytes stay, is granted before all others.
    fn stranded(&self, pinned: Option<&Request>) -> Vec<usize> {
        let mut room = self.room();
        for account in &self.accounts {
            room.add(account.held - account.pinned, account.privileged);
        }
        if let Some(request) = pinned {
            room.take(request.bytes, self.is_privileged(request.account));
        }
        let others = |waiter: &Waiter| pinned.is_none_or(|pinned| !std::ptr::eq(pinned, &waiter.request));
        let mut left: Vec<usize> = self
            .waiting()
            .filter(|(_, waiter)| others(waiter))
            .map(|(index, _)| index)
            .collect();
        for &index in &left {
            let request = &self.waiters[index].request;
            room.take(request.keeps_ordinary, false);
            room.take(request.keeps_privileged, true);
        }
        for stays in [false, true] {
            loop {
                let before = left.len();
                left.retain(|&index| {
                    let request = &self.waiters[index].request;
                    let privileged = self.is_privileged(request.account);
                    let served = request.pinned == stays && request.bytes <= room.of(privileged);
                    if served {
                        if stays {
                            room.take(request.bytes, privileged);
                        }
                        room.add(request.keeps_ordinary, false);
                        room.add(request.keeps_privileged, true);
                    }
                    !served
                });
                if left.len() == before {
                    break;
                }
            }
        }
        left
    }

    fn waiting(&self) -> impl Iterator<Item = (usize, &Waiter)> {
        self.waiters
            .iter()
            .enumerate()
            .filter(|(_, waiter)| waiter.answer.is_none())
    }

    fn refuse_impossible(&self, request: &Request) -> Result<(), Refused> {
        if self.closed {
            return Err(self.closed_refusal(request));
        }
        let privileged = self.is_privileged(request.account);
        let keeps = request.keeps_ordinary + if privileged { request.keeps_privileged } else { 0 };
        let asked = request.bytes.saturating_add(keeps);
        let budget = self.ceiling(privileged);
        if asked > budget {
            return Err(Refused::TooLarge {
                holder: self.name(request.account).to_owned(),
                asked,
                budget,
            });
        }
        Ok(())
    }

    fn closed_refusal(&self, request: &Request) -> Refused {
        Refused::Closed {
            holder: self.name(request.account).to_owned(),
            asked: request.bytes,
        }
    }

    fn deadlock(&self, request: &Request) -> Refused {
        Refused::Deadlock {
            holder: self.name(request.account).to_owned(),
            asked: request.bytes,
            free: self.free(self.is_privileged(request.account)),
            budget: self.budget,
            held: self.held(),
        }
    }

    /// Who holds what, the largest first.
    fn held(&self) -> Vec<(String, u64)> {
        let mut held: Vec<(String, u64)> = self
            .accounts
            .iter()
            .filter(|a| a.held > 0)
            .map(|a| (a.name.clone(), a.held))
            .collect();
        held.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        held
    }

    pub(super) fn snapshot(&self) -> LedgerSnapshot {
        let holders = self
            .accounts
            .iter()
            .enumerate()
            .map(|(index, account)| HolderSnapshot {
                name: account.name.clone(),
                held: account.held,
                pinned: account.pinned,
                peak: account.peak,
                at_peak: account.at_peak,
                waiting: self
                    .waiting()
                    .filter(|(_, waiter)| waiter.request.account == index)
                    .map(|(_, waiter)| waiter.request.bytes)
                    .sum(),
            });
        LedgerSnapshot {
            budget: self.budget,
            reserve: self.reserve,
            used: self.used(),
            peak: self.peak,
            holders: holders.collect(),
        }
    }
}

impl Room {
    fn of(&self, privileged: bool) -> u64 {
        let room = if privileged {
            self.all
        } else {
            self.all.min(self.ordinary)
        };
        u64::try_from(room.max(0)).unwrap_or(u64::MAX)
    }

    fn add(&mut self, bytes: u64, privileged: bool) {
        self.all += i128::from(bytes);
        if !privileged {
            self.ordinary += i128::from(bytes);
        }
    }

    fn take(&mut self, bytes: u64, privileged: bool) {
        self.all -= i128::from(bytes);
        if !privileged {
            self.ordinary -= i128::from(bytes);
        }
    }
}
