//! Scans that tell their blocks once and whole: decoded, transformed and sent on, one row of units after the other.

use std::ops::Range;

use super::block::{self, Block, Coding};
use super::header::{Header, MOST_BLOCKS_OF_UNIT};
use super::huffman::Table;
use super::idct::{self, Place};
use super::plane::{Layout, Plane};
use super::resize::{Canvas, Kernels};
use super::scan::Scan;
use super::units::{Reader, Stop};
use super::window::{BLOCKS_AHEAD, Bits};

/// What a scan is decoded with.
pub(super) struct Sequential<'a> {
    pub header: &'a Header,
    pub scan: &'a Scan,
    pub tables: &'a [Table],
    pub planes: &'a mut [Plane; 4],
    pub blocks: &'a mut [Block],
    pub kernels: Kernels,
}

/// One block of a unit: how it is decoded, and where it goes.
#[derive(Clone, Copy)]
struct Task<'a> {
    coding: Coding<'a>,
    part: usize,
    component: usize,
    is_wanted: bool,
    points: usize,
    stride: usize,
    /// Where its samples begin in the strip, in the first unit of a row; and from one unit to the next.
    start: usize,
    step: usize,
}

impl Sequential<'_> {
    pub(super) fn decode(&mut self, reader: &mut Reader<'_>, canvas: &mut Canvas<'_>) -> Result<(), Stop> {
        let (unit, n_blocks) = self.scan.unit(self.header);
        let tables = self.tables;
        let tasks: [Task<'_>; MOST_BLOCKS_OF_UNIT] = std::array::from_fn(|index| {
            let place = unit[index];
            let part = self.scan.parts()[place.part];
            let layout = &self.planes[part.component].layout;
            let stride = layout.stride();
            Task {
                coding: Coding {
                    mean: &tables[part.mean],
                    detail: &tables[4 + part.detail],
                    places: block::places(layout.points),
                },
                part: place.part,
                component: part.component,
                is_wanted: layout.is_wanted,
                points: layout.points,
                stride,
                start: (place.down * stride + place.across) * layout.points,
                step: layout.points * self.blocks_across(layout),
            }
        });
        let tasks = &tasks[..n_blocks];
        let (n_across, n_down) = reader.n_units;
        for _ in 0..n_down {
            if self.parts().all(|plane| plane.is_done()) {
                return Ok(());
            }
            let wanted = self.wanted(n_across);
            let mut at = 0;
            while at < n_across {
                let until = match at {
                    at if at < wanted.start => wanted.start,
                    at if at < wanted.end => wanted.end,
                    _ => n_across,
                };
                let n = reader.ready((BLOCKS_AHEAD / n_blocks).min(until - at))?;
                let whole = match wanted.contains(&at) {
                    true => self.decode_units(reader, tasks, at, n),
                    false => skip_units(reader, tasks, n, self.kernels),
                };
                reader.took(n, whole)?;
                at += n;
            }
            self.push(canvas);
        }
        Ok(())
    }

    fn parts(&self) -> impl Iterator<Item = &Plane> {
        let planes = self.scan.parts().iter().map(|part| &self.planes[part.component]);
        planes.filter(|plane| plane.layout.is_wanted)
    }

    /// Rows of samples of a row of units.
    fn n_rows(&self, layout: &Layout) -> usize {
        match self.scan.is_interleaved() {
            true => layout.sampling.1 * layout.points,
            false => layout.points,
        }
    }

    /// Blocks of a unit across.
    fn blocks_across(&self, layout: &Layout) -> usize {
        match self.scan.is_interleaved() {
            true => layout.sampling.0,
            false => 1,
        }
    }

    /// What of the next row of units is needed.
    fn wanted(&self, n: usize) -> Range<usize> {
        let (mut first, mut last) = (n, 0);
        for plane in self.parts() {
            if plane.wants_rows(self.n_rows(&plane.layout)) {
                let blocks = plane.layout.wanted_blocks(&plane.wanted_columns());
                let n_blocks = self.blocks_across(&plane.layout);
                first = first.min(blocks.start / n_blocks);
                last = last.max(blocks.end.div_ceil(n_blocks));
            }
        }
        first..last.min(n)
    }

    fn push(&mut self, canvas: &mut Canvas<'_>) {
        for part in self.scan.parts() {
            let n_rows = self.n_rows(&self.planes[part.component].layout);
            let plane = &mut self.planes[part.component];
            if plane.layout.is_wanted {
                plane.push(n_rows, canvas);
            }
        }
    }

    fn decode_units(&mut self, reader: &mut Reader<'_>, tasks: &[Task<'_>], at: usize, n: usize) -> bool {
        match self.kernels {
            Kernels::Portable => self.decode_plainly(reader, tasks, at, n),
            #[cfg(target_arch = "x86_64")]
            // SAFETY: `Kernels::Avx2` is only made where the processor has it.
            Kernels::Avx2 => unsafe { self.decode_avx2(reader, tasks, at, n) },
        }
    }

    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2,bmi2")]
    fn decode_avx2(&mut self, reader: &mut Reader<'_>, tasks: &[Task<'_>], at: usize, n: usize) -> bool {
        self.decode_plainly(reader, tasks, at, n)
    }

    /// Decodes some units, and then transforms their blocks: a block that was just written cannot be read in vectors at
    /// once. `false` where the data is broken.
    #[inline(always)]
    fn decode_plainly(&mut self, reader: &mut Reader<'_>, tasks: &[Task<'_>], at: usize, n: usize) -> bool {
        let mut bits: Bits = reader.bits;
        let window = reader.window.bytes();
        let mut lasts = [0; BLOCKS_AHEAD];
        let slots = lasts.iter_mut().zip(self.blocks.iter_mut());
        let mut whole = true;
        for ((last, block), task) in slots.zip((0..n).flat_map(|_| tasks)) {
            let mean = &mut reader.means[task.part & 3];
            let decoded = match task.is_wanted {
                true => block::decode(&task.coding, window, &mut bits, mean, block),
                false => block::skip(&task.coding, window, &mut bits, mean),
            };
            whole &= decoded.is_some();
            *last = decoded.unwrap_or(63);
        }
        reader.bits = bits;
        let tasks = (0..n).flat_map(|i| tasks.iter().map(move |task| (at + i, task)));
        for ((last, block), (unit, task)) in lasts.iter().zip(self.blocks.iter_mut()).zip(tasks) {
            if task.is_wanted {
                let plane = &mut self.planes[task.component & 3];
                let samples = &mut plane.strip[task.start + unit * task.step..];
                let stride = task.stride;
                let place = Place { samples, stride };
                idct::transform(task.points, block, *last, &plane.factors, place, self.kernels);
            }
        }
        whole
    }
}

fn skip_units(reader: &mut Reader<'_>, tasks: &[Task<'_>], n: usize, kernels: Kernels) -> bool {
    match kernels {
        Kernels::Portable => skip_plainly(reader, tasks, n),
        #[cfg(target_arch = "x86_64")]
        // SAFETY: `Kernels::Avx2` is only made where the processor has it.
        Kernels::Avx2 => unsafe { skip_avx2(reader, tasks, n) },
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi2")]
fn skip_avx2(reader: &mut Reader<'_>, tasks: &[Task<'_>], n: usize) -> bool {
    skip_plainly(reader, tasks, n)
}

#[inline(always)]
fn skip_plainly(reader: &mut Reader<'_>, tasks: &[Task<'_>], n: usize) -> bool {
    let mut bits = reader.bits;
    let window = reader.window.bytes();
    let mut whole = true;
    for task in (0..n).flat_map(|_| tasks) {
        let mean = &mut reader.means[task.part & 3];
        whole &= block::skip(&task.coding, window, &mut bits, mean).is_some();
    }
    reader.bits = bits;
    whole
}

const _: () = assert!(MOST_BLOCKS_OF_UNIT <= BLOCKS_AHEAD);
