//! The wire between a worker and its supervisor: JSON lines over a pipe, typed and versioned.
//!
//! The first line is a [`Event::Hello`] with the version of the wire. A supervisor refuses a version that
//! it does not know; within a version, events and fields may be added, and an event that an older
//! supervisor has never heard of arrives as [`Event::Unknown`] and is ignored.
//!
//! Numbers that are not finite have no JSON: a loss of NaN travels as `null` and arrives as `None` or NaN.

use serde::{Deserialize, Deserializer, Serialize};
use tidegate_memory::{TightBound, format_bytes};

use crate::plan::{Plan, Times};

/// The version of the wire that this build speaks.
pub const WIRE_VERSION: u32 = 1;

/// One line from the worker.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// Always first.
    Hello {
        version: u32,
        pid: i32,
    },
    /// Who will hold what, before the data is read.
    Plan(Box<Plan>),
    /// How long it takes, once some of it was timed: the times of the plan.
    Times(Times),
    /// What every column becomes, before anything is encoded, and the shape of it all.
    Encoding {
        columns: Vec<EncodedColumn>,
        shape: String,
    },
    /// Some of the columns of a table as a look at a sample shows them, in order.
    Columns {
        columns: Vec<SeenColumn>,
    },
    Notice {
        text: String,
    },
    Warning {
        text: String,
    },
    Progress {
        epoch: u32,
        epochs: u32,
        /// Batches or updates so far, over all epochs.
        #[serde(default)]
        step: u64,
        done_bytes: u64,
        #[serde(default)]
        total_bytes: Option<u64>,
        rows: u64,
        #[serde(default, deserialize_with = "nullable")]
        rows_per_second: f64,
        #[serde(default)]
        loss: Option<f64>,
        /// The share of the epoch that the model waited for samples, and what holds it up, where they have to be brought.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stall: Option<f64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        bottleneck: Option<String>,
        /// What is being done, where it is not training: `fit`, `evaluate`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
    },
    /// A snapshot of the worker's ledger; holders as (name, used, used when all together were at their peak).
    Ledger {
        used: u64,
        peak: u64,
        budget: u64,
        #[serde(default)]
        holders: Vec<(String, u64, u64)>,
    },
    Metric {
        epoch: u32,
        step: u64,
        name: String,
        #[serde(deserialize_with = "nullable")]
        value: f64,
    },
    Checkpoint {
        epoch: u32,
        step: u64,
        #[serde(default)]
        bytes: Option<u64>,
    },
    /// The work is complete; the worker exits with 0 next.
    Done(Done),
    /// The worker was asked to stop and did so in good order.
    Stopped {
        epoch: u32,
        step: u64,
        /// Whether a checkpoint holds what was done.
        checkpoint: bool,
        /// Memory that was taken away from it, where nobody asked it to stop but that.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<MemoryTaken>,
    },
    Failed(Failure),
    /// An event of a newer worker.
    #[serde(other, skip_serializing)]
    Unknown,
}

/// Memory that was taken away while a job ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryTaken {
    /// The bound that left too little.
    #[serde(flatten)]
    pub bound: TightBound,
    /// What the job could not do without.
    pub needs: u64,
    /// A budget that is still to be had and that it could go on with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enough: Option<u64>,
}

impl MemoryTaken {
    /// What happened, in the middle of a sentence.
    pub fn describe(&self) -> String {
        let TightBound {
            name,
            limit_before,
            limit,
            used,
            ..
        } = &self.bound;
        let (limit_text, needs) = (format_bytes(*limit), format_bytes(self.needs));
        match limit < limit_before {
            true => format!(
                "memory was taken away: the limit was lowered from {} to {limit_text} while it needed {needs} ({name})",
                match *limit_before {
                    u64::MAX => "none".into(),
                    before => format_bytes(before),
                }
            ),
            false => format!(
                "memory was taken away: others came to use so much that of {limit_text} only {} were left, while it \
                 needed {needs} ({name})",
                format_bytes(limit.saturating_sub(*used)),
            ),
        }
    }
}

/// A column of a table and the way it becomes numbers.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct EncodedColumn {
    pub name: String,
    pub role: String,
    /// About so many different values, where they were counted.
    #[serde(default)]
    pub distinct: Option<f64>,
    /// The share of rows without a value.
    #[serde(default, deserialize_with = "nullable")]
    pub missing: f64,
    pub encoding: String,
    pub dense: u64,
    pub sparse: u64,
    #[serde(default, deserialize_with = "nullable")]
    pub bytes_per_row: f64,
    #[serde(default)]
    pub why: String,
}

/// A column before anything is said of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SeenColumn {
    pub name: String,
    /// What it would be if another column were predicted.
    pub role: String,
    /// Different values of the sample, where they are few enough to be counted.
    #[serde(default)]
    pub distinct: Option<u64>,
    /// The share of the sample without a value.
    #[serde(default, deserialize_with = "nullable")]
    pub missing: f64,
    /// Some of its values, cut where they are long.
    #[serde(default)]
    pub examples: Vec<String>,
    #[serde(default)]
    pub why: String,
}

