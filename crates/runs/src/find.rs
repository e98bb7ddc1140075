//! Reading runs back: by reference, by status, as a list.

use std::path::PathBuf;

use rusqlite::types::Type;
use rusqlite::{OptionalExtension, Row, params};

use crate::error::{Error, Result};
use crate::run::{Judgement, ProcessRef, Run, Status};
use crate::store::Store;

/// Which runs to list; the newest come first.
#[derive(Debug, Clone, Default)]
pub struct ListOptions {
    pub limit: Option<usize>,
    pub status: Option<Status>,
    pub kind: Option<String>,
    pub name: Option<String>,
}

/// How many runs an ambiguous reference names in its error.
const CANDIDATES: usize = 8;

impl Store {
    /// A run by its whole id.
    pub fn get(&self, id: &str) -> Result<Run> {
        match self.one("id = ?1", id)? {
            Some(run) => Ok(run),
            None => Err(self.not_found(id)),
        }
    }

    /// A run by what a person types: `last`, a whole id, a whole name (the newest run of that name),
    /// or the beginning of an id or name that fits no other run.
    pub fn find(&self, reference: &str) -> Result<Run> {
        if reference == "last" {
            return self
                .one("?1 = 'last'", reference)?
                .ok_or_else(|| self.not_found(reference));
        }
        for exact in ["id = ?1", "name = ?1"] {
            if let Some(run) = self.one(exact, reference)? {
                return Ok(run);
            }
        }
        if reference.is_empty() {
            return Err(self.not_found(reference));
        }
        // Runs that share one name are one candidate: its newest.
        let mut fits = self.select(
            "WHERE (substr(id, 1, length(?1)) = ?1 OR substr(name, 1, length(?1)) = ?1)
               AND (name IS NULL OR substr(id, 1, length(?1)) = ?1
                    OR seq = (SELECT max(seq) FROM runs AS same WHERE same.name = runs.name))
             ORDER BY seq DESC LIMIT ?2",
            params![reference, CANDIDATES as i64],
        )?;
        match fits.len() {
            0 => Err(self.not_found(reference)),
            1 => Ok(fits.remove(0)),
            _ => Err(Error::Ambiguous {
                reference: reference.to_string(),
                candidates: fits.iter().map(describe).collect(),
            }),
        }
    }

    pub fn list(&self, options: &ListOptions) -> Result<Vec<Run>> {
        let limit = options
            .limit
            .map_or(-1, |limit| i64::try_from(limit).unwrap_or(i64::MAX));
        self.select(
            "WHERE (?1 IS NULL OR status = ?1) AND (?2 IS NULL OR kind = ?2) AND (?3 IS NULL OR name = ?3)
             ORDER BY seq DESC LIMIT ?4",
            params![
                options.status.map(Status::as_str),
                options.kind,
                options.name,
                limit
            ],
        )
    }

    /// Runs that are not over, as far as the store knows.
    pub fn running(&self) -> Result<Vec<Run>> {
        self.select("WHERE status IN ('starting', 'running') ORDER BY seq", [])
    }

    fn one(&self, condition: &str, value: &str) -> Result<Option<Run>> {
        let columns = columns(self.schema);
        let sql = format!("SELECT {columns} FROM runs WHERE {condition} ORDER BY seq DESC LIMIT 1");
        let read = || {
            self.db
                .prepare_cached(&sql)?
                .query_row([value], read_run)
                .optional()
        };
        read().map_err(|source| self.failed(source))
    }

    fn select(&self, rest: &str, params: impl rusqlite::Params) -> Result<Vec<Run>> {
        let sql = format!("SELECT {} FROM runs {rest}", columns(self.schema));
        let read = || {
            self.db
                .prepare_cached(&sql)?
                .query_map(params, read_run)?
                .collect::<rusqlite::Result<_>>()
        };
        read().map_err(|source| self.failed(source))
    }

    fn not_found(&self, reference: &str) -> Error {
        let known = self
            .db
            .query_row("SELECT count(*) FROM runs", [], |row| row.get::<_, i64>(0));
        match known {
            Ok(known) => Error::NotFound {
                reference: reference.to_string(),
                known: known.cast_unsigned(),
            },
            Err(source) => self.failed(source),
        }
    }
}

