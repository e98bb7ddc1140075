//! An Arrow file (also called Feather) or stream as a part of a source.
//!
//! A record batch is the unit that can be read: it is taken in whole, within the budget or not at all, and cut into
//! pieces. No piece reaches over the end of a batch.

mod messages;

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_ipc::reader::FileDecoder;
use arrow_schema::{ArrowError, SchemaRef};
use tidegate_memory::{Ledger, Refused};

use self::messages::{Holds, Message, Messages, decompressed};
use super::columns::{self, guarded};
use super::pool::{Pool, Share};
use super::{Kind, Part, Piece, PieceSize, Pieces, Place, Position, Reading, SourceColumn, sample};
use crate::chunk::Read;
use crate::input::Places;
use crate::profile::{Profile, name_columns};
use crate::{Error, Input, Result};

/// What can go wrong with a message, before it is known which.
enum Trouble {
    Broken(String),
    Refused,
    Other(Error),
}

impl From<ArrowError> for Trouble {
    fn from(error: ArrowError) -> Trouble {
        Trouble::Broken(error.to_string())
    }
}

impl From<Refused> for Trouble {
    fn from(_: Refused) -> Trouble {
        Trouble::Refused
    }
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Trouble {
        Trouble::Other(error)
    }
}

pub(crate) struct ArrowPart {
    input: Input,
    schema: SchemaRef,
    columns: Vec<SourceColumn>,
    messages: Messages,
    n_rows: u64,
    /// The rows of a piece, and bytes of text in a row, about.
    piece_rows: u64,
    row_texts: f64,
    /// What the largest batch takes, decompressed, with all dictionaries.
    reader: u64,
}

impl ArrowPart {
    /// Reads where the batches are and how many rows they have.
    pub(crate) fn open(input: Input, ledger: &Ledger) -> Result<ArrowPart> {
        let places = input.places()?;
        let holder = ledger.holder("sample");
        let trouble = |trouble| trouble_at(&input, trouble, "its list of batches", 0, ledger.budget());
        let messages = Messages::list(&places, input.bytes(), &holder).map_err(trouble)?;
        let batches = messages.all.iter().filter_map(|message| match message.holds {
            Holds::Rows(rows) => Some((message, rows)),
            Holds::Dictionary { .. } => None,
        });
        let n_rows: u64 = batches.clone().map(|(_, rows)| rows).sum();
        if n_rows == 0 {
            return Err(Error::NoRows {
                path: input.path().into(),
            });
        }
        let schema = Arc::new(messages.schema.clone());
        let names: Vec<String> = schema.fields().iter().map(|field| field.name().clone()).collect();
        let names = name_columns(&names, true).into_iter();
        let columns = names.zip(schema.fields()).map(|(name, field)| SourceColumn {
            name,
            kind: columns::kind(field.data_type()),
        });
        let columns: Vec<SourceColumn> = columns.collect();
        let bytes: u64 = messages.all.iter().map(Message::bytes).sum();
        let largest = batches.clone().max_by_key(|(message, _)| message.bytes());
        let unpacked = largest
            .map(|(message, _)| message.decompressed(&places))
            .transpose();
        let (largest, unpacked) = (
            largest.map_or(1, |(message, _)| message.bytes()),
            unpacked.map_err(trouble)?.unwrap_or(0),
        );
        let dictionaries = bytes - batches.map(|(message, _)| message.bytes()).sum::<u64>();
        let ratio = unpacked.max(largest) as f64 / largest as f64;
        let has_texts = columns.iter().any(|column| column.kind == Kind::Text);
        let row_texts = if has_texts {
            bytes as f64 * ratio / n_rows as f64
        } else {
            0.0
        };
        Ok(ArrowPart {
            piece_rows: columns::piece_rows(row_texts, columns.len(), n_rows),
            input,
            schema,
            columns,
            messages,
            n_rows,
            row_texts,
            // Dictionaries may be packed as well, and grow by copies of themselves: what this falls short of is asked
            // for on the way.
            reader: largest + unpacked + (2.0 * ratio * dictionaries as f64) as u64,
        })
    }

    fn trouble(&self, trouble: Trouble, place: &str, bytes: u64, budget: u64) -> Error {
        trouble_at(&self.input, trouble, place, bytes, budget)
    }
}

