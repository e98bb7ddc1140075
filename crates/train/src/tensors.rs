//! Tensors in safetensors files, written from where they are and read to where they go, in small pieces.

use std::fs::File;
use std::io::{self, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};
use tidegate_data::pack::drop_range;

use crate::{Error, Result};

/// Values that are on their way at a time.
const PIECE: usize = 1 << 14;
/// What reading or writing holds.
pub(crate) const PIECE_BYTES: u64 = (PIECE * size_of::<f64>()) as u64;
/// The longest header that is read; ours have a few hundred bytes.
const LONGEST_HEADER: u64 = 1 << 20;

/// A tensor on its way into a file.
pub(crate) struct Tensor<'a> {
    name: String,
    shape: Vec<usize>,
    values: Values<'a>,
}

enum Values<'a> {
    F64(Box<dyn Fn(usize) -> f64 + 'a>),
    F32(Box<dyn Fn(usize) -> f32 + 'a>),
    Words(Box<dyn Fn(usize) -> u32 + 'a>),
}

impl<'a> Tensor<'a> {
    /// A vector of f64.
    pub(crate) fn new(name: &str, len: usize, value: impl Fn(usize) -> f64 + 'a) -> Tensor<'a> {
        Tensor {
            name: name.into(),
            shape: vec![len],
            values: Values::F64(Box::new(value)),
        }
    }

    pub(crate) fn of(name: &str, values: &'a [f64]) -> Tensor<'a> {
        Tensor::new(name, values.len(), |i| values[i])
    }

    /// A tensor of f32.
    pub(crate) fn shaped(name: &str, shape: Vec<usize>, value: impl Fn(usize) -> f32 + 'a) -> Tensor<'a> {
        Tensor {
            name: name.into(),
            shape,
            values: Values::F32(Box::new(value)),
        }
    }

    /// A vector of bits, 32 at a time.
    pub(crate) fn words(name: &str, len: usize, word: impl Fn(usize) -> u32 + 'a) -> Tensor<'a> {
        Tensor {
            name: name.into(),
            shape: vec![len],
            values: Values::Words(Box::new(word)),
        }
    }

    fn len(&self) -> usize {
        self.shape.iter().product()
    }

    fn info(&self, start: usize) -> TensorInfo {
        let (dtype, size) = match self.values {
            Values::F64(_) => (Dtype::F64, size_of::<f64>()),
            Values::F32(_) => (Dtype::F32, size_of::<f32>()),
            Values::Words(_) => (Dtype::U32, size_of::<u32>()),
        };
        TensorInfo {
            dtype,
            shape: self.shape.clone(),
            data_offsets: (start, start + self.len() * size),
        }
    }
}

/// Writes a safetensors file, the same bytes as the library would.
pub(crate) fn write_tensors(mut tensors: Vec<Tensor>, file: &mut impl Write) -> io::Result<()> {
    // Wide values first, and by name: every tensor is aligned.
    tensors.sort_by(|a, b| {
        let narrow = |tensor: &Tensor| !matches!(tensor.values, Values::F64(_));
        (narrow(a), &a.name).cmp(&(narrow(b), &b.name))
    });
    let mut offset = 0;
    let infos = tensors.iter().map(|tensor| {
        let info = tensor.info(offset);
        offset = info.data_offsets.1;
        (tensor.name.clone(), info)
    });
    let header = Metadata::new(None, infos.collect()).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut bytes = Vec::with_capacity(PIECE_BYTES as usize);
    for tensor in &tensors {
        for start in (0..tensor.len()).step_by(PIECE) {
            bytes.clear();
            let piece = start..tensor.len().min(start + PIECE);
            match &tensor.values {
                Values::F64(value) => bytes.extend(piece.flat_map(|i| value(i).to_le_bytes())),
                Values::F32(value) => bytes.extend(piece.flat_map(|i| value(i).to_le_bytes())),
                Values::Words(word) => bytes.extend(piece.flat_map(|i| word(i).to_le_bytes())),
            }
            file.write_all(&bytes)?;
        }
    }
    Ok(())
}

/// A file of tensors, of which only the header has been read.
#[derive(Debug)]
pub(crate) struct TensorFile {
    path: PathBuf,
    file: File,
    header: Metadata,
    /// Where the values begin.
    start: u64,
}

impl TensorFile {
    pub(crate) fn open(path: &Path) -> Result<TensorFile> {
        let failed = |source| Error::Read {
            path: path.into(),
            source,
        };
        let damaged = |what: &dyn std::fmt::Display| Error::Damaged {
            path: path.into(),
            what: what.to_string(),
        };
        let file = File::open(path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let mut length = [0; 8];
        if bytes < 8 {
            return Err(damaged(&"it ends within its header"));
        }
        file.read_exact_at(&mut length, 0).map_err(failed)?;
        let length = u64::from_le_bytes(length);
        if length > LONGEST_HEADER || 8 + length > bytes {
            return Err(damaged(&"it ends within its header"));
        }
        let mut header = vec![0; length as usize];
        file.read_exact_at(&mut header, 8).map_err(failed)?;
        let header: Metadata = serde_json::from_slice(&header).map_err(|error| damaged(&error))?;
        if 8 + length + header.data_len() as u64 != bytes {
            return Err(damaged(&"it is not as long as its header says"));
        }
        // Tensors of other types may stand beside those that are asked for.
        Ok(TensorFile {
            path: path.into(),
            file,
            header,
            start: 8 + length,
        })
    }

    /// The names of all tensors.
    pub(crate) fn names(&self) -> Vec<String> {
        self.header.tensors().into_keys().collect()
    }

    /// The shape of a tensor of floating point numbers, if there is one of this name.
    pub(crate) fn shape(&self, name: &str) -> Option<&[usize]> {
        let info = self.header.info(name)?;
        width(info.dtype).map(|_| info.shape.as_slice())
    }

    /// The values of a tensor of floating point numbers, if there is one of this name.
    pub(crate) fn len(&self, name: &str) -> Option<usize> {
        let info = self.header.info(name)?;
        let (start, end) = info.data_offsets;
        width(info.dtype).map(|width| (end - start) / width)
    }

    /// The words of a tensor of bits, if there is one of this name.
    pub(crate) fn n_words(&self, name: &str) -> Option<usize> {
        let info = self.header.info(name).filter(|info| info.dtype == Dtype::U32)?;
        Some((info.data_offsets.1 - info.data_offsets.0) / size_of::<u32>())
    }

    /// Hands out the values of a tensor in order.
    pub(crate) fn read(&self, name: &str, mut take: impl FnMut(f64)) -> Result<()> {
        let Some(info) = self.header.info(name) else {
            return Ok(());
        };
        let (mut at, end) = info.data_offsets;
        let mut bytes = vec![0; PIECE_BYTES as usize];
        while at < end {
            let piece = &mut bytes[..(end - at).min(PIECE_BYTES as usize)];
            let read = self.file.read_exact_at(piece, self.start + at as u64);
            read.map_err(|source| Error::Read {
                path: self.path.clone(),
                source,
            })?;
            match info.dtype {
                Dtype::F64 => each(piece, |value| take(f64::from_le_bytes(value))),
                Dtype::F32 => each(piece, |value| take(f64::from(f32::from_le_bytes(value)))),
                // A word is a value, too, and no bit of it is lost.
                Dtype::U32 => each(piece, |word| take(f64::from(u32::from_le_bytes(word)))),
                Dtype::F16 => each(piece, |value| take(f64::from(half(u16::from_le_bytes(value))))),
                Dtype::BF16 => each(piece, |value| {
                    take(f64::from(f32::from_bits(
                        u32::from(u16::from_le_bytes(value)) << 16,
                    )));
                }),
                _ => {}
            }
            at += piece.len();
            // What was read is not read again, and would count against the budget.
            drop_range(&self.file, 0, self.start + at as u64);
        }
        Ok(())
    }
}

fn each<const N: usize>(bytes: &[u8], take: impl FnMut([u8; N])) {
    let (values, _) = bytes.as_chunks::<N>();
    values.iter().copied().for_each(take);
}

/// The bytes of a floating point number.
fn width(dtype: Dtype) -> Option<usize> {
    match dtype {
        Dtype::F64 => Some(8),
        Dtype::F32 => Some(4),
        Dtype::F16 | Dtype::BF16 => Some(2),
        _ => None,
    }
}

/// A float of 16 bits: one for the sign, 5 for the exponent, 10 for the fraction.
fn half(bits: u16) -> f32 {
    let sign = if bits >> 15 == 1 { -1.0 } else { 1.0 };
    let (exponent, fraction) = (i32::from(bits >> 10 & 0x1f), f32::from(bits & 0x3ff));
    match exponent {
        0 => sign * fraction * 2f32.powi(-24),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1.0 + fraction / 1024.0) * 2f32.powi(exponent - 15),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::borrow::Cow;
    use std::fs;

    struct Column(Vec<u8>, [usize; 1]);

    impl safetensors::View for &Column {
        fn dtype(&self) -> Dtype {
            Dtype::F64
        }
        fn shape(&self) -> &[usize] {
            &self.1
        }
        fn data(&self) -> Cow<'_, [u8]> {
            (&self.0).into()
        }
        fn data_len(&self) -> usize {
            self.0.len()
        }
    }

    #[test]
    fn files_are_what_the_library_writes() {
        let temp = tempfile::tempdir().unwrap();
        let path = temp.path().join("t.safetensors");
        let long: Vec<f64> = (0..2 * PIECE + 5).map(|i| (i as f64).sqrt()).collect();
        let tensors = [
            ("weights", long.as_slice()),
            ("bias", &[f64::NAN, -0.0]),
            ("none", &[]),
        ];
        let ours = tensors.iter().map(|(name, values)| Tensor::of(name, values));
        write_tensors(ours.collect(), &mut File::create(&path).unwrap()).unwrap();
        let columns = tensors.map(|(name, values)| {
            let bytes = values.iter().flat_map(|value| value.to_le_bytes());
            (name, Column(bytes.collect(), [values.len()]))
        });
        let views = columns.iter().map(|(name, column)| (name, column));
        assert_eq!(
            fs::read(&path).unwrap(),
            safetensors::serialize(views, None).unwrap()
        );

        let file = TensorFile::open(&path).unwrap();
        for (name, values) in tensors {
            let mut found = Vec::new();
            file.read(name, |value| found.push(value.to_bits())).unwrap();
            assert_eq!(file.len(name), Some(values.len()));
            assert!(
                found
                    .iter()
                    .copied()
                    .eq(values.iter().map(|value| value.to_bits()))
            );
        }
        assert_eq!(file.len("other"), None);
    }
}
