//! A random table, written as CSV in a random hand, comes back cell for cell.

use proptest::prelude::*;
use tidegate_data::chunk::{Read, Wanted};
use tidegate_data::csv::DialectOptions;
use tidegate_data::encode::Encoder;
use tidegate_data::target::Task;
use tidegate_data::{Position, SourceOptions, Table, TableOptions};
use tidegate_memory::Ledger;

use crate::help::{Cells, ROOMY, Scratch, options, read, without};

#[derive(Debug, Clone)]
struct Row {
    a: Option<i32>,
    /// A short text and how often it is repeated: some rows fill a block by themselves.
    text: (String, usize),
    b: i32,
    target: i32,
    quoted: [bool; 4],
    crlf: bool,
    blank_lines: usize,
}

fn row() -> impl Strategy<Value = Row> {
    let times = prop_oneof![20 => 0usize..3, 10 => 100usize..9_000, 1 => 150_000usize..200_000];
    (
        proptest::option::weighted(0.8, -999..999),
        ("[a-z]{1,3}[ ,;|\t\n\"é]{0,5}", times),
        -999..999,
        -999..999,
        any::<[bool; 4]>(),
        any::<bool>(),
        prop_oneof![5 => Just(0usize), 1 => 1usize..3],
    )
        .prop_map(|(a, text, b, target, quoted, crlf, blank_lines)| Row {
            a,
            text,
            b,
            target,
            quoted,
            crlf,
            blank_lines,
        })
}

fn field(value: &str, delimiter: char, quoted: bool) -> String {
    if quoted || value.contains([delimiter, '\n', '\r', '"']) {
        format!("\"{}\"", value.replace('"', "\"\""))
    } else {
        value.to_string()
    }
}

/// The text, and the line on which each row starts.
fn write(rows: &[Row], delimiter: char, last_line_end: bool) -> (String, Vec<u64>) {
    let mut text = format!("\"a\"{delimiter}t{delimiter}b{delimiter}y\n");
    let (mut lines, mut line) = (Vec::new(), 2);
    for row in rows {
        let end = if row.crlf { "\r\n" } else { "\n" };
        for _ in 0..row.blank_lines {
            text.push_str(end);
            line += 1;
        }
        lines.push(line);
        let cells = [
            row.a.map(|a| a.to_string()).unwrap_or_default(),
            text_of(row),
            row.b.to_string(),
            format!("{}.5", row.target),
        ];
        let cells: Vec<String> = cells
            .iter()
            .zip(row.quoted)
            .map(|(cell, quoted)| field(cell, delimiter, quoted))
            .collect();
        let row = cells.join(&delimiter.to_string()) + end;
        line += row.matches('\n').count() as u64;
        text.push_str(&row);
    }
    if !last_line_end {
        text.truncate(text.trim_end_matches(['\r', '\n']).len());
    }
    (text, lines)
}

fn text_of(row: &Row) -> String {
    row.text.0.repeat(row.text.1 + 1)
}

/// The column of texts, as the source hands it out.
fn texts(table: &Table) -> Vec<String> {
    let mut reading = table.reading.clone();
    reading.wanted = vec![Wanted {
        name: "t".into(),
        read: Read::Text,
    }];
    let (ledger, mut texts) = (Ledger::new(ROOMY), Vec::new());
    let take = |chunk: &tidegate_data::chunk::Chunk, _| {
        let text = |row| String::from_utf8_lossy(chunk.text(0, row).unwrap_or_default()).into_owned();
        texts.extend((0..chunk.n_rows()).map(text));
        std::ops::ControlFlow::Continue(())
    };
    table
        .source
        .scan(&reading, Position::default(), &ledger, take)
        .unwrap();
    assert_eq!(ledger.used(), 0);
    texts
}

fn number(target: i32) -> f64 {
    format!("{target}.5").parse().unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 16, max_shrink_iters: 30, ..ProptestConfig::default() })]
    #[test]
    fn a_random_table_comes_back(
        mut rows in proptest::collection::vec(row(), 3..70),
        delimiter in prop_oneof![Just(','), Just(';'), Just('\t'), Just('|')],
        last_line_end in any::<bool>(),
    ) {
        prop_assume!(rows.iter().any(|row| number(row.target) != number(rows[0].target)));
        // The kind of a column is told from the first block: it needs a row of each.
        rows[0].a = Some(1);
        rows[0].text.1 = 0;
        let (text, lines) = write(&rows, delimiter, last_line_end);
        let scratch = Scratch::new(&text);
        let reading = SourceOptions {
            dialect: DialectOptions { delimiter: Some(delimiter as u8), quote: Some(Some(b'"')), header: Some(true) },
            ..SourceOptions::default()
        };
        let said = TableOptions { task: Some(Task::Regression), ..without(&["t"]) };
        let table = scratch.open_as("y", &reading, &said).unwrap();
        let expected_texts: Vec<String> = rows.iter().map(|row| text_of(row).trim().to_string()).collect();
        prop_assert!(texts(&table) == expected_texts);
        let holdout = options(1, None).holdout;
        let expected: Vec<Cells> = rows.iter().zip(&lines).map(|(row, &line)| Cells {
            line,
            values: vec![row.a.map(f64::from), Some(f64::from(row.b))],
            target: number(row.target),
            held_out: holdout.contains(line),
        }).collect();
        // The sample may end before the first missing value; then it reads as the mean and has no flag.
        let flags = matches!(&table.encoders.features[0].encoder, Encoder::Number(number) if number.flag_missing);
        let mut places = None;
        for threads in [1, 2, 5] {
            let found = read(&table, &options(threads, None), ROOMY).unwrap();
            prop_assert_eq!(found.counts.rows as usize, rows.len());
            prop_assert_eq!(found.rows.len(), expected.len());
            for (found, expected) in found.rows.iter().zip(&expected) {
                if flags || expected.values[0].is_some() {
                    prop_assert_eq!(found, expected);
                }
            }
            let sum: f64 = found.rows.iter().map(|row| row.target).sum();
            prop_assert_eq!(sum, expected.iter().map(|row| row.target).sum::<f64>());
            for (place, before) in &found.places {
                let rest = read(&table, &options(threads, Some(*place)), ROOMY).unwrap();
                prop_assert!(rest.rows == found.rows[*before..], "from {:?}", place);
            }
            let found_places = places.get_or_insert(found.places.clone());
            prop_assert_eq!(&*found_places, &found.places);
        }
    }
}
