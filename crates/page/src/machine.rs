//! The machine: what a job may use of it and what sets that bound, who holds memory now, and what waits for it.
//!
//! Memory and pressure are read where they stand, at most every second. What the program finds out by trying (whether a
//! limit is enforced, how fast the disk is) is asked for more rarely, and the disk only when a person wants to know.

use std::collections::HashMap;
use std::ffi::OsString;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use serde::Serialize;
use serde_json::Value;
use tidegate_memory::{
    Budget, Host, MemInfo, Pressure, Resource, meminfo, pressure, process_status, process_tree, resolve,
    start_time,
};
use tidegate_runs::{ProcessRef, Run, Status, Store, last_record, now_ms};

use crate::error::Result;
use crate::html::Page;
use crate::site::Site;

mod show;

/// How old an answer may be.
const FRESH: Duration = Duration::from_secs(1);
const FRESH_DOCTOR: Duration = Duration::from_secs(60);
/// How long the program may take: a slow disk is timed for seconds.
const PATIENCE: Duration = Duration::from_secs(60);
/// Processes that are shown.
const LARGEST: usize = 12;

pub(crate) fn pages() -> Router<Arc<Site>> {
    Router::new()
        .route("/machine", get(page))
        .route("/machine/disk", post(time_the_disk))
}

pub(crate) fn api() -> Router<Arc<Site>> {
    Router::new().route("/api/machine", get(as_json))
}

/// What is remembered between two requests.
#[derive(Debug, Default)]
pub(crate) struct Machine {
    seen: Mutex<Option<(Instant, Arc<Seen>)>>,
    /// Held while the program is asked, so that it is asked once.
    doctor: tokio::sync::Mutex<Option<(Instant, Doctor)>>,
}

/// What the program found out by trying. `None` was not found out.
#[derive(Debug, Clone, Default, Serialize)]
struct Doctor {
    containment: Option<String>,
    enforced: Option<bool>,
    folder: Option<String>,
    free_bytes: Option<u64>,
    /// Bytes per second, and when that was measured.
    disk_write: Option<f64>,
    disk_read: Option<f64>,
    disk_timed_ms: Option<i64>,
}

/// What was seen at one moment. `None` is unavailable.
#[derive(Debug, Serialize)]
struct Seen {
    time_ms: i64,
    budget: Option<Budget>,
    /// Why there is none.
    no_budget: Option<String>,
    memory: MemInfo,
    memory_pressure: Option<Pressure>,
    io_pressure: Option<Pressure>,
    cpu_pressure: Option<Pressure>,
    cores: Option<usize>,
    /// Runs that are not over.
    runs: Vec<Held>,
    processes: Vec<Process>,
    /// Processes of which this is known, and those that do not tell.
    n_processes: usize,
    n_silent: usize,
}

/// A run and what it holds.
#[derive(Debug, Serialize)]
struct Held {
    id: String,
    label: String,
    status: Status,
    now_bytes: Option<u64>,
    budget_bytes: Option<u64>,
    needs_bytes: Option<u64>,
}

#[derive(Debug, Serialize)]
struct Process {
    pid: i32,
    name: String,
    resident_bytes: u64,
    /// The run that it belongs to.
    run: Option<String>,
}

/// All of it.
#[derive(Serialize)]
struct All<'a> {
    #[serde(flatten)]
    seen: &'a Seen,
    doctor: Doctor,
}

async fn page(State(site): State<Arc<Site>>) -> Result<Page> {
    let (seen, doctor) = (seen(&site).await?, doctor(&site, false).await);
    Ok(show::page(&seen, &doctor))
}

async fn as_json(State(site): State<Arc<Site>>) -> Result<Response> {
    let (seen, doctor) = (seen(&site).await?, doctor(&site, false).await);
    Ok(Json(All { seen: &seen, doctor }).into_response())
}

/// Writes a file and reads it back, which a person has asked for.
async fn time_the_disk(State(site): State<Arc<Site>>) -> Response {
    doctor(&site, true).await;
    (StatusCode::SEE_OTHER, [(header::LOCATION, "/machine#disk")]).into_response()
}

async fn seen(site: &Arc<Site>) -> Result<Arc<Seen>> {
    let known = |site: &Site| {
        let seen = site.machine.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, seen) = seen.as_ref()?;
        (at.elapsed() < FRESH).then(|| seen.clone())
    };
    if let Some(seen) = known(site) {
        return Ok(seen);
    }
    let seen = Arc::new(site.read(|store| Ok(look(&Host::live(), store)?)).await?);
    let mut slot = site.machine.seen.lock().unwrap_or_else(PoisonError::into_inner);
    *slot = Some((Instant::now(), seen.clone()));
    Ok(seen)
}

