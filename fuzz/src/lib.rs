//! What several targets do with their bytes.

use std::ops::ControlFlow;

use tidegate_data::arrays::Order;
use tidegate_data::chunk::{Read, Wanted};
use tidegate_data::images::{ImageForm, ImageOptions, Resize, open_unlabelled};
use tidegate_data::source::Reading;
use tidegate_data::{BadRows, Position, Source, SourceOptions};
use tidegate_memory::Ledger;

/// Reads a file of this name and these bytes as any other, in a small budget: all columns as texts, then as numbers.
/// Whatever comes of it, every grant returns.
pub fn read_source(name: &str, bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let ledger = Ledger::new(16 << 20);
    if let Ok(source) = Source::open(&[path], &SourceOptions::default(), &[], &ledger) {
        for read in [Read::Text, Read::Number] {
            let wanted = source.columns().iter().map(|column| Wanted {
                name: column.name.clone(),
                read,
            });
            let reading = Reading {
                wanted: wanted.collect(),
                missing: Vec::new(),
                bad_rows: BadRows::Skip,
            };
            let _ = source.profile(&reading, &ledger);
            let _ = source.scan(&reading, Position::default(), &ledger, |chunk, _| {
                assert_eq!(chunk.columns.len(), reading.wanted.len());
                ControlFlow::Continue(())
            });
        }
    }
    assert_eq!(ledger.used(), 0);
}

/// The budget that a picture is shown in.
pub const PICTURE_BUDGET: u64 = 8 << 20;

/// Decodes a file of this name and these bytes to a sample as any other picture, in a small budget; `wanted` says how large
/// the sample is, and how the picture fills it. Whatever comes of it, every grant returns.
pub fn show_picture(name: &str, bytes: &[u8], wanted: [u8; 3]) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    let [height, width, how] = wanted.map(usize::from);
    let form = ImageForm {
        height: height + 1,
        width: width + 1,
        channels: [1, 3][how & 1],
        resize: [Resize::Stretch, Resize::Fit, Resize::Crop][how / 2 % 3],
        margin: how / 6 % 2 == 1,
    };
    let ledger = Ledger::new(PICTURE_BUDGET);
    let opened = open_unlabelled(&path, form, &ImageOptions::default(), &ledger, &mut |_, _| {
        ControlFlow::Continue(())
    });
    if let Ok(Some((source, _))) = opened {
        let mut sample = vec![0; source.sample_len()];
        let _ = source.show_image(0, Order::InPlace, &ledger, &mut sample);
    }
    assert_eq!(ledger.used(), 0);
}
