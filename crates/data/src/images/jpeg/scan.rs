//! The header of a scan: which components it tells, and with which tables.

use super::Fault;
use super::header::{Header, MOST_BLOCKS_OF_UNIT};
use super::segments::Segment;

#[derive(Debug, Clone)]
pub(super) struct Scan {
    parts: [Part; 4],
    n_parts: usize,
    /// Of a progressive picture: the places that it tells, in the file's order, and the bits of them, from which on and
    /// down to which. `from` is zero where nothing was told before.
    pub first: usize,
    pub last: usize,
    pub from: u32,
    pub down_to: u32,
    /// Units from one restart marker to the next; 0 for none.
    pub interval: usize,
    /// Where its data begins in the file.
    pub at: usize,
}

/// One component of a scan.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Part {
    pub component: usize,
    /// Its tables.
    pub mean: usize,
    pub detail: usize,
}

/// One block of a unit.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnitBlock {
    /// Which part of the scan it belongs to, and where it is within the unit.
    pub part: usize,
    pub across: usize,
    pub down: usize,
}

impl Scan {
    pub(super) fn read(segment: &Segment<'_>, header: &Header, interval: usize) -> Result<Scan, Fault> {
        let broken = || segment.broken("a scan header that cannot be");
        let (n_parts, rest) = segment.body.split_first().ok_or_else(broken)?;
        let n_parts = usize::from(*n_parts);
        if !(1..=header.n_components).contains(&n_parts) {
            return Err(broken());
        }
        let (told, rest) = rest.split_at_checked(n_parts * 2).ok_or_else(broken)?;
        let mut parts = [Part::default(); 4];
        for (index, pair) in told.as_chunks::<2>().0.iter().enumerate() {
            let [id, tables] = *pair;
            let component = header
                .components()
                .iter()
                .position(|component| component.id == id)
                .ok_or_else(broken)?;
            let (mean, detail) = (usize::from(tables >> 4), usize::from(tables & 15));
            let is_double = parts[..index].iter().any(|part| part.component == component);
            if is_double || mean > 3 || detail > 3 {
                return Err(broken());
            }
            parts[index] = Part {
                component,
                mean,
                detail,
            };
        }
        let &[first, last, bits, ..] = rest else {
            return Err(broken());
        };
        let (from, down_to) = (u32::from(bits >> 4), u32::from(bits & 15));
        let scan = Scan {
            parts,
            n_parts,
            first: usize::from(first),
            last: usize::from(last),
            from,
            down_to,
            interval,
            at: segment.at + segment.body.len(),
        };
        let n_blocks: usize = scan
            .parts()
            .iter()
            .map(|part| header.components()[part.component])
            .map(|component| component.across * component.down)
            .sum();
        if n_parts > 1 && n_blocks > MOST_BLOCKS_OF_UNIT {
            return Err(Fault::Unsupported("more than ten blocks in a unit"));
        }
        if header.progressive && !scan.is_possible() {
            return Err(broken());
        }
        Ok(scan)
    }

    fn is_possible(&self) -> bool {
        let means_alone = self.first == 0 && self.last == 0;
        let details_alone =
            self.first >= 1 && self.first <= self.last && self.last <= 63 && self.n_parts == 1;
        (means_alone || details_alone) && self.from <= 13 && self.down_to <= 13
    }

    /// Whether it has codes of means, and codes of details.
    pub(super) fn needs(&self, progressive: bool) -> (bool, bool) {
        match progressive {
            true => (self.first == 0 && self.from == 0, self.first > 0),
            false => (true, true),
        }
    }

    pub(super) fn parts(&self) -> &[Part] {
        &self.parts[..self.n_parts]
    }

    /// Whether blocks of several components alternate.
    pub(super) fn is_interleaved(&self) -> bool {
        self.n_parts > 1
    }

    /// The blocks of one unit, in their order; a unit of one component is one block.
    pub(super) fn unit(&self, header: &Header) -> ([UnitBlock; MOST_BLOCKS_OF_UNIT], usize) {
        let mut blocks = [UnitBlock::default(); MOST_BLOCKS_OF_UNIT];
        if !self.is_interleaved() {
            return (blocks, 1);
        }
        let mut n = 0;
        for (part, of) in self.parts().iter().enumerate() {
            let component = header.components()[of.component];
            for down in 0..component.down {
                for across in 0..component.across {
                    blocks[n] = UnitBlock { part, across, down };
                    n += 1;
                }
            }
        }
        (blocks, n)
    }
}
