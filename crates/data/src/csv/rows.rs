//! Walking the rows and fields of a block of text.

use super::Dialect;
use super::scan::Scanner;

/// Receives the fields of each row in order.
///
/// A field arrives without its quotes; doubled quotes inside it stay doubled (numbers have none, and
/// [`unquote`] mends names and labels).
pub trait RowSink {
    /// A row starts on this line of the file (the first line is 1).
    fn begin_row(&mut self, line: u64);
    fn field(&mut self, column: usize, bytes: &[u8]);
    /// The row had `fields` fields and stands at `row` in the text.
    fn end_row(&mut self, fields: usize, row: &[u8]);
}

/// Walks the rows of `padded[..end]`, which holds whole rows, the last with its line end, and is followed
/// by [`super::PADDING`] bytes. Blank lines are passed over.
pub fn walk_rows<S: RowSink>(padded: &[u8], end: usize, first_line: u64, dialect: &Dialect, sink: &mut S) {
    match dialect
        .quote
        .filter(|quote| memchr::memchr(*quote, &padded[..end]).is_some())
    {
        Some(quote) => walk::<true, S>(padded, end, first_line, [dialect.delimiter, b'\n', quote], sink),
        // Without quotes in the text a field ends at the next needle, whatever it is.
        None => walk::<false, S>(padded, end, first_line, [dialect.delimiter, b'\n', b'\n'], sink),
    }
}

