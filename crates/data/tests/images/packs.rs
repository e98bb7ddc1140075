//! Packs of images: built once, found again, never taken for another's, and never needed.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use tidegate_data::Error;
use tidegate_data::arrays::{ArraySource, FeedOptions, Keep, Kept};
use tidegate_data::images::{Augment, BadFileRule, ImageOptions, PackedImages, Resize};
use tidegate_data::pack::{Layout, PackProblem, PackStore};
use tidegate_memory::Ledger;

use crate::damage::{DAMAGES, damage};
use crate::draw::Drawing;
use crate::help::{Folder, ROOMY, feed, in_place, pack, samples, shown, shuffled, sized};
use crate::small_disk::SmallDisk;

/// Opens, packs, and says whether the pack was there.
fn packed(folder: &Folder, name: &str, options: &ImageOptions) -> (ArraySource, bool) {
    let mut source = folder.open_with(name, options).unwrap().training;
    let found = match pack(&mut source, &folder.store()).unwrap() {
        PackedImages::Built => false,
        PackedImages::Found => true,
        other => panic!("{other:?}"),
    };
    (source, found)
}

fn n_packs(folder: &Folder) -> usize {
    folder.store().list().unwrap().len()
}

/// What is left in the store, packs and halves of them.
fn n_entries(store: &PackStore) -> usize {
    fs::read_dir(store.path()).map_or(0, Iterator::count)
}

#[test]
fn the_next_run_finds_the_pack_and_needs_no_file() {
    let folder = Folder::of_classes(40);
    let from_files = feed(&folder.open_with("", &sized(16)).unwrap().training, &shuffled());
    let (source, found) = packed(&folder, "", &sized(16));
    assert!(!found);
    assert!(feed(&source, &shuffled()) == from_files);
    let [info] = folder.store().list().unwrap().try_into().unwrap();
    let contents = info.contents.unwrap();
    assert_eq!(
        (contents.n_rows, contents.layout),
        (
            40,
            Layout::Pixels {
                values: 16 * 16 * 3 + 1
            }
        )
    );
    assert!(
        contents.description.contains("images of 16×16"),
        "{}",
        contents.description
    );
    let (again, found) = packed(&folder, "", &sized(16));
    assert!(found && n_packs(&folder) == 1);
    (0..40).for_each(|sample| fs::remove_file(again.file(sample).unwrap()).unwrap());
    assert!(feed(&again, &shuffled()) == from_files);
    assert!(feed(&source, &shuffled()) == from_files);
    assert_eq!(
        (shown(&again, 3), again.bad_files().count),
        (shown(&source, 3), 0)
    );
}

#[test]
fn what_samples_depend_on_makes_another_pack() {
    let folder = Folder::of_classes(20);
    let mut n = 0;
    let mut expect = |options: &ImageOptions, is_new: bool| {
        let (_, found) = packed(&folder, "", options);
        assert_eq!(found, !is_new, "{options:?}");
        n += usize::from(is_new);
        assert_eq!(n_packs(&folder), n);
    };
    expect(&sized(16), true);
    expect(&sized(16), false);
    expect(&sized(17), true);
    let options = |size, channels, resize, words: &str| ImageOptions {
        size: Some(size),
        channels,
        resize,
        augment: Augment::parse(words).unwrap(),
        ..sized(16)
    };
    expect(&options((16, 20), None, Resize::Stretch, "flip"), true);
    expect(&options((16, 16), Some(1), Resize::Stretch, "flip"), true);
    expect(&options((16, 16), None, Resize::Fit, "flip"), true);
    expect(&options((16, 16), None, Resize::Crop, "flip"), true);
    // Cropping keeps more of each; other augmentation is done on the way.
    expect(&options((16, 16), None, Resize::Stretch, "crop=0.5"), true);
    expect(
        &options((16, 16), None, Resize::Stretch, "crop=0.9,rotation=3"),
        false,
    );
    expect(
        &options((16, 16), None, Resize::Stretch, "rotation=3,mixup=0.2"),
        false,
    );
    let balanced = ImageOptions {
        balanced: true,
        threads: 5,
        ..sized(16)
    };
    expect(&balanced, false);
}

