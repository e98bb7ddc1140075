//! A few real steps before a training: how long one takes, and whether the worst batch goes through.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use tidegate_data::arrays::{ArraySource, FeedOptions, Order, Part};
use tidegate_memory::{Grant, Ledger};

use super::design::Design;
use super::machine::Batch;
use super::plan::{ARENA, Planned, feed_options};
use super::rule::Moment;
use super::step::Mix;
use super::train::Options;
use crate::{Error, Result};

/// Batches are timed for so long at the most, and at least one is.
const TIMED: Duration = Duration::from_millis(500);
/// Less will do where it is this part of an epoch: a plan is to take next to nothing beside it.
const PART: f64 = 0.02;
/// And for so long, or a moment's trouble would tell.
const LEAST: Duration = Duration::from_millis(100);
/// A first batch that takes longer says enough, though it is slower than those that follow.
const LONG: Duration = Duration::from_secs(1);

/// What steps are tried on.
pub struct Rehearsal<'a> {
    pub design: &'a Design,
    /// Samples, or zeros where they cannot be read yet.
    pub source: Option<&'a ArraySource>,
    /// Samples of an epoch.
    pub n_samples: u64,
    pub options: &'a Options,
    pub ledger: &'a Ledger,
}

/// What was timed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rehearsed {
    /// Batches that were timed: none where the loss was no finite number, which ends a training.
    pub batches: u32,
    /// Seconds of a sample in the network, and with the time that it was waited for.
    pub learning: f64,
    pub waiting_too: f64,
}

/// Takes a batch to warm up and times a few more. Nothing of it is kept.
pub fn rehearse(rehearsal: &Rehearsal, planned: Planned) -> Result<Rehearsed> {
    let Rehearsal {
        design,
        source,
        n_samples,
        options,
        ledger,
    } = *rehearsal;
    let granted = ledger.holder(ARENA).try_grant(planned.program.bytes());
    let _held = granted
        .map(Grant::pin)
        .map_err(|source| Error::Memory { what: ARENA, source })?;
    let micro = planned.setting.batch;
    let built = planned.program.build(options.seed);
    let mut machine = built.map_err(|source| Error::Arena { source })?;
    let mut clock = Clock {
        enough: (PART * n_samples as f64) as usize,
        ..Clock::default()
    };
    let Some(source) = source else {
        while clock.go_on() {
            let started = Instant::now();
            machine.inputs().fill(0.0);
            machine.targets().fill(0.0);
            let loss = machine.learn(&batch(options, micro, None, clock.steps));
            clock.tick(micro, started, loss);
        }
        return Ok(clock.rehearsed());
    };
    let prefetch = source.good_prefetch(micro, options.feed_threads);
    let feed = FeedOptions {
        order: Order::Shuffled {
            seed: options.seed,
            epoch: 0,
        },
        ..feed_options(options, micro, prefetch.min(ledger.free() / 2), Part::All)
    };
    source.feed(&feed, ledger, |samples| {
        let rows = samples.n_samples();
        if rows > 0 {
            let started = Instant::now();
            design.put(samples, &mut machine)?;
            let mix = samples.mixing().map(|mixing| Mix {
                distance: mixing.distance,
                share: mixing.share,
            });
            let loss = machine.learn(&batch(options, rows, mix, clock.steps));
            clock.tick(rows, started, loss);
        }
        Ok::<_, Error>(match clock.go_on() {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(()),
        })
    })?;
    Ok(clock.rehearsed())
}

fn batch(options: &Options, rows: usize, mix: Option<Mix>, step: u64) -> Batch {
    Batch {
        rows,
        before: 0,
        share: 1.0 / rows as f32,
        first: true,
        last: true,
        seed: options.seed ^ step,
        scale: 1.0,
        mix,
        moment: Moment {
            rate: options.rate as f32,
            step: step + 1,
        },
    }
}

/// Time taken by batches.
#[derive(Default)]
struct Clock {
    steps: u64,
    /// What the first batch took, with its samples; it is only counted where there is no other.
    first: Option<(usize, Duration)>,
    /// When the first was over, and the last.
    since: Option<Instant>,
    until: Option<Instant>,
    rows: usize,
    /// So many rows will do.
    enough: usize,
    learning: Duration,
    diverged: bool,
}

impl Clock {
    fn tick(&mut self, rows: usize, started: Instant, loss: f64) {
        let (took, now) = (started.elapsed(), Instant::now());
        self.steps += 1;
        self.diverged |= !loss.is_finite();
        if self.first.is_none() {
            self.first = Some((rows, took));
            self.since = Some(now);
            return;
        }
        self.rows += rows;
        self.learning += took;
        self.until = Some(now);
    }

    fn go_on(&self) -> bool {
        match (self.first, self.since) {
            _ if self.diverged => false,
            (Some((_, took)), Some(since)) => {
                let most = if self.rows >= self.enough { LEAST } else { TIMED };
                took < LONG && (self.until.is_none() || since.elapsed() < most)
            }
            _ => true,
        }
    }

    fn rehearsed(&self) -> Rehearsed {
        let per = |time: Duration, rows: usize| time.as_secs_f64() / rows.max(1) as f64;
        match (self.first, self.since.zip(self.until)) {
            _ if self.diverged => Rehearsed {
                batches: 0,
                learning: 0.0,
                waiting_too: 0.0,
            },
            (_, Some((since, until))) => Rehearsed {
                batches: self.steps as u32 - 1,
                learning: per(self.learning, self.rows),
                waiting_too: per(until - since, self.rows),
            },
            (first, None) => {
                let (rows, took) = first.unwrap_or_default();
                Rehearsed {
                    batches: self.steps as u32,
                    learning: per(took, rows),
                    waiting_too: per(took, rows),
                }
            }
        }
    }
}
