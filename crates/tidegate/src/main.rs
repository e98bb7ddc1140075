//! The command line: parses, calls a verb of the library, prints.

mod cli;

use std::process::ExitCode;

use clap::Parser;
use tidegate_memory::{Counting, give_freed_memory_back};

#[global_allocator]
static ALLOCATOR: Counting = Counting::new();

fn main() -> ExitCode {
    give_freed_memory_back();
    let exit_code = cli::run(cli::Arguments::parse());
    // Exit codes are 0, 1, 2, 130 and 143, and those of a command that `run` runs.
    ExitCode::from(u8::try_from(exit_code).unwrap_or(1))
}
