//! Samples, labels and tests are found by the usual names, and what is not clear is said.

use tidegate_data::Error;
use tidegate_data::arrays::{ArrayOptions, ArrayProblem, FeedOptions, LabelsFrom, Part, are_arrays};
use tidegate_memory::Ledger;

use crate::help::{
    Folder, ROOMY, feed, gzip, idx, in_place, inputs, npy, npz, pixels, targets, thirds, told, without_labels,
};

fn x(n: usize) -> Vec<u8> {
    npy("|u1", &[n, 2, 2], &pixels(n, 4))
}

fn y(n: usize) -> Vec<u8> {
    npy("<i4", &[n], &thirds(n))
}

fn named(samples: Option<&str>, labels: Option<&str>) -> ArrayOptions {
    ArrayOptions {
        samples: samples.map(String::from),
        labels_from: labels.map_or(LabelsFrom::Found, |name| LabelsFrom::Named(name.into())),
        ..ArrayOptions::default()
    }
}

/// The four files of MNIST, as they are offered.
fn mnist(compressed: bool) -> Folder {
    let ending = if compressed { ".gz" } else { "" };
    let pack = |bytes: Vec<u8>| if compressed { gzip(&bytes) } else { bytes };
    let labels = |n: usize| (0..n).map(|i| (i % 10) as u8).collect::<Vec<u8>>();
    let folder = Folder::new(&[]);
    for (part, n) in [("train", 60), ("t10k", 20)] {
        let images = pack(idx(8, &[n as u32, 4, 4], &pixels(n, 16)));
        folder.write(&format!("{part}-images-idx3-ubyte{ending}"), &images);
        folder.write(
            &format!("{part}-labels-idx1-ubyte{ending}"),
            &pack(idx(8, &[n as u32], &labels(n))),
        );
    }
    folder.write("README.md", b"about the data");
    folder
}

#[test]
fn a_folder_of_mnist_has_a_training_part_and_a_test_part() {
    for compressed in [false, true] {
        let folder = mnist(compressed);
        assert!(are_arrays(&folder.path("")));
        let source = folder.open("").unwrap();
        assert_eq!((source.n_samples(), source.shape()), (60, &[4, 4][..]));
        assert_eq!(source.labels().unwrap().classes().len(), 10);
        let test = source.open_test(&Ledger::new(ROOMY)).unwrap().unwrap();
        assert_eq!((test.n_samples(), test.target(13)), (20, &[3.0][..]));
        assert_eq!(test.labels(), source.labels());
        assert!(!test.has_test());
    }
    // Each of them may be named, and compressed originals may stay beside.
    let folder = mnist(false);
    folder.write(
        "t10k-images-idx3-ubyte.gz",
        &gzip(&idx(8, &[1, 4, 4], &pixels(1, 16))),
    );
    assert_eq!(folder.open("").unwrap().n_samples(), 60);
    let test = folder.open("t10k-images-idx3-ubyte").unwrap();
    assert_eq!((test.n_samples(), test.has_test()), (20, false));
    assert!(folder.open("train-images-idx3-ubyte").unwrap().has_test());
}

#[test]
fn an_archive_has_a_test_part_too() {
    let members = [
        ("x_test", x(3)),
        ("y_test", y(3)),
        ("x_train", x(7)),
        ("y_train", y(7)),
    ];
    let folder = Folder::new(&[("mnist.npz", npz(&members, false))]);
    for name in ["mnist.npz", ""] {
        let source = folder.open(name).unwrap();
        assert_eq!(source.n_samples(), 7);
        assert_eq!(
            source
                .open_test(&Ledger::new(ROOMY))
                .unwrap()
                .unwrap()
                .n_samples(),
            3
        );
    }
    let test = folder
        .open_with("mnist.npz", &named(None, Some("y_test")))
        .unwrap();
    assert_eq!((test.n_samples(), targets(&test)), (3, vec![0.0, 1.0, 2.0]));
}

