//! `--below`: what the page asks for is led out of its folders neither by a name, nor by a link, nor when it is taken up
//! again.

use std::fs;
use std::os::unix::fs::symlink;

use crate::help::Place;
use crate::images::folders;
use crate::networks::bars;
use crate::tables::binary;
use crate::training::{signal, start_with, wide};

/// A place whose data are in `in`, and what nobody should see in `out`.
fn place(names: &[&str], make: impl FnOnce(&Place)) -> Place {
    let place = Place::new();
    make(&place);
    for folder in ["in", "out"] {
        fs::create_dir(place.path(folder)).unwrap();
    }
    for name in names {
        fs::rename(place.path(name), place.path(&format!("in/{name}"))).unwrap();
    }
    place
}

/// Each command is refused because of this path, before anything is trained.
#[track_caller]
fn refused(place: &Place, data: &str, path: &str) {
    for verb in ["plan", "train", "train --detach"] {
        let answer = place.run(&format!("{verb} --below in --memory 120MB {data}"));
        let told = format!("{path}: lies outside of the folders that data may come from");
        assert!(answer.stderr.contains(&told), "{verb} {data}: {}", answer.stderr);
        assert!(
            answer.stderr.contains("hint: data may come from "),
            "{}",
            answer.stderr
        );
        assert_eq!(answer.code, Some(2), "{}", answer.stderr);
    }
    let done = place.look("runs");
    let done = done
        .as_array()
        .unwrap()
        .iter()
        .filter(|run| run["status"] == "done");
    assert_eq!(done.count(), 0);
}

#[test]
fn labels_of_arrays_are_inside() {
    let place = place(&["x.npy", "y.npy"], |place| bars(place, 90));
    fs::rename(place.path("in/y.npy"), place.path("out/y.npy")).unwrap();
    for target in ["../out/y.npy", "../out/nothing.npy"] {
        refused(&place, &format!("in/x.npy --model mlp --target {target}"), target);
    }
    let secret = place.path("out/y.npy").display().to_string();
    refused(
        &place,
        &format!("in/x.npy --model mlp --target {secret}"),
        &secret,
    );
    refused(
        &place,
        "in/x.npy --model mlp --target z --validation out/y.npy",
        "out/y.npy",
    );
    // Where nobody asks for it, labels may be anywhere.
    place.ok("plan in/x.npy --model mlp --target ../out/y.npy --memory 120MB");
}

#[test]
fn images_of_a_table_and_links_of_a_folder_are_inside() {
    let place = place(&["photos"], |place| folders(place, "photos", 4));
    fs::rename(place.path("in/photos/plain/0.png"), place.path("out/0.png")).unwrap();
    let row = |path: &str, label: &str| format!("{path},{label}\n");
    let inside: String = (0..4)
        .map(|i| row(&format!("photos/lying/{i}.png"), "a") + &row(&format!("photos/standing/{i}.png"), "b"))
        .collect();
    place.write(
        "in/list.csv",
        format!("file,kind\n{inside}{}", row("../out/0.png", "b")),
    );
    refused(&place, "in/list.csv --target kind --model cnn", "../out/0.png");
    symlink(place.path("out"), place.path("in/photos/plain/more")).unwrap();
    refused(&place, "in/photos --model cnn", "in/photos/plain/more");
}

#[test]
fn links_among_tables_are_inside() {
    let place = place(&["data.csv"], |place| place.write("data.csv", binary()));
    fs::rename(place.path("in/data.csv"), place.path("out/data.csv")).unwrap();
    symlink(place.path("out/data.csv"), place.path("in/more.csv")).unwrap();
    refused(&place, "in --target y", "in/more.csv");
    let answer = place.run("plan --look --below in in");
    assert!(
        answer.stderr.contains("in/more.csv: lies outside"),
        "{}",
        answer.stderr
    );
    place.write(
        "in/job.toml",
        "[data]\npath = \"../out/data.csv\"\ntarget = \"y\"\n",
    );
    refused(&place, "in/job.toml", "in/../out/data.csv");
}

#[test]
fn a_run_that_is_taken_up_stays_inside() {
    let place = Place::new();
    wide(&place);
    let training = start_with(&place, "--epochs 100000 --below .");
    signal(training.parent, libc::SIGINT);
    assert_eq!(place.finish(training.child).code, Some(130));
    let elsewhere = tempfile::tempdir().unwrap();
    let moved = elsewhere.path().join("data.csv");
    fs::copy(place.path("data.csv"), &moved).unwrap();
    fs::remove_file(place.path("data.csv")).unwrap();
    symlink(&moved, place.path("data.csv")).unwrap();
    let answer = place.run("resume last");
    assert!(
        answer.stderr.contains("data.csv: lies outside"),
        "{}",
        answer.stderr
    );
    assert_eq!(answer.code, Some(2));
}
