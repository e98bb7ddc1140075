//! Reads a stored sample along an affine map, between its pixels.
//!
//! A value is the mean of the four pixels around its place, weighed by how near they are. Where the map makes a sample
//! smaller, pixels are passed over: nothing is smoothed before. The map steps by 8/7 of a pixel for a whole crop, over
//! the zoom; up to two pixels that hardly shows.
//!
//! Everything is in integers. With weights of 256ths, `top` and `bottom` from left and right:
//!
//! ```text
//!   side  = (256 · top + down · (bottom − top)) / 2        at most 32,640: a positive 16-bit number
//!   value = ((256 − across) · left + across · right + 16,384) / 32,768
//! ```

#[cfg(target_arch = "x86_64")]
mod avx2;

use super::Fill;
use super::affine::{Line, Map, Place, WEIGHT_BITS, weighed};
use super::pose::Sizes;

/// One pixel in the units of weights.
const PIXEL: i32 = 1 << WEIGHT_BITS;

/// Where the pixels of one row are read, one number of each for every pixel.
#[derive(Debug)]
pub(super) struct Spots {
    /// Where the upper left of the four pixels begins.
    offsets: Vec<u32>,
    /// Weights of left and right, and of bottom in both halves: as vectors take them.
    across: Vec<u32>,
    down: Vec<u32>,
}

impl Spots {
    pub(super) const BYTES: u64 = 3 * size_of::<u32>() as u64;

    pub(super) fn new(width: usize) -> Spots {
        Spots {
            offsets: vec![0; width],
            across: vec![0; width],
            down: vec![0; width],
        }
    }

    fn first(&mut self, n: usize) -> SpotsMut<'_> {
        SpotsMut {
            offsets: &mut self.offsets[..n],
            across: &mut self.across[..n],
            down: &mut self.down[..n],
        }
    }
}

struct SpotsMut<'a> {
    offsets: &'a mut [u32],
    across: &'a mut [u32],
    down: &'a mut [u32],
}

/// The stored sample, and how far apart its pixels are.
#[derive(Clone, Copy)]
struct Picture<'a> {
    bytes: &'a [u8],
    height: i32,
    width: i32,
    /// Bytes from a pixel to the next on its right and below; 0 where there is none at all.
    right: usize,
    below: usize,
}

/// How a map is read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Warp {
    pub sizes: Sizes,
    pub map: Map,
    pub fill: Fill,
    /// Whether to use AVX2, which the processor must have.
    pub vectors: bool,
}

impl Warp {
    pub(super) fn write(&self, spots: &mut Spots, stored: &[u8], into: &mut [u8]) {
        match self.sizes.channels {
            1 => self.write_channels::<1>(spots, stored, into),
            _ => self.write_channels::<3>(spots, stored, into),
        }
    }

    fn write_channels<const CHANNELS: usize>(&self, spots: &mut Spots, stored: &[u8], into: &mut [u8]) {
        let picture = Picture::new::<CHANNELS>(stored, self.sizes.stored);
        let width = self.sizes.output.1;
        for (row, into) in into.chunks_exact_mut(width * CHANNELS).enumerate() {
            let line = self.map.line(row);
            // Places that are held within the sample show its border beyond it.
            let run = match self.fill {
                Fill::Nearest => 0..width,
                _ => line.interior(width, self.sizes.stored),
            };
            for column in (0..run.start).chain(run.end..width) {
                let value = picture.beyond::<CHANNELS>(line.at(column), self.fill);
                into[column * CHANNELS..][..CHANNELS].copy_from_slice(&value);
            }
            let line = Line {
                first: line.at(run.start),
                step: line.step,
            };
            let spots = spots.first(run.len());
            let into = &mut into[run.start * CHANNELS..run.end * CHANNELS];
            #[cfg(target_arch = "x86_64")]
            if self.vectors {
                // SAFETY: the caller has made sure that the processor has AVX2.
                unsafe { avx2::run::<CHANNELS>(picture, line, spots, into) };
                continue;
            }
            #[cfg(not(target_arch = "x86_64"))]
            let _ = self.vectors;
            run_plainly::<CHANNELS>(picture, line, spots, into);
        }
    }
}

fn run_plainly<const CHANNELS: usize>(
    picture: Picture<'_>,
    line: Line,
    spots: SpotsMut<'_>,
    into: &mut [u8],
) {
    let SpotsMut {
        offsets,
        across,
        down,
    } = spots;
    find::<CHANNELS>(picture, line, offsets, across, down);
    blend::<CHANNELS>(picture, offsets, across, down, into);
}

