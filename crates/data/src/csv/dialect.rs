//! Inferring separator, quote and header from the first rows; each can be overridden.

use serde::{Deserialize, Serialize};

use super::rows::{RowSink, unquote, walk_rows};
use crate::number::{Number, parse_number};

/// How a file writes its rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dialect {
    pub delimiter: u8,
    pub quote: Option<u8>,
    pub header: bool,
}

impl Default for Dialect {
    fn default() -> Dialect {
        Dialect {
            delimiter: b',',
            quote: Some(b'"'),
            header: true,
        }
    }
}

/// What the user said about the dialect; `None` is inferred.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DialectOptions {
    pub delimiter: Option<u8>,
    pub quote: Option<Option<u8>>,
    pub header: Option<bool>,
}

/// Separators that are inferred, the likelier first.
pub(crate) const DELIMITERS: [u8; 4] = [b',', b'\t', b';', b'|'];
/// Rows looked at; fewer where they are wide, two at the least.
const ROWS: usize = 100;
const CELLS: usize = 20_000;

/// Infers the dialect from `padded[..end]`, the first whole rows of a file. A first row that holds one of
/// the `names` that the user spoke of is a header.
pub(crate) fn infer(padded: &[u8], end: usize, options: &DialectOptions, names: &[&str]) -> Dialect {
    let quote = options.quote.unwrap_or_else(|| infer_quote(&padded[..end]));
    let delimiter = options
        .delimiter
        .unwrap_or_else(|| infer_delimiter(padded, end, quote));
    let mut dialect = Dialect {
        delimiter,
        quote,
        header: true,
    };
    let rows = first_rows(padded, end, &dialect);
    dialect.header = options.header.unwrap_or_else(|| infer_header(&rows, names));
    dialect
}

/// `'` only where it wraps fields and `"` does not occur at all.
fn infer_quote(text: &[u8]) -> Option<u8> {
    let single = text
        .windows(2)
        .filter(|pair| matches!(*pair, b",'" | b";'" | b"\t'" | b"\n'"))
        .count();
    let lines = memchr::memchr_iter(b'\n', text).count();
    let use_single = memchr::memchr(b'"', text).is_none() && lines > 0 && single * 2 >= lines;
    Some(if use_single { b'\'' } else { b'"' })
}

/// The separator that splits the most rows into the same number of fields, more than one.
fn infer_delimiter(padded: &[u8], end: usize, quote: Option<u8>) -> u8 {
    let score = |delimiter: u8| {
        let rows = first_rows(
            padded,
            end,
            &Dialect {
                delimiter,
                quote,
                header: true,
            },
        );
        let fields = rows.first().map_or(0, Vec::len);
        let alike = rows.iter().filter(|row| row.len() == fields).count();
        if fields < 2 {
            (0, 0)
        } else {
            (alike * 100 / rows.len(), fields)
        }
    };
    let best = DELIMITERS
        .iter()
        .rev()
        .copied()
        .max_by_key(|&delimiter| score(delimiter));
    match best {
        Some(delimiter) if score(delimiter) > (0, 0) => delimiter,
        _ => b',',
    }
}

/// Columns vote: a word over numbers says header, a number over numbers says none.
fn infer_header(rows: &[Vec<String>], names: &[&str]) -> bool {
    let Some((first, rest)) = rows.split_first() else {
        return true;
    };
    if first.iter().any(|name| names.contains(&name.as_str())) {
        return true;
    }
    let is_number = |field: &String| matches!(parse_number(field.as_bytes()), Number::Value(_));
    let mut votes = 0i64;
    let mut voters = 0;
    for (column, name) in first.iter().enumerate() {
        let below: Vec<&String> = rest
            .iter()
            .filter_map(|row| row.get(column))
            .filter(|f| !f.is_empty())
            .collect();
        let numbers = below.iter().filter(|field| is_number(field)).count();
        if below.is_empty() || numbers * 10 < below.len() * 9 {
            continue;
        }
        voters += 1;
        votes += if is_number(name) || name.is_empty() { -1 } else { 1 };
    }
    if voters > 0 {
        return votes > 0;
    }
    // No numbers to compare with: names are distinct, whole and not numbers themselves.
    let mut distinct: Vec<&String> = first.iter().collect();
    distinct.sort();
    distinct.dedup();
    distinct.len() == first.len() && !first.iter().any(|name| name.is_empty() || is_number(name))
}

