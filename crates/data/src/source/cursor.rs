//! Rows of a database, piece by piece: a cursor lives on a thread of its own and fills the chunks it is sent.
//!
//! A cursor borrows from its statement and that from its connection, so all three stay on one thread. A piece is
//! cut after a fixed number of rows, or before the row whose texts would be more than a fixed number of bytes.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use tidegate_memory::{Grant, Ledger};

use super::{Piece, PieceSize, Pieces, Place, Position, Reading};
use crate::chunk::{Chunk, Read};
use crate::{BadRows, Error, Fault, Result};

/// Rows of a piece, at the most.
pub(super) const ROWS: u64 = 4096;
/// Bytes of the texts of a piece, unless one row has more.
const TEXT_BYTES: u64 = 1 << 20;

/// Walks the rows of an answer.
pub(super) trait Cursor {
    /// Goes to the next row; `false` behind the last one, and then it is not called again.
    fn advance(&mut self) -> Result<bool>;
    /// What the wanted texts of the row take at most.
    fn text_bytes(&self) -> Result<u64>;
    /// Appends a cell for each wanted column; a fault makes the row a bad one.
    fn push(&mut self, chunk: &mut Chunk) -> Result<(), Fault>;
}

/// What pieces take, with a reader that holds so much itself.
pub(super) fn piece_size(reading: &Reading, reader: u64) -> PieceSize {
    let has_texts = reading.wanted.iter().any(|wanted| wanted.read == Read::Text);
    PieceSize {
        text: 0,
        rows: ROWS,
        likely_rows: ROWS,
        texts: if has_texts { TEXT_BYTES } else { 0 },
        reader,
    }
}

/// What the thread of a cursor reads from and answers to.
pub(super) struct Feed {
    orders: Receiver<Chunk>,
    answers: Sender<Answer>,
    path: PathBuf,
    bad_rows: BadRows,
    /// Rows before the next one.
    row: u64,
    /// Rows that the cursor has to pass over first.
    skip: u64,
    /// There is a row that did not fit into the last piece.
    pending: bool,
    /// The cursor is behind its last row, and is not to be moved again.
    ended: bool,
}

enum Answer {
    /// A chunk with so many rows taken, bad ones among them, and the bytes that they were.
    Rows {
        chunk: Chunk,
        rows: u64,
        bytes: u64,
    },
    /// An empty chunk that is too small for the next row's texts.
    TooSmall {
        chunk: Chunk,
        bytes: u64,
    },
    Failed(Error),
}

impl Feed {
    /// The answer itself starts behind the rows that are to be passed over.
    pub(super) fn skipped(&mut self) {
        self.skip = 0;
    }

    /// Fills chunks from `cursor` until nobody asks for more.
    pub(super) fn serve(&mut self, cursor: &mut dyn Cursor) -> Result<()> {
        for _ in 0..self.skip {
            if !self.advance(cursor)? {
                break;
            }
        }
        while let Ok(chunk) = self.orders.recv() {
            let answer = self.fill(chunk, cursor)?;
            if self.answers.send(answer).is_err() {
                break;
            }
        }
        Ok(())
    }

    fn advance(&mut self, cursor: &mut dyn Cursor) -> Result<bool> {
        self.ended = self.ended || !cursor.advance()?;
        Ok(!self.ended)
    }

    fn fill(&mut self, mut chunk: Chunk, cursor: &mut dyn Cursor) -> Result<Answer> {
        chunk.clear();
        let (mut rows, mut texts) = (0, 0);
        while rows < ROWS {
            if !self.pending && !self.advance(cursor)? {
                break;
            }
            self.pending = true;
            let bytes = cursor.text_bytes()?;
            if texts + bytes > TEXT_BYTES && rows > 0 {
                break;
            }
            if bytes > TEXT_BYTES && chunk.text_room() < bytes {
                return Ok(Answer::TooSmall { chunk, bytes });
            }
            self.pending = false;
            rows += 1;
            texts += bytes;
            self.row += 1;
            match (cursor.push(&mut chunk), self.bad_rows) {
                (Ok(()), _) => chunk.end_row(self.row),
                (Err(fault), BadRows::Skip) => {
                    chunk.drop_row();
                    chunk.bad += 1;
                    chunk.first_bad.get_or_insert((self.row, fault));
                }
                (Err(fault), BadRows::Fail) => {
                    return Err(Error::BadRow {
                        path: self.path.clone(),
                        line: self.row,
                        fault: fault.into(),
                    });
                }
            }
        }
        let bytes = texts + rows * Chunk::row_bytes(chunk.columns.len());
        Ok(Answer::Rows { chunk, rows, bytes })
    }
}

