//! `tidegate resume`

use std::path::Path;

use clap::Args;
use tidegate::{Result, resume};

use super::reporter::Reporter;
use super::train::print_trained;
use super::{open, print_json};

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
    let mut reporter = Reporter::new(arguments.json);
    let trained = resume(&session, &arguments.run, &mut |budget, update| {
        reporter.update(budget, update)
    });
    reporter.finish();
    let trained = trained?;
    if arguments.json {
        print_json(&trained);
    } else {
        print_trained(&trained);
    }
    Ok(())
}
