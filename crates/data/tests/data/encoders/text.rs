//! Rows of text as scikit-learn's vectorizers weigh them; `text_reference.py` printed the expected products.

use std::collections::BTreeMap;

use tidegate_data::encode::{Text, TextOptions, TextScratch, Tokens, Weigh};
use tidegate_data::sketch::Documents;

const ROWS: [&str; 6] = [
    "The cat sat on the mat",
    "the CAT, the dog & the 7 mice!",
    "Ein Hund - one dog, ÜBER alles über",
    "a b a b a",
    "",
    "dog",
];

fn plain() -> TextOptions {
    TextOptions {
        // So many that none of these tokens share one.
        bits: 24,
        signed: false,
        weigh: Weigh::Count,
        unit_length: false,
        ..TextOptions::default()
    }
}

fn fit(options: &TextOptions, rows: &[&str]) -> Text {
    let mut scratch = TextScratch::default();
    let mut parts = [Documents::new(options.bits), Documents::new(options.bits)];
    for (i, row) in rows.iter().enumerate() {
        options.count(row.as_bytes(), &mut parts[i % 2], &mut scratch);
    }
    let [mut documents, later] = parts;
    documents.merge(&later);
    assert_eq!(documents.rows, rows.len() as u64);
    Text::fit(options, Some(&documents))
}

/// The products of each row with itself and all later ones.
fn check(options: &TextOptions, expected: &[f32]) {
    let text = fit(options, &ROWS);
    let mut scratch = TextScratch::default();
    let encoded: Vec<BTreeMap<u32, f32>> = ROWS
        .iter()
        .map(|row| {
            text.encode(row.as_bytes(), &mut scratch)
                .iter()
                .copied()
                .collect()
        })
        .collect();
    let mut expected = expected.iter();
    for (i, a) in encoded.iter().enumerate() {
        for (j, b) in encoded.iter().enumerate().skip(i) {
            let product: f32 = a.iter().filter_map(|(index, x)| Some(x * b.get(index)?)).sum();
            let expected = *expected.next().unwrap();
            assert!(
                (product - expected).abs() < 1e-4,
                "{options:?} {i}·{j}: {product} for {expected}"
            );
        }
    }
}

#[test]
fn counts_of_words_and_runs_of_words() {
    let expected = [
        8.0, 7.0, 0.0, 0.0, 0.0, 0.0, 13.0, 1.0, 0.0, 0.0, 1.0, 9.0, 0.0, 0.0, 1.0, 13.0, 0.0, 0.0, 0.0, 0.0,
        1.0,
    ];
    check(&plain(), &expected);
    let expected = [
        17.0, 8.0, 0.0, 0.0, 0.0, 0.0, 24.0, 1.0, 0.0, 0.0, 1.0, 20.0, 0.0, 0.0, 1.0, 26.0, 0.0, 0.0, 0.0,
        0.0, 1.0,
    ];
    let tokens = Tokens::Words { longest: 3 };
    check(&TextOptions { tokens, ..plain() }, &expected);
}

#[test]
fn words_weighed_by_rarity() {
    let rarity = TextOptions {
        weigh: Weigh::Rarity,
        ..plain()
    };
    let expected = [
        32.28737, 23.88757, 0.0, 0.0, 0.0, 0.0, 46.70738, 2.4324, 0.0, 0.0, 2.4324, 43.03193, 0.0, 0.0,
        2.4324, 65.97423, 0.0, 0.0, 0.0, 0.0, 2.4324,
    ];
    check(&rarity, &expected);
    let expected = [
        1.0, 0.41987, 0.0, 0.0, 0.0, 0.0, 1.0, 0.03266, 0.0, 0.0, 0.1795, 1.0, 0.0, 0.0, 0.18194, 1.0, 0.0,
        0.0, 0.0, 0.0, 1.0,
    ];
    let unit = TextOptions {
        tokens: Tokens::Words { longest: 2 },
        unit_length: true,
        ..rarity
    };
    check(&unit, &expected);
    // A sign is the same wherever a token occurs, so products stay.
    check(&TextOptions { signed: true, ..unit }, &expected);
}

#[test]
fn runs_of_characters() {
    let expected = [
        51.0, 44.0, 1.0, 0.0, 0.0, 0.0, 76.0, 6.0, 0.0, 0.0, 6.0, 75.0, 0.0, 0.0, 6.0, 13.0, 0.0, 0.0, 0.0,
        0.0, 6.0,
    ];
    let tokens = Tokens::Characters {
        shortest: 3,
        longest: 5,
    };
    check(&TextOptions { tokens, ..plain() }, &expected);
}

#[test]
fn few_columns_share_but_lose_nothing() {
    let narrow = TextOptions { bits: 1, ..plain() };
    let text = fit(&narrow, &ROWS);
    let mut scratch = TextScratch::default();
    let row = text.encode(b"one two three four five six seven eight", &mut scratch);
    assert_eq!(row.iter().map(|(_, count)| count).sum::<f32>(), 8.0);
    assert!(row.len() <= 2 && row.iter().all(|(index, _)| *index < 2));
    assert_eq!(text.encode(b"", &mut scratch), []);
    assert_eq!(text.encode(b" -- \xff\xfe -- ", &mut scratch), []);
    assert_eq!(
        text.encode(b"caf\xe9 noir", &mut scratch)
            .iter()
            .map(|x| x.1)
            .sum::<f32>(),
        2.0
    );
}
