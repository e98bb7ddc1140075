//! Memory: what the ledger grants, what is allocated and what the kernel counts, for pictures far larger than both.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Command;
use std::sync::OnceLock;

use tempfile::TempDir;
use tidegate_data::Error;
use tidegate_data::arrays::{FeedOptions, Order, Part};
use tidegate_data::images::{Augment, ImageOptions, PackedImages};
use tidegate_data::pack::PackStore;
use tidegate_memory::{Counting, Ledger, give_freed_memory_back};

use crate::draw::{Drawing, flat_jpeg, promise};
use crate::group::Group;
use crate::help::{Folder, open, samples, shuffled, sized, try_feed};

#[global_allocator]
static ALLOCATED: Counting = Counting::new();

/// What a test itself takes beside what was granted, and a thread in the allocator.
const ALLOWED: u64 = 512 << 10;
/// The program itself.
const BASE: u64 = 6 << 20;
const SIDE: usize = 96;

/// Photos of 24 megapixels and small ones, of several formats.
fn large_pictures() -> &'static Path {
    static FOLDER: OnceLock<TempDir> = OnceLock::new();
    let folder = FOLDER.get_or_init(|| {
        let folder = Folder::new(&[]);
        let photo = Drawing::new(6_000, 4_000, |x, y| {
            [(x / 24) as u8, (y / 16) as u8, ((x ^ y) & 31) as u8]
        });
        std::thread::scope(|scope| {
            scope.spawn(|| folder.write("a/large.jpg", &photo.jpeg()));
            folder.write("b/large.png", &photo.png());
            folder.write("a/passes.jpg", &photo.progressive_jpeg());
        });
        folder.write("b/flat.jpg", &flat_jpeg(20_000, 20_000));
        folder.write("a/promise.bmp", &promise("bmp", 60_000));
        for i in 0..60u64 {
            // Small files of large pictures and large files of small ones, formats by turns: buffers of all kinds.
            let noise = |x: usize, y: usize| {
                let bits = (x as u64 * 31 + y as u64 * 17 + i).wrapping_mul(0x9e37_79b9_7f4a_7c15);
                [bits >> 32, bits >> 40, bits >> 48].map(|bits| bits as u8)
            };
            let (ending, bytes) = match i % 6 {
                0 => ("jpg", Drawing::new(1_200, 800, noise).jpeg()),
                1 => ("jpg", Drawing::numbered(i, 1_100, 1_000).progressive_jpeg()),
                2 => ("png", Drawing::new(300, 200, noise).png()),
                3 => ("webp", Drawing::numbered(i, 500, 400).webp()),
                4 => ("bmp", Drawing::numbered(i, 1_000, 900).bmp()),
                _ => ("tif", Drawing::numbered(i, 600, 500).tiff()),
            };
            folder.write(&format!("{}/{i:02}.{ending}", ["a", "b"][i as usize % 2]), &bytes);
        }
        folder.0
    });
    folder.path()
}

fn options() -> ImageOptions {
    ImageOptions {
        augment: Augment::parse("rotation=10").unwrap(),
        ..sized(SIDE)
    }
}

/// Opens, feeds and packs all pictures in a budget; the names of those that were left out.
fn work(folder: &Path, budget: u64) -> Vec<String> {
    let ledger = Ledger::new(budget);
    let before = ALLOCATED.live();
    let opened = open(folder, &options(), &ledger).unwrap();
    // What takes more than the whole budget is left out by name. The photo in passes, whose coefficients take 144 MB, is
    // decoded by its means.
    let [(path, fault)] = &opened.survey.bad.first[..] else {
        panic!("{:?}", opened.survey.bad)
    };
    assert!(path.ends_with("a/promise.bmp"), "{path:?}");
    assert!(fault.starts_with("60000×60000 pixels take "), "{fault}");
    let mut source = opened.training;
    let n = source.n_samples();
    let feed = FeedOptions {
        batch: 16,
        order: Order::Shuffled { seed: 1, epoch: 0 },
        start: 0,
        part: Part::All,
        prefetch: budget
            - ledger.used()
            - source.least_feed_bytes(&FeedOptions {
                batch: 16,
                threads: 2,
                ..shuffled()
            }),
        threads: 2,
    };
    let used = ledger.used();
    assert!(used + source.feed_bytes(&feed) <= budget);
    for _ in 0..2 {
        let mut samples = 0;
        source
            .feed(&feed, &ledger, |batch| {
                samples += batch.n_samples() as u64;
                Ok::<_, Error>(ControlFlow::Continue(()))
            })
            .unwrap();
        assert_eq!(samples + source.bad_files().count, n);
    }
    assert_eq!(
        ledger.peak(),
        used + source.feed_bytes(&feed),
        "what was said is granted"
    );
    let left_out = source.bad_files().first.into_iter();
    let left_out = left_out.map(|(path, fault)| format!("{}: {fault}", path.file_name().unwrap().display()));
    let left_out: Vec<String> = left_out.collect();
    let store = tempfile::tempdir().unwrap();
    let packed = source.pack_images(&PackStore::at(store.path()), 2, &ledger, &mut |_| {
        ControlFlow::Continue(())
    });
    assert!(matches!(packed, Ok(PackedImages::Built)), "{packed:?}");
    let allocated = (ALLOCATED.peak() - before) as u64;
    println!(
        "budget {:.1} MB, granted {:.1} MB, allocated {:.1} MB, left out {left_out:?}",
        budget as f64 / 1e6,
        ledger.peak() as f64 / 1e6,
        allocated as f64 / 1e6
    );
    assert!(ledger.peak() <= budget);
    assert!(
        allocated <= ledger.peak() + ALLOWED,
        "{allocated} bytes allocated and {} granted",
        ledger.peak()
    );
    drop(source);
    assert_eq!(ledger.used(), 0);
    left_out
}