/// Takes the widest registers and the shifts that the processor has; the result is the same.
fn walk<const QUOTES: bool, S: RowSink>(
    padded: &[u8],
    end: usize,
    first_line: u64,
    needles: [u8; 3],
    sink: &mut S,
) {
    #[cfg(target_arch = "x86_64")]
    if is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
    {
        // SAFETY: the processor has what the function was compiled for.
        return unsafe { walk_avx2::<QUOTES, S>(padded, end, first_line, needles, sink) };
    }
    walk_plainly::<QUOTES, S>(padded, end, first_line, needles, sink);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn walk_avx2<const QUOTES: bool, S: RowSink>(
    padded: &[u8],
    end: usize,
    first_line: u64,
    needles: [u8; 3],
    sink: &mut S,
) {
    walk_plainly::<QUOTES, S>(padded, end, first_line, needles, sink);
}

#[inline(always)]
fn walk_plainly<const QUOTES: bool, S: RowSink>(
    padded: &[u8],
    end: usize,
    first_line: u64,
    needles: [u8; 3],
    sink: &mut S,
) {
    let text = &padded[..end];
    let quote = needles[2];
    let mut scanner = Scanner::new(padded, end, needles);
    let mut line = first_line;
    let mut row_start = 0;
    while row_start < end {
        if let Some(after) = blank_line(text, row_start) {
            row_start = after;
            line += 1;
            scanner.seek(row_start);
            continue;
        }
        sink.begin_row(line);
        let mut start = row_start;
        let mut fields = 0;
        let row_end = loop {
            let quoted = QUOTES && start < end && text[start] == quote;
            let mut content = start;
            let mut content_end = None;
            if quoted {
                scanner.next();
                content = start + 1;
                content_end = Some(close(&mut scanner, text, quote, &mut line));
            }
            let at = if QUOTES {
                separator(&mut scanner, text, quote)
            } else {
                scanner.next().unwrap_or(end)
            };
            let is_last = at >= end || text[at] == b'\n';
            let content_end = content_end.unwrap_or_else(|| {
                let carriage_return = is_last && at > start && text[at - 1] == b'\r';
                at - usize::from(carriage_return)
            });
            sink.field(fields, &text[content..content_end]);
            fields += 1;
            start = at + 1;
            if is_last {
                break at;
            }
        };
        sink.end_row(fields, &text[row_start..row_end]);
        line += 1;
        row_start = row_end + 1;
    }
}

/// The next separator or line end; quotes on the way are not at the start of a field and mean nothing.
#[inline(always)]
fn separator(scanner: &mut Scanner, text: &[u8], quote: u8) -> usize {
    loop {
        match scanner.next() {
            Some(at) if text[at] == quote => {}
            Some(at) => return at,
            None => return text.len(),
        }
    }
}

/// The closing quote of a field whose opening quote the scanner has just passed.
#[inline(always)]
fn close(scanner: &mut Scanner, text: &[u8], quote: u8, line: &mut u64) -> usize {
    while let Some(at) = scanner.next() {
        if text[at] == b'\n' {
            *line += 1;
        } else if text[at] == quote {
            if text.get(at + 1) != Some(&quote) {
                return at;
            }
            scanner.next();
        }
    }
    text.len()
}

/// Where the next line starts when the one at `start` is blank.
#[inline(always)]
fn blank_line(text: &[u8], start: usize) -> Option<usize> {
    match text[start] {
        b'\n' => Some(start + 1),
        b'\r' if text.get(start + 1) == Some(&b'\n') => Some(start + 2),
        _ => None,
    }
}

/// A field as text: doubled quotes become one, surrounding blanks go, bytes that are not UTF-8 are replaced.
pub fn unquote(field: &[u8], quote: Option<u8>) -> String {
    let text = String::from_utf8_lossy(field.trim_ascii()).into_owned();
    match quote {
        Some(quote) => {
            let quote = char::from(quote).to_string();
            text.replace(&quote.repeat(2), &quote)
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::PADDING;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Collect {
        rows: Vec<(u64, Vec<String>)>,
    }

    impl RowSink for Collect {
        fn begin_row(&mut self, line: u64) {
            self.rows.push((line, Vec::new()));
        }
        fn field(&mut self, column: usize, bytes: &[u8]) {
            let row = &mut self.rows.last_mut().unwrap().1;
            assert_eq!(row.len(), column);
            row.push(unquote(bytes, Some(b'"')));
        }
        fn end_row(&mut self, fields: usize, _row: &[u8]) {
            assert_eq!(self.rows.last().unwrap().1.len(), fields);
        }
    }

    fn rows(text: &str) -> Vec<(u64, Vec<String>)> {
        let mut padded = text.as_bytes().to_vec();
        padded.extend([0; PADDING]);
        let mut sink = Collect::default();
        walk_rows(&padded, text.len(), 1, &Dialect::default(), &mut sink);
        sink.rows
    }

    fn check(text: &str, expected: &[(u64, &[&str])]) {
        let expected: Vec<(u64, Vec<String>)> = expected
            .iter()
            .map(|(line, fields)| (*line, fields.iter().map(|f| f.to_string()).collect()))
            .collect();
        assert_eq!(rows(text), expected, "{text:?}");
    }

    #[test]
    fn rows_as_they_come() {
        check("a,b\n1,2\n", &[(1, &["a", "b"]), (2, &["1", "2"])]);
        check("a,b\r\n1,2\r\n", &[(1, &["a", "b"]), (2, &["1", "2"])]);
        check("a,\n,b\n", &[(1, &["a", ""]), (2, &["", "b"])]);
        check("\n\na\n\r\nb\n", &[(3, &["a"]), (5, &["b"])]);
        check("a,b", &[(1, &["a", "b"])]);
        check("1,2,3\n4\n", &[(1, &["1", "2", "3"]), (2, &["4"])]);
    }

    #[test]
    fn quotes_as_they_come() {
        check("\"a,b\",c\n", &[(1, &["a,b", "c"])]);
        check("\"a\nb\",c\nd,e\n", &[(1, &["a\nb", "c"]), (3, &["d", "e"])]);
        check("\"say \"\"hi\"\"\",c\n", &[(1, &["say \"hi\"", "c"])]);
        check("5\" pipe,c\n", &[(1, &["5\" pipe", "c"])]);
        check("\"a\" x,c\n", &[(1, &["a", "c"])]);
        check("\"\",\"\"\r\n1,2\n", &[(1, &["", ""]), (2, &["1", "2"])]);
        check("a,\"never closed\nb,c\n", &[(1, &["a", "never closed\nb,c"])]);
    }

    proptest! {
        #[test]
        fn what_was_quoted_comes_back(table in proptest::collection::vec(proptest::collection::vec("[a\",\n é]{0,6}", 2..5), 1..20)) {
            let mut text = String::new();
            for row in &table {
                let fields: Vec<String> = row.iter().map(|f| format!("\"{}\"", f.replace('"', "\"\""))).collect();
                text.push_str(&fields.join(","));
                text.push('\n');
            }
            let expected: Vec<Vec<String>> =
                table.iter().map(|row| row.iter().map(|f| f.trim_ascii().to_string()).collect()).collect();
            let found: Vec<Vec<String>> = rows(&text).into_iter().map(|(_, fields)| fields).collect();
            prop_assert_eq!(found, expected);
        }

        #[test]
        fn never_panics(bytes in proptest::collection::vec(prop_oneof![Just(b','), Just(b'"'), Just(b'\n'), Just(b'\r'), any::<u8>()], 0..200)) {
            let mut padded = bytes.clone();
            padded.extend([0; PADDING]);
            walk_rows(&padded, bytes.len(), 1, &Dialect::default(), &mut Collect::default());
        }
    }
}
