//! `tidegate stop`

use std::path::Path;

use clap::Args;
use serde::Serialize;
use tidegate::{HowToStop, Result, stop};
use tidegate_runs::Run;

use super::{open, print_json, print_problem, say};

#[derive(Args)]
pub(super) struct StopArguments {
    /// The run: its id, name, a unique beginning of either, or last
    run: String,
    /// Do not wait until it has saved what it has: kill it
    #[arg(long)]
    kill: bool,
    /// Print the run as JSON
    #[arg(long)]
    json: bool,
}

/// The run as it stands then.
#[derive(Serialize)]
struct Stopped {
    run: Run,
}

pub(super) fn run(home: &Path, arguments: StopArguments) -> Result<()> {
    let how = match arguments.kill {
        true => HowToStop::Kill,
        false => HowToStop::Ask,
    };
    let stopped = open(home).and_then(|session| stop(&session, &arguments.run, how));
    let run = stopped.inspect_err(|error| {
        if arguments.json {
            print_problem(error);
        }
    })?;
    if arguments.json {
        print_json(&Stopped { run });
    } else if run.status.is_over() {
        say!("run {} is {}", run.label(), run.status);
    } else {
        say!("run {} was asked to end; see `tidegate show {0}`", run.label());
    }
    Ok(())
}
