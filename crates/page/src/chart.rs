//! Curves as SVG, made on the server: they read without scripts, and stand in the box that a script draws into.
//!
//! The curves are stretched to their box and the words beside them are not, so that both a wide screen and a telephone show
//! them well: drawings in a grid, of the values at the side, the curves, the words upon them, and the times below.

use std::fmt::Write;

use maud::{Markup, html};
use tidegate_memory::{figure, format_bytes};

/// What the curves are drawn on, from edge to edge.
const WIDTH: f64 = 1000.0;
/// Words below that do not touch each other on a telephone.
const TIMES: usize = 5;
const VALUES: usize = 5;

/// One direction of a chart.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    pub(crate) from: f64,
    pub(crate) to: f64,
    /// What is written, and where.
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Scale {
    /// From nothing to some more than the most.
    pub(crate) fn bytes(most: u64) -> Scale {
        let to = (most.max(1_000) as f64) * 1.06;
        let ticks = steps(0.0, to, VALUES)
            .into_iter()
            .map(|at| (at, format_bytes(at as u64)))
            .collect();
        Scale { from: 0.0, to, ticks }
    }

    /// Milliseconds since the start.
    pub(crate) fn times(from_ms: f64, to_ms: f64) -> Scale {
        let to = to_ms.max(from_ms + 1.0);
        let each = TIME_STEPS
            .into_iter()
            .find(|each| (to - from_ms) / each <= TIMES as f64)
            .unwrap_or_else(|| round_step((to - from_ms) / TIMES as f64 / 86_400e3) * 86_400e3);
        let mut ticks = Vec::new();
        let mut at = (from_ms / each).ceil() * each;
        while at <= to && ticks.len() <= TIMES {
            ticks.push((at, moment(at)));
            at += each;
        }
        Scale {
            from: from_ms,
            to,
            ticks,
        }
    }

    /// Values as they come, with some room around them.
    pub(crate) fn values(low: f64, high: f64, word: fn(f64) -> String) -> Scale {
        let room = match high - low {
            span if span > 0.0 => span * 0.06,
            _ if low == 0.0 => 1.0,
            _ => low.abs() * 0.1,
        };
        // What is never below zero has its ground there.
        let from = if low >= 0.0 {
            (low - room).max(0.0)
        } else {
            low - room
        };
        let to = high + room;
        let ticks = steps(from, to, VALUES - 1)
            .into_iter()
            .map(|at| (at, word(at)))
            .collect();
        Scale { from, to, ticks }
    }

    /// Values from edge to edge.
    pub(crate) fn exactly(from: f64, to: f64, word: fn(f64) -> String) -> Scale {
        let ticks = steps(from, to, TIMES)
            .into_iter()
            .map(|at| (at, word(at)))
            .collect();
        Scale { from, to, ticks }
    }

    /// Whole numbers: epochs, steps.
    pub(crate) fn counts(from: f64, to: f64) -> Scale {
        let to = to.max(from + 1.0);
        let ticks = steps(from, to, TIMES)
            .into_iter()
            .filter(|at| at.fract() == 0.0)
            .map(|at| (at, short(at)))
            .collect();
        Scale { from, to, ticks }
    }

    fn part(&self, value: f64) -> f64 {
        ((value - self.from) / (self.to - self.from)).clamp(-1.0, 2.0)
    }
}

const TIME_STEPS: [f64; 21] = [
    100.0, 200.0, 500.0, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1_800e3, 3_600e3,
    7_200e3, 14_400e3, 21_600e3, 43_200e3, 86_400e3,
];

/// `0.2 s`, `45 s`, `3:07`, `2:05:09`, `3 d 4 h`.
pub(crate) fn moment(ms: f64) -> String {
    let seconds = ms / 1e3;
    let whole = seconds.round() as u64;
    match whole {
        _ if seconds < 9.95 && seconds.fract() > 0.0 => format!("{seconds:.1} s"),
        0..60 => format!("{whole} s"),
        60..3_600 => format!("{}:{:02}", whole / 60, whole % 60),
        3_600..172_800 => format!("{}:{:02}:{:02}", whole / 3_600, whole / 60 % 60, whole % 60),
        _ => format!("{} d {} h", whole / 86_400, whole / 3_600 % 24),
    }
}

/// `12`, `48 k`, `1.3 M`.
fn short(n: f64) -> String {
    match n {
        n if n >= 1e6 => format!("{} M", n / 1e6),
        n if n >= 1e4 => format!("{} k", n / 1e3),
        n => format!("{n:.0}"),
    }
}

/// 1, 2 or 5 with zeros, the next above.
fn round_step(width: f64) -> f64 {
    if width <= 0.0 || !width.is_finite() {
        return 1.0;
    }
    let magnitude = 10f64.powf(width.log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * magnitude);
    steps
        .into_iter()
        .find(|step| *step >= width * 0.999)
        .unwrap_or(width)
}

