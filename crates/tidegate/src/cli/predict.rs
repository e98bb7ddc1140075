//! `tidegate predict`

use std::io::IsTerminal;
use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};
use console::style;
use tidegate::{Error, OutputFormat, PredictJob, Predicted, Result, predict};
use tidegate_data::BadRows;
use tidegate_memory::format_bytes;

use super::images::BadFilesChoice;
use super::reporter::Reporter;
use super::text::counted;
use super::{CsvArguments, MemoryArguments, open, print_json};

#[derive(Args)]
pub(super) struct PredictArguments {
    /// A run (id, name, a unique beginning of either, or last), or a model folder
    model: String,
    /// Files, folders or patterns ('flights/*.csv') with the columns that the model was trained on, or a database
    #[arg(required = true)]
    data: Vec<PathBuf>,
    /// Where predictions go [default: standard output]
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
    /// How they are written [default: by the name of the output, otherwise csv]
    #[arg(long, value_enum)]
    format: Option<FormatChoice>,
    /// What a database is asked, such as 'SELECT * FROM flights'
    #[arg(long, value_name = "SQL")]
    query: Option<String>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Threads; the result does not depend on it [default: one for each core]
    #[arg(long)]
    threads: Option<usize>,
    #[command(flatten)]
    csv: CsvArguments,
    /// What to do with files that are no images, or broken [default: skip]
    #[arg(long, value_enum, value_name = "skip|fail")]
    bad_files: Option<BadFilesChoice>,
    /// Print what it came to as JSON; needs --output
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum FormatChoice {
    Csv,
    Parquet,
}

impl PredictArguments {
    fn job(&self) -> Result<PredictJob> {
        let job = PredictJob {
            memory: self.memory.memory,
            model: self.model.clone(),
            data: self.data.clone(),
            query: self.query.clone(),
            output: self.output.clone(),
            format: self.format.map(|format| match format {
                FormatChoice::Csv => OutputFormat::Csv,
                FormatChoice::Parquet => OutputFormat::Parquet,
            }),
            delimiter: self.csv.delimiter.clone(),
            quote: self.csv.quote.clone(),
            header: self.csv.header(),
            bad_rows: self.csv.bad_rows.map_or(BadRows::Fail, Into::into),
            bad_files: self.bad_files.map(Into::into).unwrap_or_default(),
            missing: self.csv.missing.clone(),
            threads: self.threads,
        };
        let refuse = |what: &str| {
            Err(Error::Usage {
                what: what.into(),
                hint: "name a file with --output".into(),
            })
        };
        if self.json && job.output.is_none() {
            return refuse("--json prints what the predictions came to, and they need a place of their own");
        }
        let to_terminal = job.output.is_none() && std::io::stdout().is_terminal();
        if to_terminal && job.format() == OutputFormat::Parquet {
            return refuse("Parquet is not for reading on a terminal");
        }
        Ok(job)
    }
}

pub(super) fn run(home: &Path, arguments: PredictArguments) -> Result<()> {
    let job = arguments.job()?;
    let session = open(home)?;
    let mut reporter = Reporter::new(true);
    let predicted = predict(&session, &job, &mut |budget, update| {
        reporter.update(budget, update)
    });
    reporter.finish();
    let predicted = predicted?;
    if arguments.json {
        print_json(&predicted);
        return Ok(());
    }
    if let Some(first_bad) = &predicted.first_bad {
        let rows = counted(predicted.bad, "bad row");
        eprintln!("left out {rows}; the first is {first_bad}");
    }
    warnings(&predicted)
        .iter()
        .for_each(|text| eprintln!("{} {text}", style("warning:").yellow().for_stderr()));
    if job.output.is_some() {
        summary(&predicted).iter().for_each(|line| eprintln!("{line}"));
    }
    Ok(())
}

/// What a person should know of the values. Columns that the table lacks were told at the start.
fn warnings(predicted: &Predicted) -> Vec<String> {
    let mut warnings = Vec::new();
    for (column, unseen) in &predicted.unseen {
        let examples: Vec<String> = unseen.examples.iter().map(|value| format!("{value:?}")).collect();
        let have = if unseen.rows == 1 { "has" } else { "have" };
        warnings.push(format!(
            "{column}: {} {have} a value that was not seen in training, such as {}",
            counted(unseen.rows, "row"),
            examples.join(", ")
        ));
    }
    for (column, broken) in &predicted.broken {
        let (are, count) = match broken.values {
            1 => ("is", "counts"),
            _ => ("are", "count"),
        };
        warnings.push(format!(
            "{column}: {} {are} not what the column holds and {count} as missing, such as {:?} at {}",
            counted(broken.values, "value"),
            broken.first,
            broken.place
        ));
    }
    warnings
}

fn summary(predicted: &Predicted) -> Vec<String> {
    let mut lines = Vec::new();
    if predicted.unused.count > 0 {
        let columns = counted(predicted.unused.count, "column");
        lines.push(format!(
            "{columns} not used by the model: {}",
            predicted.unused.list()
        ));
    }
    let output = predicted.output.as_deref().unwrap_or(Path::new("-"));
    let of = match predicted.files {
        1 => String::new(),
        files => format!(" of {}", counted(files, "file")),
    };
    lines.push(format!(
        "{}{of} in {}; memory: peak {}",
        counted(predicted.rows, "prediction"),
        output.display(),
        predicted.peak.map_or("unavailable".into(), format_bytes),
    ));
    lines
}
