//! Decodes JPEG files to the size that is wanted, and never more than that.
//!
//! A photo becomes a small sample. So most of a full decoding would be thrown away: the transform of frequencies that the
//! sample cannot show, colour differences blown up to the size of the luma, colours of pixels that are averaged next.
//! Resizing is linear, so each component goes the whole way by itself, and they meet at the wanted size:
//!
//! ```text
//!   file ──▶ coefficients ──▶ inverse transform of 8, 4, 2 or 1 points ──▶ rows ──▶ resizer ──▶ component ─┐
//!   header    row of units     the fewest that still make a larger picture                                 ├─▶ pixels
//!                                                                          the other components ──▶ … ─────┘
//! ```
//!
//! What is held is a row of blocks, a few rows of the resizer and the output: [`Header::bytes_to_decode`] says it
//! beforehand. Pictures told in several passes hold all of their coefficients, or their means at an eighth of the size.
//!
//! Pixels are a function of the file and the target: all arithmetic on them is in integers.

mod block;
mod colour;
mod exif;
mod fault;
mod header;
mod huffman;
mod idct;
mod plane;
mod progressive;
mod scan;
mod segments;
mod sequential;
#[cfg(test)]
mod tests;
mod units;
mod window;

use super::resize::{self, Canvas, Kernels, Rectangle, refit};
use block::Block;
pub(crate) use fault::Fault;
use header::Component;
pub(crate) use header::{Header, Reading, Step, header};
use huffman::{Kind, Table};
use plane::{Layout, Plane};
use progressive::Progressive;
use scan::Scan;
use segments::{Segment, Segments, marker};
use sequential::Sequential;
use units::{Reader, Stop};
use window::{BLOCKS_AHEAD, Window};

/// Tables of Huffman codes: four for means, four for details.
const N_TABLES: usize = 8;

/// What every picture needs.
const FIXED_BYTES: u64 =
    (N_TABLES * size_of::<Table>() + BLOCKS_AHEAD * size_of::<Block>() + window::HELD_BYTES) as u64;

/// Honest files have some ten scans. Each costs a walk over the picture, however few bytes it has.
const MOST_SCANS: usize = 200;

/// What is wanted of a picture.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Target {
    /// The part that is wanted, in pixels of the source.
    pub rectangle: Rectangle,
    /// The size that it gets.
    pub width: usize,
    pub height: usize,
    /// 1 for gray, 3 for red, green and blue.
    pub channels: usize,
}

/// Decodes one picture after the other; its buffers stay, so that pictures of one size allocate once.
#[derive(Debug)]
pub(crate) struct Decoder {
    tables: Vec<Table>,
    window: Window,
    blocks: Vec<Block>,
    planes: [Plane; 4],
    kernels: Kernels,
}

impl Default for Decoder {
    fn default() -> Decoder {
        Decoder::with_kernels(Kernels::default())
    }
}

impl Decoder {
    fn with_kernels(kernels: Kernels) -> Decoder {
        Decoder {
            tables: Vec::new(),
            window: Window::default(),
            blocks: Vec::new(),
            planes: std::array::from_fn(|_| Plane::new(kernels)),
            kernels,
        }
    }

    /// Bytes of the buffers that it keeps.
    #[cfg(test)]
    pub(crate) fn held_bytes(&self) -> u64 {
        let own = self.tables.capacity() * size_of::<Table>()
            + self.blocks.capacity() * size_of::<Block>()
            + self.window.held_bytes();
        own as u64 + self.planes.iter().map(Plane::held_bytes).sum::<u64>()
    }

    /// Gives all buffers back.
    pub(crate) fn release(&mut self) {
        *self = Decoder::with_kernels(self.kernels);
    }

    /// Decodes a whole file into rows of pixels, each of as many bytes as the target has channels.
    ///
    /// What lies below the wanted rectangle is not read, and so not found broken.
    ///
    /// # Panics
    ///
    /// Where the target has no pixels, or the canvas has no room for them.
    pub(crate) fn decode(
        &mut self,
        bytes: &[u8],
        target: &Target,
        mut canvas: Canvas<'_>,
    ) -> Result<(), Fault> {
        assert!(target.is_possible(), "a target that cannot be: {target:?}");
        let row_bytes = target.width * target.channels;
        assert!(
            canvas.stride >= row_bytes
                && canvas.bytes.len() >= canvas.stride * (target.height - 1) + row_bytes,
            "no room for the picture"
        );
        let header = match header(bytes) {
            Err(Fault::Short) => return Err(Fault::Truncated { percent: 0 }),
            header => header?,
        };
        self.prepare(&header, target);
        let mut picture = Picture::new(bytes, &header);
        picture.decode(self, &mut canvas)?;
        if !self.planes[0].layout.is_output {
            let planes = std::array::from_fn(|index| match index < header.n_components {
                true => &self.planes[index].out[..],
                false => &[],
            });
            let size = (target.width, target.channels);
            colour::convert(header.colour, planes, size, &mut canvas, self.kernels);
        }
        Ok(())
    }

