//! Reading `forest.json`: a forest without a fault leads every row to a leaf.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tidegate_train::boost::{Forest, to_xgboost};

/// Rows of more numbers than this only take time.
const MOST_FEATURES: usize = 1 << 16;

fuzz_target!(|bytes: &[u8]| {
    let Ok(forest) = serde_json::from_slice::<Forest>(bytes) else {
        return;
    };
    if forest.fault().is_none() && forest.features.len() <= MOST_FEATURES {
        let mut scores = vec![0.0; forest.n_outputs()];
        for value in [0.0, f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
            forest.scores(&vec![value; forest.features.len()], &mut scores);
        }
        let _ = (forest.importance(), to_xgboost(&forest));
    }
});
