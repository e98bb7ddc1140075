//! `tidegate show`

use std::path::Path;

use clap::Args;
use serde::Serialize;
use tidegate::{Explained, Result, explain_model};
use tidegate_memory::format_bytes;
use tidegate_runs::{Metric, Part, Run, now_ms, tail, timestamp};
use tidegate_train::network::Fed;
use tidegate_train::{RUNTIME, Report};
use tidegate_watch::{Plan, readable};

use super::explain::by_column;
use super::runs::status;
use super::text::{against, columns, counted, duration, figure, is_pace, metric_name, off, thousands};
use super::train::{fold_lines, metric_lines, oom_kills};
use super::{open, plan, print_json, say};

/// Columns that a run is shown with; `explain` has them all.
const SHOWN_COLUMNS: usize = 8;
/// Epochs that are shown, the last ones.
const SHOWN_EPOCHS: usize = 10;
/// Lines of the log that are shown, and characters of each.
const LOG_LINES: usize = 10;
const LONGEST_LINE: usize = 2_000;

#[derive(Args)]
pub(super) struct ShowArguments {
    /// The run: its id, name, a unique beginning of either, or last
    run: String,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

/// Everything that is known of a run.
#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    run: Run,
    /// What was predicted, whole, and how far it was off.
    plan: Option<Plan>,
    plan_error: Option<f64>,
    /// The parts of the plan, and what each of them held.
    parts: Vec<Part>,
    metrics: Vec<Metric>,
    report: Option<Report>,
    #[serde(skip)]
    explained: Option<Explained>,
    job: Option<String>,
    log_tail: Vec<String>,
    folder: String,
}

pub(super) fn run(home: &Path, arguments: ShowArguments) -> Result<()> {
    let session = open(home)?;
    let run = session.store.find(&arguments.run)?;
    let dir = session.store.run_dir(&run.id);
    let mut shown = Shown {
        plan: read_plan(&dir.plan()),
        plan_error: run.plan_error(),
        parts: measured(session.store.parts(&run.id)?),
        metrics: session.store.metrics(&run.id)?,
        report: Report::load(&dir.model()).ok(),
        explained: match arguments.json {
            true => None,
            false => explain_model(&dir.model()).ok(),
        },
        job: std::fs::read_to_string(dir.job()).ok(),
        log_tail: log_tail(&dir.log()),
        folder: dir.path().display().to_string(),
        run,
    };
    if arguments.json {
        print_json(&shown);
    } else {
        print(&mut shown);
    }
    Ok(())
}

fn print(shown: &mut Shown) {
    let run = &shown.run;
    let name = run
        .name
        .as_ref()
        .map_or(String::new(), |name| format!(" ({name})"));
    let took = run.duration_ms(now_ms()).map_or(String::new(), |ms| {
        format!(" after {}", duration(ms as f64 / 1e3))
    });
    say!("run {}{name}: {}{took}", run.id, status(run.status));
    if let Some(error) = &run.error {
        say!("  {error}");
    }
    if let Some(hint) = &run.hint {
        say!("  hint: {hint}");
    }
    let unavailable = || "unavailable".to_string();
    let size = |bytes: Option<u64>| bytes.map_or_else(unavailable, format_bytes);
    let mut facts = vec![
        ("started", timestamp(run.created_ms)),
        (
            "data",
            format!(
                "{} ({})",
                run.data.as_deref().unwrap_or("-"),
                size(run.data_bytes)
            ),
        ),
        ("target", run.target.clone().unwrap_or_else(|| "-".into())),
        ("model", run.model.clone().unwrap_or_else(|| "-".into())),
        ("rows", run.rows.map_or_else(unavailable, thousands)),
        (
            "budget",
            format!(
                "{}; the machine's bound: {}",
                size(run.budget_bytes),
                run.bound.as_deref().unwrap_or("-")
            ),
        ),
        ("held by", run.containment.clone().unwrap_or_else(unavailable)),
        ("planned", planned(shown)),
        (
            "peak",
            format!(
                "{} ({})",
                against(run.peak_bytes, run.budget_bytes),
                run.peak_source.as_deref().unwrap_or("not measured")
            ),
        ),
        ("resident peak", size(run.resident_peak_bytes)),
        ("OOM kills", oom_kills(run.oom_kills)),
    ];
    if let Some(times) = shown.plan.as_ref().and_then(|plan| plan.times.as_ref()) {
        facts.push(("time", plan::times(Some(times))));
    }
    if let Some(changes) = shown.plan.as_ref().and_then(|plan| plan::changes(&plan.changes)) {
        facts.push(("changed to fit", changes));
    }
    if let Some(signal) = run.signal {
        facts.push(("signal", signal.to_string()));
    }
    if let Some(code) = run.exit_code {
        facts.push(("exit code", code.to_string()));
    }
    facts.push(("folder", shown.folder.clone()));
    let rows: Vec<Vec<String>> = facts
        .into_iter()
        .map(|(name, value)| vec![name.to_string(), value])
        .collect();
    columns(&rows).iter().for_each(|line| say!("  {line}"));
    print_parts(&shown.parts, run);
    if let Some(report) = &shown.report {
        print_report(report);
    }
    if let Some(explained) = &mut shown.explained
        && !explained.columns.is_empty()
    {
        explained.columns.truncate(SHOWN_COLUMNS);
        say!("what it relies on, see tidegate explain {}:", run.id);
        by_column(explained).iter().for_each(|line| say!("  {line}"));
    }
    // Trees have a curve, not epochs.
    if run.model.as_deref() != Some("boost") {
        print_epochs(&shown.metrics);
    }
    if run.error.is_some() && !shown.log_tail.is_empty() {
        say!("last lines of the log:");
        shown.log_tail.iter().for_each(|line| say!("  {line}"));
    }
}

