//! `tidegate why`

use std::path::{Path, PathBuf};

use clap::Args;
use console::style;
use tidegate::{Error, Explanation, Result, explain_foreign, explain_run};
use tidegate_memory::format_bytes;
use tidegate_runs::timestamp;
use tidegate_watch::readable;
use tidegate_watch::why::{
    Cause, DeviceSummary, Evidence, ForeignJob, Grade, Growth, Remedy, Standing, timeline,
};

use super::text::duration;
use super::{open, print_json, say};

/// Lines of the log that are shown, places where memory grew, remedies.
const LOG_LINES: usize = 10;
const PLACES: usize = 5;
const REMEDIES: usize = 6;
/// More characters of a line tell nothing more.
const LONGEST_LINE: usize = 300;
/// Growth of less than this is worth telling only where something went wrong.
const WORTH_TELLING: u64 = 10_000_000;

#[derive(Args)]
pub(super) struct WhyArguments {
    /// The run: its id, name, a unique beginning of either, or last
    #[arg(default_value = "last")]
    run: String,
    /// Explain a process of this machine instead, whether it lives or not
    #[arg(long, conflicts_with = "run", value_parser = clap::value_parser!(i32).range(1..), allow_hyphen_values = true)]
    pid: Option<i32>,
    /// Explain a job by its log instead; - is the standard input
    #[arg(long, value_name = "FILE", conflicts_with = "run")]
    log: Option<PathBuf>,
    /// Explain a job by how it ended, in any words: 137, 0:125, OOMKilled, SIGSEGV
    #[arg(long, value_name = "CODE", conflicts_with = "run", allow_hyphen_values = true)]
    exit: Option<String>,
    /// Plain text for an issue tracker
    #[arg(long)]
    report: bool,
    /// Print it as JSON
    #[arg(long, conflicts_with = "report")]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: WhyArguments) -> Result<()> {
    let job = ForeignJob {
        pid: arguments.pid,
        log: arguments.log.as_deref(),
        exit: arguments.exit.as_deref(),
    };
    let explanation = match job {
        ForeignJob {
            pid: None,
            log: None,
            exit: None,
        } => explain_run(&open(home)?, &arguments.run)?,
        job => explain_foreign(&job)?,
    };
    if arguments.json {
        print_json(&explanation);
        return Ok(());
    }
    if explanation.run.as_ref().is_some_and(|run| !run.status.is_over()) {
        return Err(Error::Usage {
            what: "this run is not over".into(),
            hint: "tidegate show tells how it stands".into(),
        });
    }
    print(&explanation, arguments.report);
    Ok(())
}

fn print(explanation: &Explanation, report: bool) {
    if report {
        console::set_colors_enabled(false);
    }
    let verdict = &explanation.verdict;
    let grade = match verdict.grade {
        Grade::Proven => style(verdict.grade.as_str()).green(),
        Grade::Likely => style(verdict.grade.as_str()).yellow(),
        Grade::Unknown => style(verdict.grade.as_str()).red(),
    };
    say!("{} {}", grade.bold(), style(&verdict.sentence).bold());
    let about = about(explanation);
    if !about.is_empty() {
        say!("{about}");
    }
    if report {
        say!("tidegate {} on {}", env!("CARGO_PKG_VERSION"), machine());
    }
    let unseen = |standing| standing == Standing::Unavailable || standing == Standing::Unsupported;
    evidence("evidence", &verdict.evidence, |standing| !unseen(standing));
    let width = match report {
        true => 80,
        false => usize::from(console::Term::stdout().size().1).clamp(60, 120),
    };
    let colour = !report && console::colors_enabled();
    let drawing = timeline(&explanation.case, width, 10).draw(colour);
    if explanation.case.flight.len() > 1 && !drawing.is_empty() {
        head("memory");
        for line in drawing {
            say!("{line}");
        }
        if let Some(pattern) = &verdict.pattern {
            say!("  {}", pattern.sentence);
        }
    }
    devices(&verdict.devices);
    // Of a run that did well, the memory of its imports is no news.
    let grown: u64 = verdict.growth.iter().map(|growth| growth.bytes).sum();
    if !verdict.growth.is_empty() && (verdict.cause != Cause::Success || grown >= WORTH_TELLING) {
        head("where it grew");
        verdict.growth.iter().take(PLACES).for_each(place);
    }
    if !explanation.case.log.is_empty() && verdict.cause != Cause::Success {
        head("last lines of the log");
        let lines = &explanation.case.log;
        for line in &lines[lines.len().saturating_sub(LOG_LINES)..] {
            say!("  {}", shown(&line.text));
        }
    }
    if !verdict.remedies.is_empty() {
        head("what would help");
        for (i, remedy) in verdict.remedies.iter().take(REMEDIES).enumerate() {
            self::remedy(i + 1, remedy, width);
        }
    }
    for note in &verdict.notes {
        say!("note: {}", shown(note));
    }
    evidence("not seen", &verdict.evidence, unseen);
}

