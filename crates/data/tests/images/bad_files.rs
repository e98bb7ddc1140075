//! Files that are no images, or turn out to be none: left out by name, or the end, and the same on any number of threads.

use std::fs;
use std::process::Command;

use tidegate_data::arrays::FeedOptions;
use tidegate_data::images::{BadFileRule, ImageOptions};
use tidegate_memory::Ledger;

use crate::draw::{Drawing, promise};
use crate::help::{Folder, ROOMY, feed, in_place, open, samples, shuffled, sized, try_feed};

fn strict() -> ImageOptions {
    ImageOptions {
        bad_files: BadFileRule::Fail,
        ..sized(16)
    }
}

/// Names and faults, told from the folder.
fn told(folder: &Folder, bad: &tidegate_data::images::BadFiles) -> Vec<(String, String)> {
    let short = |path: &std::path::Path| path.strip_prefix(folder.path("")).unwrap().display().to_string();
    bad.first
        .iter()
        .map(|(path, fault)| (short(path), fault.clone()))
        .collect()
}

/// The first part of a file.
fn part(bytes: &[u8], share: f64) -> Vec<u8> {
    bytes[..(bytes.len() as f64 * share) as usize].to_vec()
}

/// With headers that are whole, and nothing to be decoded behind them.
fn write_broken(folder: &Folder) -> usize {
    let drawing = Drawing::numbered(99, 60, 40);
    let broken = [
        ("ant/cut.jpg", part(&drawing.jpeg(), 0.6)),
        ("ant/cut.png", part(&drawing.png(), 0.6)),
        ("ant/cut.webp", part(&drawing.webp(), 0.7)),
        ("bee/cut_passes.jpg", part(&drawing.progressive_jpeg(), 0.4)),
        ("bee/garbage.png", [&drawing.png()[..40], &[0x5a; 400]].concat()),
        ("bee/lost.tif", drawing.tiff_without_strips()),
        ("cat/cut.bmp", part(&drawing.bmp(), 0.5)),
        ("cat/promise.jpg", promise("jpg", 60_000)),
        ("cat/promise.png", promise("png", 60_000)),
    ];
    broken.iter().for_each(|(name, bytes)| folder.write(name, bytes));
    broken.len()
}

#[test]
fn what_is_no_image_is_left_out_before_anything_is_decoded() {
    let folder = Folder::of_classes(30);
    let good = feed(&folder.open_with("", &sized(16)).unwrap().training, &in_place());
    folder.write("ant/0_zero.jpg", b"");
    folder.write("bee/1_text.jpg", b"I am a text, whatever my name says");
    folder.link("bee/2_lost.png", "nowhere.png");
    folder.write("cat/3_short.jpg", &Drawing::quarters(9, 9).jpeg()[..30]);
    folder.write("cat/4_nothing.gif", &promise("gif", 0));
    folder.write("cat/5_one_byte.png", b"x");
    // No room of this ledger would do for these.
    folder.write("cat/6_promise.bmp", &promise("bmp", 60_000));
    folder.write("cat/7_promise.tif", &promise("tif", 60_000));
    folder.write("cat/8_promise.gif", &promise("gif", 60_000));
    // A folder is none, whatever its name.
    folder.make("ant/x.jpg");
    for threads in [1, 2, 5] {
        let options = ImageOptions { threads, ..sized(16) };
        let opened = folder.open_with("", &options).unwrap();
        let bad = &opened.survey.bad;
        assert_eq!((opened.survey.files, bad.count), (39, 9));
        let expected = [
            ("ant/0_zero.jpg", "the file is empty"),
            (
                "bee/1_text.jpg",
                "is none of JPEG, PNG, WebP, BMP, GIF and TIFF, whatever its name says",
            ),
            ("bee/2_lost.png", "there is no such file"),
            ("cat/3_short.jpg", "ends within its header"),
            ("cat/4_nothing.gif", "has no pixels"),
        ];
        let expected = expected.map(|(name, fault)| (name.to_string(), fault.to_string()));
        assert_eq!(told(&folder, bad), expected);
        // The others are what they were, and their labels are theirs.
        let seen = feed(&opened.training, &in_place());
        assert_eq!(seen, good);
        assert_eq!(opened.training.bad_files().count, 0);
    }
    let (error, hint) = folder.refused("", &strict());
    assert_eq!(error, "ant/0_zero.jpg: the file is empty");
    assert!(hint.contains("mend or remove it"), "{hint}");
}