#[test]
fn a_test_part_has_the_classes_of_the_training_part() {
    let label = |values: &[&str]| {
        let bytes = values
            .iter()
            .flat_map(|value| format!("{value:\0<4}").into_bytes());
        npy("|S4", &[values.len()], &bytes.collect::<Vec<u8>>())
    };
    let open = |test: &[&str]| {
        let folder = Folder::new(&[
            ("x_train.npy", x(3)),
            ("y_train.npy", label(&["dog", "cat", "emu"])),
            ("x_test.npy", x(2)),
            ("y_test.npy", label(test)),
        ]);
        let source = folder.open("").unwrap();
        source
            .open_test(&Ledger::new(ROOMY))
            .map(|test| targets(&test.unwrap()))
    };
    assert_eq!(open(&["emu", "emu"]).unwrap(), [2.0, 2.0]);
    let error = open(&["dog", "fox"]).unwrap_err().to_string();
    assert!(
        error.ends_with("label 1 is \"fox\", and the classes are \"cat\", \"dog\", \"emu\""),
        "{error}"
    );
}

#[test]
fn labels_are_named_by_file_or_key() {
    let folder = Folder::new(&[
        ("scans.npy", x(6)),
        ("grade.npy", y(6)),
        ("sex.npy", y(6)),
        ("all.npz", npz(&[("arr_0", x(6)), ("arr_1", y(6))], true)),
        ("other/z.npy", y(6)),
    ]);
    let check = |name: &str, labels: &str| {
        let source = folder.open_with(name, &named(None, Some(labels))).unwrap();
        assert_eq!(
            targets(&source),
            [0.0, 1.0, 2.0, 0.0, 1.0, 2.0],
            "{name}, {labels}"
        );
    };
    check("scans.npy", "grade.npy");
    check("scans.npy", "grade");
    check("scans.npy", "other/z.npy");
    check("scans.npy", folder.path("other/z.npy").to_str().unwrap());
    check("all.npz", "arr_1");
    let elsewhere = folder.open_with("all.npz", &named(Some("arr_0"), Some("grade.npy")));
    assert_eq!(targets(&elsewhere.unwrap())[..3], [0.0, 1.0, 2.0]);
    let (error, hint) = told(folder.open_with("all.npz", &named(None, Some("arr_2"))));
    assert!(error.ends_with("all.npz: there is no array \"arr_2\""), "{error}");
    assert_eq!(hint, "did you mean \"arr_0\"? There are \"arr_0\", \"arr_1\"");
    let both = named(Some("scans"), Some("sex"));
    assert_eq!(folder.open_with("", &both).unwrap().n_samples(), 6);
}

#[test]
fn a_folder_for_each_class() {
    let folder = Folder::new(&[]);
    let all = pixels(5, 4);
    for (i, name) in [
        "cats/b.npy",
        "cats/a.npy",
        "dogs/1.npy",
        "emus/1.npy",
        "emus/2.npy",
    ]
    .iter()
    .enumerate()
    {
        folder.write(name, &npy("|u1", &[2, 2], &all[i * 4..i * 4 + 4]));
    }
    folder.write(".cache/x.npy", b"hidden");
    folder.write("cats/notes.txt", b"not an array");
    let source = folder.open("").unwrap();
    assert!(are_arrays(&folder.path("")));
    assert_eq!((source.n_samples(), source.shape()), (5, &[2, 2][..]));
    assert_eq!(targets(&source), [0.0, 0.0, 1.0, 2.0, 2.0]);
    let classes = source.labels().unwrap().classes();
    assert_eq!(
        classes
            .iter()
            .map(|label| label.text.as_str())
            .collect::<Vec<_>>(),
        ["cats", "dogs", "emus"]
    );
    // In the order of their names: b.npy was written first.
    let order = [1, 0, 2, 3, 4];
    let expected: Vec<f32> = order
        .iter()
        .flat_map(|i| all[i * 4..i * 4 + 4].to_vec())
        .map(f32::from)
        .collect();
    assert_eq!(inputs(&source), expected);
    assert_eq!(source.class_counts(Part::All), [2, 1, 2]);
}

#[test]
fn a_file_for_each_of_many_samples() {
    // More than may stay open at once.
    let folder = Folder::new(&[]);
    let all = pixels(300, 6);
    for i in 0..300 {
        let class = ["cats", "dogs"][i / 150];
        let bytes = npy("<u2", &[3], &all[i * 6..i * 6 + 6]);
        folder.write(&format!("{class}/{i:03}.npy"), &bytes);
    }
    let source = folder.open("").unwrap();
    assert_eq!(source.class_counts(Part::All), [150, 150]);
    let words = all
        .chunks(2)
        .map(|bytes| f32::from(u16::from_le_bytes([bytes[0], bytes[1]])));
    let words: Vec<f32> = words.collect();
    assert_eq!(inputs(&source), words);
    let by_windows = FeedOptions {
        prefetch: 1 << 20,
        threads: 2,
        ..in_place()
    };
    let seen = feed(&source, &by_windows)
        .into_iter()
        .flat_map(|batch| batch.inputs);
    assert_eq!(seen.collect::<Vec<f32>>(), words);
}

