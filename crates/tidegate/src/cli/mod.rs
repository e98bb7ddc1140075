//! One file per verb; what they share is here and in `reporter` and `text`.

mod demo;
mod detach;
mod doctor;
mod explain;
mod images;
mod packs;
mod plan;
mod predict;
mod preview;
mod reporter;
mod resume;
mod run;
mod runs;
mod show;
mod stop;
mod text;
mod train;
mod ui;
mod why;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use serde::Serialize;
use tidegate::{Error, Result, Session, worker};
use tidegate_data::BadRows;
use tidegate_memory::Amount;

/// Training that never floods memory: one number, the memory budget, and the line holds.
#[derive(Parser)]
#[command(name = "tidegate", version, max_term_width = 100)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
    /// Where runs are kept [default: $TIDEGATE_HOME, or .tidegate here]
    #[arg(long, global = true, value_name = "FOLDER")]
    home: Option<PathBuf>,
}

#[derive(Subcommand)]
enum Verb {
    /// Train a model on a table of any size, within a memory budget
    Train(Box<train::StartArguments>),
    /// Say what a training would take, by holder and layer, and how long, without training
    Plan(Box<plan::PlanArguments>),
    /// Take up a training that was stopped, from its last checkpoint
    Resume(resume::ResumeArguments),
    /// Ask a run that is under way to end, as Ctrl-C would
    Stop(stop::StopArguments),
    /// Stream a model's predictions for a table, arrays or images, within a memory budget
    Predict(predict::PredictArguments),
    /// Write a contact sheet of what a network will see of images, augmentation included
    Preview(Box<preview::PreviewArguments>),
    /// Show what a model relies on, column by column, and how far it can be trusted
    Explain(explain::ExplainArguments),
    /// Run any command as it is, watched, within a memory budget if asked for
    Run(run::RunArguments),
    /// Explain why a run ended: the verdict, its evidence, where memory grew, what would help
    Why(why::WhyArguments),
    /// List the runs, newest first
    Runs(runs::RunsArguments),
    /// Show one run
    Show(show::ShowArguments),
    /// Show the runs in a browser, live ones as they move, and start trainings there
    Ui(ui::UiArguments),
    /// List the packs of encoded rows that runs keep on disk, or remove some
    Packs(packs::PacksArguments),
    /// Show what this machine allows: the true budget, its bound, cgroups, pressure, disk
    Doctor(doctor::DoctorArguments),
    /// Train on a made-up table five times larger than its budget, and show the proof
    Demo(demo::DemoArguments),
    /// The supervised child, started by the other verbs
    #[command(hide = true)]
    Worker {
        task: String,
        #[arg(long)]
        events_fd: i32,
    },
}

/// How to read a CSV file; what is not said is inferred.
#[derive(Args)]
struct CsvArguments {
    /// The separator: a character, or tab, space, comma, semicolon, pipe
    #[arg(long, value_name = "CHAR")]
    delimiter: Option<String>,
    /// The quote: a character, or none
    #[arg(long, value_name = "CHAR")]
    quote: Option<String>,
    /// Whether the first row names the columns
    #[arg(long, value_name = "yes|no")]
    header: Option<YesNo>,
    /// A word for missing values beside the usual ones (empty, NA, NaN, null, ?); may be repeated
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    missing: Vec<String>,
    /// What to do with rows that cannot be read [default: fail]
    #[arg(long, value_name = "fail|skip")]
    bad_rows: Option<BadRowsChoice>,
}

#[derive(Clone, Copy, ValueEnum)]
enum YesNo {
    Yes,
    No,
}

#[derive(Clone, Copy, ValueEnum)]
enum BadRowsChoice {
    Fail,
    Skip,
}

impl From<BadRowsChoice> for BadRows {
    fn from(choice: BadRowsChoice) -> BadRows {
        match choice {
            BadRowsChoice::Fail => BadRows::Fail,
            BadRowsChoice::Skip => BadRows::Skip,
        }
    }
}

impl CsvArguments {
    fn header(&self) -> Option<bool> {
        self.header.map(|choice| matches!(choice, YesNo::Yes))
    }
}