/// At most so many round values between the ends.
fn steps(from: f64, to: f64, most: usize) -> Vec<f64> {
    let each = round_step((to - from) / most as f64);
    let first = (from / each).ceil();
    (0..=most)
        .map(|i| (first + i as f64) * each)
        // A zero that comes of differences is not a tiny number.
        .map(|at| if at.abs() < each / 1e6 { 0.0 } else { at })
        .filter(|at| *at <= to)
        .collect()
}

/// A figure as a word beside a chart.
pub(crate) fn plain(value: f64) -> String {
    let text = figure(value);
    let (digits, exponent) = text.split_at(text.find('e').unwrap_or(text.len()));
    match digits.contains('.') {
        true => format!("{}{exponent}", digits.trim_end_matches('0').trim_end_matches('.')),
        false => text,
    }
}

/// `12%`.
pub(crate) fn percent(value: f64) -> String {
    format!("{}%", plain(value * 100.0))
}

/// How a layer is drawn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    Line,
    /// A line that holds until the next point: the budget.
    Limit,
    /// The room between two lines.
    Area,
}

/// One curve.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Layer {
    /// Of the colour: `c1` to `c8`, `line`.
    pub(crate) class: String,
    pub(crate) shape: Shape,
    /// Across, and up; a missing value breaks the curve.
    pub(crate) points: Vec<(f64, Option<f64>)>,
    /// Of an area, its lower edge at each point.
    pub(crate) base: Vec<f64>,
}

/// A moment that is marked.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Mark {
    pub(crate) at: f64,
    /// `epoch`, `death`.
    pub(crate) class: &'static str,
    /// For whoever points at it.
    pub(crate) word: String,
    /// Written beside it, where there is room.
    pub(crate) label: String,
}

/// Everything that is drawn.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chart {
    pub(crate) across: Scale,
    pub(crate) up: Scale,
    /// The last one on top.
    pub(crate) layers: Vec<Layer>,
    pub(crate) marks: Vec<Mark>,
}

impl Chart {
    /// The drawings, of which what is around them tells what they show.
    pub(crate) fn draw(&self) -> Markup {
        let percent = |part: f64| format!("{:.2}%", part * 100.0);
        let height = |value: f64| percent(1.0 - self.up.part(value));
        let middle = |at: f64| match self.across.part(at) {
            part if part < 0.04 => "start",
            part if part > 0.96 => "end",
            _ => "middle",
        };
        html! {
            svg.up aria-hidden="true" {
                @for (at, word) in &self.up.ticks {
                    text x="100%" dx="-8" y=(height(*at)) dy="4" text-anchor="end" { (word) }
                }
            }
            svg.curves viewBox="0 0 1000 1000" preserveAspectRatio="none" aria-hidden="true" {
                @for (at, _) in &self.up.ticks {
                    @let y = self.y(*at);
                    line.rule x1="0" x2="1000" y1=(y) y2=(y) {}
                }
                @for layer in self.layers.iter().filter(|layer| layer.shape == Shape::Area) {
                    path.area.(layer.class) d=(self.area(layer)) {}
                }
                @for mark in &self.marks {
                    @let x = number(self.across.part(mark.at) * WIDTH);
                    line.mark.(mark.class) x1=(x) x2=(x) y1="0" y2="1000" { title { (mark.word) } }
                }
                @for layer in self.layers.iter().filter(|layer| layer.shape != Shape::Area) {
                    path.(layer.class).(if layer.shape == Shape::Limit { "limit" } else { "curve" }) d=(self.curve(layer)) {}
                }
            }
            svg.words aria-hidden="true" {
                @for mark in self.marks.iter().filter(|mark| !mark.label.is_empty()) {
                    @let part = self.across.part(mark.at);
                    @if (0.0..=1.0).contains(&part) {
                        text.(mark.class) x=(percent(part)) y="40" dx=(if part > 0.5 { "-5" } else { "5" }) text-anchor=(if part > 0.5 { "end" } else { "start" }) { (mark.label) }
                    }
                }
            }
            svg.across aria-hidden="true" {
                @for (at, word) in &self.across.ticks {
                    text x=(percent(self.across.part(*at))) y="16" text-anchor=(middle(*at)) { (word) }
                }
            }
        }
    }

    fn y(&self, value: f64) -> String {
        number((1.0 - self.up.part(value)) * WIDTH)
    }

    fn point(&self, at: f64, value: f64) -> String {
        format!("{} {}", number(self.across.part(at) * WIDTH), self.y(value))
    }

