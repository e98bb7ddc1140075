//! The store itself: opening a home, and writing what happens to a run.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::{Connection, OpenFlags, params};

use crate::error::{Error, Result};
use crate::find::size;
use crate::paths::RunDir;
use crate::run::{Judgement, NewRun, Outcome, Part, Run, Started, Status, Summary};
use crate::{schema, time};

/// How long a command waits for another one to let go of the database.
const PATIENCE: Duration = Duration::from_secs(10);

/// Without `0 o 1 l i`: ids are read aloud and typed.
const ID_ALPHABET: &[u8; 31] = b"abcdefghjkmnpqrstuvwxyz23456789";
const ID_LENGTH: usize = 8;

/// The runs of one home folder. Open one per thread; any number of processes may share a home.
#[derive(Debug)]
pub struct Store {
    home: PathBuf,
    pub(crate) db: Connection,
    /// Of the schema: below the newest in a home that cannot be written.
    pub(crate) schema: i64,
}

impl Store {
    /// Opens the home, creates what is missing, brings an older database up to date.
    /// A database of a newer version is refused and left as it is.
    pub fn open(home: &Path) -> Result<Store> {
        let runs = home.join("runs");
        fs::create_dir_all(&runs).map_err(|source| Error::Io {
            action: "create",
            path: runs,
            source,
        })?;
        let path = home.join("runs.db");
        let failed = |source| Error::Database {
            path: path.clone(),
            source,
        };

        let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
            | OpenFlags::SQLITE_OPEN_CREATE
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let mut db = Connection::open_with_flags(&path, flags).map_err(failed)?;
        db.busy_timeout(PATIENCE).map_err(failed)?;

        let found = match schema::version(&db) {
            Err(error) if path.exists() && is_read_only(&error) => return Store::open_to_read(home, &path),
            found => found.map_err(failed)?,
        };
        refuse_newer(&path, found)?;
        match use_wal(&db) {
            Err(error) if is_read_only(&error) => return Store::open_to_read(home, &path),
            done => done.map_err(failed)?,
        }
        // A supervisor must stay small: 256 KiB of cache instead of SQLite's 2 MB.
        db.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON; PRAGMA cache_size = -256;")
            .map_err(failed)?;
        schema::migrate(&mut db, schema::MIGRATIONS).map_err(failed)?;
        Ok(Store {
            home: home.to_path_buf(),
            db,
            schema: schema::VERSION,
        })
    }

    /// Opens a home that cannot be written, as it stood when its last writer closed it: runs can be listed
    /// and shown, and everything else fails by name.
    fn open_to_read(home: &Path, path: &Path) -> Result<Store> {
        let failed = |source| Error::Database {
            path: path.to_path_buf(),
            source,
        };
        let flags =
            OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX | OpenFlags::SQLITE_OPEN_URI;
        let escaped = path
            .to_string_lossy()
            .replace('%', "%25")
            .replace('?', "%3f")
            .replace('#', "%23");
        let db = Connection::open_with_flags(format!("file:{escaped}?immutable=1"), flags).map_err(failed)?;
        let found = schema::version(&db).map_err(failed)?;
        refuse_newer(path, found)?;
        Ok(Store {
            home: home.to_path_buf(),
            db,
            schema: found,
        })
    }

    pub fn home(&self) -> &Path {
        &self.home
    }

    pub fn run_dir(&self, id: &str) -> RunDir {
        RunDir::new(&self.home, id)
    }

    /// A new run with a fresh id and its folder. Names need not be unique: a name means the newest
    /// run that carries it, so a job can be run again under its name.
    pub fn create(&self, new: &NewRun) -> Result<Run> {
        if let Some(name) = &new.name {
            check_name(name)?;
        }
        let command = serde_json::Value::from(new.command.clone()).to_string();
        // 31^8 ids: a second try is already unlikely, a fourth means that something else is wrong.
        for attempt in 0.. {
            let id = random_id()?;
            let path = self.run_dir(&id).path().to_path_buf();
            match fs::create_dir(&path) {
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && attempt < 3 => continue,
                made => made.map_err(|source| Error::Io {
                    action: "create",
                    path: path.clone(),
                    source,
                })?,
            }
            let inserted = self.db.prepare_cached(INSERT).and_then(|mut insert| {
                insert.execute(params![
                    id,
                    new.name,
                    new.kind,
                    Status::Starting.as_str(),
                    new.model,
                    new.data,
                    new.target,
                    command,
                    time::now_ms(),
                    signed(new.budget_bytes),
                    new.bound,
                    new.boot_id,
                    new.supervisor.map(|process| process.pid),
                    signed(new.supervisor.map(|process| process.start_time)),
                    new.family.as_ref().map(|(first, _)| first),
                    new.family.as_ref().map(|(_, attempt)| attempt),
                ])
            });
            if let Err(source) = inserted {
                // The folder is still empty, so nothing is lost by taking it back.
                let _ = fs::remove_dir(&path);
                if source.sqlite_error_code() == Some(rusqlite::ErrorCode::ConstraintViolation) && attempt < 3
                {
                    continue;
                }
                return Err(self.failed(source));
            }
            return self.get(&id);
        }
        unreachable!("the loop above returns")
    }

