//! How the camera was held, out of the Exif segment.

const ORIENTATION: u16 = 0x0112;
const SHORT: u16 = 3;

const NAME: &[u8; 6] = b"Exif\0\0";

/// Whether the beginning of an APP1 segment says that it tells something else.
pub(super) fn is_other(beginning: &[u8]) -> bool {
    beginning.len() >= NAME.len() && !beginning.starts_with(NAME)
}

/// The orientation that an APP1 segment tells, 1 to 8; `None` where it tells none, or what it tells is broken.
pub(super) fn orientation(body: &[u8]) -> Option<u8> {
    let tiff = Tiff::new(body.strip_prefix(NAME)?)?;
    let directory = tiff.long(4)? as usize;
    let n_entries = usize::from(tiff.short(directory)?);
    for index in 0..n_entries {
        let entry = directory.checked_add(2 + index * 12)?;
        if tiff.short(entry)? == ORIENTATION && tiff.short(entry.checked_add(2)?)? == SHORT {
            let value = tiff.short(entry.checked_add(8)?)?;
            return u8::try_from(value).ok().filter(|value| (1..=8).contains(value));
        }
    }
    None
}

struct Tiff<'a> {
    bytes: &'a [u8],
    little: bool,
}

impl<'a> Tiff<'a> {
    fn new(bytes: &'a [u8]) -> Option<Tiff<'a>> {
        match bytes {
            [b'I', b'I', 42, 0, ..] => Some(Tiff { bytes, little: true }),
            [b'M', b'M', 0, 42, ..] => Some(Tiff { bytes, little: false }),
            _ => None,
        }
    }

    fn short(&self, at: usize) -> Option<u16> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.little {
            true => u16::from_le_bytes(bytes),
            false => u16::from_be_bytes(bytes),
        })
    }

    fn long(&self, at: usize) -> Option<u32> {
        let bytes = *self.bytes.get(at..)?.first_chunk()?;
        Some(match self.little {
            true => u32::from_le_bytes(bytes),
            false => u32::from_be_bytes(bytes),
        })
    }
}
