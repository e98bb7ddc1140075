//! One pass over all blocks: threads take them as they come, each with its state, while others read the next ones and
//! write the last ones.
//!
//! A block whose rows and state are in memory is visited as it is. Any other needs a slot: it is read into one, visited, and
//! what the visit changed is written before the slot is free for the next block. What has been read is visited first, so the
//! disk works while blocks in memory are visited.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};

use super::crew::Crew;
use super::histogram::Packed;
use super::objective::Losses;
use super::rows::{Block, BlockBuffer, Blocks, Part};
use super::state::{BlockState, Pieces, StateBuffer, States};
use crate::{Error, Result};

/// What is lent to the work on a block.
#[derive(Debug)]
pub(super) struct Tools {
    pub(super) packed: Packed,
    /// Room for the order of a block.
    pub(super) spare: Vec<u16>,
}

/// Room for a block that is not in memory.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) rows: BlockBuffer,
    pub(super) state: StateBuffer,
}

/// Why a pass did not reach its end.
#[derive(Debug)]
pub(super) enum Halt {
    Stopped,
    Failed(Error),
}

impl From<Error> for Halt {
    fn from(error: Error) -> Halt {
        Halt::Failed(error)
    }
}

/// What a pass goes over.
pub(super) struct Site<'a> {
    pub(super) blocks: &'a mut dyn Blocks,
    pub(super) states: States,
    /// The number of the first row of each block.
    first_rows: Vec<u64>,
    stop: &'a AtomicBool,
}

impl<'a> Site<'a> {
    pub(super) fn new(blocks: &'a mut dyn Blocks, states: States, stop: &'a AtomicBool) -> Site<'a> {
        let mut first_rows = Vec::with_capacity(blocks.n_blocks());
        (0..blocks.n_blocks()).fold(0, |first, block| {
            first_rows.push(first);
            first + blocks.n_rows(block) as u64
        });
        Site {
            blocks,
            states,
            first_rows,
            stop,
        }
    }
}

/// A block with its place in the whole.
pub(super) struct Visited<'b> {
    pub(super) rows: Block<'b>,
    pub(super) first_row: u32,
    pub(super) number: usize,
}

/// What a pass needs and changes of every block.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) rows: Part,
    pub(super) reads: Pieces,
    pub(super) writes: Pieces,
    /// Block after block, by one thread.
    pub(super) in_order: bool,
}

type Visit<'v> = &'v (dyn Fn(&mut Tools, &Visited<'_>, &mut BlockState<'_>) -> Losses + Sync);

/// Visits every block, in no certain order unless the route has one, and then lets all who visited `finish`. The losses come
/// back in the order of the blocks.
pub(super) fn pass(
    crew: &mut Crew<'_>,
    route: &Route,
    visit: Visit<'_>,
    finish: &(dyn Fn(&mut Tools) + Sync),
) -> Result<Vec<Losses>, Halt> {
    crew.make_room()?;
    let Crew {
        site,
        tools,
        slots,
        n_carriers,
        ..
    } = crew;
    let site = &*site;
    let n_blocks = site.blocks.n_blocks();
    let is_there = |block: &usize| {
        site.blocks.in_memory(*block, route.rows)
            && site.states.in_memory(*block, &route.reads)
            && site.states.in_memory(*block, &route.writes)
    };
    let n_there = (0..n_blocks).take_while(is_there).count();
    let desk = Desk {
        site,
        route,
        visit,
        tasks: Mutex::new(Tasks {
            there: 0..n_there,
            unread: n_there..n_blocks,
            free: std::mem::take(slots),
            ready: VecDeque::new(),
            unwritten: Vec::new(),
            n_reading: 0,
            n_visiting: 0,
            failed: None,
            halted: false,
        }),
        for_visitors: Condvar::new(),
        for_carriers: Condvar::new(),
        losses: Mutex::new(vec![Losses::default(); n_blocks]),
    };
    let n_visitors = if route.in_order { 1 } else { tools.len() };
    let n_carriers = if n_there < n_blocks { *n_carriers } else { 0 };
    let (first, others) = tools[..n_visitors].split_first_mut().expect("there is somebody");
    std::thread::scope(|scope| {
        let carrier = || std::thread::Builder::new().spawn_scoped(scope, || desk.carry());
        // Where no thread can be had for it, those who visit carry, too.
        let alone = (0..n_carriers).filter(|_| carrier().is_ok()).count() == 0;
        for tools in others {
            let desk = &desk;
            scope.spawn(move || {
                desk.go_round(tools, alone);
                finish(tools);
            });
        }
        desk.go_round(first, alone);
        finish(first);
    });
    let tasks = desk.tasks.into_inner().expect("no thread panics with it");
    *slots = tasks.free;
    if let Some(error) = tasks.failed {
        return Err(Halt::Failed(error));
    }
    if site.stop.load(Ordering::Relaxed) {
        return Err(Halt::Stopped);
    }
    Ok(desk.losses.into_inner().expect("no thread panics with it"))
}