#[test]
fn other_files_make_another_pack() {
    let folder = Folder::of_classes(20);
    packed(&folder, "", &sized(16));
    // One more, one less, another name, another time, another size.
    let name = |i: usize| format!("ant/{i:04}.jpg");
    let png = Drawing::numbered(50, 20, 16).png();
    let changes: [&dyn Fn(); 6] = [
        &|| folder.write("ant/x.png", &png),
        &|| fs::remove_file(folder.path("ant/x.png")).unwrap(),
        &|| fs::rename(folder.path(&name(0)), folder.path(&name(6_000))).unwrap(),
        &|| {
            let file = File::options().append(true).open(folder.path(&name(6))).unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            file.set_modified(time + Duration::from_secs(3)).unwrap();
        },
        &|| {
            // Within the same second.
            let file = File::options().append(true).open(folder.path(&name(12))).unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            file.set_modified(time + Duration::from_nanos(7)).unwrap();
        },
        &|| {
            let file = File::options().append(true).open(folder.path(&name(18))).unwrap();
            let time = file.metadata().unwrap().modified().unwrap();
            drop(file);
            let drawing = Drawing::numbered(77, 24, 16);
            fs::write(folder.path(&name(18)), drawing.jpeg()).unwrap();
            let file = File::options().append(true).open(folder.path(&name(18))).unwrap();
            file.set_modified(time).unwrap();
        },
    ];
    for (i, change) in changes.into_iter().enumerate() {
        change();
        // Without the one that was added it is the first again.
        let (source, found) = packed(&folder, "", &sized(16));
        assert_eq!(found, i == 1, "change {i}");
        let from_files = folder.open_with("", &sized(16)).unwrap().training;
        assert!(
            feed(&source, &in_place()) == feed(&from_files, &in_place()),
            "change {i}"
        );
    }
}

#[test]
fn the_same_files_in_another_order_are_another_pack() {
    let folder = Folder::new(&[]);
    (0..6).for_each(|i| folder.write(&format!("{i}.png"), &Drawing::numbered(i, 9, 9).png()));
    let rows = |order: [usize; 6]| {
        let rows: String = order.iter().map(|i| format!("{i}.png,{}\n", i % 2)).collect();
        format!("file,kind\n{rows}")
    };
    let orders = [[0, 1, 2, 3, 4, 5], [5, 4, 3, 2, 1, 0], [1, 0, 2, 3, 4, 5]];
    for (i, order) in orders.into_iter().enumerate() {
        let name = format!("{i}.csv");
        folder.write(&name, rows(order).as_bytes());
        let (source, found) = packed(&folder, &name, &sized(9));
        assert!(!found, "{order:?}");
        for (sample, number) in order.into_iter().enumerate() {
            assert_eq!(
                shown(&source, sample as u64),
                Drawing::numbered(number as u64, 9, 9).pixels
            );
            assert_eq!(source.target(sample as u64), [(number % 2) as f32]);
        }
    }
}

#[test]
fn bad_files_stay_absent_and_are_named_again() {
    let folder = Folder::of_classes(20);
    let cut = &Drawing::quarters(50, 50).png()[..90];
    for name in ["ant/bad.png", "bee/bad.png", "cat/bad.png"] {
        folder.write(name, cut);
    }
    folder.write("ant/no_image.png", b"text");
    let from_files = folder.open_with("", &sized(16)).unwrap().training;
    let expected = feed(&from_files, &shuffled());
    let (built, _) = packed(&folder, "", &sized(16));
    let (found, was_there) = packed(&folder, "", &sized(16));
    assert!(was_there);
    for source in [&built, &found] {
        assert!(feed(source, &shuffled()) == expected);
        let bad = source.bad_files();
        let names: Vec<PathBuf> = bad.first.iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(bad.count, 3);
        assert_eq!(
            names,
            ["ant", "bee", "cat"].map(|class| folder.path(&format!("{class}/bad.png")))
        );
    }
    assert_eq!(
        found.bad_files().first[0].1,
        "could not be decoded when it was packed"
    );
    let mut held = found;
    let keep = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    assert_eq!(held.keep(&keep, &Ledger::new(ROOMY)).unwrap(), Kept::Memory);
    assert!(feed(&held, &shuffled()) == expected);
    // Where they end the run, they do so with a pack, too.
    let strict = ImageOptions {
        bad_files: BadFileRule::Fail,
        ..sized(16)
    };
    fs::remove_file(folder.path("ant/no_image.png")).unwrap();
    let mut source = folder.open_with("", &strict).unwrap().training;
    let error = pack(&mut source, &folder.store()).unwrap_err();
    assert!(folder.shorten(&error).starts_with("ant/bad.png: "), "{error}");
    assert_eq!(n_entries(&folder.store()), 1, "no half pack stays");
}

