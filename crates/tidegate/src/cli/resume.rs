//! `tidegate resume`

use std::path::Path;

use clap::Args;
use tidegate::{Result, resume};

use super::train::report;
use super::{MemoryArguments, open};

#[derive(Args)]
pub(super) struct ResumeArguments {
    /// The run: its id, name, a unique beginning of either, or last
    run: String,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: ResumeArguments) -> Result<()> {
    let session = open(home)?;
    let memory = arguments.memory.memory;
    report(arguments.json, |watch| {
        resume(&session, &arguments.run, memory, watch)
    })
}
