//! Elements of an array: how many bytes each takes, and what number it stands for.

use std::fmt;

use serde::{Deserialize, Serialize};

// Arrays are kept in memory in the order of bytes of the machine.
const _: () = assert!(cfg!(target_endian = "little"));

/// The type of a number in an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Element {
    Bool,
    U8,
    I8,
    U16,
    I16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
}

impl Element {
    pub fn bytes(self) -> usize {
        match self {
            Element::Bool | Element::U8 | Element::I8 => 1,
            Element::U16 | Element::I16 | Element::F16 => 2,
            Element::U32 | Element::I32 | Element::F32 => 4,
            Element::U64 | Element::I64 | Element::F64 => 8,
        }
    }

    /// As NumPy calls it.
    pub fn name(self) -> &'static str {
        match self {
            Element::Bool => "bool",
            Element::U8 => "uint8",
            Element::I8 => "int8",
            Element::U16 => "uint16",
            Element::I16 => "int16",
            Element::U32 => "uint32",
            Element::I32 => "int32",
            Element::U64 => "uint64",
            Element::I64 => "int64",
            Element::F16 => "float16",
            Element::F32 => "float32",
            Element::F64 => "float64",
        }
    }

    pub fn is_float(self) -> bool {
        matches!(self, Element::F16 | Element::F32 | Element::F64)
    }

    /// Numbers as they stand in `bytes`, as far as they and `into` go. Loops over fixed sizes, which the compiler turns
    /// into vector instructions.
    pub(crate) fn write_f32(self, bytes: &[u8], into: &mut [f32]) {
        match self {
            Element::Bool => each(bytes, into, |[byte]: [u8; 1]| f32::from(u8::from(byte != 0))),
            Element::U8 => each(bytes, into, |[byte]: [u8; 1]| f32::from(byte)),
            Element::I8 => each(bytes, into, |[byte]: [u8; 1]| f32::from(byte as i8)),
            Element::U16 => each(bytes, into, |bytes| f32::from(u16::from_le_bytes(bytes))),
            Element::I16 => each(bytes, into, |bytes| f32::from(i16::from_le_bytes(bytes))),
            Element::U32 => each(bytes, into, |bytes| u32::from_le_bytes(bytes) as f32),
            Element::I32 => each(bytes, into, |bytes| i32::from_le_bytes(bytes) as f32),
            Element::U64 => each(bytes, into, |bytes| u64::from_le_bytes(bytes) as f32),
            Element::I64 => each(bytes, into, |bytes| i64::from_le_bytes(bytes) as f32),
            Element::F16 => each(bytes, into, |bytes| half(u16::from_le_bytes(bytes))),
            Element::F32 => each(bytes, into, f32::from_le_bytes),
            Element::F64 => each(bytes, into, |bytes| f64::from_le_bytes(bytes) as f32),
        }
    }

    /// The one number in `bytes`.
    pub(crate) fn value(self, bytes: &[u8]) -> Value {
        fn of<const N: usize>(bytes: &[u8]) -> [u8; N] {
            bytes.first_chunk().copied().unwrap_or([0; N])
        }
        match self {
            Element::Bool => Value::Bool(bytes.first().is_some_and(|byte| *byte != 0)),
            Element::U8 => Value::Integer(u8::from_le_bytes(of(bytes)).into()),
            Element::I8 => Value::Integer(i8::from_le_bytes(of(bytes)).into()),
            Element::U16 => Value::Integer(u16::from_le_bytes(of(bytes)).into()),
            Element::I16 => Value::Integer(i16::from_le_bytes(of(bytes)).into()),
            Element::U32 => Value::Integer(u32::from_le_bytes(of(bytes)).into()),
            Element::I32 => Value::Integer(i32::from_le_bytes(of(bytes)).into()),
            Element::U64 => Value::Integer(u64::from_le_bytes(of(bytes)).into()),
            Element::I64 => Value::Integer(i64::from_le_bytes(of(bytes)).into()),
            Element::F16 => Value::Float(half(u16::from_le_bytes(of(bytes))).into()),
            Element::F32 => Value::Float(f32::from_le_bytes(of(bytes)).into()),
            Element::F64 => Value::Float(f64::from_le_bytes(of(bytes))),
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A number of an array with nothing lost of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Value {
    Bool(bool),
    /// Wide enough for all of `u64` and `i64`.
    Integer(i128),
    Float(f64),
}

impl Value {
    pub(crate) fn number(self) -> f64 {
        match self {
            Value::Bool(value) => f64::from(u8::from(value)),
            Value::Integer(value) => value as f64,
            Value::Float(value) => value,
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Bool(value) => write!(f, "{value}"),
            Value::Integer(value) => write!(f, "{value}"),
            Value::Float(value) => write!(f, "{value}"),
        }
    }
}

#[inline(always)]
fn each<const N: usize>(bytes: &[u8], into: &mut [f32], number: impl Fn([u8; N]) -> f32) {
    let (values, _) = bytes.as_chunks::<N>();
    for (into, value) in into.iter_mut().zip(values) {
        *into = number(*value);
    }
}

/// A half-precision number (IEEE 754 binary16), which single precision holds exactly. Without branches.
#[inline(always)]
fn half(bits: u16) -> f32 {
    let (sign, rest) = (u32::from(bits & 0x8000) << 16, u32::from(bits & 0x7fff) << 13);
    // The exponent moves from a bias of 15 to one of 127; infinities and NaN keep theirs at the top.
    let normal = rest + (112 << 23);
    let infinite = rest | 0x7f80_0000;
    // What is smaller than 2^-14 has no leading one: 2^-14 is put before it and taken away again.
    let small = (f32::from_bits(rest + (113 << 23)) - f32::from_bits(113 << 23)).to_bits();
    let exponent = bits & 0x7c00;
    let magnitude = if exponent == 0x7c00 { infinite } else { normal };
    let magnitude = if exponent == 0 { small } else { magnitude };
    f32::from_bits(sign | magnitude)
}

/// Turns numbers of `width` bytes around: from the other order of bytes into that of the machine.
pub(crate) fn swap_bytes(bytes: &mut [u8], width: usize) {
    fn each<const N: usize>(bytes: &mut [u8]) {
        bytes
            .as_chunks_mut::<N>()
            .0
            .iter_mut()
            .for_each(|value| value.reverse());
    }
    match width {
        2 => each::<2>(bytes),
        4 => each::<4>(bytes),
        8 => each::<8>(bytes),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_half_number_is_what_its_bits_say() {
        for bits in 0..=u16::MAX {
            let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023));
            let magnitude = match exponent {
                0 => fraction * 2f64.powi(-24),
                31 if fraction == 0.0 => f64::INFINITY,
                31 => f64::NAN,
                _ => (1.0 + fraction / 1024.0) * 2f64.powi(exponent - 15),
            };
            let expected = if bits & 0x8000 == 0 { magnitude } else { -magnitude };
            let found = f64::from(half(bits));
            assert!(
                found == expected && found.is_sign_negative() == expected.is_sign_negative()
                    || found.is_nan() && expected.is_nan(),
                "{bits:#06x}: {found} and not {expected}"
            );
        }
    }

    #[test]
    fn numbers_of_every_type_become_floats() {
        let check = |element: Element, bytes: &[u8], expected: &[f32]| {
            let mut found = vec![f32::NAN; expected.len()];
            element.write_f32(bytes, &mut found);
            assert_eq!(found, expected, "{element}");
            let first = element.value(&bytes[..element.bytes()]);
            assert_eq!(first.number() as f32, expected[0], "{element}");
        };
        check(Element::Bool, &[1, 0, 2], &[1.0, 0.0, 1.0]);
        check(Element::U8, &[200, 0, 255], &[200.0, 0.0, 255.0]);
        check(Element::I8, &[200, 1], &[-56.0, 1.0]);
        check(Element::U16, &[0xff, 0xff, 1, 0], &[65_535.0, 1.0]);
        check(Element::I16, &[0xff, 0xff], &[-1.0]);
        check(Element::U32, &u32::MAX.to_le_bytes(), &[u32::MAX as f32]);
        check(Element::I32, &i32::MIN.to_le_bytes(), &[i32::MIN as f32]);
        check(Element::U64, &u64::MAX.to_le_bytes(), &[u64::MAX as f32]);
        check(Element::I64, &(-5i64).to_le_bytes(), &[-5.0]);
        check(Element::F16, &0x3e00u16.to_le_bytes(), &[1.5]);
        check(Element::F32, &1.25f32.to_le_bytes(), &[1.25]);
        check(Element::F64, &(-0.5f64).to_le_bytes(), &[-0.5]);
    }

    #[test]
    fn bytes_are_turned_around_number_by_number() {
        let mut bytes = [1, 2, 3, 4, 5, 6, 7, 8];
        swap_bytes(&mut bytes, 4);
        assert_eq!(bytes, [4, 3, 2, 1, 8, 7, 6, 5]);
        swap_bytes(&mut bytes, 2);
        assert_eq!(bytes, [3, 4, 1, 2, 7, 8, 5, 6]);
        swap_bytes(&mut bytes, 1);
        assert_eq!(bytes, [3, 4, 1, 2, 7, 8, 5, 6]);
    }
}
