//! Predictions: the right rows, the right numbers, to a file or to whoever reads.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use insta::assert_snapshot;

use crate::help::Place;
use crate::tables::{Rows, gzip};

/// A place with a model trained on `data.csv`.
fn trained(rows: &Rows) -> Place {
    let place = Place::with(rows.csv());
    place.ok("train data.csv --target y --model linear --memory 64MB --name model");
    place
}

/// The rows of a prediction as fields.
fn fields(text: &str) -> Vec<Vec<&str>> {
    text.lines().map(|line| line.split(',').collect()).collect()
}

#[test]
fn to_a_file_or_to_whoever_reads() {
    let place = trained(&Rows::binary(30_000));
    let printed = place.ok("predict model data.csv");
    let written = place.ok("predict model data.csv --output out.csv");
    assert!(printed.stdout == place.read("out.csv"));
    assert_eq!(printed.stderr, "", "nothing is said beside the predictions");
    assert_snapshot!(written, @r"
    exit 0
    --- stderr
    30,000 predictions in out.csv; memory: peak [size]
    ");
    let rows = fields(&printed.stdout);
    assert_eq!(rows[0], ["line", "prediction", "probability"]);
    assert_eq!(rows.len(), 30_001);
    for (i, row) in rows[1..].iter().enumerate() {
        assert_eq!(row[0], (i + 2).to_string());
        let probability: f64 = row[2].parse().unwrap();
        assert_eq!(row[1], if probability >= 0.5 { "1" } else { "0" });
    }
}

#[test]
fn predictions_are_worth_something() {
    let rows = Rows::regression(5_000);
    let place = trained(&rows);
    let answer = place.ok("predict model data.csv");
    let predicted = fields(&answer.stdout);
    assert_eq!(predicted[0], ["line", "prediction"]);
    let error: f64 = rows
        .rows
        .iter()
        .zip(&predicted[1..])
        .map(|(row, predicted)| {
            let difference = row[3].parse::<f64>().unwrap() - predicted[1].parse::<f64>().unwrap();
            difference * difference
        })
        .sum::<f64>()
        / 5_000.0;
    // The noise alone has a deviation of 3 × 0.5 / √3.
    assert!(error.sqrt() < 0.9, "RMSE {}", error.sqrt());
}

#[test]
fn whatever_the_threads_and_the_budget() {
    let place = trained(&Rows::binary(60_000));
    let expected = place.ok("predict model data.csv").stdout;
    for options in [
        "--threads 1",
        "--threads 5",
        "--memory 36MB",
        "--memory 1GB --threads 3",
    ] {
        assert!(
            place.ok(&format!("predict model data.csv {options}")).stdout == expected,
            "{options}"
        );
    }
    place.write("data.csv.gz", gzip(&place.read("data.csv")));
    assert!(place.ok("predict model data.csv.gz").stdout == expected);
}

#[test]
fn columns_are_found_by_name() {
    let rows = Rows::binary(300);
    let place = trained(&rows);
    let expected = place.ok("predict model data.csv").stdout;
    let mut turned = Rows {
        header: rows.header.clone(),
        rows: rows.rows.clone(),
    };
    turned.header.reverse();
    turned.rows.iter_mut().for_each(|row| row.reverse());
    place.write("turned.csv", turned.write(";", "\r\n", str::to_string));
    assert!(
        place.ok("predict model turned.csv").stdout == expected,
        "in another order and dialect"
    );
    turned.header.remove(0);
    turned.rows.iter_mut().for_each(|row| {
        row.remove(0);
    });
    place.write("without.csv", turned.csv());
    assert!(
        place.ok("predict model without.csv").stdout == expected,
        "without the target"
    );
    turned.header.push("extra".into());
    turned
        .rows
        .iter_mut()
        .for_each(|row| row.push("some text".into()));
    place.write("extra.csv", turned.csv());
    assert!(
        place.ok("predict model extra.csv").stdout == expected,
        "with a column more"
    );
    turned.header.remove(1);
    turned.rows.iter_mut().for_each(|row| {
        row.remove(1);
    });
    place.write("lacking.csv", turned.csv());
    let lacking = place.ok("predict model lacking.csv");
    assert_eq!(
        lacking.stderr,
        "warning: there is no column \"b\": it counts as missing in every row\n"
    );
}

#[test]
fn lines_are_those_of_the_file() {
    let place = trained(&Rows::binary(300));
    // Lines 3 and 7 are blank, 4 to 5 is one row, 6 is ragged, 8 has a word for a number.
    place.write(
        "odd.csv",
        "a,b,c,y\n0.1,0.2,50,1\n\n\"0.3\n\",0.1,40,0\n1,2\n\n0.1,oops,50,1\n,,,\n0.4,0.2,55,0\n",
    );
    assert_snapshot!(place.run("predict model odd.csv"), @r"
    exit 1
    --- stdout
    line,prediction,probability
    --- stderr
    error: odd.csv:6: 2 fields where the table has 4 columns
      hint: mend the row, name the separator with --delimiter, or leave such rows out: --bad-rows skip
    ");
    let skipped = place.run("predict model odd.csv --bad-rows skip");
    assert_eq!(skipped.code, Some(0), "{}", skipped.stderr);
    let lines: Vec<&str> = fields(&skipped.stdout)[1..].iter().map(|row| row[0]).collect();
    assert_eq!(lines, ["2", "4", "8", "9", "10"]);
    assert!(
        skipped
            .stderr
            .starts_with("left out 1 bad row; the first is odd.csv:6: 2 fields"),
        "{}",
        skipped.stderr
    );
}

#[test]
fn a_reader_that_has_seen_enough() {
    let place = trained(&Rows::binary(100_000));
    let mut command = place.command("predict model data.csv");
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line, "line,prediction,probability\n");
    let answer = place.finish(child);
    assert_eq!((answer.code, answer.stderr.as_str()), (Some(0), ""));
}

#[test]
fn a_model_is_a_folder_that_can_be_carried_away() {
    let place = trained(&Rows::binary(300));
    let expected = place.ok("predict model data.csv").stdout;
    let id = place.json("show model")["id"].as_str().unwrap().to_string();
    let elsewhere = Place::with(place.read("data.csv"));
    std::fs::create_dir(elsewhere.path("carried")).unwrap();
    for entry in std::fs::read_dir(place.home.join("runs").join(&id).join("model"))
        .unwrap()
        .flatten()
    {
        std::fs::copy(entry.path(), elsewhere.path("carried").join(entry.file_name())).unwrap();
    }
    assert!(elsewhere.ok("predict carried data.csv").stdout == expected);
    assert!(elsewhere.ok("predict ./carried/ data.csv").stdout == expected);
    assert!(place.ok(&format!("predict home/runs/{id}/model data.csv")).stdout == expected);
}

#[test]
fn models_that_are_none() {
    let place = trained(&Rows::binary(300));
    std::fs::create_dir(place.path("folder")).unwrap();
    assert_snapshot!(place.run("predict folder data.csv").error(), @r"
    exit 2
    error: folder: is not a model folder: it has no model.toml
      hint: name a run (see `tidegate runs`) or a folder with a model.toml
    ");
    assert_snapshot!(place.run("predict absent data.csv").error(), @r#"
    exit 2
    error: no run is called "absent"
      hint: `tidegate runs` lists them; `last` is the newest
    "#);
    let id = place.json("show model")["id"].as_str().unwrap().to_string();
    let model = format!("home/runs/{id}/model");
    let weights = std::fs::read(place.path(&model).join("weights.safetensors")).unwrap();
    place.write(
        &format!("{model}/weights.safetensors"),
        &weights[..weights.len() - 5],
    );
    assert_snapshot!(place.run("predict model data.csv").error(), @r"
    exit 1
    error: [dir]/home/runs/[run]/model/weights.safetensors: this file is damaged: incomplete metadata, file not fully covered
      hint: train again, or restore the file from a copy
    ");
    place.write(&format!("{model}/weights.safetensors"), &weights);
    let toml = place.read(&format!("{model}/model.toml"));
    place.write(&format!("{model}/model.toml"), "kind = 7");
    assert_eq!(place.run("predict model data.csv").code, Some(1));
    place.write(&format!("{model}/model.toml"), toml);
    place.ok("predict model data.csv");
}

#[test]
fn tables_that_cannot_be_predicted() {
    let place = trained(&Rows::binary(300));
    place.write("empty.csv", "");
    place.write("header.csv", "a,b,c\n");
    assert_snapshot!(place.run("predict model absent.csv").error(), @r"
    exit 2
    error: absent.csv: no such file
      hint: check the path
    ");
    assert_snapshot!(place.run("predict model empty.csv").error(), @r"
    exit 1
    error: empty.csv: the file is empty
      hint: check what wrote the file
    ");
    assert_snapshot!(place.run("predict model .").error(), @r"
    exit 2
    error: .: holds folders, such as ./home
      hint: name the folder that holds the files, or all of them by a pattern: './**/*.csv'
    ");
    assert_snapshot!(place.run("predict model header.csv").error(), @r"
    exit 1
    error: header.csv: holds a header and no rows
      hint: check what wrote the file; if the first row is data, say --header no
    ");
}

#[test]
fn outputs_that_cannot_be_written() {
    let place = trained(&Rows::binary(300));
    std::fs::create_dir(place.path("folder")).unwrap();
    assert_snapshot!(place.run("predict model data.csv --output absent/out.csv").error(), @r"
    exit 2
    error: absent/out.csv: there is no folder absent
      hint: name a file with --output
    ");
    assert_snapshot!(place.run("predict model data.csv --output folder").error(), @r"
    exit 2
    error: folder: is a folder
      hint: name a file with --output
    ");
    place.write("out.csv", "what was there\n");
    place.write("ragged.csv", "a,b,c,y\n0.1,0.2,50,1\n1,2\n");
    assert_eq!(
        place.run("predict model ragged.csv --output out.csv").code,
        Some(1)
    );
    assert_eq!(
        place.read("out.csv"),
        "what was there\n",
        "a failure leaves it as it was"
    );
}

/// The words for missing values belong to the model: for the target, for the columns, and for later tables.
#[test]
fn words_for_missing_values_stay_with_the_model() {
    let place = Place::new();
    let rows: String = (0..400)
        .map(|i| {
            let a = f64::from(i) / 100.0;
            let y = if i % 10 == 3 {
                "-999".into()
            } else {
                format!("{:.3}", 2.0 * a)
            };
            format!("{a},{y}\n")
        })
        .collect();
    place.write("t.csv", format!("a,y\n{rows}"));
    let trained = place.ok("train t.csv --target y --model linear --missing -999 --holdout 0");
    assert!(
        trained.stdout.contains("left out 40 rows: without a target"),
        "{}",
        trained.stdout
    );
    place.write("q.csv", "a\n-999\n1.5\n");
    let predicted = place.ok("predict last q.csv");
    let first: f64 = predicted
        .stdout
        .lines()
        .nth(1)
        .unwrap()
        .split(',')
        .nth(1)
        .unwrap()
        .parse()
        .unwrap();
    assert!((0.0..8.0).contains(&first), "{}", predicted.stdout);
}

/// Predictions never take the place of the data they are for, nor of a device.
#[test]
fn an_output_that_is_not_a_file_of_its_own() {
    let place = Place::new();
    let rows: String = (0..100).map(|i| format!("{},{i}\n", i * 37 % 101)).collect();
    place.write("t.csv", format!("a,y\n{rows}"));
    place.ok("train t.csv --target y --model linear");
    let refused = place.run("predict last t.csv --output t.csv");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(
        refused.stderr.contains("would replace the data"),
        "{}",
        refused.stderr
    );
    place.ok("predict last t.csv --output /dev/null");
    assert!(!std::path::Path::new("/dev/null").is_file());
}
