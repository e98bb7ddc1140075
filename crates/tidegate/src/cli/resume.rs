//! `tidegate resume`

use std::path::Path;

use clap::Args;
use tidegate::{Result, resume};
use tidegate_memory::Budget;
use tidegate_watch::Update;

use super::detach::detach;
use super::train::report;
use super::{MemoryArguments, open};

#[derive(Args)]
pub(super) struct ResumeArguments {
    /// The run: its id, name, a unique beginning of either, or last
    run: String,
    #[command(flatten)]
    memory: MemoryArguments,
    /// Leave it to itself once it is under way
    #[arg(long)]
    detach: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: ResumeArguments) -> Result<()> {
    let resume = |watch: &mut dyn FnMut(&Budget, Update)| {
        let session = open(home)?;
        resume(&session, &arguments.run, arguments.memory.memory, watch)
    };
    match arguments.detach {
        true => detach(home, arguments.json, resume),
        false => report(arguments.json, resume),
    }
}
