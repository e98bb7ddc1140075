//! Queries to a PostgreSQL server that the test starts, where its programs are installed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use postgres::{Client, NoTls};
use tempfile::TempDir;
use tidegate_memory::Ledger;

use super::{ROOMY, check_pieces, lines, open_with, read, reading, texts};
use crate::chunk::Read;
use crate::source::{Kind, Source, SourceOptions, without_password};
use crate::{Error, Position, Result};

const PASSWORD: &str = "geheim/wort@x";

/// A server in a temporary folder, on a socket there.
struct Server {
    programs: PathBuf,
    folder: TempDir,
}

impl Server {
    /// `None` where PostgreSQL is not installed.
    fn start() -> Option<Server> {
        let installed = std::fs::read_dir("/usr/lib/postgresql").ok()?;
        let programs = installed
            .filter_map(|version| Some(version.ok()?.path().join("bin")))
            .filter(|programs| programs.join("initdb").exists())
            .max()?;
        let folder = tempfile::tempdir().unwrap();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        std::fs::write(folder.path().join("password"), PASSWORD).unwrap();
        let server = Server { programs, folder };
        let path = |name: &str| server.folder.path().join(name).display().to_string();
        let (data, password, log) = (path("data"), path("password"), path("log"));
        server.run(&[
            "initdb",
            "-D",
            &data,
            "-U",
            "tester",
            "-A",
            "scram-sha-256",
            "--pwfile",
            &password,
            "--no-sync",
            "-E",
            "UTF8",
            "--locale",
            "C",
        ]);
        let options = format!(
            "-k {} -c listen_addresses= -c fsync=off",
            server.folder.path().display()
        );
        server.run(&["pg_ctl", "start", "-w", "-D", &data, "-l", &log, "-o", &options]);
        Some(server)
    }

