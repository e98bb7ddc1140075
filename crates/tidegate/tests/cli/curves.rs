//! What of a training is recorded to be drawn: figures of every epoch or tree, columns, holders, and where it ran.

use serde_json::Value;

use crate::help::Place;
use crate::networks::bars;
use crate::tables::Rows;
use crate::training::show;

/// The values of a metric, epoch after epoch.
fn curve(run: &Value, name: &str) -> Vec<f64> {
    let metrics = run["metrics"].as_array().unwrap();
    let of_name = metrics.iter().filter(|metric| metric["name"] == name);
    of_name.map(|metric| metric["value"].as_f64().unwrap()).collect()
}

fn file(place: &Place, run: &Value, name: &str) -> Value {
    let path = place
        .home
        .join("runs")
        .join(run["id"].as_str().unwrap())
        .join(name);
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

/// Lines that a person sees of each epoch, while it trains and afterwards.
fn check_lines(place: &Place, said: &str, epochs: usize) {
    let shown = place.ok("show last").to_string();
    for text in [said, shown.as_str()] {
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("epoch ")).collect();
        assert_eq!(lines.len(), epochs, "{text}");
        let pace = lines
            .iter()
            .find(|line| line.contains("rate") || line.contains("second"));
        assert_eq!(pace, None, "they belong to curves");
    }
}

#[test]
fn a_linear_model_tells_its_pace_columns_and_holders() {
    let place = Place::with(Rows::binary(2000).csv());
    let answer = place.run("train data.csv --target y --model linear --memory 96MB");
    let run = show(&place, "last");
    let losses = curve(&run, "training_loss");
    let speeds = curve(&run, "rows_per_second");
    assert_eq!(losses.len(), speeds.len());
    assert!(speeds.iter().all(|speed| *speed > 100.0), "{speeds:?}");
    assert!(curve(&run, "learning_rate").is_empty(), "it has none");
    check_lines(&place, &answer.stderr, losses.len());

    let encoding = file(&place, &run, "encoding.json");
    assert_eq!(encoding["columns"][0]["name"], "a");
    assert!(encoding["shape"].as_str().is_some_and(|shape| !shape.is_empty()));
    assert_eq!(
        file(&place, &run, "environment.json")["tidegate"],
        env!("CARGO_PKG_VERSION")
    );
    let holders = place
        .home
        .join("runs")
        .join(run["id"].as_str().unwrap())
        .join("holders.jsonl");
    let holders = std::fs::read_to_string(holders).unwrap();
    assert!(
        holders.contains("\"name\":\"data buffers\"") && holders.contains("\"used\":"),
        "{holders}"
    );
}

#[test]
fn a_network_tells_its_learning_rate_too() {
    let place = Place::new();
    bars(&place, 300);
    let answer =
        place.run("train x.npy --batch 32 --memory 120MB --epochs 3 --schedule cosine --learning-rate 0.01");
    let run = show(&place, "last");
    let rates = curve(&run, "learning_rate");
    assert!(
        rates.len() == 3 && rates[0] < 0.01 && rates.is_sorted_by(|one, next| one > next),
        "{rates:?}"
    );
    let speeds = curve(&run, "rows_per_second");
    assert!(
        speeds.len() == 3 && speeds.iter().all(|speed| *speed > 10.0),
        "{speeds:?}"
    );
    check_lines(&place, &answer.stderr, 3);
}

#[test]
fn trees_have_a_curve_of_their_losses() {
    let place = Place::with(Rows::binary(2000).csv());
    let answer = place.run("train data.csv --target y --model boost --trees 12 --memory 128MB");
    let run = show(&place, "last");
    for name in ["training_loss", "held_out_loss"] {
        let losses = curve(&run, name);
        assert!(losses.len() == 12 && losses[11] < losses[0], "{name}: {losses:?}");
    }
    check_lines(&place, &answer.stderr, 0);
}
