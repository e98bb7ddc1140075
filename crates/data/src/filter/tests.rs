//! Conditions as people write them, on rows of texts and of numbers.

use proptest::prelude::*;
use tidegate_memory::Ledger;

use super::{Condition, Filter, Sample};
use crate::chunk::{Chunk, Read, Wanted};

const NAMES: [&str; 4] = ["age", "city", "home town", "ok"];
const ROWS: [[&str; 4]; 5] = [
    ["18", "Oslo", "Ås", "true"],
    ["7.5", "Rome", "", "no"],
    ["", "New York", "x", ""],
    ["-3", "", "100%", "1"],
    ["40", "Bern", "it's", "F"],
];

fn chunk(reads: [Read; 4], rows: &[[&str; 4]]) -> Chunk {
    let wanted: Vec<Wanted> = NAMES
        .iter()
        .zip(reads)
        .map(|(name, read)| Wanted {
            name: (*name).into(),
            read,
        })
        .collect();
    let holder = Ledger::new(1 << 20).holder("test");
    let mut chunk = Chunk::new(&wanted, &[], &holder).unwrap();
    assert!(chunk.reserve(rows.len() as u64, 4096));
    for (line, row) in rows.iter().enumerate() {
        for (column, cell) in row.iter().enumerate() {
            chunk.push_text(column, cell.as_bytes(), None);
        }
        chunk.end_row(line as u64 + 1);
    }
    chunk
}

fn selected(condition: &str, chunk: &Chunk) -> Vec<usize> {
    let mut rows = Vec::new();
    Condition::new(condition)
        .unwrap()
        .select(chunk, |row| rows.push(row));
    rows
}

#[test]
fn conditions_select_rows() {
    use Read::*;
    let as_read = chunk([Number, Text, Text, Boolean], &ROWS);
    let as_text = chunk([Text; 4], &ROWS);
    for (condition, expected) in [
        ("age >= 7.5", vec![0, 1, 4]),
        ("age = 18 or age == -3", vec![0, 3]),
        ("7 < age", vec![0, 1, 4]),
        ("age != 18", vec![1, 3, 4]),
        ("not age = 18", vec![1, 3, 4]),
        ("age <> 18 OR age IS NULL", vec![1, 2, 3, 4]),
        ("age is not null and city is null", vec![3]),
        ("city = 'Oslo'", vec![0]),
        ("city = \"New York\"", vec![2]),
        ("city > 'New'", vec![0, 1, 2]),
        ("city in ('Rome', 'Bern', 'Paris')", vec![1, 4]),
        ("city not in ('Rome', 'Bern')", vec![0, 2]),
        ("city like '%o%'", vec![0, 1, 2]),
        ("city like 'O_l_'", vec![0]),
        ("`home town` like '_s'", vec![0]),
        ("city not like '%e%'", vec![0]),
        ("`home town` = 'it''s'", vec![4]),
        ("`home town` like '%\u{25}'", vec![0, 2, 3, 4]),
        ("age between -3 and 18", vec![0, 1, 3]),
        ("age not between 0 and 20", vec![3, 4]),
        ("ok = true", vec![0, 3]),
        ("ok = FALSE", vec![1, 4]),
        ("not (ok = true or age > 30)", vec![1]),
        // Unknown or true is true, unknown or false is unknown.
        ("age > 0 or city = 'New York'", vec![0, 1, 2, 4]),
        ("not (age > 0 and city = 'Oslo')", vec![1, 2, 3, 4]),
        ("gone = 1", vec![]),
        ("gone is null and age > 10", vec![0, 4]),
        ("age in (18, 7.5, 'x')", vec![0, 1]),
        ("age > 1e1 and age < .5e2 and not not ok = false", vec![4]),
    ] {
        assert_eq!(selected(condition, &as_read), expected, "{condition}");
        assert_eq!(selected(condition, &as_text), expected, "{condition} on texts");
    }
}

#[test]
fn columns_are_read_as_what_they_are_compared_with() {
    let filter = Filter {
        condition: Some(
            Condition::new("a > 1 and b = 'x' and c = true and d is null and (a < 3 or e = 1 or e = 'y')")
                .unwrap(),
        ),
        sample: None,
    };
    let found: Vec<(String, Read)> = filter
        .columns()
        .into_iter()
        .map(|wanted| (wanted.name, wanted.read))
        .collect();
    let expected = [
        ("a", Read::Number),
        ("b", Read::Text),
        ("c", Read::Boolean),
        ("d", Read::Text),
        ("e", Read::Text),
    ];
    assert_eq!(found, expected.map(|(name, read)| (name.to_string(), read)));
}

