//! `tidegate explain`

use std::path::{Path, PathBuf};

use clap::Args;
use console::style;
use serde::Serialize;
use tidegate::{Explained, Importance, Previewed, Result, Session, explain, mistakes};
use tidegate_train::ClassReport;

use super::reporter::Reporter;
use super::text::{columns, counted, figure, thousands};
use super::train::{fold_lines, metric_lines};
use super::{open, print_json, say};

/// Characters of the longest bar.
const BAR: usize = 16;
/// A confusion matrix of more classes than this is told by its worst pairs.
const MATRIX: usize = 10;
/// Mistakes on a sheet at the most.
const SHOWN: usize = 36;

#[derive(Args)]
pub(super) struct ExplainArguments {
    /// A run (id, name, a unique beginning of either, or last), or a model folder
    model: String,
    /// Lines of each table at the most
    #[arg(long, value_name = "N", default_value_t = 15)]
    top: usize,
    /// Of images: where the contact sheet of the worst mistakes goes, a PNG; beside the model unless given
    #[arg(long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Print it as JSON, without a contact sheet unless it is said where it goes
    #[arg(long)]
    json: bool,
}

pub(super) fn run(home: &Path, arguments: ExplainArguments) -> Result<()> {
    let session = open(home)?;
    let mut explained = explain(&session, &arguments.model)?;
    if arguments.json {
        let sheet = match arguments.output {
            Some(_) => show_mistakes(&session, &arguments)?,
            None => None,
        };
        print_json(&Told { explained, sheet });
        return Ok(());
    }
    headline(&explained);
    if explained.kind == "network" {
        print_by_class(&explained, arguments.top);
        print_calibration(&explained);
        print_confusion(&explained, arguments.top);
        print_residuals(&explained);
        return print_mistakes(&session, &arguments);
    }
    let n_columns = explained.columns.len();
    let folded = explained.columns.iter().any(|column| column.width > 1) || explained.classes.len() > 2;
    explained.columns.truncate(arguments.top);
    say!("\n{}", style(by_column_title(&explained)).bold());
    by_column(&explained).iter().for_each(|line| say!("  {line}"));
    more(n_columns, arguments.top, "column");
    if folded || explained.kind == "linear" {
        explained.encoded.truncate(arguments.top);
        let title = match explained.kind.as_str() {
            "linear" => "largest weights on standardised columns",
            _ => "by encoded column",
        };
        say!("\n{}", style(title).bold());
        by_encoded(&explained).iter().for_each(|line| say!("  {line}"));
    }
    if explained
        .columns
        .iter()
        .any(|column| column.importance.permutation.is_some())
    {
        let text =
            "SHUFFLED: how much the loss of the rows held out rises when the column is shuffled among them";
        say!("  {}", style(text).dim());
    }
    print_calibration(&explained);
    print_residuals(&explained);
    print_confusion(&explained, arguments.top);
    Ok(())
}

/// What is told as JSON.
#[derive(Serialize)]
struct Told {
    #[serde(flatten)]
    explained: Explained,
    /// The contact sheet of mistakes, where one was asked for and there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    sheet: Option<Previewed>,
}

/// Writes the images that the network was most sure of and wrong about onto a sheet.
fn show_mistakes(session: &Session, arguments: &ExplainArguments) -> Result<Option<Previewed>> {
    let mut reporter = Reporter::new(true);
    let shown = mistakes(
        session,
        &arguments.model,
        arguments.output.as_deref(),
        SHOWN,
        &mut |budget, update| reporter.update(budget, update),
    );
    reporter.finish();
    shown
}

fn print_mistakes(session: &Session, arguments: &ExplainArguments) -> Result<()> {
    if let Some(shown) = show_mistakes(session, arguments)? {
        say!("\n{}", style("most sure of and wrong").bold());
        let images = counted(shown.images, "image");
        say!(
            "  {}: {images}, the surest first",
            style(shown.output.display()).bold()
        );
    }
    Ok(())
}

/// What the model is and how good.
fn headline(explained: &Explained) {
    let (kind, grown) = match explained.kind.as_str() {
        "boost" => ("boosted trees", counted(explained.epochs.into(), "round")),
        "network" => ("a network", counted(explained.epochs.into(), "epoch")),
        _ => ("a linear model", counted(explained.epochs.into(), "epoch")),
    };
    let values = match explained.task.as_str() {
        "regression" => "a number".into(),
        "binary" => explained.classes.join(" or "),
        "multiclass" => format!("one of {} values", explained.classes.len()),
        several => format!("several {several}"),
    };
    let rows = rows(explained);
    match explained.target.is_empty() {
        true => say!("{values}, by {kind}: {grown} on {rows}"),
        false => say!(
            "{}, {values}, by {kind}: {grown} on {rows}",
            style(&explained.target).bold()
        ),
    }
    let lines = match explained.over_folds.is_empty() {
        true => metric_lines(&explained.metrics),
        false => fold_lines(&explained.over_folds),
    };
    lines.iter().for_each(|line| say!("  {line}"));
}