#[test]
fn what_only_lacked_room_is_packed_once_there_is_room() {
    let folder = Folder::of_classes(20);
    folder.write("ant/large.bmp", &Drawing::quarters(2_500, 2_000).bmp());
    folder.write("ant/bad.png", &Drawing::quarters(50, 50).png()[..90]);
    for (budget, is_new, n_bad) in [
        (12 << 20, true, 2),
        (12 << 20, false, 2),
        (ROOMY, true, 1),
        (12 << 20, false, 1),
    ] {
        let mut source = folder.open_with("", &sized(16)).unwrap().training;
        let ledger = Ledger::new(budget);
        let packed = source.pack_images(&folder.store(), 1, &ledger, &mut |_| ControlFlow::Continue(()));
        match packed.unwrap() {
            PackedImages::Built => assert!(is_new, "{budget}"),
            PackedImages::Found => assert!(!is_new, "{budget}"),
            other => panic!("{other:?}"),
        }
        assert_eq!(source.bad_files().count, n_bad, "{:?}", source.bad_files());
        assert_eq!(samples(&feed(&source, &in_place())).len() as u64, 22 - n_bad);
        assert_eq!(n_packs(&folder), 1);
    }
}

#[test]
fn a_damaged_pack_is_noticed_and_goes() {
    let folder = Folder::of_classes(40);
    let (source, _) = packed(&folder, "", &sized(16));
    let expected = feed(&source, &shuffled());
    let key = folder.store().list().unwrap()[0].key;
    let place = folder.store().folder(key);
    for file in ["data.arrow", "index", "manifest.json"] {
        for how in DAMAGES {
            damage(&place.join(file), how);
            let mut source = folder.open_with("", &sized(16)).unwrap().training;
            match pack(&mut source, &folder.store()) {
                Ok(PackedImages::Built) => {}
                // What it says for people may say anything.
                Ok(PackedImages::Found) if (file, how) == ("manifest.json", "changed") => {}
                // It is gone then, and the next run builds it.
                Err(Error::PackDamaged { .. }) => {
                    assert_eq!(n_packs(&folder), 0, "{file} {how}");
                    assert!(matches!(
                        pack(&mut source, &folder.store()),
                        Ok(PackedImages::Built)
                    ));
                }
                other => panic!("{file} {how}: {other:?}"),
            }
            assert!(feed(&source, &shuffled()) == expected, "{file} {how}");
            assert_eq!(n_entries(&folder.store()), 1);
        }
    }
}

