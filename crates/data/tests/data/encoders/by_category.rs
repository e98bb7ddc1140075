//! Categories as scikit-learn and category_encoders encode them; `categories_reference.py` printed the numbers.

use proptest::prelude::*;
use tidegate_data::encode::{
    Dummy, DummyOptions, Frequency, Hashed, Impact, ImpactFolds, ImpactOptions, Keys, Measure, Order, Ordinal,
};
use tidegate_data::sketch::hash::{MISSING, hash};
use tidegate_data::sketch::{CategoryTable, Shape, Targets};

const CITIES: &str = "abacabadcabaceabfa";

fn key(c: char) -> u64 {
    match c {
        '-' => MISSING,
        c => hash(c.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

fn keys(cities: &str) -> Vec<u64> {
    cities.chars().map(key).collect()
}

fn table(
    cities: &str,
    shape: Shape,
    fold: impl Fn(usize) -> u8,
    target: impl Fn(usize) -> f64,
) -> CategoryTable {
    let mut table = CategoryTable::with_capacity_bytes(shape, 1 << 16);
    for (i, name) in cities.bytes().enumerate() {
        table.add(key(name.into()), || &cities.as_bytes()[i..=i], fold(i), target(i));
    }
    table
}

fn counts(cities: &str) -> CategoryTable {
    table(cities, Shape::COUNT, |_| 0, |_| 0.0)
}

fn number(i: usize) -> f64 {
    (7 * i % 11) as f64 / 2.0
}

fn binary(i: usize) -> f64 {
    f64::from(u8::from(i.is_multiple_of(3)))
}

fn near(found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len());
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        assert!(
            (f64::from(*found) - expected).abs() < 2e-6,
            "{i}: {found} instead of {expected}"
        );
    }
}

fn check_dummy(cities: &str, options: &DummyOptions, names: &[&str], indices: &[(char, Option<u32>)]) {
    let dummy = Dummy::fit(&counts(cities), options);
    let found: Vec<String> = (0..dummy.width().sparse).map(|i| dummy.name("city", i)).collect();
    assert_eq!(found, names, "{options:?}");
    for (city, index) in indices {
        assert_eq!(dummy.index(key(*city)), *index, "{options:?} {city}");
    }
    let text = serde_json::to_string(&dummy).unwrap();
    assert_eq!(serde_json::from_str::<Dummy>(&text).unwrap(), dummy);
}

#[test]
fn dummies_are_capped_three_ways() {
    let all = DummyOptions::default();
    let names = ["city=a", "city=b", "city=c", "city=d", "city=e", "city=f"];
    check_dummy(
        CITIES,
        &all,
        &names,
        &[('a', Some(0)), ('f', Some(5)), ('z', None), ('-', None)],
    );

    let two = ["city=a", "city=b", "city=other"];
    let cases = [
        ('a', Some(0)),
        ('b', Some(1)),
        ('c', Some(2)),
        ('d', Some(2)),
        ('z', Some(2)),
    ];
    check_dummy(
        CITIES,
        &DummyOptions {
            max: 2,
            ..all.clone()
        },
        &two,
        &cases,
    );
    check_dummy(
        CITIES,
        &DummyOptions {
            least: 4,
            ..all.clone()
        },
        &two,
        &cases,
    );
    // a and b make up 12 of 18 rows.
    check_dummy(
        CITIES,
        &DummyOptions {
            share: 0.6,
            ..all.clone()
        },
        &two,
        &cases,
    );
    let least = DummyOptions {
        least: 2,
        ..all.clone()
    };
    check_dummy(
        CITIES,
        &least,
        &["city=a", "city=b", "city=c", "city=other"],
        &[('z', Some(3))],
    );

    let dropped = DummyOptions {
        drop_one: true,
        ..all.clone()
    };
    let cases = [('a', None), ('b', Some(0)), ('f', Some(4)), ('z', None)];
    check_dummy(CITIES, &dropped, &names[1..], &cases);

    let missing = ["city=b", "city=other", "city=missing"];
    let options = DummyOptions {
        max: 1,
        ..all.clone()
    };
    check_dummy(
        "bb-c",
        &options,
        &missing,
        &[('-', Some(2)), ('z', Some(1)), ('b', Some(0))],
    );
    let unflagged = DummyOptions {
        flag_missing: false,
        ..options
    };
    check_dummy("bb-c", &unflagged, &missing[..2], &[('-', None), ('z', Some(1))]);
    check_dummy("", &dropped, &[], &[('a', None), ('-', None)]);
}

#[test]
fn places_in_every_order() {
    let check = |table: &CategoryTable, order: Order, cities: &str, expected: &[f64]| {
        let ordinal = Ordinal::fit(table, order);
        let mut out = vec![0.0; cities.len()];
        ordinal.encode(&keys(cities), &mut out, 1);
        near(&out, expected);
    };
    let by_name = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, -1.0];
    check(&counts(CITIES), Order::Name, "abcdefz", &by_name);
    check(
        &counts("ccbba-z"),
        Order::Name,
        "abcz-",
        &[0.0, 1.0, 2.0, 3.0, 4.0],
    );
    check(
        &counts("cccbb--a"),
        Order::Frequency,
        "cb-az",
        &[0.0, 1.0, 2.0, 3.0, -1.0],
    );
    check(&counts("ab"), Order::Frequency, "ab-", &[0.0, 1.0, -1.0]);
    let shape = Shape {
        folds: 2,
        targets: Targets::Number,
    };
    let prices = [5.0, 1.0, 9.0, 7.0, 1.0, 3.0];
    let table = table("abca-b", shape, |i| i as u8 % 2, |i| prices[i]);
    check(&table, Order::Target, "-bacz", &[0.0, 1.0, 2.0, 3.0, -1.0]);
}

