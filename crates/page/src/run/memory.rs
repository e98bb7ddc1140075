//! Memory over time, as a chart: against the line, with its epochs and the moment at which it ended.

use maud::{Markup, html};
use tidegate_memory::{against, counted, format_bytes, thousands};
use tidegate_runs::Run;

use super::graph::{Graph, Role, Series, View};
use crate::chart::{Chart, Layer, Mark, Scale, Shape, moment};
use crate::error::Result;

/// Points that are drawn on the server; a script asks for more.
pub(super) const POINTS: usize = 360;
/// Colours that can be told apart.
const COLOURS: usize = 8;
/// Epochs whose numbers have room on a telephone.
const LABELLED: usize = 4;
/// A line so many times above all that was used would press the rest to the ground: it is told in words alone.
const FAR: u64 = 8;

pub(super) fn section(run: &Run, view: View, read: &Result<Graph>) -> Markup {
    let nothing = Graph::default();
    let graph = read.as_ref().unwrap_or(&nothing);
    html! {
        section.card {
            div.head {
                h2 { "Memory over time" }
                nav.tabs aria-label="Whose memory" {
                    @for other in View::ALL {
                        a href={ "/runs/" (run.id) "?memory=" (other.as_str()) "#memory" } aria-current=[(other == view).then_some("true")] { (name(other)) }
                    }
                }
            }
            (chart(run, view, graph))
            @if let Err(error) = read { p.problem-note { (error) } }
            @if graph.damaged > 0 {
                p.problem-note { (thousands(graph.damaged)) " of " (thousands(graph.samples + graph.damaged)) " records are damaged and left out." }
            }
        }
    }
}

fn name(view: View) -> &'static str {
    match view {
        View::Total => "Total",
        View::Processes => "By process",
        View::Holders => "By holder",
    }
}

fn nothing(run: &Run, view: View) -> &'static str {
    match (view, run.status.is_over(), run.kind.as_str()) {
        (_, false, _) => "Nothing was recorded yet.",
        (View::Holders, _, "run") => "Only trainings of Tidegate itself tell what each part of them holds.",
        _ => "Nothing was recorded.",
    }
}

fn chart(run: &Run, view: View, graph: &Graph) -> Markup {
    let source = match view {
        View::Total => "memory",
        other => other.as_str(),
    };
    let drawn = draw(graph);
    html! {
        figure.chart.large data-chart="memory" data-source={ "/api/runs/" (run.id) "/" (source) } data-log={ "/runs/" (run.id) "/log" } data-epochs=(epochs(run)) {
            div.plot role="img" aria-label=(summary(run, graph)) {
                @match &drawn { Some(chart) => (chart.draw()), None => p.nothing { (nothing(run, view)) } }
            }
            figcaption {
                ul.keys { @for (series, class) in graph.series.iter().zip(classes(&graph.series)) {
                    li data-name=(series.name) { span class={ "key " (class) } aria-hidden="true" {} (series.name) @if series.role == Role::Limit && is_far(graph) { ", far above," } " " output { (peak(series, graph)) } }
                } }
                p.about.how { @if drawn.is_some() { (samples(graph)) " " } span.with-script { "Point at it to read values, drag to look closer, click to read the log at that moment." } }
            }
        }
    }
}

/// What the steps of a training are called.
pub(super) fn epochs(run: &Run) -> &'static str {
    match run.model.as_deref() {
        Some("boost") => "tree",
        _ => "epoch",
    }
}

/// `memory over 3:07: 1.00 GB of 1 GB at the most, …`
fn summary(run: &Run, graph: &Graph) -> String {
    let total = graph.series.iter().find(|series| series.role == Role::Total);
    let most = total.and_then(|series| series.values.iter().flatten().max().copied());
    let took = moment(graph.last_ms.saturating_sub(graph.first_ms) as f64);
    match most {
        Some(most) => format!(
            "Memory over {took}: {} at the most",
            against(Some(most.max(graph.peak_bytes.unwrap_or(0))), run.budget_bytes)
        ),
        None => format!("Memory over {took}, part by part"),
    }
}

