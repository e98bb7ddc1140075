//! Dialects of CSV, inferred or said: the same table however it is written.

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::{Random, Rows};

/// Trains on `text` and returns its weights.
fn weights(text: impl AsRef<[u8]>, options: &str) -> Vec<u8> {
    let place = Place::with(text);
    let trained = place.json(&format!("train data.csv --model linear --memory 64MB {options}"));
    place.weights(trained["run"]["id"].as_str().unwrap())
}

fn check(text: impl AsRef<[u8]>, options: &str) {
    let plain = weights(Rows::binary(500).csv(), "--target y");
    assert!(weights(text, options) == plain, "other weights with {options:?}");
}

fn quoted(field: &str) -> String {
    format!("\"{field}\"")
}

fn plain(field: &str) -> String {
    field.to_string()
}

#[test]
fn separators_are_inferred() {
    let rows = Rows::binary(500);
    for separator in [";", "\t", "|"] {
        check(rows.write(separator, "\n", plain), "--target y");
    }
}

#[test]
fn separators_can_be_said() {
    let rows = Rows::binary(500);
    check(rows.write(";", "\n", plain), "--target y --delimiter ;");
    check(rows.write("\t", "\n", plain), "--target y --delimiter tab");
    check(rows.write("|", "\n", plain), "--target y --delimiter pipe");
    check(rows.write(":", "\n", plain), "--target y --delimiter :");
}

#[test]
fn quotes_and_line_ends() {
    let rows = Rows::binary(500);
    check(rows.write(",", "\n", quoted), "--target y");
    check(rows.write(",", "\r\n", plain), "--target y");
    check(rows.write(";", "\r\n", quoted), "--target y");
    check(rows.write(",", "\n", |field| format!("'{field}'")), "--target y");
    check(
        rows.write(",", "\n", |field| format!("~{field}~")),
        "--target y --quote ~",
    );
    check(rows.write(", ", "\n", plain), "--target y");
    check(rows.csv().trim_end(), "--target y");
}

#[test]
fn a_byte_order_mark_is_no_part_of_a_name() {
    let rows = Rows::binary(500);
    check(format!("\u{feff}{}", rows.csv()), "--target y");
    let mut target_first = Rows::binary(500);
    target_first.header.rotate_right(1);
    target_first.rows.iter_mut().for_each(|row| row.rotate_right(1));
    check(format!("\u{feff}{}", target_first.csv()), "--target y");
    check(
        format!("\u{feff}{}", target_first.write(",", "\r\n", quoted)),
        "--target y",
    );
}

