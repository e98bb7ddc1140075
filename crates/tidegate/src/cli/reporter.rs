//! What a person sees while a worker works: a bar on a terminal, plain lines elsewhere.

use std::time::{Duration, Instant};

use console::style;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate::worker::floor;
use tidegate_memory::{Budget, format_bytes};
use tidegate_runs::FlightRecord;
use tidegate_watch::{EncodedColumn, Event, Plan, Update};

use super::plan;
use super::text::{against, columns, counted, duration, figure, is_pace, metric_name, short, thousands};

/// Figures of an epoch on its line.
const TOLD_METRICS: usize = 3;
/// The stage in which trees are grown.
const TREE: &str = "tree";
/// Epochs of so many seconds are forecast.
const FORECAST: f64 = 2.0;
/// Without a terminal, a line of progress this often.
const LINE_EVERY: Duration = Duration::from_secs(5);

/// Writes to standard error; results go to standard output.
pub(super) struct Reporter {
    bar: Option<ProgressBar>,
    /// When the last line of progress was written, without a terminal.
    written: Instant,
    epoch: u32,
    epoch_started: Instant,
    memory: Option<u64>,
    budget: u64,
    /// Metrics of the epoch that has just ended, said together.
    metrics: Vec<(String, f64)>,
    epochs: u32,
    /// What is being done, by its first word: what is left of it is guessed from its own start.
    stage: String,
    /// Progress and warnings only.
    quiet: bool,
}