/// The first rows as text.
pub(crate) fn first_rows(padded: &[u8], end: usize, dialect: &Dialect) -> Vec<Vec<String>> {
    rows_at_top(padded, end, dialect, ROWS)
}

/// The first row as text.
pub(crate) fn first_row(padded: &[u8], end: usize, dialect: &Dialect) -> Option<Vec<String>> {
    rows_at_top(padded, end, dialect, 1).pop()
}

fn rows_at_top(padded: &[u8], end: usize, dialect: &Dialect, most: usize) -> Vec<Vec<String>> {
    struct First {
        most: usize,
        quote: Option<u8>,
        rows: Vec<Vec<String>>,
        row: Vec<String>,
        cells: usize,
    }
    impl First {
        fn is_full(&self) -> bool {
            self.rows.len() >= self.most || (self.rows.len() >= 2 && self.cells > CELLS)
        }
    }
    impl RowSink for First {
        fn begin_row(&mut self, _line: u64) {}
        fn field(&mut self, _column: usize, bytes: &[u8]) {
            if !self.is_full() {
                self.row.push(unquote(bytes, self.quote));
            }
        }
        fn end_row(&mut self, fields: usize, _row: &[u8]) {
            if !self.is_full() {
                self.cells += fields;
                self.rows.push(std::mem::take(&mut self.row));
            }
        }
    }
    let mut first = First {
        most,
        quote: dialect.quote,
        rows: Vec::new(),
        row: Vec::new(),
        cells: 0,
    };
    walk_rows(padded, end, 1, dialect, &mut first);
    first.rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::PADDING;

    fn inferred(text: &str, names: &[&str]) -> (char, Option<char>, bool) {
        let mut padded = text.as_bytes().to_vec();
        padded.extend([0; PADDING]);
        let dialect = infer(&padded, text.len(), &DialectOptions::default(), names);
        (
            dialect.delimiter as char,
            dialect.quote.map(char::from),
            dialect.header,
        )
    }

    #[test]
    fn dialects_told_from_the_first_rows() {
        for (text, expected) in [
            ("a,b,y\n1,2,0\n3,4,1\n", (',', Some('"'), true)),
            ("a;b;y\n1,5;2;0\n3;4,5;1\n", (';', Some('"'), true)),
            ("a\tb\n1\t2\n", ('\t', Some('"'), true)),
            ("a|b\n1|x,y\n2|z\n", ('|', Some('"'), true)),
            ("1,2,0\n3,4,1\n", (',', Some('"'), false)),
            (
                "39, State-gov, 77516\n50, Private, 83311\n",
                (',', Some('"'), false),
            ),
            ("name,2019,y\nx,1,2\nz,3,4\n", (',', Some('"'), false)),
            ("'a','b'\n'1','2'\n", (',', Some('\''), true)),
            ("y\n1\n2\n", (',', Some('"'), true)),
            ("\"a;b\",c\n\"1;2\",3\n", (',', Some('"'), true)),
            ("city,kind\nOslo,x\nRome,y\n", (',', Some('"'), true)),
        ] {
            assert_eq!(inferred(text, &[]), expected, "{text:?}");
        }
    }

    #[test]
    fn a_row_that_holds_the_target_is_a_header() {
        assert_eq!(inferred("2019,2020\n1,2\n", &["2020"]), (',', Some('"'), true));
    }
}