#[test]
fn a_picture_that_no_budget_could_hold_leaves_room_for_the_others() {
    // A photo that takes more than usual, and a header that promises thousands of millions of pixels.
    let folder = Folder::new(&[
        ("a/large.bmp", Drawing::quarters(1_500, 1_000).bmp()),
        ("a/small.png", Drawing::quarters(15, 10).png()),
        ("b/promise.bmp", promise("bmp", 60_000)),
        ("b/small.png", Drawing::quarters(15, 10).png()),
    ]);
    let opened = folder.open_with("", &sized(16)).unwrap();
    let [(name, fault)] = told(&folder, &opened.survey.bad).try_into().unwrap();
    assert_eq!(name, "b/promise.bmp");
    assert!(
        fault.starts_with("60000×60000 pixels take ") && fault.ends_with("and there is room for 268 MB"),
        "{fault}"
    );
    let source = &opened.training;
    let options = FeedOptions {
        prefetch: source.good_prefetch(8, 2),
        threads: 2,
        ..in_place()
    };
    assert_eq!(samples(&feed(source, &options)), [0, 1, 2]);
    // However many threads there are to be room for: pictures come first.
    let just = FeedOptions {
        prefetch: 14 << 20,
        threads: 16,
        ..in_place()
    };
    let opened = folder.open_with("", &sized(16)).unwrap();
    assert_eq!(samples(&feed(&opened.training, &just)), [0, 1, 2]);
}

#[test]
fn what_turns_out_to_be_broken_is_left_out_of_its_batch() {
    let folder = Folder::of_classes(30);
    let n_broken = write_broken(&folder);
    let n = 30 + n_broken as u64;
    let mut expected = None;
    for threads in [1, 2, 5] {
        for prefetch in [0, 64 << 20] {
            let source = folder.open_with("", &sized(16)).unwrap().training;
            assert_eq!(source.n_samples(), n);
            let options = FeedOptions {
                threads,
                prefetch,
                ..shuffled()
            };
            let seen = feed(&source, &options);
            let bad = source.bad_files();
            assert_eq!(bad.count, n_broken as u64, "{bad:?}");
            // A batch is shorter, and its cursor counts what it lacks.
            assert!(
                seen.iter()
                    .all(|batch| batch.cursor - batch.first == 8 || batch.cursor == n)
            );
            assert_eq!(samples(&seen).len(), 30);
            assert!(seen.iter().any(|batch| batch.samples.len() < 8));
            assert_eq!(seen.iter().map(|batch| batch.targets.len()).sum::<usize>(), 30);
            // Asked again, they are known: nothing is counted twice.
            assert_eq!(feed(&source, &options), seen);
            assert_eq!(source.bad_files().count, n_broken as u64);
            let told = told(&folder, &bad);
            assert_eq!(told.len(), 5, "the first are named, the others counted");
            let (seen_before, told_before) = expected.get_or_insert((seen.clone(), told.clone()));
            assert_eq!(told, *told_before, "{threads} threads, {prefetch} bytes ahead");
            assert!(seen == *seen_before, "{threads} threads, {prefetch} bytes ahead");
        }
    }
    let (_, told) = expected.unwrap();
    let names: Vec<&str> = told.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "ant/cut.jpg",
            "ant/cut.png",
            "ant/cut.webp",
            "bee/cut_passes.jpg",
            "bee/garbage.png"
        ]
    );
    assert!(told[0].1.starts_with("ends too early: "), "{}", told[0].1);
}

#[test]
fn a_broken_file_may_end_it_by_name() {
    let folder = Folder::of_classes(30);
    write_broken(&folder);
    for order in [in_place(), shuffled()] {
        let mut told = Vec::new();
        for (threads, prefetch) in [(1, 0), (2, 1 << 20), (5, 64 << 20), (5, 0), (3, 4 << 20)] {
            let source = folder.open_with("", &strict()).unwrap().training;
            let options = FeedOptions {
                threads,
                prefetch,
                ..order
            };
            let error = try_feed(&source, &options, &Ledger::new(ROOMY)).unwrap_err();
            told.push(folder.shorten(&error));
        }
        assert!(told.iter().all(|error| *error == told[0]), "{told:?}");
        if order == in_place() {
            assert!(told[0].starts_with("ant/cut.jpg: ends too early"), "{told:?}");
        }
    }
}

#[test]
fn of_two_broken_files_in_a_batch_the_first_is_told() {
    // The first takes long before it breaks, the second breaks at once.
    let drawing = Drawing::new(2_000, 2_000, |x, y| [(x * y) as u8, x as u8, y as u8]);
    let folder = Folder::new(&[
        ("a/1.jpg", part(&drawing.jpeg(), 0.95)),
        ("a/2.png", part(&Drawing::quarters(20, 20).png(), 0.6)),
        ("b/1.png", Drawing::quarters(20, 20).png()),
    ]);
    for threads in [1, 2, 5] {
        let source = folder.open_with("", &strict()).unwrap().training;
        let options = FeedOptions {
            threads,
            prefetch: 64 << 20,
            ..in_place()
        };
        let error = try_feed(&source, &options, &Ledger::new(ROOMY)).unwrap_err();
        assert!(
            folder.shorten(&error).starts_with("a/1.jpg: "),
            "{error}, {threads} threads"
        );
    }
}

