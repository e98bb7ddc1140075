//! What a column is taken for, and why; and what the user says goes before it.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use tidegate_data::features::{Encoding, FeatureOptions};
use tidegate_data::{
    Batch, Error, Features, PassOptions, Purpose, Role, Source, SourceOptions, Table, TableOptions,
};
use tidegate_memory::Ledger;

use crate::help::{ROOMY, Scratch, fit_options, without};

/// Rows of the tables here.
const N: usize = 2_000;

/// A table with one column `x` of interest, a number beside it, and a target.
fn table_of(name: &str, cell: impl Fn(usize) -> String) -> String {
    let mut text = format!("{name},other,y\n");
    for i in 0..N {
        text.push_str(&format!("{},{},{}.5\n", cell(i), i * 37 % 101, i % 13));
    }
    text
}

fn open(scratch: &Scratch, options: &TableOptions) -> Result<Table, Error> {
    let ledger = Ledger::new(ROOMY);
    let source = Source::open(&[scratch.path()], &SourceOptions::default(), &["y"], &ledger)?;
    Table::open(source, "y", options, &ledger)
}

/// The role of `x`, its encoding for trees and for a linear model, and the reasons.
fn check(what: &str, name: &str, cell: impl Fn(usize) -> String, role: Role, why: &str, encoded: [&str; 2]) {
    let scratch = Scratch::new(table_of(name, cell));
    for (purpose, encoding) in [Purpose::Trees, Purpose::Linear].into_iter().zip(encoded) {
        let mut table = open(&scratch, &TableOptions::default()).unwrap();
        let ledger = Ledger::new(ROOMY);
        let plan = table.fit_encoders(purpose, &fit_options(2), &ledger).unwrap();
        let line = plan.columns.iter().find(|column| column.name == name).unwrap();
        assert_eq!(
            (line.role, line.encoding.as_str()),
            (role, encoding),
            "{what}, {purpose:?}: {line:?}"
        );
        assert!(line.why.contains(why), "{what}, {purpose:?}: {:?}", line.why);
        let used = table.encoders.features.iter().any(|feature| feature.name == name);
        assert_eq!(used, role.is_used() && encoding != "left out", "{what}");
    }
}

#[test]
fn row_numbers_are_told_in_files_of_any_size() {
    // Below a block, a little more than one, and so many that the places of the sample lie far apart.
    for rows in [1_000, 60_000, 100_000, 400_000] {
        let mut text = String::from("n,other,y\n");
        for i in 0..rows {
            text.push_str(&format!("{i},{}.25,{}.5\n", mixed(i), i % 13));
        }
        let scratch = Scratch::new(text);
        let mut table = open(&scratch, &TableOptions::default()).unwrap();
        let ledger = Ledger::new(ROOMY);
        let plan = table
            .fit_encoders(Purpose::Linear, &fit_options(2), &ledger)
            .unwrap();
        let line = plan.columns.iter().find(|column| column.name == "n").unwrap();
        assert_eq!(
            (line.role, line.why.as_str()),
            (Role::Identifier, "counts the rows"),
            "{rows} rows"
        );
    }
}

/// A number without a pattern.
fn mixed(i: usize) -> usize {
    (i + 1).wrapping_mul(2_654_435_761) % 1_000_003
}

