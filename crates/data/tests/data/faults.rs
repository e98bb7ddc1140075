//! Bad rows deep in a file of many blocks, named by their exact line.

use std::fmt::Write;

use tidegate_data::batch::Broken;
use tidegate_data::{BadRows, Error, Fault, TableOptions};

use crate::help::{BLOCK, ROOMY, Scratch, options, read};

/// About 3 MB of good rows `40000 - i,"text of one to three lines",i.5`, with `bad` put in behind row `after`.
/// Returns the line of each bad row.
fn file(bad: &[(usize, &[u8])]) -> (Vec<u8>, Vec<u64>) {
    let mut text = b"a,t,y\r\n".to_vec();
    let (mut lines, mut line) = (Vec::new(), 2);
    for i in 0..40_000 {
        let more = [
            "one",
            "two\nlines",
            "three\r\n\nlines \"\"or so\"\", with separators",
        ][i % 3];
        let mut row = String::new();
        write!(row, "{},\"{more}{}\",{i}.5\r\n", 40_000 - i, "-".repeat(i % 100)).unwrap();
        line += row.matches('\n').count() as u64;
        text.extend(row.bytes());
        for (_, bytes) in bad.iter().filter(|(after, _)| *after == i) {
            lines.push(line);
            text.extend(*bytes);
            line += bytes.iter().filter(|byte| **byte == b'\n').count() as u64;
        }
    }
    assert!(text.len() > 3 * BLOCK);
    (text, lines)
}

fn with(bad_rows: BadRows) -> TableOptions {
    TableOptions {
        bad_rows,
        ..TableOptions::default()
    }
}

#[test]
fn the_line_of_a_bad_row_is_exact() {
    for (bytes, expected) in [
        (
            &b"1,x\n"[..],
            Fault::Ragged {
                expected: 3,
                found: 2,
            },
        ),
        (
            b"1,x,2,3\r\n",
            Fault::Ragged {
                expected: 3,
                found: 4,
            },
        ),
        (
            b"1,\"x\ny\n\nz\",2,3\n",
            Fault::Ragged {
                expected: 3,
                found: 4,
            },
        ),
        (
            b"1,x,-inf\n",
            Fault::TargetNotANumber {
                column: "y".into(),
                value: "-inf".into(),
            },
        ),
        (b"1,\xff\xfe,2\n", Fault::NotUtf8 { column: "t".into() }),
        (
            b"1,x,two\n",
            Fault::TargetNotANumber {
                column: "y".into(),
                value: "two".into(),
            },
        ),
    ] {
        for after in [20_000, 39_999] {
            let (text, lines) = file(&[(after, bytes)]);
            let scratch = Scratch::new(text);
            for threads in [1, 3] {
                match scratch.read("y", &with(BadRows::Fail), threads) {
                    Err(Error::BadRow { line, fault, .. }) => {
                        assert_eq!((line, *fault), (lines[0], expected.clone()))
                    }
                    other => panic!("{expected}: {:?}", other.map(|read| read.counts)),
                }
            }
        }
    }
}

#[test]
fn the_first_of_several_bad_rows_is_named_whatever_the_threads() {
    let (text, lines) = file(&[(12_000, b"1,x\n"), (25_000, b"1,x,v\n"), (39_000, b"1\n")]);
    let scratch = Scratch::new(text);
    for threads in [1, 2, 8] {
        match scratch.read("y", &with(BadRows::Fail), threads) {
            Err(Error::BadRow { line, .. }) => assert_eq!(line, lines[0]),
            other => panic!("{:?}", other.map(|read| read.counts)),
        }
        let counts = scratch.read("y", &with(BadRows::Skip), threads).unwrap().counts;
        assert_eq!((counts.rows, counts.bad, counts.without_target), (40_000, 3, 0));
        let (line, fault) = counts.first_bad.unwrap();
        assert_eq!(line, lines[0]);
        assert_eq!(
            fault,
            Fault::Ragged {
                expected: 3,
                found: 2
            }
        );
    }
}

/// A value that is not what its column holds costs itself, not its row and not the run.
#[test]
fn what_is_no_number_counts_as_missing_and_is_named() {
    let (text, lines) = file(&[
        (12_000, b"12x,x,1\n"),
        (25_000, b"-inf,x,1\n"),
        (30_000, b"1\x002,x,1\n"),
        (39_000, b",x,1\n"),
    ]);
    let scratch = Scratch::new(text);
    for bad_rows in [BadRows::Fail, BadRows::Skip] {
        for threads in [1, 2, 8] {
            let found = scratch.read("y", &with(bad_rows), threads).unwrap();
            assert_eq!((found.counts.rows, found.counts.bad), (40_004, 0));
            let broken = found.counts.broken.into_iter().collect::<Vec<_>>();
            let expected = Broken {
                count: 3,
                first: (lines[0], "12x".into()),
            };
            assert_eq!(broken, [("a".to_string(), expected)], "{threads} threads");
            let at = |line| found.rows.iter().find(|row| row.line == line).unwrap();
            for line in &lines {
                assert_eq!(at(*line).values, [None], "line {line}");
            }
        }
    }
}

#[test]
fn a_third_value_of_two_is_a_bad_row() {
    let mut text = String::from("a,y\n");
    (0..600_000).for_each(|i| writeln!(text, "{},{}", i % 10, ["no", "yes"][i % 2]).unwrap());
    text.push_str("3,maybe\n");
    let scratch = Scratch::new(text);
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    match read(&table, &options(2, None), ROOMY) {
        Err(Error::BadRow { line, fault, .. }) => {
            assert_eq!(line, 600_002);
            assert!(
                matches!(*fault, Fault::OtherValue { ref value, .. } if value == "maybe"),
                "{fault}"
            );
        }
        other => panic!("{:?}", other.map(|read| read.counts)),
    }
}