/// The last lines of the log, fit for a terminal that is not theirs: each behind its time and where it came from.
fn log_tail(path: &Path) -> Vec<String> {
    let lines = tail(path, LOG_LINES).unwrap_or_default();
    let line = |line: &String| match line.match_indices(' ').nth(1) {
        Some((at, _)) => format!("{} {}", &line[..at], readable(&line[at + 1..], LONGEST_LINE)),
        None => line.clone(),
    };
    lines.iter().map(line).collect()
}

/// The plan of a run, where it has one that can be read.
fn read_plan(path: &Path) -> Option<Plan> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

/// What was predicted, and how far that was off.
fn planned(shown: &Shown) -> String {
    let Some(needs) = shown.run.needs_bytes else {
        return "unavailable".into();
    };
    let between = shown.plan.as_ref().and_then(|plan| plan.interval);
    let between = between.map_or(String::new(), |(low, high)| {
        format!(", between {} and {}", format_bytes(low), format_bytes(high))
    });
    let error = match shown.plan_error {
        Some(error) => format!("; {} against the peak", off(Some(error))),
        None => String::new(),
    };
    format!("{}{between}{error}", format_bytes(needs))
}

/// Of the program itself the ledger knows only what was planned: nobody measured it apart from the rest.
fn measured(mut parts: Vec<Part>) -> Vec<Part> {
    for part in parts.iter_mut().filter(|part| part.name == RUNTIME) {
        part.held_bytes = None;
    }
    parts
}

/// The plan against what was held, and all together against what the kernel counted.
fn print_parts(parts: &[Part], run: &Run) {
    if parts.is_empty() {
        return;
    }
    let size = |bytes: Option<u64>| bytes.map_or_else(|| "-".into(), format_bytes);
    let mut rows = vec![["MEMORY", "PLANNED", "AT THE PEAK"].map(String::from).to_vec()];
    let some = |bytes: Option<u64>| bytes.is_some_and(|bytes| bytes > 0);
    rows.extend(
        parts
            .iter()
            .filter(|part| some(part.planned_bytes) || some(part.held_bytes))
            .map(|part| vec![part.name.clone(), size(part.planned_bytes), size(part.held_bytes)]),
    );
    rows.push(vec![
        "together".into(),
        size(run.needs_bytes),
        size(run.peak_bytes),
    ]);
    columns(&rows).iter().for_each(|line| say!("  {line}"));
}

/// What became of the rows, and how good the model is.
fn print_report(report: &Report) {
    let rows = &report.rows;
    let left_out = [
        (rows.bad, "bad"),
        (rows.without_target, "without a target"),
        (rows.not_asked, "not asked for"),
    ];
    let left_out: Vec<String> = left_out
        .iter()
        .filter(|(n, _)| *n > 0)
        .map(|(n, why)| format!("{} {why}", counted(*n, "row")))
        .collect();
    if !left_out.is_empty() {
        say!("left out: {}", left_out.join(" · "));
    }
    rows.warnings().iter().for_each(|text| say!("{text}"));
    print_fed(&report.fed);
    if let Some(early) = &report.early_stop {
        say!(
            "ended early: {} were tried, those up to {} are kept",
            early.epochs,
            early.best_epoch
        );
    }
    let lines = if !report.folds.is_empty() {
        say!("metrics over {} folds:", report.folds.len());
        fold_lines(&report.over_folds())
    } else if report.metrics.is_empty() {
        say!(
            "no rows were held out: the training loss is {}",
            figure(report.training_loss)
        );
        Vec::new()
    } else {
        say!("metrics on {} held out:", counted(rows.held_out, "row"));
        metric_lines(&report.metrics)
    };
    lines.iter().for_each(|line| say!("  {line}"));
}

/// How the last epochs were fed: how long the model waited, and what the threads that bring samples did meanwhile.
fn print_fed(fed: &[Fed]) {
    if fed.is_empty() {
        return;
    }
    let header = [
        "FED",
        "TOOK",
        "STALL",
        "HELD UP BY",
        "READING",
        "DECODING",
        "AUGMENTING",
    ];
    let mut rows = vec![header.map(String::from).to_vec()];
    let first = fed.len().saturating_sub(SHOWN_EPOCHS);
    rows.extend(fed.iter().enumerate().skip(first).map(|(epoch, fed)| {
        let times = [fed.times.reading, fed.times.decoding, fed.times.augmenting];
        let fixed = [
            format!("epoch {}", epoch + 1),
            duration(fed.seconds),
            format!("{:.1}%", fed.stall * 100.0),
            fed.bottleneck.in_words().into(),
        ];
        fixed.into_iter().chain(times.map(duration)).collect()
    }));
    columns(&rows).iter().for_each(|line| say!("  {line}"));
}

/// One line an epoch.
fn print_epochs(metrics: &[Metric]) {
    let mut epochs: Vec<u32> = metrics.iter().map(|metric| metric.epoch).collect();
    epochs.dedup();
    let hidden = match epochs.len() {
        n if n > 2 * SHOWN_EPOCHS => n - SHOWN_EPOCHS,
        _ => 0,
    };
    if hidden > 0 {
        say!("{} came before:", counted(hidden as u64, "epoch"));
    }
    for epoch in epochs.split_off(hidden) {
        let of_epoch = metrics
            .iter()
            .filter(|metric| metric.epoch == epoch && !is_pace(&metric.name));
        let figures: Vec<String> = of_epoch
            .map(|metric| match metric.name.as_str() {
                "stall" => format!("stall {:.1}%", metric.value * 100.0),
                name => format!("{} {}", metric_name(name), figure(metric.value)),
            })
            .collect();
        say!("epoch {epoch}: {}", figures.join(" · "));
    }
}
