//! `tidegate resume`

use std::path::Path;

use clap::Args;
use tidegate::{Result, resume};

use super::open;
use super::train::report;

#[derive(Args)]
pub(super) struct ResumeArguments {
    /// The run: its id, name, a unique beginning of either, or last
    run: String,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: ResumeArguments) -> Result<()> {
    let session = open(home)?;
    report(arguments.json, |watch| resume(&session, &arguments.run, watch))
}
