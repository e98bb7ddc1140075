//! Tables that cannot be trained on: what is wrong, where, and what to do about it.

use insta::assert_snapshot;

use crate::help::{Answer, Place};
use crate::tables::{Rows, binary, gzip};

fn train(contents: impl AsRef<[u8]>) -> Answer {
    train_with(contents, "")
}

fn train_with(contents: impl AsRef<[u8]>, options: &str) -> Answer {
    Place::with(contents).run(&format!(
        "train data.csv --target y --model linear --memory 64MB {options}"
    ))
}

#[test]
fn ragged_rows() {
    assert_snapshot!(train(binary() + "1,2\n").error(), @r"
    exit 1
    error: [dir]/data.csv:202: 2 fields where the table has 4 columns
      hint: mend the row, name the separator with --delimiter, or leave such rows out: --bad-rows skip
    ");
    assert_snapshot!(train(binary() + "1,2,3,1,5\n").error(), @r"
    exit 1
    error: [dir]/data.csv:202: 5 fields where the table has 4 columns
      hint: mend the row, name the separator with --delimiter, or leave such rows out: --bad-rows skip
    ");
    // Blank lines are no rows, but they are counted as lines.
    assert_snapshot!(train(binary() + "\n\n1,2,3\n").error(), @r"
    exit 1
    error: [dir]/data.csv:204: 3 fields where the table has 4 columns
      hint: mend the row, name the separator with --delimiter, or leave such rows out: --bad-rows skip
    ");
}

#[test]
fn quotes_that_never_end() {
    let text = binary() + "1,\"2,3,1\n" + &Rows::binary(20).headless();
    assert_snapshot!(train(text).error(), @r"
    exit 1
    error: [dir]/data.csv:202: a quoted field starts on this row and never ends
      hint: a quote may be missing its partner; if quotes mean nothing in this file, say --quote none
    ");
}

#[test]
fn targets_that_turn_up_late() {
    // Deep in the file, so that nothing but the real pass meets them.
    let late = |row: &str| gzip(&(Rows::binary(60_000).csv() + row + "\n"));
    assert_snapshot!(train(late("0.1,0.2,0.3,2")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: target "y": "2" is another value beside "0", "1"
      hint: for more than two values say --task multiclass, for a number to predict --task regression; to leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train(late("0.1,0.2,0.3,maybe")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: target "y": "maybe" is another value beside "0", "1"
      hint: for more than two values say --task multiclass; or mend the value, or leave such rows out: --bad-rows skip
    "#);
    let number = |row: &str| gzip(&(Rows::regression(60_000).csv() + row + "\n"));
    assert_snapshot!(train(number("0.1,0.2,0.3,inf")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: target "y": "inf" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    let long = "é".repeat(500);
    assert_snapshot!(train(number(&format!("0.1,0.2,3,{long}"))).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: target "y": "éééééééééééééééééééééééééééééééééééééééé…" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
}

/// A value that is not what its column holds counts as missing, and the user hears of the first.
#[test]
fn values_that_are_no_numbers_count_as_missing() {
    let long = "é".repeat(500);
    let rows = format!("0.1,oops,3,1\n0.1,{long},3,0\n0.1,0.2,inf,1\n0.1,0.2,-Infinity,1\n");
    let place = Place::with(gzip(&(Rows::binary(60_000).csv() + &rows)));
    for model in ["linear", "boost"] {
        let command = format!("train data.csv --target y --memory 96MB --trees 3 --model {model}");
        let rows = place.json(&command)["report"]["rows"].clone();
        assert_eq!(
            (&rows["used"], &rows["bad"]),
            (&60_004.into(), &0.into()),
            "{model}"
        );
        let broken = |column: &str| {
            let broken = &rows["broken"][column];
            (
                broken["count"].as_u64(),
                broken["line"].as_u64(),
                broken["first"].as_str(),
            )
        };
        assert_eq!(broken("b"), (Some(2), Some(60_002), Some("oops")), "{model}");
        assert_eq!(broken("c"), (Some(2), Some(60_004), Some("inf")), "{model}");
        let said = place.ok(&command).stderr;
        let warnings: Vec<&str> = said
            .lines()
            .filter(|line| line.starts_with("warning: "))
            .collect();
        assert_eq!(warnings.len(), 2, "{model}: {said}");
        assert!(warnings[0].contains("\"oops\" on line 60002"), "{model}: {said}");
    }
}

#[test]
fn bytes_that_are_not_utf8() {
    let mut text = Rows::binary(300).csv().into_bytes();
    text.extend(b"0.1,caf\xe9,3,1\n");
    assert_snapshot!(train(&text).error(), @r#"
    exit 1
    error: [dir]/data.csv:302: column "b": bytes that are not UTF-8
      hint: convert the file (iconv -f latin1 -t utf-8), or leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train(b"a,caf\xe9,y\n1,2,0\n2,3,1\n").error(), @r#"
    exit 1
    error: [dir]/data.csv:1: column "caf�": bytes that are not UTF-8
      hint: convert the file (iconv -f latin1 -t utf-8), or leave such rows out: --bad-rows skip
    "#);
}

#[test]
fn one_word_does_not_cost_a_column() {
    let place = Place::with(binary() + "0.1,oops,3,1\n");
    let trained = place.json("train data.csv --target y --model linear --memory 64MB");
    let rows = &trained["report"]["rows"];
    assert_eq!((&rows["used"], &rows["bad"]), (&201.into(), &0.into()));
    assert_eq!(rows["broken"]["b"]["count"], 1);
    let weights = trained["report"]["weights"].as_array().unwrap();
    let names: Vec<&str> = weights.iter().filter_map(|weight| weight[0].as_str()).collect();
    assert!(
        ["a", "b", "c"].iter().all(|name| names.contains(name)),
        "every column counts: {names:?}"
    );
}

#[test]
fn targets_that_teach_nothing() {
    assert_snapshot!(train("a,y\n1,5\n2,5\n3,5\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: the target "y" has only one value, "5"
      hint: there is nothing to learn: choose another --target, or check how the file was filtered
    "#);
    assert_eq!(
        train("a,y\n1,5\n2,5\n3,5.0\n").code,
        Some(1),
        "a constant written in two ways"
    );
    assert_snapshot!(train("a,y\n1,\n2,NA\n3,\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: the target "y" has no value in any row
      hint: choose another --target
    "#);
    let names: String = (0..2_000).map(|i| format!("{},name{i}\n", i % 7)).collect();
    assert_snapshot!(train(format!("a,y\n{names}")).error(), @r#"
    exit 1
    error: [dir]/data.csv: the target "y" has more than 1000 different values
      hint: choose another --target; if it is a number to predict, say --task regression
    "#);
    assert_snapshot!(train_with("a,y\n1,red\n2,blue\n3,green\n", "--task regression").error(), @r#"
    exit 1
    error: [dir]/data.csv:2: target "y": "red" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train_with("a,y\n1,0\n2,1\n3,2\n", "--task binary").error(), @r#"
    exit 1
    error: [dir]/data.csv: the target "y" has more than two values: "0", "1", "2"
      hint: for a number say --task regression, for several values --task multiclass
    "#);
    let number = Rows::regression(300).csv() + "0.1,0.2,3,high\n";
    assert_snapshot!(train(number).error(), @r#"
    exit 1
    error: [dir]/data.csv:302: target "y": "high" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
}

#[test]
fn no_column_to_learn_from() {
    assert_snapshot!(train("unit,city,y\nm,,1\nm,,0\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: no column beside the target "y" tells anything
      hint: these were left out: "unit", "city"; give one a role in [features] of a job file
    "#);
    assert_snapshot!(train("y\n1\n0\n1\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: no column beside the target "y" tells anything
      hint: if all fields ended up in one column, name the separator: --delimiter ';'
    "#);
}

#[test]
fn columns_that_are_not_there() {
    let place = Place::with("price,rooms,Delayed\n1,2,0\n2,3,1\n");
    assert_snapshot!(place.run("train data.csv --target delayd").error(), @r#"
    exit 2
    error: [dir]/data.csv: there is no column "delayd"
      hint: did you mean "Delayed"? The columns are "price", "rooms", "Delayed"
    "#);
    assert_snapshot!(place.run("train data.csv --target zzz").error(), @r#"
    exit 2
    error: [dir]/data.csv: there is no column "zzz"
      hint: the columns are "price", "rooms", "Delayed"
    "#);
    assert_snapshot!(place.run("train data.csv").error(), @r"
    exit 2
    error: which column is to be predicted?
      hint: say --target COLUMN; the columns are price, rooms, Delayed
    ");
    let many: Vec<String> = (0..100).map(|i| format!("column{i}")).collect();
    place.write(
        "wide.csv",
        format!("{}\n{}\n", many.join(","), vec!["1"; 100].join(",")),
    );
    assert_snapshot!(place.run("train wide.csv").error(), @r"
    exit 2
    error: which column is to be predicted?
      hint: say --target COLUMN; the columns are column0, column1, column2, column3, column4, column5, column6, column7, column8, column9, column10, column11, column12, column13, column14, column15, column16, column17, column18, column19, …
    ");
}

#[test]
fn rows_larger_than_the_budget() {
    let table = |middle: &str| format!("{}0.1,0.2,{middle},1\n{}", binary(), Rows::binary(20).headless());
    assert_snapshot!(train(table(&"7".repeat(70_000_000))).error(), @r"
    exit 1
    error: [dir]/data.csv:202: this row is larger than the memory left for it: over [size] of [size]
      hint: give more --memory (at least [size]), or check that the file has line ends
    ");
    let quoted = format!("\"{}\"", "some text, and more\n".repeat(4_000_000));
    assert_snapshot!(train(table(&quoted)).error(), @r"
    exit 1
    error: [dir]/data.csv:202: this row is larger than the memory left for it: over [size] of [size]
      hint: a quote may be missing its partner; if quotes mean nothing in this file, say --quote none
    ");
    assert_snapshot!(train(format!("a,b,y{}", ",1,2".repeat(20_000_000))).error(), @r"
    exit 1
    error: [dir]/data.csv:1: this row is larger than the memory left for it: over [size] of [size]
      hint: give more --memory (at least [size]), or check that the file has line ends
    ");
}

#[test]
fn bad_rows_are_skipped_and_counted() {
    let mut text = Rows::binary(300).csv();
    text.push_str("1,2\n1,2,3,1,5\n\n0.1,0.2,inf,1\n0.1,0.2,0.3,\n");
    let place = Place::with(text);
    let trained = place.json("train data.csv --target y --model linear --memory 64MB --bad-rows skip");
    let rows = &trained["report"]["rows"];
    assert_eq!(rows["bad"], 2, "{rows}");
    assert_eq!(rows["without_target"], 1, "{rows}");
    assert_eq!(rows["used"], 301, "{rows}");
    assert_eq!(rows["broken"]["c"]["count"], 1, "{rows}");
    let said = place
        .ok("train data.csv --target y --model linear --memory 64MB --bad-rows skip")
        .stdout;
    assert!(said.contains("left out 2 rows: bad\n"), "{said}");
}

#[test]
fn nothing_but_bad_rows() {
    let text = "a,b,y\n".to_string() + &"1,2\n".repeat(50);
    assert_snapshot!(train_with(&text, "--bad-rows skip").error(), @r"
    exit 1
    error: [dir]/data.csv: none of the first 50 rows can be used; line 2 has 2 fields where the table has 3 columns
      hint: check the separator (--delimiter) and the header (--header)
    ");
    assert_snapshot!(train(&text).error(), @r"
    exit 1
    error: [dir]/data.csv: none of the first 50 rows can be used; line 2 has 2 fields where the table has 3 columns
      hint: check the separator (--delimiter) and the header (--header)
    ");
}

#[test]
fn numbers_too_large_to_add_up() {
    let values = "a,b,y\n1e308,1,0\n-1e308,2,1\n1e308,3,0\n1e-320,4,1\n5,5,0\n";
    assert_snapshot!(train_with(values, "--holdout 0").error(), @r"
    exit 1
    error: the loss is no longer a finite number in epoch 1
      hint: check the data for extreme values
    ");
    let targets = "a,y\n1,1e308\n2,-1e308\n3,1e300\n4,7\n";
    assert_snapshot!(train_with(targets, "--holdout 0").error(), @r"
    exit 1
    error: the loss is no longer a finite number in epoch 1
      hint: check the data for extreme values
    ");
}
