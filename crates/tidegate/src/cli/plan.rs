//! `tidegate plan`

use std::path::Path;

use clap::Args;
use tidegate::{DataKind, Error, Looked, Planned, Result, look, plan};
use tidegate_memory::{Amount, format_bytes, thousands};
use tidegate_watch::{Alternative, Change, DevicePlan, Event, Plan, Times, Update};

use super::reporter::Reporter;
use super::text::{against, columns, counted, duration};
use super::train::TrainArguments;
use super::{open, parse_amount, print_json, print_problem, say};

/// Layers that are named; the rest are summed up.
const SHOWN_LAYERS: usize = 8;

#[derive(Args)]
pub(super) struct PlanArguments {
    #[command(flatten)]
    train: TrainArguments,
    /// Plan for an accelerator with so much memory: what a network learns with is there, its data here
    #[arg(long, value_name = "SIZE", value_parser = parse_amount)]
    device_memory: Option<Amount>,
    /// Say only what the data are: their columns, and what each holds by a first look; no target is needed
    #[arg(long, conflicts_with = "device_memory")]
    look: bool,
}

pub(super) fn run(home: &Path, arguments: PlanArguments) -> Result<()> {
    let json = arguments.train.json;
    let told = match arguments.look {
        true => first_look(home, &arguments),
        false => whole_plan(home, &arguments),
    };
    let device = told.inspect_err(|error| {
        if json {
            print_problem(error);
        }
    })?;
    match device {
        Some(device) if !device.fits => Err(Error::Ended {
            message: format!(
                "it does not fit on a device of {}, whatever is changed",
                format_bytes(device.memory)
            ),
            hint: Some(format!(
                "the least would be one of {}",
                format_bytes(device.least)
            )),
            exit_code: 1,
            run: None,
            least: None,
        }),
        _ => Ok(()),
    }
}

fn first_look(home: &Path, arguments: &PlanArguments) -> Result<Option<DevicePlan>> {
    let job = arguments.train.job_without_target(home)?;
    let session = open(home)?;
    let json = arguments.train.json;
    let mut reporter = Reporter::new(true);
    let looked = look(&session, &job, &mut |budget, update| {
        reporter.update(budget, update)
    });
    reporter.finish();
    let looked = looked?;
    if json {
        print_json(&looked);
    } else {
        look_lines(&looked).iter().for_each(|line| say!("{line}"));
    }
    Ok(None)
}

/// The device is given back, for a plan that does not fit is a plan all the same.
fn whole_plan(home: &Path, arguments: &PlanArguments) -> Result<Option<DevicePlan>> {
    let job = arguments.train.job(home)?;
    let device_memory = match arguments.device_memory {
        None => None,
        Some(Amount::Bytes(bytes)) => Some(bytes),
        Some(Amount::Share(_)) => {
            return Err(Error::Usage {
                what: "--device-memory takes a size: nobody knows what it would be a share of".into(),
                hint: "give it in bytes, such as 16GB".into(),
            });
        }
    };
    let session = open(home)?;
    let mut reporter = Reporter::new(arguments.train.json);
    let planned = plan(&session, &job, device_memory, &mut |budget, update| {
        // The whole of it is printed below.
        if !matches!(update, Update::Event(Event::Plan(_) | Event::Times(_))) {
            reporter.update(budget, update);
        }
    });
    reporter.finish();
    let planned = planned?;
    if arguments.train.json {
        print_json(&planned);
    } else {
        lines(&planned).iter().for_each(|line| say!("{line}"));
    }
    Ok(planned.plan.device)
}

/// What a first look shows, as a person reads it.
fn look_lines(looked: &Looked) -> Vec<String> {
    let rows = looked
        .rows
        .map(|rows| format!(": about {}", counted(rows, "row")));
    let what = match looked.kind {
        DataKind::Table => "a table",
        DataKind::Arrays => "arrays",
        DataKind::Images => "images",
    };
    let mut lines = vec![format!("{what}{}", rows.unwrap_or_default())];
    if looked.columns.is_empty() {
        return lines;
    }
    let mut rows = vec![
        ["column", "role", "distinct", "missing", "values", "why"]
            .map(String::from)
            .to_vec(),
    ];
    for column in &looked.columns {
        rows.push(vec![
            column.name.clone(),
            column.role.clone(),
            column.distinct.map_or_else(|| "many".into(), thousands),
            match column.missing {
                0.0 => String::new(),
                missing => format!("{:.1}%", missing * 100.0),
            },
            column.examples.join(", "),
            column.why.clone(),
        ]);
    }
    lines.extend(columns(&rows).iter().map(|line| format!("  {line}")));
    lines
}

