//! Bytes made to break a decoder: a bad file, never a panic, and nothing granted stays.

use proptest::prelude::*;
use tidegate_data::arrays::FeedOptions;
use tidegate_data::images::{ImageOptions, Resize};
use tidegate_memory::Ledger;

use crate::draw::{Drawing, promise};
use crate::help::{Folder, decode, form, shuffled, sized, try_feed};

fn files() -> Vec<(&'static str, Vec<u8>)> {
    let drawing = Drawing::numbered(5, 19, 13);
    vec![
        ("1.jpg", drawing.jpeg()),
        ("2.jpg", drawing.progressive_jpeg()),
        ("3.jpg", drawing.cmyk_jpeg(true)),
        ("4.jpg", drawing.jpeg_held(6)),
        ("5.png", drawing.png()),
        ("6.png", drawing.interlaced_png()),
        ("7.png", drawing.palette_png()),
        ("8.webp", drawing.webp()),
        ("9.bmp", drawing.bmp()),
        ("a.gif", drawing.gif()),
        ("b.tif", drawing.tiff()),
        ("c.tif", drawing.deep_tiff()),
    ]
}

/// Decodes these bytes to samples of several forms.
fn try_all(name: &str, bytes: &[u8]) -> Vec<Result<Vec<u8>, String>> {
    let forms = [
        form(8, 8, 3, Resize::Stretch),
        form(30, 20, 1, Resize::Crop),
        form(5, 40, 3, Resize::Fit),
    ];
    forms.map(|form| decode(name, bytes, form)).to_vec()
}

#[test]
fn files_cut_off_anywhere_never_panic() {
    for (name, bytes) in files() {
        assert!(try_all(name, &bytes).iter().all(Result::is_ok), "{name}");
        let step = (bytes.len() / 150).max(1);
        for end in (0..bytes.len()).step_by(step) {
            let outcome = decode(name, &bytes[..end], form(8, 8, 3, Resize::Stretch));
            // Without its first half nothing is a picture; what lacks its last bytes may be one.
            assert!(outcome.is_err() || end > bytes.len() / 3, "{name} cut at {end}");
        }
    }
}

#[test]
fn a_decoder_that_met_a_broken_picture_decodes_the_next_one() {
    let broken: Vec<Vec<u8>> = files()
        .into_iter()
        .map(|(_, bytes)| bytes[..bytes.len() * 6 / 10].to_vec())
        .collect();
    let folder = Folder::new(&[]);
    let alone = Folder::new(&[]);
    for (i, (name, bytes)) in files().into_iter().enumerate() {
        folder.write(&format!("{}/{i:02} {name}", i % 2), &bytes);
        alone.write(&format!("{}/{i:02} {name}", i % 2), &bytes);
    }
    for (i, bytes) in broken.iter().enumerate() {
        folder.write(&format!("{}/{:02} broken.png", i % 2, i), bytes);
    }
    let samples = |folder: &Folder| {
        let source = folder.open_with("", &sized(11)).unwrap().training;
        let options = FeedOptions {
            order: tidegate_data::arrays::Order::InPlace,
            ..shuffled()
        };
        let (seen, _) = try_feed(&source, &options, &Ledger::new(32 << 20)).unwrap();
        seen.into_iter()
            .flat_map(|batch| batch.bytes)
            .collect::<Vec<u8>>()
    };
    assert!(samples(&folder) == samples(&alone));
}

/// A directory that says of a value that there are millions of it, which a decoder makes room for before it reads them.
#[test]
fn a_long_directory_is_counted() {
    let drawing = Drawing::quarters(20, 20);
    for (count, is_good) in [(1, true), (5_000_000, false), (u32::MAX, false)] {
        let bytes = drawing.tiff_with(COMPRESSION, 4, &count.to_le_bytes());
        let good = drawing.png();
        let folder = Folder::new(&[("a/1.tif", bytes), ("a/2.png", good.clone()), ("b/1.png", good)]);
        let ledger = Ledger::new(24 << 20);
        let opened = crate::help::open(&folder.path(""), &sized(8), &ledger).unwrap();
        let bad = &opened.survey.bad;
        assert_eq!(bad.count, u64::from(!is_good), "{bad:?}");
        assert!(
            is_good || bad.first[0].1.contains("and there is room for 25.2 MB"),
            "{bad:?}"
        );
    }
}

const COMPRESSION: u16 = 259;

/// Sizes whose product is more than a number of 64 bits holds.
#[test]
fn sizes_beyond_all_numbers_are_left_out() {
    let good = Drawing::quarters(20, 20).png();
    let mut in_passes = promise("png", u32::MAX);
    in_passes[28] = 1;
    for bytes in [promise("png", u32::MAX), in_passes, promise("tif", u32::MAX)] {
        let folder = Folder::new(&[
            ("a/1.png", good.clone()),
            ("b/1.png", good.clone()),
            ("b/2.png", bytes),
        ]);
        let opened = folder.open_with("", &sized(8)).unwrap();
        let [(path, fault)] = &opened.survey.bad.first[..] else {
            panic!("{:?}", opened.survey.bad)
        };
        assert!(path.ends_with("b/2.png"), "{path:?}");
        assert!(fault.starts_with("4294967295×4294967295 pixels take "), "{fault}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn changed_bytes_never_panic(
        which in 0usize..12,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        in_header: bool,
    ) {
        let (name, mut bytes) = files().swap_remove(which);
        let length = if in_header { bytes.len().min(64) } else { bytes.len() };
        for (at, byte) in changes {
            bytes[at.index(length)] = byte;
        }
        for outcome in try_all(name, &bytes) {
            let _ = outcome;
        }
    }

    #[test]
    fn anything_behind_a_beginning_never_panics(
        which in 0usize..12,
        keep in 2usize..60,
        garbage in prop::collection::vec(any::<u8>(), 0..600),
    ) {
        let (name, bytes) = files().swap_remove(which);
        let bytes = [&bytes[..keep.min(bytes.len())], &garbage].concat();
        let _ = try_all(name, &bytes);
    }

    /// In a small budget, whatever the bytes promise: every grant returns, and no more is granted than there is.
    #[test]
    fn promises_of_any_size_stay_within_the_budget(
        format in prop::sample::select(vec!["jpg", "png", "bmp", "gif", "tif", "webp"]),
        side in prop::sample::select(vec![1u32, 17, 300, 4_000, 16_000, 65_535]),
        prefetch in prop::sample::select(vec![0u64, 1 << 20, 16 << 20]),
    ) {
        let promised = promise(format, side);
        let good = Drawing::quarters(20, 20).png();
        let folder = Folder::new(&[("a/1.png", good.clone()), ("a/2.png", good.clone()), ("b/3.png", good), ("b/x.png", promised)]);
        let ledger = Ledger::new(24 << 20);
        let options = ImageOptions { threads: 1, ..sized(20) };
        let opened = crate::help::open(&folder.path(""), &options, &ledger).unwrap();
        let (seen, _) = try_feed(&opened.training, &FeedOptions { prefetch, ..shuffled() }, &ledger).unwrap();
        let n = crate::help::samples(&seen).len();
        // What is there is 16×16. It may do for less, and for a pixel more; the screen of a GIF may be larger than it.
        let may_do = side <= 17 || (format == "gif" && side == 300);
        prop_assert!(n == 3 || (n == 4 && may_do), "{} of a promise of {}", n, side);
        drop(opened);
        prop_assert_eq!(ledger.used(), 0);
    }
}