/// What others wrote, as one line.
fn shown(text: &str) -> String {
    readable(text, LONGEST_LINE)
}

fn head(text: &str) {
    say!("\n{}", style(text).cyan());
}

/// What ran, when and for how long.
fn about(explanation: &Explanation) -> String {
    let facts = &explanation.case.facts;
    // Of a run of ours, as it was typed, and not how its worker was called.
    let typed = explanation.run.as_ref().map(|run| &run.command);
    let command = typed
        .filter(|command| !command.is_empty())
        .unwrap_or(&facts.command)
        .join(" ");
    let mut parts = Vec::new();
    if let Some(run) = &explanation.run {
        parts.push(format!("run {}", run.label()));
        parts.push(timestamp(run.created_ms));
    }
    if !command.is_empty() {
        parts.push(command);
    }
    parts.extend(facts.duration_ms.map(|ms| duration(ms as f64 / 1e3)));
    parts.extend(facts.limit.map(|limit| format!("limit {}", format_bytes(limit))));
    if !facts.containment.is_empty() {
        parts.push(facts.containment.clone());
    }
    shown(&parts.join(" · "))
}

fn machine() -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("Linux {}", kernel.trim())
}

fn evidence(title: &str, all: &[Evidence], wanted: impl Fn(Standing) -> bool) {
    let these = all.iter().filter(|evidence| wanted(evidence.standing));
    for (i, evidence) in these.enumerate() {
        if i == 0 {
            head(title);
        }
        say!("  {:<11} {}", evidence.standing.as_str(), shown(&evidence.text));
        say!("              {}", style(&evidence.source).dim());
    }
}

fn devices(all: &[DeviceSummary]) {
    if !all.is_empty() {
        head("devices");
        all.iter().for_each(|device| say!("  {}", device.line()));
    }
}

fn place(growth: &Growth) {
    let place = &growth.place;
    let place = match growth.cell {
        Some(cell) => format!("{} cell {cell} line {}", place.file, place.line),
        None => format!("{}:{} in {}", place.file, place.line, place.function),
    };
    say!(
        "  {:>4.0}%  {:>8}  {place}",
        100.0 * growth.share,
        format_bytes(growth.bytes),
    );
    if let Some(code) = &growth.code {
        say!("                   {}", style(shown(code)).dim());
    }
    if let Some(inner) = growth.within.last() {
        say!(
            "                   within {} ({}:{})",
            inner.function,
            inner.file,
            inner.line
        );
    }
}

fn remedy(number: usize, remedy: &Remedy, width: usize) {
    let saves = match remedy.saves {
        Some(bytes) => format!(", saves about {}", format_bytes(bytes)),
        None if remedy.measured || remedy.place.is_none() => String::new(),
        None => " (a hint: little or no growth was seen there)".into(),
    };
    say!("  {number}. {}{saves}", style(&remedy.title).bold());
    if let Some(place) = &remedy.place {
        // Of a notebook the function names the cell.
        match place.file.ends_with(".ipynb") {
            true => say!("     {} {} line {}", place.file, place.function, place.line),
            false => say!("     {}:{}", place.file, place.line),
        }
    }
    if let (Some(before), Some(after)) = (&remedy.before, &remedy.after) {
        before
            .lines()
            .for_each(|line| say!("       {}", style(format!("- {}", shown(line))).red()));
        after
            .lines()
            .for_each(|line| say!("       {}", style(format!("+ {}", shown(line))).green()));
    }
    if let Some(command) = &remedy.command {
        say!("       {}", style(command).green());
    }
    wrapped(&remedy.why, width, "     ");
}

/// A text in lines of at most this width, each with what goes before it.
fn wrapped(text: &str, width: usize, before: &str) {
    let room = width.saturating_sub(before.len()).max(20);
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > room {
            say!("{before}{line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    if !line.is_empty() {
        say!("{before}{line}");
    }
}
