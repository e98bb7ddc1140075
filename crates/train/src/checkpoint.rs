//! Where a training is, on disk: numbers as tensors, everything else as JSON.

use std::fs;
use std::path::Path;

use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::tensors::{Tensor, TensorFile, write_tensors};
use crate::write::{present, replace_folder};
use crate::{Error, Result};

const VERSION: u32 = 1;
const STATE: &str = "state.json";
const TENSORS: &str = "tensors.safetensors";

/// A checkpoint on its way to disk: tensors are written from where they are.
pub(crate) struct Draft<'a> {
    /// What is not a tensor, as JSON.
    state: serde_json::Value,
    tensors: Vec<Tensor<'a>>,
}

impl<'a> Draft<'a> {
    pub(crate) fn new(state: &impl Serialize) -> Draft<'a> {
        let state = serde_json::to_value(state).expect("state is plain data");
        Draft {
            state,
            tensors: Vec::new(),
        }
    }

    pub(crate) fn with(self, name: &'static str, values: &'a [f64]) -> Draft<'a> {
        self.with_tensor(Tensor::of(name, values))
    }

    pub(crate) fn with_tensor(mut self, tensor: Tensor<'a>) -> Draft<'a> {
        self.tensors.push(tensor);
        self
    }

    /// Puts the checkpoint in the place of the one in `folder`, whole or not at all.
    pub(crate) fn save(self, folder: &Path) -> Result<()> {
        let state = serde_json::json!({ "version": VERSION, "state": self.state });
        replace_folder(folder, |new| {
            new.write(STATE, state.to_string().as_bytes())?;
            new.write_with(TENSORS, |file| write_tensors(self.tensors, file))
        })
    }
}

/// A checkpoint on disk. Its tensors stay there until they are asked for, even where it is replaced meanwhile.
#[derive(Debug)]
pub struct Checkpoint {
    /// What is not a tensor, as JSON.
    pub state: serde_json::Value,
    tensors: TensorFile,
}

impl Checkpoint {
    pub fn load(folder: &Path) -> Result<Checkpoint> {
        let folder = present(folder);
        let path = folder.join(STATE);
        let text = fs::read(&path).map_err(|source| Error::Read {
            path: path.clone(),
            source,
        })?;
        let damaged = |what: &dyn std::fmt::Display| Error::Damaged {
            path: path.clone(),
            what: what.to_string(),
        };
        let mut state: serde_json::Value = serde_json::from_slice(&text).map_err(|error| damaged(&error))?;
        match state["version"].as_u64() {
            Some(version) if version == u64::from(VERSION) => {}
            Some(version) => {
                return Err(Error::Newer {
                    path,
                    found: version as u32,
                    known: VERSION,
                });
            }
            None => return Err(damaged(&"it has no version")),
        }
        Ok(Checkpoint {
            state: state["state"].take(),
            tensors: TensorFile::open(&folder.join(TENSORS))?,
        })
    }

    /// The JSON part as its type.
    pub(crate) fn state<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.state).map_err(|_| Error::OtherCheckpoint {
            what: "model or version",
        })
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.len(name).is_some()
    }

    /// The length of a tensor, where it has one of that name.
    pub(crate) fn len(&self, name: &str) -> Option<usize> {
        self.tensors.len(name)
    }

    /// A tensor of a known length.
    pub(crate) fn tensor(&self, name: &str, len: usize) -> Result<Vec<f64>> {
        self.tensor_as(name, len, |value| value)
    }

    /// Fills a slice from a tensor of its length.
    pub(crate) fn fill(&self, name: &str, into: &mut [f32]) -> Result<()> {
        if self.tensors.len(name) != Some(into.len()) {
            return Err(Error::OtherCheckpoint { what: "network" });
        }
        let mut places = into.iter_mut();
        self.tensors.read(name, |value| {
            if let Some(place) = places.next() {
                *place = value as f32;
            }
        })
    }

    /// Fills a slice with the bits of a tensor of its length, whether they are numbers or not.
    pub(crate) fn fill_words(&self, name: &str, into: &mut [f32]) -> Result<()> {
        if self.tensors.n_words(name) != Some(into.len()) {
            return Err(Error::OtherCheckpoint { what: "network" });
        }
        let mut places = into.iter_mut();
        self.tensors.read(name, |word| {
            if let Some(place) = places.next() {
                *place = f32::from_bits(word as u32);
            }
        })
    }

    /// A tensor of a known length, each of its values made into something of the same size.
    pub(crate) fn tensor_as<T>(&self, name: &str, len: usize, make: impl Fn(f64) -> T) -> Result<Vec<T>> {
        if self.tensors.len(name) != Some(len) {
            return Err(Error::OtherCheckpoint {
                what: "set of columns",
            });
        }
        let mut values = Vec::with_capacity(len);
        self.tensors.read(name, |value| values.push(make(value)))?;
        Ok(values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20))]
        #[test]
        fn what_was_saved_comes_back_bit_for_bit(values in proptest::collection::vec(any::<u64>().prop_map(f64::from_bits), 0..50)) {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join("checkpoint");
            let state = serde_json::json!({ "epoch": 3 });
            Draft::new(&state).with("w", &values).save(&folder).unwrap();
            let loaded = Checkpoint::load(&folder).unwrap();
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&loaded.tensor("w", values.len()).unwrap()), bits(&values));
            prop_assert_eq!(loaded.state, state);
        }

        #[test]
        fn damaged_files_are_refused(cut in 0usize..200, flip in any::<u8>()) {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join("checkpoint");
            Draft::new(&1).with("w", &[1.0, 2.0]).save(&folder).unwrap();
            let path = folder.join(TENSORS);
            let mut bytes = fs::read(&path).unwrap();
            let at = cut % bytes.len();
            bytes[at] ^= flip;
            bytes.truncate(at + 1);
            fs::write(&path, bytes).unwrap();
            // Never a panic; a cut file is never taken for whole.
            prop_assert!(Checkpoint::load(&folder).is_err() || at + 1 >= 80);
        }
    }
}