#[test]
fn frequencies() {
    let check = |cities: &str, measure, of: &str, expected: &[f64]| {
        let frequency = Frequency::fit(&counts(cities), measure);
        let found: Vec<f32> = of.chars().map(|c| frequency.value(key(c))).collect();
        near(&found, expected);
    };
    check(
        CITIES,
        Measure::Count,
        "abcdefz",
        &[8.0, 4.0, 3.0, 1.0, 1.0, 1.0, 0.0],
    );
    let shares = [0.444444, 0.222222, 0.166667, 0.055556, 0.055556, 0.055556, 0.0];
    check(CITIES, Measure::Share, "abcdefz", &shares);
    check("aa-b", Measure::Share, "ab-", &[0.5, 0.25, 0.25]);
    check("aa-b", Measure::Logarithm, "a-z", &[3f64.ln(), 2f64.ln(), 0.0]);
}

#[test]
fn impact_of_all_rows() {
    let check = |targets, target: &dyn Fn(usize) -> f64, smoothing, of: &str, expected: &[f64]| {
        let shape = Shape { folds: 3, targets };
        let table = table(CITIES, shape, |i| i as u8 % 3, target);
        let impact = Impact::fit(&table, &ImpactOptions { smoothing, folds: 3 });
        let width = impact.width().dense;
        let mut out = vec![0.0; of.len() * width];
        impact.encode(&keys(of), &mut out, width);
        near(&out, expected);
        let text = serde_json::to_string(&impact).unwrap();
        assert_eq!(serde_json::from_str::<Impact>(&text).unwrap(), impact);
    };
    let expected = [
        2.783951, 2.411111, 2.888889, 2.527778, 2.027778, 1.777778, 2.555556, 2.555556,
    ];
    check(Targets::Number, &number, 1.0, "abcdefz-", &expected);
    let expected = [
        2.713675, 2.475309, 2.722222, 2.546296, 2.37963, 2.296296, 2.555556,
    ];
    check(Targets::Number, &number, 5.0, "abcdefz", &expected);
    let expected = [
        0.366667, 0.277778, 0.533333, 0.222222, 0.222222, 0.222222, 0.333333,
    ];
    check(
        Targets::Classes { classes: 2 },
        &binary,
        2.0,
        "abcdefz",
        &expected,
    );
    let class = |i: usize| ((3 * i + i / 4) % 4) as f64;
    let expected = [
        0.333333, 0.151515, 0.348485, 0.095238, 0.095238, 0.261905, 0.222222, 0.222222, 0.277778,
    ];
    check(Targets::Classes { classes: 4 }, &class, 3.0, "abz", &expected);
}

fn out_of_fold(cities: &str, table: &CategoryTable, smoothing: f64, folds: &[u8]) -> Vec<f32> {
    let options = ImpactOptions {
        smoothing,
        folds: table.shape().folds,
    };
    let impact = ImpactFolds::fit(table, &options);
    let mut out = vec![0.0; cities.len() * impact.outputs];
    impact.encode(&keys(cities), folds, &mut out, impact.outputs);
    out
}

