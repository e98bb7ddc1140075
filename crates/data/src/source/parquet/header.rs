//! The headers of Parquet pages, read for their sizes before a page is.
//!
//! Thrift's compact protocol (<https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>):
//! a field is a byte with its type and the distance of its number from the one before.

/// What the header of a page says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub page: PageKind,
    /// Bytes of the page as it is used, and as it stands in the file.
    pub uncompressed: u64,
    pub compressed: u64,
    /// Values, missing ones among them.
    pub values: u64,
    /// Bytes of this header.
    pub length: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PageKind {
    Data,
    Dictionary,
    /// An index, which readers pass over.
    Other,
}

/// Why there is no header.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum NoHeader {
    /// It goes on behind the bytes at hand.
    Cut,
    Broken,
}

/// Reads the header at the start of `bytes`.
pub(super) fn read_header(bytes: &[u8]) -> Result<PageHeader, NoHeader> {
    let mut input = Compact { bytes, at: 0 };
    let (mut kind, mut uncompressed, mut compressed, mut values) = (None, None, None, 0);
    input.fields(0, &mut |input, number, of| match (number, of) {
        (1, INT32) => input.integer().map(|value| kind = Some(value)),
        (2, INT32) => input.integer().map(|value| uncompressed = Some(value)),
        (3, INT32) => input.integer().map(|value| compressed = Some(value)),
        // The headers of a data page, of a dictionary and of a data page of the second version all begin with
        // the number of values.
        (5 | 7 | 8, STRUCT) => input.fields(1, &mut |input, number, of| match (number, of) {
            (1, INT32) => input.integer().map(|value| values = value),
            _ => input.skip(of, 2),
        }),
        _ => input.skip(of, 1),
    })?;
    let size = |value: Option<i64>| {
        let value = value.and_then(|value| i32::try_from(value).ok());
        value
            .and_then(|value| u64::try_from(value).ok())
            .ok_or(NoHeader::Broken)
    };
    Ok(PageHeader {
        page: match kind {
            Some(0 | 3) => PageKind::Data,
            Some(2) => PageKind::Dictionary,
            Some(1) => PageKind::Other,
            _ => return Err(NoHeader::Broken),
        },
        uncompressed: size(uncompressed)?,
        compressed: size(compressed)?,
        values: size(Some(values))?,
        length: input.at as u64,
    })
}

const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const INT16: u8 = 4;
const INT32: u8 = 5;
const INT64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

/// Structs within structs, at most: headers have three levels.
const DEEPEST: u8 = 8;

struct Compact<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl Compact<'_> {
    /// Calls `field` with the number and type of each field of a struct; it takes in the value.
    fn fields(
        &mut self,
        depth: u8,
        field: &mut dyn FnMut(&mut Self, i64, u8) -> Result<(), NoHeader>,
    ) -> Result<(), NoHeader> {
        if depth > DEEPEST {
            return Err(NoHeader::Broken);
        }
        let mut number = 0i64;
        loop {
            let head = self.byte()?;
            if head == 0 {
                return Ok(());
            }
            number = match head >> 4 {
                0 => self.integer()?,
                step => number.saturating_add(i64::from(step)),
            };
            field(self, number, head & 15)?;
        }
    }

    fn byte(&mut self) -> Result<u8, NoHeader> {
        let byte = *self.bytes.get(self.at).ok_or(NoHeader::Cut)?;
        self.at += 1;
        Ok(byte)
    }

    fn varint(&mut self) -> Result<u64, NoHeader> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(NoHeader::Broken)
    }

    /// A zigzag integer: small numbers of either sign are short.
    fn integer(&mut self) -> Result<i64, NoHeader> {
        let value = self.varint()?;
        Ok((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    fn skip(&mut self, of: u8, depth: u8) -> Result<(), NoHeader> {
        match of {
            TRUE | FALSE => Ok(()),
            BYTE => self.byte().map(|_| ()),
            INT16 | INT32 | INT64 => self.varint().map(|_| ()),
            DOUBLE => self.pass(8),
            BINARY => {
                let length = self.varint()?;
                self.pass(length)
            }
            LIST | SET => {
                let head = self.byte()?;
                let length = match head >> 4 {
                    15 => self.varint()?,
                    length => u64::from(length),
                };
                // In a list, a truth is a byte of its own.
                let of = if head & 15 <= FALSE { BYTE } else { head & 15 };
                if depth > DEEPEST {
                    return Err(NoHeader::Broken);
                }
                (0..length).try_for_each(|_| self.skip(of, depth + 1))
            }
            STRUCT => self.fields(depth, &mut |input, _, of| input.skip(of, depth + 1)),
            _ => Err(NoHeader::Broken),
        }
    }

    fn pass(&mut self, bytes: u64) -> Result<(), NoHeader> {
        match usize::try_from(bytes) {
            Ok(bytes) if bytes <= self.bytes.len() - self.at => {
                self.at += bytes;
                Ok(())
            }
            // A header of a gigabyte is none.
            _ if bytes > 1 << 30 => Err(NoHeader::Broken),
            _ => Err(NoHeader::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_header_is_read_field_by_field() {
        // type 0, 300 bytes, 150 compressed, crc, { 1000 values, encodings, statistics { min "a" } }
        let bytes = [
            0x15, 0, 0x15, 0xd8, 4, 0x15, 0xac, 2, 0x15, 9, 0x1c, 0x15, 0xd0, 0xf, 0x15, 0, 0x15, 6, 0x15, 6,
            0x1c, 0x18, 1, b'a', 0, 0, 0, 0xff,
        ];
        let header = PageHeader {
            page: PageKind::Data,
            uncompressed: 300,
            compressed: 150,
            values: 1000,
            length: 27,
        };
        assert_eq!(read_header(&bytes), Ok(header));
        for end in 0..27 {
            assert_eq!(read_header(&bytes[..end]), Err(NoHeader::Cut), "{end}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_end_somehow(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read_header(&bytes);
        }
    }
}
