//! JSON lines: their keys, their values, and lines that are none.

use proptest::prelude::*;
use tidegate_memory::Ledger;

use super::{Folder, ROOMY, check_pieces, lines, open_with, read, reading, rows, texts};
use crate::chunk::Read;
use crate::source::{Kind, Source, SourceOptions};
use crate::{BadRows, Error, Position};

fn source(text: &[u8]) -> (Folder, Source) {
    let folder = Folder::new(&[("t.jsonl", text)]);
    let source = folder.open("t.jsonl").unwrap();
    (folder, source)
}

fn names(source: &Source) -> Vec<(&str, Kind)> {
    source
        .columns()
        .iter()
        .map(|column| (column.name.as_str(), column.kind))
        .collect()
}

#[test]
fn keys_are_columns_in_the_order_of_first_appearance() {
    let (_folder, source) = source(
        b"{\"a\": 1, \"b\": \"x\"}\n\n{\"b\": null, \"c\": {\"d\": true, \"e\": {\"f\": 1.5}}}\r\n{\"a\": 2, \"l\": [1, {\"z\": 1}], \"b\": \"\\u00e9\\ud83d\\ude00\\n\"}",
    );
    assert_eq!(
        names(&source),
        [
            ("a", Kind::Number),
            ("b", Kind::Untyped),
            ("c.d", Kind::Boolean),
            ("c.e.f", Kind::Number)
        ]
    );
    assert_eq!(lines(&source), ["1 x - -", "- - true 1.5", "2 é😀 - -"]);
    let at: Vec<u64> = rows(&source).unwrap().iter().map(|(_, line, _)| *line).collect();
    assert_eq!(at, [1, 3, 4]);
    assert_eq!(source.n_rows(), Some(3));
}

#[test]
fn values_are_what_is_wanted_of_them() {
    let text = b"{\"v\": 12345678901234567890}\n{\"v\": -9007199254740993}\n{\"v\": 1e300}\n{\"v\": 1e15}\n{\"v\": 0.1}\n{\"v\": \"7\"}\n{\"v\": true}\n{\"v\": [1]}\n{\"v\": \"word\"}\n{\"v\": -999}\n";
    let (_folder, source) = source(text);
    assert_eq!(
        lines(&source),
        [
            "12345678901234567890",
            "-9007199254740993",
            "1e300",
            "1000000000000000",
            "0.1",
            "7",
            "true",
            "-",
            "word",
            "-999"
        ]
    );
    let mut numbers = reading(&source, Read::Number);
    numbers.missing = vec!["-999".into()];
    let cells = read(&source, &numbers, Position::default(), ROOMY).unwrap().rows;
    let cells: Vec<&str> = cells.iter().map(|(.., cells)| cells[0].as_str()).collect();
    assert_eq!(cells[4..], ["0.1", "7", "1", "-", "-", "-"]);
    let folder = Folder::new(&[("t.jsonl", text)]);
    let options = SourceOptions {
        missing: vec!["-999".into()],
        ..SourceOptions::default()
    };
    let source = open_with(&folder.path("t.jsonl"), &options).unwrap();
    let profile = source.profile(&numbers, &Ledger::new(ROOMY)).unwrap();
    let look = &profile.columns[0];
    assert_eq!((look.numbers, look.text, look.missing), (6, 2, 2));
}