#[test]
fn roles_are_told_from_the_values() {
    let words = ["tide", "gate", "sea", "wall", "lock", "weir"];
    let sentence = |i: usize| {
        let word = |k: usize| words[mixed(i * 7 + k) % words.len()];
        format!("{} {} {} {} {i}", word(1), word(2), word(3), word(4))
    };
    let number = |i: usize| (mixed(i) as f64 / 1000.0).to_string();
    let none = "left out";
    check("numbers", "x", number, Role::Numeric, "", ["as it is", "number"]);
    check(
        "numbers, some missing",
        "x",
        |i| if i % 7 == 0 { "NA".into() } else { number(i) },
        Role::Numeric,
        "",
        ["as it is", "number"],
    );
    check(
        "truths",
        "x",
        |i| ["yes", "no"][mixed(i) % 2].into(),
        Role::Boolean,
        "two truths",
        ["as it is", "number"],
    );
    check(
        "days",
        "x",
        |i| format!("2013-{:02}-{:02}", 1 + mixed(i) % 12, 1 + mixed(i) % 28),
        Role::Time,
        "dates, year first",
        ["parts", "parts"],
    );
    check(
        "days, day first",
        "x",
        |i| format!("{:02}.{:02}.2013", 1 + mixed(i) % 28, 1 + mixed(i) % 12),
        Role::Time,
        "day first",
        ["parts", "parts"],
    );
    check(
        "few categories",
        "x",
        |i| words[mixed(i) % 6].into(),
        Role::Category,
        "few categories",
        ["ordinal", "dummy"],
    );
    check(
        "more categories",
        "x",
        |i| format!("c{}", mixed(i) % 100),
        Role::Category,
        "few categories",
        ["ordinal", "dummy"],
    );
    check(
        "many categories",
        "x",
        |i| format!("c{}", mixed(i) % 400),
        Role::Category,
        "categories: ",
        ["impact", "hash"],
    );
    check("texts", "x", sentence, Role::Text, "", [none, "tokens"]);
    check(
        "names of rows",
        "x",
        |i| format!("row-{}", mixed(i)),
        Role::Identifier,
        "no two rows have the same value",
        [none, none],
    );
    check(
        "row numbers",
        "x",
        |i| i.to_string(),
        Role::Identifier,
        "counts the rows",
        [none, none],
    );
    check(
        "rising identifiers",
        "user_id",
        |i| (i * 5 + mixed(i) % 5).to_string(),
        Role::Identifier,
        "is named an identifier",
        [none, none],
    );
    check(
        "the same everywhere",
        "x",
        |_| "7".into(),
        Role::Constant,
        "is the same in every row",
        [none, none],
    );
    check(
        "nothing at all",
        "x",
        |_| "".into(),
        Role::Constant,
        "has no value",
        [none, none],
    );
    check(
        "one value, and missing ones",
        "x",
        |i| {
            if mixed(i).is_multiple_of(3) {
                "ticked".into()
            } else {
                "".into()
            }
        },
        Role::Category,
        "one value, and missing ones",
        ["flag", "flag"],
    );
}

fn say(name: &str, said: FeatureOptions) -> TableOptions {
    TableOptions {
        features: Features::from([(name.to_string(), said)]),
        ..TableOptions::default()
    }
}

/// What is said about a column: the encoding that it gets, for a linear model.
#[test]
fn what_is_said_about_a_column_goes_before_what_it_seems_to_be() {
    let scratch = Scratch::new(table_of("x", |i| (1 + mixed(i) % 5).to_string()));
    let encode = |encode| FeatureOptions {
        encode: Some(encode),
        ..FeatureOptions::default()
    };
    for (said, role, encoding) in [
        (encode(Encoding::Dummy), Role::Category, "dummy"),
        (encode(Encoding::Impact), Role::Category, "impact"),
        (encode(Encoding::Hash), Role::Category, "hash"),
        (encode(Encoding::Ordinal), Role::Category, "ordinal"),
        (encode(Encoding::Frequency), Role::Category, "frequency"),
        (encode(Encoding::Flag), Role::Numeric, "flag"),
        (encode(Encoding::Tokens), Role::Text, "tokens"),
        (encode(Encoding::Number), Role::Numeric, "number"),
        (encode(Encoding::Ignore), Role::Ignored, "left out"),
        (
            FeatureOptions {
                role: Some(Role::Category),
                ..FeatureOptions::default()
            },
            Role::Category,
            "dummy",
        ),
    ] {
        let mut table = open(&scratch, &say("x", said.clone())).unwrap();
        let plan = table
            .fit_encoders(Purpose::Linear, &fit_options(1), &Ledger::new(ROOMY))
            .unwrap();
        let line = plan.columns.iter().find(|column| column.name == "x").unwrap();
        assert_eq!((line.role, line.encoding.as_str()), (role, encoding), "{said:?}");
    }
}