fn describe(run: &Run) -> String {
    match &run.name {
        Some(name) => format!("{} ({name})", run.id),
        None => run.id.clone(),
    }
}

/// All that makes a [`Run`], of a home of this schema: an earlier one that cannot be written has no more.
pub(crate) fn columns(schema: i64) -> String {
    let later = match schema {
        3.. => "cause, grade, verdict, family, attempt",
        _ => "NULL AS cause, NULL AS grade, NULL AS verdict, NULL AS family, NULL AS attempt",
    };
    format!("{COLUMNS}, {later}")
}

const COLUMNS: &str = "id, name, kind, status, model, data, target, rows, data_bytes, command, created_ms,
    started_ms, ended_ms, budget_bytes, bound, needs_bytes, peak_bytes, peak_source, resident_peak_bytes,
    oom_kills, metric_name, metric_value, baseline_value, exit_code, signal, error, hint, containment,
    cgroup, boot_id, supervisor_pid, supervisor_start, worker_pid, worker_start";

pub(crate) fn read_run(row: &Row<'_>) -> rusqlite::Result<Run> {
    let status: String = row.get("status")?;
    let command: String = row.get("command")?;
    Ok(Run {
        id: row.get("id")?,
        name: row.get("name")?,
        kind: row.get("kind")?,
        status: Status::parse(&status)
            .ok_or_else(|| unreadable(row, "status", format!("unknown status {status:?}")))?,
        model: row.get("model")?,
        data: row.get("data")?,
        target: row.get("target")?,
        rows: size(row, "rows")?,
        data_bytes: size(row, "data_bytes")?,
        command: serde_json::from_str(&command)
            .map_err(|error| unreadable(row, "command", error.to_string()))?,
        created_ms: row.get("created_ms")?,
        started_ms: row.get("started_ms")?,
        ended_ms: row.get("ended_ms")?,
        budget_bytes: size(row, "budget_bytes")?,
        bound: row.get("bound")?,
        needs_bytes: size(row, "needs_bytes")?,
        peak_bytes: size(row, "peak_bytes")?,
        peak_source: row.get("peak_source")?,
        resident_peak_bytes: size(row, "resident_peak_bytes")?,
        oom_kills: size(row, "oom_kills")?,
        metric_name: row.get("metric_name")?,
        metric_value: row.get("metric_value")?,
        baseline_value: row.get("baseline_value")?,
        exit_code: row.get("exit_code")?,
        signal: row.get("signal")?,
        error: row.get("error")?,
        hint: row.get("hint")?,
        containment: row.get("containment")?,
        cgroup: row.get::<_, Option<String>>("cgroup")?.map(PathBuf::from),
        boot_id: row.get("boot_id")?,
        supervisor: process(row, "supervisor_pid", "supervisor_start")?,
        worker: process(row, "worker_pid", "worker_start")?,
        verdict: match (row.get("cause")?, row.get("grade")?, row.get("verdict")?) {
            (Some(cause), Some(grade), Some(sentence)) => Some(Judgement {
                cause,
                grade,
                sentence,
            }),
            _ => None,
        },
        family: row.get("family")?,
        attempt: row.get("attempt")?,
    })
}

pub(crate) fn size(row: &Row<'_>, column: &str) -> rusqlite::Result<Option<u64>> {
    Ok(row
        .get::<_, Option<i64>>(column)?
        .and_then(|value| u64::try_from(value).ok()))
}

fn process(row: &Row<'_>, pid: &str, start: &str) -> rusqlite::Result<Option<ProcessRef>> {
    let pid: Option<i32> = row.get(pid)?;
    Ok(pid
        .zip(size(row, start)?)
        .map(|(pid, start_time)| ProcessRef { pid, start_time }))
}

/// A value that this version cannot have written.
fn unreadable(row: &Row<'_>, column: &str, found: String) -> rusqlite::Error {
    let index = row.as_ref().column_index(column).unwrap_or(0);
    rusqlite::Error::FromSqlConversionFailure(index, Type::Text, found.into())
}