    fn prepare(&mut self, header: &Header, target: &Target) {
        if self.tables.is_empty() {
            self.tables = vec![Table::EMPTY; N_TABLES];
        }
        refit(&mut self.blocks, BLOCKS_AHEAD);
        // What a broken picture left behind.
        self.blocks.fill(Block::ZERO);
        for (index, plane) in self.planes.iter_mut().enumerate() {
            plane.prepare(match index < header.n_components {
                true => Layout::new(header, target, index),
                false => Layout::default(),
            });
        }
    }
}

impl Target {
    fn is_possible(&self) -> bool {
        let Rectangle { x, y, width, height } = self.rectangle;
        self.width > 0
            && self.height > 0
            && matches!(self.channels, 1 | 3)
            && [x, y, width, height].iter().all(|value| value.is_finite())
            && width > 0.0
            && height > 0.0
    }
}

/// One file on its way.
struct Picture<'a> {
    bytes: &'a [u8],
    header: &'a Header,
    quantization: [Option<[u16; 64]>; 4],
    /// Which of the tables are its own: the others are those of a picture before.
    defined: [bool; N_TABLES],
    interval: usize,
    /// For every place of every component, the bits that are still to be told; `None` where nothing was.
    lacking: [[Option<u32>; 64]; 4],
    n_scans: usize,
}

