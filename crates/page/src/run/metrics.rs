//! Curves of what a training told of itself: losses together, every other figure by itself.

use maud::{Markup, html};
use tidegate_memory::{figure, short};
use tidegate_runs::{Curve, CurvePoint, Run, metric_name};

use super::parts::capital;
use crate::chart::{self, Chart, Layer, Scale, Shape};

/// Points of a curve on the page; a script asks for more.
pub(super) const POINTS: usize = 240;
/// Charts on a page; more figures than that are in the table.
const CHARTS: usize = 24;
/// Curves in a chart that can be told apart.
const TOGETHER: usize = 8;

/// Curves that are drawn over each other.
pub(crate) struct Group<'c> {
    pub(crate) title: String,
    pub(crate) curves: Vec<&'c Curve>,
}

/// Where a name belongs, and in which order.
fn family(name: &str) -> (u8, String) {
    let plain = [
        "training_",
        "train_",
        "validation_",
        "valid_",
        "val_",
        "test_",
        "held_out_",
    ]
    .into_iter()
    .find_map(|before| name.strip_prefix(before))
    .unwrap_or(name);
    match plain {
        plain if plain == "loss" || plain.ends_with("_loss") => (0, "loss".into()),
        "learning_rate" | "lr" => (2, "learning_rate".into()),
        "rows_per_second" | "samples_per_second" | "throughput" => (3, "throughput".into()),
        "stall" => (4, "stall".into()),
        plain => (1, plain.into()),
    }
}

/// Losses first, then quality, then how fast it went.
pub(crate) fn groups(curves: &[Curve]) -> Vec<Group<'_>> {
    let mut found: Vec<((u8, String), Vec<&Curve>)> = Vec::new();
    for curve in curves {
        let family = family(&curve.name);
        match found.iter_mut().find(|(known, _)| *known == family) {
            Some((_, group)) => group.push(curve),
            None => found.push((family, vec![curve])),
        }
    }
    found.sort_by_key(|((order, _), _)| *order);
    found
        .into_iter()
        .map(|((_, name), curves)| Group {
            title: title(&name),
            curves,
        })
        .collect()
}

/// What a figure by itself is called; a loss by its own name.
pub(crate) fn title_of(name: &str) -> String {
    match family(name) {
        (0, _) => capital(&metric_name(name)),
        (_, family) => title(&family),
    }
}

fn title(family: &str) -> String {
    match family {
        "throughput" => "Throughput".into(),
        "stall" => "Waiting for data".into(),
        name => capital(&metric_name(name)),
    }
}

/// A value of a metric as people read it.
pub(crate) fn value(name: &str, value: Option<f64>) -> String {
    match (family(name).1.as_str(), value) {
        (_, None) => "not a number".into(),
        ("stall", Some(value)) => chart::percent(value),
        ("throughput", Some(value)) => format!("{} rows/s", short(value)),
        (_, Some(value)) => figure(value),
    }
}

/// How values of it are written beside a chart.
fn word(name: &str) -> fn(f64) -> String {
    match family(name).1.as_str() {
        "stall" => chart::percent,
        "throughput" => |value| short(value),
        _ => chart::plain,
    }
}

/// What counts up: the step where it moves inside of epochs, else the epoch.
pub(crate) fn counts_by_step(curves: &[&Curve]) -> bool {
    let mut points = curves.iter().flat_map(|curve| &curve.points);
    points.any(|point| point.step > 0) && {
        let same_epoch = |pair: &[CurvePoint]| pair[0].epoch == pair[1].epoch;
        curves.iter().any(|curve| curve.points.windows(2).any(same_epoch))
    }
}

fn place(point: &CurvePoint, by_step: bool) -> f64 {
    match by_step {
        true => point.step as f64,
        false => f64::from(point.epoch),
    }
}

/// The curves of one chart, each with its colour.
pub(crate) fn draw(curves: &[&Curve], classes: &[String]) -> Chart {
    let by_step = counts_by_step(curves);
    let (mut from, mut to) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
    for point in curves.iter().flat_map(|curve| &curve.points) {
        let at = place(point, by_step);
        (from, to) = (from.min(at), to.max(at));
        if let Some(value) = point.value {
            (low, high) = (low.min(value), high.max(value));
        }
    }
    let name = curves.first().map_or("", |curve| curve.name.as_str());
    let or = |value: f64, other: f64| if value.is_finite() { value } else { other };
    let layers = curves.iter().zip(classes).map(|(curve, class)| Layer {
        class: class.clone(),
        shape: Shape::Line,
        points: curve
            .points
            .iter()
            .map(|point| (place(point, by_step), point.value))
            .collect(),
        base: Vec::new(),
    });
    Chart {
        across: Scale::counts(or(from, 0.0), or(to, 1.0)),
        up: Scale::values(or(low, 0.0), or(high, 1.0), word(name)),
        layers: layers.collect(),
        marks: Vec::new(),
    }
}

