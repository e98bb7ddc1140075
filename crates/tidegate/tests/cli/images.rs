//! Images from the command line: folders and tables of them, what is wrong with them, stopped and taken up again.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::help::Place;
use crate::tables::Random;
use crate::training::{signal, start_command};

/// Writes a picture of 24×20 pixels: bars that lie, stand or are not there, in any colour and with noise.
fn picture(path: &Path, kind: u64, random: &mut Random) {
    let (width, height) = (24, 20);
    let [red, green, blue] = std::array::from_fn(|_| 90 + (random.next() >> 33) % 120);
    let phase = (random.next() >> 33) % 6;
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let bar = match kind {
                0 => (y + phase) % 6 < 3,
                1 => (x + phase) % 6 < 3,
                _ => false,
            };
            let shade = if bar { 60 } else { 0 };
            let noise = (random.next() >> 33) % 40;
            pixels.extend([red, green, blue].map(|value| (value - shade + noise).min(255) as u8));
        }
    }
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let out = fs::File::create(path).unwrap();
    let mut encoder = png::Encoder::new(out, width as u32, height as u32);
    encoder.set_color(png::ColorType::Rgb);
    encoder.write_header().unwrap().write_image_data(&pixels).unwrap();
}

const KINDS: [&str; 3] = ["lying", "standing", "plain"];

/// Class folders with so many pictures each.
pub(crate) fn folders(place: &Place, name: &str, n: u64) {
    let mut random = Random(3);
    for (kind, class) in (0..).zip(KINDS) {
        for i in 0..n {
            picture(&place.path(&format!("{name}/{class}/{i}.png")), kind, &mut random);
        }
    }
}

const TRAIN: &str = "train photos --memory 64MB --epochs 4 --learning-rate 0.003 --image-size 24";

fn metric(report: &Value, name: &str) -> f64 {
    let metrics = report["metrics"].as_array().unwrap();
    let metric = metrics.iter().find(|metric| metric["name"] == name).unwrap();
    metric["value"].as_f64().unwrap()
}

/// What a command that must fail says.
fn refused(place: &Place, command: &str) -> String {
    let answer = place.run(command);
    assert_ne!(answer.code, Some(0), "{command}");
    answer.stderr
}

#[test]
fn a_network_learns_from_folders_and_predicts_files() {
    let place = Place::new();
    folders(&place, "photos", 150);
    let trained = place.json(&format!("{TRAIN} --augment flip,shift=0.1"));
    let (run, report) = (&trained["run"], &trained["report"]);
    assert!(metric(report, "accuracy") > 0.9, "{report}");
    assert!(run["peak_bytes"].as_u64().unwrap() <= 64_000_000, "{run}");
    let fed = report["fed"].as_array().unwrap();
    assert_eq!(fed.len(), 4);
    assert!(
        fed.iter()
            .all(|fed| (0.0..=1.0).contains(&fed["stall"].as_f64().unwrap()))
    );
    let predicted = place.ok("predict last photos/standing").stdout;
    let mut lines = predicted.lines();
    assert_eq!(
        lines.next().unwrap(),
        "file,prediction,probability,probability_lying,probability_plain,probability_standing"
    );
    let right = lines
        .clone()
        .filter(|line| line.starts_with("photos/standing/") && line.contains(",standing,"));
    assert_eq!(lines.count(), 150);
    assert!(right.count() > 130, "{predicted}");
    place.ok("predict last photos/plain --output p.parquet");
    assert!(place.path("p.parquet").is_file());
    let shown = place.ok("show last").stdout;
    assert!(shown.contains("STALL") && shown.contains("HELD UP BY"), "{shown}");
}

#[test]
fn mistakes_are_shown_on_a_sheet() {
    let place = Place::new();
    folders(&place, "photos", 40);
    // Pictures in the wrong folder.
    let mut random = Random(9);
    for i in 0..12 {
        picture(&place.path(&format!("photos/plain/wrong{i}.png")), 0, &mut random);
    }
    place.ok(&format!("{TRAIN} --holdout 0.5"));
    let explained = place.ok("explain last --output wrong.png").stdout;
    assert!(explained.contains("confusion"), "{explained}");
    assert!(explained.contains("wrong.png"), "{explained}");
    let sheet = fs::read(place.path("wrong.png")).unwrap();
    assert!(sheet.starts_with(b"\x89PNG"));
}

#[test]
fn a_preview_shows_every_image_as_it_is_and_augmented() {
    let place = Place::new();
    folders(&place, "photos", 5);
    let said = place.ok("preview photos --image-size 32 --augment standard --rows 3 --memory 64MB");
    assert_eq!(
        said.stdout.trim(),
        "preview.png: 3 images, each as it is and 5 times augmented"
    );
    let shown = place.json("preview photos --rows 2 --output other.png");
    assert_eq!(
        (shown["images"].as_u64(), shown["versions"].as_u64()),
        (Some(12), Some(1))
    );
    assert!(place.path("other.png").is_file());
}