/// The whole plan as a person reads it.
fn lines(planned: &Planned) -> Vec<String> {
    let plan = &planned.plan;
    let mut lines = Vec::new();
    if let Some(device) = &plan.device {
        lines.extend(device_lines(device, &plan.layers));
    }
    let place = if plan.device.is_some() {
        "on the host"
    } else {
        "memory"
    };
    lines.push(format!("{place}: {}", peak(plan)));
    lines.extend(holder_lines(plan));
    let threads = plan.threads.map(|threads| counted(threads, "thread"));
    let facts = [
        ("threads", threads),
        ("time", Some(times(plan.times.as_ref()))),
        (
            "disk",
            Some(match plan.disk_bytes {
                None => "unavailable".into(),
                Some(0) => "nothing more than is there".to_string(),
                Some(bytes) => format!("{} for the pack", format_bytes(bytes)),
            }),
        ),
        ("planned in", Some(duration(planned.seconds))),
    ];
    // Nobody timed an accelerator that is not there, and what it would be fed from is the same.
    let told = facts
        .into_iter()
        .filter(|(name, _)| plan.device.is_none() || *name == "planned in");
    let rows: Vec<Vec<String>> = told
        .filter_map(|(name, value)| Some(vec![name.to_string(), value?]))
        .collect();
    lines.extend(columns(&rows));
    if plan.device.as_ref().is_none_or(|device| device.fits) {
        lines.extend(change_lines(&plan.changes));
    }
    lines.extend(alternative_lines(&plan.alternatives));
    lines
}

/// `35.1 MB of 64 MB, between 33.3 MB and 35.8 MB`
pub(super) fn peak(plan: &Plan) -> String {
    let between = plan.interval.map_or(String::new(), |(low, high)| {
        format!(", between {} and {}", format_bytes(low), format_bytes(high))
    });
    format!("{}{between}", against(Some(plan.needs), plan.budget))
}

/// `75 ms a step, 16 s an epoch: by 6 batches`
pub(super) fn times(times: Option<&Times>) -> String {
    let Some(times) = times else {
        return "unavailable".into();
    };
    let each = |seconds: Option<f64>, unit: &str| {
        let article = if unit.starts_with('e') { "an" } else { "a" };
        seconds.map(|seconds| format!("{} {article} {unit}", moment(seconds)))
    };
    let parts: Vec<String> = [
        each(times.step_seconds, &times.step),
        each(times.epoch_seconds, &times.epoch),
    ]
    .into_iter()
    .flatten()
    .collect();
    format!("{}: {}", parts.join(", "), times.basis)
}

/// `75 ms`, `1.2 s`, `3:07`.
fn moment(seconds: f64) -> String {
    match seconds {
        s if s < 0.001 => format!("{:.2} ms", s * 1e3),
        s if s < 0.0995 => format!("{:.0} ms", s * 1e3),
        s => duration(s),
    }
}

/// Names, each as far in as it is deep, and bytes one below the other.
struct Sizes(Vec<(usize, String, String)>);

impl Sizes {
    fn add(&mut self, depth: usize, name: &str, bytes: u64) {
        if bytes > 0 {
            self.0.push((depth, name.to_string(), format_bytes(bytes)));
        }
    }

    fn lines(self) -> Vec<String> {
        let width = self.0.iter().map(|(_, _, size)| size.len()).max().unwrap_or(0);
        let row = |(depth, name, size): &(usize, String, String)| {
            vec![
                format!("{}{name}", "  ".repeat(*depth)),
                format!("{size:>width$}"),
            ]
        };
        let rows: Vec<Vec<String>> = self.0.iter().map(row).collect();
        columns(&rows).iter().map(|line| format!("  {line}")).collect()
    }
}

