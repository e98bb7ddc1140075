//! What the beginning of a file says of the picture.

use super::plane::Layout;
use super::segments::{Segment, Segments, marker};
use super::{Fault, Target, exif};

/// More blocks than this in one unit of a scan, and no decoder takes the file.
pub(super) const MOST_BLOCKS_OF_UNIT: usize = 10;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub width: u32,
    pub height: u32,
    /// 1 gray, 3 colours, 4 inks.
    pub n_components: usize,
    /// Told in several passes over the picture; the coefficients that count are held meanwhile.
    pub progressive: bool,
    /// As Exif counts, 1 to 8; 1 where it is not told. It is not applied by the decoder.
    pub orientation: u8,
    /// What the components mean.
    pub colour: Colour,
    components: [Component; 4],
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(super) struct Component {
    pub id: u8,
    /// Samples in either direction, beside those of the other components: 1 to 4.
    pub across: usize,
    pub down: usize,
    /// Its quantization table.
    pub table: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Colour {
    Gray,
    /// Luma and two colour differences.
    Ycc,
    Rgb,
    /// Four inks; Photoshop writes what the paper keeps instead of what the ink takes.
    Cmyk {
        inverted: bool,
    },
    /// The same, with three of them told as luma and colour differences.
    Ycck {
        inverted: bool,
    },
}

/// Reads the header from the beginning of a file. [`Fault::Short`] where there is not all of it.
pub(crate) fn header(bytes: &[u8]) -> Result<Header, Fault> {
    match Reading::default().read_on(bytes, 0)? {
        Step::Done(header) => Ok(header),
        Step::On(_) => Err(Fault::Short),
    }
}

/// A header that is read piece by piece: notes, profiles and small pictures that stand before it are passed over.
#[derive(Default)]
pub(crate) struct Reading {
    told: Told,
}

pub(crate) enum Step {
    Done(Header),
    /// To be read on so many bytes behind the beginning of the piece; 0 where a longer piece is needed.
    On(usize),
}

impl Reading {
    /// Reads on in a piece that begins at `start`, the first or where the last one said.
    pub(crate) fn read_on(&mut self, piece: &[u8], start: usize) -> Result<Step, Fault> {
        let mut segments = match start {
            0 => Segments::new(piece)?,
            _ => Segments { bytes: piece, at: 0 },
        };
        loop {
            let before = segments.at;
            let told = match segments.next() {
                Ok(segment) => self.segment(&segment),
                Err(Fault::Short) => return Ok(Step::On(before + self.pass_over(&piece[before..]))),
                Err(fault) => Err(fault),
            };
            match told {
                Ok(None) => {}
                Ok(Some(header)) => return Ok(Step::Done(header)),
                Err(Fault::Broken { at, what }) => return Err(Fault::Broken { at: start + at, what }),
                Err(fault) => return Err(fault),
            }
        }
    }

    fn segment(&mut self, segment: &Segment<'_>) -> Result<Option<Header>, Fault> {
        let told = &mut self.told;
        match segment.marker {
            marker::APP0 => told.jfif |= segment.body.starts_with(b"JFIF\0"),
            marker::APP1 => told.orientation = told.orientation.or(exif::orientation(segment.body)),
            marker::APP14 => {
                if let [b'A', b'd', b'o', b'b', b'e', _, _, _, _, _, _, transform, ..] = segment.body {
                    told.adobe = Some(*transform);
                }
            }
            marker::START_OF_SCAN | marker::END_OF_IMAGE => return Err(segment.broken("no frame header")),
            _ if segment.is_frame() => return frame(segment, told).map(Some),
            _ => {}
        }
        Ok(None)
    }

    /// How far it is to what is needed next, where the piece ends within a segment.
    fn pass_over(&mut self, rest: &[u8]) -> usize {
        let mut segments = Segments { bytes: rest, at: 0 };
        let Ok(marker) = segments.marker() else {
            // The last byte may begin a marker.
            return rest.len() - usize::from(rest.last() == Some(&0xff));
        };
        let (begin, at) = (segments.at - 2, segments.at);
        let Some((length, body)) = rest[at..].split_first_chunk() else {
            return begin;
        };
        let end = at + usize::from(u16::from_be_bytes(*length));
        let segment = Segment { marker, body, at };
        let is_passed_over = match marker {
            marker::APP0 | marker::APP14 => false,
            // The beginning of what a camera tells is mostly enough.
            marker::APP1 => {
                self.told.orientation = self.told.orientation.or(exif::orientation(body));
                self.told.orientation.is_some() || exif::is_other(body)
            }
            marker::START_OF_SCAN => false,
            _ => !segment.is_frame(),
        };
        if is_passed_over { end } else { begin }
    }
}

/// What the segments before the frame header tell.
#[derive(Default)]
struct Told {
    jfif: bool,
    adobe: Option<u8>,
    orientation: Option<u8>,
}

fn frame(segment: &Segment<'_>, told: &Told) -> Result<Header, Fault> {
    let unsupported = match segment.marker {
        0xc0..=0xc2 => None,
        0xc3 => Some("lossless coding"),
        0xc5..=0xc7 => Some("hierarchical coding"),
        _ => Some("arithmetic coding"),
    };
    if let Some(what) = unsupported {
        return Err(Fault::Unsupported(what));
    }
    let &[precision, h1, h0, w1, w0, n, ref rest @ ..] = segment.body else {
        return Err(segment.broken("a frame header that is too short"));
    };
    match precision {
        8 => {}
        12 => return Err(Fault::Unsupported("12 bits a sample")),
        _ => return Err(segment.broken("bits of a sample that do not exist")),
    }
    let (width, height) = (u16::from_be_bytes([w1, w0]), u16::from_be_bytes([h1, h0]));
    match (width, height) {
        (0, _) => {
            let (width, height) = (u32::from(width), u32::from(height));
            return Err(Fault::Absurd { width, height });
        }
        (_, 0) => return Err(Fault::Unsupported("a height that is told after the picture")),
        _ => {}
    }
    let n_components = usize::from(n);
    match n_components {
        1 | 3 | 4 => {}
        0 => return Err(segment.broken("no components")),
        _ => return Err(Fault::Unsupported("neither 1, 3 nor 4 components")),
    }
    let mut components = [Component::default(); 4];
    let told_components = rest.as_chunks::<3>().0;
    if told_components.len() < n_components {
        return Err(segment.broken("a frame header that is too short"));
    }
    for (component, [id, sampling, table]) in components[..n_components].iter_mut().zip(told_components) {
        let (across, down) = (usize::from(sampling >> 4), usize::from(sampling & 15));
        if !(1..=4).contains(&across) || !(1..=4).contains(&down) || *table > 3 {
            return Err(segment.broken("sampling or table of a component out of range"));
        }
        *component = Component {
            id: *id,
            across,
            down,
            table: usize::from(*table),
        };
    }
    let ids = components.map(|component| component.id);
    Ok(Header {
        width: u32::from(width),
        height: u32::from(height),
        n_components,
        progressive: segment.marker == 0xc2,
        orientation: told.orientation.unwrap_or(1),
        colour: colour(&ids[..n_components], told),
        components,
    })
}

/// The rules that libjpeg made, and everybody keeps.
fn colour(ids: &[u8], told: &Told) -> Colour {
    let inverted = told.adobe.is_some();
    match (ids.len(), told.adobe) {
        (1, _) => Colour::Gray,
        (4, Some(2)) => Colour::Ycck { inverted },
        (4, _) => Colour::Cmyk { inverted },
        _ if told.jfif => Colour::Ycc,
        (_, Some(0)) => Colour::Rgb,
        (_, None) if ids == b"RGB" => Colour::Rgb,
        _ => Colour::Ycc,
    }
}

impl Header {
    pub(super) fn components(&self) -> &[Component] {
        &self.components[..self.n_components]
    }

    /// The largest sampling in either direction.
    pub(super) fn densest(&self) -> (usize, usize) {
        let most = |of: fn(&Component) -> usize| self.components().iter().map(of).max().unwrap_or(1);
        (
            most(|component| component.across),
            most(|component| component.down),
        )
    }

    /// Bytes that a new decoder allocates for this picture, at most; a used one no more beyond what it holds.
    pub(crate) fn bytes_to_decode(&self, target: &Target) -> u64 {
        let planes: u64 = (0..self.n_components)
            .map(|index| Layout::new(self, target, index).bytes_needed())
            .sum();
        super::FIXED_BYTES + planes
    }
}
