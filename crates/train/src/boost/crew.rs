//! Those who work on blocks, what they work with, and what of it is let go of when memory is taken away.
//!
//! Before every pass the crew looks at its ledger. Where that was lowered, the same planner says what stays of rows and
//! their state within what is left: least worth goes first, from the last block on. It is written to where it can be read
//! again, and streams from then on. So the forest stays the same; only the disk has more to do.

use std::path::Path;

use tidegate_data::disk::Disk;
use tidegate_memory::{Grant, Ledger, Refused, Spare, give_freed_memory_back};

use super::histogram::Packed;
use super::pass::{Site, Slot, Tools};
use super::plan::{BUFFERS, EVALUATION, HISTOGRAMS, PAGES, Plan, STATE, TREES};
use super::state::States;
use super::train::Training;
use super::{FeatureBins, Options, grow};
use crate::{Error, Result};

/// Those who work on blocks, and what they work with.
pub(super) struct Crew<'a> {
    pub(super) site: Site<'a>,
    /// One for each thread.
    pub(super) tools: Vec<Tools>,
    /// None if all blocks are in memory.
    pub(super) slots: Vec<Slot>,
    /// Threads that read and write; without any, those that visit do.
    pub(super) n_carriers: usize,
    room: Room<'a>,
}

/// What is held, and what could be done without.
struct Room<'a> {
    options: &'a Options,
    /// As it is followed now.
    plan: Plan,
    ledger: &'a Ledger,
    /// Where blocks go that are let go of.
    folder: &'a Path,
    held: Vec<(&'static str, Grant)>,
    spare: Spare,
    /// Nothing more can be let go.
    is_firm: bool,
}

/// What a training takes from its ledger beside rows.
const HOLDERS: [&str; 6] = [BUFFERS, PAGES, STATE, HISTOGRAMS, TREES, EVALUATION];

impl<'a> Crew<'a> {
    /// Takes what the plan has.
    pub(super) fn new(training: Training<'a>) -> Result<Crew<'a>> {
        let Training {
            blocks,
            features,
            options,
            plan,
            ledger,
            scratch,
            stop,
        } = training;
        let granted = |name: &'static str| match ledger.holder(name).try_grant(plan.bytes(name)) {
            Ok(grant) => Ok((name, grant.pin())),
            Err(source) => Err(Error::Memory { what: name, source }),
        };
        let held = HOLDERS.into_iter().map(granted).collect::<Result<Vec<_>>>()?;
        let n_rows: Vec<usize> = (0..blocks.n_blocks()).map(|block| blocks.n_rows(block)).collect();
        let n_bins = features.iter().map(FeatureBins::n_bins).sum();
        let tools = || Tools {
            packed: Packed::new(plan.packed, n_bins),
            spare: vec![0; blocks.largest_block()],
        };
        let tools = (0..plan.threads).map(|_| tools()).collect();
        let states = States::new(
            &n_rows,
            (plan.kept.hot, plan.kept.cold),
            options.objective.n_outputs(),
            grow::max_nodes(options),
            scratch,
        )?;
        let is_firm = !blocks.can_let_go() || Disk::of(scratch).is_ok_and(|disk| disk.is_memory);
        let mut crew = Crew {
            site: Site::new(blocks, states, stop),
            tools,
            slots: Vec::new(),
            n_carriers: plan.carriers,
            room: Room {
                options,
                plan: plan.clone(),
                ledger,
                folder: scratch,
                held,
                spare: ledger.spare(0),
                is_firm,
            },
        };
        crew.make_slots();
        crew.room.tell_spare();
        Ok(crew)
    }

    fn make_slots(&mut self) {
        let plan = &self.room.plan;
        let (blocks, states) = (&self.site.blocks, &self.site.states);
        let slot = || Slot {
            rows: plan.row_buffer(blocks.largest_block()),
            state: states.buffer(),
        };
        self.slots = (0..plan.n_slots()).map(|_| slot()).collect();
    }

    /// Lets go of as much as was taken away, or of all that can go.
    pub(super) fn make_room(&mut self) -> Result<()> {
        loop {
            let (short, plan, options) = (self.room.short(), &self.room.plan, self.room.options);
            let less = (short > 0 && !self.room.is_firm).then(|| {
                let within = plan.within(options, plan.total().saturating_sub(short));
                within.unwrap_or_else(|| plan.least(options))
            });
            match less.filter(|less| (less.kept, less.carriers) != (plan.kept, plan.carriers)) {
                Some(less) if self.room.has_disk_for(&less) => self.let_go(less)?,
                Some(_) => {
                    // It stays as it is: whoever looks after the memory has to know.
                    self.room.is_firm = true;
                    self.room.tell_spare();
                }
                None => break,
            }
        }
        // What is let go streams through slots, which take some of what is free then.
        if self.slots.len() < self.room.plan.n_slots() {
            self.room.grow()?;
            self.make_slots();
        }
        Ok(())
    }

    /// Follows a plan with less in memory, as far as that gives back; its slots are still to be had.
    fn let_go(&mut self, plan: Plan) -> Result<()> {
        let (kept, folder) = (plan.kept, self.room.folder);
        self.slots = Vec::new();
        self.site.blocks.keep(kept.bins, kept.labels, folder)?;
        self.site.states.keep(kept.hot, kept.cold, folder)?;
        give_freed_memory_back();
        self.n_carriers = plan.carriers;
        self.room.plan = plan;
        self.room.shrink();
        self.room.tell_spare();
        Ok(())
    }
}

impl Room<'_> {
    /// What is to be let go, so that what the plan has is granted within what is left.
    fn short(&self) -> u64 {
        (self.missing() + self.ledger.over()).saturating_sub(self.ledger.free())
    }

    /// What the plan has and is not granted.
    fn missing(&self) -> u64 {
        let missing = |(name, grant): &(&str, Grant)| self.plan.bytes(name).saturating_sub(grant.bytes());
        self.held.iter().map(missing).sum()
    }

    fn shrink(&mut self) {
        for (name, grant) in &mut self.held {
            grant.shrink(grant.bytes().saturating_sub(self.plan.bytes(name)));
        }
    }

    fn grow(&mut self) -> Result<()> {
        for (name, grant) in &mut self.held {
            let missing = self.plan.bytes(name).saturating_sub(grant.bytes());
            let grown = grant.try_grow(missing);
            grown.map_err(|source: Refused| Error::Memory { what: name, source })?;
        }
        Ok(())
    }

    /// Says what could go, with what streaming it would take counted against it.
    fn tell_spare(&mut self) {
        let least = self.plan.least(self.options).total();
        self.spare.tell(match self.is_firm {
            true => 0,
            false => self.plan.total().saturating_sub(least),
        });
    }

    /// Whether the disk has room for what is let go.
    fn has_disk_for(&self, plan: &Plan) -> bool {
        let on_disk = |plan: &Plan| {
            let streamed = plan.streamed(self.options);
            streamed.rows + streamed.state
        };
        let needed = on_disk(plan).saturating_sub(on_disk(&self.plan));
        Disk::of(self.folder).map_or(true, |disk| disk.free > needed)
    }
}
