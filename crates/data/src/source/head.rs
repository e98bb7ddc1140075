//! The beginning of a file's text, and the format that it shows.

use std::path::Path;

use tidegate_memory::{Grant, Holder};

use super::listing::ending;
use crate::csv::PADDING;
use crate::{Compression, Input, Result};

/// Enough for the header of a table of some thousand columns. Thousands of files are opened by so much of each.
const HEAD_BYTES: usize = 64 << 10;

/// The beginning of a text, decompressed; the buffer serves file after file.
pub(super) struct Head {
    bytes: Vec<u8>,
    len: usize,
    /// It is all of the text.
    pub all: bool,
    holder: Holder,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl Head {
    pub(super) fn new(holder: &Holder) -> Result<Head> {
        let bytes = HEAD_BYTES + PADDING;
        let grant = holder.try_grant(bytes as u64)?;
        Ok(Head {
            bytes: vec![0; bytes],
            len: 0,
            all: false,
            holder: holder.clone(),
            grant,
        })
    }

    pub(super) fn read(&mut self, input: &Input) -> Result<()> {
        let mut text = input.text(&self.holder)?;
        self.len = text.fill(&mut self.bytes[..HEAD_BYTES])?;
        self.all = self.len < HEAD_BYTES;
        if self.text().starts_with(b"\xef\xbb\xbf") {
            self.bytes.copy_within(3..self.len, 0);
            self.len -= 3;
        }
        Ok(())
    }

    pub(super) fn text(&self) -> &[u8] {
        &self.bytes[..self.len]
    }

    /// The text with padding behind it, and where it ends.
    pub(super) fn padded(&self) -> (&[u8], usize) {
        (&self.bytes, self.len)
    }
}

/// The formats that a file can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Format {
    Csv,
    JsonLines,
    Parquet,
    Arrow,
    Sqlite,
    Zip,
}

impl Format {
    /// By the first bytes, and by the name where those leave a doubt.
    pub(super) fn of(input: &Input, head: &Head) -> Format {
        let packed = input.compression() != Compression::Plain;
        match head.text() {
            [b'P', b'K', 3, 4, ..] | [b'P', b'K', 5, 6, ..] if !packed => Format::Zip,
            [b'P', b'A', b'R', b'1' | b'E', ..] if !packed => Format::Parquet,
            // A stream begins with a mark instead of the name.
            text if !packed && (text.starts_with(b"ARROW1\0\0") || text.starts_with(&[0xff; 4])) => {
                Format::Arrow
            }
            text if text.starts_with(b"SQLite format 3\0") && !packed => Format::Sqlite,
            text if is_json(text, input.path()) => Format::JsonLines,
            _ => Format::Csv,
        }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Format::Csv => "CSV",
            Format::JsonLines => "JSON lines",
            Format::Parquet => "Parquet",
            Format::Arrow => "Arrow",
            Format::Sqlite => "an SQLite database",
            Format::Zip => "a zip archive",
        }
    }
}

/// Whether a text is JSON: named so, or begun as no CSV file is.
fn is_json(text: &[u8], path: &Path) -> bool {
    let mut bytes = text.iter().filter(|byte| !byte.is_ascii_whitespace());
    let named = ending(path).is_some_and(|ending| matches!(ending.as_str(), "jsonl" | "ndjson" | "json"));
    match (bytes.next(), bytes.next()) {
        (Some(b'{' | b'['), _) if named => true,
        (Some(b'{'), Some(b'"' | b'}')) | (Some(b'['), Some(b'{')) => true,
        _ => named,
    }
}