/// What a worker says at the end. The headline metric is what `runs` lists.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Done {
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub rows: Option<u64>,
    #[serde(default)]
    pub data_bytes: Option<u64>,
    #[serde(default)]
    pub metric_name: Option<String>,
    #[serde(default)]
    pub metric_value: Option<f64>,
    #[serde(default)]
    pub baseline_value: Option<f64>,
    /// Anything else that the command line wants to print; not looked into here.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub details: serde_json::Value,
}

/// Why a worker gave up, in its own words.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    pub message: String,
    #[serde(default)]
    pub hint: Option<String>,
    /// The request was wrong, not the run: exit code 2.
    #[serde(default)]
    pub usage: bool,
    /// The least budget that would do, where it was too small.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<u64>,
}

fn nullable<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN))
}

impl Event {
    /// The line that opens the wire.
    pub fn hello() -> Event {
        Event::Hello {
            version: WIRE_VERSION,
            pid: std::process::id().cast_signed(),
        }
    }

    /// Reads one line; `Err` says what is wrong with it.
    pub fn parse(line: &[u8]) -> Result<Event, String> {
        serde_json::from_slice(line).map_err(|error| error.to_string())
    }

    /// Writes one line, newline included. An [`Event::Unknown`] has no line.
    pub fn to_line(&self) -> Option<Vec<u8>> {
        let mut line = serde_json::to_vec(self).ok()?;
        line.push(b'\n');
        Some(line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(event: Event, line: &str) {
        let written = event.to_line().unwrap();
        assert_eq!(String::from_utf8(written).unwrap().trim_end(), line);
        assert_eq!(Event::parse(line.as_bytes()).unwrap(), event);
    }

    #[test]
    fn the_lines_are_what_other_versions_expect() {
        check(
            Event::Hello { version: 1, pid: 7 },
            r#"{"event":"hello","version":1,"pid":7}"#,
        );
        check(
            Event::Notice { text: "a\nb".into() },
            r#"{"event":"notice","text":"a\nb"}"#,
        );
        check(
            Event::Failed(Failure {
                message: "no".into(),
                hint: None,
                usage: true,
                least: None,
            }),
            r#"{"event":"failed","message":"no","hint":null,"usage":true}"#,
        );
        check(
            Event::Ledger {
                used: 1,
                peak: 2,
                budget: 3,
                holders: vec![("data".into(), 1, 2)],
            },
            r#"{"event":"ledger","used":1,"peak":2,"budget":3,"holders":[["data",1,2]]}"#,
        );
    }

    #[test]
    fn the_plan_of_an_older_worker_is_read() {
        let plan = Plan {
            holders: vec![("runtime".into(), 3)],
            needs: 3,
            rows: Some(5),
            ..Plan::default()
        };
        check(
            Event::Plan(Box::new(plan)),
            r#"{"event":"plan","holders":[["runtime",3]],"needs":3,"rows":5}"#,
        );
    }

    #[test]
    fn a_stop_says_why_where_memory_was_taken_away() {
        let stopped = |reason| Event::Stopped {
            epoch: 2,
            step: 9,
            checkpoint: true,
            reason,
        };
        check(
            stopped(None),
            r#"{"event":"stopped","epoch":2,"step":9,"checkpoint":true}"#,
        );
        let bound = TightBound {
            name: "/x".into(),
            limit_before: 500_000_000,
            limit: 300_000_000,
            used_before: 1,
            used: 299_000_000,
        };
        let taken = MemoryTaken {
            bound: bound.clone(),
            needs: 400_000_000,
            enough: None,
        };
        check(
            stopped(Some(taken.clone())),
            r#"{"event":"stopped","epoch":2,"step":9,"checkpoint":true,"reason":{"name":"/x","limit_before":500000000,"limit":300000000,"used_before":1,"used":299000000,"needs":400000000}}"#,
        );
        assert_eq!(
            taken.describe(),
            "memory was taken away: the limit was lowered from 500 MB to 300 MB while it needed 400 MB (/x)"
        );
        let others = MemoryTaken {
            bound: TightBound {
                limit_before: 300_000_000,
                ..bound
            },
            ..taken
        };
        assert_eq!(
            others.describe(),
            "memory was taken away: others came to use so much that of 300 MB only 1 MB were left, while it needed \
             400 MB (/x)"
        );
    }

    #[test]
    fn a_newer_worker_may_say_more() {
        assert_eq!(
            Event::parse(br#"{"event":"dream","of":{"sheep":[1]}}"#).unwrap(),
            Event::Unknown
        );
        assert_eq!(
            Event::parse(br#"{"event":"warning","text":"x","since":3}"#).unwrap(),
            Event::Warning { text: "x".into() }
        );
    }

    #[test]
    fn a_metric_that_is_not_a_number_stays_one() {
        let event = Event::Metric {
            epoch: 1,
            step: 2,
            name: "loss".into(),
            value: f64::NAN,
        };
        let Ok(Event::Metric { value, .. }) = Event::parse(&event.to_line().unwrap()) else {
            panic!()
        };
        assert!(value.is_nan());
    }

    #[test]
    fn junk_is_an_error_and_not_a_panic() {
        for junk in [
            "",
            "{}",
            "null",
            "[1]",
            "{\"event\":1}",
            "{\"event\":\"hello\"}",
            "\u{0}",
            "{\"event\":",
        ] {
            assert!(Event::parse(junk.as_bytes()).is_err(), "{junk:?}");
        }
    }
}
