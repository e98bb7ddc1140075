//! The header of IDX, the format of MNIST: two zeros, a type, the number of axes, and their lengths.
//!
//! See "THE IDX FILE FORMAT" on the page of MNIST, <http://yann.lecun.com/exdb/mnist/>.

use super::element::Element;
use super::header::{Fault, Header, Holds};

pub(super) fn is_idx(bytes: &[u8]) -> bool {
    matches!(bytes, [0, 0, code, axes, ..] if element(*code).is_some() && *axes > 0)
}

/// The header at the beginning of `bytes`, which may not hold all of it.
pub(super) fn parse(bytes: &[u8]) -> Result<Header, Fault> {
    let Some(&[0, 0, code, axes]) = bytes.first_chunk() else {
        return Err(Fault::Other);
    };
    let Some(element) = element(code) else {
        return Err(Fault::Broken("IDX", format!("{code:#04x} is no type of number")));
    };
    let end = 4 + 4 * usize::from(axes);
    let Some(lengths) = bytes.get(4..end) else {
        return Err(Fault::LongerThan(end));
    };
    let lengths = lengths.as_chunks::<4>().0.iter();
    Ok(Header {
        holds: Holds::Number(element),
        big_endian: true,
        shape: lengths
            .map(|length| u32::from_be_bytes(*length) as usize)
            .collect(),
        data_at: end as u64,
    })
}

fn element(code: u8) -> Option<Element> {
    Some(match code {
        0x08 => Element::U8,
        0x09 => Element::I8,
        0x0b => Element::I16,
        0x0c => Element::I32,
        0x0d => Element::F32,
        0x0e => Element::F64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_of_mnist_is_read() {
        let bytes = [0, 0, 8, 3, 0, 0, 0xea, 0x60, 0, 0, 0, 28, 0, 0, 0, 28, 7, 7];
        assert!(is_idx(&bytes));
        let header = parse(&bytes).unwrap();
        assert_eq!(header.shape, [60_000, 28, 28]);
        assert_eq!((header.data_at, header.holds), (16, Holds::Number(Element::U8)));
        assert_eq!(parse(&bytes[..9]), Err(Fault::LongerThan(16)));
    }

    #[test]
    fn other_bytes_are_no_header() {
        for bytes in [&b""[..], &[0, 0, 8], &[0, 0, 7, 1], &[0, 1, 8, 1], &[0, 0, 8, 0]] {
            assert!(!is_idx(bytes), "{bytes:?}");
        }
    }
}
