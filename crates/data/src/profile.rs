//! A bounded look at a table before it is read: dialect, columns, which hold numbers, their moments.

use std::collections::{HashMap, HashSet};

use tidegate_memory::Holder;

use crate::chunk::parse_boolean;
use crate::csv::blocks::{BlockReader, Cutter, LOOK_BYTES, TextBuffer};
use crate::csv::dialect::{self, DELIMITERS, first_rows};
use crate::csv::rows::{RowSink, unquote, walk_rows};
use crate::csv::{Dialect, DialectOptions, PADDING};
use crate::number::{Number, is_missing, parse_number};
use crate::sketch::Moments;
use crate::sketch::hash::hash;
use crate::source::{Kind, Place};
use crate::{Compression, Error, Fault, Input, Result};

/// Beside the first block, a plain file is looked at in this many places spread over it, so that a file
/// sorted by its target, or with a late change of habits, does not fool us.
const PLACES: u64 = 32;
const PLACE_BYTES: usize = 64 << 10;
/// What a look at a column takes: its name, its first values in a few dialects, what is remembered of it.
pub(crate) const COLUMN_BYTES: u64 = 1024;
/// What a value takes among those of its column, with room to grow.
pub(crate) const VALUE_BYTES: u64 = 5;
/// Distinct values remembered of each column: enough to tell one, two and many.
const DISTINCT: usize = 3;
/// Texts remembered to tell the format of dates.
const DATES: usize = 100;
/// Distinct values counted of each column.
pub(crate) const COUNTED: usize = 4096;

/// What a sample of a table says about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    pub columns: Vec<ColumnProfile>,
    /// Rows looked at, and the bytes they took.
    pub rows: u64,
    pub bytes: u64,
    /// All rows were looked at.
    pub complete: bool,
}

impl Profile {
    /// Adds a look at another part of the same table.
    pub fn add(&mut self, other: &Profile) {
        for column in &mut self.columns {
            if let Some(other) = other.columns.iter().find(|other| other.name == column.name) {
                column.add(other);
            }
        }
        self.rows += other.rows;
        self.bytes += other.bytes;
        self.complete &= other.complete;
    }
}

/// What a sample says about a column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnProfile {
    pub name: String,
    /// What the source declares.
    pub kind: Kind,
    pub numbers: u64,
    pub missing: u64,
    pub text: u64,
    /// Of the numbers, those without a fraction; of all values, those that are truths.
    pub integers: u64,
    pub booleans: u64,
    pub moments: Moments,
    /// Bytes and words of the texts.
    pub text_bytes: u64,
    pub words: u64,
    /// The first distinct values, at most three.
    pub distinct: Vec<String>,
    /// The line of the first text value, where known.
    pub first_text: Option<(u64, String)>,
    /// The first texts that could be dates.
    pub maybe_dates: Vec<String>,
    /// Hashes of the distinct values, in order, as long as they are few; half of one, for wide tables have many.
    seen: Vec<u32>,
    n_seen: u64,
    /// There were more values than are remembered.
    many: bool,
    /// Every number was larger than the one before, and so many were the next whole number: the marks of a row
    /// number.
    pub rising: bool,
    pub successors: u64,
    last: f64,
}

impl ColumnProfile {
    pub fn new(name: &str, kind: Kind) -> ColumnProfile {
        ColumnProfile {
            name: name.into(),
            kind,
            rising: true,
            ..ColumnProfile::default()
        }
    }

    /// Whether the column is one of numbers: a stray word in twenty values is a fault of the row, more of
    /// them a column of text.
    pub fn is_numeric(&self) -> bool {
        self.numbers > 0 && self.text * 20 <= self.numbers + self.text
    }

    /// Values that are there.
    pub fn values(&self) -> u64 {
        self.numbers + self.text
    }

    /// How many distinct values the sample has; `None` when there are more than were counted.
    pub fn n_distinct(&self) -> Option<u64> {
        (!self.many).then_some(self.n_seen)
    }

