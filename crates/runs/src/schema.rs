//! The database's schema: an ordered list of migrations, counted by `PRAGMA user_version`.

mod pages;

use rusqlite::{Connection, TransactionBehavior};

pub(crate) use pages::{BLOCK, SEARCHED};

/// Entry `i` brings a database from version `i` to `i + 1`. Entries are only ever added.
pub(crate) const MIGRATIONS: &[&str] = &[V1, V2, V3, pages::V4];

pub(crate) const VERSION: i64 = MIGRATIONS.len() as i64;

/// `seq` is the order of creation: the clock can stand still or go back between two runs.
const V1: &str = "
CREATE TABLE runs (
    seq                 INTEGER PRIMARY KEY AUTOINCREMENT,
    id                  TEXT NOT NULL UNIQUE,
    name                TEXT,
    kind                TEXT NOT NULL,
    status              TEXT NOT NULL,
    model               TEXT,
    data                TEXT,
    target              TEXT,
    rows                INTEGER,
    data_bytes          INTEGER,
    command             TEXT NOT NULL,
    created_ms          INTEGER NOT NULL,
    started_ms          INTEGER,
    ended_ms            INTEGER,
    budget_bytes        INTEGER,
    bound               TEXT,
    needs_bytes         INTEGER,
    peak_bytes          INTEGER,
    peak_source         TEXT,
    resident_peak_bytes INTEGER,
    oom_kills           INTEGER,
    metric_name         TEXT,
    metric_value        REAL,
    baseline_value      REAL,
    exit_code           INTEGER,
    signal              INTEGER,
    error               TEXT,
    hint                TEXT,
    containment         TEXT,
    cgroup              TEXT,
    boot_id             TEXT,
    supervisor_pid      INTEGER,
    supervisor_start    INTEGER,
    worker_pid          INTEGER,
    worker_start        INTEGER
);
CREATE INDEX runs_name ON runs (name);
CREATE INDEX runs_status ON runs (status);
CREATE TABLE metrics (
    seq   INTEGER PRIMARY KEY,
    run   TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    epoch INTEGER NOT NULL,
    step  INTEGER NOT NULL,
    name  TEXT NOT NULL,
    value REAL
);
CREATE INDEX metrics_run ON metrics (run);
";

/// The parts of a plan, and what each of them held when all together held the most.
const V2: &str = "
CREATE TABLE parts (
    seq     INTEGER PRIMARY KEY,
    run     TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    name    TEXT NOT NULL,
    planned INTEGER,
    held    INTEGER,
    UNIQUE (run, name)
);
";

/// Why a run ended, and which attempt of the same job it was.
const V3: &str = "
ALTER TABLE runs ADD COLUMN cause TEXT;
ALTER TABLE runs ADD COLUMN grade TEXT;
ALTER TABLE runs ADD COLUMN verdict TEXT;
ALTER TABLE runs ADD COLUMN family TEXT;
ALTER TABLE runs ADD COLUMN attempt INTEGER;
CREATE INDEX runs_family ON runs (family);
";

pub(crate) fn version(db: &Connection) -> rusqlite::Result<i64> {
    db.query_row("PRAGMA user_version", [], |row| row.get(0))
}

/// Runs what is missing, each step in a transaction of its own. The version is read again under the
/// write lock, because another command may have migrated in between.
pub(crate) fn migrate(db: &mut Connection, migrations: &[&str]) -> rusqlite::Result<()> {
    for (index, migration) in migrations.iter().enumerate() {
        let step = db.transaction_with_behavior(TransactionBehavior::Immediate)?;
        if version(&step)? == index as i64 {
            step.execute_batch(migration)?;
            step.pragma_update(None, "user_version", index as i64 + 1)?;
        }
        step.commit()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_1_database_keeps_its_rows_through_a_migration() {
        let mut db = Connection::open_in_memory().unwrap();
        migrate(&mut db, &[V1]).unwrap();
        db.execute(
            "INSERT INTO runs (id, kind, status, command, created_ms) VALUES ('abcd2345', 'train', 'done', '[]', 7)",
            [],
        )
        .unwrap();

        let next = "ALTER TABLE runs ADD COLUMN verdict TEXT";
        migrate(&mut db, &[V1, next]).unwrap();
        migrate(&mut db, &[V1, next]).unwrap();
        assert_eq!(version(&db).unwrap(), 2);
        let kept: (String, Option<String>) = db
            .query_row("SELECT id, verdict FROM runs", [], |row| {
                Ok((row.get(0)?, row.get(1)?))
            })
            .unwrap();
        assert_eq!(kept, ("abcd2345".into(), None));
    }

    #[test]
    fn a_failing_migration_leaves_the_version_before_it() {
        let mut db = Connection::open_in_memory().unwrap();
        let broken = "CREATE TABLE half (a); CREATE TABLE half (a);";
        assert!(migrate(&mut db, &[V1, broken]).is_err());
        assert_eq!(version(&db).unwrap(), 1);
        let tables: i64 = db
            .query_row(
                "SELECT count(*) FROM sqlite_schema WHERE name = 'half'",
                [],
                |row| row.get(0),
            )
            .unwrap();
        assert_eq!(tables, 0);
    }
}