/// The charts; what a live run tells moves them by a script.
pub(super) fn section(run: &Run, curves: &[Curve]) -> Markup {
    if curves.is_empty() && run.kind != "train" {
        return html! {};
    }
    let groups = groups(curves);
    html! {
        section.card {
            h2 { "How it learned" }
            @if groups.is_empty() {
                p.hint { @if run.status.is_over() { "It told no figures." } @else { "It has told no figures yet: the first come with the end of its first epoch." } }
            }
            div.many {
                @for group in groups.iter().take(CHARTS) { (multiple(run, group)) }
            }
            @if groups.len() > CHARTS { p.hint { (groups.len() - CHARTS) " more figures are told by " a href={ "/api/runs/" (run.id) "/metrics" } { "the API" } "." } }
        }
    }
}

/// Where the curves have come to: a script that finds it moved asks for them again.
pub(super) fn now(curves: &[Curve]) -> String {
    let ends = curves.iter().filter_map(|curve| {
        let last = curve.points.last()?;
        Some(format!("{} {}/{}", curve.name, last.epoch, last.step))
    });
    ends.collect::<Vec<_>>().join(" ")
}

fn multiple(run: &Run, group: &Group<'_>) -> Markup {
    let shown: Vec<&Curve> = group.curves.iter().copied().take(TOGETHER).collect();
    let classes: Vec<String> = (1..=shown.len()).map(|number| format!("c{number}")).collect();
    let unit = if counts_by_step(&shown) { "step" } else { "epoch" };
    let names: Vec<&str> = shown.iter().map(|curve| curve.name.as_str()).collect();
    let last = |curve: &Curve| value(&curve.name, curve.points.last().and_then(|point| point.value));
    let words: Vec<String> = shown
        .iter()
        .map(|curve| format!("{} {}", label(&curve.name), last(curve)))
        .collect();
    html! {
        figure.chart.small data-chart="metrics" data-source={ "/api/runs/" (run.id) "/metrics" } data-names=[serde_json::to_string(&names).ok()] data-unit=(unit) {
            figcaption {
                h3 { (group.title) }
                ul.keys { @for (curve, class) in shown.iter().zip(&classes) {
                    li data-name=(curve.name) { span class={ "key " (class) } aria-hidden="true" {} @if shown.len() > 1 { (label(&curve.name)) " " } output { (last(curve)) } }
                } }
            }
            div.plot role="img" aria-label={ (group.title) " by " (unit) ": at the end " (words.join(", ")) } { (draw(&shown, &classes).draw()) }
        }
    }
}

/// `training_loss` as `training loss`.
pub(crate) fn label(name: &str) -> String {
    metric_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(name: &str, points: &[(u32, u64, f64)]) -> Curve {
        let point = |&(epoch, step, value): &(u32, u64, f64)| CurvePoint {
            epoch,
            step,
            value: value.is_finite().then_some(value),
        };
        Curve {
            name: name.into(),
            points: points.iter().map(point).collect(),
        }
    }

    #[test]
    fn losses_stand_together_and_speed_comes_last() {
        let curves = [
            "stall",
            "auc",
            "log_loss",
            "training_loss",
            "train_acc",
            "val_acc",
            "rows_per_second",
            "learning_rate",
        ];
        let curves = curves.map(|name| curve(name, &[(1, 0, 1.0)]));
        let found = groups(&curves);
        let titles: Vec<(&str, usize)> = found
            .iter()
            .map(|group| (group.title.as_str(), group.curves.len()))
            .collect();
        assert_eq!(
            titles,
            [
                ("Loss", 2),
                ("AUC", 1),
                ("Acc", 2),
                ("Learning rate", 1),
                ("Throughput", 1),
                ("Waiting for data", 1)
            ]
        );
    }

    #[test]
    fn steps_count_where_epochs_do_not() {
        let by_epoch = curve("loss", &[(1, 0, 1.0), (2, 0, 0.5)]);
        let inside = curve("loss", &[(1, 10, 1.0), (1, 20, 0.5), (2, 30, 0.4)]);
        let at_the_end = curve("loss", &[(1, 10, 1.0), (2, 20, 0.5)]);
        assert!(!counts_by_step(&[&by_epoch]));
        assert!(counts_by_step(&[&inside]));
        assert!(!counts_by_step(&[&at_the_end]));
        assert!(counts_by_step(&[&by_epoch, &inside]));
    }

    #[test]
    fn a_loss_that_is_no_number_is_told_and_breaks_its_curve() {
        let broken = curve("loss", &[(1, 0, 1.0), (2, 0, f64::NAN), (3, 0, 2.0)]);
        assert_eq!(value("loss", None), "not a number");
        let text = draw(&[&broken], &["c1".into()]).draw().into_string();
        assert!(text.contains("h0M"), "{text}");
    }
}
