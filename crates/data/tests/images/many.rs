//! Very many files: listed, looked at and shuffled in little memory.

use std::collections::BTreeSet;
use std::fs;
use std::ops::ControlFlow;

use tidegate_data::Error;
use tidegate_data::arrays::FeedOptions;
use tidegate_memory::Ledger;

use crate::draw::Drawing;
use crate::help::{Folder, open, shuffled, sized};

const FOLDERS: usize = 100;
const FILES: usize = 200;

#[test]
fn twenty_thousand_files_in_eight_megabytes() {
    let folder = Folder::new(&[]);
    let bytes = Drawing::quarters(4, 4).png();
    for class in 0..FOLDERS {
        let path = folder.path(&format!("class_{class:03}"));
        fs::create_dir(&path).unwrap();
        for file in 0..FILES {
            fs::write(path.join(format!("image_{class:03}_{file:06}.png")), &bytes).unwrap();
        }
    }
    let ledger = Ledger::new(8 << 20);
    let opened = open(&folder.path(""), &sized(4), &ledger).unwrap();
    let n = (FOLDERS * FILES) as u64;
    assert_eq!((opened.survey.files, opened.survey.bad.count), (n, 0));
    let listed = ledger.used();
    assert!(listed < 1 << 20, "{listed} bytes for the names of {n} files");
    let source = opened.training;
    let options = FeedOptions {
        batch: 100,
        prefetch: 1 << 20,
        threads: 2,
        ..shuffled()
    };
    let mut seen = Vec::new();
    let cursor = source
        .feed(&options, &ledger, |batch| {
            seen.extend_from_slice(batch.samples());
            Ok::<_, Error>(ControlFlow::Continue(()))
        })
        .unwrap();
    assert_eq!(cursor, n);
    // Every class is among the first thousand: it is shuffled as a whole, not folder by folder.
    let classes: BTreeSet<u64> = seen[..1_000].iter().map(|sample| sample / FILES as u64).collect();
    assert!(classes.len() > FOLDERS * 9 / 10, "{}", classes.len());
    seen.sort();
    assert!(seen.into_iter().eq(0..n));
    assert!(ledger.peak() <= 8 << 20);
    drop(source);
    assert_eq!(ledger.used(), 0);
}
