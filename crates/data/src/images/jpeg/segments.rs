//! The segments of a file: a marker each, most with a length and a body.

use super::Fault;

/// Markers, by their second byte.
pub(super) mod marker {
    pub(crate) const START_OF_IMAGE: u8 = 0xd8;
    pub(crate) const END_OF_IMAGE: u8 = 0xd9;
    pub(crate) const START_OF_SCAN: u8 = 0xda;
    pub(crate) const QUANTIZATION: u8 = 0xdb;
    pub(crate) const HUFFMAN: u8 = 0xc4;
    pub(crate) const RESTART_INTERVAL: u8 = 0xdd;
    pub(crate) const APP0: u8 = 0xe0;
    pub(crate) const APP1: u8 = 0xe1;
    pub(crate) const APP14: u8 = 0xee;
    /// The frame headers, but for the three numbers between them that mean something else.
    pub(crate) const FRAMES: std::ops::RangeInclusive<u8> = 0xc0..=0xcf;
    pub(crate) const NO_FRAMES: [u8; 3] = [HUFFMAN, 0xc8, 0xcc];
    pub(crate) const RESTART_0: u8 = 0xd0;
    pub(crate) const RESTARTS: std::ops::RangeInclusive<u8> = 0xd0..=0xd7;
    pub(crate) const TEMPORARY: u8 = 0x01;
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Segment<'a> {
    pub marker: u8,
    /// What follows the length.
    pub body: &'a [u8],
    /// Where the body begins in the file.
    pub at: usize,
}

impl Segment<'_> {
    pub(super) fn broken(&self, what: &'static str) -> Fault {
        Fault::Broken { at: self.at, what }
    }

    pub(super) fn is_frame(&self) -> bool {
        marker::FRAMES.contains(&self.marker) && !marker::NO_FRAMES.contains(&self.marker)
    }
}

/// Walks from segment to segment; [`Fault::Short`] where the bytes end.
#[derive(Debug)]
pub(super) struct Segments<'a> {
    pub bytes: &'a [u8],
    /// Where the next marker is looked for.
    pub at: usize,
}

impl<'a> Segments<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Result<Segments<'a>, Fault> {
        let start = [0xff, marker::START_OF_IMAGE];
        match bytes.len() < start.len() {
            true if start.starts_with(bytes) => Err(Fault::Short),
            _ if !bytes.starts_with(&start) => Err(Fault::Foreign),
            _ => Ok(Segments { bytes, at: 2 }),
        }
    }

    pub(super) fn next(&mut self) -> Result<Segment<'a>, Fault> {
        let marker = self.marker()?;
        let bare = [marker::END_OF_IMAGE, marker::START_OF_IMAGE, marker::TEMPORARY];
        if bare.contains(&marker) || marker::RESTARTS.contains(&marker) {
            return Ok(Segment {
                marker,
                body: &[],
                at: self.at,
            });
        }
        let (length, _) = self.bytes[self.at..].split_first_chunk().ok_or(Fault::Short)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let at = self.at + 2;
        if length < 2 {
            return Err(Fault::Broken {
                at: self.at,
                what: "a segment shorter than its own length",
            });
        }
        let body = self.bytes.get(at..self.at + length).ok_or(Fault::Short)?;
        self.at += length;
        Ok(Segment { marker, body, at })
    }

    /// The next marker. What is between segments is skipped: fill bytes, the rest of a scan, and what careless programs
    /// leave there.
    pub(super) fn marker(&mut self) -> Result<u8, Fault> {
        loop {
            let rest = &self.bytes[self.at..];
            let Some(found) = rest.iter().position(|byte| *byte == 0xff) else {
                self.at = self.bytes.len();
                return Err(Fault::Short);
            };
            let after = rest[found..].iter().position(|byte| *byte != 0xff);
            let Some(fill) = after else {
                self.at = self.bytes.len();
                return Err(Fault::Short);
            };
            self.at += found + fill + 1;
            match rest[found + fill] {
                0 => {}
                marker => return Ok(marker),
            }
        }
    }
}
