//! Samples kept in memory, unpacked or mapped: within what is allowed, and never torn.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use tidegate_data::Error;
use tidegate_data::arrays::{ArrayProblem, ArraySource, Keep, Kept};
use tidegate_data::pack::{Layout, PackStore, Prune};
use tidegate_memory::Ledger;

use crate::help::{Folder, ROOMY, gzip, idx, inputs, npy, npz, pixels, thirds};

const N: usize = 3_000;

/// Compressed arrays of 28×28, in both formats.
fn packed() -> Folder {
    let (data, labels) = (pixels(N, 784), thirds(N));
    Folder::new(&[
        (
            "train-images-idx3-ubyte.gz",
            gzip(&idx(0x08, &[N as u32, 28, 28], &data)),
        ),
        (
            "train-labels-idx1-ubyte.gz",
            gzip(&idx(0x08, &[N as u32], &[0, 1].repeat(N / 2))),
        ),
        (
            "both.npz",
            npz(
                &[
                    ("x", npy("|u1", &[N, 28, 28], &data)),
                    ("y", npy("<i4", &[N], &labels)),
                ],
                true,
            ),
        ),
    ])
}

fn expected() -> Vec<f32> {
    pixels(N, 784).into_iter().map(f32::from).collect()
}

fn files(folder: &Folder) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder.path("unpacked")).unwrap();
    entries.map(|entry| entry.unwrap().path()).collect()
}

fn unpacking(folder: &Folder) -> Keep {
    Keep {
        folder: Some(folder.path("unpacked")),
        ..Keep::default()
    }
}

fn keep(source: &mut ArraySource, keep: &Keep) -> Kept {
    let ledger = Ledger::new(ROOMY);
    let said = source.keep_bytes(keep);
    let kept = source.keep(keep, &ledger).unwrap();
    assert!(ledger.peak() <= said, "{} and {said} were said", ledger.peak());
    kept
}

#[test]
fn what_fits_is_held_in_memory_under_one_grant() {
    let folder = packed();
    for name in ["train-images-idx3-ubyte.gz", "both.npz"] {
        let mut source = folder.open(name).unwrap();
        let ledger = Ledger::new(ROOMY);
        let allowed = Keep {
            memory: source.bytes(),
            ..Keep::default()
        };
        let said = source.keep_bytes(&allowed);
        assert_eq!(source.keep(&allowed, &ledger).unwrap(), Kept::Memory);
        assert_eq!(ledger.used(), source.bytes());
        assert!(ledger.peak() <= said, "{} and {said} were said", ledger.peak());
        assert_eq!(inputs(&source), expected());
        drop(source);
        assert_eq!(ledger.used(), 0);
    }
}

#[test]
fn what_does_not_fit_is_unpacked_once() {
    let folder = packed();
    for name in ["train-images-idx3-ubyte.gz", "both.npz"] {
        let mut source = folder.open(name).unwrap();
        let ledger = Ledger::new(8 << 20);
        let unpacking = unpacking(&folder);
        let said = source.keep_bytes(&unpacking);
        assert_eq!(source.keep(&unpacking, &ledger).unwrap(), Kept::Unpacked);
        assert!(ledger.peak() <= said, "{} and {said} were said", ledger.peak());
        assert_eq!(ledger.used(), 0);
        assert_eq!(inputs(&source), expected());
        let before: Vec<_> = files(&folder)
            .iter()
            .map(|file| fs::metadata(file).unwrap().ino())
            .collect();
        let mut again = folder.open(name).unwrap();
        assert_eq!(keep(&mut again, &unpacking), Kept::Unpacked);
        let after: Vec<_> = files(&folder)
            .iter()
            .map(|file| fs::metadata(file).unwrap().ino())
            .collect();
        assert_eq!(before, after, "what is there is used again");
        assert_eq!(inputs(&again), expected());
    }
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn what_was_unpacked_may_be_mapped() {
    let folder = packed();
    let mut source = folder.open("both.npz").unwrap();
    let mapped = Keep {
        map: true,
        ..unpacking(&folder)
    };
    assert_eq!(keep(&mut source, &mapped), Kept::Mapped);
    assert_eq!(inputs(&source), expected());
}

#[test]
fn a_torn_file_is_never_used() {
    let folder = packed();
    let unpacking = unpacking(&folder);
    keep(&mut folder.open("both.npz").unwrap(), &unpacking);
    let [file] = files(&folder).try_into().unwrap();
    let whole = fs::read(&file).unwrap();
    let changed = |at: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1;
        bytes
    };
    let end = whole.len();
    for torn in [
        whole[..end - 1].to_vec(),
        whole[..1_000].to_vec(),
        Vec::new(),
        vec![0; end],
        changed(0),
        changed(end / 2),
        changed(end - 1),
        [&whole[..], b"x"].concat(),
    ] {
        fs::write(&file, &torn).unwrap();
        let mut source = folder.open("both.npz").unwrap();
        assert_eq!(keep(&mut source, &unpacking), Kept::Unpacked);
        assert_eq!(inputs(&source), expected());
        assert_eq!(fs::read(&file).unwrap(), whole);
    }
}