    /// Runs a program of the server; they refuse to be run by root.
    fn run(&self, words: &[&str]) {
        // SAFETY: asks for a number and touches no memory.
        let is_root = unsafe { libc::geteuid() } == 0;
        let program = self.programs.join(words[0]);
        let mut command = match is_root {
            true => {
                let mut command = Command::new("setpriv");
                command
                    .args(["--reuid=postgres", "--regid=postgres", "--clear-groups"])
                    .arg(program);
                command
            }
            false => Command::new(program),
        };
        let status = command
            .args(&words[1..])
            .current_dir(self.folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .status()
            .unwrap();
        assert!(status.success(), "{words:?}");
    }

    fn address(&self, password: &str) -> PathBuf {
        let escape = |text: &str| text.replace('/', "%2F").replace('@', "%40");
        let folder = escape(&self.folder.path().display().to_string());
        format!("postgresql://tester:{}@{folder}/postgres", escape(password)).into()
    }

    fn execute(&self, sql: &str) {
        let address = self.address(PASSWORD);
        let mut client = Client::connect(address.to_str().unwrap(), NoTls).unwrap();
        client.batch_execute(sql).unwrap();
    }

    fn ask(&self, query: &str) -> Result<Source> {
        ask(&self.address(PASSWORD), Some(query))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let data = self.folder.path().join("data").display().to_string();
        self.run(&["pg_ctl", "stop", "-m", "immediate", "-D", &data]);
    }
}

fn ask(address: &Path, query: Option<&str>) -> Result<Source> {
    let options = SourceOptions {
        query: query.map(String::from),
        ..SourceOptions::default()
    };
    open_with(address, &options)
}

#[test]
fn a_server_answers_queries() {
    let Some(server) = Server::start() else {
        eprintln!("skipped: PostgreSQL is not installed (apt-get install postgresql)");
        return;
    };
    types(&server);
    refusals(&server);
    pieces(&server);
    early_end(&server);
}

fn types(server: &Server) {
    server.execute(
        "CREATE TYPE mood AS ENUM ('happy', 'sad'); CREATE DOMAIN small AS int;
         CREATE TABLE t (i int, l bigint, f float8, n numeric, b bool, s text, c char(4), d date, ts timestamp,
             tz timestamptz, m mood, sm small, v interval, j jsonb, a int[]);
         INSERT INTO t VALUES (1, 9007199254740993, 0.1, 12.50, true, E'a\\tb\\\\\\nc', 'x', '1970-01-02',
             '1970-01-01 00:01:00.5', '1970-01-01 01:00:00+01', 'sad', 7, '1 minute', '{}', '{1}'),
             (NULL, NULL, 'NaN', NULL, false, '\\N', NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);",
    );
    let source = server.ask("SELECT * FROM t ORDER BY i -- the end\n;").unwrap();
    use Kind::*;
    let kinds: Vec<Kind> = source.columns().iter().map(|column| column.kind).collect();
    assert_eq!(
        kinds,
        [
            Number,
            Number,
            Number,
            Number,
            Boolean,
            Text,
            Text,
            Time,
            Time,
            Time,
            Text,
            Number,
            Number,
            Unsupported,
            Unsupported
        ]
    );
    let mut some = texts(&source);
    some.wanted.truncate(13);
    let found = read(&source, &some, Position::default(), ROOMY).unwrap().rows;
    assert_eq!(
        found[0].2.join("|"),
        "1|9007199254740993|0.1|12.50|true|a\tb\\\nc|x|1970-01-02|1970-01-01 00:01:00.5|1970-01-01 00:00:00+00|sad|7|00:01:00"
    );
    assert_eq!(found[1].2.join("|"), "-|-|-|-|false|\\N|-|-|-|-|-|-|-");
    let mut numbers = reading(&source, Read::Number);
    numbers.wanted.truncate(13);
    let found = read(&source, &numbers, Position::default(), ROOMY).unwrap().rows;
    assert_eq!(
        found[0].2.join("|"),
        "1|9007199254740992|0.1|12.5|1|-|-|86400|60.5|0|-|7|60"
    );
    let profile = source.profile(&numbers, &Ledger::new(ROOMY)).unwrap();
    assert_eq!((profile.rows, profile.complete), (2, true));
    let error = read(&source, &texts(&source), Position::default(), ROOMY)
        .err()
        .unwrap();
    assert!(
        error
            .to_string()
            .ends_with("column \"j\" is of type jsonb, which is no number, time or text"),
        "{error}"
    );
    assert_eq!(
        lines(&server.ask("SELECT j::text, a::text FROM t WHERE i = 1").unwrap()),
        ["{} {1}"]
    );
    assert_ne!(
        source.fingerprint().unwrap(),
        server.ask("SELECT 1 AS x").unwrap().fingerprint().unwrap()
    );
}

fn refusals(server: &Server) {
    for (query, expected) in [
        (
            "SELECT z FROM t",
            "the query fails: column \"z\" does not exist (character 8)",
        ),
        (
            "SELEC",
            "the query fails: syntax error at or near \"SELEC\" (character 1)",
        ),
        (
            "SELECT 1 AS x, 2 AS x",
            "the query fails: two columns are named \"x\": name one of them anew with AS",
        ),
        (
            "SELECT 1; SELECT 2",
            "the query fails: cannot insert multiple commands into a prepared statement",
        ),
        ("DELETE FROM t", "the query fails: it does not select rows"),
        ("", "the query fails: it does not select rows"),
    ] {
        let error = server.ask(query).err().unwrap();
        assert!(error.to_string().ends_with(expected), "{error}");
    }
    // What writes in secret fails when it runs, for the transaction only reads.
    server.execute("CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'DELETE FROM t RETURNING 1'");
    for (query, expected) in [
        (
            "SELECT f() AS x",
            "cannot execute DELETE in a read-only transaction",
        ),
        (
            "SELECT 1 / (3 - i) AS x FROM generate_series(1, 9) AS i",
            "division by zero",
        ),
    ] {
        let source = server.ask(query).unwrap();
        let error = read(&source, &texts(&source), Position::default(), ROOMY)
            .err()
            .unwrap();
        assert!(error.to_string().contains(expected), "{error}");
    }
    let address = server.address(PASSWORD);
    assert!(matches!(ask(&address, None), Err(Error::QueryNeeded { .. })));
    for (address, expected) in [
        (server.address("wrong secret"), "password authentication failed"),
        (
            server.address(PASSWORD).join("gone"),
            "database \"postgres/gone\" does not exist",
        ),
    ] {
        let error = ask(&address, Some("SELECT 1 AS x")).err().unwrap();
        assert!(error.to_string().contains(expected), "{error}");
        let all = format!("{error} {error:?} {:?}", error.hint());
        assert!(!all.contains("wrong secret") && !all.contains("geheim"), "{all}");
    }
}

fn pieces(server: &Server) {
    server.execute(
        "CREATE TABLE long AS SELECT i, repeat('x', i % 997) AS s FROM generate_series(1, 20000) AS i;
         INSERT INTO long VALUES (20001, repeat('y', 3000000)), (20002, 'z'); ANALYZE long;",
    );
    let source = server.ask("SELECT * FROM long").unwrap();
    assert!(
        source
            .rows_guess()
            .is_some_and(|rows| (19_000..21_000).contains(&rows))
    );
    check_pieces(&source, 24 << 20);
    check_pieces(
        &server.ask("SELECT s, i FROM long ORDER BY s, i").unwrap(),
        24 << 20,
    );
    let error = read(&source, &texts(&source), Position::default(), 6 << 20)
        .err()
        .unwrap();
    assert!(
        matches!(error, Error::Query { .. } | Error::RowTooLarge { .. }),
        "{error}"
    );
}

/// A reader that stops early does not wait for the rest of the answer.
fn early_end(server: &Server) {
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1::bigint UNION ALL SELECT i + 1 FROM n) SELECT i FROM n";
    let source = server.ask(endless).unwrap();
    let profile = source.profile(&texts(&source), &Ledger::new(ROOMY)).unwrap();
    assert!(!profile.complete && profile.rows >= 16 << 10);
}

#[test]
fn passwords_are_never_shown() {
    for (address, expected) in [
        (
            "postgres://ann:secret@db.example:5433/sales",
            "postgresql://ann@db.example:5433/sales",
        ),
        (
            "postgresql://ann:secret@db.example/sales",
            "postgresql://ann@db.example/sales",
        ),
        (
            "postgresql://db/sales?user=ann&password=secret",
            "postgresql://ann@db/sales",
        ),
        ("postgresql://ann:secret@[half/sales", "postgresql://…"),
        ("postgresql://ann:secret@db:port/sales", "postgresql://…"),
        ("data/secret.csv", "data/secret.csv"),
    ] {
        assert_eq!(without_password(Path::new(address)), Path::new(expected));
        if expected.starts_with("data") {
            continue;
        }
        let error = ask(Path::new(address), None).err().unwrap();
        assert!(
            !format!("{error} {error:?} {:?}", error.hint()).contains("secret"),
            "{error:?}"
        );
    }
    let error = ask(
        Path::new("postgresql://a:secret@127.0.0.1:1/x"),
        Some("SELECT 1 AS x"),
    )
    .err()
    .unwrap();
    assert!(
        error
            .to_string()
            .starts_with("postgresql://a@127.0.0.1:1/x: cannot be reached: "),
        "{error}"
    );
    assert!(!format!("{error:?}").contains("secret"));
}
