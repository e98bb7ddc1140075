//! Vectors of f64 in safetensors files, written from where they are and read to where they go, in small pieces.

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

/// A vector on its way into a file.
pub(crate) struct Tensor<'a> {
    name: &'static str,
    len: usize,
    value: Box<dyn Fn(usize) -> f64 + 'a>,
}

impl<'a> Tensor<'a> {
    pub(crate) fn new(name: &'static str, len: usize, value: impl Fn(usize) -> f64 + 'a) -> Tensor<'a> {
        Tensor {
            name,
            len,
            value: Box::new(value),
        }
    }

    pub(crate) fn of(name: &'static str, values: &'a [f64]) -> Tensor<'a> {
        Tensor::new(name, values.len(), |i| values[i])
    }
}

/// Writes a safetensors file, the same bytes as the library would.
pub(crate) fn write_tensors(mut tensors: Vec<Tensor>, file: &mut impl Write) -> io::Result<()> {
    tensors.sort_by_key(|tensor| tensor.name);
    let mut offset = 0;
    let infos = tensors.iter().map(|tensor| {
        let start = offset;
        offset += tensor.len * size_of::<f64>();
        let info = TensorInfo {
            dtype: Dtype::F64,
            shape: vec![tensor.len],
            data_offsets: (start, offset),
        };
        (tensor.name.to_string(), info)
    });
    let header = Metadata::new(None, infos.collect()).map_err(io::Error::other)?;
    let mut header = serde_json::to_vec(&header)?;
    header.resize(header.len().next_multiple_of(8), b' ');
    file.write_all(&(header.len() as u64).to_le_bytes())?;
    file.write_all(&header)?;
    let mut bytes = Vec::with_capacity(PIECE_BYTES as usize);
    for tensor in &tensors {
        for start in (0..tensor.len).step_by(PIECE) {
            bytes.clear();
            let piece = start..tensor.len.min(start + PIECE);
            bytes.extend(piece.flat_map(|i| (tensor.value)(i).to_le_bytes()));
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
        if let Some((name, _)) = header.tensors().iter().find(|(_, info)| info.dtype != Dtype::F64) {
            return Err(damaged(&format!("tensor {name:?} is not f64")));
        }
        Ok(TensorFile {
            path: path.into(),
            file,
            header,
            start: 8 + length,
        })
    }

    /// The values of a tensor, if there is one of this name.
    pub(crate) fn len(&self, name: &str) -> Option<usize> {
        let (start, end) = self.header.info(name)?.data_offsets;
        Some((end - start) / size_of::<f64>())
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
            let (values, _) = piece.as_chunks::<8>();
            values.iter().for_each(|value| take(f64::from_le_bytes(*value)));
            at += piece.len();
            // What was read is not read again, and would count against the budget.
            drop_range(&self.file, 0, self.start + at as u64);
        }
        Ok(())
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
