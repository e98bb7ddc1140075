//! What a file of an image says of itself at its beginning: format, size, channels, which way is up.

use std::fs::File;
use std::io;

use super::fault::PictureFault;
use super::jpeg;
use super::read::read_at;
use crate::input::expect_single_pieces;

/// Read at once; enough for most headers.
const PIECE_BYTES: usize = 4 << 10;
/// The longest piece that is read: a segment of a JPEG, and what may stand before it.
pub(crate) const HEAD_BYTES: usize = 66 << 10;
/// A JPEG may have a picture of its own, profiles and notes before its header. They are passed over; of what cannot be, so
/// much is looked through.
const MOST_LOOKED_AT: usize = 4 << 20;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Format {
    Jpeg,
    Png,
    WebP,
    Bmp,
    Gif,
    Tiff,
}

impl Format {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Format::Jpeg => "JPEG",
            Format::Png => "PNG",
            Format::WebP => "WebP",
            Format::Bmp => "BMP",
            Format::Gif => "GIF",
            Format::Tiff => "TIFF",
        }
    }
}

/// What the header says.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Probe {
    pub format: Format,
    pub width: u32,
    pub height: u32,
    /// Values of a pixel: 1 gray, 2 with alpha, 3, 4 with alpha or CMYK.
    pub channels: u8,
    /// Bytes of one value of a pixel once decoded.
    pub depth: u8,
    /// Whether rows come in their order, from top to bottom.
    pub in_order: bool,
    /// Bytes of the file.
    pub file_bytes: u64,
    /// What a directory takes that a decoder reads whatever it says.
    pub directory_bytes: u64,
    pub jpeg: Option<jpeg::Header>,
}

impl Probe {
    pub(crate) fn is_gray(&self) -> bool {
        self.channels <= 2
    }

    pub(crate) fn pixels(&self) -> u64 {
        u64::from(self.width) * u64::from(self.height)
    }

    /// Looks at the beginning of a file. `head` is a buffer that is used again.
    pub(crate) fn read(file: &File, head: &mut Vec<u8>) -> Result<Probe, PictureFault> {
        let file_bytes = file.metadata().map_err(unreadable)?.len();
        if file_bytes == 0 {
            return Err(PictureFault::Empty);
        }
        expect_single_pieces(file);
        read_piece(file, 0, PIECE_BYTES, file_bytes, head)?;
        Probe::of(head, file_bytes, file)?.checked()
    }

    fn of(head: &mut Vec<u8>, file_bytes: u64, file: &File) -> Result<Probe, PictureFault> {
        let mut probe = match head.as_slice() {
            [0xff, 0xd8, ..] => return Probe::jpeg(head, file_bytes, file),
            [0x89, b'P', b'N', b'G', ..] => png(head),
            [b'G', b'I', b'F', b'8', ..] => gif(head),
            [b'B', b'M', ..] => bmp(head),
            [b'R', b'I', b'F', b'F', _, _, _, _, b'W', b'E', b'B', b'P', ..] => webp(head),
            [b'I', b'I', 42, 0, ..] | [b'M', b'M', 0, 42, ..] => return tiff(head, file_bytes, file),
            _ => return Err(PictureFault::NotAPicture),
        }
        .ok_or(PictureFault::CutOff)?;
        probe.file_bytes = file_bytes;
        Ok(probe)
    }

    fn jpeg(head: &mut Vec<u8>, file_bytes: u64, file: &File) -> Result<Probe, PictureFault> {
        let mut reading = jpeg::Reading::default();
        let (mut start, mut looked_at) = (0, 0);
        let header = loop {
            let further = match reading.read_on(head, start)? {
                jpeg::Step::Done(header) => break header,
                jpeg::Step::On(further) => further,
            };
            looked_at += head.len();
            let wanted = match further {
                0 => HEAD_BYTES,
                _ => PIECE_BYTES,
            };
            // There is no longer piece.
            let is_stuck = head.len() == wanted || (start + head.len()) as u64 >= file_bytes;
            start += further;
            let is_over = start as u64 >= file_bytes || looked_at > MOST_LOOKED_AT;
            if is_over || (further == 0 && is_stuck) {
                return Err(jpeg::Fault::Short.into());
            }
            read_piece(file, start as u64, wanted, file_bytes, head)?;
        };
        Ok(Probe {
            format: Format::Jpeg,
            width: header.width,
            height: header.height,
            channels: header.n_components as u8,
            depth: 1,
            in_order: !header.progressive,
            file_bytes,
            directory_bytes: 0,
            jpeg: Some(header),
        })
    }

    fn checked(self) -> Result<Probe, PictureFault> {
        match self.pixels() {
            0 => Err(PictureFault::NoPixels),
            _ => Ok(self),
        }
    }
}

/// Reads so many bytes of a file, or as many as it has there.
fn read_piece(
    file: &File,
    start: u64,
    wanted: usize,
    file_bytes: u64,
    head: &mut Vec<u8>,
) -> Result<(), PictureFault> {
    let n = usize::try_from(file_bytes - start).map_or(wanted, |there| there.min(wanted));
    head.resize(n, 0);
    read_at(file, start, head).map_err(unreadable)
}

fn plain(format: Format, width: u32, height: u32, channels: u8) -> Probe {
    Probe {
        format,
        width,
        height,
        channels,
        depth: 1,
        in_order: false,
        file_bytes: 0,
        directory_bytes: 0,
        jpeg: None,
    }
}

pub(crate) fn unreadable(source: io::Error) -> PictureFault {
    PictureFault::Unreadable(source.kind().to_string())
}

fn big(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes)
}