fn holder_lines(plan: &Plan) -> Vec<String> {
    let mut sizes = Sizes(Vec::new());
    let arena: u64 = plan.arena.iter().map(|(_, bytes)| bytes).sum();
    for (name, bytes) in &plan.holders {
        sizes.add(0, name, *bytes);
        // Where another stage takes more than the training, its holders are told.
        if name == "network" && *bytes == arena {
            add_arena(&mut sizes, 1, &plan.arena, &plan.layers);
        }
    }
    let mut lines = sizes.lines();
    let granted: u64 = plan.holders.iter().map(|(_, bytes)| bytes).sum();
    if let Some(untouched) = granted.checked_sub(plan.needs).filter(|bytes| *bytes > 0) {
        lines.push(format!(
            "  of these, {} are granted and not touched",
            format_bytes(untouched)
        ));
    }
    lines
}

/// The parts of an arena, and beneath the activations the layers that take the most.
fn add_arena(sizes: &mut Sizes, depth: usize, arena: &[(String, u64)], layers: &[(String, u64)]) {
    for (name, bytes) in arena {
        sizes.add(depth, name, *bytes);
        if name == "activations" {
            let mut layers: Vec<&(String, u64)> = layers.iter().collect();
            // The sort is stable: of equals, the first layer comes first.
            layers.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
            let (named, others) = layers.split_at(layers.len().min(SHOWN_LAYERS));
            named
                .iter()
                .for_each(|(name, bytes)| sizes.add(depth + 1, name, *bytes));
            let rest = others.iter().map(|(_, bytes)| bytes).sum();
            sizes.add(depth + 1, &counted(others.len() as u64, "other"), rest);
        }
    }
}

fn device_lines(device: &DevicePlan, layers: &[(String, u64)]) -> Vec<String> {
    let answer = if device.fits { "it fits" } else { "it does not fit" };
    let needs = against(Some(device.needs), Some(device.memory));
    let mut lines = vec![format!("on the device: {needs}: {answer}")];
    let mut sizes = Sizes(Vec::new());
    add_arena(&mut sizes, 0, &device.holders, layers);
    lines.extend(sizes.lines());
    lines.push("taken to be so, for there is no such device at hand:".into());
    lines.extend(device.assumptions.iter().map(|text| format!("  {text}")));
    lines
}

/// `1.10×`
fn factor(slowdown: f64) -> String {
    format!("{slowdown:.2}× the time")
}

