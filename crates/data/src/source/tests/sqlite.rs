//! Queries to SQLite files.

use rusqlite::Connection;
use tidegate_memory::Ledger;

use super::{Folder, ROOMY, check_pieces, lines, open_with, read, reading, rows, texts};
use crate::chunk::Read;
use crate::source::{Kind, Source, SourceOptions};
use crate::{BadRows, Error, Position, Result, Role, Table, TableOptions};

fn database(sql: &str) -> Folder {
    let folder = Folder::new(&[]);
    let connection = Connection::open(folder.path("t.db")).unwrap();
    connection.execute_batch(sql).unwrap();
    folder
}

fn ask(folder: &Folder, query: &str) -> Result<Source> {
    let options = SourceOptions {
        query: Some(query.into()),
        ..SourceOptions::default()
    };
    open_with(&folder.path("t.db"), &options)
}

const CITIES: &str =
    "CREATE TABLE cities (name TEXT, people INTEGER, area REAL, coast BOOLEAN, flag BLOB, note);
    INSERT INTO cities VALUES ('Oslo', 709037, 480.75, 1, x'00ff', NULL),
        ('Rome', 2750000, 1285.0, 0, NULL, '12'), ('Bern', 9007199254740993, 1e300, NULL, NULL, 'x');";

#[test]
fn the_only_table_is_read_without_a_query() {
    let folder = database(CITIES);
    let source = folder.open("t.db").unwrap();
    let kinds: Vec<(&str, Kind)> = source
        .columns()
        .iter()
        .map(|column| (column.name.as_str(), column.kind))
        .collect();
    assert_eq!(
        kinds,
        [
            ("name", Kind::Untyped),
            ("people", Kind::Number),
            ("area", Kind::Number),
            ("coast", Kind::Boolean),
            ("flag", Kind::Unsupported),
            ("note", Kind::Untyped)
        ]
    );
    assert_eq!((source.rows_guess(), source.n_rows()), (Some(3), None));
    let mut without_flag = texts(&source);
    without_flag.wanted.retain(|wanted| wanted.name != "flag");
    let found = read(&source, &without_flag, Position::default(), ROOMY)
        .unwrap()
        .rows;
    let found: Vec<String> = found
        .iter()
        .map(|(_, line, cells)| format!("{line} {}", cells.join(" ")))
        .collect();
    assert_eq!(
        found,
        [
            "1 Oslo 709037 480.75 1 -",
            "2 Rome 2750000 1285 0 12",
            "3 Bern 9007199254740993 1e300 - x"
        ]
    );
    let profile = source.profile(&without_flag, &Ledger::new(ROOMY)).unwrap();
    assert_eq!((profile.rows, profile.complete), (3, true));
    assert_eq!((profile.columns[1].numbers, profile.columns[5].text), (3, 1));
}

/// SQLite keeps a text in a column of numbers as it is.
#[test]
fn a_declaration_is_believed_where_the_values_bear_it_out() {
    let folder = database(
        "CREATE TABLE t (x INTEGER, size REAL, mixed NUMERIC, coast BOOLEAN, sure BOOL, y INTEGER);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200)
         INSERT INTO t SELECT i * 37 % 101, CASE i WHEN 7 THEN NULL ELSE i / 8.0 END,
            CASE i % 2 WHEN 0 THEN 'odd ' || (i % 5) ELSE i % 3 END, CASE i % 3 WHEN 0 THEN 'perhaps' ELSE i % 2 END,
            i % 2, CASE i * 7 % 3 WHEN 0 THEN 'good' ELSE 'bad' END FROM n;",
    );
    let source = folder.open("t.db").unwrap();
    let profile = source.profile(&texts(&source), &Ledger::new(ROOMY)).unwrap();
    let looks: Vec<(Kind, u64, u64, u64)> = profile
        .columns
        .iter()
        .map(|look| (look.kind, look.numbers, look.text, look.missing))
        .collect();
    assert_eq!(
        looks,
        [
            (Kind::Number, 200, 0, 0),
            (Kind::Number, 199, 0, 1),
            (Kind::Untyped, 100, 100, 0),
            (Kind::Untyped, 134, 66, 0),
            (Kind::Boolean, 200, 0, 0),
            (Kind::Untyped, 0, 200, 0),
        ]
    );
    assert_eq!(profile.columns[1].moments.max, 25.0);
    let table = Table::open(source, "y", &TableOptions::default(), &Ledger::new(ROOMY)).unwrap();
    let labels: Vec<&str> = table
        .encoders
        .target
        .labels()
        .iter()
        .map(|label| label.text.as_str())
        .collect();
    assert_eq!(labels, ["bad", "good"]);
    let roles: Vec<Role> = table.columns.iter().map(|column| column.judged.role).collect();
    assert_eq!(
        roles,
        [
            Role::Numeric,
            Role::Numeric,
            Role::Category,
            Role::Category,
            Role::Boolean
        ]
    );
}

