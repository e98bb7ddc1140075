//! What the metadata and a few page headers say of the sizes to come.

use parquet::basic::{Compression, Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::ParquetMetaData;

use super::header::PageKind;
use super::pages::{PageFile, WINDOW_BYTES};
use crate::chunk::Read;
use crate::source::{Kind, SourceColumn, columns};

/// A text whose length the metadata does not tell, as in a dictionary.
const TEXT_BYTES: f64 = 16.0;
/// Page headers looked at, in all.
const HEADERS: usize = 2_000;

/// Sizes of the columns.
pub(super) struct Layout {
    columns: Vec<ColumnLayout>,
}

#[derive(Clone, Default)]
struct ColumnLayout {
    kind: Kind,
    /// Bytes of text in a row, about.
    text: f64,
    /// The largest page and dictionary seen, decompressed and as they are in the file.
    page: u64,
    dictionary: u64,
    compressed: u64,
    /// Bytes of a value in an array.
    width: u64,
    /// What the decompressor keeps between pages, and what it takes while it works.
    codec: u64,
    working: u64,
}

/// Checks what the library takes for granted, and counts the rows.
pub(super) fn check(metadata: &ParquetMetaData, file_bytes: u64) -> Result<u64, ParquetError> {
    let implausible = |what: String| Err(ParquetError::General(what));
    let schema = metadata.file_metadata().schema_descr();
    let mut n_rows = 0u64;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        let Ok(rows) = u64::try_from(group.num_rows()) else {
            return implausible(format!("row group {i} has {} rows", group.num_rows()));
        };
        n_rows = n_rows.saturating_add(rows);
        if group.num_columns() != schema.num_columns() {
            return implausible(format!("row group {i} has {} columns", group.num_columns()));
        }
        for chunk in group.columns() {
            let start = chunk.dictionary_page_offset().unwrap_or(chunk.data_page_offset());
            let (start, length) = (u64::try_from(start), u64::try_from(chunk.compressed_size()));
            let end = start.ok().zip(length.ok()).and_then(|(a, b)| a.checked_add(b));
            let name = chunk.column_descr().name();
            if end.is_none_or(|end| end > file_bytes) || chunk.data_page_offset() < 0 {
                return implausible(format!("row group {i}, column {name:?} is not within the file"));
            }
            let flat = chunk.column_descr().max_rep_level() == 0;
            if flat && u64::try_from(chunk.num_values()) != Ok(rows) {
                let values = chunk.num_values();
                return implausible(format!(
                    "row group {i} has {rows} rows and column {name:?} {values} values"
                ));
            }
        }
    }
    // Rows are counted in memory; a table of more than this has never been.
    match n_rows < 1 << 48 {
        true => Ok(n_rows),
        false => implausible(format!("it has {n_rows} rows")),
    }
}

