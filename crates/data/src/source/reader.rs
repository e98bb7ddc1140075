//! Reading the parts of a source one after another.

use tidegate_memory::Ledger;

use super::{Part, Piece, Pieces, Place, Position, Reading};
use crate::{Error, Result};

/// Hands out the pieces of all parts in order. Parts know nothing of each other: their places are completed here.
pub(crate) struct SourceReader<'a> {
    parts: &'a [Box<dyn Part>],
    reading: &'a Reading,
    ledger: Ledger,
    /// The part being read, and where its next piece is.
    pieces: Option<Box<dyn Pieces + 'a>>,
    next: Position,
    /// Bytes of the parts before.
    before: u64,
}

impl<'a> SourceReader<'a> {
    pub(super) fn new(
        parts: &'a [Box<dyn Part>],
        reading: &'a Reading,
        start: Position,
        ledger: &Ledger,
    ) -> Result<SourceReader<'a>> {
        let before = parts.iter().take(start.part).map(|part| part.bytes()).sum();
        let mut reader = SourceReader {
            parts,
            reading,
            ledger: ledger.clone(),
            pieces: None,
            next: start,
            before,
        };
        reader.open()?;
        Ok(reader)
    }

    fn open(&mut self) -> Result<()> {
        let start = Position {
            consumed: self.next.consumed - self.before,
            ..self.next
        };
        self.pieces = match self.parts.get(self.next.part) {
            Some(part) => Some(part.read(self.reading, start, &self.ledger)?),
            None => None,
        };
        Ok(())
    }

    /// The index of the piece that [`SourceReader::read`] returns next.
    pub(crate) fn next_piece(&self) -> u64 {
        self.next.piece
    }

    pub(crate) fn read(
        &mut self,
        piece: &mut Piece,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Place>> {
        while let Some(pieces) = &mut self.pieces {
            if let Some(mut place) = pieces.read(piece, make_room)? {
                place.start.piece = self.next.piece;
                place.start.part = self.next.part;
                place.start.consumed = self.next.consumed;
                place.consumed += self.before;
                self.next = place.end();
                return Ok(Some(place));
            }
            self.before += self.parts[self.next.part].bytes();
            self.next = Position {
                piece: self.next.piece,
                part: self.next.part + 1,
                line: 0,
                offset: 0,
                consumed: self.before,
            };
            // The buffers of one part are given back before the next one asks for its own.
            self.pieces = None;
            self.open()?;
        }
        Ok(None)
    }

    /// What was made of the rows at `place` needs more than the budget has left.
    pub(crate) fn too_large(&self, place: &Place) -> Error {
        Error::RowTooLarge {
            path: self.parts[place.start.part].path().into(),
            line: place.start.line,
            bytes: place.length,
            budget: self.ledger.budget(),
            in_quotes: false,
        }
    }
}
