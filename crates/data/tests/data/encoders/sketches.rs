//! Sketches of parts merge into the sketch of the whole, and keep their promised errors.

use proptest::prelude::*;
use tidegate_data::sketch::hash::hash;
use tidegate_data::sketch::{Distinct, Moments};

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * a.abs().max(b.abs()).max(1.0)
}

fn moments_of(values: &[f64]) -> Moments {
    let mut moments = Moments::default();
    moments.push_slice(values);
    moments
}

proptest! {
    #[test]
    fn moments_of_parts_are_moments_of_the_whole(
        parts in prop::collection::vec(prop::collection::vec(-1e6..1e6f64, 0..700), 0..5),
    ) {
        let whole: Vec<f64> = parts.concat();
        let mut merged = Moments::default();
        for part in &parts {
            merged.merge(&moments_of(part));
        }
        let mut single = Moments::default();
        whole.iter().for_each(|&x| single.push(x));
        for other in [single, moments_of(&whole)] {
            prop_assert_eq!((merged.count, merged.min, merged.max), (other.count, other.min, other.max));
            // Numbers of a million that cancel leave the rounding of a million.
            prop_assert!((merged.mean - other.mean).abs() < 1e-8, "{merged:?} {other:?}");
            prop_assert!(near(merged.squares, other.squares, 1e-10), "{merged:?} {other:?}");
        }
    }
}

#[test]
fn moments_leave_out_what_is_not_finite() {
    let values = [f64::NAN, 2.0, f64::INFINITY, 4.0, f64::NEG_INFINITY];
    let mut single = Moments::default();
    values.iter().for_each(|&x| single.push(x));
    assert_eq!(single, moments_of(&[2.0, 4.0]));
    assert_eq!(moments_of(&values), single);
    assert_eq!(moments_of(&[f64::NAN]), Moments::default());
    let text = serde_json::to_string(&Moments::default()).unwrap();
    assert_eq!(
        serde_json::from_str::<Moments>(&text).unwrap(),
        Moments::default()
    );
}

#[test]
fn a_large_mean_does_not_eat_the_spread() {
    let moments = moments_of(&[1e9 + 4.0, 1e9 + 7.0, 1e9 + 13.0, 1e9 + 16.0]);
    assert_eq!(moments.variance(), 22.5);
}

#[test]
fn distinct_counts_keep_their_error() {
    for n in [0u64, 1, 2, 10, 100, 1_000, 10_000, 30_000, 100_000, 1_000_000] {
        let mut distinct = Distinct::default();
        let mut halves = [Distinct::default(), Distinct::default()];
        for i in 0..n {
            let key = hash(&i.to_le_bytes());
            distinct.insert(key);
            distinct.insert(key);
            halves[(i % 3 == 0) as usize].insert(key);
            halves[1].insert(key);
        }
        // Three standard errors; a handful is counted to within one.
        let error = (distinct.estimate() - n as f64).abs();
        assert!(
            error <= (n as f64 * 0.035).max(0.5),
            "{n}: {}",
            distinct.estimate()
        );
        let [mut first, second] = halves;
        first.merge(&second);
        assert_eq!(first, distinct);
    }
}