impl Layout {
    /// Looks at the headers of each column's largest chunk: pages are as large as the writer was told to make them.
    pub(super) fn new(
        metadata: &ParquetMetaData,
        columns: &[SourceColumn],
        file: &PageFile,
    ) -> Result<Layout, ParquetError> {
        let schema = metadata.file_metadata().schema_descr();
        let mut layouts = vec![ColumnLayout::default(); columns.len()];
        for (layout, column) in layouts.iter_mut().zip(columns) {
            layout.kind = column.kind;
        }
        let mut headers = HEADERS;
        for leaf in 0..schema.num_columns() {
            let root = schema.get_column_root_idx(leaf);
            let Some(layout) = layouts
                .get_mut(root)
                .filter(|layout| layout.kind != Kind::Unsupported)
            else {
                continue;
            };
            let chunks = metadata.row_groups().iter().map(|group| group.column(leaf));
            let Some(largest) = chunks.clone().max_by_key(|chunk| chunk.uncompressed_size()) else {
                continue;
            };
            let values = chunks
                .clone()
                .map(|chunk| chunk.num_values() as f64)
                .sum::<f64>()
                .max(1.0);
            if layout.kind == Kind::Text {
                let encoded = chunks
                    .clone()
                    .map(|chunk| chunk.uncompressed_size() as f64)
                    .sum::<f64>();
                let texts: Option<i64> = chunks
                    .clone()
                    .map(|chunk| chunk.unencoded_byte_array_data_bytes())
                    .sum();
                layout.text = match texts {
                    Some(texts) => texts.max(0) as f64 / values,
                    None => (encoded / values).max(TEXT_BYTES),
                };
            }
            layout.width = match largest.column_type() {
                Type::BOOLEAN => 1,
                Type::INT32 | Type::FLOAT => 4,
                Type::INT64 | Type::DOUBLE => 8,
                Type::BYTE_ARRAY | Type::INT96 => 16,
                Type::FIXED_LEN_BYTE_ARRAY => largest.column_descr().type_length().max(16) as u64,
            };
            let (mut at, length) = largest.byte_range();
            let end = at + length;
            while at < end && headers > 0 {
                headers -= 1;
                let header = file.header(at, end)?;
                match header.page {
                    PageKind::Dictionary => {
                        let views = if layout.kind == Kind::Text {
                            16 * header.values
                        } else {
                            0
                        };
                        layout.dictionary = layout.dictionary.max(header.uncompressed + views);
                    }
                    PageKind::Data => layout.page = layout.page.max(header.uncompressed),
                    PageKind::Other => {}
                }
                layout.compressed = layout.compressed.max(header.compressed);
                at += header.length + header.compressed;
            }
            if at < end {
                // Too many pages to look at them all: none of the rest is expected to be larger than twice those seen.
                layout.page *= 2;
            }
            (layout.codec, layout.working) = match largest.compression() {
                Compression::ZSTD(_) => (160 << 10, 0),
                Compression::GZIP(_) => (0, 64 << 10),
                Compression::BROTLI(_) => (0, layout.page.max(layout.dictionary) + (4 << 20)),
                _ => (0, 0),
            };
        }
        Ok(Layout { columns: layouts })
    }

    /// The rows of a piece, by the metadata alone.
    pub(super) fn piece_rows(&self, n_rows: u64) -> u64 {
        let texts: f64 = self.columns.iter().map(|column| column.text).sum();
        let cells = self
            .columns
            .iter()
            .filter(|column| column.kind != Kind::Unsupported)
            .count();
        columns::piece_rows(texts, cells, n_rows)
    }

    /// Bytes of the texts of a piece.
    pub(super) fn texts(&self, wanted: &[(usize, Read)], rows: u64) -> u64 {
        let wanted = wanted.iter().filter(|(_, read)| *read == Read::Text);
        let row: f64 = wanted
            .map(|(column, _)| match self.columns[*column].kind {
                Kind::Text => self.columns[*column].text,
                _ => 45.0,
            })
            .sum();
        (row * rows as f64 * 1.25) as u64 + (64 << 10)
    }

    /// What decoders hold beside pages: arrays of a piece, levels, the state of decompressors.
    pub(super) fn decoders(&self, wanted: &[(usize, Read)], rows: u64) -> u64 {
        /// What is read ahead of a column, and its readers, whatever it holds.
        const COLUMN_BYTES: u64 = WINDOW_BYTES + (16 << 10);
        let column = |(column, _): &(usize, Read)| {
            let column = &self.columns[*column];
            rows * (column.width + 3) + column.codec + COLUMN_BYTES
        };
        let working = wanted
            .iter()
            .map(|(column, _)| self.columns[*column].working)
            .max();
        wanted.iter().map(column).sum::<u64>() + working.unwrap_or(0)
    }

    /// All that a reader of these columns holds: of each the dictionary, a page, and the texts of a piece in pages
    /// before; of one column, the next page as it is in the file and decompressed.
    pub(super) fn reader(&self, wanted: &[(usize, Read)], rows: u64) -> u64 {
        let column = |(column, _): &(usize, Read)| {
            let column = &self.columns[*column];
            column.page + column.dictionary + (column.text * rows as f64) as u64
        };
        let next = |(column, _): &(usize, Read)| {
            let column = &self.columns[*column];
            column.compressed + column.page.max(column.dictionary)
        };
        let pages = wanted.iter().map(column).sum::<u64>() + wanted.iter().map(next).max().unwrap_or(0);
        pages + self.decoders(wanted, rows)
    }
}