/// The most that was in use, by the total or by its parts together, and the highest that the line was.
fn heights(graph: &Graph) -> (u64, u64) {
    let highest = |role: Role| {
        let series = graph.series.iter().filter(move |series| series.role == role);
        series
            .flat_map(|series| series.values.iter().flatten())
            .max()
            .copied()
            .unwrap_or(0)
    };
    let parts: Vec<&Series> = graph
        .series
        .iter()
        .filter(|series| series.role == Role::Part)
        .collect();
    let together = |at: usize| parts.iter().filter_map(|part| part.values[at]).sum::<u64>();
    let stacked = (0..graph.time_ms.len()).map(together).max().unwrap_or(0);
    (stacked.max(highest(Role::Total)), highest(Role::Limit))
}

/// Whether the line is too far above all that was used to be drawn.
fn is_far(graph: &Graph) -> bool {
    let (used, limit) = heights(graph);
    limit > used.saturating_mul(FAR)
}

/// The most of it: of the total, what was counted between looks too.
fn peak(series: &Series, graph: &Graph) -> String {
    let counted = graph.peak_bytes.filter(|_| series.role == Role::Total);
    let most = series.values.iter().flatten().max().copied();
    let word = if series.role == Role::Limit { "" } else { "up to " };
    most.map_or("unavailable".into(), |bytes| {
        format!("{word}{}", format_bytes(bytes.max(counted.unwrap_or(0))))
    })
}

/// `75 samples`, and how high they reach, where more than that was counted between them.
fn samples(graph: &Graph) -> String {
    let samples = counted(graph.samples, "sample");
    let total = graph.series.iter().find(|series| series.role == Role::Total);
    let most = total.and_then(|series| series.values.iter().flatten().max().copied());
    match (most.map(format_bytes), graph.peak_bytes.map(format_bytes)) {
        (Some(seen), Some(peak)) if graph.peak_bytes > most && peak != seen => {
            format!("{samples}, up to {seen}; {peak} was counted between them.")
        }
        _ => format!("{samples}."),
    }
}

/// A colour for each: the line is red, what is beside it is pale.
pub(crate) fn classes(all: &[Series]) -> Vec<String> {
    let mut number = 0;
    let class = |series: &Series| match series.role {
        Role::Limit => "line".into(),
        Role::Total => "total".into(),
        Role::Part => {
            number += 1;
            format!("c{}", (number - 1) % COLOURS + 1)
        }
        Role::Beside => "beside".into(),
    };
    all.iter().map(class).collect()
}

/// Parts on top of each other, the total and the line above them; what is only worth knowing is left to a script.
fn draw(graph: &Graph) -> Option<Chart> {
    let times: Vec<f64> = graph.time_ms.iter().map(|ms| *ms as f64).collect();
    let (first, last) = (*times.first()?, *times.last()?);
    let (mut areas, mut lines) = (Vec::new(), Vec::new());
    let mut below = vec![0.0; times.len()];
    for (series, class) in graph.series.iter().zip(classes(&graph.series)) {
        let layer = |shape, values: &[Option<f64>], base: Vec<f64>| Layer {
            class: class.clone(),
            shape,
            points: times.iter().copied().zip(values.iter().copied()).collect(),
            base,
        };
        let values: Vec<Option<f64>> = series
            .values
            .iter()
            .map(|value| value.map(|bytes| bytes as f64))
            .collect();
        match series.role {
            Role::Part => {
                let base = below.clone();
                let top = values.iter().zip(&mut below).map(|(value, below)| {
                    *below += value.unwrap_or(0.0);
                    value.map(|_| *below)
                });
                let top: Vec<Option<f64>> = top.collect();
                areas.push(layer(Shape::Area, &top, base));
            }
            Role::Total => lines.push(layer(Shape::Line, &values, Vec::new())),
            Role::Limit => lines.push(layer(Shape::Limit, &values, Vec::new())),
            Role::Beside => continue,
        }
    }
    let (used, limit) = heights(graph);
    let n_epochs = graph.marks.iter().filter(|mark| mark.kind == "epoch").count();
    let marks = graph.marks.iter().map(|mark| Mark {
        at: mark.time_ms as f64,
        class: mark.kind,
        word: format!("{} at {}", mark.text, moment(mark.time_ms as f64)),
        label: match (mark.kind, n_epochs) {
            ("epoch", n) if n > LABELLED => String::new(),
            _ => mark.text.clone(),
        },
    });
    Some(Chart {
        across: Scale::times(first, last),
        up: Scale::bytes(if is_far(graph) { used } else { used.max(limit) }),
        layers: areas.into_iter().chain(lines).collect(),
        marks: marks.collect(),
    })
}