#[test]
fn faults_are_told_with_their_place() {
    for (text, expected) in [
        ("", "character 1: expected a column, found the end"),
        (
            "age",
            "character 4: expected a comparison, is, in, between or like, found the end",
        ),
        (
            "age >",
            "character 6: expected a number, a text in quotes, true or false, found the end",
        ),
        (
            "age > Oslo",
            "character 7: expected a number, a text in quotes, true or false, found Oslo",
        ),
        ("é > 1 or or b = 2", "character 10: expected a column, found or"),
        (
            "age = null",
            "character 7: expected a value (is null asks for missing ones), found null",
        ),
        (
            "(age > 1",
            "character 9: expected and, or, or a closing parenthesis, found the end",
        ),
        ("age > 1)", "character 8: expected and, or, or the end, found )"),
        ("city = 'Oslo", "character 8: this ' is never closed"),
        ("age > 1x", "character 7: this is not a number"),
        ("age # 1", "character 5: '#' means nothing here"),
        (
            "city in ()",
            "character 10: expected a number, a text in quotes, true or false, found )",
        ),
        (
            "city like 5",
            "character 11: expected a text, such as 'New %', found 5",
        ),
        (
            "'home town' is null",
            "character 13: expected a comparison; names with blanks stand in `backticks`, found is",
        ),
    ] {
        let error = Condition::new(text).unwrap_err();
        let shown = error
            .to_string()
            .replace(&format!(" of the condition {text:?}"), "");
        assert_eq!(shown, expected, "{text}");
        assert!(error.is_usage() && error.hint().is_some());
    }
    for deep in ["(".repeat(100_000), "not ".repeat(100_000)] {
        let error = Condition::new(&deep).unwrap_err().to_string();
        assert!(error.ends_with("this is nested too deeply"));
    }
}

#[test]
fn many_rows_and_a_sample_of_them() {
    let rows: Vec<[&str; 4]> = (0..1000).map(|i| ROWS[i % 5]).collect();
    let chunk = chunk([Read::Text; 4], &rows);
    let filter = Filter {
        condition: Some(Condition::new("age > 10").unwrap()),
        sample: Some(Sample::share(0.5, 1)),
    };
    let (mut all, mut some) = (Vec::new(), Vec::new());
    let without = Filter {
        sample: None,
        ..filter.clone()
    };
    without.select(&chunk, |line| line, |row| all.push(row));
    filter.select(&chunk, |line| line, |row| some.push(row));
    assert_eq!(
        all,
        (0..1000)
            .filter(|row| matches!(row % 5, 0 | 4))
            .collect::<Vec<_>>()
    );
    assert!((150..250).contains(&some.len()) && some.iter().all(|row| all.contains(row)));
    let mut everything = Vec::new();
    Filter::default().select(&chunk, |line| line, |row| everything.push(row));
    assert_eq!(everything.len(), 1000);
}

#[test]
fn a_filter_is_kept_as_it_was_written() {
    let filter = Filter {
        condition: Some(Condition::new("age >= 18 and `home town` like 'x%'").unwrap()),
        sample: Some(Sample::about(10, 100, 3)),
    };
    let json = serde_json::to_string(&filter).unwrap();
    assert!(json.contains("age >= 18"), "{json}");
    assert_eq!(serde_json::from_str::<Filter>(&json).unwrap(), filter);
    assert!(serde_json::from_str::<Filter>(&json.replace(">=", ">>")).is_err());
}

proptest! {
    #[test]
    fn no_text_panics(text in "[a-z0-9 `'\"()<>=!,.é%_+-]{0,40}", words in prop::collection::vec(prop::sample::select(vec!["and", "or", "not", "(", ")", "a", "`b c`", "=", "<", "1", "'x'", "in", "between", "like", "is", "null", ","]), 0..20)) {
        let chunk = chunk([Read::Number, Read::Text, Read::Text, Read::Boolean], &ROWS);
        for text in [text, words.join(" ")] {
            if let Ok(condition) = Condition::new(&text) {
                condition.select(&chunk, |_| {});
                prop_assert_eq!(Condition::new(condition.text()).unwrap(), condition);
            }
        }
    }

    /// As the plain definition by recursion has it.
    #[test]
    fn like_is_what_it_is_defined_as(text in "[abé%]{0,8}", pattern in "[abé%_]{0,8}") {
        fn like(text: &[char], pattern: &[char]) -> bool {
            match pattern.split_first() {
                None => text.is_empty(),
                Some(('%', rest)) => (0..=text.len()).any(|skip| like(&text[skip..], rest)),
                Some(('_', rest)) => !text.is_empty() && like(&text[1..], rest),
                Some((letter, rest)) => text.first() == Some(letter) && like(&text[1..], rest),
            }
        }
        let (t, p): (Vec<char>, Vec<char>) = (text.chars().collect(), pattern.chars().collect());
        prop_assert_eq!(super::condition::is_like(text.as_bytes(), pattern.as_bytes()), like(&t, &p));
    }
}
