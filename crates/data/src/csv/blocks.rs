//! Cutting text into blocks of whole rows.
//!
//! Where a block ends depends on the text alone, not on threads or budget, so that everything computed
//! block by block comes out the same on any machine.

use tidegate_memory::{Grant, Holder};

use super::scan::Scanner;
use super::{Dialect, PADDING};
use crate::input::{Input, Text};
use crate::source::{Place, Position};
use crate::{Error, Result};

/// Text read for a block before it is cut at the last row end. Rows larger than this make larger blocks. So small that a
/// few of them fit in any budget; with more room more of them are on their way.
pub(crate) const BLOCK_BYTES: usize = 256 << 10;
/// The same for the first look at a file, which sees one block and judges by it.
pub(crate) const LOOK_BYTES: usize = 1 << 20;

/// A reusable buffer for the text of one block, granted by the ledger.
pub(crate) struct TextBuffer {
    /// Always initialised to its whole length; `len` says how much of it is text.
    bytes: Vec<u8>,
    len: usize,
    grant: Grant,
}

impl TextBuffer {
    /// For blocks of a table.
    pub(crate) fn new(holder: &Holder) -> Result<TextBuffer> {
        TextBuffer::of(BLOCK_BYTES, holder)
    }

    /// For a block of so many bytes.
    pub(crate) fn of(block: usize, holder: &Holder) -> Result<TextBuffer> {
        let grant = holder.try_grant((block + PADDING) as u64)?;
        Ok(TextBuffer {
            // Not zeros, which the kernel would not make pages for yet: the peak is to be the same for any table.
            bytes: vec![b' '; block + PADDING],
            len: 0,
            grant,
        })
    }

    /// What one buffer takes as long as rows are smaller than a block.
    pub(crate) fn bytes_needed() -> u64 {
        (BLOCK_BYTES + PADDING) as u64
    }

    /// The text with its padding, and where the text ends.
    pub(crate) fn padded(&self) -> (&[u8], usize) {
        (&self.bytes, self.len)
    }

    /// The whole buffer, for a use of its own between two blocks.
    pub(crate) fn scratch(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    fn room(&self) -> usize {
        self.bytes.len() - PADDING
    }
}

/// Reads a file block by block.
pub(crate) struct BlockReader {
    text: Text,
    dialect: Dialect,
    /// The part of the last buffer behind its last whole row.
    carry: Vec<u8>,
    carry_grant: Grant,
    /// Where the next block starts.
    next: Position,
    ended: bool,
    input: Input,
    budget: u64,
    /// What a block is read up to, as long as rows are smaller.
    block: usize,
}

impl BlockReader {
    /// Starts at the first row, or at `start`, the end of a block seen before.
    pub(crate) fn new(
        input: &Input,
        dialect: &Dialect,
        holder: &Holder,
        budget: u64,
        start: Position,
    ) -> Result<BlockReader> {
        let next = Position {
            line: start.line.max(1),
            ..start
        };
        let mut text = input.text(holder)?;
        text.skip(next.offset)?;
        Ok(BlockReader {
            text,
            dialect: dialect.clone(),
            carry: Vec::new(),
            carry_grant: holder.try_grant(0)?,
            next,
            ended: false,
            input: input.clone(),
            budget,
            block: BLOCK_BYTES,
        })
    }

    /// Reads blocks for a first look, from the first row on.
    pub(crate) fn looking(
        input: &Input,
        dialect: &Dialect,
        holder: &Holder,
        budget: u64,
    ) -> Result<BlockReader> {
        Ok(BlockReader {
            block: LOOK_BYTES,
            ..BlockReader::new(input, dialect, holder, budget, Position::default())?
        })
    }

    /// Whether there is text behind the blocks read so far.
    pub(crate) fn has_more(&self) -> bool {
        !self.ended || !self.carry.is_empty()
    }

    /// The rows in `buffer`, from `line` on, need more than the budget has left.
    pub(crate) fn too_large(&self, buffer: &TextBuffer, line: u64, in_quotes: bool) -> Error {
        Error::RowTooLarge {
            path: self.input.path().into(),
            line,
            bytes: buffer.len as u64,
            budget: self.budget,
            in_quotes,
        }
    }

