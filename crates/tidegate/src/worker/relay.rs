//! What trainers say, on its way to the supervisor.

use tidegate_data::Table;
use tidegate_memory::Ledger;
use tidegate_train::Event as Told;
use tidegate_watch::Event;

use super::{Rate, Speaker, largest_stage};
use crate::Error;

/// What a training learns from.
#[derive(Debug, Clone)]
pub(super) struct About {
    pub target: Option<String>,
    pub rows: Option<u64>,
    pub bytes: u64,
}

impl About {
    pub(super) fn table(table: &Table) -> About {
        About {
            target: Some(table.encoders.target_column.clone()),
            rows: table.source.rows_guess(),
            bytes: table.source.bytes(),
        }
    }
}

/// Turns what the trainer says into events on the wire.
pub(super) struct Relay<'a> {
    pub speaker: &'a Speaker,
    pub ledger: &'a Ledger,
    pub about: About,
    pub kind: &'static str,
    pub rate: Rate,
}

impl Relay<'_> {
    pub(super) fn tell(&mut self, event: Told) {
        self.speaker.ledger_at_times(self.ledger);
        match event {
            Told::Plan { holders } => {
                let (holders, needs) = largest_stage(vec![holders], self.ledger);
                self.speaker.say(Event::Plan {
                    holders,
                    needs,
                    note: None,
                    model: Some(self.kind.into()),
                    target: self.about.target.clone(),
                    rows: self.about.rows,
                    data_bytes: Some(self.about.bytes),
                });
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
                    phase: trees.then(|| format!("tree {epoch}/{epochs}")),
                });
            }
            Told::Epoch { epoch, loss, metrics } => {
                let metric = |name: String, value: f64| Event::Metric {
                    epoch,
                    step: 0,
                    name,
                    value,
                };
                self.speaker.say(metric("training_loss".into(), loss));
                metrics
                    .into_iter()
                    .for_each(|m| self.speaker.say(metric(m.name, m.value)));
            }
            Told::Checkpoint { epoch, step } => self.speaker.say(Event::Checkpoint {
                epoch,
                step,
                bytes: None,
            }),
        }
    }
}
