//! `tidegate doctor`

use std::path::PathBuf;

use clap::Args;
use console::style;
use tidegate::{Diagnosis, Error, Result, diagnose};
use tidegate_memory::{Pressure, format_bytes};

use super::text::columns;
use super::{print_json, say};

#[derive(Args)]
pub(super) struct DoctorArguments {
    /// The folder whose disk is looked at
    #[arg(default_value = ".")]
    folder: PathBuf,
    /// Leave out what takes a moment: how fast the disk is
    #[arg(long)]
    quick: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(arguments: DoctorArguments) -> Result<()> {
    if !arguments.folder.is_dir() {
        let what = format!("{}: no such folder", arguments.folder.display());
        return Err(Error::Usage {
            what,
            hint: "name a folder whose disk is to be looked at".into(),
        });
    }
    let diagnosis = diagnose(&arguments.folder, !arguments.quick)?;
    if arguments.json {
        print_json(&diagnosis);
    } else {
        print(&diagnosis);
    }
    Ok(())
}

fn print(found: &Diagnosis) {
    let budget = &found.budget;
    say!(
        "{} may use {} here",
        style("a job").bold(),
        style(format_bytes(budget.whole())).bold()
    );
    say!("  bound by {}", budget.bound.name);
    say!("  by default it takes 80%: {}", format_bytes(budget.bytes));
    let good = |ok: bool| {
        if ok {
            style("✓").green()
        } else {
            style("!").yellow()
        }
    };
    let size = |bytes: Option<u64>| bytes.map_or("unavailable".into(), format_bytes);
    let line = match found.enforced {
        true => format!("enforced by the kernel ({})", found.containment),
        false => format!("not enforced by the kernel, {}", found.containment),
    };
    let memory = &found.memory;
    let swap = match (memory.swap_total, memory.swap_free) {
        (Some(0), _) => "none".into(),
        (total, free) => format!("{} free of {}", size(free), size(total)),
    };
    let disk = match found.disk {
        Some(disk) => format!(
            "writes {}/s, reads {}/s",
            format_bytes(disk.write as u64),
            format_bytes(disk.read as u64)
        ),
        None => "speed unavailable".into(),
    };
    let calm = |pressure: &Option<Pressure>| {
        pressure
            .as_ref()
            .is_none_or(|pressure| pressure.some_avg10 < 10.0)
    };
    let rows = [
        (found.enforced, "the line", line),
        (
            true,
            "memory",
            format!(
                "{} available of {}, {} cores",
                size(memory.available),
                size(memory.total),
                found.cores
            ),
        ),
        (true, "swap", swap),
        (
            calm(&found.memory_pressure),
            "memory pressure",
            pressure(&found.memory_pressure),
        ),
        (
            calm(&found.io_pressure),
            "disk pressure",
            pressure(&found.io_pressure),
        ),
        (
            found.free_bytes.is_none_or(|free| free > 1_000_000_000),
            "disk",
            format!(
                "{} free in {}; {disk}",
                size(found.free_bytes),
                found.folder.display()
            ),
        ),
    ];
    let rows: Vec<Vec<String>> = rows
        .into_iter()
        .map(|(ok, name, value)| vec![good(ok).to_string(), name.into(), value])
        .collect();
    columns(&rows).iter().for_each(|line| say!("{line}"));
    say!("{}", style("every bound that was looked at").dim());
    let bounds: Vec<Vec<String>> = budget
        .bounds
        .iter()
        .map(|bound| vec![bound.limit.to_string(), bound.name.clone()])
        .collect();
    columns(&bounds).iter().for_each(|line| say!("  {line}"));
}

fn pressure(pressure: &Option<Pressure>) -> String {
    match pressure {
        Some(pressure) => format!(
            "{:.1}% of the last 10 s some task waited, {:.1}% of the last minute",
            pressure.some_avg10, pressure.some_avg60
        ),
        None => "unavailable".into(),
    }
}