    pub fn variance(&self) -> f64 {
        self.moments.variance()
    }

    fn add(&mut self, other: &ColumnProfile) {
        self.numbers += other.numbers;
        self.missing += other.missing;
        self.text += other.text;
        self.integers += other.integers;
        self.booleans += other.booleans;
        self.moments.merge(&other.moments);
        self.text_bytes += other.text_bytes;
        self.words += other.words;
        for value in &other.distinct {
            self.remember(value.as_bytes(), None, |text| text == value);
        }
        let room = DATES - self.maybe_dates.len();
        self.maybe_dates
            .extend(other.maybe_dates.iter().take(room).cloned());
        self.many |= other.many;
        other.seen.iter().for_each(|hash| self.see_half(*hash));
        self.rising &= other.rising;
        self.successors += other.successors;
    }

    /// Takes in one value that stands as text; `words` are the user's own for missing.
    pub(crate) fn look(&mut self, field: &[u8], line: Option<u64>, words: &[String], quote: Option<u8>) {
        match parse_number(field) {
            Number::Missing => self.missing += 1,
            // A number may be the user's word for missing: -999 and the like.
            Number::Value(_) if is_word(field, words) => self.missing += 1,
            Number::Value(value) => {
                self.look_at_number(value);
                self.booleans += u64::from(parse_boolean(field).is_some());
                self.remember(field, quote, |text| {
                    parse_number(text.as_bytes()) == Number::Value(value)
                });
            }
            Number::Infinite => self.numbers += 1,
            Number::Text if is_word(field, words) => self.missing += 1,
            Number::Text => {
                self.text += 1;
                self.booleans += u64::from(parse_boolean(field).is_some());
                self.text_bytes += field.len() as u64;
                self.words += field
                    .split(|byte| byte.is_ascii_whitespace())
                    .filter(|word| !word.is_empty())
                    .count() as u64;
                self.see(hash(field.trim_ascii()));
                let starts_so = field.trim_ascii().first().is_some_and(u8::is_ascii_digit);
                if starts_so && field.len() <= 40 && self.maybe_dates.len() < DATES {
                    self.maybe_dates
                        .push(String::from_utf8_lossy(field.trim_ascii()).into_owned());
                }
                if let (None, Some(line)) = (&self.first_text, line) {
                    self.first_text = Some((line, unquote(field, quote)));
                }
                self.remember(field, quote, |text| text == unquote(field, quote));
            }
        }
    }

    /// Takes in one value that stands as a number; NaN is missing.
    pub(crate) fn look_at_typed(&mut self, value: f64) {
        if value.is_nan() {
            self.missing += 1;
        } else if value.is_infinite() {
            self.numbers += 1;
        } else {
            self.look_at_number(value);
            let text = value.to_string();
            self.remember(text.as_bytes(), None, |known| known == text);
        }
    }

    fn look_at_number(&mut self, value: f64) {
        self.numbers += 1;
        self.integers += u64::from(value.fract() == 0.0);
        let first = self.moments.count == 0;
        self.rising &= first || value > self.moments.max;
        self.successors += u64::from(!first && value == self.last + 1.0);
        self.last = value;
        self.moments.push(value);
        self.see(hash(&value.to_bits().to_le_bytes()));
    }

    fn see(&mut self, hash: u64) {
        self.see_half(hash as u32);
    }

    fn see_half(&mut self, hash: u32) {
        let Err(place) = self.seen.binary_search(&hash) else {
            return;
        };
        self.many |= self.seen.len() >= COUNTED;
        if self.many {
            self.forget_values();
            return;
        }
        if self.seen.len() == self.seen.capacity() {
            self.seen.reserve_exact((self.seen.len() / 4).max(16));
        }
        self.seen.insert(place, hash);
        self.n_seen += 1;
    }

    /// Gives up the memory of the values; how many there are stays known.
    pub(crate) fn forget_values(&mut self) {
        self.seen = Vec::new();
    }

