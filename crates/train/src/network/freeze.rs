//! Layers that stay as they are.

use super::layer::{Kind, Layer};
use crate::{Error, Result};

/// Freezes the layers whose name is one of these or begins with it, as `layer1` does with `layer1.0.conv1`; without a name,
/// a layer goes by its place. Names that are no layer's are an error.
pub fn freeze(layers: &mut [Layer], names: &[String]) -> Result<()> {
    let mut missed = names.to_vec();
    freeze_within(layers, names, "", &mut missed);
    match missed.is_empty() {
        true => Ok(()),
        false => Err(Error::NothingToFreeze { names: missed }),
    }
}

fn freeze_within(layers: &mut [Layer], names: &[String], path: &str, missed: &mut Vec<String>) {
    for (i, layer) in layers.iter_mut().enumerate() {
        let place = layer.name.clone().unwrap_or_else(|| format!("{path}{i}"));
        let is_meant = |name: &&String| {
            let rest = place.strip_prefix(name.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        if let Some(name) = names.iter().find(is_meant) {
            freeze_all(layer);
            missed.retain(|other| other != name);
        } else if let Kind::Residual(residual) = &mut layer.kind {
            freeze_within(&mut residual.main, names, &format!("{place}.residual."), missed);
            freeze_within(
                &mut residual.shortcut,
                names,
                &format!("{place}.shortcut."),
                missed,
            );
        }
    }
}

fn freeze_all(layer: &mut Layer) {
    layer.frozen = true;
    if let Kind::Residual(residual) = &mut layer.kind {
        residual.main.iter_mut().for_each(freeze_all);
        residual.shortcut.iter_mut().for_each(freeze_all);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Preset, Shape};
    use super::*;

    #[test]
    fn layers_are_frozen_by_name_with_all_that_is_in_them() {
        let mut layers = Preset::Resnet18.layers(&Shape(vec![64, 64, 3]));
        let names = |names: &[&str]| names.iter().map(|name| name.to_string()).collect::<Vec<_>>();
        freeze(&mut layers, &names(&["conv1", "layer1", "layer2.0.conv1"])).unwrap();
        let text = serde_json::to_string(&layers).unwrap();
        // conv1, two blocks of four with themselves, and the one.
        assert_eq!(text.matches("\"frozen\":true").count(), 1 + 2 * 5 + 1);
        assert!(layers[0].frozen && !layers[1].frozen);
        let error = freeze(&mut layers, &names(&["layer", "fc"])).unwrap_err();
        assert_eq!(
            error.to_string(),
            "the layers to freeze are not in the network: layer"
        );
    }
}
