//! Arrays that must be below a folder: no name and no link leads out of it.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use tidegate_data::arrays::{ArrayOptions, LabelsFrom};
use tidegate_data::{Below, Error};

use crate::help::{Folder, npy, pixels, thirds};

/// Samples in `in`, labels in `in` and in `out`.
fn folder() -> Folder {
    let samples = npy("|u1", &[30, 4], &pixels(30, 4));
    let labels = npy("<i4", &[30], &thirds(30));
    Folder::new(&[
        ("in/x.npy", samples),
        ("in/y.npy", labels.clone()),
        ("in/.hidden/y.npy", labels.clone()),
        ("in/home/y.npy", labels.clone()),
        ("out/y.npy", labels),
    ])
}

fn below(folder: &Folder, named: &str) -> ArrayOptions {
    ArrayOptions {
        labels_from: match named {
            "" => LabelsFrom::Found,
            name => LabelsFrom::Named(name.into()),
        },
        below: Below::new(&[folder.path("in")], Some(&folder.path("in/home"))).unwrap(),
        ..ArrayOptions::default()
    }
}

fn is_outside(result: Result<impl Sized, Error>) -> PathBuf {
    match result {
        Err(Error::Outside(outside)) => outside.path,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("this should have been refused"),
    }
}

#[test]
fn labels_are_named_inside_alone() {
    let folder = folder();
    let out = folder.path("out/y.npy").display().to_string();
    // What is not there is refused like what is: nobody learns which it is.
    let nothing = folder.path("out/nothing.npy").display().to_string();
    for named in [
        "../out/y.npy",
        "../out/nothing.npy",
        "nowhere/../../out/y.npy",
        ".hidden/y.npy",
        "home/y.npy",
        "/etc/passwd",
        &out,
        &nothing,
    ] {
        let path = is_outside(folder.open_with("in/x.npy", &below(&folder, named)));
        assert!(path.ends_with(Path::new(named).file_name().unwrap()), "{path:?}");
    }
    let inside = folder.path("in/y.npy").display().to_string();
    for named in ["", "y.npy", "y", &inside] {
        let source = folder.open_with("in/x.npy", &below(&folder, named)).unwrap();
        assert_eq!(source.n_samples(), 30, "{named}");
    }
    let unknown = folder.open_with("in/x.npy", &below(&folder, "z"));
    assert!(matches!(unknown, Err(Error::Array(_))));
    is_outside(folder.open_with("out/y.npy", &below(&folder, "")));
    // Without such a folder they may be anywhere.
    let anywhere = ArrayOptions {
        below: Below::default(),
        ..below(&folder, &out)
    };
    folder.open_with("in/x.npy", &anywhere).unwrap();
}

#[test]
fn links_lead_no_further() {
    let link = |from: &str, to: &str| {
        let folder = folder();
        std::fs::remove_dir_all(folder.path("in/home")).unwrap();
        std::fs::remove_file(folder.path("in/y.npy")).unwrap();
        symlink(folder.path(to), folder.path(from)).unwrap();
        folder
    };
    for (from, to, opened) in [
        ("in/y.npy", "out/y.npy", "in"),
        ("in/y.npy", "out/y.npy", "in/x.npy"),
        ("in/all", "out", "in/all"),
        ("in/all", "out", "in/all/y.npy"),
    ] {
        let folder = link(from, to);
        is_outside(folder.open_with(opened, &below(&folder, "")));
    }
    let folder = link("in/y.npy", "in/labels.npy");
    folder.write("in/labels.npy", &npy("<i4", &[30], &thirds(30)));
    folder.open_with("in/x.npy", &below(&folder, "y")).unwrap();
}