    /// Fills `buffer` with the next block; `None` at the end of the file. `make_room` is called when the
    /// budget refuses to let the buffer grow for a large row: it frees what it can and says whether it did.
    pub(crate) fn read(
        &mut self,
        buffer: &mut TextBuffer,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Option<Place>> {
        buffer.len = 0;
        self.take_carry(buffer, make_room)?;
        let mut cutter = Cutter::default();
        // A buffer that has grown for a row before has more room than others: blocks must not depend on it.
        let mut limit = self.block.max(buffer.len);
        loop {
            let wanted = limit - buffer.len;
            let read = match self.ended {
                true => 0,
                false => self.text.fill(&mut buffer.bytes[buffer.len..][..wanted])?,
            };
            buffer.len += read;
            self.ended |= read < wanted;
            if self.next.offset == 0 && drop_byte_order_mark(buffer) {
                self.next.offset = BYTE_ORDER_MARK.len() as u64;
            }
            self.next.consumed = self.text.consumed();
            if self.ended && buffer.len == 0 {
                return Ok(None);
            }
            if self.ended && buffer.bytes[buffer.len - 1] != b'\n' {
                self.grow(buffer, 1, &cutter, make_room)?;
                buffer.bytes[buffer.len] = b'\n';
                buffer.len += 1;
            }
            cutter.advance(&buffer.bytes, buffer.len, &self.dialect, self.ended);
            if let Some(cut) = cutter.last_row_end {
                return self.finish(buffer, cut, make_room).map(Some);
            }
            if self.ended {
                return Err(Error::UnclosedQuote {
                    path: self.input.path().into(),
                    line: self.next.line,
                });
            }
            // Not one whole row yet: read on in the same buffer.
            limit *= 2;
            self.grow(buffer, limit - buffer.len, &cutter, make_room)?;
        }
    }

    /// Ends the block behind its last whole row and keeps the rest for the next one.
    fn finish(
        &mut self,
        buffer: &mut TextBuffer,
        cut: usize,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<Place> {
        let rest = &buffer.bytes[cut..buffer.len];
        self.carry.clear();
        if rest.len() > self.carry.capacity() {
            let more = (rest.len() - self.carry.capacity()) as u64;
            while self.carry_grant.try_grow(more).is_err() {
                if !make_room() {
                    return Err(self.too_large(buffer, self.next.line, false));
                }
            }
            self.carry.reserve_exact(rest.len());
        }
        self.carry.extend_from_slice(rest);
        buffer.len = cut;
        let place = Place {
            start: self.next,
            lines: memchr::memchr_iter(b'\n', &buffer.bytes[..cut]).count() as u64,
            length: cut as u64,
            consumed: self.next.consumed,
        };
        self.next = place.end();
        Ok(place)
    }

    fn take_carry(&mut self, buffer: &mut TextBuffer, make_room: &mut dyn FnMut() -> bool) -> Result<()> {
        self.grow(buffer, self.carry.len(), &Cutter::default(), make_room)?;
        buffer.bytes[..self.carry.len()].copy_from_slice(&self.carry);
        buffer.len = self.carry.len();
        Ok(())
    }

    /// Makes room for `more` bytes, or says which row asks for more than there is.
    fn grow(
        &self,
        buffer: &mut TextBuffer,
        more: usize,
        cutter: &Cutter,
        make_room: &mut dyn FnMut() -> bool,
    ) -> Result<()> {
        let more = (buffer.len + more).saturating_sub(buffer.room());
        if more == 0 {
            return Ok(());
        }
        while buffer.grant.try_grow(more as u64).is_err() {
            if !make_room() {
                return Err(self.too_large(buffer, self.next.line, cutter.in_quotes));
            }
        }
        buffer.bytes.reserve_exact(more);
        buffer.bytes.resize(buffer.bytes.len() + more, 0);
        Ok(())
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

fn drop_byte_order_mark(buffer: &mut TextBuffer) -> bool {
    let has_mark = buffer.bytes[..buffer.len].starts_with(BYTE_ORDER_MARK);
    if has_mark {
        buffer.bytes.copy_within(BYTE_ORDER_MARK.len()..buffer.len, 0);
        buffer.len -= BYTE_ORDER_MARK.len();
    }
    has_mark
}

/// Finds the last row end in a text that starts at a row, and can go on when more text arrives.
#[derive(Default)]
pub(crate) struct Cutter {
    /// Everything before this is settled.
    at: usize,
    /// `at` is inside a quoted field.
    in_quotes: bool,
    /// Just behind the last line end that ends a row.
    pub(crate) last_row_end: Option<usize>,
}

impl Cutter {
    /// Takes in the text `padded[..end]`, which starts as it did the last time.
    pub(crate) fn advance(&mut self, padded: &[u8], end: usize, dialect: &Dialect, ended: bool) {
        let text = &padded[..end];
        let quote = match dialect.quote {
            Some(quote) if self.in_quotes || memchr::memchr(quote, &text[self.at..]).is_some() => quote,
            _ => {
                self.last_row_end = memchr::memrchr(b'\n', &text[self.at..])
                    .map(|i| self.at + i + 1)
                    .or(self.last_row_end);
                self.at = text.len();
                return;
            }
        };
        let mut scanner = Scanner::new(padded, end, [quote, b'\n', b'\n']);
        scanner.seek(self.at);
        while let Some(found) = scanner.next() {
            self.at = found + 1;
            if text[found] == b'\n' {
                if !self.in_quotes {
                    self.last_row_end = Some(found + 1);
                }
            } else if self.in_quotes {
                match text.get(found + 1) {
                    // The next byte decides between a closing quote and a doubled one.
                    None if !ended => {
                        self.at = found;
                        return;
                    }
                    Some(&next) if next == quote => {
                        scanner.next();
                        self.at = found + 2;
                    }
                    _ => self.in_quotes = false,
                }
            } else {
                let before = found.checked_sub(1).map(|i| text[i]);
                self.in_quotes = matches!(before, None | Some(b'\n')) || before == Some(dialect.delimiter);
            }
        }
        self.at = self.at.max(end);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::csv::rows::{RowSink, walk_rows};
    use proptest::prelude::*;

    fn padded(text: &str) -> Vec<u8> {
        [text.as_bytes(), &[0; PADDING]].concat()
    }

    fn cut(text: &str) -> Option<usize> {
        let mut cutter = Cutter::default();
        cutter.advance(&padded(text), text.len(), &Dialect::default(), true);
        cutter.last_row_end
    }

    #[test]
    fn blocks_end_where_rows_end() {
        for (text, expected) in [
            ("a,b\nc,d\ne", Some(8)),
            ("a,\"x\ny\"\nb", Some(8)),
            ("a,\"x\ny", None),
            ("5\" pipe\nb", Some(8)),
            ("\"a\"\"\nb\"\nc", Some(8)),
            ("no line end", None),
        ] {
            assert_eq!(cut(text), expected, "{text:?}");
        }
    }

    /// Row starts as the walker sees them.
    struct Ends<'t>(&'t [u8], Vec<usize>);
    impl RowSink for Ends<'_> {
        fn begin_row(&mut self, _line: u64) {}
        fn field(&mut self, _column: usize, _bytes: &[u8]) {}
        fn end_row(&mut self, _fields: usize, row: &[u8]) {
            self.1
                .push(row.as_ptr() as usize - self.0.as_ptr() as usize + row.len() + 1);
        }
    }

    proptest! {
        #[test]
        fn cutting_in_pieces_equals_cutting_at_once(text in "[a,\"\n]{0,60}", split in 0usize..60) {
            let split = split.min(text.len());
            let mut cutter = Cutter::default();
            cutter.advance(&padded(&text), split, &Dialect::default(), false);
            cutter.advance(&padded(&text), text.len(), &Dialect::default(), true);
            prop_assert_eq!(cutter.last_row_end, cut(&text));
        }

        #[test]
        fn the_cutter_agrees_with_the_walker(text in "[ab,\"\n]{1,60}") {
            if let Some(end) = cut(&text) {
                let mut padded = text.as_bytes()[..end].to_vec();
                padded.extend([0; PADDING]);
                let mut ends = Ends(&padded, Vec::new());
                walk_rows(&padded, end, 1, &Dialect::default(), &mut ends);
                // The cut is a row end for the walker too, unless blank lines follow the last row.
                let last = ends.1.last().copied().unwrap_or(0);
                prop_assert!(text.as_bytes()[last..end].iter().all(|b| *b == b'\n'), "{text:?}: {last} {end}");
            }
        }
    }
}