impl Reporter {
    pub(super) fn new(quiet: bool) -> Reporter {
        let terminal = console::user_attended_stderr();
        let bar = terminal.then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
            let template = "{prefix} {bar:16.cyan/dim} {percent:>3}%  {wide_msg}";
            let plain = ProgressStyle::default_bar();
            bar.set_style(
                ProgressStyle::with_template(template)
                    .unwrap_or(plain)
                    .progress_chars("━╸─"),
            );
            bar
        });
        Reporter {
            bar,
            written: Instant::now(),
            epoch: 0,
            epoch_started: Instant::now(),
            memory: None,
            budget: 0,
            metrics: Vec::new(),
            epochs: 0,
            stage: String::new(),
            quiet,
        }
    }

    pub(super) fn update(&mut self, budget: &Budget, update: Update) {
        self.budget = budget.bytes;
        if let Update::Started { .. } = update {
            self.epoch_started = Instant::now();
        }
        match update {
            // A budget below the floor is not what the kernel was told: the worker is about to refuse it.
            Update::Started { containment, .. } if !self.quiet && floor(budget.bytes) == budget.bytes => {
                self.started(budget, containment);
            }
            Update::Started { .. } => {}
            Update::Event(event) => self.event(event),
            Update::Sample(record) => self.memory = in_use(record),
            Update::Output { line, .. } => self.line(&format!("worker: {line}")),
            Update::Stopping { second: false } => {
                self.line("stopping: the worker saves what it has; once more to kill it");
            }
            Update::Stopping { second: true } => self.line("killing the worker"),
            // A budget of ours is planned: being near the line is nothing to worry about.
            Update::NearLine { .. } => {}
            Update::OverLine(over) => self.line(&format!(
                "{} its {} memory is {} of {}: stopping it",
                style("over the line:").red().for_stderr(),
                over.figure(),
                format_bytes(over.used),
                format_bytes(over.limit)
            )),
        }
    }

    /// A stage that is not a worker's: its name, how far it is, of how much.
    pub(super) fn stage(&mut self, name: &str, done: u64, total: u64) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(total);
                bar.set_position(done);
                bar.set_prefix(name.to_string());
                bar.set_message(format!("{} of {}", format_bytes(done), format_bytes(total)));
            }
            None if self.written.elapsed() >= LINE_EVERY => {
                self.written = Instant::now();
                eprintln!("{name}: {} of {}", format_bytes(done), format_bytes(total));
            }
            None => {}
        }
    }

    /// Takes the bar away.
    pub(super) fn finish(&mut self) {
        self.say_metrics();
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn started(&mut self, budget: &Budget, containment: &str) {
        let how = match containment.strip_prefix("watched") {
            Some(why) => format!("watched by tidegate{why}"),
            None => format!("enforced by {containment}"),
        };
        if budget.clipped
            && let Some(asked) = budget.asked
        {
            self.line(&format!(
                "note: {asked} were asked for, but {} allows no more than {}",
                budget.bound.name,
                format_bytes(budget.bytes)
            ));
        }
        self.line(&format!("memory {}, {how}", format_bytes(budget.bytes)));
    }

    fn event(&mut self, event: &Event) {
        match event {
            Event::Notice { text } if !self.quiet => self.line(text),
            Event::Encoding { columns, shape } if !self.quiet => {
                encoding_lines(columns).iter().for_each(|line| self.line(line));
                self.line(shape);
            }
            Event::Warning { text } => {
                self.line(&format!("{} {text}", style("warning:").yellow().for_stderr()))
            }
            Event::Plan(plan) if !self.quiet => {
                let Plan { holders, needs, .. } = &**plan;
                // Crumbs are in the sum, not in the list.
                let large = holders.iter().filter(|(_, bytes)| bytes * 100 >= *needs);
                let parts: Vec<String> = large
                    .map(|(name, bytes)| format!("{name} {}", format_bytes(*bytes)))
                    .collect();
                self.line(&format!(
                    "plan: {}: {}",
                    against(Some(*needs), Some(self.budget)),
                    parts.join(" · ")
                ));
                if let Some(changes) = plan::changes(&plan.changes) {
                    self.line(&format!("plan: changed to fit: {changes}"));
                }
            }
            // What is over in a moment needs no forecast.
            Event::Times(times) if !self.quiet && times.epoch_seconds.is_some_and(|s| s >= FORECAST) => {
                self.line(&format!("plan: {}", plan::times(Some(times))));
            }
            Event::Progress {
                epoch,
                epochs,
                done_bytes,
                total_bytes,
                rows,
                rows_per_second,
                loss,
                stall,
                bottleneck,
                phase,
                ..
            } => {
                self.epochs = *epochs;
                if *epoch != self.epoch {
                    self.say_metrics();
                    self.epoch = *epoch;
                }
                let name = phase.clone().unwrap_or_else(|| format!("epoch {epoch}/{epochs}"));
                let stage = name.split(' ').next().unwrap_or_default();
                if stage != self.stage {
                    self.stage = stage.into();
                    self.epoch_started = Instant::now();
                }
                let stall = stall.map(|stall| {
                    let by = bottleneck.as_deref().filter(|what| *what != "model");
                    let by = by.map_or(String::new(), |what| format!(" by {what}"));
                    format!("stall {:.0}%{by}", stall * 100.0)
                });
                let left = self.time_left(*done_bytes, *total_bytes);
                let figures = self.figures([left, stall], *rows, *rows_per_second, *loss);
                self.progress(&name, *done_bytes, *total_bytes, &figures);
            }
            // A line for each tree would be too many.
            Event::Metric { name, value, .. } if !is_pace(name) && self.stage != TREE => {
                self.metrics.push((name.clone(), *value));
            }
            Event::Checkpoint { .. } | Event::Done(_) | Event::Stopped { .. } => self.say_metrics(),
            _ => {}
        }
    }

    /// `memory 64 MB of 256 MB · 12 s left · stall 0% · 1.31 M rows/s · 3.8 M rows · loss 0.61`, what matters most
    /// first: a narrow terminal cuts the end.
    fn figures(&self, first: [Option<String>; 2], rows: u64, rate: f64, loss: Option<f64>) -> String {
        let mut parts = vec![format!("memory {}", against(self.memory, Some(self.budget)))];
        parts.extend(first.into_iter().flatten());
        if rows > 0 {
            parts.push(format!("{} rows/s", short(rate)));
            parts.push(format!("{} rows", short(rows as f64)));
        }
        parts.extend(loss.map(|loss| format!("loss {}", figure(loss))));
        parts.join(" · ")
    }

    /// A guess from the first moments would be wild.
    fn time_left(&self, done: u64, total: Option<u64>) -> Option<String> {
        let elapsed = self.epoch_started.elapsed().as_secs_f64();
        let total = total.filter(|total| elapsed >= 0.5 && done * 50 > *total || elapsed >= 3.0)?;
        let left = elapsed * (total.saturating_sub(done)) as f64 / done.max(1) as f64;
        Some(format!("{} left", duration(left)))
    }

    fn progress(&mut self, name: &str, done: u64, total: Option<u64>, figures: &str) {
        match &self.bar {
            Some(bar) => {
                bar.set_length(total.unwrap_or(done).max(1));
                bar.set_position(done);
                bar.set_prefix(name.to_string());
                bar.set_message(figures.to_string());
            }
            None if self.written.elapsed() >= LINE_EVERY => {
                self.written = Instant::now();
                let share = total.map_or(String::new(), |total| {
                    format!(" {:>3}%", done * 100 / total.max(1))
                });
                eprintln!("{name}{share}  {figures}");
            }
            None => {}
        }
    }

    fn say_metrics(&mut self) {
        let metrics = std::mem::take(&mut self.metrics);
        if metrics.is_empty() {
            return;
        }
        let took = duration(self.epoch_started.elapsed().as_secs_f64());
        self.epoch_started = Instant::now();
        if self.quiet {
            return;
        }
        // The loss and what stands for the model fit on a line; `show` has them all.
        let figures: Vec<String> = metrics
            .iter()
            .take(TOLD_METRICS)
            .map(|(name, value)| format!("{} {}", metric_name(name), figure(*value)))
            .collect();
        self.line(&format!(
            "epoch {}/{} in {took}: {}",
            self.epoch,
            self.epochs,
            figures.join(" · ")
        ));
    }

    fn line(&self, text: &str) {
        match &self.bar {
            // Above the bar, which is drawn again below.
            Some(bar) => bar.suspend(|| eprintln!("{text}")),
            None => eprintln!("{text}"),
        }
    }
}

