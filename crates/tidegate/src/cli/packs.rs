//! `tidegate packs`

use std::path::Path;
use std::time::Duration;

use clap::Args;
use console::style;
use tidegate::{Error, Pack, Packs, PruneOptions, Pruned, Result, packs, prune_packs};
use tidegate_data::pack::Layout;
use tidegate_memory::{Amount, format_bytes};
use tidegate_runs::now_ms;

use super::text::{ago, columns, counted, thousands};
use super::{open, parse_amount, print_json, say};

#[derive(Args)]
pub(super) struct PacksArguments {
    /// Remove packs that are torn, and those that --keep, --older-than or --all name
    #[arg(long)]
    prune: bool,
    /// Remove those used longest ago until the others take no more than this: 10GB
    #[arg(long, value_name = "SIZE", requires = "prune", value_parser = parse_amount)]
    keep: Option<Amount>,
    /// Remove those that were not used for so many days
    #[arg(long, value_name = "DAYS", requires = "prune", allow_negative_numbers = true)]
    older_than: Option<f64>,
    /// Remove all of them
    #[arg(long, requires = "prune", conflicts_with_all = ["keep", "older_than"])]
    all: bool,
    /// Print it as JSON
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: PacksArguments) -> Result<()> {
    let session = open(home)?;
    if !arguments.prune {
        let packs = packs(&session)?;
        match arguments.json {
            true => print_json(&packs),
            false => print_packs(&packs),
        }
        return Ok(());
    }
    let options = PruneOptions {
        keep_bytes: arguments.keep.map(size).transpose()?,
        unused_for: arguments.older_than.map(days).transpose()?,
        all: arguments.all,
    };
    let pruned = prune_packs(&session, &options)?;
    match arguments.json {
        true => print_json(&pruned),
        false => print_pruned(&pruned, &options),
    }
    Ok(())
}

fn size(keep: Amount) -> Result<u64> {
    match keep {
        Amount::Bytes(bytes) => Ok(bytes),
        Amount::Share(_) => Err(Error::Usage {
            what: format!("--keep {keep} is not a size"),
            hint: "give 10GB, or 500MB".into(),
        }),
    }
}

fn days(days: f64) -> Result<Duration> {
    Duration::try_from_secs_f64(days * 86_400.0).map_err(|_| Error::Usage {
        what: format!("--older-than {days} is not a number of days"),
        hint: "give 30 for a month, 0.5 for half a day".into(),
    })
}

fn print_packs(packs: &Packs) {
    if packs.packs.is_empty() {
        say!("no packs in {}", packs.folder.display());
        return;
    }
    table(&packs.packs);
    say!(
        "{} in {}: {}",
        counted(packs.packs.len() as u64, "pack"),
        packs.folder.display(),
        format_bytes(packs.bytes)
    );
}

fn print_pruned(pruned: &Pruned, options: &PruneOptions) {
    if pruned.removed.is_empty() {
        let why = match *options == PruneOptions::default() {
            true => ": none is torn; say --keep SIZE, --older-than DAYS or --all",
            false => "",
        };
        say!("nothing to remove{why}");
    } else {
        table(&pruned.removed);
        say!(
            "removed {}: {} freed",
            counted(pruned.removed.len() as u64, "pack"),
            style(format_bytes(pruned.freed_bytes)).green()
        );
    }
    if !pruned.left.packs.is_empty() {
        let left = counted(pruned.left.packs.len() as u64, "pack");
        say!("{left} left: {}", format_bytes(pruned.left.bytes));
    }
}

fn table(packs: &[Pack]) {
    let names = ["PACK", "SIZE", "ROWS", "LAYOUT", "MADE", "LAST USED", "FROM"];
    let mut rows = vec![names.map(|name| style(name).dim().to_string()).to_vec()];
    rows.extend(packs.iter().map(|pack| row(pack, now_ms())));
    columns(&rows).iter().for_each(|line| say!("{line}"));
}

fn row(pack: &Pack, now: i64) -> Vec<String> {
    let age = |ms: i64| ago(now.saturating_sub(ms).max(0) as u64 / 1000);
    let used = pack.used_ms.map_or("-".into(), age);
    let key = style(&pack.key).cyan().to_string();
    let size = format_bytes(pack.bytes);
    let Some(contents) = &pack.contents else {
        let torn = style("torn").red().to_string();
        return vec![key, size, "-".into(), torn, "-".into(), used, "-".into()];
    };
    vec![
        key,
        size,
        match contents.layout {
            Layout::Unpacked => "-".into(),
            _ => thousands(contents.rows),
        },
        layout(&contents.layout),
        age(contents.created_ms),
        used,
        contents.source.clone(),
    ]
}

/// What a row holds.
fn layout(layout: &Layout) -> String {
    let values = |n: usize| thousands(n as u64);
    match *layout {
        Layout::Rows { dense, sparse: 0 } => format!("{} dense", values(dense)),
        Layout::Rows { dense: 0, sparse } => format!("{} sparse", values(sparse)),
        Layout::Rows { dense, sparse } => format!("{} dense + {} sparse", values(dense), values(sparse)),
        Layout::Bins { features } => format!("{} in bins", counted(features as u64, "feature")),
        Layout::Unpacked => "an array, unpacked".into(),
        Layout::Pixels { values: n } => format!("an image, {}", counted(n as u64, "byte")),
        Layout::Samples { values: n } => format!("{} of a sample", counted(n as u64, "value")),
    }
}