/// `--memory SIZE`, the same everywhere.
#[derive(Args)]
struct MemoryArguments {
    /// The memory budget: 2GB, 1.5GiB, 512M, 80% [default: 80% of what the machine allows]
    #[arg(long, value_name = "SIZE", value_parser = parse_amount, allow_hyphen_values = true)]
    memory: Option<Amount>,
}

fn parse_amount(text: &str) -> std::result::Result<Amount, String> {
    text.parse()
        .map_err(|error: tidegate_memory::Error| match error.hint() {
            Some(hint) => format!("{error}; {hint}"),
            None => error.to_string(),
        })
}

/// Runs the verb and returns the exit code.
pub(crate) fn run(arguments: Arguments) -> i32 {
    let home = arguments.home.unwrap_or_else(Session::default_home);
    let done = match arguments.verb {
        Verb::Worker { task, events_fd } => return worker::run(&task, events_fd),
        Verb::Train(arguments) => train::run(&home, *arguments),
        Verb::Plan(arguments) => plan::run(&home, *arguments),
        Verb::Resume(arguments) => resume::run(&home, arguments),
        Verb::Stop(arguments) => stop::run(&home, arguments),
        Verb::Predict(arguments) => predict::run(&home, arguments),
        Verb::Preview(arguments) => preview::run(&home, *arguments),
        Verb::Explain(arguments) => explain::run(&home, arguments),
        Verb::Run(arguments) => match run::run(&home, arguments) {
            Ok(exit_code) => return exit_code,
            Err(error) => Err(error),
        },
        Verb::Why(arguments) => why::run(&home, arguments),
        Verb::Runs(arguments) => runs::run(&home, arguments),
        Verb::Show(arguments) => show::run(&home, arguments),
        Verb::Ui(arguments) => ui::run(&home, arguments),
        Verb::Packs(arguments) => packs::run(&home, arguments),
        Verb::Doctor(arguments) => doctor::run(arguments),
        Verb::Demo(arguments) => demo::run(&home, arguments),
    };
    match done {
        Ok(()) => 0,
        Err(error) => {
            complain(&error);
            error.exit_code()
        }
    }
}

/// What failed, then what to do about it.
fn complain(error: &Error) {
    let stopped = matches!(error.exit_code(), 130 | 143);
    let word = if stopped {
        console::style("stopped").yellow()
    } else {
        console::style("error").red()
    };
    eprintln!("{}: {}", word.for_stderr().bold(), error.message());
    if let Some(hint) = error.hint() {
        eprintln!("  hint: {hint}");
    }
}

/// Opens the store and says what was tidied up.
fn open(home: &std::path::Path) -> Result<Session> {
    let session = Session::open(home)?;
    for run in &session.recovered {
        let error = run.error.as_deref().unwrap_or("its supervisor was gone");
        eprintln!("note: run {} was found dead and closed: {error}", run.label());
    }
    if let Some(error) = &session.unrecovered {
        eprintln!("warning: dead runs could not be closed: {}", error.message());
    }
    Ok(session)
}

/// Prints a line; a reader that has gone away (`tidegate runs | head`) is no reason to complain.
macro_rules! say {
    ($($argument:tt)*) => {{
        use std::io::Write;
        let _ = writeln!(std::io::stdout(), $($argument)*);
    }};
}
use say;

/// Prints plain data as JSON.
fn print_json(value: &impl serde::Serialize) {
    say!(
        "{}",
        serde_json::to_string_pretty(value).expect("plain data serializes")
    );
}

/// An error as JSON, for programs that ask: on standard output, where they look for the answer.
#[derive(Serialize)]
struct Problem {
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The least budget that would do, where it was too small.
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<u64>,
    /// What is left of the attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<String>,
}

fn print_problem(error: &Error) {
    let run = match error {
        Error::Ended { run, .. } => run.clone(),
        _ => None,
    };
    print_json(&Problem {
        error: error.message(),
        hint: error.hint(),
        least: error.least(),
        run,
    });
}