fn trouble_at(input: &Input, trouble: Trouble, place: &str, bytes: u64, budget: u64) -> Error {
    match trouble {
        Trouble::Other(error) => error,
        Trouble::Broken(what) => Error::Broken {
            path: input.path().into(),
            format: "Arrow",
            place: format!(" in {place}"),
            source: what.into(),
        },
        Trouble::Refused => Error::PieceTooLarge {
            path: input.path().into(),
            format: "Arrow",
            place: place.into(),
            bytes,
            budget,
        },
    }
}

impl Part for ArrowPart {
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
        let has_texts = reading.wanted.iter().any(|wanted| wanted.read == Read::Text);
        PieceSize {
            text: 0,
            rows: self.piece_rows,
            likely_rows: self.piece_rows,
            texts: if has_texts {
                (self.row_texts * self.piece_rows as f64 * 1.25) as u64
            } else {
                0
            },
            reader: self.reader,
        }
    }

    fn profile(&self, reading: &Reading, ledger: &Ledger) -> Result<Profile> {
        /// Batches looked into, beside the first.
        const PLACES: usize = 8;
        let mut firsts = Vec::new();
        let mut before = 0;
        for message in &self.messages.all {
            if let Holds::Rows(rows @ 1..) = message.holds {
                firsts.push(before);
                before += rows;
            }
        }
        let at = |offset: u64| Position {
            offset,
            ..Position::default()
        };
        let few = firsts.len() <= 2 * PLACES || self.n_rows <= 4 * PLACES as u64 * self.piece_rows;
        let starts: Vec<Position> = match few {
            true => vec![at(0)],
            false => (0..=PLACES)
                .map(|i| at(firsts[i * (firsts.len() - 1) / PLACES]))
                .collect(),
        };
        sample::profile(self, reading, &starts, ledger)
    }

    fn read<'a>(
        &'a self,
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<Box<dyn Pieces + 'a>> {
        let wanted = reading.wanted.iter();
        let wanted: Result<Vec<usize>> = wanted
            .map(|wanted| columns::find(self, &wanted.name, self.schema.fields()))
            .collect();
        let wanted = wanted?;
        let mut projection = wanted.clone();
        projection.sort_unstable();
        projection.dedup();
        let places = wanted
            .iter()
            .map(|column| projection.binary_search(column).unwrap_or_default());
        Ok(Box::new(ArrowPieces {
            part: self,
            reading,
            wanted: places.collect(),
            decoder: FileDecoder::new(self.schema.clone(), self.messages.version).with_projection(projection),
            places: self.input.unchanged_places()?,
            pool: Pool::new(&ledger.holder(crate::BUFFERS), self.reader)?,
            budget: ledger.budget(),
            next_message: 0,
            batch: None,
            dictionaries: HashMap::new(),
            rows_before: 0,
            next_row: start.offset,
        }))
    }

    /// Done while reading.
    fn decode(&self, _place: &Place, _reading: &Reading, _piece: &mut Piece) -> Result<()> {
        Ok(())
    }
}

struct ArrowPieces<'a> {
    part: &'a ArrowPart,
    reading: &'a Reading,
    /// For each wanted column, its place in the batches.
    wanted: Vec<usize>,
    decoder: FileDecoder,
    places: Places,
    pool: Arc<Pool>,
    budget: u64,
    next_message: usize,
    /// The batch being cut into pieces, and what it takes.
    batch: Option<(RecordBatch, Vec<Share>)>,
    /// What dictionaries take, by their number.
    dictionaries: HashMap<i64, Vec<Share>>,
    /// Rows of the batches before the current one.
    rows_before: u64,
    next_row: u64,
}

