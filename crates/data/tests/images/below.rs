//! Images that must be below a folder: neither a table nor a link leads out of it.

use std::os::unix::fs::symlink;
use std::path::PathBuf;

use tidegate_data::images::{ImageOptions, are_images};
use tidegate_data::{Below, Error, SourceOptions};
use tidegate_memory::Ledger;

use crate::draw::Drawing;
use crate::help::{Folder, ROOMY, open, sized};

/// Six pictures in class folders of `in`, one in `out`.
fn folder() -> Folder {
    let folder = Folder::new(&[]);
    for i in 0..6 {
        let picture = Drawing::numbered(i, 10, 10).png();
        folder.write(&format!("in/photos/{}/{i}.png", i % 2), &picture);
    }
    folder.write("out/secret.png", &Drawing::numbered(7, 10, 10).png());
    folder
}

fn below(folder: &Folder) -> ImageOptions {
    ImageOptions {
        reading: SourceOptions {
            below: Below::new(&[folder.path("in")], None).unwrap(),
            ..SourceOptions::default()
        },
        ..sized(10)
    }
}

fn outside(folder: &Folder, name: &str) -> PathBuf {
    match open(&folder.path(name), &below(folder), &Ledger::new(ROOMY)) {
        Err(Error::Outside(outside)) => outside.path,
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("this should have been refused"),
    }
}

#[test]
fn tables_name_images_inside_alone() {
    let folder = folder();
    let table = |last: &str| {
        let rows: String = (0..6)
            .map(|i| format!("photos/{}/{i}.png,{}\n", i % 2, i % 2))
            .collect();
        folder.write("in/list.csv", format!("file,label\n{rows}{last},1\n").as_bytes());
    };
    let absolute = folder.path("out/secret.png").display().to_string();
    for last in [
        "../out/secret.png",
        "../out/nothing.png",
        "/nowhere/a.png",
        &absolute,
    ] {
        table(last);
        assert!(outside(&folder, "in/list.csv").ends_with(last), "{last}");
    }
    table("photos/../photos/0/0.png");
    let opened = open(&folder.path("in/list.csv"), &below(&folder), &Ledger::new(ROOMY)).unwrap();
    assert_eq!(opened.training.n_samples(), 7);
    // A table is not asked whether what it names elsewhere is there.
    folder.write("in/list.csv", b"file,label\n../out/secret.png,1\n");
    let path = folder.path("in/list.csv");
    assert!(are_images(&path, &Below::default()));
    assert!(!are_images(&path, &below(&folder).reading.below));
}

#[test]
fn links_among_images_lead_no_further() {
    for (link, to) in [
        ("in/photos/0/9.png", "out/secret.png"),
        ("in/photos/0/more", "out"),
        ("in/photos/2", "out"),
    ] {
        let folder = folder();
        symlink(folder.path(to), folder.path(link)).unwrap();
        let path = outside(&folder, "in/photos");
        assert!(path.starts_with(folder.path(link)), "{path:?}");
        let anywhere = open(&folder.path("in/photos"), &sized(10), &Ledger::new(ROOMY)).unwrap();
        assert_eq!(anywhere.training.n_samples(), 7, "{link}");
    }
    let folder = folder();
    symlink(folder.path("in/photos/1"), folder.path("in/photos/2")).unwrap();
    open(&folder.path("in/photos"), &below(&folder), &Ledger::new(ROOMY)).unwrap();
}
