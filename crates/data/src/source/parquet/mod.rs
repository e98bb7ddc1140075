//! A Parquet file as a part of a source.
//!
//! Row groups can be larger than any budget, so nothing is read by the row group: each wanted column has one page
//! at a time in memory and its dictionary, and all advance together by a piece. A piece is a number of rows that
//! the metadata fixes. Reading taken up in the middle passes over row groups and pages without decoding them.

mod header;
mod layout;
mod pages;

use std::path::Path;
use std::sync::Arc;

use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, Field, Fields};
use parquet::arrow::arrow_reader::{
    ArrowReaderMetadata, ArrowReaderOptions, ParquetRecordBatchReader, RowSelection, RowSelector,
};
use parquet::arrow::{ProjectionMask, parquet_to_arrow_field_levels};
use parquet::errors::ParquetError;
use parquet::file::metadata::{PageIndexPolicy, ParquetMetaData, ParquetStatisticsPolicy};
use tidegate_memory::{Grant, Ledger};

use self::layout::Layout;
use self::pages::{Failure, Groups, PageFile};
use super::columns::guarded;
use super::pool::{Pool, Share};
use super::{Part, Piece, PieceSize, Pieces, Place, Position, Reading, SourceColumn};
use super::{columns, sample};
use crate::profile::{Profile, name_columns};
use crate::{Error, Input, Result};

/// What the footer takes in memory, by its bytes on disk: 5.7 times as much for 68 row groups of 23 columns
/// written by pyarrow, 4 times for one of Polars.
const METADATA_FACTOR: u64 = 8;

pub(crate) struct ParquetPart {
    input: Input,
    metadata: Arc<ParquetMetaData>,
    columns: Vec<SourceColumn>,
    /// The type that each column is read as.
    fields: Fields,
    layout: Layout,
    n_rows: u64,
    /// The rows of a piece.
    piece_rows: u64,
    #[expect(dead_code, reason = "held for its drop")]
    metadata_grant: Grant,
}

impl ParquetPart {
    /// Reads the footer, and the headers of a few pages.
    pub(crate) fn open(input: Input, ledger: &Ledger) -> Result<ParquetPart> {
        let holder = ledger.holder("sample");
        let footer = footer_bytes(&input)?;
        let mut metadata_grant =
            holder
                .try_grant((METADATA_FACTOR + 1) * footer)
                .map_err(|_| Error::PieceTooLarge {
                    path: input.path().into(),
                    format: "Parquet",
                    place: "the footer".into(),
                    bytes: (METADATA_FACTOR + 1) * footer,
                    budget: ledger.budget(),
                })?;
        let pool = Pool::new(&holder, 0)?;
        let file = PageFile::new(
            input.places()?,
            input.path().into(),
            input.bytes(),
            pool,
            ledger.budget(),
        );
        let options = || {
            ArrowReaderOptions::new()
                .with_page_index_policy(PageIndexPolicy::Skip)
                .with_column_stats_policy(ParquetStatisticsPolicy::SkipAll)
        };
        // The schema that Arrow leaves in the footer may be broken where the file is not.
        let loaded = guarded(|| ArrowReaderMetadata::load(&file, options())).or_else(|_: ParquetError| {
            guarded(|| ArrowReaderMetadata::load(&file, options().with_skip_arrow_metadata(true)))
        });
        let loaded = match (loaded, file.take_failure()) {
            (Ok(loaded), _) => loaded,
            (Err(_), Some(Failure::Final(error) | Failure::Refused(error))) => return Err(error),
            (Err(error), None) => return Err(broken(&input, "", error)),
        };
        let metadata = loaded.metadata().clone();
        let n_rows = layout::check(&metadata, input.bytes()).map_err(|error| broken(&input, "", error))?;
        metadata_grant.shrink(footer);
        let actual = metadata.memory_size() as u64;
        let more = actual.saturating_sub(metadata_grant.bytes());
        metadata_grant.try_grow(more)?;
        metadata_grant.shrink(metadata_grant.bytes() - actual.min(metadata_grant.bytes()));
        if n_rows == 0 {
            return Err(Error::NoRows {
                path: input.path().into(),
            });
        }
        let schema = loaded.schema();
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let names = name_columns(&names, true);
        let columns = names.into_iter().zip(schema.fields());
        let columns = columns.map(|(name, field)| SourceColumn {
            name,
            kind: columns::kind(field.data_type()),
        });
        let columns: Vec<SourceColumn> = columns.collect();
        let fields: Fields = schema.fields().iter().map(|field| read_as(field)).collect();
        let layout = Layout::new(&metadata, &columns, &file).map_err(|error| broken(&input, "", error))?;
        Ok(ParquetPart {
            piece_rows: layout.piece_rows(n_rows),
            input,
            columns,
            fields,
            layout,
            n_rows,
            metadata,
            metadata_grant,
        })
    }
}

