//! Finds the fastest way to train a network that fits.
//!
//! Smaller batches whose gradients are summed, values that are made again on the way back, values that wait in half
//! precision, fewer threads: each makes the program smaller and slower. How much smaller is compiled, how much slower is
//! reckoned ([`Program::cost`]), so that the same job in the same budget is always trained in the same way.
//! A way that changes the numbers beyond rounding is taken only where it saves much time, or where there is no other.

use std::cell::RefCell;

use super::machine::Program;
use super::moments::Moments;
use super::precision::Precision;
use super::setting::{Recompute, Setting};
use crate::{Alternative, Change};

/// How much slower a way may be before one is taken instead that changes the numbers.
const WORTH_A_CHANGE: f64 = 1.4;
/// How long it takes to read a sample by itself, in the unit of [`super::cost`]: some 60 µs.
const SINGLE_READ: f64 = 5e6;
/// What values that are cheap to make again may cost, of a step.
const CHEAP: f64 = 0.06;

/// What may be changed, and what it is to be where it was said.
pub(super) struct Knobs<'a> {
    /// As it was asked for: all samples of a batch at a time, nothing made again.
    pub plain: Setting,
    pub micro_batch: Option<usize>,
    pub precision: Option<Precision>,
    pub moments: Option<Moments>,
    /// Whether the optimizer keeps anything.
    pub keeps: bool,
    pub recompute: Option<Recompute>,
    /// How a training that is taken up again was begun.
    pub begun: Option<&'a Setting>,
    /// Whether samples are mixed with others of their batch.
    pub mixes: bool,
    pub threads: usize,
    pub compile: &'a dyn Fn(&Setting, usize) -> Program,
    /// What a program may take.
    pub room: Room<'a>,
    /// The same, where samples are to be held or read many at a time, and that takes more.
    pub roomy: Option<Room<'a>>,
    /// The whole peak with a program of so many bytes, so many threads, and batches of so many samples.
    pub peak: &'a dyn Fn(u64, usize, usize) -> u64,
    /// Sets of nodes to be made again, once they are found.
    pub sets: RefCell<Vec<(Precision, Vec<Vec<usize>>)>>,
    /// The ways that were compiled so far.
    pub ways: RefCell<Vec<Way>>,
}

/// What is left for a program with so many threads, for batches of so many samples; `None` if nothing is.
pub(super) type Room<'a> = &'a dyn Fn(usize, usize) -> Option<u64>;

/// A way to train.
#[derive(Clone)]
pub(super) struct Way {
    pub setting: Setting,
    pub threads: usize,
    pub bytes: u64,
    /// How long a step takes, in the unit of [`super::cost`].
    pub cost: f64,
    /// What does not stay the same.
    pub alters: Vec<String>,
}

impl Way {
    fn fits(&self, room: Room) -> bool {
        room(self.threads, self.setting.batch).is_some_and(|room| self.bytes <= room)
    }

    fn score(&self) -> f64 {
        self.cost * WORTH_A_CHANGE.powi(self.alters.len() as i32)
    }
}