    /// The worker runs. Refused for a run that is already over.
    pub fn started(&self, id: &str, started: &Started) -> Result<()> {
        let changed = self.execute(
            "UPDATE runs SET status = 'running', started_ms = ?2, supervisor_pid = ?3, supervisor_start = ?4,
                worker_pid = ?5, worker_start = ?6, containment = ?7, cgroup = ?8, boot_id = ?9
             WHERE id = ?1 AND status = 'starting'",
            params![
                id,
                time::now_ms(),
                started.supervisor.pid,
                signed(Some(started.supervisor.start_time)),
                started.worker.pid,
                signed(Some(started.worker.start_time)),
                started.containment,
                started.cgroup.as_ref().map(|path| path.to_string_lossy()),
                started.boot_id,
            ],
        )?;
        if changed == 0 {
            self.get(id)?;
            return Err(Error::Over { id: id.to_string() });
        }
        Ok(())
    }

    /// Adds what the run has learnt about itself.
    pub fn update(&self, id: &str, summary: &Summary) -> Result<()> {
        self.execute(
            "UPDATE runs SET model = coalesce(?2, model), target = coalesce(?3, target),
                rows = coalesce(?4, rows), data_bytes = coalesce(?5, data_bytes),
                needs_bytes = coalesce(?6, needs_bytes)
             WHERE id = ?1",
            params![
                id,
                summary.model,
                summary.target,
                signed(summary.rows),
                signed(summary.data_bytes),
                signed(summary.needs_bytes),
            ],
        )?;
        Ok(())
    }

    pub fn set_model(&self, id: &str, model: &str) -> Result<()> {
        self.update(
            id,
            &Summary {
                model: Some(model.to_string()),
                ..Summary::default()
            },
        )
    }

    /// What the plan gives to each part; a later plan takes the place of an earlier one.
    pub fn planned(&self, id: &str, parts: &[(String, u64)]) -> Result<()> {
        self.execute("DELETE FROM parts WHERE run = ?1", params![id])?;
        self.set_parts(id, "planned", parts)
    }

    /// What each part held when all together held the most.
    pub fn held(&self, id: &str, parts: &[(String, u64)]) -> Result<()> {
        self.set_parts(id, "held", parts)
    }

    fn set_parts(&self, id: &str, column: &str, parts: &[(String, u64)]) -> Result<()> {
        let statement = format!(
            "INSERT INTO parts (run, name, {column}) VALUES (?1, ?2, ?3)
             ON CONFLICT (run, name) DO UPDATE SET {column} = ?3"
        );
        for (name, bytes) in parts {
            self.execute(&statement, params![id, name, signed(Some(*bytes))])?;
        }
        Ok(())
    }

    /// The parts of the memory, in the order of the plan.
    pub fn parts(&self, id: &str) -> Result<Vec<Part>> {
        let read = || {
            // A home that cannot be written may still be of the version before.
            if self.schema < 2 {
                return Ok(Vec::new());
            }
            let mut query = self
                .db
                .prepare_cached("SELECT name, planned, held FROM parts WHERE run = ?1 ORDER BY seq")?;
            let rows = query.query_map([id], |row| {
                Ok(Part {
                    name: row.get(0)?,
                    planned_bytes: size(row, "planned")?,
                    held_bytes: size(row, "held")?,
                })
            })?;
            rows.collect::<rusqlite::Result<_>>()
        };
        read().map_err(|source| self.failed(source))
    }

