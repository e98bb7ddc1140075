//! What is said about single columns: refused where it cannot be, and done where it can.

use tidegate_data::encode::{Encoder, TimePart};
use tidegate_data::features::{Encoding, FeatureOptions, Impute, TokenWeight, WrongOption};
use tidegate_data::{
    EncodingPlan, Error, Features, Purpose, Role, Source, SourceOptions, Table, TableOptions,
};
use tidegate_memory::Ledger;

use crate::help::{ROOMY, Scratch, fit_options};

fn read(text: &str) -> FeatureOptions {
    serde_json::from_str(text).unwrap()
}

fn refused(said: &FeatureOptions) -> WrongOption {
    said.check("x").unwrap_err()
}

#[test]
fn options_out_of_range_are_refused_by_name() {
    let check = |text: &str, option: &str, value: &str, hint: &str| {
        let wrong = refused(&read(text));
        assert_eq!((wrong.option, wrong.value.as_str()), (option, value), "{text}");
        assert!(wrong.hint.contains(hint), "{wrong:?}");
        let text = wrong.to_string();
        let expected = format!("column \"x\" in [features]: {option} = {value} ");
        assert!(text.starts_with(&expected), "{text}");
    };
    check(r#"{"bits": 0}"#, "bits", "0", "1 to 31");
    check(r#"{"bits": 32}"#, "bits", "32", "1 to 31");
    check(r#"{"bits": 70}"#, "bits", "70", "1 to 31");
    check(r#"{"folds": 1}"#, "folds", "1", "2 to 100");
    check(r#"{"folds": 101}"#, "folds", "101", "2 to 100");
    check(r#"{"words": 0}"#, "words", "0", "1 or more");
    check(r#"{"characters": [0, 3]}"#, "characters", "[0, 3]", "1 to 32");
    check(r#"{"characters": [5, 3]}"#, "characters", "[5, 3]", "1 to 32");
    check(r#"{"characters": [3, 33]}"#, "characters", "[3, 33]", "1 to 32");
    check(r#"{"clip": [2, 1]}"#, "clip", "[2, 1]", "the lower one first");
    check(r#"{"clip": [1, 1]}"#, "clip", "[1, 1]", "the lower one first");
    check(r#"{"smoothing": -1}"#, "smoothing", "-1", "0 or more");
    check(r#"{"share": 0}"#, "share", "0", "at most 1");
    check(r#"{"share": 1.5}"#, "share", "1.5", "at most 1");
    check(r#"{"max": 0}"#, "max", "0", "1 or more");
    check(r#"{"parts": []}"#, "parts", "[]", "one part or more");
    let odd = f64::NAN;
    for (said, option) in [
        (
            FeatureOptions {
                clip: Some([odd, odd]),
                ..FeatureOptions::default()
            },
            "clip",
        ),
        (
            FeatureOptions {
                clip: Some([0.0, f64::INFINITY]),
                ..FeatureOptions::default()
            },
            "clip",
        ),
        (
            FeatureOptions {
                impute: Some(Impute::Constant(odd)),
                ..FeatureOptions::default()
            },
            "impute",
        ),
        (
            FeatureOptions {
                smoothing: Some(odd),
                ..FeatureOptions::default()
            },
            "smoothing",
        ),
        (
            FeatureOptions {
                share: Some(odd),
                ..FeatureOptions::default()
            },
            "share",
        ),
    ] {
        assert_eq!(refused(&said).option, option);
    }
}

#[test]
fn what_the_readme_shows_is_taken() {
    for text in [
        "{}",
        r#"{"encode": "number", "scale": "standard", "impute": "mean", "flag_missing": true, "clip": [0.0, 5000.0]}"#,
        r#"{"encode": "dummy", "max": 256, "share": 1.0, "least": 1, "drop_one": false}"#,
        r#"{"encode": "impact", "folds": 5, "smoothing": 10.0}"#,
        r#"{"encode": "parts", "parts": ["month", "weekday", "hour"], "cyclic": true}"#,
        r#"{"encode": "tokens", "bits": 18, "words": 1, "weight": "tf"}"#,
        r#"{"bits": 1, "folds": 2, "words": 255, "characters": [1, 32], "smoothing": 0, "max": 1}"#,
        r#"{"bits": 31, "folds": 100, "characters": [3, 3], "impute": -1.5}"#,
    ] {
        assert_eq!(read(text).check("x"), Ok(()), "{text}");
    }
}

#[test]
fn role_and_encoding_have_to_agree() {
    let check = |role: &str, encode: &str, needed: Option<&str>| {
        let said = read(&format!(r#"{{"role": "{role}", "encode": "{encode}"}}"#));
        let Some(needed) = needed else {
            assert_eq!(said.check("x"), Ok(()), "{role}, {encode}");
            return;
        };
        let wrong = refused(&said);
        let expected = format!("encode = {encode:?} does not go with role = {role:?}");
        assert!(wrong.to_string().ends_with(&expected), "{wrong}");
        assert!(wrong.hint.ends_with(&format!("role = {needed:?}")), "{wrong:?}");
    };
    check("numeric", "hash", Some("category"));
    check("category", "parts", Some("time"));
    check("category", "number", Some("numeric"));
    check("time", "number", Some("numeric"));
    check("category", "tokens", Some("text"));
    check("identifier", "dummy", Some("category"));
    check("ignored", "flag", Some("category"));
    check("category", "hash", None);
    check("numeric", "number", None);
    check("boolean", "number", None);
    check("time", "parts", None);
    check("text", "tokens", None);
    check("time", "flag", None);
    check("numeric", "ignore", None);
}

/// A table with one column `x` of interest, a number beside it, and a target.
fn table_of(cell: impl Fn(usize) -> String) -> Scratch {
    let mut text = String::from("x,other,y\n");
    for i in 0..2_000 {
        text.push_str(&format!("{},{},{}.5\n", cell(i), i * 37 % 101, i % 13));
    }
    Scratch::new(text)
}

fn fit(
    scratch: &Scratch,
    said: FeatureOptions,
    purpose: Purpose,
    budget: u64,
) -> Result<(Table, EncodingPlan), Error> {
    let options = TableOptions {
        features: Features::from([("x".to_string(), said)]),
        ..TableOptions::default()
    };
    let ledger = Ledger::new(budget);
    let source = Source::open(&[scratch.path()], &SourceOptions::default(), &["y"], &ledger)?;
    let mut table = Table::open(source, "y", &options, &ledger)?;
    let plan = table.fit_encoders(purpose, &fit_options(1), &ledger)?;
    assert_eq!(ledger.used(), table.encoder_bytes(), "only the encoders are kept");
    Ok((table, plan))
}

/// No bound is put on what comes from elsewhere than a job file: it must not panic either.
#[test]
fn a_clip_that_is_none_does_not_panic() {
    let scratch = table_of(|i| (i % 7).to_string());
    let said = read(r#"{"scale": "minmax"}"#);
    let said = FeatureOptions {
        clip: Some([f64::NAN, f64::NAN]),
        ..said
    };
    fit(&scratch, said, Purpose::Linear, ROOMY).unwrap();
}

#[test]
fn counts_of_tokens_beyond_the_budget_are_refused_before_they_are_made() {
    let scratch = table_of(|i| format!("some words and more of them {i}"));
    let said = |bits| FeatureOptions {
        encode: Some(Encoding::Tokens),
        weight: Some(TokenWeight::TfIdf),
        bits: Some(bits),
        ..FeatureOptions::default()
    };
    // 2^45 counts of four bytes: more than any machine has.
    let error = fit(&scratch, said(45), Purpose::Linear, ROOMY).err().unwrap();
    let Error::Memory { what, source } = &error else {
        panic!("{error:?}")
    };
    assert!(what.contains("counts of tokens"), "{what}");
    assert!(source.to_string().starts_with("column \"x\" needs"), "{source}");
    assert!(error.hint().is_some());
    // Counts, and the weights that are made of them, take 32 MiB each.
    assert!(fit(&scratch, said(23), Purpose::Linear, 48 << 20).is_err());
    let (table, _) = fit(&scratch, said(23), Purpose::Linear, 96 << 20).unwrap();
    assert!(table.encoder_bytes() >= 32 << 20, "{}", table.encoder_bytes());
}

#[test]
fn trees_get_a_flag_for_missing_numbers_where_it_is_asked_for() {
    let scratch = table_of(|i| {
        if i % 7 == 0 {
            "NA".into()
        } else {
            (i % 50).to_string()
        }
    });
    let names = |said: &str| {
        let (table, plan) = fit(&scratch, read(said), Purpose::Trees, ROOMY).unwrap();
        let names: Vec<String> = plan.cuts.iter().map(|column| column.name.clone()).collect();
        (names, table, plan)
    };
    assert_eq!(names("{}").0, ["x", "other"]);
    assert_eq!(names(r#"{"flag_missing": false}"#).0, ["x", "other"]);
    let (flagged, table, plan) = names(r#"{"flag_missing": true}"#);
    assert_eq!(flagged, ["x", "x=missing", "other"]);
    assert_eq!(
        (plan.cuts[1].cuts.as_slice(), plan.columns[0].why.as_str()),
        (&[0.5][..], "as asked")
    );
    // The values stay as they are, and missing ones missing.
    let Encoder::Number(number) = &table.encoders.features[0].encoder else {
        panic!("{:?}", table.encoders.features[0].encoder)
    };
    assert_eq!(number.value(41.5), 41.5);
    assert!(number.value(f64::NAN).is_nan());
    let written = serde_json::to_string(number).unwrap();
    assert_eq!(
        &serde_json::from_str::<tidegate_data::encode::Number>(&written).unwrap(),
        number
    );
}

#[test]
fn dummies_are_as_many_as_were_asked_for() {
    let line = |scratch: &Scratch, said: &str| {
        let (_, plan) = fit(scratch, read(said), Purpose::Linear, ROOMY).unwrap();
        let line = plan
            .columns
            .into_iter()
            .find(|column| column.name == "x")
            .unwrap();
        assert_eq!(line.role, Role::Category);
        (line.encoding, line.width.sparse, line.why)
    };
    let scratch = table_of(|i| format!("c{}", i % 40));
    let few = line(&scratch, "{}");
    assert_eq!((few.0.as_str(), few.1), ("dummy", 40));
    // The most frequent ten, and one for all others.
    for said in [r#"{"max": 10}"#, r#"{"role": "category", "max": 10}"#] {
        let (encoding, width, why) = line(&scratch, said);
        assert_eq!((encoding.as_str(), width), ("dummy", 11), "{said}");
        assert_eq!(
            why,
            "as asked: a column for each of the 10 most frequent of 40 categories"
        );
    }
    let scratch = table_of(|i| format!("c{}", i * 7 % 400));
    let (encoding, _, why) = line(&scratch, "{}");
    assert_eq!(encoding, "hash");
    assert!(why.starts_with("over 256 categories: hashed into"), "{why}");
    let (encoding, width, _) = line(&scratch, r#"{"max": 1000}"#);
    assert_eq!((encoding.as_str(), width), ("dummy", 400));
    let (encoding, width, _) = line(&scratch, r#"{"max": 300}"#);
    assert_eq!((encoding.as_str(), width), ("dummy", 301));
}

#[test]
fn trees_tell_days_apart_all_year() {
    let scratch = table_of(|i| {
        let day = i % 365;
        format!("2023-{:02}-{:02}", 1 + day / 31, 1 + day % 28)
    });
    let said = FeatureOptions {
        parts: Some(vec![TimePart::YearDay, TimePart::Month]),
        ..FeatureOptions::default()
    };
    let (_, plan) = fit(&scratch, said, Purpose::Trees, ROOMY).unwrap();
    let cuts = &plan.cuts[0].cuts;
    assert!(cuts.len() == 254 && cuts.is_sorted_by(|a, b| a < b), "{cuts:?}");
    // No bin holds more than two of the 366 days.
    let mut days = vec![0; cuts.len() + 1];
    for day in 0..366 {
        let output = (f64::from(day) / 365.0) as f32;
        days[cuts.partition_point(|cut| *cut <= output)] += 1;
    }
    assert!(days.iter().all(|days| (1..=2).contains(days)), "{days:?}");
    assert_eq!(
        plan.cuts[1].cuts.len(),
        11,
        "a cut between every month and the next"
    );
}