    fn remember(&mut self, field: &[u8], quote: Option<u8>, same: impl Fn(&str) -> bool) {
        if self.distinct.len() < DISTINCT && !self.distinct.iter().any(|known| same(known)) {
            self.distinct.push(unquote(field, quote));
        }
    }
}

/// How to look at a file.
pub(crate) struct Look<'l> {
    pub options: &'l DialectOptions,
    /// Columns that the user spoke of.
    pub names: &'l [&'l str],
    /// The user's own words for missing values.
    pub missing: &'l [String],
    pub budget: u64,
}

/// Looks at a bounded sample of a CSV file.
pub(crate) fn look_at_csv(input: &Input, look: &Look, holder: &Holder) -> Result<(Dialect, Profile)> {
    let Look {
        options,
        names,
        missing: words,
        budget,
    } = *look;
    let mut buffer = TextBuffer::of(LOOK_BYTES, holder)?;
    // The dialect decides where rows end and the first rows decide the dialect: the usual one serves for a first
    // look, and the sample proper is read in the dialect found.
    let mut dialect = Dialect {
        quote: options.quote.unwrap_or(Some(b'"')),
        ..Dialect::default()
    };
    let (_, place) = read_first(input, &dialect, holder, budget, &mut buffer)?;
    refuse_binary(input, &buffer)?;
    let (padded, end) = buffer.padded();
    let widest = widest_row(padded, end, options);
    // The places of a large file hold as many rows again, and twice.
    let values = (3 * place.lines).min(COUNTED as u64);
    let needed = widest * (COLUMN_BYTES + values * VALUE_BYTES);
    let _columns = holder.try_grant(needed).map_err(|source| Error::Columns {
        path: input.path().into(),
        columns: widest,
        needed,
        source: source.into(),
    })?;
    let inferred = dialect::infer(padded, end, options, names);
    dialect = inferred;
    let (mut reader, mut place) = read_first(input, &dialect, holder, budget, &mut buffer)?;
    let (padded, end) = buffer.padded();
    let top = first_rows(padded, end, &dialect);
    let Some(top) = top.first() else {
        return Err(Error::Empty {
            path: input.path().into(),
        });
    };
    let columns = name_columns(top, dialect.header);
    let mut sample = Sample {
        dialect: dialect.clone(),
        words,
        columns: columns
            .into_iter()
            .map(|name| ColumnProfile::new(&name, Kind::Untyped))
            .collect(),
        skip_first: dialect.header,
        lines_known: true,
        line: 0,
        fields: Vec::new(),
        rows_seen: 0,
        first_fault: None,
        broken_header: false,
        rows: 0,
        bytes: 0,
    };
    let mut lines = 0;
    let complete = loop {
        let (padded, end) = buffer.padded();
        walk_rows(padded, end, place.start.line, &dialect, &mut sample);
        lines += place.lines;
        // Rows larger than a block leave the first block with the header alone.
        let enough = sample.rows_seen > u64::from(dialect.header);
        if enough || !reader.has_more() {
            break !reader.has_more();
        }
        match reader.read(&mut buffer, &mut || false)? {
            Some(next) => place = next,
            None => break true,
        }
    };
    drop(reader);
    // A place in the middle of a file can be inside a quoted field; only where no field spans lines is the
    // next line end sure to be the end of a row.
    let one_line_each = sample.rows_seen == lines;
    let large = input.compression() == Compression::Plain && input.bytes() > LOOK_BYTES as u64;
    if large && !complete && one_line_each {
        sample.lines_known = false;
        look_around(input, place.end().offset, &mut buffer, &mut sample)?;
    }
    if sample.rows == 0 && complete && dialect.header && sample.rows_seen <= 1 && !sample.broken_header {
        return Err(Error::HeaderOnly {
            path: input.path().into(),
        });
    }
    // Where no row fits the header there is nothing to go by, whatever is to be done with bad rows.
    if let Some((line, fault)) = sample
        .first_fault
        .filter(|_| sample.broken_header || sample.rows == 0)
    {
        let (path, fault) = (input.path().into(), Box::new(fault));
        return Err(match sample.broken_header {
            true => Error::BadRow { path, line, fault },
            false => {
                let rows = sample.rows_seen - u64::from(dialect.header);
                Error::NoRowFits {
                    path,
                    rows,
                    line,
                    fault,
                }
            }
        });
    }
    let profile = Profile {
        columns: sample.columns,
        rows: sample.rows,
        bytes: sample.bytes,
        complete,
    };
    Ok((dialect, profile))
}