/// Does nothing but where the test below starts it, alone in a process and in a cgroup of its own.
#[test]
fn as_a_child() {
    let Some(folder) = std::env::var_os("TIDEGATE_TEST_PEAK_OF_IMAGES") else {
        return;
    };
    give_freed_memory_back();
    let budget = std::env::var("TIDEGATE_TEST_BUDGET").unwrap().parse().unwrap();
    let left_out = work(Path::new(&folder), budget);
    assert_eq!(left_out, [] as [String; 0], "in {budget} bytes");
}

/// Runs the child in this budget and holds it against what the kernel counted.
fn check(budget: u64) {
    let folder = large_pictures();
    let mut child = Command::new("sh");
    let group = Group::make(&budget.to_string());
    let script = match &group {
        Some(group) => {
            // Twice as much as there should be beside the budget: what would be taken has room to show.
            fs::write(group.0.join(group.2), (budget + 2 * BASE).to_string()).unwrap();
            "echo $$ > \"$0\" && exec \"$1\" --exact memory::as_a_child --nocapture"
        }
        None => {
            eprintln!("no cgroup can be made here: allocations alone are counted");
            "exec \"$1\" --exact memory::as_a_child --nocapture"
        }
    };
    let procs = group
        .as_ref()
        .map_or("sh".into(), |group| group.0.join("cgroup.procs"));
    child
        .args(["-c", script])
        .arg(procs)
        .arg(std::env::current_exe().unwrap())
        .env("TIDEGATE_TEST_PEAK_OF_IMAGES", folder)
        .env("TIDEGATE_TEST_BUDGET", budget.to_string());
    let output = child.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{said}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    print!("{said}");
    if let Some(group) = group {
        let peak = fs::read_to_string(group.0.join(group.1)).unwrap();
        let peak: u64 = peak.trim().parse().unwrap();
        println!("the kernel counted {:.1} MB", peak as f64 / 1e6);
        assert!(peak < budget + BASE, "{peak} bytes in a budget of {budget}");
    }
}

#[test]
fn photos_of_24_megapixels_in_64_megabytes() {
    check(64 << 20);
}

#[test]
fn photos_of_24_megapixels_in_128_megabytes() {
    check(128 << 20);
}

#[test]
fn four_hundred_megapixels_take_little() {
    let bytes = flat_jpeg(20_000, 20_000);
    let folder = Folder::new(&[
        ("a/1.jpg", bytes.clone()),
        ("b/1.png", Drawing::quarters(9, 9).png()),
    ]);
    let ledger = Ledger::new(12 << 20);
    let opened = open(&folder.path(""), &sized(64), &ledger).unwrap();
    assert_eq!(opened.survey.most_pixels, 400_000_000);
    let source = opened.training;
    let feed = FeedOptions {
        prefetch: source.good_prefetch(8, 1),
        order: Order::InPlace,
        ..shuffled()
    };
    let (seen, _) = try_feed(&source, &feed, &ledger).unwrap();
    assert_eq!(samples(&seen), [0, 1], "{:?}", source.bad_files());
    assert!(seen[0].bytes[..64 * 64 * 3].iter().all(|value| *value == 128));
    // Its file, and less than 2 MB beside it.
    let beside = ledger.peak() - bytes.len() as u64;
    assert!(beside < 4 << 20, "{beside} bytes beside the file");
}

#[test]
fn a_picture_for_which_there_is_no_room_is_left_out_by_name() {
    let folder = Folder::new(&[
        ("a/large.bmp", Drawing::quarters(1_500, 1_000).bmp()),
        ("a/small.png", Drawing::quarters(15, 10).png()),
        ("b/small.png", Drawing::quarters(15, 10).png()),
    ]);
    let source = open(&folder.path(""), &sized(16), &Ledger::new(64 << 20))
        .unwrap()
        .training;
    let (seen, cursor) = try_feed(&source, &shuffled(), &Ledger::new(64 << 20)).unwrap();
    assert_eq!((samples(&seen).len(), cursor), (2, 3));
    let (path, fault) = &source.bad_files().first[0];
    assert!(path.ends_with("a/large.bmp"));
    assert!(fault.starts_with("1500×1000 pixels take "), "{fault}");
}