/// Where the threads of a pass get their tasks.
struct Desk<'d, 's> {
    site: &'d Site<'s>,
    route: &'d Route,
    visit: Visit<'d>,
    tasks: Mutex<Tasks>,
    for_visitors: Condvar,
    for_carriers: Condvar,
    losses: Mutex<Vec<Losses>>,
}

struct Tasks {
    /// Blocks in memory that nobody has come to.
    there: Range<usize>,
    /// Blocks that nobody has begun to read.
    unread: Range<usize>,
    free: Vec<Slot>,
    ready: VecDeque<(usize, Slot)>,
    unwritten: Vec<(usize, Slot)>,
    n_reading: usize,
    /// Of blocks in slots.
    n_visiting: usize,
    failed: Option<Error>,
    halted: bool,
}

enum Task {
    Visit(usize, Option<Slot>),
    Read(usize, Slot),
    Write(usize, Slot),
    /// Until somebody else has done something.
    Wait,
    Over,
}

impl Tasks {
    fn next_visit(&mut self, in_order: bool) -> Task {
        if !in_order && let Some((block, slot)) = self.ready.pop_front() {
            return Task::Visit(block, Some(slot));
        }
        if let Some(block) = self.there.next() {
            return Task::Visit(block, None);
        }
        // Read in order, so that the next one is the least of those that are on their way.
        let next = self.ready.iter().enumerate().min_by_key(|(_, (block, _))| *block);
        match next.map(|(at, (block, _))| (at, *block)) {
            Some((at, block)) if block == self.unvisited() => {
                let (block, slot) = self.ready.remove(at).expect("it was found there");
                Task::Visit(block, Some(slot))
            }
            None if self.unread.is_empty() && self.n_reading == 0 => Task::Over,
            _ => Task::Wait,
        }
    }

    /// The first block in a slot that has not been visited.
    fn unvisited(&self) -> usize {
        self.unread.start - self.n_reading - self.ready.len()
    }

    fn next_carry(&mut self) -> Task {
        if let Some((block, slot)) = self.unwritten.pop() {
            return Task::Write(block, slot);
        }
        if !self.unread.is_empty()
            && let Some(slot) = self.free.pop()
        {
            let block = self.unread.next().expect("it is not empty");
            return Task::Read(block, slot);
        }
        match self.unread.is_empty() && self.n_reading + self.ready.len() + self.n_visiting == 0 {
            true => Task::Over,
            false => Task::Wait,
        }
    }
}

impl Desk<'_, '_> {
    /// Visits blocks until there are no more, and carries them, too, if nobody else does.
    fn go_round(&self, tools: &mut Tools, alone: bool) {
        let _guard = Guard(self);
        let mut tasks = self.lock();
        loop {
            let mut task = self.next(&mut tasks, |tasks| tasks.next_visit(self.route.in_order));
            if alone && !matches!(task, Task::Visit(..)) {
                task = self.next(&mut tasks, Tasks::next_carry);
            }
            match task {
                Task::Visit(block, slot) => {
                    tasks.n_visiting += usize::from(slot.is_some());
                    drop(tasks);
                    let slot = self.visit(tools, block, slot);
                    tasks = self.lock();
                    self.put_back(&mut tasks, block, slot);
                }
                Task::Wait => tasks = self.for_visitors.wait(tasks).expect("no thread panics with it"),
                Task::Over => break,
                task => tasks = self.carried(tasks, task),
            }
        }
    }

