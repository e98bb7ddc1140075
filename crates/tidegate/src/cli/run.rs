//! `tidegate run`

use std::ffi::OsString;
use std::io::{IsTerminal, Write};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::time::Duration;

use clap::Args;
use tidegate::{Command, Error, Ran, Result};
use tidegate_memory::{Amount, Host, format_bytes};
use tidegate_watch::why::{Cause, Grade};
use tidegate_watch::{Event, Exit, Update, UserManager};

use super::{open, parse_amount};

#[derive(Args)]
pub(super) struct RunArguments {
    /// Contain the command: no more memory than this for it and all that it starts
    #[arg(long, value_name = "SIZE", value_parser = parse_amount, allow_hyphen_values = true)]
    memory: Option<Amount>,
    /// A name for the run
    #[arg(long)]
    name: Option<String>,
    /// Near the line, send this signal once so that the command can save: USR1, TERM, 10
    #[arg(long, value_name = "SIGNAL", value_parser = parse_signal)]
    before_kill: Option<i32>,
    /// Where the kernel does not hold the line: between asking the command to end and killing it
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = parse_time)]
    grace: Duration,
    /// If it dies of memory, run it again up to so many times, with TIDEGATE_SCALE=0.5, 0.25, … in its environment
    #[arg(long, value_name = "N", default_value_t = 0)]
    retry: u32,
    /// The command and its arguments
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    command: Vec<OsString>,
}

/// Runs the command; the value is what to exit with.
pub(super) fn run(home: &Path, arguments: RunArguments) -> Result<i32> {
    if arguments.memory.is_some() {
        enter_scope();
    }
    let session = open(home)?;
    let command = Command {
        words: arguments.command,
        name: arguments.name,
        memory: arguments.memory,
        before_kill: arguments.before_kill,
        grace: arguments.grace,
        retry: arguments.retry,
    };
    let mut on_update = |update: Update| match update {
        Update::NearLine { used, limit } => {
            let share = 100 * used / limit.max(1);
            note(&format!(
                "near the line: {} of {} ({share}%)",
                format_bytes(used),
                format_bytes(limit)
            ));
        }
        Update::OverLine(over) => note(&format!(
            "over the line: {} of {}, it is asked to end",
            format_bytes(over.used),
            format_bytes(over.limit)
        )),
        Update::Event(Event::Warning { text }) => note(text),
        _ => {}
    };
    let mut again = |ran: &Ran, scale: f64| {
        tell(ran);
        note(&format!("trying again with TIDEGATE_SCALE={scale}"));
    };
    let ran = match tidegate::run(&session, &command, &mut on_update, &mut again) {
        Ok(ran) => ran,
        // As a shell says it.
        Err(Error::Watch(tidegate_watch::Error::Spawn { program, source })) => {
            let code = match source.kind() {
                std::io::ErrorKind::NotFound => 127,
                _ => 126,
            };
            super::complain(&Error::Watch(tidegate_watch::Error::Spawn { program, source }));
            return Ok(code);
        }
        Err(error) => return Err(error),
    };
    if ran.verdict.cause != Cause::Success {
        tell(&ran);
    }
    Ok(leave(ran.exit()))
}

/// Goes on in a scope of the user's systemd, where that lets the kernel hold the line and nothing else does.
fn enter_scope() {
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let program = std::env::current_exe().map(OsString::from);
    let words: Vec<OsString> = program.into_iter().chain(words).collect();
    let scope = UserManager::find().and_then(|manager| manager.own_scope(&Host::live(), &words));
    if let Some(mut command) = scope {
        // Where it comes back, the command is only watched, and that is said.
        let _ = command.exec();
    }
}

/// Says why it ended, in one line, and how to learn more.
fn tell(ran: &Ran) {
    let verdict = &ran.verdict;
    let grade = match verdict.grade {
        Grade::Unknown => String::new(),
        grade => format!(" ({})", grade.as_str()),
    };
    note(&format!("{}{grade}", verdict.sentence));
    note(&format!("more: tidegate why {}", ran.run.id));
}

/// A line of ours among the output of the command. Its terminal may be raw, where a new line does not begin at the left.
fn note(text: &str) {
    let end = match std::io::stderr().is_terminal() {
        true => "\r\n",
        false => "\n",
    };
    let name = console::style("tidegate:").cyan().for_stderr();
    let _ = write!(std::io::stderr(), "{name} {text}{end}");
}

/// Ends as the command did: with its code, or of its signal.
fn leave(exit: Exit) -> i32 {
    match exit {
        Exit::Code(code) => code,
        Exit::Unknown => 1,
        Exit::Signal(signal) => {
            tidegate_watch::die_of(signal);
            128 + signal
        }
    }
}

fn parse_signal(text: &str) -> std::result::Result<i32, String> {
    tidegate_watch::signal_number(text)
        .ok_or_else(|| format!("{text:?} is no signal; give a name or a number: USR1, TERM, 10"))
}

/// `30s`, `2m`, `500ms`, `1h`; a bare number is seconds.
fn parse_time(text: &str) -> std::result::Result<Duration, String> {
    let split = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(split);
    let factor = match unit.trim() {
        "ms" => 1e-3,
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        _ => f64::NAN,
    };
    let seconds = number.parse::<f64>().map_or(f64::NAN, |number| number * factor);
    Duration::try_from_secs_f64(seconds)
        .map_err(|_| format!("{text:?} is no time; give one like 30s, 2m or 500ms"))
}