impl ArrowPieces<'_> {
    /// Reads on until the batch that holds the next row is there; `false` at the end.
    fn advance(&mut self, make_room: &mut dyn FnMut() -> bool) -> Result<bool> {
        loop {
            if let Some((batch, _)) = &self.batch {
                let end = self.rows_before + batch.num_rows() as u64;
                if self.next_row < end {
                    return Ok(true);
                }
                self.rows_before = end;
                self.batch = None;
            }
            let Some(message) = self.part.messages.all.get(self.next_message).copied() else {
                return Ok(false);
            };
            match message.holds {
                // Passed over where reading starts behind it.
                Holds::Rows(rows) if self.rows_before + rows <= self.next_row => self.rows_before += rows,
                _ => self.take(&message, make_room)?,
            }
            self.next_message += 1;
        }
    }

    fn take(&mut self, message: &Message, make_room: &mut dyn FnMut() -> bool) -> Result<()> {
        loop {
            let mut needed = message.bytes();
            match self.try_take(message, &mut needed) {
                Ok(()) => return Ok(()),
                Err(Trouble::Refused) if make_room() => {}
                Err(trouble) => {
                    let nth = self.part.messages.all[..self.next_message].iter();
                    let place = match message.holds {
                        Holds::Rows(rows) => {
                            let nth = nth
                                .filter(|message| matches!(message.holds, Holds::Rows(_)))
                                .count();
                            format!("record batch {nth} with {rows} rows")
                        }
                        Holds::Dictionary { id, .. } => format!("dictionary {id}"),
                    };
                    return Err(self.part.trouble(trouble, &place, needed, self.budget));
                }
            }
        }
    }

    fn try_take(&mut self, message: &Message, needed: &mut u64) -> Result<(), Trouble> {
        let mut shares = vec![self.pool.take(*needed)?];
        let bytes = message.read(&self.places)?;
        let (metadata, body) = bytes.split_at(message.block.metaDataLength() as usize);
        let mut more = decompressed(metadata, body.len() as u64, |at| {
            let bytes = usize::try_from(at).ok().and_then(|at| body.get(at..));
            Ok(bytes.and_then(|bytes| bytes.first_chunk::<8>().copied()))
        })?;
        if let Holds::Dictionary { delta: true, .. } = message.holds {
            // What is added is copied behind what was there.
            more = more.saturating_add(message.bytes());
        }
        *needed = needed.saturating_add(more);
        shares.push(self.pool.take(more)?);
        match message.holds {
            Holds::Rows(rows) => {
                let decoded = guarded(|| self.decoder.read_record_batch(&message.block, &bytes))?;
                let batch = decoded.filter(|batch| batch.num_rows() as u64 == rows);
                let missing = || Trouble::Broken("it does not have its rows".into());
                self.batch = Some((batch.ok_or_else(missing)?, shares));
            }
            Holds::Dictionary { id, delta } => {
                guarded(|| self.decoder.read_dictionary(&message.block, &bytes))?;
                let held = self.dictionaries.entry(id).or_default();
                if !delta {
                    held.clear();
                }
                held.extend(shares);
            }
        }
        Ok(())
    }
}

impl Pieces for ArrowPieces<'_> {
    fn read(&mut self, piece: &mut Piece, make_room: &mut dyn FnMut() -> bool) -> Result<Option<Place>> {
        if !self.advance(make_room)? {
            return Ok(None);
        }
        let Some((batch, _)) = &self.batch else {
            return Ok(None);
        };
        let start = (self.next_row - self.rows_before) as usize;
        let rows = (batch.num_rows() - start).min(self.part.piece_rows as usize);
        let rows_of_piece = batch.slice(start, rows);
        let chunk = &mut piece.chunk;
        chunk.clear();
        let arrays = self.wanted.iter().map(|column| rows_of_piece.column(*column));
        let wanted = self.reading.wanted.iter();
        let texts = arrays
            .clone()
            .zip(wanted)
            .map(|(array, wanted)| columns::text_bytes(array, wanted.read));
        let texts: u64 = texts.sum();
        while !columns::reserve(chunk, rows as u64, texts) {
            if !make_room() {
                let place = format!(
                    "the text of rows {} to {}",
                    self.next_row + 1,
                    self.next_row + rows as u64
                );
                return Err(self.part.trouble(Trouble::Refused, &place, texts, self.budget));
            }
        }
        for (column, array) in arrays.enumerate() {
            columns::fill(chunk, column, array);
        }
        chunk.end_rows(self.next_row + 1, rows);
        let position = Position {
            line: self.next_row + 1,
            offset: self.next_row,
            ..Position::default()
        };
        self.next_row += rows as u64;
        let read = self.next_row as f64 / self.part.n_rows as f64;
        Ok(Some(Place {
            start: position,
            lines: rows as u64,
            length: rows as u64,
            consumed: (self.part.bytes() as f64 * read) as u64,
        }))
    }
}