fn change_lines(changes: &[Change]) -> Vec<String> {
    if changes.is_empty() {
        return vec!["nothing had to be changed to fit".into()];
    }
    let row = |change: &Change| {
        vec![
            change.knob.clone(),
            change.to.clone(),
            format!("saves {}", format_bytes(change.saves)),
            change.slowdown.map_or_else(|| "time unavailable".into(), factor),
            change.alters.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = changes.iter().map(row).collect();
    let mut lines = vec!["changed to fit:".to_string()];
    lines.extend(columns(&rows).iter().map(|line| format!("  {line}")));
    lines
}

fn alternative_lines(alternatives: &[Alternative]) -> Vec<String> {
    if alternatives.is_empty() {
        return Vec::new();
    }
    let row = |other: &Alternative| {
        vec![
            other.what.clone(),
            other.how.clone(),
            format!("peak {}", format_bytes(other.peak)),
            factor(other.slowdown),
            other.alters.clone().unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = alternatives.iter().map(row).collect();
    let mut lines = vec!["other ways:".to_string()];
    lines.extend(columns(&rows).iter().map(|line| format!("  {line}")));
    lines
}

/// What was changed, in a line: `micro-batch 8 × 4 saves 60 MB, 1.08× the time`.
pub(super) fn changes(changes: &[Change]) -> Option<String> {
    let one = |change: &Change| {
        let saves = format_bytes(change.saves);
        let slowdown = change.slowdown.map(|times| format!(", {}", factor(times)));
        let slowdown = slowdown.unwrap_or_default();
        format!("{} {} saves {saves}{slowdown}", change.knob, change.to)
    };
    let all: Vec<String> = changes.iter().map(one).collect();
    (!all.is_empty()).then(|| all.join(" · "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sizes(all: &[(&str, u64)]) -> Vec<(String, u64)> {
        all.iter()
            .map(|(name, bytes)| (name.to_string(), *bytes))
            .collect()
    }

    fn network() -> Plan {
        let layers = (1..=10).map(|i| (format!("{i} conv"), i * 1_000_000));
        Plan {
            holders: sizes(&[
                ("runtime", 2_700_000),
                ("network", 60_000_000),
                ("feed", 20_000_000),
            ]),
            needs: 82_700_000,
            interval: Some((78_600_000, 84_300_000)),
            budget: Some(100_000_000),
            threads: Some(2),
            arena: sizes(&[
                ("weights", 1_250_000),
                ("activations", 55_000_000),
                ("scratch", 3_750_000),
            ]),
            layers: layers.collect(),
            disk_bytes: Some(270_000_000),
            times: Some(Times {
                step: "step".into(),
                epoch: "epoch".into(),
                step_seconds: Some(0.075),
                epoch_seconds: Some(16.2),
                basis: "by 6 batches".into(),
            }),
            changes: vec![Change {
                knob: "micro-batch".into(),
                to: "8 samples, 4 times a step".into(),
                saves: 60_000_000,
                slowdown: Some(1.08),
                alters: Some("statistics are of 8 samples".into()),
            }],
            alternatives: vec![Alternative {
                what: "recompute 3 layers".into(),
                how: "--recompute 3".into(),
                peak: 90_000_000,
                slowdown: 1.21,
                alters: None,
            }],
            ..Plan::default()
        }
    }

    fn check(plan: Plan, expected: &str) {
        let planned = Planned {
            plan,
            seconds: 0.8,
            ..Planned::default()
        };
        assert_eq!(lines(&planned).join("\n"), expected.trim_start_matches('\n'));
    }

    #[test]
    fn a_network_is_told_layer_by_layer() {
        check(
            network(),
            r"
memory: 82.7 MB of 100 MB, between 78.6 MB and 84.3 MB
  runtime         2.7 MB
  network          60 MB
    weights      1.25 MB
    activations    55 MB
      10 conv      10 MB
      9 conv        9 MB
      8 conv        8 MB
      7 conv        7 MB
      6 conv        6 MB
      5 conv        5 MB
      4 conv        4 MB
      3 conv        3 MB
      2 others      3 MB
    scratch      3.75 MB
  feed             20 MB
threads     2 threads
time        75 ms a step, 16 s an epoch: by 6 batches
disk        270 MB for the pack
planned in  0.8 s
changed to fit:
  micro-batch  8 samples, 4 times a step  saves 60 MB  1.08× the time  statistics are of 8 samples
other ways:
  recompute 3 layers  --recompute 3  peak 90 MB  1.21× the time",
        );
    }

    #[test]
    fn what_is_not_known_is_unavailable() {
        let plan = Plan {
            holders: sizes(&[("runtime", 3_000_000), ("encoders", 9_000_000)]),
            needs: 10_000_000,
            budget: Some(64_000_000),
            ..Plan::default()
        };
        check(
            plan,
            r"
memory: 10 MB of 64 MB
  runtime   3 MB
  encoders  9 MB
  of these, 2 MB are granted and not touched
time        unavailable
disk        unavailable
planned in  0.8 s
nothing had to be changed to fit",
        );
    }

    #[test]
    fn a_device_is_told_apart_from_the_host() {
        let device = DevicePlan {
            memory: 1_000_000_000,
            fits: true,
            holders: sizes(&[("context", 500_000_000), ("activations", 55_000_000)]),
            needs: 555_000_000,
            least: 520_000_000,
            assumptions: vec!["its context takes 500 MB".into()],
        };
        let plan = Plan {
            device: Some(device),
            arena: Vec::new(),
            changes: Vec::new(),
            alternatives: Vec::new(),
            layers: sizes(&[("1 conv", 55_000_000)]),
            holders: sizes(&[("runtime", 2_700_000)]),
            needs: 2_700_000,
            interval: None,
            ..network()
        };
        check(
            plan,
            r"
on the device: 555 MB of 1 GB: it fits
  context      500 MB
  activations   55 MB
    1 conv      55 MB
taken to be so, for there is no such device at hand:
  its context takes 500 MB
on the host: 2.7 MB of 100 MB
  runtime  2.7 MB
planned in  0.8 s
nothing had to be changed to fit",
        );
    }
}
