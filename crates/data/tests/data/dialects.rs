//! The same small table, as different programs write it.

use tidegate_data::csv::DialectOptions;
use tidegate_data::{Error, SourceOptions, TableOptions};

use crate::help::{Scratch, all, all_as};

fn expected() -> [(Vec<Option<f64>>, f64); 3] {
    [
        (vec![Some(1.0), Some(2.0)], 0.5),
        (vec![Some(-3.0), None], 1.25),
        (vec![Some(5.0), Some(6.0)], 7.0),
    ]
}

fn check(what: &str, text: impl AsRef<[u8]>, options: &TableOptions) {
    assert_eq!(all(text, options), expected(), "{what}");
}

#[test]
fn every_way_to_write_a_table() {
    let plain = "a,b,y\n1,2,0.5\n-3,,1.25\n5,6,7\n";
    let crlf = plain.replace('\n', "\r\n");
    let with_mark = [b"\xef\xbb\xbf", plain.as_bytes()].concat();
    let mark_and_quotes = [b"\xef\xbb\xbf", plain.replace("a,", "\"a\",").as_bytes()].concat();
    for (what, text) in [
        ("plain", plain.as_bytes().to_vec()),
        ("CRLF", crlf.clone().into()),
        ("no last line end", plain.trim_end().into()),
        ("CRLF, no last line end", crlf.trim_end().into()),
        ("byte order mark", with_mark),
        ("byte order mark before a quote", mark_and_quotes),
        ("semicolons", plain.replace(',', ";").into()),
        ("tabs", plain.replace(',', "\t").into()),
        ("bars", plain.replace(',', "|").into()),
        ("blanks behind separators", plain.replace(',', ", ").into()),
        (
            "blank lines",
            format!("\n\r\n{}\n\n", plain.replace('\n', "\n\n")).into(),
        ),
        (
            "quoted",
            plain.replace("-3", "\"-3\"").replace("7\n", "\"7\"\n").into(),
        ),
        ("quoted, CRLF", crlf.replace("7\r\n", "\"7\"\r\n").into()),
        ("quoted names", plain.replace("a,b", "\"a\",\"b\"").into()),
        (
            "all in single quotes",
            "'a','b','y'\n'1','2','0.5'\n'-3','','1.25'\n'5','6','7'\n".into(),
        ),
        (
            "exponents and signs",
            "a,b,y\n1e0,+2,5e-1\n-3.0,NA,1.25\n0.5E1,6.,7\n".into(),
        ),
        (
            "a column of text",
            "a,t,b,y\n1,u,2,0.5\n-3,\"v,\"\"w\n\",,1.25\n5,,6,7\n".into(),
        ),
    ] {
        check(what, text, &TableOptions::default());
    }
}

#[test]
fn what_the_user_says_goes_before_what_is_inferred() {
    let said = |delimiter: Option<u8>, quote: Option<Option<u8>>, header: Option<bool>| SourceOptions {
        dialect: DialectOptions {
            delimiter,
            quote,
            header,
        },
        ..SourceOptions::default()
    };
    let usual = TableOptions::default();
    let colons = "a:b:y\n1:2:0.5\n-3::1.25\n5:6:7\n";
    assert_eq!(all_as(colons, &said(Some(b':'), None, None), &usual), expected());
    let quotes = "a,\"t,b,y\n1,\"x,2,0.5\n-3,x\",,1.25\n5,\"\",6,7\n";
    assert_eq!(all_as(quotes, &said(None, Some(None), None), &usual), expected());
    let scratch = Scratch::new("1,2,0.5\n-3,,1.25\n5,6,7\n");
    let table = scratch
        .open_as("column_3", &said(None, None, Some(false)), &usual)
        .unwrap();
    let names: Vec<&str> = table
        .source
        .columns()
        .iter()
        .map(|column| column.name.as_str())
        .collect();
    assert_eq!(names, ["column_1", "column_2", "column_3"]);
}

#[test]
fn words_for_missing_values() {
    for word in [
        "", " ", "NA", "N/A", "nan", "NaN", "NULL", "null", "None", "?", "#N/A",
    ] {
        let text = format!("a,b,y\n1,2,0.5\n-3,{word},1.25\n5,6,7\n");
        check(word, text, &TableOptions::default());
    }
    for word in ["-999", "unknown", "n.a."] {
        let text = format!("a,b,y\n1,2,0.5\n-3,{word},1.25\n5,6,7\n");
        let options = TableOptions {
            missing: vec![word.into()],
            ..TableOptions::default()
        };
        check(word, text, &options);
    }
}

#[test]
fn a_missing_target_leaves_its_row_out() {
    let scratch = Scratch::new("a,y\n1,2\n2,\n3,4\n4,NA\n5,9\n");
    let table = scratch.open("y", &TableOptions::default()).unwrap();
    let found = crate::help::read(&table, &crate::help::options(1, None), crate::help::ROOMY).unwrap();
    assert_eq!(
        (found.counts.rows, found.counts.without_target, found.counts.bad),
        (3, 2, 0)
    );
    assert_eq!(
        found.rows.iter().map(|row| row.line).collect::<Vec<_>>(),
        [2, 4, 6]
    );
}

#[test]
fn files_that_are_not_tables() {
    let check = |bytes: &[u8], expected: fn(&Error) -> bool| {
        let found = Scratch::new(bytes).open("y", &TableOptions::default());
        let found = found.map(|_| ()).unwrap_err();
        assert!(
            expected(&found),
            "{:?}: {found:?}",
            String::from_utf8_lossy(&bytes[..bytes.len().min(20)])
        );
    };
    check(b"", |error| matches!(error, Error::Empty { .. }));
    check(b"a,y\n", |error| matches!(error, Error::HeaderOnly { .. }));
    check(b"a,y", |error| matches!(error, Error::HeaderOnly { .. }));
    check(b"\n\n\n", |error| matches!(error, Error::Empty { .. }));
    check(b"\xef\xbb\xbf", |error| matches!(error, Error::Empty { .. }));
    check(b"PAR1\x15\x04", |error| {
        matches!(
            error,
            Error::Broken {
                format: "Parquet",
                ..
            }
        )
    });
    check(b"a,y\n1,2\n3,\x004\n", |error| {
        matches!(error, Error::NotText { .. })
    });
    check(b"a,x\n1,2\n", |error| {
        matches!(error, Error::UnknownColumn { .. })
    });
    check(b"a,y\n1,2\n3,2\n", |error| {
        matches!(error, Error::TargetConstant { .. })
    });
    check(b"a,y\n1,\n3,\n", |error| {
        matches!(error, Error::TargetMissing { .. })
    });
    check(
        b"a,b,y\n1,,1\n1,,2\n1,,3\n",
        |error| matches!(error, Error::NoFeatures { left_out, .. } if *left_out == ["a", "b"]),
    );
}
