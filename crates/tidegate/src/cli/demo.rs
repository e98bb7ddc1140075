//! `tidegate demo`

use std::path::{Path, PathBuf};

use clap::Args;
use console::style;
use tidegate::{DemoOptions, Error, Proof, Result, Step, demo, write_table};
use tidegate_memory::{Amount, format_bytes};

use super::reporter::Reporter;
use super::text::{against, columns, counted, duration, figure, metric_name, thousands};
use super::{open, parse_amount, print_json, say};

#[derive(Args)]
pub(super) struct DemoArguments {
    /// The memory budget
    #[arg(long, value_name = "SIZE", value_parser = parse_amount, default_value = "128MB")]
    memory: Amount,
    /// How many times larger than the budget the table is
    #[arg(long, value_name = "N", default_value_t = 5.5)]
    times: f64,
    /// Decides what the table holds
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Leave the table on disk
    #[arg(long)]
    keep: bool,
    /// Only write a made-up table of this size to FILE
    #[arg(long, value_name = "FILE", requires = "size")]
    table: Option<PathBuf>,
    /// The size of that table
    #[arg(long, value_name = "SIZE", value_parser = parse_amount)]
    size: Option<Amount>,
    /// Print the proof as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: DemoArguments) -> Result<()> {
    let mut reporter = Reporter::new(arguments.json);
    if let (Some(path), Some(size)) = (&arguments.table, arguments.size) {
        let Amount::Bytes(bytes) = size else {
            let what = format!("--size {size} is a share of nothing");
            return Err(Error::Usage {
                what,
                hint: "give a size such as 2GB".into(),
            });
        };
        let rows = write_table(path, bytes, arguments.seed, |written| {
            reporter.stage("writing", written, bytes)
        })?;
        reporter.finish();
        say!("{} rows in {}", thousands(rows), path.display());
        return Ok(());
    }
    let session = open(home)?;
    let options = DemoOptions {
        memory: arguments.memory,
        times: arguments.times,
        seed: arguments.seed,
        keep: arguments.keep,
    };
    let proof = demo(&session, &options, &mut |step| match step {
        Step::Writing { bytes, of } => reporter.stage("writing a table", bytes, of),
        Step::Training(budget, update) => reporter.update(budget, update),
    });
    reporter.finish();
    let proof = proof?;
    if arguments.json {
        print_json(&proof);
    } else {
        print(&proof, arguments.keep);
    }
    match proof.held {
        true => Ok(()),
        false => Err(Error::Ended {
            message: "the line did not hold".into(),
            hint: Some(format!("see `tidegate show {}`", proof.trained.run.id)),
            exit_code: 1,
            run: None,
            least: None,
        }),
    }
}

fn print(proof: &Proof, keep: bool) {
    let (run, budget) = (&proof.trained.run, &proof.trained.budget);
    let times = proof.data_bytes as f64 / budget.bytes as f64;
    let metric = match proof.trained.report.metrics.first() {
        Some(metric) => format!(
            "{} {} (baseline {})",
            metric_name(&metric.name),
            figure(metric.value),
            metric.baseline.map_or("unavailable".into(), figure)
        ),
        None => "unavailable".into(),
    };
    let source = run.peak_source.as_deref().unwrap_or("unavailable");
    let facts = [
        (
            "table",
            format!(
                "{}, {} rows: {times:.1} times the budget",
                format_bytes(proof.data_bytes),
                thousands(proof.rows)
            ),
        ),
        (
            "budget",
            format!("{}, {}", format_bytes(budget.bytes), proof.trained.containment),
        ),
        (
            "kernel peak",
            format!("{} ({source})", against(run.peak_bytes, run.budget_bytes)),
        ),
        (
            "resident",
            run.resident_peak_bytes.map_or("unavailable".into(), |bytes| {
                format!("{} at the most, program code included", format_bytes(bytes))
            }),
        ),
        (
            "OOM kills",
            run.oom_kills
                .map_or("unavailable".into(), |kills| kills.to_string()),
        ),
        ("result", metric),
        (
            "took",
            format!(
                "{} for {}",
                duration(proof.trained.seconds),
                counted(proof.trained.report.epochs.into(), "epoch")
            ),
        ),
    ];
    say!(
        "{}",
        if proof.held {
            style("the line held").green().bold()
        } else {
            style("the line did not hold").red().bold()
        }
    );
    let rows: Vec<Vec<String>> = facts
        .into_iter()
        .map(|(name, value)| vec![name.to_string(), value])
        .collect();
    columns(&rows).iter().for_each(|line| say!("  {line}"));
    if keep {
        say!("the table is {}", proof.data.display());
    }
    say!(
        "next: tidegate show {} · tidegate train YOUR_TABLE --target COLUMN --memory 256MB",
        run.id
    );
}