/// The spots of a run. Places are held between the first and the last pixel.
#[inline(always)]
fn find<const CHANNELS: usize>(
    picture: Picture<'_>,
    line: Line,
    offsets: &mut [u32],
    across: &mut [u32],
    down: &mut [u32],
) {
    let Picture { height, width, .. } = picture;
    let (last_x, last_y) = ((width - 1) * PIXEL, (height - 1) * PIXEL);
    let (last_left, last_top) = ((width - 2).max(0), (height - 2).max(0));
    let Place { mut x, mut y } = line.first;
    for ((offset, across), down) in offsets.iter_mut().zip(across).zip(down) {
        let (place_x, place_y) = (weighed(x).clamp(0, last_x), weighed(y).clamp(0, last_y));
        // The last pixel is the right one of the last two.
        let left = (place_x >> WEIGHT_BITS).min(last_left);
        let top = (place_y >> WEIGHT_BITS).min(last_top);
        let right_weight = place_x - left * PIXEL;
        let bottom_weight = place_y - top * PIXEL;
        *offset = ((top * width + left) * CHANNELS as i32) as u32;
        *across = ((PIXEL - right_weight) | (right_weight << 16)) as u32;
        *down = (bottom_weight | (bottom_weight << 16)) as u32;
        x += line.step.x;
        y += line.step.y;
    }
}

/// The values at the spots of a run.
fn blend<const CHANNELS: usize>(
    picture: Picture<'_>,
    offsets: &[u32],
    across: &[u32],
    down: &[u32],
    into: &mut [u8],
) {
    let Picture {
        bytes, right, below, ..
    } = picture;
    let spots = offsets.iter().zip(across).zip(down);
    for (((offset, across), down), into) in spots.zip(into.chunks_exact_mut(CHANNELS)) {
        let start = *offset as usize;
        let top = &bytes[start..start + right + CHANNELS];
        let bottom = &bytes[start + below..start + below + right + CHANNELS];
        for channel in 0..CHANNELS {
            let left = [top[channel], bottom[channel]];
            let right = [top[right + channel], bottom[right + channel]];
            into[channel] = value(left, right, across >> 16, down & 0xffff);
        }
    }
}

/// The mean of four pixels, from top to bottom on the left and on the right.
#[inline(always)]
fn value(left: [u8; 2], right: [u8; 2], across: u32, down: u32) -> u8 {
    let side = |[top, bottom]: [u8; 2]| {
        let (top, bottom) = (u32::from(top), u32::from(bottom));
        (256 * top + down * bottom - down * top) / 2
    };
    (((256 - across) * side(left) + across * side(right) + 16_384) / 32_768) as u8
}

impl<'a> Picture<'a> {
    fn new<const CHANNELS: usize>(bytes: &'a [u8], (height, width): (usize, usize)) -> Picture<'a> {
        Picture {
            bytes,
            height: height as i32,
            width: width as i32,
            right: if width > 1 { CHANNELS } else { 0 },
            below: if height > 1 { width * CHANNELS } else { 0 },
        }
    }

    /// The value at any place, by the pixels that the sample is continued with.
    fn beyond<const CHANNELS: usize>(&self, place: Place, fill: Fill) -> [u8; CHANNELS] {
        let (x, y) = (weighed(place.x), weighed(place.y));
        // A sample reaches half a pixel beyond the centres of its outermost.
        let outside = |place: i32, n: i32| place < -PIXEL / 2 || place >= n * PIXEL - PIXEL / 2;
        if fill == Fill::Constant && (outside(x, self.width) || outside(y, self.height)) {
            return [0; CHANNELS];
        }
        let continued = |place: i32, n: i32| {
            let pixel = place >> WEIGHT_BITS;
            [pixel, pixel + 1].map(|pixel| fill.pixel(pixel, n) as usize)
        };
        let ([left, right], [top, bottom]) = (continued(x, self.width), continued(y, self.height));
        let pixel =
            |y: usize, x: usize, channel| self.bytes[(y * self.width as usize + x) * CHANNELS + channel];
        let (across, down) = (x & (PIXEL - 1), y & (PIXEL - 1));
        std::array::from_fn(|channel| {
            value(
                [pixel(top, left, channel), pixel(bottom, left, channel)],
                [pixel(top, right, channel), pixel(bottom, right, channel)],
                across as u32,
                down as u32,
            )
        })
    }
}

impl Fill {
    /// The pixel, of `n` in its direction, that shows at this one.
    fn pixel(self, pixel: i32, n: i32) -> i32 {
        match self {
            // In one direction most places are inside, and need no division.
            _ if (0..n).contains(&pixel) => pixel,
            Fill::Nearest | Fill::Constant => pixel.clamp(0, n - 1),
            Fill::Wrap => pixel.rem_euclid(n),
            Fill::Reflect => {
                let there_and_back = pixel.rem_euclid(2 * n);
                there_and_back.min(2 * n - 1 - there_and_back)
            }
        }
    }
}
