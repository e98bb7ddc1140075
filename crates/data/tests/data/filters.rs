//! Conditions on tables: values compared as what their columns hold, in every pass alike.

use std::fmt::Write;
use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Date32Array, Float64Array, RecordBatch};
use parquet::arrow::ArrowWriter;
use tidegate_data::filter::{Condition, SampleSize};
use tidegate_data::target::Task;
use tidegate_data::{BadRows, Error, Fault, TableOptions};

use crate::help::{Scratch, gzip, without};

fn asking(condition: &str, options: TableOptions) -> TableOptions {
    TableOptions {
        condition: Some(Condition::new(condition).unwrap()),
        ..options
    }
}

/// The rows that are used and those that were not asked for.
fn used(scratch: &Scratch, options: &TableOptions) -> (u64, u64) {
    let counts = scratch.read("y", options, 2).unwrap().counts;
    (counts.rows, counts.not_asked)
}

fn refused(scratch: &Scratch, options: &TableOptions) -> Error {
    scratch.open("y", options).err().unwrap()
}

/// 600 rows: `member` is yes in a third of them, written in three ways, and `due` runs over 600 days from 2023-12-01.
fn members(date: impl Fn(i64, i64, i64) -> String) -> Scratch {
    let mut text = String::from("member,due,a,y\n");
    for i in 0..600 {
        let member = ["yes", "no", "No", "Y", "N", "n", "TRUE", "false", "F"][i % 9];
        let (year, month, day) = (
            (i / 336 + 2023) as i64,
            (i / 28 % 12 + 1) as i64,
            (i % 28 + 1) as i64,
        );
        writeln!(
            text,
            "{member},{},{}.5,{}.25",
            date(year, month, day),
            i * 7 % 101,
            i % 13
        )
        .unwrap();
    }
    Scratch::new(text)
}

#[test]
fn a_text_beside_a_truth_or_a_time_is_read_as_one() {
    let iso = members(|year, month, day| format!("{year}-{month:02}-{day:02}"));
    let german = members(|year, month, day| format!("{day:02}.{month:02}.{year}"));
    for (condition, rows) in [
        ("member = 'yes'", 200),
        ("member != 'yes'", 400),
        ("member in ('t', '1')", 200),
        ("member = true and a > 50", 100),
        ("member > 'no'", 200),
        ("member = 1", 200),
        ("due >= '2024-01-01'", 264),
        ("due < '2024-01-01 00:00'", 336),
        ("due between '2023-02-01' and '2023-02-10'", 10),
        ("due != '2023-12-28'", 599),
        ("due is not null and member is null", 0),
    ] {
        for scratch in [&iso, &german] {
            // As features, and as columns that only the condition asks for.
            for options in [without(&[]), without(&["member", "due"])] {
                let options = asking(condition, options);
                match rows {
                    0 => assert!(matches!(
                        scratch.open("y", &options),
                        Err(Error::NoRowUsed { .. })
                    )),
                    _ => assert_eq!(used(scratch, &options), (rows, 600 - rows), "{condition}"),
                }
            }
        }
    }
    let day_first = asking("due >= '01.01.2024'", TableOptions::default());
    assert_eq!(used(&german, &day_first), (264, 336));
    // A sample of what the condition leaves, which has to be found in the same rows.
    let some = TableOptions {
        sample: Some(SampleSize::Rows(150)),
        ..asking("member = 'yes'", TableOptions::default())
    };
    assert_eq!(used(&iso, &some), (150, 450));
    // Letters can be asked for where nothing else reads the column.
    let letters = asking(
        "due like '2024-%' and member like '_e%'",
        without(&["member", "due"]),
    );
    assert_eq!(used(&iso, &letters), (29, 571));
}

