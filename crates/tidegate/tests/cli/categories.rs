//! Categories end to end: honest where they say nothing, useful where they do, calm before what they never saw.

use serde_json::Value;

use crate::help::Place;
use crate::tables::Random;

fn metric(trained: &Value, name: &str) -> f64 {
    let metrics = trained["report"]["metrics"].as_array().unwrap();
    let found = metrics.iter().find(|metric| metric["name"] == name);
    found.unwrap_or_else(|| panic!("{name} in {metrics:?}"))["value"]
        .as_f64()
        .unwrap()
}

/// Four rows for each of many categories, and a target that has nothing to do with any of them: an encoding that
/// shows a row its own target would tell them apart in training and be worth nothing on the rows held out.
#[test]
fn categories_that_say_nothing_teach_nothing() {
    let mut random = Random(21);
    let row = |_| {
        let (city, noise) = (random.next() % 5_000, random.number());
        format!("c{city},{noise:.3},{}\n", random.next() % 2)
    };
    let rows: String = (0..20_000).map(row).collect();
    let place = Place::with(format!("city,noise,y\n{rows}"));
    // Linear models give many categories a weight each, unless they are told otherwise.
    place.write(
        "job.toml",
        "[data]\npath = \"data.csv\"\ntarget = \"y\"\n[features.city]\nencode = \"impact\"\n",
    );
    for kind in ["boost", "linear"] {
        let trained = place.json(&format!(
            "train job.toml --model {kind} --memory 128MB --holdout 0.25"
        ));
        let auc = metric(&trained, "auc");
        // 5,000 rows held out: three deviations of an AUC by chance are 0.024.
        assert!((auc - 0.5).abs() < 0.03, "{kind}: AUC {auc}");
        let training = trained["report"]["training_loss"].as_f64().unwrap();
        if kind == "linear" {
            assert!(
                training > 0.67,
                "{kind}: a training loss of {training} is too good to be true"
            );
        }
    }
}

/// The same shape of table where the categories are all there is to know.
#[test]
fn categories_that_say_something_teach_it() {
    let mut random = Random(22);
    let row = |_| {
        let city = random.next() % 500;
        let likely = if city.is_multiple_of(2) { 80 } else { 20 };
        format!(
            "c{city},{:.3},{}\n",
            random.number(),
            u8::from(random.next() % 100 < likely)
        )
    };
    let rows: String = (0..20_000).map(row).collect();
    let place = Place::with(format!("city,noise,y\n{rows}"));
    for kind in ["boost", "linear"] {
        let trained = place.json(&format!(
            "train data.csv --target y --model {kind} --memory 128MB"
        ));
        // Knowing the city's kind exactly gives 0.80.
        assert!(
            metric(&trained, "auc") > 0.77,
            "{kind}: {}",
            trained["report"]["metrics"]
        );
    }
}

#[test]
fn categories_that_were_never_seen_are_predicted_for() {
    let mut random = Random(23);
    let row = |_| {
        let (few, many, a) = (random.next() % 4, random.next() % 300, random.number());
        let y = f64::from(few as u32) + f64::from((many % 5) as u32) + a;
        format!("f{few},m{many},{a:.3},{y:.3}\n")
    };
    let rows: String = (0..8_000).map(row).collect();
    let place = Place::with(format!("few,many,a,y\n{rows}"));
    place.write("seen.csv", "few,many,a\nf1,m1,0.5\n");
    place.write("unseen.csv", "few,many,a\nf9,m999,0.5\n,,\nf1,m999,\n");
    for kind in ["boost", "linear"] {
        place.ok(&format!("train data.csv --target y --model {kind} --memory 96MB"));
        let predictions = |file: &str| -> Vec<f64> {
            let printed = place.ok(&format!("predict last {file}")).stdout;
            let values = printed
                .lines()
                .skip(1)
                .map(|line| line.split(',').nth(1).unwrap().parse());
            values.collect::<Result<_, _>>().unwrap()
        };
        let seen = predictions("seen.csv");
        assert!((seen[0] - 2.5).abs() < 1.0, "{kind}: {seen:?}");
        for value in predictions("unseen.csv") {
            assert!(
                (-3.0..12.0).contains(&value),
                "{kind}: {value} is out of all bounds"
            );
        }
    }
}

/// What a job file says about columns reaches the model, for both kinds of it.
#[test]
fn what_is_said_about_columns_is_done() {
    let mut random = Random(24);
    let row = |_| {
        let (zip, grade, a) = (10_000 + random.next() % 40, random.next() % 5, random.number());
        let y = f64::from((zip % 3) as u32) + f64::from(grade as u32) + a;
        format!("{zip},g{grade},{a:.3},{y:.3}\n")
    };
    let rows: String = (0..3_000).map(row).collect();
    let place = Place::with(format!("zip,grade,a,y\n{rows}"));
    let job = |kind: &str| {
        format!(
            "[data]\npath = \"data.csv\"\ntarget = \"y\"\n\
             [features.zip]\nencode = \"impact\"\nfolds = 3\n\
             [features.grade]\nencode = \"ordinal\"\norder = \"name\"\n\
             [features.a]\nscale = \"minmax\"\nimpute = 0.0\nclip = [-0.5, 0.5]\n\
             [model]\nkind = \"{kind}\"\n"
        )
    };
    for kind in ["boost", "linear"] {
        place.write("job.toml", job(kind));
        let trained = place.json("train job.toml --memory 96MB");
        let id = trained["run"]["id"].as_str().unwrap();
        let encoders: Value =
            serde_json::from_str(&place.read(&format!("home/runs/{id}/model/encoders.json"))).unwrap();
        let encoder = |name: &str| {
            let features = encoders["features"].as_array().unwrap();
            features.iter().find(|feature| feature["name"] == name).unwrap()["encoder"].clone()
        };
        assert!(encoder("zip")["impact"].is_object(), "{kind}: {}", encoder("zip"));
        assert!(
            encoder("grade")["ordinal"].is_object(),
            "{kind}: {}",
            encoder("grade")
        );
        assert_eq!(
            encoder("a")["number"]["clip"],
            serde_json::json!([-0.5, 0.5]),
            "{kind}"
        );
        let shown = place.ok("train job.toml --memory 96MB").stderr;
        assert!(shown.contains("as asked"), "{shown}");
    }
    place.write("job.toml", job("boost").replace("\"impact\"", "\"hash\""));
    let refused = place.run("train job.toml --memory 96MB");
    assert_ne!(refused.code, Some(0), "{}", refused.stderr);
    assert!(refused.stderr.contains("zip"), "{}", refused.stderr);
    place.write("job.toml", job("boost").replace("impact", "magic"));
    let refused = place.run("train job.toml --memory 96MB");
    assert_eq!(refused.code, Some(2), "{}", refused.stderr);
    assert!(refused.stderr.contains("magic"), "{}", refused.stderr);
}
