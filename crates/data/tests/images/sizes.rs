//! Pictures of any size and proportion become samples of one.

use proptest::prelude::*;
use tidegate_data::arrays::FeedOptions;
use tidegate_data::images::{Augment, ImageOptions, Resize};

use crate::draw::{Drawing, QUARTERS};
use crate::help::{Folder, check_quarters, decode, feed, form, in_place, quarters, samples, shuffled, sized};

/// Four stripes beside each other, a quarter of the width each.
fn stripes(width: usize, height: usize) -> Drawing {
    Drawing::new(width, height, |x, _| QUARTERS[4 * x / width])
}

/// The colour in the middle, where a picture of one row or column stands, too.
fn in_the_middle(sample: &[u8], side: usize) -> [u8; 3] {
    let start = (side - 1) / 2 * (side + 1) * 3;
    sample[start..start + 3].try_into().unwrap()
}

/// The colour in the middle row, so far across.
fn at(sample: &[u8], side: usize, across: f64) -> [u8; 3] {
    let x = (side as f64 * across) as usize;
    let start = (side / 2 * side + x) * 3;
    sample[start..start + 3].try_into().unwrap()
}

#[track_caller]
fn near(found: [u8; 3], expected: [u8; 3]) {
    let far = found.iter().zip(expected).any(|(a, b)| a.abs_diff(b) > 8);
    assert!(!far, "{found:?} instead of {expected:?}");
}

#[test]
fn stretched_fitted_or_cropped() {
    const SIDE: usize = 80;
    for bytes in [
        stripes(400, 200).jpeg(),
        stripes(400, 200).png(),
        stripes(400, 200).tiff(),
    ] {
        let decoded = |resize| decode("1.jpg", &bytes, form(SIDE, SIDE, 3, resize)).unwrap();
        let stretched = decoded(Resize::Stretch);
        for (stripe, across) in [0.125, 0.375, 0.625, 0.875].into_iter().enumerate() {
            near(at(&stretched, SIDE, across), QUARTERS[stripe]);
        }
        // All of it, with bars above and below.
        let fitted = decoded(Resize::Fit);
        for (stripe, across) in [0.125, 0.375, 0.625, 0.875].into_iter().enumerate() {
            near(at(&fitted, SIDE, across), QUARTERS[stripe]);
        }
        let is_black = |row: usize| {
            fitted[row * SIDE * 3..(row + 1) * SIDE * 3]
                .iter()
                .all(|value| *value == 0)
        };
        let black: Vec<usize> = (0..SIDE).filter(|row| is_black(*row)).collect();
        assert_eq!(black, (0..20).chain(60..80).collect::<Vec<usize>>());
        // The middle of it: half of each outer stripe is lost, and so is the rest.
        let cropped = decoded(Resize::Crop);
        near(at(&cropped, SIDE, 0.25), QUARTERS[1]);
        near(at(&cropped, SIDE, 0.05), QUARTERS[1]);
        near(at(&cropped, SIDE, 0.75), QUARTERS[2]);
        near(at(&cropped, SIDE, 0.95), QUARTERS[2]);
    }
}

#[test]
fn the_smallest_and_the_thinnest() {
    let colour = [200, 100, 50];
    for (width, height) in [(1, 1), (3, 500), (500, 3), (1, 2_000), (2, 2)] {
        let drawing = Drawing::new(width, height, |_, _| colour);
        for bytes in [
            drawing.jpeg(),
            drawing.progressive_jpeg(),
            drawing.png(),
            drawing.interlaced_png(),
            drawing.webp(),
            drawing.bmp(),
            drawing.tiff(),
        ] {
            for (sides, resize) in [
                ((20, 20), Resize::Stretch),
                ((1, 1), Resize::Crop),
                ((33, 7), Resize::Crop),
            ] {
                let sample = decode("1.png", &bytes, form(sides.0, sides.1, 3, resize)).unwrap();
                sample
                    .chunks_exact(3)
                    .for_each(|pixel| near(pixel.try_into().unwrap(), colour));
            }
            let fitted = decode("1.png", &bytes, form(40, 40, 3, Resize::Fit)).unwrap();
            near(in_the_middle(&fitted, 40), colour);
        }
    }
}

#[test]
fn as_large_as_it_is_nothing_changes() {
    let drawing = Drawing::numbered(3, 37, 23);
    for bytes in [
        drawing.png(),
        drawing.bmp(),
        drawing.webp(),
        drawing.tiff(),
        drawing.interlaced_png(),
    ] {
        for resize in [Resize::Stretch, Resize::Fit, Resize::Crop] {
            let sample = decode("1.png", &bytes, form(23, 37, 3, resize)).unwrap();
            assert_eq!(sample, drawing.pixels);
        }
    }
}

#[test]
fn samples_that_are_kept_larger_for_cropping_are_decoded_like_others() {
    let folder = Folder::of_classes(24);
    for size in [None, Some((64, 64)), Some((300, 200))] {
        let options = ImageOptions {
            size,
            augment: Augment::parse("crop=0.5").unwrap(),
            ..ImageOptions::default()
        };
        let source = folder.open_with("", &options).unwrap().training;
        let judged = feed(&source, &in_place());
        assert_eq!(
            (samples(&judged).len(), source.bad_files().count),
            (24, 0),
            "{size:?}"
        );
        assert_eq!(samples(&feed(&source, &shuffled())).len(), 24);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// What decoding takes is counted before the size of samples is known: that must be enough for every picture.
    #[test]
    fn what_was_counted_is_enough(
        sizes in prop::collection::vec((1usize..700, 1usize..700), 2..6),
        size in prop::option::of((1usize..400, 1usize..400)),
        channels in prop::option::of(prop::sample::select(vec![1usize, 3])),
        resize in prop::sample::select(vec![Resize::Stretch, Resize::Fit, Resize::Crop]),
        format in 0usize..7,
    ) {
        let folder = Folder::new(&[]);
        for (i, (width, height)) in sizes.iter().enumerate() {
            let drawing = Drawing::quarters(*width, *height);
            let bytes = match format {
                0 => drawing.jpeg(),
                1 => drawing.progressive_jpeg(),
                2 => drawing.png(),
                3 => drawing.interlaced_png(),
                4 => drawing.bmp(),
                5 => drawing.gray_jpeg(),
                _ => drawing.tiff(),
            };
            folder.write(&format!("{}/{i}.png", i % 2), &bytes);
        }
        let options = ImageOptions { size, channels, resize, ..sized(1) };
        let opened = folder.open_with("", &options).unwrap();
        let source = &opened.training;
        let with_room = FeedOptions { prefetch: source.good_prefetch(8, 1), ..in_place() };
        prop_assert_eq!(samples(&feed(source, &with_room)).len(), sizes.len());
        prop_assert_eq!(source.bad_files().count, 0, "{:?}", source.bad_files());
        if resize == Resize::Stretch && opened.form.height.min(opened.form.width) > 32 {
            let large = sizes.iter().position(|(width, height)| *width.min(height) > 32);
            if let Some(i) = large {
                // Files are in the order of their classes.
                let sample = (0..sizes.len() as u64)
                    .find(|sample| source.file(*sample).unwrap().ends_with(format!("{i}.png")));
                let bytes = crate::help::shown(source, sample.unwrap());
                let found = quarters(&bytes, opened.form.height, opened.form.width, opened.form.channels);
                let gray = QUARTERS.map(|colour| [crate::draw::gray(&colour); 3]);
                let expected = if format == 5 { gray } else { QUARTERS };
                check_quarters("a picture of any size", &found, &expected, 10.0);
            }
        }
    }
}
