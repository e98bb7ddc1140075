//! Runs by page: sorted, filtered and searched by indexes, so that the tenth page of thousands costs what the first does.

use std::collections::HashMap;

use rusqlite::params_from_iter;
use rusqlite::types::Value;

use crate::error::Result;
use crate::find::{columns, read_run};
use crate::run::{Run, Status};
use crate::schema::SEARCHED;
use crate::store::Store;

/// Which page of which runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunsQuery {
    /// Words that all occur somewhere in id, name, model, data, target, verdict, error or command, in either case.
    pub text: Option<String>,
    pub status: Option<Status>,
    pub kind: Option<String>,
    pub sort: SortBy,
    pub ascending: bool,
    pub limit: usize,
    pub offset: usize,
}

impl Default for RunsQuery {
    /// The newest fifty.
    fn default() -> RunsQuery {
        RunsQuery {
            text: None,
            status: None,
            kind: None,
            sort: SortBy::Created,
            ascending: false,
            limit: 50,
            offset: 0,
        }
    }
}

/// What runs are sorted by. Of equals the older one is the smaller, and those without a value come last either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SortBy {
    Created,
    /// Without regard to case, as models are.
    Name,
    /// As [`Status::ALL`] has them.
    Status,
    Model,
    /// Of runs that are over.
    Duration,
    Peak,
    /// The peak as a part of the budget.
    Share,
    Metric,
    /// As [`Run::plan_error`] tells it.
    PlanError,
}

impl SortBy {
    pub const ALL: [SortBy; 9] = [
        SortBy::Created,
        SortBy::Name,
        SortBy::Status,
        SortBy::Model,
        SortBy::Duration,
        SortBy::Peak,
        SortBy::Share,
        SortBy::Metric,
        SortBy::PlanError,
    ];

    pub fn as_str(self) -> &'static str {
        match self {
            SortBy::Created => "created",
            SortBy::Name => "name",
            SortBy::Status => "status",
            SortBy::Model => "model",
            SortBy::Duration => "duration",
            SortBy::Peak => "peak",
            SortBy::Share => "share",
            SortBy::Metric => "metric",
            SortBy::PlanError => "plan_error",
        }
    }

    pub fn parse(text: &str) -> Option<SortBy> {
        SortBy::ALL.into_iter().find(|sort| sort.as_str() == text)
    }

    /// Word for word what the index of this order is on, or SQLite would not know it.
    fn expression(self) -> Option<&'static str> {
        match self {
            SortBy::Created => None,
            SortBy::Name => Some("name COLLATE NOCASE"),
            SortBy::Status => Some(
                "CASE status WHEN 'starting' THEN 0 WHEN 'running' THEN 1 WHEN 'done' THEN 2 WHEN 'failed' THEN 3 \
                 ELSE 4 END",
            ),
            SortBy::Model => Some("model COLLATE NOCASE"),
            SortBy::Duration => Some("CASE WHEN ended_ms >= started_ms THEN ended_ms - started_ms END"),
            SortBy::Peak => Some("peak_bytes"),
            SortBy::Share => Some("CAST(peak_bytes AS REAL) / budget_bytes"),
            SortBy::Metric => Some("metric_value"),
            SortBy::PlanError => Some(
                "CASE WHEN status = 'done' THEN (CAST(needs_bytes AS REAL) - peak_bytes) / peak_bytes END",
            ),
        }
    }

    fn order(self, ascending: bool) -> String {
        match (self.expression(), ascending) {
            (None, true) => "seq".into(),
            (None, false) => "seq DESC".into(),
            (Some(value), true) => format!("{value} NULLS LAST, seq"),
            // Nothing is the smallest of all values.
            (Some(value), false) => format!("{value} DESC, seq DESC"),
        }
    }
}

/// A page, and how many runs there are on all pages together.
#[derive(Debug, Clone, PartialEq)]
pub struct RunsPage {
    pub runs: Vec<Run>,
    pub total: u64,
}

/// Who types more words, or longer ones, looks for something else.
const MOST_WORDS: usize = 32;
const LONGEST_WORD: usize = 200;
/// The index knows groups of three letters.
const GROUP: usize = 3;

impl Store {
    pub fn page(&self, query: &RunsQuery) -> Result<RunsPage> {
        let (condition, values) = self.condition(query);
        let read = || {
            // One state of the database for all that follows.
            let transaction = self.db.unchecked_transaction()?;
            let total: i64 = transaction
                .prepare_cached(&format!("SELECT count(*) FROM runs{condition}"))?
                .query_row(params_from_iter(&values), |row| row.get(0))?;
            let sql = numbers(&condition, query.sort, query.ascending);
            let window =
                [query.limit, query.offset].map(|n| Value::from(i64::try_from(n).unwrap_or(i64::MAX)));
            let wanted: Vec<i64> = transaction
                .prepare_cached(&sql)?
                .query_map(params_from_iter(values.iter().chain(&window)), |row| row.get(0))?
                .collect::<rusqlite::Result<_>>()?;
            let sql = format!("SELECT {} FROM runs WHERE seq = ?1", columns(self.schema));
            let mut one = transaction.prepare_cached(&sql)?;
            let runs = wanted.iter().map(|seq| one.query_row([seq], read_run));
            Ok(RunsPage {
                runs: runs.collect::<rusqlite::Result<_>>()?,
                total: total.cast_unsigned(),
            })
        };
        read().map_err(|source| self.failed(source))
    }