/// How well each class is told from the others, the worst first.
fn print_by_class(explained: &Explained, top: usize) {
    let mut classes: Vec<&ClassReport> = explained.by_class.iter().collect();
    if classes.is_empty() {
        return;
    }
    classes.sort_by(|a, b| a.f1.total_cmp(&b.f1));
    say!("\n{}", style("by class, the worst first").bold());
    let share = |value: f64| format!("{value:.3}");
    let header = ["CLASS", "ROWS", "PRECISION", "RECALL", "F1"]
        .map(String::from)
        .to_vec();
    let row = |class: &&ClassReport| {
        let [precision, recall, f1] = [class.precision, class.recall, class.f1].map(share);
        vec![class.class.clone(), thousands(class.rows), precision, recall, f1]
    };
    let rows = std::iter::once(header).chain(classes.iter().take(top).map(row));
    aligned(rows.collect(), 1)
        .iter()
        .for_each(|line| say!("  {line}"));
    more(explained.by_class.len(), top, "class");
}

fn rows(explained: &Explained) -> String {
    let rows = &explained.rows;
    let trained = counted(rows.used - rows.held_out, "row");
    match rows.held_out {
        0 => trained,
        held_out => format!("{trained}, judged on {} held out", thousands(held_out)),
    }
}

fn by_column_title(explained: &Explained) -> &'static str {
    match explained.kind.as_str() {
        "linear" => "importance by column: the sum of its weights without their signs",
        _ => "importance by column: how much its splits lowered the loss",
    }
}

fn more(n: usize, shown: usize, what: &str) {
    if n > shown {
        let rest = counted((n - shown) as u64, what);
        say!("  {}", style(format!("and {rest} more: --top {n}")).dim());
    }
}

/// One line a column of the table.
pub(super) fn by_column(explained: &Explained) -> Vec<String> {
    let largest = explained
        .columns
        .first()
        .map_or(0.0, |column| column.importance.share);
    let mut rows = vec![vec![
        "COLUMN".to_string(),
        "ENCODING".into(),
        "IMPORTANCE".into(),
        String::new(),
    ]];
    heading(
        &explained
            .columns
            .iter()
            .map(|column| column.importance)
            .collect::<Vec<_>>(),
        &mut rows[0],
        "LARGEST WEIGHT",
    );
    for column in &explained.columns {
        let encoding = match column.width {
            1 => column.encoding.clone(),
            width => format!("{} × {}", column.encoding, thousands(width)),
        };
        let mut row = vec![column.column.clone(), encoding];
        row.extend(measures(&column.importance, largest));
        rows.push(row);
    }
    aligned(rows, 3)
}

/// One line an encoded column, with the column that it comes from.
fn by_encoded(explained: &Explained) -> Vec<String> {
    let largest = explained
        .encoded
        .first()
        .map_or(0.0, |encoded| encoded.importance.share);
    let several = explained.encoded.iter().any(|encoded| encoded.class.is_some());
    let mut rows = vec![vec!["ENCODED".to_string(), "COLUMN".into()]];
    if several {
        rows[0].push("FOR".into());
    }
    rows[0].extend(["IMPORTANCE".to_string(), String::new()]);
    heading(
        &explained
            .encoded
            .iter()
            .map(|encoded| encoded.importance)
            .collect::<Vec<_>>(),
        &mut rows[0],
        "WEIGHT",
    );
    for encoded in &explained.encoded {
        let mut row = vec![encoded.name.clone(), encoded.column.clone()];
        row.extend(encoded.class.clone());
        row.extend(measures(&encoded.importance, largest));
        rows.push(row);
    }
    aligned(rows, if several { 4 } else { 3 })
}

/// The names of the figures that are there.
fn heading(all: &[Importance], row: &mut Vec<String>, weight: &str) {
    let first = all.first().copied().unwrap_or_default();
    let has_permutation = all.iter().any(|importance| importance.permutation.is_some());
    row.extend(first.splits.map(|_| "SPLITS".to_string()));
    row.extend(has_permutation.then(|| "SHUFFLED".to_string()));
    row.extend(first.weight.map(|_| weight.to_string()));
}

/// A bar, the share, and the figures that are there.
fn measures(importance: &Importance, largest: f64) -> Vec<String> {
    let mut cells = vec![
        style(bar(importance.share / largest)).cyan().to_string(),
        percent(importance.share),
    ];
    cells.extend(importance.splits.map(thousands));
    cells.extend(importance.permutation.map(signed));
    cells.extend(importance.weight.map(signed));
    cells
}

/// A bar of eighths of a character.
pub(super) fn bar(share: f64) -> String {
    const EIGHTHS: [&str; 8] = ["", "▏", "▎", "▍", "▌", "▋", "▊", "▉"];
    let eighths = if share.is_finite() {
        (share.clamp(0.0, 1.0) * (8 * BAR) as f64).round() as usize
    } else {
        0
    };
    // What is there at all can be seen.
    let eighths = eighths.max(usize::from(share > 0.0));
    format!("{}{}", "█".repeat(eighths / 8), EIGHTHS[eighths % 8])
}