/// Texts as views into the pages that hold them: nothing is copied, and a long text in a dictionary stays one.
fn read_as(field: &Field) -> Field {
    let data_type = match field.data_type() {
        DataType::Dictionary(_, value) => value.as_ref(),
        other => other,
    };
    let data_type = match data_type {
        DataType::Utf8 | DataType::LargeUtf8 => DataType::Utf8View,
        DataType::Binary | DataType::LargeBinary => DataType::BinaryView,
        other => other.clone(),
    };
    field.clone().with_data_type(data_type)
}

/// The length that the last eight bytes give for the footer.
fn footer_bytes(input: &Input) -> Result<u64> {
    let mut tail = [0u8; 8];
    let whole = match input.bytes().checked_sub(8) {
        Some(at) => input.places()?.fill_at(&mut tail, at)?,
        None => false,
    };
    let length = u64::from(u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]));
    if !whole || !matches!(&tail[4..], b"PAR1" | b"PARE") || length + 8 > input.bytes() {
        let error = ParquetError::EOF("it does not end in a footer".into());
        return Err(broken(input, "", error));
    }
    Ok(length)
}

fn broken(input: &Input, place: &str, source: ParquetError) -> Error {
    Error::Broken {
        path: input.path().into(),
        format: "Parquet",
        place: place.into(),
        source: Box::new(source),
    }
}

impl Part for ParquetPart {
    fn path(&self) -> &Path {
        self.input.path()
    }

    fn columns(&self) -> &[SourceColumn] {
        &self.columns
    }

    fn bytes(&self) -> u64 {
        self.input.bytes()
    }

    fn n_rows(&self) -> Option<u64> {
        Some(self.n_rows)
    }

    fn fingerprint(&self) -> Result<u64> {
        self.input.fingerprint()
    }

    fn piece_size(&self, reading: &Reading) -> PieceSize {
        let wanted = reading.wanted.iter().filter_map(|wanted| {
            let column = self
                .columns
                .iter()
                .position(|column| column.name == wanted.name)?;
            Some((column, wanted.read))
        });
        let wanted: Vec<_> = wanted.collect();
        PieceSize {
            text: 0,
            rows: self.piece_rows,
            likely_rows: self.piece_rows,
            texts: self.layout.texts(&wanted, self.piece_rows),
            reader: self.layout.reader(&wanted, self.piece_rows),
        }
    }

    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        /// Beside the first piece: as many places, spread over the rows.
        const PLACES: u64 = 8;
        let at = |i| Position {
            offset: self.n_rows / (PLACES + 1) * i,
            ..Position::default()
        };
        // A small file is read from its first row to its last.
        let spread = self.n_rows > 4 * PLACES * self.piece_rows;
        let starts: Vec<Position> = (0..if spread { PLACES + 1 } else { 1 }).map(at).collect();
        sample::profile(self, reading, &starts, ledger)
    }

    fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>> {
        let columns: Result<Vec<usize>> = reading
            .wanted
            .iter()
            .map(|wanted| columns::find(self, &wanted.name, &self.fields))
            .collect();
        let columns = columns?;
        let wanted: Vec<_> = columns
            .iter()
            .zip(&reading.wanted)
            .map(|(column, wanted)| (*column, wanted.read))
            .collect();
        let pool = Pool::new(
            &ledger.holder(crate::BUFFERS),
            self.layout.reader(&wanted, self.piece_rows),
        )?;
        let decoders = self.layout.decoders(&wanted, self.piece_rows);
        let decoders = pool.take(decoders).map_err(|_| Error::PieceTooLarge {
            path: self.path().into(),
            format: "Parquet",
            place: format!("decoding {} columns", columns.len()),
            bytes: decoders,
            budget: ledger.budget(),
        })?;
        let file = PageFile::new(
            self.input.unchanged_places()?,
            self.path().into(),
            self.bytes(),
            pool,
            ledger.budget(),
        );
        Ok(Box::new(ParquetPieces {
            part: self,
            reading,
            columns,
            file: Arc::new(file),
            batches: None,
            next_row: start.offset,
            decoders,
        }))
    }

    /// Done while reading.
    fn decode(&self, _place: &Place, _reading: &Reading, _piece: &mut Piece) -> Result<()> {
        Ok(())
    }
}

struct ParquetPieces<'a> {
    part: &'a ParquetPart,
    reading: &'a Reading,
    /// Where the wanted columns are in the file.
    columns: Vec<usize>,
    file: Arc<PageFile>,
    /// Reads from `next_row` on; `None` before the first piece, and when memory was refused on the way.
    batches: Option<Batches>,
    next_row: u64,
    /// What the decoders take beside pages.
    #[expect(dead_code, reason = "held for its drop")]
    decoders: Share,
}

struct Batches {
    reader: ParquetRecordBatchReader,
    /// For each wanted column, its place in the batches.
    places: Vec<usize>,
}