#[test]
fn impact_out_of_fold() {
    let folds: Vec<u8> = (0..18).map(|i| i % 3).collect();
    let shape = |targets| Shape { folds: 3, targets };
    let numbers = table(CITIES, shape(Targets::Number), |i| folds[i], number);
    let expected = [
        2.483333, 2.505952, 2.828704, 1.888889, 2.753472, 2.807292, 2.483333, 2.708333, 3.208333, 2.483333,
        2.505952, 2.828704, 1.888889, 2.708333, 2.828704, 2.166667, 2.708333, 2.828704,
    ];
    near(&out_of_fold(CITIES, &numbers, 5.0, &folds), &expected);
    let binaries = table(
        CITIES,
        shape(Targets::Classes { classes: 2 }),
        |i| folds[i],
        binary,
    );
    let expected = [
        0.0, 0.5, 0.666667, 0.0, 0.444444, 0.4, 0.0, 0.5, 0.75, 0.0, 0.5, 0.666667, 0.0, 0.5, 0.666667, 0.0,
        0.5, 0.666667,
    ];
    near(&out_of_fold(CITIES, &binaries, 2.0, &folds), &expected);

    // Every row a fold of its own, without smoothing, is leave-one-out.
    let (cities, target) = ("aabbabab", [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 9.0]);
    let folds: Vec<u8> = (0..8).collect();
    let shape = Shape {
        folds: 8,
        targets: Targets::Number,
    };
    let alone = table(cities, shape, |i| i as u8, |i| target[i]);
    let expected = [
        4.666667, 4.333333, 6.333333, 6.0, 3.333333, 5.333333, 2.666667, 4.333333,
    ];
    near(&out_of_fold(cities, &alone, 0.0, &folds), &expected);
}

proptest! {
    #[test]
    fn no_row_sees_its_own_target(
        rows in prop::collection::vec((0usize..7, 0u8..5, -1e3..1e3f64), 1..60),
        changed in any::<prop::sample::Index>(),
        smoothing in 0.0..5.0f64,
    ) {
        let cities: String = rows.iter().map(|row| char::from(b"abcdef-"[row.0])).collect();
        let folds: Vec<u8> = rows.iter().map(|row| row.1).collect();
        let changed = changed.index(rows.len());
        for targets in [Targets::Number, Targets::Classes { classes: 3 }] {
            let shape = Shape { folds: 5, targets };
            let encode = |own: Option<f64>| {
                let target = |i: usize| match own {
                    Some(own) if i == changed => own,
                    _ => rows[i].2.abs().rem_euclid(4.0).floor(),
                };
                out_of_fold(&cities, &table(&cities, shape, |i| folds[i], target), smoothing, &folds)
            };
            let (before, after) = (encode(None), encode(Some(1.0)));
            let width = targets.outputs();
            let own = changed * width..(changed + 1) * width;
            prop_assert_eq!(&before[own.clone()], &after[own]);
        }
    }

    #[test]
    fn keys_are_found_and_no_others(keys in prop::collection::vec(any::<u64>(), 0..300), shared in 0u32..60) {
        let cut = |key: u64| key >> shared << shared;
        let found = Keys::new(keys.iter().map(|&key| cut(key)).collect(), shared);
        for &key in &keys {
            prop_assert_eq!(found.as_slice()[found.find(key).unwrap()], cut(key));
            let other = hash(&key.to_le_bytes());
            prop_assert_eq!(found.find(other).is_some(), found.as_slice().contains(&cut(other)));
        }
        let text = serde_json::to_string(&found).unwrap();
        prop_assert_eq!(serde_json::from_str::<Keys>(&text).unwrap(), found);
    }
}

#[test]
fn hashed_categories_spread_evenly_and_their_signs_cancel() {
    let hashed = Hashed {
        bits: 8,
        signed: true,
    };
    let mut counts = vec![0u32; hashed.width().sparse];
    let mut signs = 0.0;
    for i in 0..100_000u32 {
        let (index, sign) = hashed.index(hash(&i.to_le_bytes())).unwrap();
        counts[index as usize] += 1;
        signs += sign;
    }
    assert!(counts.iter().all(|&n| (300..500).contains(&n)), "{counts:?}");
    assert!(signs.abs() < 1_000.0, "{signs}");
    assert_eq!(hashed.index(MISSING), None);
    let unsigned = Hashed {
        signed: false,
        ..hashed
    };
    assert!((0..100u64).all(|i| unsigned.index(hash(&i.to_le_bytes())).unwrap().1 == 1.0));
}

#[test]
fn a_table_that_had_to_share_keys_still_encodes_every_category() {
    let shape = Shape {
        folds: 5,
        targets: Targets::Classes { classes: 2 },
    };
    let mut table = CategoryTable::with_capacity_bytes(shape, 20_000);
    let keys: Vec<u64> = (0..5_000u32).map(|i| hash(&i.to_le_bytes())).collect();
    for (i, &key) in keys.iter().enumerate() {
        table.add(key, || b"", i as u8 % 5, binary(i));
    }
    assert!(!table.is_exact());
    let frequency = Frequency::fit(&table, Measure::Count);
    let impact = Impact::fit(&table, &ImpactOptions::default());
    let mean = impact.lookup.unseen[0];
    assert!(keys.iter().all(|&key| frequency.value(key) >= 1.0));
    assert!(keys.iter().any(|&key| impact.get(key)[0] != mean));
    assert!((mean - 1.0 / 3.0).abs() < 1e-3);
}
