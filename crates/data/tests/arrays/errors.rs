//! What is wrong with arrays is said before anything is trained, with the path and the values.

use tidegate_data::Error;

use crate::help::{Folder, idx, npy, npz, pixels, thirds, told, without_labels};

/// Opening this fails with these words, and a hint.
#[track_caller]
fn check(files: &[(&str, Vec<u8>)], name: &str, expected: &str) {
    let folder = Folder::new(files);
    let (error, hint) = told(folder.open(name));
    let error = error.replace(&format!("{}/", folder.0.path().display()), "");
    assert!(error.starts_with(expected), "{error}");
    assert!(!hint.is_empty(), "{error}");
}

fn y(n: usize) -> (&'static str, Vec<u8>) {
    ("y.npy", npy("<i4", &[n], &thirds(n)))
}

fn x(n: usize, shape: &[usize]) -> Vec<u8> {
    let whole = [&[n][..], shape].concat();
    npy("|u1", &whole, &pixels(n, shape.iter().product()))
}

#[test]
fn lengths_that_disagree() {
    check(
        &[("x.npy", x(5, &[2])), y(4)],
        "x.npy",
        "x.npy has 5 samples and y.npy has 4 labels",
    );
    check(
        &[
            ("x_0.npy", x(5, &[2])),
            ("x_1.npy", x(5, &[2])),
            ("y_0.npy", y(4).1),
            ("y_1.npy", y(6).1),
        ],
        "",
        "x_0.npy has 5 samples and y_0.npy has 4 labels",
    );
    check(
        &[
            ("a.npy", x(5, &[2])),
            ("b.npy", x(5, &[2])),
            ("labels.npy", y(7).1),
        ],
        "",
        "a.npy has 10 samples and labels.npy has 7 labels",
    );
    check(
        &[("d.npz", npz(&[("x", x(5, &[2])), ("y", y(4).1)], true))],
        "d.npz",
        "d.npz/x.npy has 5 samples and d.npz/y.npy has 4 labels",
    );
}

#[test]
fn samples_of_different_shapes_and_types() {
    check(
        &[("a/1.npy", x(28, &[28])), ("b/1.npy", x(28, &[32]))],
        "",
        "a/1.npy holds samples of uint8 28×28 and b/1.npy of uint8 28×32",
    );
    check(
        &[
            ("x_0.npy", x(2, &[3])),
            ("x_1.npy", npy("<f4", &[2, 3], &[0; 24])),
            ("y_0.npy", y(2).1),
            ("y_1.npy", y(2).1),
        ],
        "",
        "x_0.npy holds samples of uint8 3 and x_1.npy of float32 3",
    );
    let folder = Folder::new(&[
        ("x_train.npy", x(3, &[4])),
        ("y_train.npy", y(3).1),
        ("x_test.npy", x(3, &[5])),
        ("y_test.npy", y(3).1),
    ]);
    let source = folder.open("").unwrap();
    let error = source
        .open_test(&tidegate_memory::Ledger::new(1 << 20))
        .err()
        .unwrap()
        .to_string();
    assert!(error.contains("of uint8 4 and"), "{error}");
}

#[test]
fn types_that_are_no_numbers() {
    for descr in ["<c8", "|O", "<M8[ns]", "|V4", "<f16", "S3"] {
        let folder = Folder::new(&[("x.npy", npy(descr, &[2], &[0; 64]))]);
        let (error, hint) = told(folder.open_with("x.npy", &without_labels()));
        assert!(
            error.contains("x.npy: holds ") && error.ends_with(", not numbers"),
            "{error}"
        );
        assert!(hint.contains("save"), "{hint}");
    }
}

#[test]
fn fortran_order() {
    let text = "{'descr': '<f4', 'fortran_order': True, 'shape': (3, 2), }\n";
    let length = (text.len() as u16).to_le_bytes();
    let bytes = [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &[0; 24]].concat();
    check(&[("x.npy", bytes)], "x.npy", "x.npy: there are no labels for it");
    let text_bytes = [b"\x93NUMPY\x01\x00", &length[..], text.as_bytes(), &[0; 24]].concat();
    check(
        &[("x.npy", text_bytes), y(3)],
        "x.npy",
        "x.npy: 3×2 in Fortran order: its samples are scattered over the file",
    );
}