fn little(bytes: &[u8], at: usize) -> Option<u32> {
    bytes.get(at..at + 4)?.try_into().ok().map(u32::from_le_bytes)
}

fn little_16(bytes: &[u8], at: usize) -> Option<u16> {
    bytes.get(at..at + 2)?.try_into().ok().map(u16::from_le_bytes)
}

/// The first chunk of a PNG has all of it.
fn png(head: &[u8]) -> Option<Probe> {
    let (depth, colour, interlaced) = (*head.get(24)?, *head.get(25)?, *head.get(28)?);
    // Any of them may have a transparent colour, which only a later chunk tells.
    let channels = match colour {
        0 | 4 => 2,
        _ => 4,
    };
    Some(Probe {
        depth: if depth == 16 { 2 } else { 1 },
        in_order: interlaced == 0,
        ..plain(Format::Png, big(head, 16)?, big(head, 20)?, channels)
    })
}

fn gif(head: &[u8]) -> Option<Probe> {
    let (width, height) = (little_16(head, 6)?, little_16(head, 8)?);
    Some(plain(Format::Gif, width.into(), height.into(), 4))
}

fn bmp(head: &[u8]) -> Option<Probe> {
    // The oldest header has sizes of two bytes.
    if little(head, 14)? == 12 {
        let (width, height) = (little_16(head, 18)?, little_16(head, 20)?);
        return Some(plain(Format::Bmp, width.into(), height.into(), 3));
    }
    let (width, height) = (little(head, 18)?.cast_signed(), little(head, 22)?.cast_signed());
    let channels = if matches!(little_16(head, 28)?, 16 | 32) {
        4
    } else {
        3
    };
    // A negative height says that the first row is the top one.
    Some(plain(
        Format::Bmp,
        width.unsigned_abs(),
        height.unsigned_abs(),
        channels,
    ))
}

fn webp(head: &[u8]) -> Option<Probe> {
    let (width, height, alpha) = match head.get(12..16)? {
        b"VP8 " => {
            let size = |at| little_16(head, at).map(|size| u32::from(size & 0x3fff));
            (size(26)?, size(28)?, false)
        }
        b"VP8L" => {
            let bits = little(head, 21)?;
            (
                (bits & 0x3fff) + 1,
                (bits >> 14 & 0x3fff) + 1,
                bits >> 28 & 1 == 1,
            )
        }
        b"VP8X" => {
            let size = |at| little(head, at).map(|size| (size & 0x00ff_ffff) + 1);
            (size(24)?, size(27)?, head.get(20)? & 0x10 != 0)
        }
        _ => return None,
    };
    Some(plain(Format::WebP, width, height, if alpha { 4 } else { 3 }))
}

/// Tags of a TIFF that say what a picture is.
const WIDTH: u16 = 256;
const HEIGHT: u16 = 257;
const BITS: u16 = 258;
const SAMPLES: u16 = 277;
/// Tags whose values the decoder reads, as many as their entries say: where pixels stand, and how they are told.
const READ: [u16; 20] = [
    256, 257, 258, 259, 262, 273, 274, 277, 278, 279, 284, 317, 322, 323, 324, 325, 338, 339, 347, 530,
];
/// What it takes for an entry, and for a value: once of any type, and once as a number.
const ENTRY_BYTES: u64 = 64;
const VALUE_BYTES: u64 = 48;

/// The directory of a TIFF stands anywhere in the file.
fn tiff(head: &[u8], file_bytes: u64, file: &File) -> Result<Probe, PictureFault> {
    let is_big = head[0] == b'M';
    let two = |bytes: &[u8], at: usize| -> Option<u16> {
        let bytes = bytes.get(at..at + 2)?.try_into().ok()?;
        Some(if is_big {
            u16::from_be_bytes(bytes)
        } else {
            u16::from_le_bytes(bytes)
        })
    };
    let four = |bytes: &[u8], at: usize| if is_big { big(bytes, at) } else { little(bytes, at) };
    let at = u64::from(four(head, 4).ok_or(PictureFault::CutOff)?);
    let read = |at: u64, bytes: &mut [u8]| read_at(file, at, bytes).map_err(|_| PictureFault::CutOff);
    let mut count = [0; 2];
    read(at, &mut count)?;
    let n = two(&count, 0).unwrap_or_default();
    let mut probe = plain(Format::Tiff, 0, 0, 1);
    probe.file_bytes = file_bytes;
    for i in 0..u64::from(n) {
        let mut entry = [0; 12];
        read(at + 2 + 12 * i, &mut entry)?;
        let entry = &entry[..];
        let short = two(entry, 2) == Some(3);
        let value = match short {
            true => two(entry, 8).map(u32::from),
            false => four(entry, 8),
        };
        let (Some(tag), Some(value), Some(count)) = (two(entry, 0), value, four(entry, 4)) else {
            continue;
        };
        let n_read = if READ.contains(&tag) { u64::from(count) } else { 0 };
        probe.directory_bytes += ENTRY_BYTES + VALUE_BYTES * n_read;
        match tag {
            WIDTH => probe.width = value,
            HEIGHT => probe.height = value,
            SAMPLES => probe.channels = value.clamp(1, 255) as u8,
            // Up to two values stand in the entry, more elsewhere; they are all the same.
            BITS if count <= 2 => probe.depth = (value.clamp(8, 64) / 8) as u8,
            BITS => {
                let mut bits = [0; 2];
                let at = four(entry, 8).ok_or(PictureFault::CutOff)?;
                read(at.into(), &mut bits)?;
                probe.depth = (two(&bits, 0).unwrap_or_default().clamp(8, 64) / 8) as u8;
            }
            _ => {}
        }
    }
    Ok(probe)
}