    /// A number that is another one once any other connection has written.
    pub fn version(&self) -> Result<i64> {
        self.db
            .query_row("PRAGMA data_version", [], |row| row.get(0))
            .map_err(|source| self.failed(source))
    }

    /// How many runs there are of each status.
    pub fn counts(&self) -> Result<Vec<(Status, u64)>> {
        let read = || {
            self.db
                .prepare_cached("SELECT status, count(*) FROM runs GROUP BY status")?
                .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)?.cast_unsigned())))?
                .collect::<rusqlite::Result<HashMap<String, u64>>>()
        };
        let counts = read().map_err(|source| self.failed(source))?;
        let count = |status: Status| counts.get(status.as_str()).copied().unwrap_or(0);
        Ok(Status::ALL.map(|status| (status, count(status))).to_vec())
    }

    /// `WHERE …` with its values.
    fn condition(&self, query: &RunsQuery) -> (String, Vec<Value>) {
        let mut conditions: Vec<String> = Vec::new();
        let mut values: Vec<Value> = Vec::new();
        if let Some(status) = query.status {
            conditions.push("status = ?".into());
            values.push(status.as_str().to_string().into());
        }
        if let Some(kind) = &query.kind {
            conditions.push("kind = ?".into());
            values.push(kind.clone().into());
        }
        let words = words(query.text.as_deref().unwrap_or_default());
        if !words.is_empty() {
            let (condition, more) = self.search(&words);
            conditions.push(condition);
            values.extend(more);
        }
        match conditions.is_empty() {
            true => (String::new(), values),
            false => (format!(" WHERE {}", conditions.join(" AND ")), values),
        }
    }

    fn search(&self, words: &[String]) -> (String, Vec<Value>) {
        let like = |text: &str, words: &[&String]| {
            vec![format!("{text} LIKE ? ESCAPE '\\'"); words.len()].join(" AND ")
        };
        // An earlier schema has no index to ask.
        if self.schema < 4 {
            let all: Vec<&String> = words.iter().collect();
            let text = match self.schema {
                3.. => format!("({SEARCHED})"),
                // Verdicts came with the third.
                _ => format!("({})", SEARCHED.replace("verdict", "NULL")),
            };
            return (
                like(&text, &all),
                words.iter().map(|word| pattern(word)).collect(),
            );
        }
        let (long, short): (Vec<&String>, Vec<&String>) =
            words.iter().partition(|word| word.chars().count() >= GROUP);
        let mut conditions = Vec::new();
        let mut values = Vec::new();
        if !long.is_empty() {
            conditions.push("runs_text MATCH ?".to_string());
            let phrases: Vec<String> = long
                .iter()
                .map(|word| format!("\"{}\"", word.replace('"', "\"\"")))
                .collect();
            values.push(phrases.join(" ").into());
        }
        if !short.is_empty() {
            conditions.push(like("text", &short));
            values.extend(short.iter().map(|word| pattern(word)));
        }
        let condition = format!(
            "seq IN (SELECT rowid FROM runs_text WHERE {})",
            conditions.join(" AND ")
        );
        (condition, values)
    }
}

/// The runs of a page by their numbers alone, so that those before it are passed over without being read.
fn numbers(condition: &str, sort: SortBy, ascending: bool) -> String {
    let order = sort.order(ascending);
    format!("SELECT seq FROM runs{condition} ORDER BY {order} LIMIT ? OFFSET ?")
}

fn words(text: &str) -> Vec<String> {
    text.split(|c: char| c.is_whitespace() || c == '\0')
        .filter(|word| !word.is_empty())
        .take(MOST_WORDS)
        .map(|word| word.chars().take(LONGEST_WORD).collect())
        .collect()
}

/// What `LIKE` takes for "somewhere in it".
fn pattern(word: &str) -> Value {
    let mut pattern = String::from("%");
    for c in word.chars() {
        if matches!(c, '%' | '_' | '\\') {
            pattern.push('\\');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan_of(store: &Store, sql: &str, n_values: usize) -> Vec<String> {
        let mut explain = store.db.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
        let values = vec![Value::from("1".to_string()); n_values];
        let rows = explain
            .query_map(params_from_iter(values), |row| row.get("detail"))
            .unwrap();
        rows.collect::<rusqlite::Result<_>>().unwrap()
    }

    #[test]
    fn no_order_reads_or_sorts_all_runs() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        for sort in SortBy::ALL {
            for ascending in [true, false] {
                let plan = plan_of(&store, &numbers("", sort, ascending), 2);
                let index = format!("INDEX runs_by_{}", sort.as_str());
                assert!(
                    plan.len() == 1 && plan[0].ends_with(&index),
                    "{sort:?}, ascending {ascending}: {plan:?}"
                );
            }
        }
        for (condition, index) in [("status = ?", "runs_status"), ("kind = ?", "runs_kind")] {
            let plan = plan_of(
                &store,
                &numbers(&format!(" WHERE {condition}"), SortBy::Created, false),
                3,
            );
            assert!(plan.len() == 1 && plan[0].contains(index), "{plan:?}");
        }
    }

    #[test]
    fn a_search_asks_the_index() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(dir.path()).unwrap();
        let query = RunsQuery {
            text: Some("flights ab".into()),
            ..RunsQuery::default()
        };
        let (condition, values) = store.condition(&query);
        let plan = plan_of(&store, &format!("SELECT seq FROM runs{condition}"), values.len());
        assert!(
            plan.iter()
                .all(|step| !step.starts_with("SCAN runs ") && step != "SCAN runs"),
            "{plan:?}"
        );
    }
}