impl<'a> Picture<'a> {
    fn new(bytes: &'a [u8], header: &'a Header) -> Picture<'a> {
        Picture {
            bytes,
            header,
            quantization: [None; 4],
            defined: [false; N_TABLES],
            interval: 0,
            lacking: [[None; 64]; 4],
            n_scans: 0,
        }
    }

    fn decode(&mut self, decoder: &mut Decoder, canvas: &mut Canvas<'_>) -> Result<(), Fault> {
        let mut segments = Segments::new(self.bytes)?;
        let mut n_frames = 0;
        loop {
            let segment = match segments.next() {
                // A missing end is no loss where nothing else is missing.
                Err(Fault::Short) if self.is_whole(decoder) => break,
                Err(Fault::Short) => return Err(self.truncated(0, 1, &[])),
                segment => segment?,
            };
            match segment.marker {
                marker::QUANTIZATION => self.read_quantization(&segment)?,
                marker::HUFFMAN => self.read_huffman(&segment, &mut decoder.tables)?,
                marker::RESTART_INTERVAL => {
                    let interval = segment.body.first_chunk();
                    let interval = interval.ok_or_else(|| segment.broken("no restart interval"))?;
                    self.interval = usize::from(u16::from_be_bytes(*interval));
                }
                marker::START_OF_SCAN => {
                    segments.at = self.read_scan(&segment, decoder, canvas)?;
                    if !self.header.progressive && self.is_whole(decoder) {
                        return Ok(());
                    }
                }
                marker::END_OF_IMAGE => break,
                _ if segment.is_frame() && n_frames > 0 => {
                    return Err(segment.broken("a second frame header"));
                }
                _ if segment.is_frame() => n_frames += 1,
                _ => {}
            }
        }
        // A progressive picture may end before its last bits; but not before its means.
        let begun = self.wanted(decoder).all(|lacking| lacking[0].is_some());
        if !begun {
            return Err(self.truncated(0, 1, &[]));
        }
        if self.header.progressive {
            for plane in &mut decoder.planes[..self.header.n_components] {
                progressive::finish(plane, canvas, decoder.kernels);
            }
        }
        Ok(())
    }

    fn read_quantization(&mut self, segment: &Segment<'_>) -> Result<(), Fault> {
        let mut rest = segment.body;
        while let Some((head, body)) = rest.split_first() {
            let broken = || segment.broken("a quantization table that cannot be");
            let table = self
                .quantization
                .get_mut(usize::from(head & 15))
                .ok_or_else(broken)?;
            let wide = head >> 4 != 0;
            let (told, after) = body
                .split_at_checked(if wide { 128 } else { 64 })
                .ok_or_else(broken)?;
            *table = Some(std::array::from_fn(|i| match wide {
                true => u16::from_be_bytes([told[2 * i], told[2 * i + 1]]),
                false => u16::from(told[i]),
            }));
            rest = after;
        }
        Ok(())
    }

    fn read_huffman(&mut self, segment: &Segment<'_>, tables: &mut [Table]) -> Result<(), Fault> {
        let mut rest = segment.body;
        while let Some((head, body)) = rest.split_first() {
            let broken = || segment.broken("a Huffman table that cannot be");
            let (counts, body) = body.split_first_chunk::<16>().ok_or_else(broken)?;
            let n_symbols: usize = counts.iter().map(|count| usize::from(*count)).sum();
            let (symbols, after) = body.split_at_checked(n_symbols).ok_or_else(broken)?;
            let (kind, index) = match (head >> 4, usize::from(head & 15)) {
                _ if n_symbols > 256 => return Err(broken()),
                (0, index @ 0..4) => (Kind::Mean, index),
                (1, index @ 0..4) if self.header.progressive => (Kind::Progressive, 4 + index),
                (1, index @ 0..4) => (Kind::Detail, 4 + index),
                _ => return Err(broken()),
            };
            tables[index]
                .define(kind, counts, symbols)
                .map_err(|problem| problem.at(segment.at))?;
            self.defined[index] = true;
            rest = after;
        }
        Ok(())
    }

    /// Decodes a scan. Says where the marker behind it is looked for.
    fn read_scan(
        &mut self,
        segment: &Segment<'_>,
        decoder: &mut Decoder,
        canvas: &mut Canvas<'_>,
    ) -> Result<usize, Fault> {
        let scan = Scan::read(segment, self.header, self.interval)?;
        self.n_scans += 1;
        if self.n_scans > MOST_SCANS {
            return Err(segment.broken("too many scans"));
        }
        let mut is_wanted = false;
        let (needs_means, needs_details) = scan.needs(self.header.progressive);
        for part in scan.parts() {
            let lacks_means = needs_means && !self.defined[part.mean];
            if lacks_means || needs_details && !self.defined[4 + part.detail] {
                return Err(segment.broken("no Huffman table"));
            }
            let plane = &mut decoder.planes[part.component];
            if self.lacking[part.component][0].is_none() {
                let component = self.header.components()[part.component];
                plane.quantize(self.quantization[component.table].as_ref(), segment.at)?;
            } else if !self.header.progressive {
                return Err(segment.broken("a component that was told before"));
            }
            let counts = scan.first == 0 || plane.layout.held_of_block() != 1;
            is_wanted |= plane.layout.is_wanted && counts;
        }
        let mut next = scan.at;
        if is_wanted {
            let mut reader = Reader::new(
                self.bytes,
                &mut decoder.window,
                self.header,
                &scan,
                &decoder.planes,
            );
            let n_units = reader.n_units.0 * reader.n_units.1;
            let decoded = match self.header.progressive {
                true => Progressive {
                    header: self.header,
                    scan: &scan,
                    tables: &decoder.tables,
                    planes: &mut decoder.planes,
                    kernels: decoder.kernels,
                }
                .decode(&mut reader),
                false => {
                    let mut sequential = Sequential {
                        header: self.header,
                        scan: &scan,
                        tables: &decoder.tables,
                        planes: &mut decoder.planes,
                        blocks: &mut decoder.blocks,
                        kernels: decoder.kernels,
                    };
                    sequential.decode(&mut reader, canvas)
                }
            };
            next = reader.next();
            match decoded {
                Ok(()) => {}
                Err(Stop::Fault(fault)) => return Err(fault),
                Err(Stop::End { n_units: n_read }) => {
                    return Err(self.truncated(n_read, n_units, scan.parts()));
                }
            }
        }
        let places = match self.header.progressive {
            true => scan.first..scan.last + 1,
            false => 0..64,
        };
        for part in scan.parts() {
            let bits = if self.header.progressive { scan.down_to } else { 0 };
            self.lacking[part.component][places.clone()].fill(Some(bits));
        }
        Ok(next)
    }

    /// What is lacking of the components that the target needs.
    fn wanted(&self, decoder: &Decoder) -> impl Iterator<Item = &[Option<u32>; 64]> {
        let both = self.lacking.iter().zip(&decoder.planes);
        both.filter(|(_, plane)| plane.layout.is_wanted)
            .map(|(lacking, _)| lacking)
    }

    /// Whether all that the target needs was told.
    fn is_whole(&self, decoder: &Decoder) -> bool {
        self.wanted(decoder)
            .all(|lacking| lacking.iter().all(|bits| *bits == Some(0)))
    }

    /// How much of the picture there is: coefficients that are whole, and of the scan at hand those of the units read.
    fn truncated(&self, n_read: usize, n_units: usize, parts: &[scan::Part]) -> Fault {
        let weight = |component: &Component| (component.across * component.down) as u64;
        let (mut there, mut all) = (0, 0);
        for (index, component) in self.header.components().iter().enumerate() {
            let n_whole = self.lacking[index]
                .iter()
                .filter(|lacking| **lacking == Some(0))
                .count();
            let is_read = parts.iter().any(|part| part.component == index) && !self.header.progressive;
            let share = match is_read {
                true => n_read as u64 * 64 * 100 / n_units.max(1) as u64,
                false => n_whole as u64 * 100,
            };
            there += weight(component) * share;
            all += weight(component) * 64;
        }
        Fault::Truncated {
            percent: (there / all).min(99) as u8,
        }
    }
}
