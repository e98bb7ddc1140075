//! Writes the files that the tests read, and reads them back.

use std::fs::File;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;
use tidegate_data::chunk::{Chunk, Read, Wanted};
use tidegate_data::source::Reading;
use tidegate_data::{BadRows, Position, Result, Source, SourceOptions};
use tidegate_memory::Ledger;

/// The ways in which a table can be written.
#[derive(Debug, Clone)]
pub(crate) enum Format {
    Parquet(Box<WriterProperties>),
    ArrowFile(Option<CompressionType>),
    ArrowStream(Option<CompressionType>),
}

impl Format {
    pub(crate) fn parquet() -> Format {
        Format::Parquet(Box::default())
    }

    pub(crate) fn all() -> Vec<Format> {
        vec![
            Format::parquet(),
            Format::ArrowFile(None),
            Format::ArrowFile(Some(CompressionType::LZ4_FRAME)),
            Format::ArrowFile(Some(CompressionType::ZSTD)),
            Format::ArrowStream(None),
            Format::ArrowStream(Some(CompressionType::ZSTD)),
        ]
    }
}

pub(crate) fn table(columns: Vec<(&str, ArrayRef)>) -> RecordBatch {
    RecordBatch::try_from_iter_with_nullable(columns.into_iter().map(|(name, array)| (name, array, true)))
        .unwrap()
}

/// Writes the batches to a file in `folder`.
pub(crate) fn write(folder: &TempDir, batches: &[RecordBatch], format: &Format) -> PathBuf {
    let path = folder.path().join("table");
    let file = File::create(&path).unwrap();
    let schema = batches[0].schema();
    let options = |compression: &Option<CompressionType>| {
        IpcWriteOptions::default()
            .try_with_compression(*compression)
            .unwrap()
    };
    match format {
        Format::Parquet(properties) => {
            let mut writer = ArrowWriter::try_new(file, schema, Some(properties.as_ref().clone())).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.close().unwrap();
        }
        Format::ArrowFile(compression) => {
            let mut writer = FileWriter::try_new_with_options(file, &schema, options(compression)).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
        Format::ArrowStream(compression) => {
            let mut writer = StreamWriter::try_new_with_options(file, &schema, options(compression)).unwrap();
            batches.iter().for_each(|batch| writer.write(batch).unwrap());
            writer.finish().unwrap();
        }
    }
    path
}

pub(crate) fn open(path: &Path, ledger: &Ledger) -> Result<Source> {
    Source::open(&[path.into()], &SourceOptions::default(), &[], ledger)
}

pub(crate) fn reading(wanted: &[(&str, Read)]) -> Reading {
    let wanted = wanted.iter().map(|(name, read)| Wanted {
        name: (*name).into(),
        read: *read,
    });
    Reading {
        wanted: wanted.collect(),
        missing: Vec::new(),
        bad_rows: BadRows::Fail,
    }
}

/// All columns, as numbers or as texts.
pub(crate) fn everything(source: &Source, read: Read) -> Reading {
    let names: Vec<(&str, Read)> = source
        .columns()
        .iter()
        .map(|column| (column.name.as_str(), read))
        .collect();
    reading(&names)
}

/// The cells of a chunk, written out row by row.
pub(crate) fn rows(chunk: &Chunk) -> Vec<String> {
    let cell = |column: usize, row: usize| match chunk.columns[column].read {
        Read::Text => chunk
            .text(column, row)
            .map_or("-".into(), |text| String::from_utf8_lossy(text).into_owned()),
        _ if chunk.numbers(column)[row].is_nan() => "-".into(),
        _ => chunk.numbers(column)[row].to_string(),
    };
    let row = |row| {
        (0..chunk.columns.len())
            .map(|column| cell(column, row))
            .collect::<Vec<_>>()
            .join("|")
    };
    (0..chunk.n_rows()).map(row).collect()
}

/// The pieces from `start` on: their rows, and the position behind each.
pub(crate) fn scan(
    source: &Source,
    reading: &Reading,
    start: Position,
    ledger: &Ledger,
) -> Result<Vec<(Vec<String>, Position)>> {
    let mut pieces = Vec::new();
    source.scan(reading, start, ledger, |chunk, end| {
        pieces.push((rows(chunk), end));
        ControlFlow::Continue(())
    })?;
    Ok(pieces)
}

pub(crate) fn column(array: impl arrow_array::Array + 'static) -> ArrayRef {
    Arc::new(array)
}
