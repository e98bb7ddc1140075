//! Behaviour that is right and does not happen yet.

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::{Rows, binary, gzip, zstd};

fn train(contents: impl AsRef<[u8]>) -> crate::help::Answer {
    train_with(contents, "")
}

fn train_with(contents: impl AsRef<[u8]>, options: &str) -> crate::help::Answer {
    Place::with(contents).run(&format!("train data.csv --target y --memory 64MB {options}"))
}

#[test]
fn f1_one_word_does_not_cost_a_column() {
    let text = binary() + "0.1,oops,3,1\n";
    assert_snapshot!(train(&text).error(), @r#"
    exit 1
    error: [dir]/data.csv:202: column "b": "oops" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    let place = Place::with(text);
    let rows = place.json("train data.csv --target y --memory 64MB --bad-rows skip")["report"]["rows"].clone();
    assert_eq!(rows["bad"], 1);
}

#[test]
fn f3_negative_values_are_refused_in_our_words() {
    for option in ["--memory -5MB", "--holdout -1", "--l2 -1"] {
        let error = train_with(binary(), option).error();
        assert!(!error.contains("unexpected argument"), "{error}");
    }
}

#[test]
fn f14_quoted_newlines_in_a_large_file() {
    let mut random = crate::tables::Random(1);
    let rows: String = (0..60_000).map(|i| format!("{:.4},\"some text\nword, more words {i}\",{}\n", random.number(), i % 2)).collect();
    let place = Place::with(format!("a,t,y\n{rows}"));
    let trained = place.json("train data.csv --target y --memory 64MB");
    assert_eq!(trained["report"]["rows"]["used"], 60_000);
}

#[test]
fn f21_a_constant_written_two_ways() {
    assert_eq!(train("a,y\n1,5\n2,5\n3,5.0\n").code, Some(1));
}

#[test]
fn f23_a_header_that_is_not_utf8() {
    assert_snapshot!(train(b"a,caf\xe9,y\n1,2,0\n2,3,1\n").error(), @"");
}

#[test]
fn f22_nothing_but_bad_rows() {
    let text = "a,b,y\n".to_string() + &"1,2\n".repeat(50);
    assert_snapshot!(train_with(&text, "--bad-rows skip").error(), @r"
    exit 1
    error: [dir]/data.csv: no row can be used: 50 bad, 0 without a target
      hint: check --target, and run without --bad-rows skip to see the first bad row
    ");
    assert_snapshot!(train(&text).error(), @r"
    exit 1
    error: [dir]/data.csv:2: 2 fields where the table has 3 columns
      hint: mend the row, name the separator with --delimiter, or leave such rows out: --bad-rows skip
    ");
}

#[test]
fn f10_packed_in_any_way() {
    let place = Place::new();
    let text = crate::same_model::large().csv();
    place.write("data.csv", &text);
    place.write("data.csv.gz", gzip(&text));
    place.write("data.csv.zst", zstd(&text));
    // Told from the bytes, not from the name.
    place.write("gzip.csv", gzip(&text));
    let half = text.len() / 2;
    let members = [gzip(&text[..half]), gzip(&text[half..])].concat();
    place.write("members.gz", members);
    crate::same_model::check_all_the_same(
        &place,
        &[
            "data.csv --memory 64MB",
            "data.csv.gz --memory 64MB",
            "data.csv.zst --memory 64MB",
            "gzip.csv --memory 64MB",
            "members.gz --memory 64MB",
        ],
    );
}