#[test]
fn folders_for_training_and_test() {
    let folder = Folder::new(&[]);
    for name in [
        "train/cat/1.npy",
        "train/dog/1.npy",
        "train/dog/2.npy",
        "test/dog/9.npy",
    ] {
        folder.write(name, &npy("|u1", &[2, 2], &[1, 2, 3, 4]));
    }
    let source = folder.open("").unwrap();
    assert_eq!(targets(&source), [0.0, 1.0, 1.0]);
    let test = source.open_test(&Ledger::new(ROOMY)).unwrap().unwrap();
    assert_eq!(targets(&test), [1.0]);
}

#[test]
fn files_with_their_labels_beside() {
    // One sample a file, and the same files as shards of several samples each.
    let file = |n: usize| npy("|u1", &[n, 2], &pixels(n, 2));
    let check = |sizes: &[usize], labels: usize, n: u64, shape: &[usize]| {
        let folder = Folder::new(&[("labels.npy", y(labels))]);
        for (i, size) in sizes.iter().enumerate() {
            folder.write(&format!("{i:04}.npy"), &file(*size));
        }
        let source = folder.open("").unwrap();
        assert_eq!((source.n_samples(), source.shape()), (n, shape));
    };
    check(&[3, 3, 3, 3], 4, 4, &[3, 2]);
    check(&[3, 3, 2], 8, 8, &[2]);
    check(&[1, 1, 1], 3, 3, &[2]);
}

#[test]
fn samples_alone_need_no_labels() {
    let folder = Folder::new(&[("x.npy", x(4)), ("more/x_0.npy", x(2)), ("more/x_1.npy", x(3))]);
    let source = folder.open_with("x.npy", &without_labels()).unwrap();
    assert_eq!((source.n_samples(), source.labels()), (4, None));
    assert!(source.target(1).is_empty());
    assert_eq!(
        folder.open_with("more", &without_labels()).unwrap().n_samples(),
        5
    );
}

#[test]
fn what_is_not_clear_is_listed() {
    let check = |files: &[&str], name: &str, expected: &str| {
        let files: Vec<(&str, Vec<u8>)> = files.iter().map(|name| (*name, x(4))).collect();
        let (error, hint) = told(Folder::new(&files).open(name));
        assert!(error.ends_with(expected), "{error}");
        assert!(!hint.is_empty());
    };
    check(
        &["x.npy", "y.npy", "labels.npy"],
        "",
        "which array holds the labels is not clear: there are \"labels.npy\", \"x.npy\", \"y.npy\"",
    );
    check(
        &["x.npy", "data.npy", "y.npy"],
        "",
        "which array holds the samples is not clear: there are \"data.npy\", \"x.npy\", \"y.npy\"",
    );
    check(&["x.npy", "z.npy"], "x.npy", "x.npy: there are no labels for it");
    check(&["x.npy"], "", "there are no labels for it; there are \"x.npy\"");
    let folder = Folder::new(&[("notes.txt", b"no arrays".to_vec())]);
    assert!(!are_arrays(&folder.path("")));
    assert!(
        matches!(folder.open(""), Err(Error::Array(problem)) if matches!(*problem, ArrayProblem::NoArrays { .. }))
    );
    assert!(matches!(folder.open("nowhere.npy"), Err(Error::NotFound { .. })));
}

#[test]
fn the_fingerprint_changes_with_the_data() {
    let print = |x: Vec<u8>, y: Vec<u8>| {
        Folder::new(&[("x.npy", x), ("y.npy", y)])
            .open("x.npy")
            .unwrap()
            .fingerprint()
            .unwrap()
    };
    let first = print(x(9), y(9));
    assert_eq!(first, print(x(9), y(9)), "the same for a copy");
    assert_ne!(first, print(x(8), y(8)));
    let mut changed = thirds(9);
    changed[4] = 2;
    assert_ne!(first, print(x(9), npy("<i4", &[9], &changed)));
    assert_ne!(first, print(npy("|i1", &[9, 2, 2], &pixels(9, 4)), y(9)));
}
