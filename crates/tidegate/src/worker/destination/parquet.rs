//! Predictions as Parquet: row groups of a fixed size, each written when it is full.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Encoding, LogicalType, Repetition, Type as Physical};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::{ParquetError, Result as Written};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use tidegate_memory::Grant;
use tidegate_train::{Error, Prediction, Result};

use super::{Columns, Destination, OUTPUT};

/// What the rows of a group take until it is full: some ninety thousand of them with a probability each.
const GROUP_BYTES: usize = 2 << 20;
/// Rows of a group at the least, however many classes there are.
const LEAST_ROWS: usize = 256;
/// What the writer holds of one column while it is written: pages of at most 20,000 values, the same compressed, a
/// dictionary. With the rows of a group, 2.7 MB more than for CSV were measured on two million rows.
const WRITER_BYTES: u64 = 2_000_000;
/// What the writer keeps of every column of every group until the end of the file: a bound, for 16,000
/// of them hardly showed beside a peak of 36 MB.
const CHUNK_BYTES: u64 = 1_000;
/// What a name takes beside its letters.
const NAME_BYTES: usize = 64;
/// Values that are handed to the writer together.
const TOGETHER: usize = 1024;

pub(in crate::worker) struct ParquetOutput {
    writer: SerializedFileWriter<Destination>,
    name: PathBuf,
    files: Option<Vec<ByteArray>>,
    labels: Vec<ByteArray>,
    /// Whether scores stand for themselves, without a prediction beside them.
    plain: bool,
    n_columns: u64,
    n_scores: usize,
    group_rows: usize,
    /// The place of each row: its number, or its name where rows are named.
    lines: Vec<i64>,
    names: Option<Vec<ByteArray>>,
    name_bytes: usize,
    /// The place of each row's file among the files, and of its prediction among the labels.
    parts: Vec<u32>,
    classes: Vec<u32>,
    /// All of a row one after another.
    scores: Vec<f64>,
    grant: Grant,
}

impl ParquetOutput {
    /// What a file of so many rows needs.
    pub(super) fn bytes(columns: &Columns, rows: u64) -> u64 {
        let groups = rows.div_ceil(group_rows(columns) as u64).max(1);
        let names = if columns.named { GROUP_BYTES } else { 0 };
        (group_rows(columns) * row_bytes(columns) + names) as u64
            + WRITER_BYTES
            + groups * columns.names().len() as u64 * CHUNK_BYTES
    }

    pub(super) fn new(out: Destination, columns: Columns, grant: Grant) -> Result<ParquetOutput> {
        let name = out.name().to_path_buf();
        let schema = schema(&columns).map_err(|error| failed(&name, error))?;
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties(&columns)))
            .map_err(|error| failed(&name, error))?;
        let texts = |texts: &[String]| texts.iter().map(|text| ByteArray::from(text.as_str())).collect();
        Ok(ParquetOutput {
            writer,
            name,
            files: columns.files.as_deref().map(texts),
            labels: texts(&columns.labels),
            plain: !columns.several.is_empty(),
            n_columns: columns.names().len() as u64,
            n_scores: columns.n_scores(),
            group_rows: group_rows(&columns),
            lines: Vec::new(),
            names: columns.named.then(Vec::new),
            name_bytes: 0,
            parts: Vec::new(),
            classes: Vec::new(),
            scores: Vec::new(),
            grant,
        })
    }

    pub(super) fn write(&mut self, prediction: &Prediction) -> Result<()> {
        if self.lines.capacity() == 0 {
            self.lines.reserve_exact(self.group_rows);
            self.parts.reserve_exact(self.group_rows);
            self.classes.reserve_exact(self.group_rows);
            self.scores.reserve_exact(self.group_rows * self.n_scores);
        }
        self.lines.push(prediction.line as i64);
        if let Some(names) = &mut self.names {
            let name = prediction.name.unwrap_or_default();
            names.push(ByteArray::from(name));
            self.name_bytes += NAME_BYTES + name.len();
        }
        self.parts.push(prediction.part as u32);
        self.classes.push(prediction.class as u32);
        self.scores.extend_from_slice(prediction.scores);
        match self.lines.len() == self.group_rows || self.name_bytes >= GROUP_BYTES {
            true => self.end_group(),
            false => Ok(()),
        }
    }

    fn end_group(&mut self) -> Result<()> {
        let grown = self.grant.try_grow(self.n_columns * CHUNK_BYTES);
        grown.map_err(|source| Error::Memory { what: OUTPUT, source })?;
        self.write_group().map_err(|error| failed(&self.name, error))?;
        self.lines.clear();
        self.names.iter_mut().for_each(Vec::clear);
        self.name_bytes = 0;
        self.parts.clear();
        self.classes.clear();
        self.scores.clear();
        Ok(())
    }

    fn write_group(&mut self) -> Written<()> {
        let (n_rows, n_scores, scores) = (self.lines.len(), self.n_scores, &self.scores);
        let (parts, classes, labels) = (&self.parts, &self.classes, &self.labels);
        let mut group = self.writer.next_row_group()?;
        if let Some(files) = &self.files {
            column::<ByteArrayType>(&mut group, n_rows, |row| files[parts[row] as usize].clone())?;
        }
        match &self.names {
            Some(names) => column::<ByteArrayType>(&mut group, n_rows, |row| names[row].clone())?,
            None => column::<Int64Type>(&mut group, n_rows, |row| self.lines[row])?,
        }
        if !labels.is_empty() {
            column::<ByteArrayType>(&mut group, n_rows, |row| labels[classes[row] as usize].clone())?;
        }
        let several = n_scores > 1 || self.plain;
        let own = |row: usize| if several { classes[row] as usize } else { 0 };
        if !self.plain {
            column::<DoubleType>(&mut group, n_rows, |row| scores[row * n_scores + own(row)])?;
        }
        for class in (0..n_scores).filter(|_| several) {
            column::<DoubleType>(&mut group, n_rows, |row| scores[row * n_scores + class])?;
        }
        group.close()?;
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<()> {
        if !self.lines.is_empty() {
            self.end_group()?;
        }
        let ParquetOutput { writer, name, .. } = self;
        let out = writer.into_inner().map_err(|error| failed(&name, error))?;
        out.finish()
    }
}