    /// Reads and writes until there is nothing more to come.
    fn carry(&self) {
        let _guard = Guard(self);
        let mut tasks = self.lock();
        loop {
            match self.next(&mut tasks, Tasks::next_carry) {
                Task::Wait => tasks = self.for_carriers.wait(tasks).expect("no thread panics with it"),
                Task::Over => break,
                task => tasks = self.carried(tasks, task),
            }
        }
    }

    fn next(&self, tasks: &mut Tasks, choose: impl FnOnce(&mut Tasks) -> Task) -> Task {
        if self.site.stop.load(Ordering::Relaxed) {
            tasks.halted = true;
        }
        if tasks.halted {
            self.tell(tasks);
            return Task::Over;
        }
        choose(tasks)
    }

    fn visit(&self, tools: &mut Tools, block: usize, mut slot: Option<Slot>) -> Option<Slot> {
        let (none, site) = (BlockBuffer::default(), self.site);
        let (rows, state) = match &mut slot {
            Some(slot) => (&slot.rows, Some(&mut slot.state)),
            None => (&none, None),
        };
        let visited = Visited {
            rows: site.blocks.block(block, self.route.rows, rows),
            first_row: site.first_rows[block] as u32,
            number: block,
        };
        let losses = site
            .states
            .lend(block, state, |state| (self.visit)(tools, &visited, state));
        self.losses.lock().expect("no thread panics with it")[block] = losses;
        slot
    }

    /// A slot after the visit: to be written, or free.
    fn put_back(&self, tasks: &mut Tasks, block: usize, slot: Option<Slot>) {
        let Some(slot) = slot else {
            return;
        };
        tasks.n_visiting -= 1;
        match self.site.states.in_memory(block, &self.route.writes) {
            true => tasks.free.push(slot),
            false => tasks.unwritten.push((block, slot)),
        }
        self.tell(tasks);
    }

    /// Reads or writes a block, without the lock.
    fn carried<'t>(&'t self, mut tasks: MutexGuard<'t, Tasks>, task: Task) -> MutexGuard<'t, Tasks> {
        let (site, route) = (self.site, self.route);
        match task {
            Task::Read(block, mut slot) => {
                tasks.n_reading += 1;
                drop(tasks);
                let read = site
                    .blocks
                    .read(block, route.rows, &mut slot.rows)
                    .and_then(|()| site.states.read(block, &mut slot.state, &route.reads));
                tasks = self.lock();
                tasks.n_reading -= 1;
                tasks.ready.push_back((block, slot));
                tasks.note(read);
            }
            Task::Write(block, mut slot) => {
                drop(tasks);
                let written = site.states.write(block, &mut slot.state, &route.writes);
                tasks = self.lock();
                tasks.free.push(slot);
                tasks.note(written);
            }
            _ => unreachable!("only what is carried comes here"),
        }
        self.tell(&tasks);
        tasks
    }

    /// Wakes those who may have something to do now.
    fn tell(&self, tasks: &Tasks) {
        let is_ending = tasks.halted || (tasks.unread.is_empty() && tasks.n_reading == 0);
        if is_ending {
            self.for_visitors.notify_all();
            self.for_carriers.notify_all();
        } else {
            self.for_visitors.notify_one();
            self.for_carriers.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Tasks> {
        self.tasks.lock().expect("no thread panics with it")
    }
}

impl Tasks {
    fn note(&mut self, done: Result<()>) {
        if let Err(error) = done {
            self.failed.get_or_insert(error);
            self.halted = true;
        }
    }
}

/// Lets nobody wait for a thread that panicked.
struct Guard<'g, 'd, 's>(&'g Desk<'d, 's>);

impl Drop for Guard<'_, '_, '_> {
    fn drop(&mut self) {
        if std::thread::panicking()
            && let Ok(mut tasks) = self.0.tasks.lock()
        {
            tasks.halted = true;
            self.0.tell(&tasks);
        }
    }
}
