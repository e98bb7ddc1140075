//! Tiles make what taps make.

use super::super::correlate::backward;
use super::*;
use proptest::prelude::*;

fn values(n: usize, seed: u32) -> Vec<f32> {
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    (0..n).map(|_| next()).collect()
}

fn near(found: &[f32], expected: &[f32]) -> Result<(), TestCaseError> {
    let size = expected.iter().fold(0.0f32, |size, value| size.max(value.abs()));
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        prop_assert!(
            (found - expected).abs() <= 8e-6 * size,
            "{i}: {found}, not {expected}"
        );
    }
    Ok(())
}

/// Both ways to make an output, and to sum up the weights' gradient.
fn check(correlation: &Correlation, seed: u32) -> Result<(), TestCaseError> {
    let winograd = Winograd::of(correlation).expect("a way by tiles");
    let source = values(correlation.rows.source * correlation.source_row, seed);
    let weights = values(correlation.weights() + OVERREAD, seed + 1);
    let slope = values(correlation.rows.n * correlation.out_row + OVERREAD, seed + 2);
    let bias = values(correlation.width, seed + 3);
    let start = values(slope.len(), seed + 4);
    let mut turned = vec![0.0; winograd.weights_len() + OVERREAD];
    winograd.turn_weights(&weights, &mut turned);
    let mut scratch = vec![f32::NAN; winograd.scratch_len()];
    for (name, mut expected) in [
        ("zero", vec![0.0; start.len()]),
        ("bias", bias.repeat(start.len() / bias.len() + 1)),
        ("added", start.clone()),
    ] {
        let mut found = start.clone();
        // SAFETY: the buffers are as large as the shapes say.
        unsafe {
            correlation.add(
                0..correlation.rows.n,
                expected.as_mut_ptr(),
                source.as_ptr(),
                weights.as_ptr(),
            );
            for strip in 0..winograd.n_strips() {
                let rows = winograd.rows_of(strip);
                let out = &mut found[rows.start * correlation.out_row..rows.end * correlation.out_row];
                let start = match name {
                    "zero" => Start::Zero,
                    "bias" => Start::Bias(&bias),
                    _ => Start::Added,
                };
                winograd.make(strip, &source, turned.as_ptr(), &mut scratch, start, out);
            }
        }
        let len = correlation.rows.n * correlation.out_row;
        near(&found[..len], &expected[..len])?;
    }
    let mut expected = vec![0.0; correlation.weights()];
    let mut sums = vec![0.0; winograd.weights_len()];
    for strip in 0..winograd.n_strips() {
        winograd.add_weights(strip, &source, &slope, &mut scratch, &mut sums);
    }
    let mut found = vec![0.0; correlation.weights()];
    winograd.add_turned_weights(&sums, &mut found);
    // SAFETY: as above.
    unsafe {
        correlation.add_weights(
            0..correlation.rows.n,
            expected.as_mut_ptr(),
            slope.as_ptr(),
            source.as_ptr(),
        )
    };
    near(&found, &expected)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn tiles_make_what_taps_make(
        (rows, cols) in (8usize..23, 8usize..40),
        (channels, width) in (1usize..4, 1usize..6),
        padding in 0usize..3,
        seed in any::<u32>(),
    ) {
        let (channels, width) = (channels * LANES, width * LANES);
        let source = [rows + 2 - 2 * padding, cols + 2 - 2 * padding];
        let axis = |n: usize, source: usize| Axis { n, source, step: 1, offset: -(padding as isize), taps: 3, dilation: 1 };
        let forward = Correlation {
            rows: axis(rows, source[0]),
            cols: axis(cols, source[1]),
            channels,
            width,
            source_row: source[1] * channels,
            source_col: channels,
            out_row: cols * width,
            out_col: width,
        };
        check(&forward, seed)?;
        for phase in backward(&forward) {
            if Winograd::of(&phase.correlation).is_some() {
                check(&phase.correlation, seed)?;
            }
        }
    }
}