#[test]
fn a_table_without_names() {
    let rows = Rows::binary(500);
    let inferred = weights(rows.headless(), "--target column_4");
    let said = weights(rows.headless(), "--target column_4 --header no");
    assert!(inferred == said);
    let place = Place::with(rows.headless());
    assert_snapshot!(place.run("train data.csv").error(), @r"
    exit 2
    error: which column is to be predicted?
      hint: say --target COLUMN; the columns are column_1, column_2, column_3, column_4
    ");
    let trained = place.json("train data.csv --target column_4 --model linear --memory 64MB");
    assert_eq!(trained["report"]["rows"]["used"], 500, "the first row is a row");
}

#[test]
fn text_columns_are_used_too() {
    let mut rows = Rows::binary(500);
    rows.header.insert(1, "remarks".into());
    let remarks = [
        "\"one\ntwo, three\"",
        "\"say \"\"hi\"\"\"",
        "5\" pipe",
        "\"\"",
        "plain",
    ];
    for (i, row) in rows.rows.iter_mut().enumerate() {
        row.insert(1, remarks[i % remarks.len()].into());
    }
    let place = Place::with(rows.csv());
    let answer = place.ok("train data.csv --target y --model linear --memory 64MB");
    assert_snapshot!(answer, @r#"
    exit 0
    --- stdout
    trained on 447 rows in [time]: 2 epochs, settled
      on 53 rows held out:
        log loss  0.4690  baseline 0.6925
        AUC  0.8746  baseline 0.5000
        accuracy  0.7547  baseline 0.6415
        F1  0.7111  baseline 0.000
        precision  0.6154  baseline 0.000
        recall  0.8421  baseline 0.000
        Brier score  0.1585  baseline 0.2497
      memory: peak [size] of [size] ([source]), [OOM kills]
      run [run]: tidegate show [run] · tidegate predict [run] DATA
    --- stderr
    memory [size],[held]
    predicting "y": one of two values, by a linear model
      column  role  distinct  missing  encoding  columns  bytes/row  why
      a  numeric  447  number  1  4
      remarks  category  4  20.4%  dummy  5  8  few categories: a column for each
      b  numeric  442  number  1  4
      c  numeric  423  number  1  4
    shape: 500 rows × 4 columns → 500 × 8 (dense 3, sparse 5), [size] packed
    plan: [size] of [size]: runtime [size] · data buffers [size] · evaluation [size] · pack [size]
    epoch 1/5 in [time]: training loss 0.6931
    epoch 2/5 in [time]: training loss 0.2256 · log loss 0.4690 · AUC 0.8746
    "#);
    let trained = place.json("train data.csv --target y --model linear --memory 64MB");
    assert_eq!(trained["report"]["rows"]["used"], 500);
}

#[test]
fn quoted_line_ends_in_a_large_file() {
    // Wherever one looks into the middle of it, a line may begin inside a quoted field.
    let mut random = Random(1);
    let row = |i: usize| {
        let (a, y) = (random.number(), i % 2);
        format!("{a:.4},\"some text\nword, more words {i}\",{y}\n")
    };
    let rows: String = (0..60_000).map(row).collect();
    let place = Place::with(format!("a,t,y\n{rows}"));
    for options in ["", "--ignore t"] {
        let trained = place.json(&format!(
            "train data.csv --target y --model linear --memory 96MB {options}"
        ));
        assert_eq!(trained["report"]["rows"]["used"], 60_000, "{options}");
    }
}

#[test]
fn missing_values_in_every_spelling() {
    let spellings = ["", "NA", "NaN", "null", "?"];
    let mut rows = Rows::binary(500);
    for (i, row) in rows.rows.iter_mut().enumerate().filter(|(i, _)| i % 5 == 0) {
        row[0] = spellings[i / 5 % spellings.len()].into();
    }
    let many = weights(rows.csv(), "--target y");
    rows.rows.iter_mut().step_by(5).for_each(|row| row[0].clear());
    assert!(many == weights(rows.csv(), "--target y"));
    rows.rows
        .iter_mut()
        .step_by(5)
        .for_each(|row| row[0] = "-999".into());
    assert!(many != weights(rows.csv(), "--target y"));
    assert!(many == weights(rows.csv(), "--target y --missing -999"));
    rows.rows
        .iter_mut()
        .step_by(5)
        .for_each(|row| row[0] = "none given".into());
    let place = Place::with(rows.csv());
    let words = "train data.csv --target y --model linear --memory 64MB --missing"
        .split(' ')
        .chain(["none given"]);
    assert_eq!(place.run_words(&words.collect::<Vec<_>>()).code, Some(0));
}

#[test]
fn targets_in_words() {
    for (no, yes) in [("no", "yes"), ("False", "True"), ("-1", "1"), ("a, b", "c \"d\"")] {
        let mut rows = Rows::binary(500);
        for row in &mut rows.rows {
            let word = if row[3] == "1" { yes } else { no };
            row[3] = format!("\"{}\"", word.replace('"', "\"\""));
        }
        check(rows.csv(), "--target y");
    }
}

#[test]
fn a_name_that_comes_twice() {
    let place = Place::with("a,a,,y\n1,2,3,0\n2,1,4,1\n3,5,6,1\n4,4,4,0\n");
    assert_snapshot!(place.run("train data.csv").error(), @r"
    exit 2
    error: which column is to be predicted?
      hint: say --target COLUMN; the columns are a, a.1, column_3, y
    ");
    place.ok("train data.csv --target y --model linear --memory 64MB");
}
