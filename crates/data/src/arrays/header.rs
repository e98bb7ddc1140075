//! What an array says of itself: type, shape, and where its data begins.

use tidegate_memory::Holder;

use super::element::Element;
use super::problem::{ArrayProblem, shown};
use super::{idx, npy};
use crate::{Input, Result};

/// Headers are read in a piece of this size, and in one more where they are longer.
const LOOK_BYTES: usize = 4 << 10;
/// No header is longer: NumPy itself refuses more than 10,000 letters.
const MOST_BYTES: usize = 64 << 10;
/// More axes than any array has.
const MOST_AXES: usize = 32;

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Header {
    pub holds: Holds,
    /// Numbers begin with their most significant byte.
    pub big_endian: bool,
    pub shape: Vec<usize>,
    /// Where the values begin in the (unpacked) file.
    pub data_at: u64,
}

/// What every value of an array is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holds {
    Number(Element),
    /// A text of so many bytes, filled up with zeros.
    Bytes(usize),
    /// A text of so many characters of four bytes each, filled up with zeros.
    Letters(usize),
}

impl Holds {
    pub(crate) fn bytes(self) -> usize {
        match self {
            Holds::Number(element) => element.bytes(),
            Holds::Bytes(bytes) => bytes,
            // A width beyond all bounds is refused with the shape that it makes.
            Holds::Letters(letters) => letters.saturating_mul(4),
        }
    }

    pub(crate) fn name(self) -> String {
        match self {
            Holds::Number(element) => element.name().into(),
            Holds::Bytes(bytes) => format!("texts of {bytes} bytes"),
            Holds::Letters(letters) => format!("texts of {letters} letters"),
        }
    }
}

impl Header {
    /// Reads the header of an array, and holds it against the length of the file where that is known.
    pub(crate) fn read(input: &Input, holder: &Holder) -> Result<Header> {
        let _granted = holder.try_grant(MOST_BYTES as u64)?;
        let mut text = input.text(holder)?;
        let mut bytes = vec![0; LOOK_BYTES];
        let filled = text.fill(&mut bytes)?;
        bytes.truncate(filled);
        let mut header = parse(&bytes);
        if let Err(Fault::LongerThan(needed)) = header
            && filled == LOOK_BYTES
            && needed <= MOST_BYTES
        {
            bytes.resize(needed, 0);
            let more = text.fill(&mut bytes[filled..])?;
            bytes.truncate(filled + more);
            header = parse(&bytes);
        }
        let header = header.map_err(|fault| fault.at(input, &bytes))?;
        header.check(input)?;
        Ok(header)
    }

    /// Values, in all.
    pub(crate) fn n_values(&self) -> Option<u64> {
        self.shape
            .iter()
            .try_fold(1u64, |product, axis| product.checked_mul(*axis as u64))
    }

    /// Bytes of all values; 0 where the shape was not checked.
    pub(crate) fn data_bytes(&self) -> u64 {
        self.n_values()
            .unwrap_or(0)
            .saturating_mul(self.holds.bytes() as u64)
    }

    fn check(&self, input: &Input) -> Result<(), ArrayProblem> {
        let (path, shape) = (input.path().to_path_buf(), self.shape.clone());
        if self.shape.contains(&0) || self.holds.bytes() == 0 {
            return Err(ArrayProblem::NoValues { path, shape });
        }
        let bytes = self
            .n_values()
            .and_then(|n| n.checked_mul(self.holds.bytes() as u64));
        let end = bytes.and_then(|bytes| bytes.checked_add(self.data_at));
        let Some(end) = end.filter(|end| *end <= i64::MAX as u64) else {
            return Err(ArrayProblem::TooLarge { path, shape });
        };
        match input.text_bytes() {
            Some(found) if found < end => Err(self.truncated(input, found)),
            _ => Ok(()),
        }
    }

    /// The file ends after `found` bytes of its text.
    pub(crate) fn truncated(&self, input: &Input, found: u64) -> ArrayProblem {
        ArrayProblem::Truncated {
            path: input.path().into(),
            shape: self.shape.clone(),
            element: self.holds.name(),
            expected: self.data_bytes(),
            found: found.saturating_sub(self.data_at),
        }
    }
}

/// Why bytes are not the header of an array that can be read.
#[derive(Debug, PartialEq)]
pub(super) enum Fault {
    /// Neither format begins so.
    Other,
    /// The header goes on to this byte.
    LongerThan(usize),
    Broken(&'static str, String),
    Element(String),
    Fortran(Vec<usize>),
}

impl Fault {
    fn at(self, input: &Input, bytes: &[u8]) -> ArrayProblem {
        let path = input.path().to_path_buf();
        match self {
            Fault::Other => ArrayProblem::NotAnArray { path },
            Fault::LongerThan(needed) => ArrayProblem::Header {
                path,
                format: if npy::is_npy(bytes) { "NumPy" } else { "IDX" },
                what: match needed > MOST_BYTES {
                    true => format!("it says that it is {needed} bytes long"),
                    false => format!("it is {needed} bytes long and there are {}", bytes.len()),
                },
            },
            Fault::Broken(format, what) => ArrayProblem::Header { path, format, what },
            Fault::Element(found) => ArrayProblem::Element { path, found },
            Fault::Fortran(shape) => ArrayProblem::Fortran { path, shape },
        }
    }
}

fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    let header = if npy::is_npy(bytes) {
        npy::parse(bytes)?
    } else if idx::is_idx(bytes) {
        idx::parse(bytes)?
    } else {
        return Err(Fault::Other);
    };
    match header.shape.len() > MOST_AXES {
        true => {
            let what = format!(
                "{} axes: {}",
                header.shape.len(),
                shown(&header.shape[..MOST_AXES])
            );
            Err(Fault::Broken("array", what))
        }
        false => Ok(header),
    }
}