#[test]
fn columns_are_chosen_and_left_out_by_name() {
    let scratch = Scratch::new(table_of("x", |i| mixed(i).to_string()));
    let features = |options: &TableOptions| {
        let mut table = open(&scratch, options)?;
        table.fit_encoders(Purpose::Trees, &fit_options(1), &Ledger::new(ROOMY))?;
        let features = table.encoders.features.iter();
        Ok::<_, Error>(features.map(|feature| feature.name.clone()).collect::<Vec<_>>())
    };
    assert_eq!(features(&TableOptions::default()).unwrap(), ["x", "other"]);
    assert_eq!(features(&without(&["x"])).unwrap(), ["other"]);
    let only = TableOptions {
        columns: vec!["x".into()],
        ..TableOptions::default()
    };
    assert_eq!(features(&only).unwrap(), ["x"]);
    match features(&without(&["x", "other"])) {
        Err(Error::NoFeatures { left_out, .. }) => assert_eq!(left_out, ["x", "other"]),
        found => panic!("{found:?}"),
    }
    match features(&say("oter", FeatureOptions::default())) {
        Err(Error::UnknownColumn { name, .. }) => assert_eq!(name, "oter"),
        found => panic!("{found:?}"),
    }
}

/// Few dummies that were asked for are written out, and said to be; many would take more than they are worth.
#[test]
fn trees_take_few_dummies_and_refuse_many() {
    let dummies = FeatureOptions {
        encode: Some(Encoding::Dummy),
        ..FeatureOptions::default()
    };
    let plan = |n: usize| {
        let scratch = Scratch::new(table_of("x", |i| format!("c{}", mixed(i) % n)));
        let mut table = open(&scratch, &say("x", dummies.clone())).unwrap();
        let found = table.fit_encoders(Purpose::Trees, &fit_options(1), &Ledger::new(ROOMY));
        found.map(|plan| (plan, table, scratch))
    };
    let (found, table, _scratch) = plan(3).unwrap();
    let x = found.columns.iter().find(|column| column.name == "x").unwrap();
    assert_eq!(
        (x.encoding.as_str(), x.width.dense, x.width.sparse),
        ("dummy", 3, 0)
    );
    assert!(x.why.contains("written out, 3 dense columns"), "{}", x.why);
    let cuts = found.cuts.iter().filter(|cut| cut.name.starts_with("x="));
    assert!(cuts.clone().count() == 3 && cuts.into_iter().all(|cut| cut.cuts == [0.5]));
    let pass = PassOptions {
        threads: 1,
        holdout: fit_options(1).holdout,
        start: None,
    };
    let mut rows = 0;
    let sums = |batch: &mut Batch| -> Vec<f32> {
        let rows = batch.rows();
        rows.map(|row| row.dense[..3].iter().sum()).collect()
    };
    let check = |_: &mut Batch, sums: Vec<f32>, _| -> Result<_, Error> {
        assert!(sums.iter().all(|sum| *sum == 1.0), "one of three is 1");
        rows += sums.len();
        Ok(ControlFlow::Continue(()))
    };
    table.pass(&pass, &Ledger::new(ROOMY), sums, check).unwrap();
    assert!(rows > 0);
    match plan(100) {
        Err(Error::SparseForTrees { columns, places, .. }) => {
            assert_eq!((columns, places), (vec!["x".into()], 100))
        }
        found => panic!("{:?}", found.map(|(plan, ..)| plan)),
    }
}

/// Texts are sparse, and trees take none.
#[test]
fn trees_refuse_sparse_columns_that_are_asked_for() {
    let scratch = Scratch::new(table_of("x", |i| format!("c{}", mixed(i) % 9)));
    let hashed = FeatureOptions {
        encode: Some(Encoding::Hash),
        ..FeatureOptions::default()
    };
    let mut table = open(&scratch, &say("x", hashed)).unwrap();
    let found = table.fit_encoders(Purpose::Trees, &fit_options(1), &Ledger::new(ROOMY));
    assert!(
        matches!(&found, Err(Error::SparseForTrees { columns, .. }) if *columns == ["x"]),
        "{found:?}"
    );
}

#[test]
fn the_words_of_a_job_file_are_read() {
    let read = |text: &str| serde_json::from_str::<BTreeMap<String, FeatureOptions>>(text);
    let said =
        read(r#"{"a": {"encode": "impact", "folds": 3}, "b": {"role": "category", "max": 10}}"#).unwrap();
    assert_eq!(
        (said["a"].encode, said["a"].folds),
        (Some(Encoding::Impact), Some(3))
    );
    assert_eq!((said["b"].role, said["b"].max), (Some(Role::Category), Some(10)));
    for wrong in [r#"{"a": {"encode": "magic"}}"#, r#"{"a": {"encod": "dummy"}}"#] {
        assert!(read(wrong).is_err(), "{wrong}");
    }
}
