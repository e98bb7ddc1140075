//! Where a training is, on disk: numbers as tensors, everything else as JSON.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use safetensors::{Dtype, SafeTensors, View};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::write::{present, replace_folder};
use crate::{Error, Result};

const VERSION: u32 = 1;
const STATE: &str = "state.json";
const TENSORS: &str = "tensors.safetensors";

/// A checkpoint in memory. Floating point state is kept bit for bit.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Checkpoint {
    /// What is not a tensor, as JSON.
    pub state: serde_json::Value,
    pub tensors: BTreeMap<String, Vec<f64>>,
}

impl Checkpoint {
    pub fn new(state: &impl Serialize) -> Checkpoint {
        let state = serde_json::to_value(state).expect("state is plain data");
        Checkpoint {
            state,
            tensors: BTreeMap::new(),
        }
    }

    pub fn with(mut self, name: &str, values: &[f64]) -> Checkpoint {
        self.tensors.insert(name.into(), values.to_vec());
        self
    }

    /// Puts the checkpoint in the place of the one in `folder`, whole or not at all.
    pub fn save(&self, folder: &Path) -> Result<()> {
        let state = serde_json::json!({ "version": VERSION, "state": self.state });
        replace_folder(folder, |new| {
            new.write(STATE, state.to_string().as_bytes())?;
            new.write(TENSORS, &tensor_bytes(&self.tensors))
        })
    }

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
        let tensors = read_tensors(&folder.join(TENSORS))?;
        Ok(Checkpoint {
            state: state["state"].take(),
            tensors,
        })
    }

    /// The JSON part as its type.
    pub fn state<T: DeserializeOwned>(&self) -> Result<T> {
        T::deserialize(&self.state).map_err(|_| Error::OtherCheckpoint {
            what: "model or version",
        })
    }

    /// A tensor of a known length.
    pub fn tensor(&self, name: &str, len: usize) -> Result<Vec<f64>> {
        match self.tensors.get(name) {
            Some(values) if values.len() == len => Ok(values.clone()),
            _ => Err(Error::OtherCheckpoint {
                what: "set of columns",
            }),
        }
    }
}

/// One vector on its way into a file.
struct Column<'a> {
    values: &'a [f64],
    len: usize,
}

impl View for Column<'_> {
    fn dtype(&self) -> Dtype {
        Dtype::F64
    }
    fn shape(&self) -> &[usize] {
        std::slice::from_ref(&self.len)
    }
    fn data(&self) -> std::borrow::Cow<'_, [u8]> {
        self.values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect::<Vec<u8>>()
            .into()
    }
    fn data_len(&self) -> usize {
        size_of_val(self.values)
    }
}

/// Named vectors of f64 as a safetensors file.
pub(crate) fn tensor_bytes(tensors: &BTreeMap<String, Vec<f64>>) -> Vec<u8> {
    let views = tensors.iter().map(|(name, values)| {
        (
            name,
            Column {
                values,
                len: values.len(),
            },
        )
    });
    safetensors::serialize(views, None).expect("one-dimensional f64 tensors serialize")
}

pub(crate) fn read_tensors(path: &Path) -> Result<BTreeMap<String, Vec<f64>>> {
    let damaged = |what: String| Error::Damaged {
        path: path.into(),
        what,
    };
    let bytes = fs::read(path).map_err(|source| Error::Read {
        path: path.into(),
        source,
    })?;
    let file = SafeTensors::deserialize(&bytes).map_err(|error| damaged(error.to_string()))?;
    let mut tensors = BTreeMap::new();
    for (name, view) in file.iter() {
        if view.dtype() != Dtype::F64 {
            return Err(damaged(format!("tensor {name:?} is not f64")));
        }
        let values = view
            .data()
            .chunks_exact(8)
            .map(|b| f64::from_le_bytes(b.try_into().expect("8 bytes")));
        tensors.insert(name.to_string(), values.collect());
    }
    Ok(tensors)
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
            let checkpoint = Checkpoint::new(&serde_json::json!({ "epoch": 3 })).with("w", &values);
            checkpoint.save(&folder).unwrap();
            let loaded = Checkpoint::load(&folder).unwrap();
            let bits = |values: &[f64]| values.iter().map(|v| v.to_bits()).collect::<Vec<_>>();
            prop_assert_eq!(bits(&loaded.tensors["w"]), bits(&values));
            prop_assert_eq!(loaded.state, checkpoint.state);
        }

        #[test]
        fn damaged_files_are_refused(cut in 0usize..200, flip in any::<u8>()) {
            let temp = tempfile::tempdir().unwrap();
            let folder = temp.path().join("checkpoint");
            Checkpoint::new(&1).with("w", &[1.0, 2.0]).save(&folder).unwrap();
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