fn percent(share: f64) -> String {
    match share {
        share if share > 0.0 && share < 0.0005 => "<0.1%".into(),
        share => format!("{:.1}%", 100.0 * share),
    }
}

fn signed(value: f64) -> String {
    match value > 0.0 {
        true => format!("+{}", figure(value)),
        false => figure(value),
    }
}

/// A table whose first row is its heading, with figures to the right from column `right` on.
fn aligned(mut rows: Vec<Vec<String>>, right: usize) -> Vec<String> {
    let n = rows.iter().map(Vec::len).max().unwrap_or(0);
    for at in right..n {
        let widths = rows
            .iter()
            .filter_map(|row| row.get(at))
            .map(|cell| console::measure_text_width(cell));
        let width = widths.max().unwrap_or(0);
        for cell in rows.iter_mut().filter_map(|row| row.get_mut(at)) {
            *cell = format!("{}{cell}", " ".repeat(width - console::measure_text_width(cell)));
        }
    }
    if let Some(heading) = rows.first_mut() {
        heading
            .iter_mut()
            .for_each(|name| *name = style(&name).dim().to_string());
    }
    columns(&rows)
}

fn print_calibration(explained: &Explained) {
    if explained.calibration.is_empty() {
        return;
    }
    let of = match explained.task.as_str() {
        "binary" => format!("of {:?}", explained.classes.last().map_or("", String::as_str)),
        _ => "of the predicted value".into(),
    };
    say!(
        "\n{}",
        style(format!(
            "calibration: the probability {of}, and how often it came true"
        ))
        .bold()
    );
    let mut rows = vec![["PREDICTED", "CAME TRUE", "", "ROWS"].map(String::from).to_vec()];
    for bin in &explained.calibration {
        rows.push(vec![
            percent(bin.predicted),
            percent(bin.observed),
            style(bar(bin.observed)).cyan().to_string(),
            thousands(bin.rows),
        ]);
    }
    for row in &mut rows {
        // Both shares to the right, the bar to the left of it.
        row[0] = format!("{:>9}", row[0]);
        row[1] = format!("{:>9}", row[1]);
    }
    aligned(rows, 3).iter().for_each(|line| say!("  {line}"));
}

/// How large the errors of a number are.
fn print_residuals(explained: &Explained) {
    let Some(residuals) = &explained.residuals else {
        return;
    };
    let mean = signed(residuals.mean);
    let title = format!("errors of the rows held out, the truth above the prediction: {mean} on average");
    say!("\n{}", style(title).bold());
    let mut rows = vec![["SHARE OF ROWS", "ERROR UP TO"].map(String::from).to_vec()];
    let all = [(1.0, residuals.largest)];
    for (share, error) in residuals.within.iter().chain(&all) {
        rows.push(vec![percent(*share), figure(*error)]);
    }
    aligned(rows, 0).iter().for_each(|line| say!("  {line}"));
}

fn print_confusion(explained: &Explained, top: usize) {
    let (classes, confusion) = (&explained.classes, &explained.confusion);
    if confusion.is_empty() || confusion.len() != classes.len() {
        return;
    }
    if classes.len() > MATRIX {
        print_worst(explained, top);
        return;
    }
    say!(
        "\n{}",
        style("confusion: rows held out by their true value (down) and the predicted one (across)").bold()
    );
    let heading = std::iter::once("TRUE".to_string()).chain(classes.iter().cloned());
    let mut rows = vec![heading.chain(["FOUND".into()]).collect::<Vec<_>>()];
    for (at, (class, counts)) in classes.iter().zip(confusion).enumerate() {
        let sum: u64 = counts.iter().sum();
        let cell = |(predicted, n): (usize, &u64)| match (predicted == at, *n) {
            (true, n) => style(thousands(n)).green().to_string(),
            (false, 0) => style("·").dim().to_string(),
            (false, n) => thousands(n),
        };
        let mut row = vec![class.clone()];
        row.extend(counts.iter().enumerate().map(cell));
        row.push(if sum == 0 {
            "-".into()
        } else {
            percent(counts[at] as f64 / sum as f64)
        });
        rows.push(row);
    }
    aligned(rows, 1).iter().for_each(|line| say!("  {line}"));
}

/// The pairs of classes that are taken for each other most often.
fn print_worst(explained: &Explained, top: usize) {
    let mut pairs: Vec<(u64, &str, &str)> = Vec::new();
    for (class, counts) in explained.classes.iter().zip(&explained.confusion) {
        for (other, n) in explained.classes.iter().zip(counts) {
            if class != other && *n > 0 {
                pairs.push((*n, class, other));
            }
        }
    }
    pairs.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
    let n_pairs = pairs.len();
    say!(
        "\n{}",
        style("confusion: the values that are taken for another most often").bold()
    );
    let mut rows = vec![["TRUE", "PREDICTED", "ROWS"].map(String::from).to_vec()];
    let row = |(n, class, other): (u64, &str, &str)| vec![class.to_string(), other.to_string(), thousands(n)];
    rows.extend(pairs.into_iter().take(top).map(row));
    aligned(rows, 2).iter().for_each(|line| say!("  {line}"));
    more(n_pairs, top, "pair");
}
