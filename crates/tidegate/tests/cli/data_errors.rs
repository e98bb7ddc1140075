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
fn values_that_are_no_numbers() {
    // Deep in the file, so that nothing but the real pass meets them.
    let late = |row: &str| gzip(&(Rows::binary(60_000).csv() + row + "\n"));
    assert_snapshot!(train(late("0.1,oops,3,1")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: column "b": "oops" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train(late("0.1,0.2,inf,1")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: column "c": "inf" is infinite
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train(late("0.1,0.2,-Infinity,1")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: column "c": "-Infinity" is infinite
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train(late("0.1,0.2,0.3,2")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: target "y": "2" is a third value beside "0" and "1"
      hint: if it is a number to predict, say --task regression; to leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train(late("0.1,0.2,0.3,maybe")).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: target "y": "maybe" is a third value beside "0" and "1"
      hint: mend the value, or leave such rows out: --bad-rows skip
    "#);
    let long = "é".repeat(500);
    assert_snapshot!(train(late(&format!("0.1,{long},3,1"))).error(), @r#"
    exit 1
    error: [dir]/data.csv:60002: column "b": "éééééééééééééééééééééééééééééééééééééééé…" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
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
    let text = binary() + "0.1,oops,3,1\n";
    assert_snapshot!(train(&text).error(), @r#"
    exit 1
    error: [dir]/data.csv:202: column "b": "oops" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    let place = Place::with(text);
    let trained = place.json("train data.csv --target y --model linear --memory 64MB --bad-rows skip");
    let rows = &trained["report"]["rows"];
    assert_eq!((&rows["used"], &rows["bad"]), (&200.into(), &1.into()));
    assert_eq!(
        trained["report"]["weights"].as_array().unwrap().len(),
        3,
        "every column counts"
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
    assert_snapshot!(train("a,y\n1,red\n2,blue\n3,green\n4,red\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: the target "y" holds text with more than two values: "red", "blue", "green"
      hint: a linear model predicts a number or one of two values: choose another --target
    "#);
    assert_snapshot!(train_with("a,y\n1,red\n2,blue\n3,green\n", "--task regression").error(), @r#"
    exit 1
    error: [dir]/data.csv:2: target "y": "red" is not a number
      hint: mend the value, name the word for missing values (--missing WORD), or leave such rows out: --bad-rows skip
    "#);
    assert_snapshot!(train_with("a,y\n1,0\n2,1\n3,2\n", "--task binary").error(), @r#"
    exit 1
    error: [dir]/data.csv: the target "y" has more than two values: "0", "1", "2"
      hint: for a number say --task regression
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
    assert_snapshot!(train("name,city,y\nx,Oslo,1\nz,Rome,0\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: no column but the target "y" holds numbers
      hint: a linear model reads numeric columns; these hold text: "name", "city"
    "#);
    assert_snapshot!(train("y\n1\n0\n1\n").error(), @r#"
    exit 1
    error: [dir]/data.csv: no column but the target "y" holds numbers
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
    assert_eq!(rows["bad"], 3, "{rows}");
    assert_eq!(rows["without_target"], 1, "{rows}");
    assert_eq!(rows["used"], 300, "{rows}");
    let said = place
        .ok("train data.csv --target y --model linear --memory 64MB --bad-rows skip")
        .stdout;
    assert!(said.contains("left out 3 rows: bad\n"), "{said}");
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
