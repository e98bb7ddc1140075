//! `tidegate predict`

use std::path::{Path, PathBuf};

use clap::Args;
use tidegate::{PredictJob, Result, predict};
use tidegate_data::BadRows;
use tidegate_memory::format_bytes;

use super::reporter::Reporter;
use super::text::counted;
use super::{CsvArguments, MemoryArguments, open};

#[derive(Args)]
pub(super) struct PredictArguments {
    /// A run (id, name, a unique beginning of either, or last), or a model folder
    model: String,
    /// A CSV file with the columns that the model was trained on
    data: PathBuf,
    /// Where predictions go, as CSV [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Threads; the result does not depend on it [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    #[command(flatten)]
    csv: CsvArguments,
}

pub(super) fn run(home: &Path, arguments: PredictArguments) -> Result<()> {
    let session = open(home)?;
    let header = arguments.csv.header();
    let job = PredictJob {
        memory: arguments.memory.memory,
        model: arguments.model,
        data: arguments.data,
        output: arguments.output,
        delimiter: arguments.csv.delimiter,
        quote: arguments.csv.quote,
        header,
        bad_rows: arguments.csv.bad_rows.map_or(BadRows::Fail, Into::into),
        missing: arguments.csv.missing,
        threads: arguments.threads,
    };
    let mut reporter = Reporter::new(true);
    let predicted = predict(&session, &job, &mut |budget, update| {
        reporter.update(budget, update)
    });
    reporter.finish();
    let predicted = predicted?;
    if let Some(first_bad) = &predicted.first_bad {
        eprintln!(
            "left out {}; the first is {first_bad}",
            counted(predicted.bad, "bad row")
        );
    }
    if let Some(output) = &job.output {
        let peak = predicted.peak.map_or("unavailable".into(), format_bytes);
        let predictions = counted(predicted.rows, "prediction");
        eprintln!("{predictions} in {}; memory: peak {peak}", output.display());
    }
    Ok(())
}
