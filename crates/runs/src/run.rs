//! A run as data: what is said when it is created, started and finished, and what is read back.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Its row and folder exist; its worker does not run yet.
    Starting,
    Running,
    Done,
    Failed,
    /// Ended early because a person or the system asked for it.
    Stopped,
}

impl Status {
    pub const ALL: [Status; 5] = [
        Status::Starting,
        Status::Running,
        Status::Done,
        Status::Failed,
        Status::Stopped,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            Status::Starting => "starting",
            Status::Running => "running",
            Status::Done => "done",
            Status::Failed => "failed",
            Status::Stopped => "stopped",
        }
    }

    pub(crate) fn parse(text: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.as_str() == text)
    }

    /// No later event can change it.
    pub fn is_over(self) -> bool {
        matches!(self, Status::Done | Status::Failed | Status::Stopped)
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // `pad` keeps width and alignment in tables.
        f.pad(self.as_str())
    }
}

/// A process that can be told from a later one with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    pub pid: i32,
    /// Clock ticks between boot and the start of the process (field 22 of `/proc/PID/stat`).
    pub start_time: u64,
}

/// What is known before the worker starts.
#[derive(Debug, Clone, Default)]
pub struct NewRun {
    /// `train`, `run`, …
    pub kind: String,
    pub name: Option<String>,
    pub model: Option<String>,
    pub data: Option<String>,
    pub target: Option<String>,
    pub budget_bytes: Option<u64>,
    /// The bound that set the budget, in words.
    pub bound: Option<String>,
    pub command: Vec<String>,
    /// Who creates the run; without it a run that never starts is given a few seconds of grace
    /// before it counts as an orphan.
    pub supervisor: Option<ProcessRef>,
    pub boot_id: Option<String>,
    /// The first attempt of the same job, by its id, and which attempt this is, from 2 on.
    pub family: Option<(String, u32)>,
}

/// What is known once the worker runs.
#[derive(Debug, Clone)]
pub struct Started {
    pub supervisor: ProcessRef,
    pub worker: ProcessRef,
    /// How the line is held, in words: `cgroup v2`, `watched: …`.
    pub containment: String,
    pub cgroup: Option<PathBuf>,
    /// The boot (and process namespace) in which the two process numbers mean something.
    pub boot_id: Option<String>,
}

/// What a run learns about itself on the way. `None` leaves the stored value as it is.
#[derive(Debug, Clone, Default)]
pub struct Summary {
    pub model: Option<String>,
    pub target: Option<String>,
    pub rows: Option<u64>,
    pub data_bytes: Option<u64>,
    /// The bytes that the plan predicts.
    pub needs_bytes: Option<u64>,
}

/// One part of the memory of a run. `None` is "not planned" or "not measured".
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Part {
    pub name: String,
    pub planned_bytes: Option<u64>,
    /// What it held when all parts together held the most.
    pub held_bytes: Option<u64>,
}

/// One measured value on the way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Metric {
    pub epoch: u32,
    pub step: u64,
    pub name: String,
    pub value: f64,
}

/// How a run ended. `None` is "not measured".
#[derive(Debug, Clone)]
pub struct Outcome {
    pub status: Status,
    pub peak_bytes: Option<u64>,
    pub peak_source: Option<String>,
    pub resident_peak_bytes: Option<u64>,
    pub oom_kills: Option<u64>,
    pub metric_name: Option<String>,
    pub metric_value: Option<f64>,
    pub baseline_value: Option<f64>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub error: Option<String>,
    pub hint: Option<String>,
}

impl Outcome {
    /// An outcome of which only the status is known.
    pub fn new(status: Status) -> Outcome {
        Outcome {
            status,
            peak_bytes: None,
            peak_source: None,
            resident_peak_bytes: None,
            oom_kills: None,
            metric_name: None,
            metric_value: None,
            baseline_value: None,
            exit_code: None,
            signal: None,
            error: None,
            hint: None,
        }
    }
}

/// Why a run ended, in short.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Judgement {
    /// A word for the kind of end.
    pub cause: String,
    /// `proven`, `likely` or `unknown`.
    pub grade: String,
    pub sentence: String,
}

/// One attempt at training, ours or a foreign command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    pub id: String,
    pub name: Option<String>,
    pub kind: String,
    pub status: Status,
    pub model: Option<String>,
    pub data: Option<String>,
    pub target: Option<String>,
    pub rows: Option<u64>,
    pub data_bytes: Option<u64>,
    pub command: Vec<String>,
    pub created_ms: i64,
    pub started_ms: Option<i64>,
    pub ended_ms: Option<i64>,
    pub budget_bytes: Option<u64>,
    pub bound: Option<String>,
    pub needs_bytes: Option<u64>,
    /// The kernel's peak, by the counter that `peak_source` names.
    pub peak_bytes: Option<u64>,
    pub peak_source: Option<String>,
    pub resident_peak_bytes: Option<u64>,
    pub oom_kills: Option<u64>,
    pub metric_name: Option<String>,
    pub metric_value: Option<f64>,
    pub baseline_value: Option<f64>,
    pub exit_code: Option<i32>,
    pub signal: Option<i32>,
    pub error: Option<String>,
    pub hint: Option<String>,
    pub containment: Option<String>,
    pub cgroup: Option<PathBuf>,
    pub boot_id: Option<String>,
    pub supervisor: Option<ProcessRef>,
    pub worker: Option<ProcessRef>,
    /// `None` as long as nobody asked why it ended.
    pub verdict: Option<Judgement>,
    /// The first attempt of the same job, and which one this is.
    pub family: Option<String>,
    pub attempt: Option<u32>,
}

impl Run {
    /// From the start of the worker to the end, or to `now_ms` while it runs.
    pub fn duration_ms(&self, now_ms: i64) -> Option<u64> {
        let start = self.started_ms?;
        let end = match self.ended_ms {
            Some(end) => end,
            None if self.status.is_over() => return None,
            None => now_ms,
        };
        u64::try_from(end.saturating_sub(start)).ok()
    }

    /// How far the plan was off, as a part of the kernel's peak: above zero where it predicted more. `None` where either
    /// is not known, and of a run that did not come to its end: its peak may have been to come.
    pub fn plan_error(&self) -> Option<f64> {
        let (planned, peak) = (self.needs_bytes?, self.peak_bytes?);
        (self.status == Status::Done && peak > 0).then(|| (planned as f64 - peak as f64) / peak as f64)
    }

    /// What a person calls it: its name, else its id.
    pub fn label(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.id)
    }
}

/// `log_loss` as `log loss`, `r2` as `R²`.
pub fn metric_name(name: &str) -> String {
    match name {
        "r2" => "R²".into(),
        "auc" => "AUC".into(),
        "rmse" => "RMSE".into(),
        "mae" => "MAE".into(),
        "mape" => "MAPE".into(),
        "f1" => "F1".into(),
        "macro_f1" => "macro F1".into(),
        "brier" => "Brier score".into(),
        name => name.replace('_', " "),
    }
}
