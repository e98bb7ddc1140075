//! Plans: what a training would take, without one; and how far they were off.

use std::fs;

use insta::assert_snapshot;
use serde_json::Value;

use crate::help::Place;
use crate::images::folders;
use crate::networks::bars;
use crate::tables::{Random, Rows};
use crate::training::{signal, start_command};

/// The bytes of holders, or of layers.
fn sum(sizes: &Value) -> u64 {
    let sizes = sizes.as_array().unwrap().iter();
    sizes.map(|size| size[1].as_u64().unwrap()).sum()
}

fn bytes(sizes: &Value, name: &str) -> u64 {
    let sizes = sizes.as_array().unwrap();
    let found = sizes.iter().find(|size| size[0] == name);
    found.map_or(0, |size| size[1].as_u64().unwrap())
}

/// Whether two figures are the same but for a few pages of the program itself.
fn near(a: &Value, b: &Value) -> bool {
    (a.as_f64().unwrap() / b.as_f64().unwrap() - 1.0).abs() < 0.02
}

/// Nothing is left but the home: no run, no pack, no model.
fn check_nothing_is_left(place: &Place) {
    assert!(place.run_ids().is_empty());
    let packs = fs::read_dir(place.home.join("packs")).into_iter().flatten();
    assert_eq!(packs.count(), 0);
}

