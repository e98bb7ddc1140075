//! What decoding takes: of the usual images, and of those that are larger.

/// Images that take no more than this are decoded on all threads at once; larger ones one after another.
pub(crate) const USUAL_BYTES: u64 = 4 << 20;

/// By the number of bits of what decoding takes.
const SIZES: usize = u64::BITS as usize;

/// What decoding takes of many images.
#[derive(Debug, Clone)]
pub(crate) struct Needs {
    /// Of images that take no more than [`USUAL_BYTES`], the most.
    pub usual: u64,
    /// Of larger ones, the least and the most of each size; 0 where there are none.
    large: [(u64, u64); SIZES],
}

impl Default for Needs {
    fn default() -> Needs {
        Needs {
            usual: 0,
            large: [(0, 0); SIZES],
        }
    }
}

impl Needs {
    pub(crate) fn add(&mut self, bytes: u64) {
        match bytes <= USUAL_BYTES {
            true => self.usual = self.usual.max(bytes),
            false => self.add_large(bytes, bytes),
        }
    }

    fn add_large(&mut self, least: u64, most: u64) {
        let size = &mut self.large[most.ilog2() as usize];
        *size = match *size {
            (_, 0) => (least, most),
            (other_least, other_most) => (least.min(other_least), most.max(other_most)),
        };
    }

    pub(crate) fn merge(&mut self, other: &Needs) {
        self.usual = self.usual.max(other.usual);
        for (least, most) in other.large.iter().filter(|(_, most)| *most > 0) {
            self.add_large(*least, *most);
        }
    }

    /// The size that was counted for may not be the one that is chosen.
    pub(crate) fn with_some_more(mut self) -> Needs {
        let more = |bytes: &mut u64| *bytes = bytes.saturating_add(*bytes / 8);
        more(&mut self.usual);
        self.large.iter_mut().for_each(|(_, most)| more(most));
        self
    }

    /// Of so many bytes, as much as lets every image be decoded that they have room for, and no more than that.
    pub(crate) fn large_within(&self, bytes: u64) -> u64 {
        let mut sizes = self.large.iter().rev();
        let found = sizes.find(|(least, most)| *most > 0 && *least <= bytes);
        found.map_or(0, |(_, most)| (*most).min(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn room_is_what_the_largest_takes_that_fits() {
        const MB: u64 = 1 << 20;
        let mut needs = Needs::default();
        [1, 3, 5, 7, 40, 60].into_iter().for_each(|n| needs.add(n * MB));
        let mut other = Needs::default();
        [4, 50, 900].into_iter().for_each(|n| other.add(n * MB));
        needs.merge(&other);
        assert_eq!(needs.usual, 4 * MB);
        // Whatever fits has room, and nothing is taken that nobody needs.
        for (bytes, expected) in [
            (2_000, 900),
            (899, 60),
            (60, 60),
            (45, 45),
            (39, 7),
            (6, 6),
            (4, 0),
            (0, 0),
        ] {
            assert_eq!(needs.large_within(bytes * MB), expected * MB, "{bytes}");
        }
    }
}
