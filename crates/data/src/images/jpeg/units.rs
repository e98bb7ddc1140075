//! Walks the units of a scan, over restart markers, and tells where the data ends or breaks.

use super::Fault;
use super::header::Header;
use super::plane::Plane;
use super::scan::Scan;
use super::window::{Bits, Window};

/// Why a scan stops in the middle.
#[derive(Debug)]
pub(super) enum Stop {
    /// The data ends after so many units.
    End {
        n_units: usize,
    },
    Fault(Fault),
}

/// The data of a scan, and how far it is read.
pub(super) struct Reader<'a> {
    file: &'a [u8],
    pub window: &'a mut Window,
    pub bits: Bits,
    /// The mean of the last block of every part: the next one is told as a difference.
    pub means: [i32; 4],
    /// Blocks that are still to be passed over, in a progressive scan.
    pub n_ended: u32,
    /// Units of the scan in either direction.
    pub n_units: (usize, usize),
    n_read: usize,
    /// Units from one restart marker to the next, and those that are left before the next one.
    interval: usize,
    left: usize,
    n_restarts: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn new(
        file: &'a [u8],
        window: &'a mut Window,
        header: &Header,
        scan: &Scan,
        planes: &[Plane; 4],
    ) -> Reader<'a> {
        let (most_across, most_down) = header.densest();
        let n_units = match scan.is_interleaved() {
            true => (
                (header.width as usize).div_ceil(most_across * 8),
                (header.height as usize).div_ceil(most_down * 8),
            ),
            false => planes[scan.parts()[0].component].layout.blocks,
        };
        Reader {
            file,
            bits: window.start(scan.at),
            window,
            means: [0; 4],
            n_ended: 0,
            n_units,
            n_read: 0,
            interval: scan.interval,
            left: scan.interval,
            n_restarts: 0,
        }
    }

    /// Makes up to so many units ready to be read, 16 blocks at most; says how many.
    #[inline(always)]
    pub(super) fn ready(&mut self, n: usize) -> Result<usize, Stop> {
        if self.interval > 0 && self.left == 0 {
            self.restart()?;
        }
        if self.window.is_low(&self.bits) {
            self.window.fill(self.file, &mut self.bits);
        }
        Ok(match self.interval {
            0 => n,
            _ => n.min(self.left),
        })
    }

    #[cold]
    fn restart(&mut self) -> Result<(), Stop> {
        self.bits = match self.window.restart(self.file, self.n_restarts) {
            Ok(bits) => bits,
            Err(Fault::Short) => return Err(self.end()),
            Err(fault) => return Err(Stop::Fault(fault)),
        };
        self.n_restarts = self.n_restarts.wrapping_add(1);
        self.means = [0; 4];
        self.n_ended = 0;
        self.left = self.interval;
        Ok(())
    }

    /// So many units were read; `whole` unless something in them cannot be.
    #[inline(always)]
    pub(super) fn took(&mut self, n: usize, whole: bool) -> Result<(), Stop> {
        // Behind the end stand zeros, and they may mean anything.
        if self.window.is_overrun(&self.bits) {
            return Err(self.end());
        }
        if !whole {
            let (at, what) = (self.window.place(&self.bits), "no such code");
            return Err(Stop::Fault(Fault::Broken { at, what }));
        }
        self.n_read += n;
        self.left = self.left.saturating_sub(n);
        Ok(())
    }

    fn end(&self) -> Stop {
        Stop::End { n_units: self.n_read }
    }

    /// Where the marker behind the scan is looked for.
    pub(super) fn next(&self) -> usize {
        self.window.next()
    }
}
