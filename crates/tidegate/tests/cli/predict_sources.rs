//! Predictions for tables of every kind: several files, folders, other formats, lacking columns, new categories.

use std::fs::{self, File};

use insta::assert_snapshot;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use crate::help::Place;
use crate::tables::Random;

const CITIES: [&str; 4] = ["Oslo", "Rome", "Bern", "Lyon"];

/// Rows of `a,city,y`; the target depends on both.
fn rows(n: usize, seed: u64, cities: &[&str]) -> Vec<(String, String, &'static str)> {
    let mut random = Random(seed);
    let row = |_| {
        let (a, noise) = (random.number(), random.number());
        let city = cities[random.next() as usize % cities.len()];
        let margin = a + if city.len() == 4 && city < "M" { 0.5 } else { -0.5 } + 0.2 * noise;
        let y = if margin < -0.5 {
            "low"
        } else if margin < 0.5 {
            "middle"
        } else {
            "top, so to say"
        };
        (format!("{a:.4}"), city.to_string(), y)
    };
    (0..n).map(row).collect()
}

fn csv(rows: &[(String, String, &str)]) -> String {
    let lines = rows.iter().map(|(a, city, y)| format!("{a},{city},\"{y}\"\n"));
    format!("a,city,y\n{}", lines.collect::<String>())
}

fn json(rows: &[(String, String, &str)]) -> String {
    let lines = rows
        .iter()
        .map(|(a, city, y)| format!("{{\"a\": {a}, \"city\": \"{city}\", \"y\": \"{y}\"}}\n"));
    lines.collect()
}

/// A place with a model of three classes.
fn trained(options: &str) -> Place {
    let place = Place::with(csv(&rows(2_000, 7, &CITIES)));
    place.ok(&format!(
        "train data.csv --target y --memory 64MB --name model {options}"
    ));
    place
}

#[test]
fn classes_have_a_probability_each() {
    let place = trained("");
    let answer = place.ok("predict model data.csv");
    let mut lines = answer.stdout.lines();
    assert_eq!(
        lines.next(),
        Some("line,prediction,probability,probability_low,probability_middle,\"probability_top, so to say\"")
    );
    for line in lines {
        let line = line.replace("\"top, so to say\"", "top");
        let fields: Vec<&str> = line.split(',').collect();
        let scores: Vec<f64> = fields[2..].iter().map(|field| field.parse().unwrap()).collect();
        let place = ["low", "middle", "top"]
            .iter()
            .position(|label| *label == fields[1])
            .unwrap();
        assert_eq!(scores[0], scores[1 + place]);
        assert!(scores[1..].iter().all(|score| *score <= scores[0]));
        assert!((scores[1..].iter().sum::<f64>() - 1.0).abs() < 1e-6);
    }
}