#[test]
fn more_than_half_bad_is_refused() {
    let good = Drawing::quarters(20, 20);
    let folder = Folder::new(&[
        ("a/1.png", good.png()),
        ("b/1.png", good.png()),
        ("b/2.png", b"text".to_vec()),
        ("b/3.png", b"text".to_vec()),
    ]);
    assert_eq!(folder.open("").unwrap().survey.bad.count, 2);
    folder.write("a/4.png", b"");
    let (error, hint) = folder.refused("", &ImageOptions::default());
    assert_eq!(
        error,
        ".: 3 of 5 files are no images that can be used; the first is a/4.png: the file is empty"
    );
    assert!(hint.contains("something is wrong with most of them"), "{hint}");
    // So it is when that shows only on decoding.
    let cut = part(&good.png(), 0.6);
    for threads in [1, 2, 5] {
        let folder = Folder::new(&[
            ("a/1.png", good.png()),
            ("b/1.png", good.png()),
            ("b/2.png", cut.clone()),
            ("b/3.png", cut.clone()),
        ]);
        let options = FeedOptions {
            threads,
            prefetch: 1 << 20,
            ..in_place()
        };
        let opened = folder.open_with("", &sized(8)).unwrap();
        assert_eq!(samples(&feed(&opened.training, &options)), [0, 1]);
        folder.write("b/4.png", &cut);
        let source = folder.open_with("", &sized(8)).unwrap().training;
        let error = try_feed(&source, &options, &Ledger::new(ROOMY)).unwrap_err();
        let error = folder.shorten(&error);
        assert!(
            error.contains("3 of 5 files are no images that can be used; the first is b/2.png: "),
            "{error}"
        );
    }
}

#[test]
fn files_that_change_after_the_look() {
    for threads in [1, 2, 5] {
        let folder = Folder::of_classes(30);
        let source = folder.open_with("", &sized(16)).unwrap().training;
        let expected = feed(&source, &in_place());
        let name = |sample: u64| source.file(sample).unwrap();
        fs::remove_file(name(3)).unwrap();
        fs::write(name(10), "a text now").unwrap();
        fs::write(name(17), "").unwrap();
        fs::remove_file(name(20)).unwrap();
        fs::create_dir(name(20)).unwrap();
        // Far larger than anything that was seen: there is no room for it.
        fs::write(name(23), promise("bmp", 5_000)).unwrap();
        // Another picture is another picture.
        fs::write(name(25), Drawing::quarters(16, 16).png()).unwrap();
        let options = FeedOptions {
            threads,
            prefetch: 1 << 20,
            ..in_place()
        };
        let seen = feed(&source, &options);
        let bad = source.bad_files();
        assert_eq!(bad.count, 5);
        let faults: Vec<String> = bad.first.iter().map(|(_, fault)| fault.clone()).collect();
        for fault in [
            "there is no such file",
            "whatever its name says",
            "the file is empty",
            "is no file",
        ] {
            assert!(
                faults.iter().any(|told| told.contains(fault)),
                "{fault}: {faults:?}"
            );
        }
        let all: Vec<u64> = (0..30)
            .filter(|sample| ![3, 10, 17, 20, 23].contains(sample))
            .collect();
        assert_eq!(samples(&seen), all);
        assert_eq!(seen.last().unwrap().cursor, 30);
        for (before, after) in expected.iter().zip(&seen) {
            let before = before.samples.iter().zip(before.bytes.chunks_exact(16 * 16 * 3));
            let after = after.samples.iter().zip(after.bytes.chunks_exact(16 * 16 * 3));
            for (sample, bytes) in after {
                let (_, expected) = before.clone().find(|(other, _)| *other == sample).unwrap();
                assert_eq!(bytes == expected, *sample != 25, "{sample}");
            }
        }
    }
}

#[test]
fn a_batch_without_any_image_is_handed_out_empty() {
    let folder = Folder::of_classes(30);
    let source = folder.open_with("", &sized(16)).unwrap().training;
    (8..16).for_each(|sample| fs::remove_file(source.file(sample).unwrap()).unwrap());
    let seen = feed(&source, &in_place());
    let empty = &seen[1];
    assert_eq!(
        (
            empty.samples.len(),
            empty.targets.len(),
            empty.first,
            empty.cursor
        ),
        (0, 0, 8, 16)
    );
    assert_eq!(seen.len(), 4);
}

#[test]
fn what_is_no_plain_file_is_not_waited_for() {
    let folder = Folder::of_classes(12);
    let pipe = folder.path("ant/pipe.png");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    folder.link("bee/device.png", "/dev/zero");
    let opened = open(&folder.path(""), &sized(16), &Ledger::new(ROOMY)).unwrap();
    assert_eq!(opened.survey.bad.count, 2);
    assert!(
        opened
            .survey
            .bad
            .first
            .iter()
            .all(|(_, fault)| fault == "is no file"),
        "{:?}",
        opened.survey.bad
    );
    // Nor when it takes the place of one.
    let source = opened.training;
    fs::remove_file(source.file(5).unwrap()).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(source.file(5).unwrap())
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(samples(&feed(&source, &in_place())).len(), 11);
}