    fn curve(&self, layer: &Layer) -> String {
        let mut path = String::new();
        let mut before: Option<f64> = None;
        for (i, (at, value)) in layer.points.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else {
                before = None;
                continue;
            };
            match before {
                None => path.push('M'),
                Some(last) if layer.shape == Shape::Limit => {
                    let _ = write!(path, "L{}L", self.point(*at, last));
                }
                Some(_) => path.push('L'),
            }
            path.push_str(&self.point(*at, value));
            let alone = layer.points.get(i + 1).is_none_or(|(_, next)| next.is_none());
            if before.is_none() && alone {
                // A line of no length with a round end is a dot.
                path.push_str("h0");
            }
            before = Some(value);
        }
        path
    }

    fn area(&self, layer: &Layer) -> String {
        let mut path = String::new();
        let mut ends: Vec<(f64, f64)> = Vec::new();
        let close = |path: &mut String, ends: &mut Vec<(f64, f64)>| {
            for (at, base) in ends.drain(..).rev() {
                let _ = write!(path, "L{}", self.point(at, base));
            }
            if !path.is_empty() && !path.ends_with('Z') {
                path.push('Z');
            }
        };
        for (i, (at, value)) in layer.points.iter().enumerate() {
            let Some(value) = value.filter(|value| value.is_finite()) else {
                close(&mut path, &mut ends);
                continue;
            };
            path.push(if ends.is_empty() { 'M' } else { 'L' });
            path.push_str(&self.point(*at, value));
            ends.push((*at, layer.base.get(i).copied().unwrap_or(self.up.from)));
        }
        close(&mut path, &mut ends);
        path
    }
}

/// A place of the drawing, with as many digits as a screen shows.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or_else(|| text.clone(), Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(scale: &Scale) -> Vec<&str> {
        scale.ticks.iter().map(|(_, word)| word.as_str()).collect()
    }

    #[test]
    fn scales_say_round_numbers() {
        assert_eq!(
            words(&Scale::bytes(64_000_000)),
            ["0 B", "20 MB", "40 MB", "60 MB"]
        );
        assert_eq!(words(&Scale::bytes(0)), ["0 B", "500 B", "1 KB"]);
        assert_eq!(
            words(&Scale::times(0.0, 187_000.0)),
            ["0 s", "1:00", "2:00", "3:00"]
        );
        assert_eq!(
            words(&Scale::times(0.0, 900.0)),
            ["0 s", "0.2 s", "0.4 s", "0.6 s", "0.8 s"]
        );
        assert_eq!(
            words(&Scale::times(0.0, 30.0 * 86_400e3)),
            ["0 s", "10 d 0 h", "20 d 0 h", "30 d 0 h"]
        );
        assert_eq!(words(&Scale::counts(1.0, 9.0)), ["2", "4", "6", "8"]);
        assert_eq!(words(&Scale::counts(1.0, 2.0)), ["1", "2"]);
        assert_eq!(words(&Scale::values(0.11, 0.52, plain)), ["0.2", "0.4"]);
        assert_eq!(words(&Scale::values(0.0, 0.0, plain)), ["0", "0.5", "1"]);
    }

    #[test]
    fn strange_values_make_no_strange_scales() {
        for (low, high) in [
            (1e300, 1e300),
            (-1e-300, 1e-300),
            (f64::MIN, f64::MAX),
            (5.0, 5.0),
        ] {
            let scale = Scale::values(low, high, plain);
            assert!(scale.ticks.len() <= VALUES + 1, "{scale:?}");
        }
        for to in [0.0, 1.0, 1e18] {
            assert!(Scale::times(0.0, to).ticks.len() <= TIMES + 1);
        }
        assert!(!Scale::bytes(u64::MAX).ticks.is_empty());
    }

    fn drawn(shape: Shape, points: Vec<(f64, Option<f64>)>) -> String {
        let chart = Chart {
            across: Scale::counts(0.0, 10.0),
            up: Scale {
                from: 0.0,
                to: 10.0,
                ticks: Vec::new(),
            },
            layers: vec![Layer {
                class: "c1".into(),
                shape,
                points,
                base: Vec::new(),
            }],
            marks: Vec::new(),
        };
        let text = chart.draw().into_string();
        let from = text.find(" d=\"").unwrap() + 4;
        text[from..].split('"').next().unwrap().to_string()
    }

    #[test]
    fn curves_break_where_nothing_was_measured() {
        let points = || {
            vec![
                (0.0, Some(0.0)),
                (5.0, Some(5.0)),
                (6.0, None),
                (10.0, Some(10.0)),
            ]
        };
        assert_eq!(drawn(Shape::Line, points()), "M0 1000L500 500M1000 0h0");
        assert_eq!(drawn(Shape::Limit, points()), "M0 1000L500 1000L500 500M1000 0h0");
        assert_eq!(
            drawn(Shape::Area, points()),
            "M0 1000L500 500L500 1000L0 1000ZM1000 0L1000 1000Z"
        );
        assert_eq!(drawn(Shape::Line, vec![(0.0, Some(f64::NAN))]), "");
        assert_eq!(drawn(Shape::Area, Vec::new()), "");
    }

    #[test]
    fn what_is_written_is_escaped() {
        let chart = Chart {
            across: Scale::counts(0.0, 1.0),
            up: Scale::bytes(1),
            layers: Vec::new(),
            marks: vec![Mark {
                at: 0.0,
                class: "death",
                word: "</title><script>".into(),
                label: "<script>".into(),
            }],
        };
        assert!(!chart.draw().into_string().contains("<script>"));
    }
}