/// Columns that are shown one by one at the most; a wider table is told by its shape.
const SHOWN_COLUMNS: usize = 60;

/// What every column becomes, as a table.
fn encoding_lines(all: &[EncodedColumn]) -> Vec<String> {
    let heading = [
        "column",
        "role",
        "distinct",
        "missing",
        "encoding",
        "columns",
        "bytes/row",
        "why",
    ];
    let mut rows = vec![heading.map(String::from).to_vec()];
    for column in all.iter().take(SHOWN_COLUMNS) {
        let left_out = column.dense + column.sparse == 0;
        rows.push(vec![
            column.name.clone(),
            column.role.clone(),
            column
                .distinct
                .map_or(String::new(), |n| thousands(n.round() as u64)),
            match column.missing {
                0.0 => String::new(),
                missing if missing < 0.0005 => "<0.1%".into(),
                missing => format!("{:.1}%", missing * 100.0),
            },
            column.encoding.clone(),
            if left_out {
                String::new()
            } else {
                thousands(column.dense + column.sparse)
            },
            if left_out {
                String::new()
            } else {
                figure(column.bytes_per_row).trim_end_matches(".000").into()
            },
            column.why.clone(),
        ]);
    }
    let mut lines = columns(&rows);
    if all.len() > SHOWN_COLUMNS {
        lines.push(format!(
            "and {} more",
            counted((all.len() - SHOWN_COLUMNS) as u64, "column")
        ));
    }
    lines.iter().map(|line| format!("  {line}")).collect()
}

/// The figure that counts against the line: what the kernel charges, else the worker's share of memory.
fn in_use(record: &FlightRecord) -> Option<u64> {
    record.cgroup_usage.or(record.proportional).or(record.resident)
}