/// Asks the thread of a cursor for one piece after another.
pub(super) struct CursorPieces {
    orders: Option<Sender<Chunk>>,
    answers: Receiver<Answer>,
    thread: Option<JoinHandle<()>>,
    /// Stands in for a chunk that is with the thread.
    stand_in: Option<Chunk>,
    next: Position,
    path: PathBuf,
    /// Progress is counted up to here.
    bytes: u64,
    budget: u64,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

/// A reader of rows from `start` on. `run` makes the cursor, on its thread, and serves the feed from it.
pub(super) fn pieces(
    part: &dyn super::Part,
    reading: &Reading,
    start: Position,
    ledger: &Ledger,
    run: impl FnOnce(&mut Feed) -> Result<()> + Send + 'static,
) -> Result<CursorPieces> {
    let holder = ledger.holder(crate::BUFFERS);
    let grant = holder.try_grant(part.piece_size(reading).reader)?;
    let (orders, incoming) = channel();
    let (outgoing, answers) = channel();
    let mut feed = Feed {
        orders: incoming,
        answers: outgoing,
        path: part.path().into(),
        bad_rows: reading.bad_rows,
        row: start.offset,
        skip: start.offset,
        pending: false,
        ended: false,
    };
    let work = move || {
        if let Err(error) = run(&mut feed) {
            // Nobody may be listening any more.
            let _ = feed.answers.send(Answer::Failed(error));
        }
    };
    let thread = std::thread::Builder::new()
        .name("query".into())
        .spawn(work)
        .map_err(|source| Error::Unreadable {
            path: part.path().into(),
            source,
        })?;
    Ok(CursorPieces {
        orders: Some(orders),
        answers,
        thread: Some(thread),
        stand_in: Some(Chunk::new(&[], &[], &holder)?),
        next: Position {
            line: start.line.max(1),
            ..start
        },
        path: part.path().into(),
        bytes: part.bytes(),
        budget: ledger.budget(),
        grant,
    })
}

impl CursorPieces {
    /// Sends the chunk to the thread and waits for what comes back; the chunk is in its place again.
    fn ask(&mut self, chunk: &mut Chunk) -> Result<Answered> {
        let stopped = || Error::Stopped {
            path: self.path.clone(),
        };
        let stand_in = self.stand_in.take().ok_or_else(stopped)?;
        let sent = std::mem::replace(chunk, stand_in);
        if let Some(orders) = &self.orders {
            // Where the thread has ended, its last words are in the answers.
            let _ = orders.send(sent);
        }
        let (back, answered) = match self.answers.recv() {
            Ok(Answer::Rows { chunk, rows, bytes }) => (chunk, Answered::Rows { rows, bytes }),
            Ok(Answer::TooSmall { chunk, bytes }) => (chunk, Answered::TooSmall { bytes }),
            Ok(Answer::Failed(error)) => return Err(error),
            Err(_) => return Err(stopped()),
        };
        self.stand_in = Some(std::mem::replace(chunk, back));
        Ok(answered)
    }
}

enum Answered {
    Rows { rows: u64, bytes: u64 },
    TooSmall { bytes: u64 },
}

impl Pieces for CursorPieces {
    fn read(&mut self, piece: &mut Piece, make_room: &mut dyn FnMut() -> bool) -> Result<Option<Place>> {
        let mut text_bytes = TEXT_BYTES;
        let (rows, bytes) = loop {
            while !piece.chunk.reserve(ROWS, text_bytes) {
                if !make_room() {
                    return Err(Error::RowTooLarge {
                        path: self.path.clone(),
                        line: self.next.line,
                        bytes: text_bytes,
                        budget: self.budget,
                        in_quotes: false,
                    });
                }
            }
            match self.ask(&mut piece.chunk)? {
                Answered::Rows { rows, bytes } => break (rows, bytes),
                Answered::TooSmall { bytes } => text_bytes = bytes,
            }
        };
        if rows == 0 {
            return Ok(None);
        }
        let place = Place {
            start: self.next,
            lines: rows,
            length: rows,
            consumed: (self.next.consumed + bytes).min(self.bytes),
        };
        self.next = place.end();
        Ok(Some(place))
    }
}

impl Drop for CursorPieces {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A panic there has already been told as an end without an answer.
            let _ = thread.join();
        }
    }
}

/// Where each wanted column stands among the columns of an answer.
pub(super) fn places(columns: &[super::SourceColumn], reading: &Reading) -> Vec<Option<usize>> {
    let place = |wanted: &crate::chunk::Wanted| columns.iter().position(|column| column.name == wanted.name);
    reading.wanted.iter().map(place).collect()
}