#[test]
fn a_table_lists_images_with_their_labels() {
    let place = Place::new();
    folders(&place, "photos", 60);
    let mut table = String::from("image,kind,slope\n");
    for i in 0..60 {
        for (n, class) in KINDS.iter().enumerate() {
            table += &format!("photos/{class}/{i}.png,{class},{}.5\n", n * 3);
        }
    }
    table += "photos/lying/gone.png,lying,0.5\n";
    place.write("list.csv", table);
    let options = "--memory 64MB --learning-rate 0.003 --image-size 24";
    let classes = place.json(&format!("train list.csv --target kind {options} --epochs 12"));
    assert!(metric(&classes["report"], "accuracy") > 0.8, "{classes}");
    assert_eq!(classes["report"]["rows"]["bad"], 1);
    let number = place.json(&format!("train list.csv --target slope {options} --epochs 24"));
    assert!(metric(&number["report"], "rmse") < 2.0, "{number}");
    let said = refused(
        &place,
        &format!("train list.csv --target kind --bad-files fail {options}"),
    );
    assert!(said.contains("gone.png: there is no such file"), "{said}");
    let said = refused(&place, &format!("train list.csv --target kin {options}"));
    assert!(said.contains("did you mean \"kind\"?"), "{said}");
}

#[test]
fn a_training_that_was_killed_ends_at_the_same_weights() {
    let long = "train photos --memory 64MB --epochs 150 --image-size 24 --augment standard,mixup=0.4,erase=0.5 --balanced";
    for (pack, how) in [("", libc::SIGKILL), ("--no-pack", libc::SIGINT)] {
        let place = Place::new();
        folders(&place, "photos", 60);
        let whole = place.json(&format!("{long} {pack} --threads 1"));
        let mut training = start_command(&place, &format!("{long} {pack}"));
        let whom = if how == libc::SIGINT {
            training.parent
        } else {
            training.worker
        };
        signal(whom, how);
        training.child.wait().unwrap();
        let resumed = place.json(&format!("resume {}", training.id));
        let weights = |trained: &Value| place.weights(trained["run"]["id"].as_str().unwrap());
        assert!(
            weights(&resumed) == weights(&whole),
            "other weights after {how} {pack}"
        );
        assert_eq!(resumed["report"]["metrics"], whole["report"]["metrics"]);
    }
}

#[test]
fn what_is_wrong_with_images_is_told_before_training() {
    let place = Place::new();
    folders(&place, "photos", 8);
    place.write("photos/lying/text.jpg", "not a picture");
    place.write("photos/lying/empty.png", "");
    fs::copy(place.path("photos/plain/0.png"), place.path("photos/loose.png")).unwrap();
    let whole = fs::read(place.path("photos/plain/1.png")).unwrap();
    fs::write(place.path("photos/plain/half.png"), &whole[..whole.len() / 2]).unwrap();
    let said = place.ok(&format!("{TRAIN} --holdout 0.2"));
    let warnings: Vec<&str> = said
        .stderr
        .lines()
        .filter(|line| line.starts_with("warning"))
        .collect();
    let folder = place.path("photos");
    let folder = folder.display();
    let expected = [
        "warning: left out: 1 image beside the class folders, which has no label".to_string(),
        format!(
            "warning: 2 files are left out: {folder}/lying/empty.png: the file is empty; {folder}/lying/text.jpg: is none of \
             JPEG, PNG, WebP, BMP, GIF and TIFF, whatever its name says"
        ),
    ];
    assert_eq!(warnings[..2], expected, "{warnings:?}");
    assert!(
        warnings[2].starts_with(&format!("warning: 1 file is left out: {folder}/plain/half.png:")),
        "{warnings:?}"
    );
    let said = refused(&place, &format!("{TRAIN} --bad-files fail"));
    assert!(
        said.contains("photos/lying/empty.png: the file is empty"),
        "{said}"
    );
    assert!(said.contains("--bad-files skip"), "{said}");
    for (command, what) in [
        ("train photos --model boost", "images are for networks"),
        ("train photos --image-size 0", "--image-size 0x0 is out of range"),
        ("train photos --augment rotatoin=3", "rotation"),
        ("train photos --folds 3", "--folds is not for images"),
        ("train photos/lying", "holds 10 images and no folder of them"),
        ("train nowhere", "nowhere: no such file"),
    ] {
        let said = refused(&place, command);
        assert!(said.contains(what), "{command}: {said}");
    }
    let one = Place::new();
    let mut random = Random(1);
    picture(&one.path("photos/only/a.png"), 0, &mut random);
    let said = refused(&one, "train photos");
    assert!(said.contains("all labels are only"), "{said}");
}