#[test]
fn bad_lines_are_told_by_their_place() {
    for (bad, expected) in [
        ("{\"a\": 1,}", "t.jsonl:2: character 9: trailing comma"),
        ("{\"a\": 1", "t.jsonl:2: character 7: EOF while parsing an object"),
        ("{\"é\": 1} x", "t.jsonl:2: character 10: trailing characters"),
        (
            "[1]",
            "t.jsonl:2: character 1: invalid type: sequence, expected an object",
        ),
        (
            "{\"a\": \"\\ud800\"}",
            "t.jsonl:2: character 14: unexpected end of hex escape",
        ),
        ("{\"a\": 1e999}", "t.jsonl:2: character 11: number out of range"),
        (
            "{\"a\": 1, \"a\": 2}",
            "t.jsonl:2: character 15: the key \"a\" stands twice in one object",
        ),
        (
            "{\"a\": \"\x00\"}",
            "t.jsonl:2: character 8: control character (\\u0000-\\u001F) found while parsing a string",
        ),
        ("nul", "t.jsonl:2: character 3: EOF while parsing a value"),
    ] {
        let text = format!("{{\"a\": 0}}\n{bad}\n{{\"a\": 3}}\n");
        let (folder, source) = source(text.as_bytes());
        let error = rows(&source).unwrap_err();
        assert!(error.hint().is_some());
        assert_eq!(
            error
                .to_string()
                .replace(&format!("{}/", folder.0.path().display()), ""),
            expected
        );
        let mut skip = texts(&source);
        skip.bad_rows = BadRows::Skip;
        let left = read(&source, &skip, Position::default(), ROOMY).unwrap();
        assert_eq!((left.rows.len(), left.bad), (2, 1), "{bad}");
    }
}

#[test]
fn bytes_that_are_not_utf8_make_a_bad_line() {
    let (_folder, source) = source(b"{\"a\": \"x\"}\n{\"a\": \"\xff\"}\n");
    assert!(matches!(rows(&source), Err(Error::BadRow { line: 2, .. })));
}

#[test]
fn other_json_is_refused_with_what_to_do() {
    let folder = Folder::new(&[
        ("list.json", b" \n[{\"a\": 1}]"),
        ("pretty.json", b"{\n  \"a\": 1\n}\n"),
        ("blank.jsonl", b"\n \n"),
        ("mixed/a.jsonl", b"{\"a\": 1}\n"),
        ("mixed/b.csv", b"a\n1\n"),
    ]);
    for (name, expected) in [
        (
            "list.json",
            "list.json: is one JSON list instead of an object a line",
        ),
        (
            "pretty.json",
            "pretty.json:1: character 1: EOF while parsing an object, and no other line seen holds an object",
        ),
        ("blank.jsonl", "blank.jsonl: the file is empty"),
        ("mixed", "mixed/a.jsonl is JSON lines and mixed/b.csv is CSV"),
    ] {
        assert_eq!(folder.refused(name), expected);
    }
}

#[test]
fn files_share_the_keys_that_any_of_them_showed() {
    let folder = Folder::new(&[
        ("t/1.jsonl", b"{\"a\": 1, \"b\": true}\n"),
        ("t/2.jsonl", b"{\"c\": 3, \"a\": 2}\n{\"b\": \"x\"}\n"),
    ]);
    let source = folder.open("t").unwrap();
    assert_eq!(
        names(&source),
        [("a", Kind::Number), ("b", Kind::Untyped), ("c", Kind::Number)]
    );
    assert_eq!(lines(&source), ["1 true -", "2 - 3", "- x -"]);
    let profile = source.profile(&texts(&source), &Ledger::new(ROOMY)).unwrap();
    let missing: Vec<u64> = profile.columns.iter().map(|look| look.missing).collect();
    assert_eq!((missing, profile.complete), (vec![1, 1, 2], true));
}

#[test]
fn nesting_is_bounded() {
    let deep = "{\"k\":".repeat(100) + "1" + &"}".repeat(100);
    let lists = "[".repeat(100_000) + &"]".repeat(100_000);
    let text = format!("{{\"a\": 1}}\n{{\"a\": 2, \"d\": {deep}}}\n{{\"a\": 3, \"d\": {lists}}}\n{lists}\n");
    let (_folder, source) = source(text.as_bytes());
    let mut skip = texts(&source);
    skip.bad_rows = BadRows::Skip;
    let found = read(&source, &skip, Position::default(), ROOMY).unwrap();
    assert_eq!(names(&source), [("a", Kind::Number)]);
    assert_eq!(found.rows.len() as u64 + found.bad, 4);
    let huge = "{\"k\":".repeat(100_000);
    let (_folder, source) = self::source(format!("{{\"a\": 1}}\n{huge}\n").as_bytes());
    assert!(matches!(rows(&source), Err(Error::BadRow { line: 2, .. })));
}

