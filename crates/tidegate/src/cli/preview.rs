//! `tidegate preview`

use std::path::{Path, PathBuf};

use clap::Args;
use console::style;
use tidegate::{Job, Result, preview};

use super::images::ImageArguments;
use super::reporter::Reporter;
use super::text::counted;
use super::{MemoryArguments, open, print_json, say};

#[derive(Args)]
pub(super) struct PreviewArguments {
    /// A folder of images, a table of their paths, or a job file (.toml)
    data: PathBuf,
    /// Where the sheet goes, a PNG
    #[arg(long, short, value_name = "FILE", default_value = "preview.png")]
    output: PathBuf,
    /// Rows of the sheet
    #[arg(long, value_name = "N", default_value_t = 8)]
    rows: usize,
    /// Of a table, the column to predict
    #[arg(long, value_name = "COLUMN")]
    target: Option<String>,
    /// Decides which images are shown, and how they are augmented [default: 7]
    #[arg(long)]
    seed: Option<u64>,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Print what is on the sheet as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    images: ImageArguments,
}

pub(super) fn run(home: &Path, arguments: PreviewArguments) -> Result<()> {
    let mut job = match arguments.data.extension().is_some_and(|ending| ending == "toml") {
        true => Job::read(&arguments.data)?,
        false => Job::new(vec![arguments.data.clone()], ""),
    };
    arguments.images.apply(&mut job);
    job.memory = arguments.memory.memory.or(job.memory);
    job.train.seed = arguments.seed.unwrap_or(job.train.seed);
    if let Some(target) = &arguments.target {
        job.data.target.clone_from(target);
    }
    let session = open(home)?;
    let mut reporter = Reporter::new(arguments.json);
    let shown = preview(
        &session,
        &job,
        &arguments.output,
        arguments.rows,
        &mut |budget, update| reporter.update(budget, update),
    );
    reporter.finish();
    let shown = shown?;
    if arguments.json {
        print_json(&shown);
        return Ok(());
    }
    let images = counted(shown.images, "image");
    let how = match shown.versions {
        1 => "as the network sees them".to_string(),
        n => format!("each as it is and {} times augmented", n - 1),
    };
    say!("{}: {images}, {how}", style(shown.output.display()).bold());
    Ok(())
}