#[test]
fn several_files_are_told_apart() {
    let place = trained("");
    fs::create_dir(place.path("new")).unwrap();
    let (first, second) = (rows(300, 1, &CITIES), rows(200, 2, &CITIES));
    place.write("new/a.csv", csv(&first));
    place.write("new/b.csv", csv(&second));
    place.write("a.jsonl", json(&first));
    let whole = place.ok("predict model new --output out.csv");
    assert_snapshot!(whole, @r"
    exit 0
    --- stderr
    500 predictions of 2 files in out.csv; memory: peak [size]
    ");
    let text = place.read("out.csv");
    let lines: Vec<&str> = text.lines().collect();
    assert!(
        lines[0].starts_with("file,line,prediction,probability,"),
        "{}",
        lines[0]
    );
    assert!(
        lines[1].starts_with("new/a.csv,2,") && lines[301].starts_with("new/b.csv,2,"),
        "{}",
        lines[301]
    );
    assert!(
        place.ok("predict model new/a.csv new/b.csv").stdout == text,
        "by name"
    );
    assert!(place.ok("predict model new/*.csv").stdout == text, "by a pattern");
    let scores = |text: &str, skip: usize| -> Vec<String> {
        let rest = |line: &str| line.splitn(skip + 1, ',').last().unwrap().to_string();
        text.lines().skip(1).take(300).map(rest).collect()
    };
    let from_json = place.ok("predict model a.jsonl").stdout;
    assert_eq!(scores(&from_json, 1), scores(&text, 2), "JSON lines");
    assert_eq!(place.run("predict model new --output new/a.csv").code, Some(2));
    assert_eq!(place.read("new/a.csv"), csv(&first), "the data is left alone");
}

#[test]
fn parquet_holds_the_same_as_csv() {
    let place = trained("");
    fs::create_dir(place.path("new")).unwrap();
    place.write("new/a.csv", csv(&rows(3_000, 1, &CITIES)));
    place.write("new/b.csv", csv(&rows(2_000, 2, &CITIES)));
    let text = place.ok("predict model new").stdout;
    let written = place.json("predict model new --output out.parquet");
    assert_eq!(
        (written["rows"].as_u64(), written["format"].as_str()),
        (Some(5_000), Some("parquet"))
    );
    let reader = SerializedFileReader::new(File::open(place.path("out.parquet")).unwrap()).unwrap();
    let mut n = 0;
    for (row, line) in reader.get_row_iter(None).unwrap().zip(text.lines().skip(1)) {
        let row = row.unwrap();
        let label = row.get_string(2).unwrap().clone();
        let label = if label.contains(',') {
            format!("\"{label}\"")
        } else {
            label
        };
        let scores: Vec<String> = (3..7).map(|i| row.get_double(i).unwrap().to_string()).collect();
        let (file, at) = (row.get_string(0).unwrap(), row.get_long(1).unwrap());
        assert_eq!(line, format!("{file},{at},{label},{}", scores.join(",")));
        n += 1;
    }
    assert_eq!(n, 5_000);
    // The same bytes again, to whoever reads; and they are a table like any other.
    place.ok("predict model new --output again.bin --format parquet --threads 1");
    assert!(fs::read(place.path("again.bin")).unwrap() == fs::read(place.path("out.parquet")).unwrap());
    let trained = place.ok("train out.parquet --target prediction --memory 64MB --columns probability_low");
    assert!(trained.stdout.contains("trained on"), "{}", trained.stdout);
}

#[test]
fn a_failure_leaves_no_parquet_behind() {
    let place = trained("");
    place.write("ragged.csv", "a,city,y\n0.1,Oslo,low\n1,2\n");
    assert_eq!(
        place.run("predict model ragged.csv --output out.parquet").code,
        Some(1)
    );
    assert!(!place.path("out.parquet").exists());
    assert_snapshot!(place.run("predict model data.csv --json").error(), @r"
    exit 2
    error: --json prints what the predictions came to, and they need a place of their own
      hint: name a file with --output
    ");
}

#[test]
fn new_categories_and_broken_values_are_reported() {
    for options in ["--model boost", "--model linear"] {
        let place = trained(options);
        let mut new = rows(400, 3, &["Oslo", "Lima", "Quito"]);
        new[10].0 = "oops".into();
        place.write("new.csv", csv(&new));
        let n_new = new.iter().filter(|row| row.1 != "Oslo").count() as u64;
        let written = place.json("predict model new.csv --output out.csv");
        let unseen = &written["unseen"]["city"];
        assert_eq!(unseen["rows"].as_u64(), Some(n_new), "{options}: {written}");
        let mut examples: Vec<&str> = unseen["examples"]
            .as_array()
            .unwrap()
            .iter()
            .map(|city| city.as_str().unwrap())
            .collect();
        examples.sort_unstable();
        assert_eq!(examples, ["Lima", "Quito"]);
        let broken = &written["broken"]["a"];
        assert_eq!(broken["place"].as_str(), Some("new.csv:12"), "{written}");
        let said = place.ok("predict model new.csv").stderr;
        let expected =
            format!("warning: city: {n_new} rows have a value that was not seen in training, such as ");
        assert!(said.starts_with(&expected), "{said}");
        assert!(
            said.ends_with("warning: a: 1 value is not what the column holds and counts as missing, such as \"oops\" at new.csv:12\n"),
            "{said}"
        );
    }
}

#[test]
fn columns_that_are_not_there_and_columns_too_many() {
    for options in ["--model boost", "--model linear"] {
        let place = trained(options);
        let table = rows(50, 4, &CITIES);
        let written = |header: &str, rest: &str| {
            let lines = table.iter().map(|(a, ..)| format!("{a},{rest}\n"));
            format!("{header}\n{}", lines.collect::<String>())
        };
        place.write("lacking.csv", written("a,note", "x"));
        place.write("blank.csv", written("a,city", ""));
        let said = place.ok("predict model lacking.csv --output out.csv").stderr;
        let expected = "warning: there is no column \"city\": it counts as missing in every row\n\
                        1 column not used by the model: \"note\"\n\
                        50 predictions in out.csv; ";
        assert!(said.starts_with(expected), "{said}");
        assert!(
            place.ok("predict model blank.csv").stdout == place.read("out.csv"),
            "{options}"
        );
    }
}

#[test]
fn another_table_is_refused() {
    let place = trained("");
    place.write("other.csv", "A1,cyty\n1,2\n3,4\n");
    assert_snapshot!(place.run("predict model other.csv").error(), @r#"
    exit 2
    error: other.csv: has none of the columns that the model was trained on: "a", "city"
      hint: the columns are "A1", "cyty"; is "cyty" one of them?
    "#);
}

/// The kernel's own figure, far above what the file takes and far below its size.
#[test]
fn parquet_is_written_within_the_line() {
    let place = trained("");
    let chunk = csv(&rows(50_000, 5, &CITIES));
    let body = &chunk[chunk.find('\n').unwrap() + 1..];
    place.write("long.csv", format!("a,city,y\n{}", body.repeat(8)));
    let written = place.json("predict model long.csv --output out.parquet --memory 52MB");
    assert_eq!(written["rows"].as_u64(), Some(400_000));
    if let Some(peak) = written["peak"].as_u64() {
        assert!(peak <= 52_000_000, "{peak}");
    }
    let small = place.run("predict model long.csv --output small.parquet --memory 9MB");
    assert_eq!(small.code, Some(2), "{}", small.stderr);
    assert!(small.stderr.contains("· output "), "{}", small.stderr);
}