    /// Closes the run. The first finish wins: a later one, of another command that found the run
    /// orphaned at the same moment, changes nothing. Returns whether this was the first.
    pub fn finish(&self, id: &str, outcome: &Outcome) -> Result<bool> {
        let changed = self.execute(
            "UPDATE runs SET status = ?2, ended_ms = ?3, peak_bytes = ?4, peak_source = ?5,
                resident_peak_bytes = ?6, oom_kills = ?7, metric_name = ?8, metric_value = ?9,
                baseline_value = ?10, exit_code = ?11, signal = ?12, error = ?13, hint = ?14
             WHERE id = ?1 AND status IN ('starting', 'running')",
            params![
                id,
                outcome.status.as_str(),
                time::now_ms(),
                signed(outcome.peak_bytes),
                outcome.peak_source,
                signed(outcome.resident_peak_bytes),
                signed(outcome.oom_kills),
                outcome.metric_name,
                outcome.metric_value,
                outcome.baseline_value,
                outcome.exit_code,
                outcome.signal,
                outcome.error,
                outcome.hint,
            ],
        )?;
        Ok(changed > 0)
    }

    /// Notes why a run ended.
    pub fn judge(&self, id: &str, judgement: &Judgement) -> Result<()> {
        self.execute(
            "UPDATE runs SET cause = ?2, grade = ?3, verdict = ?4 WHERE id = ?1",
            params![id, judgement.cause, judgement.grade, judgement.sentence],
        )?;
        Ok(())
    }

    pub(crate) fn failed(&self, source: rusqlite::Error) -> Error {
        Error::Database {
            path: self.home.join("runs.db"),
            source,
        }
    }

    pub(crate) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<usize> {
        let run = || self.db.prepare_cached(sql)?.execute(params);
        run().map_err(|source| self.failed(source))
    }
}

const INSERT: &str = "
INSERT INTO runs (id, name, kind, status, model, data, target, command, created_ms, budget_bytes, bound,
    boot_id, supervisor_pid, supervisor_start, family, attempt)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)";

/// SQLite does not call its busy handler for the switch to WAL, so two first commands at once would
/// fail without a loop of our own.
fn use_wal(db: &Connection) -> rusqlite::Result<()> {
    let patience = Instant::now() + PATIENCE;
    loop {
        // A file system without shared memory answers with another mode, which works as well.
        match db.query_row("PRAGMA journal_mode = WAL", [], |row| row.get::<_, String>(0)) {
            Err(error)
                if error.sqlite_error_code() == Some(rusqlite::ErrorCode::DatabaseBusy)
                    && Instant::now() < patience =>
            {
                std::thread::sleep(Duration::from_millis(10));
            }
            answer => return answer.map(drop),
        }
    }
}

/// SQLite has no unsigned integers; what does not fit is no size that a machine can have.
pub(crate) fn signed(value: Option<u64>) -> Option<i64> {
    value.map(|value| i64::try_from(value).unwrap_or(i64::MAX))
}

fn check_name(name: &str) -> Result<()> {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
    if name.is_empty() || name.len() > 64 || name == "last" || !name.bytes().all(allowed) {
        return Err(Error::Name {
            name: name.to_string(),
        });
    }
    Ok(())
}

fn random_id() -> Result<String> {
    let source = Path::new("/dev/urandom");
    let failed = |error| Error::Io {
        action: "read",
        path: source.to_path_buf(),
        source: error,
    };
    let mut random = fs::File::open(source).map_err(failed)?;
    let mut id = String::with_capacity(ID_LENGTH);
    while id.len() < ID_LENGTH {
        let mut byte = [0u8];
        random.read_exact(&mut byte).map_err(failed)?;
        // 8 × 31 = 248: dropping the rest keeps every letter equally likely.
        if byte[0] < 248 {
            id.push(char::from(ID_ALPHABET[usize::from(byte[0]) % ID_ALPHABET.len()]));
        }
    }
    Ok(id)
}

fn refuse_newer(path: &Path, found: i64) -> Result<()> {
    if found > schema::VERSION {
        return Err(Error::NewerSchema {
            path: path.to_path_buf(),
            found,
            known: schema::VERSION,
        });
    }
    Ok(())
}

/// The database is there and may be read, but neither it nor its folder may be written.
fn is_read_only(error: &rusqlite::Error) -> bool {
    matches!(
        error.sqlite_error_code(),
        Some(rusqlite::ErrorCode::ReadOnly | rusqlite::ErrorCode::CannotOpen)
    )
}

#[cfg(test)]
mod tests;