/// What the program says; what it does not say stays unknown, for the page can be read without it.
async fn doctor(site: &Arc<Site>, time_the_disk: bool) -> Doctor {
    let mut known = site.machine.doctor.lock().await;
    if let Some((at, doctor)) = known.as_ref()
        && at.elapsed() < FRESH_DOCTOR
        && !time_the_disk
    {
        return doctor.clone();
    }
    let mut words: Vec<OsString> = vec!["doctor".into()];
    words.extend((!time_the_disk).then(|| "--quick".into()));
    words.extend(["--".into(), site.options.home.clone().into()]);
    let said = site.order(&words, PATIENCE).await.unwrap_or_default();
    let mut doctor = Doctor::of(&said);
    if doctor.disk_timed_ms.is_none()
        && let Some((_, before)) = known.as_ref()
    {
        let Doctor {
            disk_write,
            disk_read,
            disk_timed_ms,
            ..
        } = *before;
        doctor = Doctor {
            disk_write,
            disk_read,
            disk_timed_ms,
            ..doctor
        };
    }
    *known = Some((Instant::now(), doctor.clone()));
    doctor
}

impl Doctor {
    fn of(said: &Value) -> Doctor {
        let text = |name: &str| said[name].as_str().map(Into::into);
        let (write, read) = (said["disk"]["write"].as_f64(), said["disk"]["read"].as_f64());
        Doctor {
            containment: text("containment"),
            enforced: said["enforced"].as_bool(),
            folder: text("folder"),
            free_bytes: said["free_bytes"].as_u64(),
            disk_write: write,
            disk_read: read,
            disk_timed_ms: write.or(read).map(|_| now_ms()),
        }
    }
}

fn look(host: &Host, store: &Store) -> tidegate_runs::Result<Seen> {
    let (budget, no_budget) = match resolve(host, None) {
        Ok(budget) => (Some(budget), None),
        Err(error) => (None, Some(error.to_string())),
    };
    let running = store.running()?;
    let (processes, n_processes, n_silent) = processes(host, &running);
    let held = |run: &Run| {
        let last = last_record(&store.run_dir(&run.id).flight());
        let last = last.ok().and_then(|(_, record)| record);
        Held {
            id: run.id.clone(),
            label: run.label().into(),
            status: run.status,
            now_bytes: last.and_then(|last| last.cgroup_usage.or(last.proportional).or(last.resident)),
            budget_bytes: run.budget_bytes,
            needs_bytes: run.needs_bytes,
        }
    };
    Ok(Seen {
        time_ms: now_ms(),
        budget,
        no_budget,
        memory: meminfo(host),
        memory_pressure: pressure(host, Resource::Memory),
        io_pressure: pressure(host, Resource::Io),
        cpu_pressure: pressure(host, Resource::Cpu),
        cores: std::thread::available_parallelism().ok().map(usize::from),
        runs: running.iter().map(held).collect(),
        processes,
        n_processes,
        n_silent,
    })
}

/// The largest processes, how many there are, and how many of them tell nothing.
fn processes(host: &Host, running: &[Run]) -> (Vec<Process>, usize, usize) {
    let of_runs = processes_of_runs(host, running);
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let (mut found, mut n_silent) = (Vec::new(), 0);
    for pid in pids {
        let Some(memory) = process_status(host, pid) else {
            continue;
        };
        match (memory.name, memory.resident) {
            (Some(name), Some(resident_bytes)) => found.push(Process {
                pid,
                name,
                resident_bytes,
                run: of_runs.get(&pid).cloned(),
            }),
            _ => n_silent += 1,
        }
    }
    let n = found.len();
    found.sort_by_key(|process| std::cmp::Reverse(process.resident_bytes));
    found.truncate(LARGEST);
    (found, n, n_silent)
}

/// Which run a process belongs to.
fn processes_of_runs(host: &Host, running: &[Run]) -> HashMap<i32, String> {
    let is_there = |process: &ProcessRef| start_time(host, process.pid) == Some(process.start_time);
    let mut of_runs = HashMap::new();
    for run in running {
        let roots = [run.supervisor, run.worker]
            .into_iter()
            .flatten()
            .filter(is_there);
        for root in roots {
            for pid in process_tree(host, root.pid) {
                of_runs.insert(pid, run.id.clone());
            }
        }
    }
    of_runs
}