/// What is printed, with times, sizes and what they are based on left out.
fn printed(place: &Place, command: &str) -> String {
    let answer = place.ok(command).to_string();
    let lines = answer.split("--- stderr").next().unwrap().lines();
    let lines = lines.map(|line| match line.split_once(": by ") {
        Some((times, _)) => format!("{times}: [basis]"),
        None => line.to_string(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn a_linear_model_as_a_person_sees_it() {
    let place = Place::with(Rows::binary(500).csv());
    assert_snapshot!(printed(&place, "plan data.csv --target y --model linear --memory 64MB --threads 2"), @r"
    exit 0
    --- stdout
    memory: [size] of [size], between [size] and [size]
      runtime  [size]
      columns  [size]
      data buffers  [size]
      model  [size]
      evaluation  [size]
      pack  [size]
    threads  2 threads
    time  [time] an epoch: [basis]
    disk  [size] for the pack
    planned in  [time]
    nothing had to be changed to fit
    ");
    check_nothing_is_left(&place);
}

#[test]
fn trees_as_a_person_sees_them() {
    let place = Place::with(Rows::binary(500).csv());
    assert_snapshot!(printed(&place, "plan data.csv --target y --model boost --memory 64MB --threads 2"), @r"
    exit 0
    --- stdout
    memory: [size] of [size], between [size] and [size]
      runtime  [size]
      columns  [size]
      encoders  [size]
      rows  [size]
      block buffers  [size]
      row state  [size]
      histograms  [size]
      trees  [size]
      evaluation  [size]
    threads  2 threads
    time  [time] a tree, [time] a forest: [basis]
    disk  nothing more than is there
    planned in  [time]
    nothing had to be changed to fit
    ");
    check_nothing_is_left(&place);
}

#[test]
fn trees_whose_rows_do_not_fit_say_what_streams() {
    let place = Place::with(Rows::binary(400_000).csv());
    let told = printed(
        &place,
        "plan data.csv --target y --model boost --memory 12MB --threads 2",
    );
    let changed = told.lines().find(|line| line.contains("stream from disk"));
    let changed = changed.unwrap_or_else(|| panic!("{told}"));
    assert!(
        changed.contains("of the rows") && changed.contains("saves") && changed.contains("time unavailable"),
        "{changed}"
    );
    assert!(!told.contains("nothing had to be changed"), "{told}");
    check_nothing_is_left(&place);
}

#[test]
fn a_network_over_arrays_as_a_person_sees_it() {
    let place = Place::new();
    bars(&place, 300);
    assert_snapshot!(printed(&place, "plan x.npy --model mlp --memory 64MB --threads 2"), @r"
    exit 0
    --- stdout
    memory: [size] of [size], between [size] and [size]
      runtime  [size]
      arrays  [size]
      network  [size]
        weights  [size]
        optimizer  [size]
        activations  [size]
          1 dense  [size]
          2 dense  [size]
          samples  [size]
          head dense  [size]
          between buffers  [size]
        scratch  [size]
      evaluation  [size]
      feed  [size]
      samples  [size]
    threads  2 threads
    time  [time] a step, [time] an epoch: [basis]
    disk  nothing more than is there
    planned in  [time]
    nothing had to be changed to fit
    other ways:
      values wait for the way back as bf16  --precision bf16  peak [size]  1.06× the time  values that wait for the way back are rounded to bf16
      the optimizer keeps two bytes of each moment  --moments bf16  peak [size]  1.12× the time  the optimizer's moments are rounded to bf16
      the optimizer keeps a byte of each moment  --moments 8bit  peak [size]  1.32× the time  the optimizer's moments are rounded to 8 bits in blocks
      one thread  --threads 1  peak [size]  1.81× the time
    ");
    check_nothing_is_left(&place);
}

#[test]
fn what_is_planned_is_what_training_plans() {
    let place = Place::new();
    bars(&place, 900);
    let job = "x.npy --batch 32 --memory 120MB --epochs 3";
    let plan = place.json(&format!("plan {job}"));
    check_nothing_is_left(&place);
    assert_eq!(sum(&plan["holders"]), plan["needs"].as_u64().unwrap());
    assert_eq!(sum(&plan["arena"]), bytes(&plan["holders"], "network"));
    assert_eq!(sum(&plan["layers"]), bytes(&plan["arena"], "activations"));
    let times = &plan["times"];
    let seconds = |what: &str| times[what].as_f64().unwrap();
    assert!(seconds("step_seconds") > 0.0 && seconds("epoch_seconds") > seconds("step_seconds"));
    let trained = place.json(&format!("train {job}"));
    let id = trained["run"]["id"].as_str().unwrap();
    let file = fs::read(place.home.join("runs").join(id).join("plan.json")).unwrap();
    let stored: Value = serde_json::from_slice(&file).unwrap();
    for what in ["arena", "layers", "threads", "disk_bytes"] {
        assert_eq!(stored[what], plan[what], "{what}");
    }
    assert!(near(&stored["needs"], &plan["needs"]), "{stored} {plan}");
    let shown = place.json("show last");
    assert_eq!(shown["plan"], stored);
    let bytes = |value: &Value| value.as_f64().unwrap();
    let (needs, peak) = (bytes(&stored["needs"]), bytes(&shown["peak_bytes"]));
    let error = shown["plan_error"].as_f64().unwrap();
    assert!((error - (needs - peak) / peak).abs() < 1e-9);
    assert_eq!(place.json("runs")[0]["plan_error"], shown["plan_error"]);
}

#[test]
fn images_are_planned_without_being_packed() {
    let place = Place::new();
    folders(&place, "photos", 60);
    let job = "photos --memory 64MB --epochs 2 --image-size 24 --threads 2";
    let plan = place.json(&format!("plan {job}"));
    check_nothing_is_left(&place);
    let disk = plan["disk_bytes"].as_u64().unwrap();
    assert_eq!(disk, 180 * (24 * 24 * 3 + 1));
    assert!(plan["times"]["epoch_seconds"].as_f64().unwrap() > 0.0, "{plan}");
    place.ok(&format!("train {job}"));
    let stored = &place.json("show last")["plan"];
    for what in ["arena", "layers", "disk_bytes"] {
        assert_eq!(stored[what], plan[what], "{what}");
    }
    assert!(near(&stored["needs"], &plan["needs"]), "{stored} {plan}");
    // The pack is there now.
    let again = place.json(&format!("plan {job}"));
    assert_eq!(again["disk_bytes"], 0);
    assert!(near(&again["needs"], &plan["needs"]), "{again} {plan}");
}

#[test]
fn rows_of_a_table_are_planned_without_being_encoded() {
    let place = Place::with(Rows::binary(2_000).csv());
    let job = "data.csv --target y --model mlp --memory 64MB --threads 2";
    let plan = place.json(&format!("plan {job}"));
    check_nothing_is_left(&place);
    place.ok(&format!("train {job}"));
    let stored = &place.json("show last")["plan"];
    assert_eq!(stored["arena"], plan["arena"]);
    assert_eq!(stored["disk_bytes"], plan["disk_bytes"]);
    // A plan knows what buffers are granted, a training what it has touched of them by then.
    let needs = |plan: &Value| plan["needs"].as_f64().unwrap();
    assert!(needs(&plan) > 0.98 * needs(stored), "{stored} {plan}");
}

#[test]
fn an_impossible_budget_is_refused_as_training_refuses_it() {
    let place = Place::new();
    bars(&place, 300);
    let refused = |verb: &str| {
        place.run(&format!(
            "{verb} x.npy --batch 256 --model resnet18 --memory 30MB"
        ))
    };
    let (plan, train) = (refused("plan"), refused("train"));
    assert_eq!((plan.code, train.code), (Some(2), Some(2)));
    assert_eq!(plan.error(), train.error());
    assert!(plan.stderr.contains("activations"), "{}", plan.stderr);
    assert!(
        plan.stderr.contains("is the least that would do"),
        "{}",
        plan.stderr
    );
}

#[test]
fn less_than_any_job_needs_is_refused_with_what_it_needs() {
    let place = Place::new();
    bars(&place, 300);
    for verb in ["plan", "train"] {
        let small = place.run(&format!("{verb} x.npy --model mlp --memory 9MB"));
        assert_eq!(small.code, Some(2), "{}", small.stderr);
        assert!(
            small
                .stderr
                .contains("hint: --memory 12MB is the least that would do"),
            "{}",
            small.stderr
        );
    }
    place.json("train x.npy --model mlp --memory 12MB");
}

#[test]
fn a_device_is_answered_for_without_one() {
    let place = Place::new();
    bars(&place, 300);
    let yes = place.json("plan x.npy --memory 64MB --device-memory 2GB");
    let device = &yes["device"];
    assert_eq!(device["fits"], true);
    assert_eq!(sum(&device["holders"]), device["needs"].as_u64().unwrap());
    assert_eq!(bytes(&yes["holders"], "network"), 0);
    assert!(!device["assumptions"].as_array().unwrap().is_empty());
    let no = place.run("plan x.npy --memory 64MB --device-memory 500MB");
    assert_eq!(no.code, Some(1));
    assert!(no.stdout.contains("it does not fit"), "{}", no.stdout);
    // What is named as the least does, and a little less does not.
    let least = device["least"].as_u64().unwrap();
    let fits = |bytes: u64| {
        let answer = place.run(&format!(
            "plan x.npy --memory 64MB --device-memory {bytes} --json"
        ));
        serde_json::from_str::<Value>(&answer.stdout).unwrap()["device"]["fits"].clone()
    };
    assert_eq!(fits(least), true);
    assert_eq!(fits(least - least / 50), false);
    let table = Place::with(Rows::binary(100).csv());
    assert_snapshot!(table.run("plan data.csv --target y --memory 64MB --device-memory 2GB").error(), @r"
    exit 2
    error: --device-memory is for networks: linear models and trees stay on the host
      hint: leave it out, or give a network: --model mlp
    ");
}

/// Columns of many categories and a target of eight: with little memory they are hashed into fewer places, which is said,
/// and stays so when the training is taken up with plenty.
#[test]
fn a_linear_model_that_does_not_fit_is_hashed_into_fewer_places() {
    let place = Place::new();
    let mut random = Random(5);
    let mut text = String::from("a,b,y\n");
    for _ in 0..60_000 {
        let mut category = || (random.number().powi(4) * 20_000.0) as u32;
        let (a, b) = (category(), category());
        text += &format!("a{a},b{b},k{}\n", (a + b) % 20);
    }
    place.write("data.csv", text);
    let train = "train data.csv --target y --model linear --epochs 100 --memory";
    let plan = place.json("plan data.csv --target y --model linear --epochs 100 --memory 14MB");
    let change = &plan["changes"][0];
    assert_eq!(change["knob"], "encoding", "{plan}");
    assert_eq!(
        change["to"],
        "hashed \"a\" into 2^13 places, \"b\" into 2^13 places"
    );
    assert!(change["saves"].as_u64().unwrap() > 4_000_000, "{plan}");
    assert_eq!(change["alters"], "more categories share a place");

    let training = start_command(&place, &format!("{train} 14MB"));
    signal(training.parent, libc::SIGINT);
    assert_eq!(place.finish(training.child).code, Some(130));
    let stopped = place.json("show last");
    assert!(stopped["peak_bytes"].as_u64().unwrap() <= 14_000_000, "{stopped}");
    let resumed = place.json("resume last --memory 200MB");
    let weights = place.weights(resumed["run"]["id"].as_str().unwrap());
    let whole = place.json(&format!("{train} 14MB"));
    assert!(
        place.weights(whole["run"]["id"].as_str().unwrap()) == weights,
        "other weights"
    );
}