/// Writes the next column of a group, some values at a time.
fn column<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Destination>,
    n_rows: usize,
    value: impl Fn(usize) -> T::T,
) -> Written<()> {
    let none_left = || ParquetError::General("it has no column left".into());
    let mut writer: SerializedColumnWriter = group.next_column()?.ok_or_else(none_left)?;
    let mut values = Vec::with_capacity(TOGETHER.min(n_rows));
    for start in (0..n_rows).step_by(TOGETHER) {
        values.clear();
        values.extend((start..n_rows.min(start + TOGETHER)).map(&value));
        writer.typed::<T>().write_batch(&values, None, None)?;
    }
    writer.close()
}

fn row_bytes(columns: &Columns) -> usize {
    size_of::<i64>() + 2 * size_of::<u32>() + columns.n_scores() * size_of::<f64>()
}

fn group_rows(columns: &Columns) -> usize {
    (GROUP_BYTES / row_bytes(columns)).max(LEAST_ROWS)
}

fn schema(columns: &Columns) -> Written<Type> {
    let fields = columns.names().into_iter().map(|name| {
        let is_text = name == "file" || (name == "prediction" && !columns.labels.is_empty());
        let physical = match name.as_str() {
            name if name == columns.place && !columns.named => Physical::INT64,
            _ if is_text => Physical::BYTE_ARRAY,
            _ => Physical::DOUBLE,
        };
        let field = Type::primitive_type_builder(&name, physical).with_repetition(Repetition::REQUIRED);
        let field = match is_text {
            true => field
                .with_logical_type(Some(LogicalType::String))
                .with_converted_type(ConvertedType::UTF8),
            false => field,
        };
        field.build().map(Arc::new)
    });
    let fields = fields.collect::<Written<Vec<_>>>()?;
    Type::group_type_builder("predictions")
        .with_fields(fields)
        .build()
}

/// Texts repeat and have a dictionary; numbers hardly do, and lines grow by a little from row to row.
fn properties(columns: &Columns) -> WriterProperties {
    let named = |name: &str| ColumnPath::from(name);
    let place = match columns.named {
        true => Encoding::DELTA_BYTE_ARRAY,
        false => Encoding::DELTA_BINARY_PACKED,
    };
    WriterProperties::builder()
        .set_created_by(concat!("tidegate ", env!("CARGO_PKG_VERSION")).into())
        .set_compression(Compression::SNAPPY)
        .set_statistics_enabled(EnabledStatistics::Chunk)
        .set_offset_index_disabled(true)
        .set_dictionary_enabled(false)
        .set_column_dictionary_enabled(named("file"), !columns.named)
        .set_column_dictionary_enabled(named("prediction"), !columns.labels.is_empty())
        .set_column_encoding(named(columns.place), place)
        .build()
}

/// The error of the disk or the pipe, where it is one.
fn failed(name: &Path, error: ParquetError) -> Error {
    let source = match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(error) => io::Error::other(error),
        },
        error => io::Error::other(error),
    };
    Error::Write {
        path: name.into(),
        source,
    }
}