#[test]
fn a_look_counts_the_values_that_it_remembers() {
    let columns: Vec<String> = (0..100).map(|column| format!("c{column}")).collect();
    let values: Vec<String> = (0..100).map(|column| format!("i * 7 + {column}")).collect();
    let folder = database(&format!(
        "CREATE TABLE t ({0}); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
         INSERT INTO t SELECT {1} FROM n;",
        columns.join(", "),
        values.join(", ")
    ));
    let source = folder.open("t.db").unwrap();
    match source.profile(&texts(&source), &Ledger::new(1 << 20)) {
        Err(Error::Columns { columns, needed, .. }) => {
            assert_eq!((columns, needed), (100, 100 * (1024 + 4096 * 5)));
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_query_names_its_columns() {
    let folder = database(CITIES);
    let source = ask(
        &folder,
        "SELECT name, people / 1000 AS k, name FROM cities WHERE people < 1e7 ORDER BY people DESC",
    )
    .unwrap();
    let names: Vec<&str> = source
        .columns()
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["name", "k", "name.1"]);
    assert_eq!(lines(&source), ["Rome 2750 Rome", "Oslo 709 Oslo"]);
}

#[test]
fn what_cannot_be_asked_is_refused() {
    let folder = database("CREATE TABLE a (x); CREATE TABLE b (y); INSERT INTO a VALUES (1);");
    folder.write(
        "empty.db",
        &std::fs::read(database("CREATE TABLE t (x); DROP TABLE t;").path("t.db")).unwrap(),
    );
    folder.write("t.csv", b"x\n1\n");
    assert_eq!(folder.refused("t.db"), "t.db: holds several tables: \"a\", \"b\"");
    assert_eq!(folder.refused("empty.db"), "empty.db: holds no tables");
    for (query, expected) in [
        (
            "SELECT z FROM a",
            "the query fails: no such column: z (character 8)",
        ),
        (
            "SELEC",
            "the query fails: near \"SELEC\": syntax error (character 1)",
        ),
        ("DELETE FROM a", "the query fails: it does not select rows"),
        (
            "DELETE FROM a RETURNING x",
            "the query fails: it does not select rows",
        ),
        ("ATTACH 'x' AS y", "the query fails: it does not select rows"),
        (
            "SELECT 1; SELECT 2",
            "the query fails: Multiple statements provided",
        ),
        ("", "the query fails: it does not select rows"),
    ] {
        let error = ask(&folder, query).err().unwrap();
        assert!(error.to_string().ends_with(expected), "{error}");
        assert!(error.is_usage() && error.hint().is_some());
    }
    let options = SourceOptions {
        query: Some("SELECT 1".into()),
        ..SourceOptions::default()
    };
    assert!(matches!(
        open_with(&folder.path("t.csv"), &options),
        Err(Error::NothingToAsk { .. })
    ));
}

#[test]
fn bytes_and_broken_text_are_bad_rows() {
    let folder = database(
        "CREATE TABLE t (x); INSERT INTO t VALUES (1), (x'0102'), (CAST(x'ff' AS TEXT)), ('a' || char(0) || 'b');",
    );
    let source = folder.open("t.db").unwrap();
    let error = rows(&source).unwrap_err().to_string();
    assert!(
        error.ends_with("t.db:2: column \"x\": 2 bytes that are no text"),
        "{error}"
    );
    let mut skip = texts(&source);
    skip.bad_rows = BadRows::Skip;
    let found = read(&source, &skip, Position::default(), ROOMY).unwrap();
    assert_eq!((found.rows.len(), found.bad), (2, 2));
    assert_eq!(found.rows[1].2, ["a\0b"]);
}

#[test]
fn pieces_are_the_same_at_any_budget_and_taken_up_anywhere() {
    let folder = database(
        "CREATE TABLE t (i INTEGER PRIMARY KEY, s TEXT);
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
         INSERT INTO t SELECT i, printf('%.*c', i % 997, 'x') FROM n;
         INSERT INTO t VALUES (20001, printf('%.*c', 3000000, 'y')), (20002, 'z');",
    );
    let source = folder.open("t.db").unwrap();
    check_pieces(&source, 24 << 20);
    check_pieces(
        &ask(&folder, "SELECT s, i FROM t ORDER BY s, i").unwrap(),
        24 << 20,
    );
    // Numbers alone take no room for texts, and pieces are of 4096 rows.
    let numbers = read(
        &source,
        &reading(&source, Read::Number),
        Position::default(),
        20 << 20,
    );
    assert!(numbers.is_ok_and(|found| found.rows.len() == 20_002));
}

#[test]
fn absurd_values_are_refused_within_the_budget() {
    let folder = database("CREATE TABLE t (x); INSERT INTO t VALUES (1);");
    for query in [
        "SELECT zeroblob(1000000000) AS x FROM t",
        "SELECT printf('%.*c', 1000000000, 'x') AS x FROM t",
        "SELECT hex(zeroblob(400000000)) AS x FROM t",
    ] {
        let source = ask(&folder, query).unwrap();
        assert!(matches!(rows(&source), Err(Error::Query { .. })), "{query}");
    }
    // Stopping early ends a query that would not end by itself.
    let endless = ask(
        &folder,
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i FROM n",
    )
    .unwrap();
    let profile = endless.profile(&texts(&endless), &Ledger::new(ROOMY)).unwrap();
    assert!(profile.rows >= 16 << 10 && !profile.complete);
}

#[test]
fn a_changed_database_is_noticed() {
    let folder = database("CREATE TABLE t (x); INSERT INTO t VALUES (1);");
    let source = folder.open("t.db").unwrap();
    let before = source.fingerprint().unwrap();
    assert_ne!(
        before,
        ask(&folder, "SELECT x FROM t").unwrap().fingerprint().unwrap()
    );
    let connection = Connection::open(folder.path("t.db")).unwrap();
    connection
        .execute_batch("INSERT INTO t SELECT randomblob(9000)")
        .unwrap();
    assert!(matches!(rows(&source), Err(Error::Changed { .. })));
    assert_ne!(before, folder.open("t.db").unwrap().fingerprint().unwrap());
}

#[test]
fn broken_databases_end_in_errors() {
    let folder = database(&format!("{CITIES} CREATE INDEX i ON cities (name);"));
    let whole = std::fs::read(folder.path("t.db")).unwrap();
    for at in (16..whole.len()).step_by(7) {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x5a;
        folder.write("t.db", &bytes);
        if let Ok(source) = folder.open("t.db") {
            let mut skip = texts(&source);
            skip.bad_rows = BadRows::Skip;
            let _ = read(&source, &skip, Position::default(), ROOMY);
        }
    }
    folder.write("t.db", &whole[..2000]);
    assert!(matches!(
        folder.open("t.db").and_then(|source| rows(&source)),
        Err(Error::Query { .. })
    ));
}