#[test]
fn keys_beyond_the_budget_are_refused() {
    let text: Vec<u8> = (0..100_000)
        .flat_map(|i| format!("{{\"key {i}\": {i}}}\n").into_bytes())
        .collect();
    let folder = Folder::new(&[("t.jsonl", &text)]);
    let ledger = Ledger::new(16 << 20);
    let refused = Source::open(&[folder.path("t.jsonl")], &SourceOptions::default(), &[], &ledger).err();
    assert!(matches!(refused, Some(Error::Columns { .. })), "{refused:?}");
    assert_eq!(ledger.used(), 0);
}

#[test]
fn long_files_are_read_at_any_budget_and_taken_up_anywhere() {
    let mut text = Vec::new();
    for i in 0..60_000 {
        let line = format!(
            "{{\"id\": {i}, \"text\": \"some words {}\", \"x\": {{\"y\": {}}}}}\n",
            i % 9,
            1e15
        );
        text.extend(line.into_bytes());
        if i % 1000 == 0 {
            text.extend(b"\n");
        }
    }
    text.extend(format!("{{\"text\": \"{}\"}}\n", "long ".repeat(300_000)).into_bytes());
    text.extend(b"{\"id\": -1}");
    let folder = Folder::new(&[
        ("t.jsonl", &text),
        ("t.zst", &zstd::encode_all(text.as_slice(), 1).unwrap()),
    ]);
    check_pieces(&folder.open("t.jsonl").unwrap(), 16 << 20);
    check_pieces(&folder.open("t.zst").unwrap(), 24 << 20);
}

fn json(depth: u32) -> impl Strategy<Value = serde_json::Value> {
    let leaf = prop_oneof![
        Just(serde_json::Value::Null),
        any::<bool>().prop_map(Into::into),
        any::<i64>().prop_map(Into::into),
        any::<f64>().prop_map(Into::into),
        ".{0,8}".prop_map(Into::into),
    ];
    leaf.prop_recursive(depth, 16, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Into::into),
            prop::collection::hash_map("[a-c.\\\\\"é]{0,3}", inner, 0..3)
                .prop_map(|map| map.into_iter().collect::<serde_json::Map<_, _>>().into()),
        ]
    })
}

proptest! {
    /// Strings and whole numbers come back as they were written.
    #[test]
    fn what_was_written_comes_back(values in prop::collection::vec(("[a-z\\\\\"\n\té😀]{1,12}", any::<i64>(), any::<f64>()), 1..20)) {
        let mut text = String::new();
        for (word, whole, float) in &values {
            text.push_str(&serde_json::json!({"w": format!("x{word}x"), "i": whole, "f": float}).to_string());
            text.push('\n');
        }
        let (_folder, source) = source(text.as_bytes());
        let expected: Vec<Vec<String>> = values
            .iter()
            .map(|(word, whole, _)| vec![format!("x{word}x"), whole.to_string()])
            .collect();
        let at = |name: &str| source.columns().iter().position(|column| column.name == name).unwrap();
        let found: Vec<Vec<String>> = rows(&source)
            .unwrap()
            .into_iter()
            .map(|(.., cells)| vec![cells[at("w")].clone(), cells[at("i")].clone()])
            .collect();
        prop_assert_eq!(found, expected);
        let numbers = read(&source, &reading(&source, Read::Number), Position::default(), ROOMY).unwrap();
        for ((.., cells), (_, _, float)) in numbers.rows.iter().zip(&values) {
            prop_assert_eq!(cells[at("f")].parse::<f64>().unwrap(), *float);
        }
    }

    /// Any objects and any damage end in rows or in an error, and every row has all its cells.
    #[test]
    fn nothing_panics(values in prop::collection::vec(json(5), 1..6), at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let mut text = b"{\"a\": 1}\n".to_vec();
        for value in values {
            text.extend(serde_json::json!({"a": value.clone(), "b": [value]}).to_string().into_bytes());
            text.push(b'\n');
        }
        let at = at.index(text.len());
        text[at] = byte;
        let folder = Folder::new(&[("t.jsonl", &text)]);
        if let Ok(source) = folder.open("t.jsonl") {
            let mut skip = texts(&source);
            skip.bad_rows = BadRows::Skip;
            let _ = read(&source, &skip, Position::default(), ROOMY);
        }
    }
}
