//! The category table: exact while there is room, and within its bytes, whole and mergeable when there is not.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_data::sketch::hash::{MISSING, hash};
use tidegate_data::sketch::{CategoryTable, Shape, Targets};

const BINARY: Shape = Shape {
    folds: 5,
    targets: Targets::Classes { classes: 2 },
};

struct Row {
    name: String,
    fold: u8,
    target: f64,
}

/// Rows of a column: few names come often, many come once.
fn rows(seed: u64, n: usize, names: u64) -> Vec<Row> {
    let row = |i: usize| {
        let drawn = hash(&(seed ^ (i as u64) << 20).to_le_bytes());
        let name = (drawn % names) * ((drawn >> 32) % names) / names;
        Row {
            name: if name == 1 {
                String::new()
            } else {
                format!("name {name}")
            },
            fold: (drawn >> 40) as u8 % 5,
            target: f64::from((drawn >> 50) as u32 % 3),
        }
    };
    (0..n).map(row).collect()
}

fn key(name: &str) -> u64 {
    match name.is_empty() {
        true => MISSING,
        false => hash(name.as_bytes()),
    }
}

fn table_of(shape: Shape, max_bytes: usize, rows: &[Row]) -> CategoryTable {
    let mut table = CategoryTable::with_capacity_bytes(shape, max_bytes);
    add(&mut table, rows);
    table
}

fn add(table: &mut CategoryTable, rows: &[Row]) {
    let keys: Vec<u64> = rows.iter().map(|row| key(&row.name)).collect();
    let folds: Vec<u8> = rows.iter().map(|row| row.fold).collect();
    let targets: Vec<f64> = rows.iter().map(|row| row.target).collect();
    let texts = rows.iter().map(|row| row.name.len()).sum();
    let most = table.would_need(rows.len(), texts);
    table.add_rows(&keys, &folds, &targets, |row| rows[row].name.as_bytes());
    assert!(table.bytes() <= most, "{} bytes, {most} foreseen", table.bytes());
}

/// Whether missing, and the key; in each fold the rows and sums.
type Contents = BTreeMap<(bool, u64), Vec<(u64, Vec<f64>)>>;

/// Counts and sums by key and fold; for comparing tables whatever the order of their records.
fn contents(table: &CategoryTable) -> Contents {
    let outputs = table.shape().targets.outputs();
    let all = table
        .categories()
        .map(|category| ((false, category.key()), category));
    let all = all.chain([((true, 0), table.missing())]);
    all.map(|(key, category)| {
        let fold = |f| {
            let sums = (0..outputs).map(|output| category.fold_sum(f, output)).collect();
            (category.fold_count(f), sums)
        };
        (key, (0..usize::from(table.shape().folds)).map(fold).collect())
    })
    .collect()
}

/// The same by a plain map, for keys that keep all but `shared` bits.
fn expected(rows: &[Row], shape: Shape, shared: u32) -> Contents {
    let outputs = shape.targets.outputs();
    let empty = vec![(0, vec![0.0; outputs]); usize::from(shape.folds)];
    let mut map = BTreeMap::from([((true, 0), empty.clone())]);
    for row in rows {
        let key = (row.name.is_empty(), key(&row.name) >> shared << shared);
        let entry = map.entry(key).or_insert_with(|| empty.clone());
        let (count, sums) = &mut entry[usize::from(row.fold)];
        *count += 1;
        match shape.targets {
            Targets::None => (),
            Targets::Number => sums[0] += row.target,
            Targets::Classes { .. } => {
                if let Some(sum) = sums.get_mut((row.target as usize).wrapping_sub(1)) {
                    *sum += 1.0;
                }
            }
        }
    }
    map
}

#[test]
fn counts_and_sums_are_those_of_a_plain_map() {
    let rows = rows(1, 20_000, 3_000);
    let shapes = [Targets::None, Targets::Number]
        .into_iter()
        .chain([2, 3, 7].map(|classes| Targets::Classes { classes }));
    for targets in shapes {
        let shape = Shape { folds: 5, targets };
        let table = table_of(shape, 4 << 20, &rows);
        assert!(table.is_exact());
        assert_eq!(contents(&table), expected(&rows, shape, 0), "{targets:?}");
        assert_eq!(table.rows(), 20_000);
        let named = table.categories().all(|category| {
            let name = category.name.unwrap();
            hash(name) == category.key() && table.get(category.key()).is_some()
        });
        assert!(named);
        let text = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<CategoryTable>(&text).unwrap(), table);
    }
}

#[test]
fn a_category_takes_about_sixty_bytes() {
    let mut table = CategoryTable::with_capacity_bytes(BINARY, 64 << 20);
    for i in 0..500_000u32 {
        table.add(hash(&i.to_le_bytes()), || b"", 0, 1.0);
    }
    let each = table.bytes() / table.len();
    assert!((52..72).contains(&each), "{each} bytes");
    assert_eq!(table.len(), 500_000);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_full_table_shares_as_few_keys_as_will_do(
        seed in 0u64..1_000, n in 0usize..6_000, names in 1u64..5_000, max_bytes in 4_000usize..60_000, cut in 1usize..9,
    ) {
        let rows = rows(seed, n, names);
        let table = table_of(BINARY, max_bytes, &rows);
        prop_assert!(table.bytes() <= max_bytes, "{} of {max_bytes}", table.bytes());
        prop_assert!(table.len() <= table.max_categories());
        let shared = table.shared_bits();
        prop_assert_eq!(contents(&table), expected(&rows, BINARY, shared));
        if shared > 0 {
            // One bit less would not have fitted.
            let finer = expected(&rows, BINARY, shared - 1).len() - 1;
            prop_assert!(finer > table.max_categories(), "{finer} fit into {}", table.max_categories());
        }

        let mut merged = CategoryTable::with_capacity_bytes(BINARY, max_bytes);
        for part in rows.chunks(n / cut + 1) {
            merged.merge(&table_of(BINARY, max_bytes, part));
        }
        prop_assert_eq!(contents(&merged), contents(&table));
        prop_assert_eq!(merged.shared_bits(), shared);
        prop_assert!(merged.bytes() <= max_bytes);
        for row in &rows {
            prop_assert!(merged.get(key(&row.name)).is_some());
        }
    }
}
