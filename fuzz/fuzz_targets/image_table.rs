//! Opening any bytes as a table of paths of images and their labels, in a small budget.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tidegate_data::Below;
use tidegate_data::images::{ImageOptions, are_images, open};
use tidegate_memory::Ledger;

fuzz_target!(|given: (u8, &[u8])| {
    let (format, bytes) = given;
    let folder = tempfile::tempdir().unwrap();
    let name = ["list.csv", "list.tsv", "list.jsonl"][usize::from(format) % 3];
    std::fs::write(folder.path().join(name), bytes).unwrap();
    // A header alone: there is something to be found under these names.
    for image in ["a.gif", "b.gif"] {
        std::fs::write(folder.path().join(image), b"GIF89a\x01\0\x01\0").unwrap();
    }
    let ledger = Ledger::new(16 << 20);
    for (target, balanced) in [("", false), ("y", true), ("y,z", false)] {
        let options = ImageOptions {
            target: target.into(),
            balanced,
            threads: 1,
            ..ImageOptions::default()
        };
        for path in [folder.path(), &folder.path().join(name)] {
            are_images(path, &Below::default());
            let opened = open(path, &options, &ledger, &mut |_, _| ControlFlow::Continue(()));
            drop(opened);
            assert_eq!(ledger.used(), 0);
        }
    }
});