fn read_first(
    input: &Input,
    dialect: &Dialect,
    holder: &Holder,
    budget: u64,
    buffer: &mut TextBuffer,
) -> Result<(BlockReader, Place)> {
    let mut reader = BlockReader::looking(input, dialect, holder, budget)?;
    let place = reader.read(buffer, &mut || false)?;
    let place = place.ok_or_else(|| Error::Empty {
        path: input.path().into(),
    })?;
    Ok((reader, place))
}

/// Known formats that are not text, and anything with a zero byte in it.
fn refuse_binary(input: &Input, buffer: &TextBuffer) -> Result<()> {
    let (padded, end) = buffer.padded();
    let text = &padded[..end];
    let what = match text {
        [b'P', b'A', b'R', b'1', ..] => "it is a Parquet file",
        [b'A', b'R', b'R', b'O', b'W', b'1', ..] => "it is an Arrow file",
        [b'P', b'K', 3, 4, ..] => "it is a zip archive or a spreadsheet",
        [b'B', b'Z', b'h', ..] => "it is compressed with bzip2",
        [0xfd, b'7', b'z', b'X', b'Z', ..] => "it is compressed with xz",
        [0x89, b'P', b'N', b'G', ..] | [0xff, 0xd8, 0xff, ..] => "it is an image",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "it is an SQLite database",
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16 (convert it: iconv -f utf-16 -t utf-8)",
        [b'%', b'P', b'D', b'F', ..] => "it is a PDF",
        _ if memchr::memchr(0, text).is_some() => "it holds zero bytes",
        _ if memchr::memchr_iter(b'\r', text).count() > memchr::memchr_iter(b'\n', text).count() => {
            "its lines end in CR alone (convert it: tr '\\r' '\\n')"
        }
        _ => return Ok(()),
    };
    Err(Error::NotText {
        path: input.path().into(),
        what,
    })
}

/// The most fields that one of the first two rows has, by any separator that may be inferred.
fn widest_row(padded: &[u8], end: usize, options: &DialectOptions) -> u64 {
    struct Widest {
        rows: usize,
        fields: usize,
    }
    impl RowSink for Widest {
        fn begin_row(&mut self, _line: u64) {}
        fn field(&mut self, _column: usize, _bytes: &[u8]) {}
        fn end_row(&mut self, fields: usize, _row: &[u8]) {
            self.rows += 1;
            if self.rows <= 2 {
                self.fields = self.fields.max(fields);
            }
        }
    }
    let quote = options.quote.unwrap_or(Some(b'"'));
    let delimiters = options.delimiter.map_or(DELIMITERS.to_vec(), |said| vec![said]);
    let widths = delimiters.into_iter().map(|delimiter| {
        let dialect = Dialect {
            delimiter,
            quote,
            header: true,
        };
        let mut widest = Widest { rows: 0, fields: 1 };
        walk_rows(padded, end, 1, &dialect, &mut widest);
        widest.fields as u64
    });
    widths.max().unwrap_or(1)
}

/// Names from the header, made unique (`x`, `x.1`), or `column_1`, `column_2`, …
pub(crate) fn name_columns(top: &[String], header: bool) -> Vec<String> {
    let mut taken = HashSet::new();
    let mut copies: HashMap<String, u64> = HashMap::new();
    let name = |(i, field): (usize, &String)| {
        let base = match field.is_empty() || !header {
            true => format!("column_{}", i + 1),
            false => field.clone(),
        };
        let mut name = base.clone();
        while !taken.insert(name.clone()) {
            let copy = copies.entry(base.clone()).or_default();
            *copy += 1;
            name = format!("{base}.{copy}");
        }
        name
    };
    top.iter().enumerate().map(name).collect()
}

