//! Networks over arrays, from the files to the predictions.

use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::help::Place;
use crate::tables::Random;

/// A `.npy` file of version 1.
pub(crate) fn npy(kind: &str, shape: &[usize], bytes: &[u8]) -> Vec<u8> {
    let axes: Vec<String> = shape.iter().map(|axis| format!("{axis},")).collect();
    let mut header = format!(
        "{{'descr': '{kind}', 'fortran_order': False, 'shape': ({}), }}",
        axes.join(" ")
    );
    header += &" ".repeat(63 - (10 + header.len()) % 64);
    header.push('\n');
    let length = (header.len() as u16).to_le_bytes();
    [b"\x93NUMPY\x01\x00", &length[..], header.as_bytes(), bytes].concat()
}

/// Grey images of 12×12 with a bright bar at one of three places, and noise.
fn bars(place: &Place, n: usize) {
    let mut random = Random(3);
    let (mut pixels, mut labels) = (Vec::new(), Vec::new());
    for i in 0..n {
        let class = (i * 7 + i / 5) % 3;
        labels.extend((class as i64).to_le_bytes());
        for row in 0..12 {
            for _ in 0..12 {
                let noise = (random.next() >> 40) % 90;
                let bright = row / 4 == class && row % 4 < 2;
                pixels.push(noise as u8 + if bright { 120 } else { 0 });
            }
        }
    }
    place.write("x.npy", npy("|u1", &[n, 12, 12], &pixels));
    place.write("y.npy", npy("<i8", &[n], &labels));
}

const TRAIN: &str = "train x.npy --batch 32 --memory 120MB";

#[test]
fn arrays_are_learned_by_a_network_and_predicted() {
    let place = Place::new();
    bars(&place, 900);
    let trained = place.json(&format!("{TRAIN} --epochs 3"));
    let report = &trained["report"];
    let metric = |name: &str| {
        let metrics = report["metrics"].as_array().unwrap();
        let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
        metric["value"].as_f64().unwrap()
    };
    assert!(metric("accuracy") > 0.95, "{report}");
    assert_eq!(report["by_class"].as_array().unwrap().len(), 3);
    let answer = place.run("predict last x.npy");
    assert_eq!(answer.code, Some(0), "{}", answer.stderr);
    let mut lines = answer.stdout.lines();
    assert_eq!(
        lines.next(),
        Some("sample,prediction,probability,probability_0,probability_1,probability_2")
    );
    let right = lines.enumerate().filter(|(i, line)| {
        let class = ((i * 7 + i / 5) % 3).to_string();
        line.split(',').nth(1) == Some(&class)
    });
    assert!(right.count() > 850);
    let text = place.run("show last").stdout;
    assert!(text.contains("accuracy") && text.contains("cnn"), "{text}");
}

#[test]
fn killed_at_any_moment_and_resumed_it_ends_at_the_same_weights() {
    let place = Place::new();
    bars(&place, 900);
    let whole = place.json(&format!("{TRAIN} --epochs 6"));
    let expected = place.weights(whole["run"]["id"].as_str().unwrap());
    let mut random = Random(17);
    for round in 0..4 {
        let mut command = format!("{TRAIN} --epochs 6 --json");
        let (mut kills, started) = (0, Instant::now());
        let child = loop {
            assert!(started.elapsed() < Duration::from_secs(100), "it never ends");
            let mut child = place
                .command(&command)
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn()
                .unwrap();
            let wait = Duration::from_millis(50 + (random.next() >> 40) % 900);
            let until = Instant::now() + wait;
            let ended = loop {
                match child.try_wait().unwrap() {
                    Some(status) => break Some(status),
                    None if Instant::now() >= until && kills < 3 => break None,
                    None => std::thread::sleep(Duration::from_millis(5)),
                }
            };
            match ended {
                Some(status) if status.success() => break child,
                // Killed before its first checkpoint: there is nothing to take up.
                Some(_) => command = format!("{TRAIN} --epochs 6 --json"),
                None => {
                    kills += 1;
                    child.kill().unwrap();
                    child.wait().unwrap();
                    command = "resume last --json".into();
                }
            }
        };
        let done: Value = serde_json::from_reader(child.stdout.unwrap()).unwrap();
        let found = place.weights(done["run"]["id"].as_str().unwrap());
        assert!(found == expected, "other weights in round {round}");
    }
}

/// A job file over the bars, with these lines for the model.
fn job(place: &Place, model: &str) {
    let text =
        format!("memory = \"100MB\"\n[data]\npath = \"x.npy\"\n[model]\n{model}\n[train]\nepochs = 1\n");
    place.write("job.toml", text);
}

#[test]
fn what_does_not_fit_is_said_before_anything_is_trained() {
    let place = Place::new();
    bars(&place, 120);
    let refused = |model: &str| {
        job(&place, model);
        place.run("train job.toml").error()
    };
    insta::assert_snapshot!(refused("layers = [{ conv = 8, kernel = 5 }, { conv = 8, kernel = 9 }]"), @r"
    exit 2
    error: layer 1 conv gets 8×8×8 and needs at least 9 rows, or padding
    ");
    insta::assert_snapshot!(refused("layers = [\"flatten\", { dense = 2 }]"), @r#"
    exit 2
    error: layer 1 dense gets 2 units to end with and needs 3, as the labels do: write dense = "classes"
    "#);
    insta::assert_snapshot!(refused("kind = \"cnn\"\nfreeze = [\"conv9\"]"), @r"
    exit 2
    error: the layers to freeze are not in the network: conv9
      hint: a layer goes by its name, or by its place in the list from 0
    ");
    let few = vec![0; 8 * 100];
    place.write("y.npy", npy("<i8", &[100], &few));
    insta::assert_snapshot!(place.run("train x.npy --memory 100MB").error(), @r"
    exit 1
    error: [dir]/x.npy has 120 samples and [dir]/y.npy has 100 labels
      hint: check that both are of the same part of the data
    ");
    let same = vec![0; 8 * 120];
    place.write("y.npy", npy("<i8", &[120], &same));
    insta::assert_snapshot!(place.run("train x.npy --memory 100MB").error(), @r"
    exit 1
    error: [dir]/y.npy: all labels are 0
      hint: there is nothing to learn: check how the data was selected
    ");
    place.write("y.npy", npy("<f4", &[120], &[0, 0, 192, 127].repeat(120)));
    insta::assert_snapshot!(place.run("train x.npy --memory 100MB").error(), @r"
    exit 1
    error: [dir]/y.npy: label 0 is NaN, which is no finite number
      hint: leave such samples out, or mend their labels
    ");
}

#[test]
fn the_kernel_s_peak_is_what_was_planned() {
    let place = Place::new();
    bars(&place, 900);
    let trained = place.json("train x.npy --batch 32 --memory 300MB --epochs 2 --model resnet18");
    let run = &trained["run"];
    if run["peak_source"] != "cgroup peak" {
        eprintln!("skipped: no cgroup of its own here");
        return;
    }
    let [needs, peak] = ["needs_bytes", "peak_bytes"].map(|key| run[key].as_u64().unwrap() as f64);
    assert!(
        (peak / needs - 1.0).abs() < 0.03,
        "{needs} planned, {peak} measured"
    );
}
