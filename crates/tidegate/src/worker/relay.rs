//! What trainers say, on its way to the supervisor.

use std::ops::ControlFlow;

use tidegate_data::Table;
use tidegate_data::arrays::ArraySource;
use tidegate_memory::Ledger;
use tidegate_train::{Event as Told, interval};
use tidegate_watch::{Event, Plan};

use super::times::FirstSteps;
use super::{Rate, Speaker, largest_stage};
use crate::{Error, Job};

/// What a training learns from.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub target: Option<String>,
    pub rows: Option<u64>,
    pub bytes: u64,
}

impl About {
    pub(super) fn samples(job: &Job, source: &ArraySource) -> About {
        About {
            target: Some(job.data.target.clone()).filter(|target| !target.is_empty()),
            rows: Some(source.n_samples()),
            bytes: source.bytes(),
        }
    }

    pub(super) fn table(table: &Table) -> About {
        About {
            target: Some(table.encoders.target_column.clone()),
            rows: table.source.rows_guess(),
            bytes: table.source.bytes(),
        }
    }
}

impl About {
    /// A plan with what is known of its data.
    pub(super) fn complete(&self, plan: Plan, kind: &str, budget: u64) -> Event {
        Event::Plan(Box::new(Plan {
            interval: Some(interval(plan.needs, budget)),
            budget: Some(budget),
            model: Some(kind.into()),
            target: self.target.clone(),
            rows: self.rows,
            data_bytes: Some(self.bytes),
            ..plan
        }))
    }
}

/// Turns what the trainer says into events on the wire.
pub(super) struct Relay<'a> {
    pub speaker: &'a Speaker,
    pub ledger: &'a Ledger,
    pub about: About,
    pub kind: &'static str,
    /// What is known of the plan beside its holders.
    pub details: Plan,
    /// What is held at other times than while it trains, before or after.
    pub stages: Vec<Vec<(String, u64)>>,
    rate: Rate,
    first_steps: FirstSteps,
}

impl<'a> Relay<'a> {
    pub(super) fn new(
        speaker: &'a Speaker,
        ledger: &'a Ledger,
        about: About,
        kind: &'static str,
    ) -> Relay<'a> {
        Relay {
            speaker,
            ledger,
            about,
            kind,
            details: Plan::default(),
            stages: Vec::new(),
            rate: Rate::new(),
            first_steps: FirstSteps::of(kind),
        }
    }
}

impl Relay<'_> {
    pub(super) fn metric(&self, epoch: u32, name: &str, value: f64) {
        self.speaker.say(Event::Metric {
            epoch,
            step: 0,
            name: name.into(),
            value,
        });
    }

    pub(super) fn tell(&mut self, event: Told) {
        self.speaker.ledger_at_times(self.ledger);
        match event {
            Told::Plan { holders } => {
                let stages = std::iter::once(holders).chain(std::mem::take(&mut self.stages));
                let (holders, needs) = largest_stage(stages.collect(), self.ledger);
                let plan = Plan {
                    holders,
                    needs,
                    ..std::mem::take(&mut self.details)
                };
                let event = self.about.complete(plan, self.kind, self.ledger.budget());
                self.speaker.say(event);
            }
            Told::Notice(text) => self.speaker.say(Event::Notice { text }),
            Told::Warning { text, error } => {
                let text = match error {
                    Some(error) => format!("{text}: {}", Error::from(error).message()),
                    None => text,
                };
                self.speaker.say(Event::Warning { text });
            }
            Told::Progress {
                epoch,
                epochs,
                step,
                consumed,
                total,
                rows,
                loss,
                fed,
            } => {
                let trees = self.kind == "boost";
                // Trees go over the same rows again and again: their rate is one of all rows so far.
                let rows_per_second = self.rate.at(if trees { 1 } else { epoch }, rows);
                self.speaker.say(Event::Progress {
                    epoch,
                    epochs,
                    step,
                    done_bytes: consumed,
                    total_bytes: Some(total),
                    rows,
                    rows_per_second,
                    loss,
                    stall: fed.map(|fed| fed.stall),
                    bottleneck: fed.map(|fed| fed.bottleneck.as_str().into()),
                    phase: trees.then(|| format!("tree {epoch}/{epochs}")),
                });
                if let Some(times) = self.first_steps.hear(epoch, step, consumed, total) {
                    self.speaker.say(Event::Times(times));
                }
            }
            Told::Epoch {
                epoch,
                loss,
                metrics,
                learning_rate,
                rows_per_second,
                fed,
            } => {
                self.metric(epoch, "training_loss", loss);
                metrics.iter().for_each(|m| self.metric(epoch, &m.name, m.value));
                if let Some(fed) = fed {
                    self.metric(epoch, "stall", fed.stall);
                }
                if let Some(rate) = learning_rate {
                    // As a person would write it: 0.001, not 0.0010000000474974513.
                    let written = rate.to_string().parse();
                    self.metric(epoch, "learning_rate", written.unwrap_or(rate.into()));
                }
                self.metric(epoch, "rows_per_second", rows_per_second);
            }
            Told::Checkpoint { epoch, step } => self.speaker.say(Event::Checkpoint {
                epoch,
                step,
                bytes: None,
            }),
        }
    }
}

/// Data passed over outside of a training: encoders are fitted, rows are encoded, predictions are made.
pub(super) struct Passing<'a> {
    speaker: &'a Speaker,
    /// Told on the way, where a plan is set beside it.
    ledger: Option<&'a Ledger>,
    phase: &'static str,
    /// 0 before a training; a prediction is one epoch.
    epochs: u32,
    total: u64,
    rate: Rate,
}

impl<'a> Passing<'a> {
    pub(super) fn before(
        speaker: &'a Speaker,
        ledger: &'a Ledger,
        phase: &'static str,
        total: u64,
    ) -> Passing<'a> {
        Passing {
            speaker,
            ledger: Some(ledger),
            phase,
            epochs: 0,
            total,
            rate: Rate::new(),
        }
    }

    pub(super) fn predicting(speaker: &'a Speaker, total: u64) -> Passing<'a> {
        Passing {
            speaker,
            ledger: None,
            phase: "predict",
            epochs: 1,
            total,
            rate: Rate::new(),
        }
    }

    /// Says how many of so many are done, where how many there are comes to light on the way.
    pub(super) fn tell_of(&mut self, done: u64, total: u64) -> ControlFlow<()> {
        self.total = total;
        self.tell(done, done, done)
    }

    /// Says how far it is; breaks off when asked to stop.
    pub(super) fn tell(&mut self, step: u64, done_bytes: u64, rows: u64) -> ControlFlow<()> {
        if let Some(ledger) = self.ledger {
            self.speaker.ledger_at_times(ledger);
        }
        self.speaker.say(Event::Progress {
            epoch: self.epochs,
            epochs: self.epochs,
            step,
            done_bytes,
            total_bytes: Some(self.total),
            rows,
            rows_per_second: self.rate.at(self.epochs, rows),
            loss: None,
            stall: None,
            bottleneck: None,
            phase: Some(self.phase.into()),
        });
        match self.speaker.is_stopped() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    }
}