/// Looks at pieces spread over the rest of a plain file, from `seen` on. No row is looked at twice: columns that count
/// their rows are known by it.
fn look_around(input: &Input, seen: u64, buffer: &mut TextBuffer, sample: &mut Sample) -> Result<()> {
    let places = input.places()?;
    let dialect = sample.dialect.clone();
    let stride = (input.bytes().saturating_sub(seen) / PLACES).max(PLACE_BYTES as u64);
    for i in 0..PLACES {
        let offset = seen + stride * i;
        if offset >= input.bytes() {
            break;
        }
        let bytes = buffer.scratch();
        let room = PLACE_BYTES.min(bytes.len() - PADDING);
        let read = places.read_at(&mut bytes[..room], offset)?;
        let Some(start) = memchr::memchr(b'\n', &bytes[..read]).map(|i| i + 1) else {
            continue;
        };
        let mut cutter = Cutter::default();
        cutter.advance(&bytes[start..], read - start, &dialect, false);
        let Some(cut) = cutter.last_row_end else { continue };
        walk_rows(&bytes[start..], cut, 0, &dialect, sample);
    }
    Ok(())
}

/// Takes in rows that have the right number of fields; the others are the business of the real pass.
struct Sample<'w> {
    dialect: Dialect,
    words: &'w [String],
    columns: Vec<ColumnProfile>,
    skip_first: bool,
    lines_known: bool,
    line: u64,
    fields: Vec<(usize, usize)>,
    /// All rows, and those with the right number of fields.
    rows_seen: u64,
    rows: u64,
    bytes: u64,
    /// A header that cannot be read, or the first row with too many or too few fields.
    first_fault: Option<(u64, Fault)>,
    broken_header: bool,
}

impl RowSink for Sample<'_> {
    fn begin_row(&mut self, line: u64) {
        self.line = line;
        self.fields.clear();
    }

    fn field(&mut self, _column: usize, bytes: &[u8]) {
        self.fields.push((bytes.as_ptr() as usize, bytes.len()));
    }

    fn end_row(&mut self, fields: usize, row: &[u8]) {
        self.rows_seen += 1;
        if std::mem::take(&mut self.skip_first) {
            self.first_fault = unreadable_name(row, &self.columns).map(|fault| (self.line, fault));
            self.broken_header = self.first_fault.is_some();
            return;
        }
        if fields != self.columns.len() {
            let fault = Fault::Ragged {
                expected: self.columns.len(),
                found: fields,
            };
            self.first_fault.get_or_insert((self.line, fault));
            return;
        }
        self.rows += 1;
        self.bytes += row.len() as u64 + 1;
        let line = self.lines_known.then_some(self.line);
        let origin = row.as_ptr() as usize;
        for (column, (start, len)) in self.columns.iter_mut().zip(&self.fields) {
            let field = &row[start - origin..][..*len];
            column.look(field, line, self.words, self.dialect.quote);
        }
    }
}

/// Whether a field is missing, by the usual words or the user's own.
pub(crate) fn is_missing_or(field: &[u8], words: &[String]) -> bool {
    is_missing(field) || is_word(field, words)
}

/// Whether a field is one of the user's own words for missing.
pub(crate) fn is_word(field: &[u8], words: &[String]) -> bool {
    words.iter().any(|word| word.as_bytes() == field.trim_ascii())
}

/// A header with bytes that are not UTF-8, by the name they stand in.
fn unreadable_name(header: &[u8], columns: &[ColumnProfile]) -> Option<Fault> {
    std::str::from_utf8(header).err()?;
    let broken = columns
        .iter()
        .find(|column| column.name.contains(char::REPLACEMENT_CHARACTER));
    Some(Fault::NotUtf8 {
        column: broken.map(|column| column.name.clone()).unwrap_or_default(),
    })
}