#[test]
fn stopped_on_the_way_it_leaves_nothing() {
    let folder = Folder::of_classes(40);
    let store = folder.store();
    let ledger = Ledger::new(ROOMY);
    let mut source = folder.open_with("", &sized(16)).unwrap().training;
    let expected = feed(&source, &shuffled());
    let mut told = Vec::new();
    let stopped = source.pack_images(&store, 2, &ledger, &mut |done| {
        told.push(done);
        match told.len() {
            2 => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    assert!(matches!(stopped.unwrap(), PackedImages::Stopped));
    assert!(told.is_sorted() && told[1] < 40, "{told:?}");
    assert_eq!((n_entries(&store), ledger.used()), (0, 0));
    assert!(feed(&source, &shuffled()) == expected, "from files still");
    assert!(matches!(pack(&mut source, &store).unwrap(), PackedImages::Built));
}

#[test]
fn without_memory_for_a_pack_files_are_decoded() {
    let folder = Folder::of_classes(40);
    let mut source = folder.open_with("", &sized(16)).unwrap().training;
    let expected = feed(&source, &shuffled());
    let ledger = Ledger::new(1 << 20);
    let outcome = source.pack_images(&folder.store(), 2, &ledger, &mut |_| ControlFlow::Continue(()));
    assert!(
        matches!(outcome, Ok(PackedImages::Not(PackProblem::Memory))),
        "{outcome:?}"
    );
    assert_eq!((n_entries(&folder.store()), ledger.used()), (0, 0));
    assert!(feed(&source, &shuffled()) == expected);
    // Nothing is held in memory without one.
    let keep = Keep {
        memory: u64::MAX,
        ..Keep::default()
    };
    assert_eq!(source.keep_bytes(&keep), 0);
    assert_eq!(source.keep(&keep, &Ledger::new(ROOMY)).unwrap(), Kept::Files);
}

#[test]
fn any_number_of_threads_builds_the_same_pack() {
    let folder = Folder::of_classes(50);
    let cut = &Drawing::quarters(50, 50).png()[..90];
    folder.write("ant/bad.png", cut);
    let mut expected: Option<Vec<u8>> = None;
    for threads in [1, 2, 5] {
        let store = PackStore::at(folder.path(&format!(".packs{threads}")));
        let mut source = folder.open_with("", &sized(16)).unwrap().training;
        let ledger = Ledger::new(ROOMY);
        let built = source.pack_images(&store, threads, &ledger, &mut |_| ControlFlow::Continue(()));
        assert!(matches!(built, Ok(PackedImages::Built)));
        let key = store.list().unwrap()[0].key;
        let data = fs::read(store.folder(key).join("data.arrow")).unwrap();
        assert!(*expected.get_or_insert(data.clone()) == data, "{threads} threads");
    }
}

#[test]
fn a_pack_that_was_used_is_young() {
    let folder = Folder::of_classes(12);
    packed(&folder, "", &sized(8));
    let store = folder.store();
    let key = store.list().unwrap()[0].key;
    let manifest = store.folder(key).join("manifest.json");
    let long_ago = SystemTime::now() - Duration::from_secs(1_000_000);
    File::options()
        .append(true)
        .open(manifest)
        .unwrap()
        .set_modified(long_ago)
        .unwrap();
    packed(&folder, "", &sized(8));
    let used = store.list().unwrap()[0].last_used.unwrap();
    assert!(used.elapsed().unwrap() < Duration::from_secs(1_000));
}

#[test]
fn a_disk_without_room_is_said_and_files_are_decoded() {
    let folder = Folder::of_classes(300);
    // As they are 64×64, they take 3.7 MB.
    let mut source = folder.open_with("", &sized(64)).unwrap().training;
    let expected = feed(&source, &shuffled());
    let Some(disk) = SmallDisk::mount(folder.0.path(), 8) else {
        return;
    };
    let store = PackStore::at(disk.0.join("packs"));
    let outcome = pack(&mut source, &store).unwrap();
    assert!(
        matches!(outcome, PackedImages::Not(PackProblem::NoSpace { .. })),
        "{outcome:?}"
    );
    assert!(feed(&source, &shuffled()) == expected);
    assert_eq!(n_entries(&store), 0);
}

#[test]
fn a_disk_that_gets_full_is_survived() {
    let folder = Folder::of_classes(300);
    let mut source = folder.open_with("", &sized(128)).unwrap().training;
    let options = FeedOptions {
        threads: 2,
        ..shuffled()
    };
    let expected = samples(&feed(&source, &options));
    let Some(disk) = SmallDisk::mount(folder.0.path(), 96) else {
        return;
    };
    let store = PackStore::at(disk.0.join("packs"));
    let ledger = Ledger::new(ROOMY);
    let mut is_taken = false;
    // The disk has room when the pack is begun; somebody else takes it meanwhile.
    let outcome = source.pack_images(&store, 2, &ledger, &mut |_| {
        if !std::mem::replace(&mut is_taken, true) {
            let ballast = fs::write(disk.0.join("ballast"), vec![1; 96 << 20]);
            assert!(ballast.is_err(), "the disk is full");
        }
        ControlFlow::Continue(())
    });
    assert!(
        matches!(outcome, Ok(PackedImages::Not(PackProblem::Full { .. }))),
        "{outcome:?}"
    );
    assert_eq!(
        (n_entries(&store), ledger.used()),
        (0, 0),
        "the half pack is gone"
    );
    assert_eq!(samples(&feed(&source, &options)), expected);
}

#[test]
fn a_store_that_is_no_folder_is_said() {
    let folder = Folder::of_classes(12);
    folder.write(".file", b"no folder");
    let mut source = folder.open_with("", &sized(8)).unwrap().training;
    let outcome = pack(&mut source, &PackStore::at(folder.path(".file"))).unwrap();
    assert!(
        matches!(outcome, PackedImages::Not(PackProblem::Unwritable { .. })),
        "{outcome:?}"
    );
    assert_eq!(samples(&feed(&source, &in_place())).len(), 12);
}
