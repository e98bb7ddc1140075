//! `tidegate runs`

use std::path::Path;

use clap::Args;
use console::style;
use serde::Serialize;
use tidegate::Result;
use tidegate_runs::{ListOptions, Run, Status, now_ms};

use super::text::{against, ago, columns, duration, figure, metric_name, off};
use super::{open, print_json, say};

#[derive(Args)]
pub(super) struct RunsArguments {
    /// How many of them
    #[arg(long, default_value_t = 20)]
    limit: usize,
    /// Print them as JSON
    #[arg(long)]
    json: bool,
}

/// A run, and how far its plan was off.
#[derive(Serialize)]
struct Listed {
    #[serde(flatten)]
    run: Run,
    plan_error: Option<f64>,
}

pub(super) fn run(home: &Path, arguments: RunsArguments) -> Result<()> {
    let session = open(home)?;
    let runs = session.store.list(&ListOptions {
        limit: Some(arguments.limit),
        ..ListOptions::default()
    })?;
    if arguments.json {
        let listed = |run| Listed {
            plan_error: Run::plan_error(&run),
            run,
        };
        print_json(&runs.into_iter().map(listed).collect::<Vec<_>>());
        return Ok(());
    }
    if runs.is_empty() {
        say!(
            "no runs yet in {}: tidegate train DATA --target COLUMN, or tidegate demo",
            session.store.home().display()
        );
        return Ok(());
    }
    let names = [
        "RUN",
        "NAME",
        "STATUS",
        "MODEL",
        "METRIC",
        "PEAK OF BUDGET",
        "PLAN OFF",
        "TOOK",
        "STARTED",
    ];
    let mut rows = vec![names.map(|name| style(name).dim().to_string()).to_vec()];
    rows.extend(runs.iter().map(|run| row(run, now_ms())));
    columns(&rows).iter().for_each(|line| say!("{line}"));
    Ok(())
}

fn row(run: &Run, now: i64) -> Vec<String> {
    let metric = match (&run.metric_name, run.metric_value) {
        (Some(name), Some(value)) => format!("{} {}", metric_name(name), figure(value)),
        _ => "-".into(),
    };
    vec![
        run.id.clone(),
        run.name.clone().unwrap_or_else(|| "-".into()),
        status(run.status),
        run.model.clone().unwrap_or_else(|| "-".into()),
        metric,
        against(run.peak_bytes, run.budget_bytes),
        off(run.plan_error()),
        run.duration_ms(now)
            .map_or("-".into(), |ms| duration(ms as f64 / 1e3)),
        ago(now.saturating_sub(run.created_ms).max(0) as u64 / 1000),
    ]
}

/// A status in its colour.
pub(super) fn status(status: Status) -> String {
    let word = style(status.as_str());
    match status {
        Status::Done => word.green(),
        Status::Failed => word.red(),
        Status::Stopped => word.yellow(),
        Status::Starting | Status::Running => word.cyan(),
    }
    .to_string()
}