impl ParquetPieces<'_> {
    /// Starts decoding at `next_row`.
    fn open(&self) -> Result<Batches, ParquetError> {
        let part = self.part;
        let mut before = 0;
        let groups = part.metadata.row_groups();
        let first = groups.iter().position(|group| {
            let rows = group.num_rows() as u64;
            let here = self.next_row < before + rows;
            before += if here { 0 } else { rows };
            here
        });
        let first = first.unwrap_or(groups.len());
        let mut roots = self.columns.clone();
        roots.sort_unstable();
        roots.dedup();
        let place = |column: &usize| roots.binary_search(column).unwrap_or_default();
        let places = self.columns.iter().map(place).collect();
        let schema = part.metadata.file_metadata().schema_descr();
        let mask = ProjectionMask::roots(schema, roots.iter().copied());
        let levels = parquet_to_arrow_field_levels(schema, mask, Some(&part.fields))?;
        let skipped = (self.next_row - before) as usize;
        let rest = part.n_rows - self.next_row;
        let selection = (skipped > 0).then(|| {
            RowSelection::from(vec![
                RowSelector::skip(skipped),
                RowSelector::select(rest as usize),
            ])
        });
        let groups = Groups {
            file: self.file.clone(),
            metadata: part.metadata.clone(),
            first,
        };
        let rows = part.piece_rows as usize;
        let reader = ParquetRecordBatchReader::try_new_with_row_groups(&levels, &groups, rows, selection)?;
        Ok(Batches { reader, places })
    }

    /// The next rows as arrays.
    fn next_batch(&mut self) -> Result<RecordBatch, Failure> {
        let rows = self.part.piece_rows.min(self.part.n_rows - self.next_row);
        let read = guarded(|| {
            if self.batches.is_none() {
                self.batches = Some(self.open()?);
            }
            let batch = self.batches.as_mut().and_then(|batches| batches.reader.next());
            match batch.transpose()? {
                Some(batch) if batch.num_rows() as u64 == rows => Ok(batch),
                _ => Err(ParquetError::EOF("it has fewer rows than its footer says".into())),
            }
        });
        read.map_err(|error| {
            self.batches = None;
            let final_error = || Failure::Final(broken(&self.part.input, "", error));
            self.file.take_failure().unwrap_or_else(final_error)
        })
    }

    /// Reads the next rows into `piece`, where there is memory for them.
    fn try_read(&mut self, piece: &mut Piece) -> Result<usize, Failure> {
        let chunk = &mut piece.chunk;
        chunk.clear();
        let rows = self.part.piece_rows.min(self.part.n_rows - self.next_row);
        if self.columns.is_empty() {
            if !chunk.reserve(rows, 0) {
                return Err(Failure::Refused(self.too_large(rows * 8)));
            }
            chunk.end_rows(self.next_row + 1, rows as usize);
            return Ok(rows as usize);
        }
        let batch = self.next_batch()?;
        let places = self.batches.as_ref().map_or(&[][..], |batches| &batches.places);
        let arrays: Vec<&dyn Array> = places.iter().map(|place| batch.column(*place).as_ref()).collect();
        let wanted = &self.reading.wanted;
        let texts = arrays
            .iter()
            .zip(wanted)
            .map(|(array, wanted)| columns::text_bytes(*array, wanted.read));
        let texts = texts.sum::<u64>();
        if !columns::reserve(chunk, rows, texts) {
            self.batches = None;
            return Err(Failure::Refused(self.too_large(texts)));
        }
        for (column, array) in arrays.into_iter().enumerate() {
            columns::fill(chunk, column, array);
        }
        chunk.end_rows(self.next_row + 1, rows as usize);
        Ok(rows as usize)
    }

    fn too_large(&self, bytes: u64) -> Error {
        let first = self.next_row + 1;
        let last = (self.next_row + self.part.piece_rows).min(self.part.n_rows);
        Error::PieceTooLarge {
            path: self.part.path().into(),
            format: "Parquet",
            place: format!("the text of rows {first} to {last}"),
            bytes,
            budget: self.file.budget,
        }
    }
}

impl Pieces for ParquetPieces<'_> {
    fn read(&mut self, piece: &mut Piece, make_room: &mut dyn FnMut() -> bool) -> Result<Option<Place>> {
        let part = self.part;
        if self.next_row >= part.n_rows {
            return Ok(None);
        }
        let rows = loop {
            match self.try_read(piece) {
                Ok(rows) => break rows as u64,
                // Started anew at the same row with what others gave back.
                Err(Failure::Refused(error)) if !make_room() => return Err(error),
                Err(Failure::Refused(_)) => {}
                Err(Failure::Final(error)) => return Err(error),
            }
        };
        let start = Position {
            line: self.next_row + 1,
            offset: self.next_row,
            ..Position::default()
        };
        self.next_row += rows;
        let read = self.next_row as f64 / part.n_rows as f64;
        Ok(Some(Place {
            start,
            lines: rows,
            length: rows,
            consumed: (part.bytes() as f64 * read) as u64,
        }))
    }
}
