//! Numeric columns as scikit-learn encodes them; `numbers_reference.py` printed the expected values.

use tidegate_data::encode::{Clip, Impute, Number, NumberOptions, NumberScale, ScaleBy};
use tidegate_data::sketch::{Moments, Quantiles};

const NAN: f64 = f64::NAN;
const X: [f64; 12] = [3.5, NAN, -2.0, 8.25, 3.5, 0.0, 100.0, NAN, 4.75, 3.5, -7.5, 12.0];

fn fit(options: &NumberOptions, values: &[f64]) -> Number {
    let (mut moments, mut quantiles) = (Moments::default(), Quantiles::default());
    moments.push_slice(values);
    quantiles.push_slice(values);
    let number = Number::fit(options, &moments, &quantiles, values.len() as u64 - moments.count);
    let text = serde_json::to_string(&number).unwrap();
    assert_eq!(serde_json::from_str::<Number>(&text).unwrap(), number);
    number
}

fn options(scale: ScaleBy, impute: Impute) -> NumberOptions {
    NumberOptions {
        scale,
        impute,
        ..NumberOptions::default()
    }
}

fn check(number: &Number, values: &[f64], expected: &[f32]) {
    let width = number.width().dense;
    let mut out = vec![9.0; values.len() * width];
    number.encode(values, &mut out, width);
    for (row, (x, expected)) in values.iter().zip(expected).enumerate() {
        let found = &out[row * width..][..width];
        assert!(
            (found[0] - expected).abs() < 2e-6,
            "{x}: {} instead of {expected}",
            found[0]
        );
        assert_eq!(found[0], number.value(*x));
        if let Some(flag) = found.get(1) {
            assert_eq!(*flag == 1.0, x.is_nan());
        }
    }
}

#[test]
fn standard_with_the_mean_for_missing() {
    let number = fit(&options(ScaleBy::Standard, Impute::Mean), &X);
    assert!((number.fill - 12.6).abs() < 1e-12 && number.flag_missing);
    let expected = [
        -0.3077412, 0.0, -0.4937387, -0.1471071, -0.3077412, -0.4261033, 2.9556686, 0.0, -0.2654691,
        -0.3077412, -0.6797361, -0.0202906,
    ];
    check(&number, &X, &expected);
    assert_eq!(number.name("age", 1), "age=missing");
}

#[test]
fn range_with_the_median_for_missing() {
    let number = fit(&options(ScaleBy::MinMax, Impute::Median), &X);
    assert_eq!(number.fill, 3.5);
    let expected = [
        0.1023256, 0.1023256, 0.0511628, 0.1465116, 0.1023256, 0.0697674, 1.0, 0.1023256, 0.1139535,
        0.1023256, 0.0, 0.1813953,
    ];
    check(&number, &X, &expected);
}

#[test]
fn clipped_at_quantiles() {
    let clip = NumberOptions {
        clip: Clip::Quantiles(0.1, 0.9),
        flag_missing: Some(false),
        ..options(ScaleBy::MinMax, Impute::Median)
    };
    let number = fit(&clip, &X);
    let (low, high) = number.clip.unwrap();
    assert!((low + 2.55).abs() < 1e-9 && (high - 20.8).abs() < 1e-9);
    assert_eq!(number.width().dense, 1);
    let expected = [
        0.2591006, 0.2591006, 0.0235546, 0.4625268, 0.2591006, 0.1092077, 1.0, 0.2591006, 0.3126338,
        0.2591006, 0.0, 0.6231263,
    ];
    check(&number, &X, &expected);
}

#[test]
fn ranks_between_landmarks() {
    let y: Vec<f64> = (0..1000u32)
        .map(|i| (f64::from(i * 7919 % 1000) / 10.0).powi(2))
        .collect();
    let ranks = fit(&options(ScaleBy::Rank, Impute::Median), &y);
    let at = [-5.0, 0.0, 0.01, 3.7, 50.0, 1234.5, 4900.0, 9980.01, 1e6];
    let expected = [
        0.0, 0.0, 0.0002004, 0.0191635, 0.0707583, 0.3516979, 0.7006984, 1.0, 1.0,
    ];
    for (x, expected) in at.into_iter().zip(expected) {
        // More than 512 distinct values: the ranks are those of a sketch.
        assert!(
            (ranks.value(x) - expected).abs() < 0.006,
            "{x}: {} for {expected}",
            ranks.value(x)
        );
    }

    let mut values = [vec![1.0; 10], vec![2.0; 60], vec![3.0; 20], vec![4.0; 110]].concat();
    values.push(5.0);
    let ranks = fit(&options(ScaleBy::Rank, Impute::Median), &values);
    let at = [0.5, 1.0, 2.0, 2.5, 3.0, 4.0, 5.0];
    check(&ranks, &at, &[0.0, 0.0, 0.1975, 0.3475, 0.3975, 0.7225, 1.0]);
}

#[test]
fn bins_of_equal_weight() {
    let z: Vec<f64> = (0..20).map(f64::from).collect();
    let expected: Vec<f32> = (0..20).map(|i| (i / 5) as f32).collect();
    check(
        &fit(&options(ScaleBy::Bins(4), Impute::Median), &z),
        &z,
        &expected,
    );
}

#[test]
fn columns_without_spread_or_values_stay_finite() {
    for scale in [
        ScaleBy::Keep,
        ScaleBy::Standard,
        ScaleBy::MinMax,
        ScaleBy::Rank,
        ScaleBy::Bins(8),
    ] {
        for values in [&[][..], &[NAN, NAN], &[7.0, 7.0, NAN]] {
            for impute in [Impute::Mean, Impute::Median, Impute::Constant(-1.0)] {
                let number = fit(&options(scale, impute), values);
                for x in [NAN, 7.0, -1e300, 1e300] {
                    assert!(!number.value(x).is_nan(), "{number:?} of {x}");
                }
            }
        }
    }
    let clip = NumberOptions {
        clip: Clip::Values(5.0, 1.0),
        ..options(ScaleBy::Keep, Impute::Constant(9.0))
    };
    let number = fit(&clip, &[2.0]);
    assert_eq!(number.scale, NumberScale::Keep);
    assert_eq!([0.0, 3.0, NAN].map(|x| number.value(x)), [1.0, 3.0, 5.0]);
}
