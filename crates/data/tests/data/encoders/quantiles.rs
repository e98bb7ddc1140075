//! Ranks within their bound on every shape of data, and cuts that split it evenly.

use proptest::prelude::*;
use tidegate_data::sketch::Quantiles;
use tidegate_data::sketch::hash::hash;

/// Four standard errors of at most 0.08%.
const BOUND: f64 = 0.003;

fn of(values: &[f64]) -> Quantiles {
    let mut quantiles = Quantiles::default();
    quantiles.push_slice(values);
    quantiles
}

/// A number from 0 to 1 that depends on `i` alone.
fn uniform(i: usize) -> f64 {
    hash(&i.to_le_bytes()) as f64 / 2f64.powi(64)
}

fn shapes(n: usize) -> Vec<(&'static str, Vec<f64>)> {
    let make = |f: &dyn Fn(usize) -> f64| (0..n).map(f).collect::<Vec<f64>>();
    vec![
        ("uniform", make(&uniform)),
        (
            "lognormal",
            make(&|i| (4.0 * (uniform(i) + uniform(i + n) + uniform(i + 2 * n) - 1.5)).exp()),
        ),
        ("sorted", make(&|i| i as f64)),
        ("reversed", make(&|i| -(i as f64))),
        ("sawtooth", make(&|i| (i % 1_000) as f64)),
        ("duplicated", make(&|i| (uniform(i) * 1_000.0).floor())),
        ("mostly zero", make(&|i| (uniform(i) - 0.9).max(0.0))),
    ]
}

fn check_ranks(name: &str, quantiles: &Quantiles, values: &[f64]) {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let n = sorted.len();
    for i in (0..n).step_by(n / 500) {
        let x = sorted[i];
        let rank = sorted.partition_point(|&y| y <= x) as f64 / n as f64;
        let error = (quantiles.rank(x) - rank).abs();
        assert!(error < BOUND, "{name}, {n} values: rank of {x} off by {error}");
    }
}

#[test]
fn ranks_keep_their_bound_and_the_sketch_its_size() {
    for n in [5_000, 200_000] {
        for (name, values) in shapes(n) {
            let whole = of(&values);
            check_ranks(name, &whole, &values);
            assert_eq!(whole.count, n as u64);
            assert!(whole.bytes() < 24_000, "{name}: {} bytes", whole.bytes());
            let mut merged = Quantiles::default();
            for part in values.chunks(n / 7) {
                merged.merge(&of(part));
            }
            check_ranks(name, &merged, &values);
            assert_eq!(merged.count, n as u64);
            assert!(merged.bytes() < 24_000, "{name}: {} bytes", merged.bytes());
            let weight: u64 = merged.weights().iter().map(|(_, weight)| weight).sum();
            assert_eq!(weight, n as u64, "{name}: no value is lost or made up");
        }
    }
}

#[test]
fn millions_are_sampled_within_the_same_bound() {
    let n = 3_000_000;
    // A period of a power of two, as the sampling has.
    for period in [n, 1 << 13] {
        let values: Vec<f64> = (0..n).map(|i| (i % period) as f64).collect();
        let whole = of(&values);
        check_ranks("sawtooth", &whole, &values);
        let mut merged = Quantiles::default();
        for part in values.chunks(2_200_000) {
            merged.merge(&of(part));
        }
        merged.push_slice(&values);
        check_ranks("sawtooth twice", &merged, &values);
        let weight: u64 = merged.weights().iter().map(|(_, weight)| weight).sum();
        assert_eq!((merged.count, weight), (2 * n as u64, 2 * n as u64));
        assert!(merged.bytes() < 24_000, "{} bytes", merged.bytes());
    }
}

#[test]
fn cuts_split_the_weight_evenly() {
    for (name, values) in shapes(100_000) {
        let cuts = of(&values).cuts(255);
        assert!(cuts.len() <= 254 && cuts.is_sorted_by(|a, b| a < b), "{name}");
        let mut bins = vec![0u64; cuts.len() + 1];
        for x in &values {
            bins[cuts.partition_point(|cut| cut <= x)] += 1;
        }
        // The value that is most frequent cannot be cut; the rest shares what is left.
        bins.sort_unstable();
        let rest: u64 = bins[..bins.len() - 1].iter().sum();
        let largest = bins[bins.len() - 2] as f64 / rest as f64;
        assert!(bins[0] > 0 && largest < 0.02, "{name}: {largest}");
        assert!(cuts.len() > 190, "{name}: {} cuts", cuts.len());
    }
}

#[test]
fn few_distinct_values_have_a_bin_each_however_rare() {
    let mut values = vec![7.0; 300_000];
    values.extend((0..200).map(f64::from));
    let quantiles = of(&values);
    assert!(quantiles.is_exact());
    let expected: Vec<f64> = (0..199).map(|i| f64::from(i) + 0.5).collect();
    assert_eq!(quantiles.cuts(255), expected);
    assert_eq!(of(&[]).cuts(255), [0.0; 0]);
    assert_eq!(of(&[-0.0, 0.0, f64::NAN, f64::INFINITY]).cuts(255), [0.0; 0]);
    // No value lies between these two: the cut is the higher one.
    let next = 1f64.next_up();
    assert_eq!(of(&[1.0, next]).cuts(2), [next]);
    assert_eq!(of(&[f64::MIN, f64::MAX]).cuts(2), [0.0]);
}

proptest! {
    #[test]
    fn parts_merge_exactly_while_the_count_is_exact(
        parts in prop::collection::vec(prop::collection::vec(-100i32..100, 0..900), 1..5),
    ) {
        let parts: Vec<Vec<f64>> = parts.iter().map(|part| part.iter().map(|&x| f64::from(x)).collect()).collect();
        let mut merged = Quantiles::default();
        parts.iter().for_each(|part| merged.merge(&of(part)));
        let mut values = parts.concat();
        prop_assert_eq!(merged.weights(), of(&values).weights());
        values.sort_unstable_by(f64::total_cmp);
        if let Some(last) = values.len().checked_sub(1) {
            for q in [0.0, 0.1, 0.5, 0.77, 1.0] {
                let at = q * last as f64;
                let (low, high) = (values[at.floor() as usize], values[at.ceil() as usize]);
                let expected = low + (high - low) * at.fract();
                prop_assert!((merged.quantile(q).unwrap() - expected).abs() < 1e-9);
            }
        }
        let text = serde_json::to_string(&merged).unwrap();
        prop_assert_eq!(serde_json::from_str::<Quantiles>(&text).unwrap(), merged);
    }
}