#[test]
fn another_array_is_unpacked_anew() {
    let folder = packed();
    let unpacking = unpacking(&folder);
    keep(&mut folder.open("both.npz").unwrap(), &unpacking);
    let mut data = pixels(N, 784);
    data[N * 300] ^= 1;
    let x = npy("|u1", &[N, 28, 28], &data);
    folder.write(
        "both.npz",
        &npz(&[("x", x), ("y", npy("<i4", &[N], &thirds(N)))], true),
    );
    let mut source = folder.open("both.npz").unwrap();
    keep(&mut source, &unpacking);
    assert_eq!(
        inputs(&source),
        data.into_iter().map(f32::from).collect::<Vec<f32>>()
    );
    assert_eq!(files(&folder).len(), 2);
}

#[test]
fn leftovers_of_killed_writers_go() {
    let folder = packed();
    folder.write("unpacked/0123456789abcdef.new-1-0", b"half an array");
    folder.write("unpacked/notes.txt", b"not ours");
    keep(&mut folder.open("both.npz").unwrap(), &unpacking(&folder));
    let mut names: Vec<String> = files(&folder)
        .iter()
        .map(|file| file.extension().unwrap().to_string_lossy().into_owned())
        .collect();
    names.sort();
    assert_eq!(names, ["array", "txt"]);
}

#[test]
fn without_room_or_a_folder_it_is_said() {
    let folder = packed();
    let mut source = folder.open("both.npz").unwrap();
    let error = source
        .keep(
            &Keep {
                memory: 1 << 20,
                ..Keep::default()
            },
            &Ledger::new(ROOMY),
        )
        .unwrap_err();
    let Error::Array(problem) = &error else {
        panic!("{error}")
    };
    assert!(
        matches!(
            **problem,
            ArrayProblem::Packed {
                allowed: 1_048_576,
                ..
            }
        ),
        "{error}"
    );
    assert!(
        error.to_string().contains("both.npz/x.npy: is compressed"),
        "{error}"
    );
    // And it cannot be fed, which is said rather than wrong.
    let fed = source.feed(&crate::help::in_place(), &Ledger::new(ROOMY), |_| {
        Ok::<_, Error>(std::ops::ControlFlow::Continue(()))
    });
    assert!(matches!(fed, Err(Error::Array(_))));
    // A ledger that has less than was allowed leads to the folder.
    let small = Keep {
        memory: 1 << 30,
        ..unpacking(&folder)
    };
    let ledger = Ledger::new(5 << 20);
    let mut large = Folder::images(10_000, &[28, 28]).open("x.npy").unwrap();
    assert_eq!(large.keep(&small, &ledger).unwrap(), Kept::Files);
    assert_eq!(
        source
            .keep(
                &Keep {
                    memory: 1 << 20,
                    ..small
                },
                &ledger
            )
            .unwrap(),
        Kept::Unpacked
    );
}

#[test]
fn what_was_unpacked_is_listed_with_the_packs_and_goes_with_them() {
    let folder = packed();
    let mut source = folder.open("both.npz").unwrap();
    assert_eq!(keep(&mut source, &unpacking(&folder)), Kept::Unpacked);
    let store = PackStore::at(folder.path("unpacked"));
    let listed = store.list().unwrap();
    let [array] = listed.as_slice() else {
        panic!("{listed:?}")
    };
    assert!(array.bytes > source.bytes(), "{array:?}");
    assert_eq!(array.contents.as_ref().unwrap().layout, Layout::Unpacked);
    let all = Prune {
        keep_bytes: Some(0),
        ..Prune::default()
    };
    assert_eq!(store.prune(&all).unwrap(), [], "it is in use");
    assert_eq!(files(&folder).len(), 1);
    drop(source);
    assert_eq!(store.prune(&all).unwrap()[0].key, array.key);
    assert_eq!(files(&folder), [] as [PathBuf; 0]);
}

#[test]
fn a_folder_that_cannot_be_written_is_named() {
    let folder = packed();
    folder.write("file", b"no folder");
    let mut source = folder.open("both.npz").unwrap();
    let keep = Keep {
        folder: Some(folder.path("file")),
        ..Keep::default()
    };
    let error = source.keep(&keep, &Ledger::new(ROOMY)).unwrap_err();
    let Error::Array(problem) = &error else {
        panic!("{error}")
    };
    assert!(matches!(**problem, ArrayProblem::Unwritable { .. }), "{error}");
}

#[test]
fn what_is_cut_off_is_noticed_when_it_is_unpacked() {
    let data = idx(0x08, &[N as u32, 28, 28], &pixels(N, 784));
    let whole = gzip(&data);
    for bytes in [
        whole[..whole.len() / 2].to_vec(),
        whole[..whole.len() - 4].to_vec(),
        gzip(&data[..data.len() - 1]),
    ] {
        let folder = Folder::new(&[("x.idx.gz", bytes)]);
        for keep in [
            Keep {
                memory: 1 << 30,
                ..Keep::default()
            },
            unpacking(&folder),
        ] {
            let mut source = folder
                .open_with("x.idx.gz", &crate::help::without_labels())
                .unwrap();
            let ledger = Ledger::new(ROOMY);
            let error = source.keep(&keep, &ledger).unwrap_err();
            assert!(
                matches!(error, Error::Array(_) | Error::Compressed { .. }),
                "{error}"
            );
            assert_eq!(ledger.used(), 0);
        }
        let left = fs::read_dir(folder.path("unpacked")).unwrap().count();
        assert_eq!(left, 0, "no half file stays");
    }
}