#[test]
fn what_no_value_of_a_column_can_be_is_refused() {
    let iso = members(|year, month, day| format!("{year}-{month:02}-{day:02}"));
    let check = |condition: &str, options: TableOptions, expected: &str| {
        let error = refused(&iso, &asking(condition, options));
        assert!(error.is_usage() && error.hint().is_some());
        assert_eq!(error.to_string(), format!("the condition compares {expected}"));
    };
    let all = || without(&[]);
    check(
        "member != 'maybe'",
        all(),
        "\"member\" with 'maybe', and \"member\" holds truths",
    );
    check(
        "a > 3 or not member in ('yes', 'sometimes')",
        without(&["member"]),
        "\"member\" with 'sometimes', and \"member\" holds truths",
    );
    check(
        "member like 'y%'",
        all(),
        "\"member\" with like 'y%', and \"member\" holds truths",
    );
    check(
        "due > 'June'",
        all(),
        "\"due\" with 'June', and \"due\" holds times",
    );
    check(
        "due > 2024",
        without(&["due"]),
        "\"due\" with 2024, and \"due\" holds times",
    );
    check(
        "due like '2024%'",
        all(),
        "\"due\" with like '2024%', and \"due\" holds times",
    );
}

/// 100 rows of typed columns; `code` is -999 in every fourth.
fn typed() -> Scratch {
    let rows = || 0..100_i32;
    let columns: Vec<(&str, ArrayRef)> = vec![
        (
            "due",
            Arc::new(Date32Array::from_iter_values(
                rows().map(|i| 19_800 + i * 37 % 100),
            )),
        ),
        (
            "ok",
            Arc::new(BooleanArray::from_iter(rows().map(|i| Some(i % 5 == 0)))),
        ),
        (
            "code",
            Arc::new(Float64Array::from_iter_values(
                rows().map(|i| if i % 4 == 0 { -999.0 } else { f64::from(i % 7) }),
            )),
        ),
        (
            "a",
            Arc::new(Float64Array::from_iter_values(
                rows().map(|i| f64::from(i * 7 % 31)),
            )),
        ),
        (
            "y",
            Arc::new(Float64Array::from_iter_values(
                rows().map(|i| f64::from(i % 9) + 0.5),
            )),
        ),
    ];
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let mut bytes = Vec::new();
    let mut writer = ArrowWriter::try_new(&mut bytes, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    Scratch::new(bytes)
}

#[test]
fn typed_times_and_truths_are_compared_as_what_they_are() {
    let typed = typed();
    // 19,800 days after 1970 is 2024-03-18.
    for (condition, rows) in [
        ("due >= '2024-04-01'", 86),
        ("due = '2024-03-18'", 1),
        ("due between '2024-03-18' and '2024-03-27 12:00'", 10),
        ("ok = 'yes'", 20),
        ("ok != 'True'", 80),
        ("ok = 1", 20),
    ] {
        for options in [without(&[]), without(&["due", "ok"])] {
            let options = asking(condition, options);
            if rows > 1 {
                assert_eq!(used(&typed, &options), (rows, 100 - rows), "{condition}");
            } else {
                // One row has one target.
                assert!(matches!(
                    typed.open("y", &options),
                    Err(Error::TargetConstant { .. })
                ));
            }
        }
    }
    let error = refused(&typed, &asking("due like '2024%'", without(&["due"])));
    assert!(matches!(error, Error::OtherKind { .. }), "{error}");
}

#[test]
fn a_number_that_means_missing_means_it_among_texts_too() {
    let options = TableOptions {
        missing: vec!["-999".into()],
        ..without(&["code"])
    };
    let typed = typed();
    assert_eq!(used(&typed, &asking("code is null", options.clone())), (25, 75));
    assert_eq!(used(&typed, &asking("code != 'x'", options)), (75, 25));
}

#[test]
fn a_target_is_judged_by_the_rows_that_are_used() {
    let mut text = String::from("kind,a,y\n");
    for i in 0..400 {
        let target = if i % 2 == 0 {
            format!("{}.5", i % 17)
        } else {
            ["low", "mid", "top"][i % 3].into()
        };
        writeln!(text, "{},{},{target}", i % 2, i * 7 % 101).unwrap();
    }
    let scratch = Scratch::new(text);
    let task = |condition, task| {
        let options = TableOptions {
            task,
            ..asking(condition, TableOptions::default())
        };
        let table = scratch.open("y", &options)?;
        Ok::<_, Error>(table.encoders.target.task())
    };
    for said in [None, Some(Task::Regression)] {
        assert_eq!(task("kind = 0", said).unwrap(), Task::Regression);
    }
    assert_eq!(task("kind = 1", None).unwrap(), Task::Multiclass);
    let texts = task("kind = 1", Some(Task::Regression)).unwrap_err();
    assert!(matches!(texts, Error::TargetNotANumber { .. }), "{texts}");
    // A bad target that is used is found by the pass, with its line.
    let asked = TableOptions {
        task: Some(Task::Regression),
        ..asking("kind = 0 or a = 7", TableOptions::default())
    };
    match scratch.read("y", &asked, 2).unwrap_err() {
        Error::BadRow { line, fault, .. } => {
            let (column, value) = ("y".into(), "mid".into());
            assert_eq!((line, *fault), (3, Fault::TargetNotANumber { column, value }));
        }
        other => panic!("{other}"),
    }
}

#[test]
fn a_class_behind_the_sample_is_a_class() {
    let file = |third: &str| {
        let mut text = String::from("a,b,y\n");
        for i in 0..120_000 {
            let target = if i < 110_000 { ["cat", "dog"][i % 2] } else { third };
            writeln!(text, "{}.5,{},{target}", i * 7 % 101, i % 7).unwrap();
        }
        Scratch::new(gzip(text.as_bytes()))
    };
    let three = file("fish");
    let labels = |scratch: &Scratch| {
        let table = scratch.open("y", &TableOptions::default()).unwrap();
        let labels = table.encoders.target.labels();
        labels.iter().map(|label| label.text.clone()).collect::<Vec<_>>()
    };
    assert_eq!(labels(&three), ["cat", "dog", "fish"]);
    assert_eq!(labels(&file("cat")), ["cat", "dog"]);
    // Who says that there are two values is told of the third.
    let binary = TableOptions {
        task: Some(Task::Binary),
        ..TableOptions::default()
    };
    let error = three.read("y", &binary, 2).unwrap_err();
    assert!(matches!(&error, Error::BadRow { line: 110_002, .. }), "{error}");
    assert!(error.hint().unwrap().contains("--task multiclass"));
    let numbers = Fault::OtherValue {
        column: "y".into(),
        value: "2".into(),
        known: vec!["0".into(), "1".into()],
    };
    assert!(numbers.hint().unwrap().contains("--task multiclass"));
}

#[test]
fn a_condition_that_no_row_meets_is_named() {
    let scratch = members(|year, month, day| format!("{year}-{month:02}-{day:02}"));
    for condition in [
        "a > 1000",
        "member = 'yes' and member = 'no'",
        "due > '2031-01-01'",
    ] {
        let options = asking(condition, TableOptions::default());
        let error = refused(&scratch, &options);
        let shown = error.to_string();
        assert!(
            shown.ends_with(&format!(": no row meets --where {condition:?}")),
            "{shown}"
        );
        assert!(error.hint().unwrap().contains("--where"));
    }
    let sampled = TableOptions {
        sample: Some(SampleSize::Share(1e-9)),
        ..TableOptions::default()
    };
    let error = refused(&scratch, &sampled).to_string();
    assert!(error.ends_with(": no row is in the sample"), "{error}");
    // Rows without a target are another matter.
    let blank = Scratch::new("a,b,y\n1,2,\n3,4,5\n6,7,8\n");
    let error = refused(&blank, &asking("a = 1", TableOptions::default()));
    assert!(matches!(error, Error::TargetMissing { .. }), "{error}");
}

#[test]
fn bytes_that_are_no_text_are_placed_behind_quoted_separators() {
    let mut text = b"a,b,y\n".to_vec();
    for i in 0..20 {
        text.extend(format!("\"r,{}\",x{},{i}.5\n", i % 3, i % 4).bytes());
    }
    text.extend(b"\"r,s\",\xff,1\n");
    let scratch = Scratch::new(text);
    match scratch.read("y", &TableOptions::default(), 1) {
        Err(Error::BadRow { line: 22, fault, .. }) => {
            assert_eq!(*fault, Fault::NotUtf8 { column: "b".into() });
        }
        other => panic!("{:?}", other.map(|read| read.counts)),
    }
    let skip = TableOptions {
        bad_rows: BadRows::Skip,
        ..TableOptions::default()
    };
    assert_eq!(scratch.read("y", &skip, 1).unwrap().counts.bad, 1);
}
