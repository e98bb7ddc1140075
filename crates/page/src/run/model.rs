//! What became of the columns, what the model relies on, and how far it can be trusted.

use maud::{Markup, html};
use serde::Deserialize;
use tidegate_memory::{counted, figure, format_bytes, thousands};
use tidegate_runs::{Run, metric_name};

use super::files::Found;
use super::parts::{bar, capital};
use crate::chart::{Chart, Layer, Scale, Shape, percent, plain};

/// Rows of a table before the rest is folded away.
const SHOWN: usize = 15;
/// Rows that a page has at all; the API has all.
const MOST: usize = 200;

/// As `encoding.json` has it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Encoding {
    columns: Vec<Column>,
    shape: String,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Column {
    name: String,
    role: String,
    distinct: Option<f64>,
    missing: Option<f64>,
    encoding: String,
    dense: u64,
    sparse: u64,
    bytes_per_row: Option<f64>,
    why: String,
}

/// As `tidegate explain --json` says it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub(super) struct Explained {
    kind: String,
    task: String,
    target: String,
    classes: Vec<String>,
    rows: Rows,
    epochs: u32,
    metrics: Vec<Metric>,
    over_folds: Vec<(String, f64, f64)>,
    columns: Vec<Important>,
    by_class: Vec<Class>,
    confusion: Vec<Vec<u64>>,
    calibration: Vec<Bin>,
    residuals: Option<Residuals>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Rows {
    used: u64,
    held_out: u64,
    bad: u64,
    without_target: u64,
    not_asked: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Metric {
    name: String,
    value: Option<f64>,
    baseline: Option<f64>,
    higher_is_better: bool,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Important {
    column: String,
    encoding: String,
    width: u64,
    importance: Importance,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Importance {
    share: Option<f64>,
    splits: Option<u64>,
    permutation: Option<f64>,
    weight: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Class {
    class: String,
    rows: u64,
    precision: Option<f64>,
    recall: Option<f64>,
    f1: Option<f64>,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Bin {
    predicted: Option<f64>,
    observed: Option<f64>,
    rows: u64,
}

#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Residuals {
    from: f64,
    width: f64,
    bins: Vec<u64>,
    below: u64,
    above: u64,
    mean: f64,
    within: Vec<(f64, f64)>,
    largest: f64,
}

/// The encoding table and the shape line.
pub(super) fn encoding(found: &Found<Encoding>) -> Markup {
    let encoding = match found {
        Found::No => return html! {},
        Found::Damaged(why) => {
            return html! { section.card { h2 { "What became of the columns" } p.problem-note { (why) } } };
        }
        Found::Yes(encoding) => encoding,
    };
    let header = html! {
        thead { tr {
            th scope="col" { "Column" } th scope="col" { "Role" } th.number scope="col" { "Distinct" } th.number scope="col" { "Missing" }
            th scope="col" { "Becomes" } th.number scope="col" { "Wide" } th.number scope="col" { "Bytes a row" } th scope="col" { "Why" }
        } }
    };
    html! {
        section.card {
            h2 { "What became of the columns" }
            p.shape { (encoding.shape) }
            (folded("Columns", &header, &encoding.columns, column))
        }
    }
}

fn column(column: &Column) -> Markup {
    let width = match (column.dense, column.sparse) {
        (dense, 0) => thousands(dense),
        (0, sparse) => format!("{} sparse", thousands(sparse)),
        (dense, sparse) => format!("{} + {} sparse", thousands(dense), thousands(sparse)),
    };
    html! {
        tr {
            th scope="row" { (column.name) }
            td { (column.role) }
            td.number { @match column.distinct { Some(n) => { (thousands(n.round() as u64)) } None => span.unavailable { "–" } } }
            td.number { @match column.missing { Some(share) => { (percent(share)) } None => span.unavailable { "–" } } }
            td { (column.encoding) }
            td.number { (width) }
            td.number { @match column.bytes_per_row { Some(bytes) => { (plain(bytes)) } None => span.unavailable { "–" } } }
            td.about { (column.why) }
        }
    }
}

/// A table whose later rows are folded away.
fn folded<T>(label: &str, header: &Markup, all: &[T], row: impl Fn(&T) -> Markup) -> Markup {
    let (first, rest) = all.split_at(
        all.len()
            .min(if all.len() > SHOWN + 3 { SHOWN } else { SHOWN + 3 }),
    );
    let table = |rows: &[T]| {
        html! {
            div.wide tabindex="0" role="region" aria-label=(label) {
                table { (header) tbody { @for one in rows { (row(one)) } } }
            }
        }
    };
    html! {
        (table(first))
        @if !rest.is_empty() {
            details { summary { "and " (thousands(rest.len() as u64)) " more" } (table(&rest[..rest.len().min(MOST)]))
                @if rest.len() > MOST { p.hint { (thousands((rest.len() - MOST) as u64)) " are told by the API alone." } }
            }
        }
    }
}

/// How good the model is, and what it relies on.
pub(super) fn section(
    run: &Run,
    explained: Option<&Explained>,
    asking: bool,
    trouble: Option<&str>,
) -> Markup {
    let Some(explained) = explained else {
        return html! {
            @if asking || trouble.is_some() {
                section.card {
                    h2 { "What the model relies on" }
                    @if asking {
                        p.asking data-ask={ "/api/runs/" (run.id) "/explained" } { "The model is being read. " a href={ "/runs/" (run.id) } { "Look again" } }
                    }
                    @if let Some(trouble) = trouble { p.hint { "The model could not be explained: " (trouble) } }
                }
            }
        };
    };
    html! {
        section.card {
            h2 { "How good it is" }
            p { (headline(explained)) }
            div.beside {
                (quality(explained))
                (calibration(explained))
                (residuals(explained))
            }
            (confusion(explained))
        }
        @if !explained.columns.is_empty() {
            section.card { h2 { "What it relies on" } (importance(explained)) }
        }
    }
}

/// `delayed, yes or no, by boosted trees: 40 rounds on 9,000 rows, judged on 1,000 held out`
fn headline(explained: &Explained) -> String {
    let (kind, grown) = match explained.kind.as_str() {
        "boost" => ("boosted trees", counted(explained.epochs.into(), "round")),
        "network" => ("a network", counted(explained.epochs.into(), "epoch")),
        "linear" => ("a linear model", counted(explained.epochs.into(), "epoch")),
        other => (other, counted(explained.epochs.into(), "epoch")),
    };
    let values = match explained.task.as_str() {
        "regression" => "a number".into(),
        "binary" => explained.classes.join(" or "),
        "multiclass" => format!("one of {} values", explained.classes.len()),
        several => format!("several {several}"),
    };
    let what = match explained.target.as_str() {
        "" => values,
        target => format!("{target}, {values}"),
    };
    let rows = &explained.rows;
    let trained = counted(rows.used.saturating_sub(rows.held_out), "row");
    let judged = match rows.held_out {
        0 => String::new(),
        n => format!(", judged on {} held out", thousands(n)),
    };
    let left_out: Vec<String> = [
        (rows.bad, "bad"),
        (rows.without_target, "without a target"),
        (rows.not_asked, "not asked for"),
    ]
    .into_iter()
    .filter(|(n, _)| *n > 0)
    .map(|(n, why)| format!("{} {why}", thousands(n)))
    .collect();
    let left_out = match left_out.is_empty() {
        true => String::new(),
        false => format!("; left out: {}", left_out.join(", ")),
    };
    capital(&format!(
        "{what}, by {kind}: {grown} on {trained}{judged}{left_out}."
    ))
}

fn quality(explained: &Explained) -> Markup {
    let cell = |value: Option<f64>| html! { @match value { Some(value) => { (figure(value)) } None => span.unavailable { "–" } } };
    html! {
        @if !explained.over_folds.is_empty() {
            div { h3 { "Over folds" }
                table { thead { tr { th scope="col" { "Metric" } th.number scope="col" { "Mean" } th.number scope="col" { "Deviation" } } }
                    tbody { @for (name, mean, deviation) in &explained.over_folds { tr { th scope="row" { (capital(&metric_name(name))) } td.number { (figure(*mean)) } td.number { (figure(*deviation)) } } } }
                }
            }
        } @else if !explained.metrics.is_empty() {
            div { h3 { "On the rows held out" }
                table { thead { tr { th scope="col" { "Metric" } th.number scope="col" { "Value" } th.number scope="col" { "Trivial model" } th scope="col" { span.hidden { "Compared" } } } }
                    tbody { @for metric in &explained.metrics { tr {
                        th scope="row" { (capital(&metric_name(&metric.name))) }
                        td.number { (cell(metric.value)) }
                        td.number { (cell(metric.baseline)) }
                        td { (compared(metric)) }
                    } } }
                }
            }
        }
    }
}

fn compared(metric: &Metric) -> Markup {
    let better = metric
        .value
        .zip(metric.baseline)
        .map(|(value, baseline)| match metric.higher_is_better {
            _ if value == baseline => "same",
            true if value > baseline => "better",
            false if value < baseline => "better",
            _ => "worse",
        });
    html! { @if let Some(better) = better { span class={ "compared " (better) } { (better) } } }
}

fn importance(explained: &Explained) -> Markup {
    let share = |one: &Important| one.importance.share.unwrap_or(0.0);
    let most = explained.columns.iter().map(share).fold(0.0, f64::max);
    let has = |field: fn(&Importance) -> bool| explained.columns.iter().any(|one| field(&one.importance));
    let splits = has(|one| one.splits.is_some());
    let shuffled = has(|one| one.permutation.is_some());
    let weights = has(|one| one.weight.is_some());
    let signed = |value: Option<f64>| {
        value.map_or("–".into(), |value| match value > 0.0 {
            true => format!("+{}", figure(value)),
            false => figure(value),
        })
    };
    let header = html! {
        thead { tr {
            th scope="col" { "Column" } th scope="col" { "Importance" } th scope="col" { "Encoding" }
            @if splits { th.number scope="col" { "Splits" } }
            @if shuffled { th.number scope="col" { "Shuffled" } }
            @if weights { th.number scope="col" { "Largest weight" } }
        } }
    };
    html! {
        p.about {
            @if explained.kind == "linear" { "By the sum of the weights without their signs." } @else { "By how much its splits lowered the loss." }
            @if shuffled { " Shuffled: how much the loss of the rows held out rises when the column is shuffled among them." }
        }
        (folded("What it relies on", &header, &explained.columns, |one| html! {
            tr {
                th scope="row" { (one.column) }
                td.bars { (bar(share(one), most)) " " span.number { (format!("{:.1}%", share(one) * 100.0)) } }
                td { (one.encoding) @if one.width > 1 { " × " (thousands(one.width)) } }
                @if splits { td.number { @match one.importance.splits { Some(n) => { (thousands(n)) } None => "–" } } }
                @if shuffled { td.number { (signed(one.importance.permutation)) } }
                @if weights { td.number { (signed(one.importance.weight)) } }
            }
        }))
    }
}

/// Rows by their true value and the predicted one, the darker the more of the row are there.
fn confusion(explained: &Explained) -> Markup {
    let (classes, counts) = (&explained.classes, &explained.confusion);
    let is_square = counts.len() == classes.len() && counts.iter().all(|row| row.len() == classes.len());
    if counts.is_empty() || !is_square {
        return by_class(explained);
    }
    let heat = |n: u64, row: u64| match n {
        0 => 0,
        n => (n as f64 / row.max(1) as f64 * 8.0).ceil() as u64,
    };
    html! {
        h3 { "Confusion" }
        div.wide tabindex="0" role="region" aria-label="Confusion matrix" {
            table.confusion {
                caption { "Rows held out by their true value (down) and the predicted one (across)" }
                thead { tr { td {} @for class in classes { th scope="col" { (class) } } th.number scope="col" { "Found" } } }
                tbody { @for (at, (class, row)) in classes.iter().zip(counts).enumerate() {
                    @let sum = row.iter().sum::<u64>();
                    tr {
                        th scope="row" { (class) }
                        @for (predicted, n) in row.iter().enumerate() {
                            td.number.(if predicted == at { "right" } else { "wrong" }).{ "heat" (heat(*n, sum)) } { @if *n == 0 { "·" } @else { (thousands(*n)) } }
                        }
                        td.number { @if sum == 0 { "–" } @else { (percent(row[at] as f64 / sum as f64)) } }
                    }
                } }
            }
        }
        @if classes.len() > 2 { (by_class(explained)) }
    }
}

fn by_class(explained: &Explained) -> Markup {
    let mut classes: Vec<&Class> = explained.by_class.iter().collect();
    if classes.is_empty() {
        return html! {};
    }
    classes.sort_by(|a, b| a.f1.unwrap_or(0.0).total_cmp(&b.f1.unwrap_or(0.0)));
    let cell = |value: Option<f64>| html! { td.number { @match value { Some(value) => { (format!("{value:.3}")) } None => "–" } } };
    let header = html! { thead { tr { th scope="col" { "Class" } th.number scope="col" { "Rows" } th.number scope="col" { "Precision" } th.number scope="col" { "Recall" } th.number scope="col" { "F1" } } } };
    html! {
        h3 { "By class, the worst first" }
        (folded("By class", &header, &classes, |class| html! {
            tr { th scope="row" { (class.class) } td.number { (thousands(class.rows)) } (cell(class.precision)) (cell(class.recall)) (cell(class.f1)) }
        }))
    }
}

/// What was predicted, and how often it came true.
fn calibration(explained: &Explained) -> Markup {
    let points: Vec<(f64, f64, u64)> = explained
        .calibration
        .iter()
        .filter_map(|bin| Some((bin.predicted?, bin.observed?, bin.rows)))
        .collect();
    if points.is_empty() {
        return html! {};
    }
    let of = match explained.task.as_str() {
        "binary" => explained
            .classes
            .last()
            .map_or(String::new(), |class| format!(" of {class}")),
        _ => " of the predicted value".into(),
    };
    let layer = |class: &str, points: Vec<(f64, f64)>| Layer {
        class: class.into(),
        shape: Shape::Line,
        points: points.into_iter().map(|(at, value)| (at, Some(value))).collect(),
        base: Vec::new(),
    };
    let shares = || Scale {
        from: 0.0,
        to: 1.0,
        ticks: [0.0, 0.25, 0.5, 0.75, 1.0].map(|at| (at, percent(at))).to_vec(),
    };
    let chart = Chart {
        across: shares(),
        up: shares(),
        layers: vec![
            layer("ideal", vec![(0.0, 0.0), (1.0, 1.0)]),
            layer(
                "c1",
                points
                    .iter()
                    .map(|(predicted, observed, _)| (*predicted, *observed))
                    .collect(),
            ),
        ],
        marks: Vec::new(),
    };
    html! {
        figure.chart.small {
            figcaption { h3 { "Calibration" } p.about { "The probability" (of) " across, how often it came true up." } }
            div.plot role="img" aria-label="Calibration, as the table below tells it" { (chart.draw()) }
            details { summary { "As a table" }
                table { thead { tr { th.number scope="col" { "Predicted" } th.number scope="col" { "Came true" } th.number scope="col" { "Rows" } } }
                    tbody { @for (predicted, observed, rows) in &points { tr { td.number { (percent(*predicted)) } td.number { (percent(*observed)) } td.number { (thousands(*rows)) } } } }
                }
            }
        }
    }
}

/// How the errors of a number are spread.
fn residuals(explained: &Explained) -> Markup {
    let Some(found) = explained
        .residuals
        .as_ref()
        .filter(|found| !found.bins.is_empty() && found.width > 0.0)
    else {
        return html! {};
    };
    let to = found.from + found.width * found.bins.len() as f64;
    let most = found.bins.iter().copied().max().unwrap_or(0);
    let mut points = Vec::with_capacity(found.bins.len() * 2);
    for (i, rows) in found.bins.iter().enumerate() {
        let at = found.from + found.width * i as f64;
        points.extend([(at, Some(*rows as f64)), (at + found.width, Some(*rows as f64))]);
    }
    let chart = Chart {
        across: Scale::exactly(found.from, to, plain),
        up: Scale::values(0.0, most as f64, |rows| thousands(rows.max(0.0) as u64)),
        layers: vec![Layer {
            class: "c1".into(),
            shape: Shape::Area,
            base: vec![0.0; points.len()],
            points,
        }],
        marks: vec![crate::chart::Mark {
            at: 0.0,
            class: "epoch",
            word: "no error".into(),
            label: String::new(),
        }],
    };
    let beyond = found.below + found.above;
    let half = found.within.iter().find(|(share, _)| *share == 0.5);
    html! {
        figure.chart.small {
            figcaption { h3 { "Residuals" } p.about {
                "The truth above the prediction, on average " (figure(found.mean)) "."
                @if let Some((_, half)) = half { " Half of the errors are below " (figure(*half)) "." }
            } }
            div.plot role="img" aria-label="Histogram of the residuals, whose size the table below tells" { (chart.draw()) }
            details { summary { "As a table" }
                table { thead { tr { th.number scope="col" { "Share of rows" } th.number scope="col" { "Error up to" } } }
                    tbody {
                        @for (share, error) in &found.within { tr { td.number { (percent(*share)) } td.number { (figure(*error)) } } }
                        tr { td.number { "100%" } td.number { (figure(found.largest)) } }
                    }
                }
            }
            @if beyond > 0 { p.about { (counted(beyond, "row")) " with larger errors are not drawn." } }
        }
    }
}

/// The size of a model on disk, where it is there.
pub(super) fn size_of(folder: &std::path::Path) -> Option<String> {
    let entries = std::fs::read_dir(folder).ok()?;
    let sizes = entries.flatten().filter_map(|entry| entry.metadata().ok());
    let bytes: u64 = sizes
        .filter(std::fs::Metadata::is_file)
        .map(|metadata| metadata.len())
        .sum();
    (bytes > 0).then(|| format_bytes(bytes))
}
