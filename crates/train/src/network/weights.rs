//! Weights from elsewhere: a safetensors file whose tensors have the names and shapes of the network's.

use std::path::Path;

use super::machine::Machine;
use crate::tensors::TensorFile;
use crate::{Error, Result};

/// Sets all tensors that the file has; says what was taken and what not. The outputs may be for other classes: tensors of
/// another shape stay as they start, where no later layer has one that fits.
pub(super) fn start_from(machine: &mut Machine, path: &Path) -> Result<String> {
    let file = TensorFile::open(path)?;
    let tensors: Vec<(String, Vec<usize>)> = machine
        .tensors()
        .map(|(name, shape, _)| (name.to_string(), shape))
        .collect();
    let fits = |(name, shape): &(String, Vec<usize>)| file.shape(name) == Some(shape.as_slice());
    let last_layer = tensors.last().map(|(name, _)| layer_of(name).to_string());
    let wrong = tensors.iter().find(|tensor| {
        let other = file.shape(&tensor.0).is_some() && !fits(tensor);
        other && last_layer.as_deref() != Some(layer_of(&tensor.0))
    });
    if let Some((name, shape)) = wrong {
        return Err(Error::OtherWeights {
            path: path.into(),
            name: name.clone(),
            found: file.shape(name).unwrap_or_default().to_vec(),
            needed: shape.clone(),
        });
    }
    let mut taken = 0;
    for (name, shape) in tensors.iter().filter(|tensor| fits(tensor)) {
        if let Some(mut put) = machine.putter(name, shape.iter().product()) {
            file.read(name, |value| put(value as f32))?;
            taken += 1;
        }
    }
    if taken == 0 {
        let mut names = file.names();
        names.sort();
        names.truncate(4);
        return Err(Error::NoWeights {
            path: path.into(),
            has: names,
            needs: tensors.into_iter().map(|(name, _)| name).take(4).collect(),
        });
    }
    let new: Vec<&str> = tensors
        .iter()
        .filter(|tensor| !fits(tensor))
        .map(|(name, _)| name.as_str())
        .collect();
    let from = path.display();
    Ok(match new.as_slice() {
        [] => format!("all {taken} tensors start from {from}"),
        few if few.len() <= 4 => {
            format!("{taken} tensors start from {from}; new are {}", few.join(", "))
        }
        many => format!(
            "{taken} tensors start from {from}; new are {} others, the first {}",
            many.len(),
            many[0]
        ),
    })
}

fn layer_of(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(layer, _)| layer)
}