#[test]
fn files_that_are_cut_off() {
    let whole = x(5, &[4]);
    check(
        &[("x.npy", whole[..whole.len() - 3].to_vec()), y(5)],
        "x.npy",
        "x.npy: is cut off: 5×4 of uint8 should hold 20 bytes and there are 17",
    );
    check(
        &[("x.npy", whole[..30].to_vec()), y(5)],
        "x.npy",
        "x.npy: the NumPy header is broken: it is 128 bytes long and there are 30",
    );
    let whole = idx(8, &[5, 4], &pixels(5, 4));
    check(
        &[
            ("x.idx", whole[..20].to_vec()),
            ("y.idx", idx(8, &[5], &[0, 1, 2, 3, 4])),
        ],
        "x.idx",
        "x.idx: is cut off: 5×4 of uint8 should hold 20 bytes and there are 8",
    );
    check(
        &[("x.idx", whole[..7].to_vec()), ("y.idx", whole.clone())],
        "x.idx",
        "x.idx: the IDX header is broken",
    );
    let labels = y(5).1;
    check(
        &[
            ("x.npy", x(5, &[4])),
            ("y.npy", labels[..labels.len() - 1].to_vec()),
        ],
        "x.npy",
        "y.npy: is cut off: 5 of int32 should hold 20 bytes and there are 19",
    );
}

#[test]
fn arrays_without_values() {
    check(
        &[("x.npy", npy("|u1", &[0, 4], &[])), y(4)],
        "x.npy",
        "x.npy: holds no values: its shape is 0×4",
    );
    check(
        &[("x.npy", npy("|u1", &[3, 0], &[])), y(3)],
        "x.npy",
        "x.npy: holds no values: its shape is 3×0",
    );
    check(
        &[("x.npy", x(4, &[2])), ("y.npy", npy("<i4", &[0], &[]))],
        "x.npy",
        "y.npy: holds no values: its shape is 0",
    );
    check(
        &[("x.npy", x(4, &[2])), ("y.npy", npy("|S0", &[4], &[]))],
        "x.npy",
        "y.npy: holds no values: its shape is 4",
    );
    assert!(matches!(
        Folder::new(&[("x.npy", Vec::new())]).open("x.npy"),
        Err(Error::Empty { .. })
    ));
}

#[test]
fn shapes_beyond_all_bounds() {
    let large = usize::MAX / 2;
    for shape in [&[large, 3][..], &[1 << 32, 1 << 32, 2], &[1 << 62, 4]] {
        let folder = Folder::new(&[("x.npy", npy("<f8", shape, &[0; 64]))]);
        let (error, _) = told(folder.open_with("x.npy", &without_labels()));
        assert!(
            error.ends_with("comes to more bytes than any file has"),
            "{error}"
        );
    }
    // As many as fit into a number, and far more than there are.
    let folder = Folder::new(&[("x.npy", npy("|u1", &[1 << 40, 1 << 20], &[0; 64]))]);
    let (error, _) = told(folder.open_with("x.npy", &without_labels()));
    assert!(
        error.contains("is cut off: 1099511627776×1048576 of uint8 should hold 1152921504606846976 bytes"),
        "{error}"
    );
    let folder = Folder::new(&[("x.npy", npy("<U4611686018427387904", &[4], &[0; 64]))]);
    let (error, _) = told(folder.open_with("x.npy", &without_labels()));
    assert!(
        error.ends_with("comes to more bytes than any file has"),
        "{error}"
    );
}

#[test]
fn a_single_folder_of_a_class() {
    check(&[("cats/1.npy", x(2, &[2])), ("cats/2.npy", x(2, &[2]))], "", "");
    let folder = Folder::new(&[("cats/1.npy", x(2, &[2]))]);
    let (error, _) = told(folder.open(""));
    assert!(error.ends_with("all labels are cats"), "{error}");
}

#[test]
fn what_is_no_array() {
    check(
        &[("x.npy", b"hello, I am text".to_vec()), y(4)],
        "x.npy",
        "x.npy: is no array: neither NumPy's .npy or .npz, nor IDX",
    );
    check(&[("d.npz", npz(&[], false))], "d.npz", "d.npz: holds no arrays");
    let table = crate::help::npz(&[("x", x(2, &[2]))], false);
    check(
        &[("d.npz", table[..table.len() - 10].to_vec())],
        "d.npz",
        "d.npz: the zip archive is broken",
    );
}

#[test]
fn a_file_that_changes_meanwhile() {
    let folder = Folder::images(50, &[4]);
    let source = folder.open("x.npy").unwrap();
    folder.write("x.npy", &x(50, &[5]));
    let ledger = tidegate_memory::Ledger::new(1 << 20);
    let fed = source.feed(&crate::help::in_place(), &ledger, |_| {
        Ok::<_, Error>(std::ops::ControlFlow::Continue(()))
    });
    assert!(matches!(fed, Err(Error::Changed { .. })));
    assert_eq!(ledger.used(), 0);
}