impl Knobs<'_> {
    fn way(&self, setting: Setting, threads: usize) -> Way {
        let same = |way: &&Way| (&way.setting, way.threads) == (&setting, threads);
        let known = self.ways.borrow().iter().find(same).cloned();
        if let Some(way) = known {
            return way;
        }
        let way = self.compiled(setting, threads);
        self.ways.borrow_mut().push(way.clone());
        way
    }

    fn compiled(&self, setting: Setting, threads: usize) -> Way {
        let program = (self.compile)(&setting, threads);
        let mut alters = Vec::new();
        if setting.batch < self.plain.batch && program.norms_batches() {
            alters.push(format!(
                "batch norm sees {} samples at a time instead of {}; group_norm does not depend on it",
                setting.batch, self.plain.batch
            ));
        }
        if setting.batch < self.plain.batch && self.mixes {
            alters.push(format!(
                "samples are mixed with others of {} instead of {}",
                setting.batch, self.plain.batch
            ));
        }
        if setting.precision != self.plain.precision {
            alters.push("values that wait for the way back are rounded to bf16".into());
        }
        match setting.moments {
            moments if moments == self.plain.moments => {}
            Moments::Int8 => alters.push("the optimizer's moments are rounded to 8 bits in blocks".into()),
            _ => alters.push("the optimizer's moments are rounded to bf16".into()),
        }
        Way {
            bytes: program.bytes(),
            cost: program.cost() * f64::from(setting.accumulate),
            setting,
            threads,
            alters,
        }
    }

    /// As it was asked for.
    pub(super) fn plain(&self) -> Way {
        let recompute = match self.recompute {
            None | Some(Recompute::None) => Vec::new(),
            Some(Recompute::Cheap) => self.cheap(&self.recompute_sets(self.plain.precision)),
            Some(Recompute::Most) => self
                .recompute_sets(self.plain.precision)
                .pop()
                .unwrap_or_default(),
        };
        let setting = Setting {
            recompute,
            ..self.split(self.micro_batch.unwrap_or(self.plain.batch))
        };
        self.way(setting, self.threads)
    }

    /// The same step in smaller batches.
    fn split(&self, batch: usize) -> Setting {
        let times = (self.plain.batch / batch) as u32;
        Setting {
            batch,
            accumulate: self.plain.accumulate * times,
            ..self.plain.clone()
        }
    }

    /// The batches that make up the step evenly, the largest first.
    fn batches(&self) -> Vec<usize> {
        let whole = self.plain.batch;
        match self.micro_batch {
            Some(batch) => vec![batch],
            None => (1..=whole)
                .rev()
                .filter(|batch| whole.is_multiple_of(*batch))
                .collect(),
        }
    }

    /// Sets of nodes to be made again: each makes the program smaller than the one before, and slower.
    fn recompute_sets(&self, precision: Precision) -> Vec<Vec<usize>> {
        let mut known = self.sets.borrow_mut();
        if let Some((_, sets)) = known.iter().find(|(of, _)| *of == precision) {
            return sets.clone();
        }
        let sets = self.find_recompute_sets(precision);
        known.push((precision, sets.clone()));
        sets
    }

    fn find_recompute_sets(&self, precision: Precision) -> Vec<Vec<usize>> {
        let plain = (self.compile)(&self.plain, self.threads);
        let mut candidates = plain.recompute_candidates();
        candidates.insert(0, Vec::new());
        let measure = |recompute: Vec<usize>| {
            let setting = Setting {
                recompute,
                precision,
                ..self.plain.clone()
            };
            let program = (self.compile)(&setting, self.threads);
            (program.cost(), program.bytes(), setting.recompute)
        };
        let mut measured: Vec<(f64, u64, Vec<usize>)> = candidates.into_iter().map(measure).collect();
        measured.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
        let mut sets: Vec<Vec<usize>> = Vec::new();
        let mut least = u64::MAX;
        for (_, bytes, recompute) in measured {
            if bytes < least {
                least = bytes;
                sets.push(recompute);
            }
        }
        // What others start from, one by one, where that makes the smallest of them smaller still.
        for node in plain.asked_again() {
            let smallest = sets.last().filter(|set| !set.contains(&node));
            let Some(more) = smallest.map(|set| [set.as_slice(), &[node]].concat()) else {
                continue;
            };
            let (_, bytes, recompute) = measure(more);
            if bytes < least {
                least = bytes;
                sets.push(recompute);
            }
        }
        sets
    }

    /// The largest of the sets that takes next to no time.
    fn cheap(&self, sets: &[Vec<usize>]) -> Vec<usize> {
        let cost = |recompute: &Vec<usize>| {
            let recompute = recompute.clone();
            (self.compile)(
                &Setting {
                    recompute,
                    ..self.plain.clone()
                },
                self.threads,
            )
            .cost()
        };
        let most = cost(&Vec::new()) * (1.0 + CHEAP);
        let cheap = sets.iter().rev().find(|set| cost(set) <= most);
        cheap.cloned().unwrap_or_default()
    }

    /// The fastest way that fits, or the least that any takes.
    pub(super) fn choose(&self) -> Result<Way, Way> {
        // A training that was begun goes on as it was, as long as that fits.
        let begun = self.begun.filter(|begun| begun.step() == self.plain.step());
        let as_before = begun.and_then(|begun| {
            let ways = (1..=self.threads)
                .rev()
                .map(|threads| self.way(begun.clone(), threads));
            ways.into_iter().find(|way| way.fits(self.room))
        });
        if let Some(way) = as_before {
            return Ok(way);
        }
        let tight = self.choose_within(self.room)?;
        // One that leaves more room for samples may be quicker in all.
        let roomy = match self.roomy {
            Some(roomy) if !tight.fits(roomy) => self.choose_within(roomy).ok(),
            _ => None,
        };
        let waits = SINGLE_READ * self.plain.step() as f64;
        let better =
            |roomy: &Way| roomy.alters.len() <= tight.alters.len() && roomy.cost < tight.cost + waits;
        Ok(roomy.filter(better).unwrap_or(tight))
    }

    /// The fastest way for which there is room, or the least that any takes.
    fn choose_within(&self, room: Room) -> Result<Way, Way> {
        let plain = self.plain();
        if plain.fits(room) {
            return Ok(plain);
        }
        let sets_of = |precision: Precision| match self.recompute {
            None => self.recompute_sets(precision),
            Some(_) => vec![plain.setting.recompute.clone()],
        };
        let precisions = match self.precision {
            None => vec![self.plain.precision, Precision::Bf16],
            Some(_) => vec![self.plain.precision],
        };
        let mut moments = vec![self.plain.moments];
        if self.moments.is_none() && self.keeps {
            moments.extend([Moments::Bf16, Moments::Int8]);
        }
        let forms = precisions
            .iter()
            .flat_map(|precision| moments.iter().map(|moments| (*precision, *moments)));
        let peak = |way: &Way| (self.peak)(way.bytes, way.threads, way.setting.batch);
        let (mut best, mut least): (Option<Way>, Option<Way>) = (None, None);
        for threads in (1..=self.threads).rev() {
            for (precision, moments) in forms.clone() {
                // No other form is quicker than the plain way by more than what a change is worth.
                let most = plain.cost * WORTH_A_CHANGE;
                if best.as_ref().is_some_and(|best| best.score() <= most) {
                    break;
                }
                let sets = sets_of(precision);
                for batch in self.batches() {
                    let with = |set: &Vec<usize>| {
                        let setting = Setting {
                            precision,
                            moments,
                            recompute: set.clone(),
                            ..self.split(batch)
                        };
                        self.way(setting, threads)
                    };
                    // Each set takes less than the one before: the first that fits is the fastest of them.
                    let found = sets.partition_point(|set| !with(set).fits(room));
                    let way = with(&sets[found.min(sets.len() - 1)]);
                    if found < sets.len() {
                        if best.as_ref().is_none_or(|best| way.score() < best.score()) {
                            best = Some(way);
                        }
                        // A smaller batch only takes longer.
                        if sets[found].is_empty() {
                            break;
                        }
                    } else if least.as_ref().is_none_or(|least| peak(&way) < peak(least)) {
                        least = Some(way);
                    }
                }
            }
            if best.is_some() {
                break;
            }
        }
        best.ok_or_else(|| least.unwrap_or(plain))
    }

    /// What was changed, one by one, with what each change saves and costs.
    pub(super) fn changes(&self, way: &Way) -> Vec<Change> {
        let mut changes = Vec::new();
        let mut before = self.plain();
        let mut step = |knob: &str, to: String, setting: Setting, threads: usize, before: Way| {
            let after = self.way(setting, threads);
            if (&after.setting, threads) != (&before.setting, before.threads) {
                let new = after.alters.iter().find(|text| !before.alters.contains(text));
                changes.push(Change {
                    knob: knob.into(),
                    to,
                    saves: before.bytes.saturating_sub(after.bytes),
                    slowdown: after.cost / before.cost,
                    alters: new.cloned(),
                });
            }
            after
        };
        let chosen = &way.setting;
        before = step(
            "micro-batch",
            format!("{} batches of {} make up a step", chosen.accumulate, chosen.batch),
            Setting {
                batch: chosen.batch,
                accumulate: chosen.accumulate,
                ..before.setting.clone()
            },
            before.threads,
            before,
        );
        before = step(
            "recompute",
            format!(
                "what {} layers make is made again on the way back",
                chosen.recompute.len()
            ),
            Setting {
                recompute: chosen.recompute.clone(),
                ..before.setting.clone()
            },
            before.threads,
            before,
        );
        before = step(
            "precision",
            "values wait for the way back as bf16".into(),
            Setting {
                precision: chosen.precision,
                ..before.setting.clone()
            },
            before.threads,
            before,
        );
        before = step(
            "moments",
            match chosen.moments {
                Moments::Int8 => "the optimizer keeps a byte of each moment".into(),
                _ => "the optimizer keeps two bytes of each moment".into(),
            },
            Setting {
                moments: chosen.moments,
                ..before.setting.clone()
            },
            before.threads,
            before,
        );
        let setting = before.setting.clone();
        step(
            "threads",
            format!("{} instead of {}", way.threads, self.threads),
            setting,
            way.threads,
            before,
        );
        changes
    }

    /// Other ways to train, each with one thing changed.
    pub(super) fn alternatives(&self, chosen: &Way) -> Vec<Alternative> {
        let plain = self.plain();
        let sets = self.recompute_sets(self.plain.precision);
        let of = |setting: Setting| (setting, self.threads);
        let again = |recompute: Vec<usize>| {
            of(Setting {
                recompute,
                ..plain.setting.clone()
            })
        };
        let whole = plain.setting.batch;
        let divided = |by: usize| {
            (whole.is_multiple_of(by) && whole > by).then(|| {
                let (batch, times) = (whole / by, plain.setting.accumulate * by as u32);
                let setting = of(Setting {
                    batch,
                    accumulate: times,
                    ..plain.setting.clone()
                });
                (
                    format!("{times} batches of {batch} make up a step"),
                    format!("--micro-batch {batch}"),
                    setting,
                )
            })
        };
        let mut ways = vec![
            (
                "as it was asked for".to_string(),
                String::new(),
                of(plain.setting.clone()),
            ),
            (
                "values that are quickly made again are not kept".into(),
                "--recompute cheap".into(),
                again(self.cheap(&sets)),
            ),
            (
                "as many values as possible are made again".into(),
                "--recompute most".into(),
                again(sets.last().cloned().unwrap_or_default()),
            ),
        ];
        ways.extend([2, 4, 8].into_iter().filter_map(divided));
        let half = Setting {
            precision: Precision::Bf16,
            ..plain.setting.clone()
        };
        ways.push((
            "values wait for the way back as bf16".into(),
            "--precision bf16".into(),
            of(half),
        ));
        if self.keeps {
            let packed = |moments: Moments| {
                of(Setting {
                    moments,
                    ..plain.setting.clone()
                })
            };
            ways.push((
                "the optimizer keeps two bytes of each moment".into(),
                "--moments bf16".into(),
                packed(Moments::Bf16),
            ));
            ways.push((
                "the optimizer keeps a byte of each moment".into(),
                "--moments 8bit".into(),
                packed(Moments::Int8),
            ));
        }
        if self.threads > 1 {
            ways.push((
                "one thread".into(),
                "--threads 1".into(),
                (plain.setting.clone(), 1),
            ));
        }
        let peak = |way: &Way| (self.peak)(way.bytes, way.threads, way.setting.batch);
        let mut found: Vec<(Setting, usize)> = vec![(chosen.setting.clone(), chosen.threads)];
        let mut alternatives = Vec::new();
        for (what, how, (setting, threads)) in ways {
            if found.contains(&(setting.clone(), threads)) {
                continue;
            }
            found.push((setting.clone(), threads));
            let way = self.way(setting, threads);
            // What saves nothing is no other way.
            if peak(&way) < peak(&plain) || (&way.setting, way.threads) == (&plain.setting, plain.threads) {
                alternatives.push(Alternative {
                    what,
                    how,
                    peak: peak(&way),
                    slowdown: way.cost / plain.cost,
                    alters: way.alters.first().cloned(),
                });
            }
        }
        alternatives
    }
}
