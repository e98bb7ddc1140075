//! The decoder beside pictures that are known, whole and reduced.

mod broken;
mod counting;
mod headers;
mod memory;
mod samples;

use jpeg_encoder::{ChromaSubsamplingMethod, ColorType, Encoder, SamplingFactor};

use super::super::resize::{Resizer, Rows};
use super::*;

const SAMPLINGS: [SamplingFactor; 12] = [
    SamplingFactor::F_1_1,
    SamplingFactor::F_2_1,
    SamplingFactor::F_1_2,
    SamplingFactor::F_2_2,
    SamplingFactor::F_4_1,
    SamplingFactor::F_4_2,
    SamplingFactor::F_1_4,
    SamplingFactor::F_2_4,
    SamplingFactor::R_4_4_0,
    SamplingFactor::R_4_2_2,
    SamplingFactor::R_4_2_0,
    SamplingFactor::R_4_1_1,
];

/// How a file is written.
#[derive(Debug, Clone, Copy)]
struct Coding {
    quality: u8,
    sampling: SamplingFactor,
    progressive: bool,
    /// Also one component after the other.
    optimized: bool,
    interval: u16,
}

const PLAIN: Coding = Coding {
    quality: 95,
    sampling: SamplingFactor::F_2_2,
    progressive: false,
    optimized: false,
    interval: 0,
};

fn encoded(coding: Coding, pixels: &[u8], size: (usize, usize), colours: ColorType) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, coding.quality);
    encoder.set_sampling_factor(coding.sampling);
    encoder.set_chroma_subsampling_method(ChromaSubsamplingMethod::Average);
    encoder.set_progressive(coding.progressive);
    encoder.set_optimized_huffman_tables(coding.optimized);
    encoder.set_restart_interval(coding.interval);
    encoder
        .encode(pixels, size.0 as u16, size.1 as u16, colours)
        .unwrap();
    bytes
}

/// Waves of three colours, of some ten pixels each.
fn waves((width, height): (usize, usize)) -> Vec<u8> {
    let mut pixels = Vec::new();
    for y in 0..height {
        for x in 0..width {
            let (x, y) = (x as f64, y as f64);
            for angle in [x / 11.0 + y / 37.0, y / 13.0 - x / 29.0, (x + y) / 17.0] {
                pixels.push((127.5 + 110.0 * angle.sin()) as u8);
            }
        }
    }
    pixels
}

fn file(coding: Coding, size: (usize, usize)) -> Vec<u8> {
    encoded(coding, &waves(size), size, ColorType::Rgb)
}

/// All of a picture, at this size.
fn whole(bytes: &[u8], (width, height): (usize, usize), channels: usize) -> Target {
    let header = header(bytes).unwrap();
    Target {
        rectangle: Rectangle::whole(header.width, header.height),
        width,
        height,
        channels,
    }
}

fn try_decode(decoder: &mut Decoder, bytes: &[u8], target: &Target) -> Result<Vec<u8>, Fault> {
    // A stride of its own, so that nothing is written beside the rows.
    let row = target.width * target.channels;
    let stride = row + 5;
    let mut out = vec![77; stride * target.height];
    let canvas = Canvas {
        bytes: &mut out,
        stride,
    };
    decoder.decode(bytes, target, canvas)?;
    let mut pixels = Vec::new();
    for line in out.chunks(stride) {
        pixels.extend_from_slice(&line[..row]);
        assert_eq!(line[row..], [77; 5], "written beside the row");
    }
    Ok(pixels)
}

/// Decodes with vectors and without, which is the same.
fn decoded(bytes: &[u8], target: &Target) -> Vec<u8> {
    let pixels = try_decode(&mut Decoder::default(), bytes, target).unwrap();
    let portable = try_decode(&mut Decoder::with_kernels(Kernels::Portable), bytes, target).unwrap();
    assert!(pixels == portable, "vectors change the picture");
    pixels
}

fn difference(a: &[u8], b: &[u8]) -> f64 {
    assert_eq!(a.len(), b.len());
    let sum: u64 = a.iter().zip(b).map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
    sum as f64 / a.len() as f64
}

/// What a decoding in full becomes when it is resized.
fn resized(pixels: &[u8], (width, height): (usize, usize), target: &Target) -> Vec<u8> {
    let mut resizer = Resizer::default();
    resizer.reset(&resize::Geometry {
        source_width: width,
        source_height: height,
        rectangle: target.rectangle,
        width: target.width,
        height: target.height,
        channels: target.channels,
    });
    let mut out = vec![0; target.width * target.height * target.channels];
    let rows = Rows {
        bytes: pixels,
        stride: width * target.channels,
        n: height,
    };
    let mut canvas = Canvas {
        bytes: &mut out,
        stride: target.width * target.channels,
    };
    resizer.push(rows, &mut canvas);
    out
}

#[test]
fn pictures_come_back_however_they_are_coded() {
    for size in [(1, 1), (7, 9), (16, 16), (33, 20), (100, 75)] {
        for sampling in SAMPLINGS {
            for (progressive, optimized, interval) in [
                (false, false, 0),
                (false, false, 1),
                (false, false, 3),
                (false, true, 0),
                (true, false, 2),
                (true, true, 0),
            ] {
                let coding = Coding {
                    sampling,
                    progressive,
                    optimized,
                    interval,
                    ..PLAIN
                };
                let bytes = file(coding, size);
                let pixels = decoded(&bytes, &whole(&bytes, size, 3));
                let difference = difference(&pixels, &waves(size));
                assert!(difference < 4.0, "{difference} at {size:?}, {coding:?}");
            }
        }
    }
}

#[test]
fn all_codings_of_the_same_samples_are_the_same() {
    for sampling in SAMPLINGS {
        for size in [(60, 41), (16, 16), (5, 70)] {
            let plain = Coding { sampling, ..PLAIN };
            let bytes = file(plain, size);
            for out in [size, (20, 20), (3, 9), (4, 4), (2, 1), (90, 100)] {
                for channels in [1, 3] {
                    let expected = decoded(&bytes, &whole(&bytes, out, channels));
                    for (progressive, optimized, interval) in [
                        (false, true, 0),
                        (true, false, 0),
                        (true, false, 5),
                        (false, false, 2),
                    ] {
                        let coding = Coding {
                            progressive,
                            optimized,
                            interval,
                            ..plain
                        };
                        let bytes = file(coding, size);
                        let pixels = decoded(&bytes, &whole(&bytes, out, channels));
                        assert!(pixels == expected, "{coding:?}, {size:?} to {out:?}");
                    }
                }
            }
        }
    }
}

#[test]
fn means_alone_take_little_memory_and_the_rest_is_passed_over() {
    let size = (800, 600);
    let coding = Coding {
        progressive: true,
        ..PLAIN
    };
    let bytes = file(coding, size);
    let held = |side| {
        let mut decoder = Decoder::default();
        try_decode(&mut decoder, &bytes, &whole(&bytes, (side, side), 3)).unwrap();
        decoder.held_bytes()
    };
    // Two bytes instead of 128 for each of 7,500 blocks of light.
    assert!(held(30) + 900_000 < held(200), "{} and {}", held(30), held(200));
    // What tells nothing of the means may be broken.
    let mut broken = bytes.clone();
    for at in 0..bytes.len() - 40 {
        let n_components = usize::from(bytes[at + 4]);
        if bytes[at..].starts_with(&[0xff, 0xda]) && n_components < 4 && bytes[at + 5 + 2 * n_components] > 0
        {
            broken[at + 14..at + 40].fill(0x55);
        }
    }
    let target = whole(&bytes, (30, 30), 3);
    assert!(decoded(&broken, &target) == decoded(&bytes, &target));
    let target = whole(&bytes, (200, 200), 3);
    assert!(
        try_decode(&mut Decoder::default(), &broken, &target)
            != try_decode(&mut Decoder::default(), &bytes, &target)
    );
}

#[test]
fn a_reduced_decoding_is_a_full_one_made_smaller() {
    let size = (400, 300);
    for sampling in [
        SamplingFactor::F_1_1,
        SamplingFactor::F_2_2,
        SamplingFactor::F_1_4,
    ] {
        for channels in [1, 3] {
            let coding = Coding { sampling, ..PLAIN };
            let bytes = file(coding, size);
            let full = decoded(&bytes, &whole(&bytes, size, channels));
            for out in [
                (400, 300),
                (399, 299),
                (201, 150),
                (200, 150),
                (150, 150),
                (60, 70),
                (33, 300),
                (10, 9),
                (1, 1),
            ] {
                let target = whole(&bytes, out, channels);
                let difference = difference(&decoded(&bytes, &target), &resized(&full, size, &target));
                // The waves are hardly wider than these pixels.
                let most = if out == (10, 9) { 6.0 } else { 2.0 };
                assert!(difference < most, "{difference} at {out:?}, {sampling:?}");
            }
        }
    }
}

#[test]
fn a_part_is_that_part_of_the_whole() {
    let size = (400, 300);
    for progressive in [false, true] {
        let coding = Coding { progressive, ..PLAIN };
        let bytes = file(coding, size);
        let full = decoded(&bytes, &whole(&bytes, size, 3));
        for (x, y, width, height) in [
            (0.0, 0.0, 100.0, 100.0),
            (130.0, 77.0, 99.0, 101.0),
            (50.5, 0.0, 300.0, 300.0),
            (300.25, 200.75, 99.75, 99.25),
            (399.0, 299.0, 1.0, 1.0),
        ] {
            for out in [(40, 40), (100, 100), (150, 130)] {
                let target = Target {
                    rectangle: Rectangle { x, y, width, height },
                    ..whole(&bytes, out, 3)
                };
                let difference = difference(&decoded(&bytes, &target), &resized(&full, size, &target));
                assert!(difference < 2.0, "{difference} at {target:?}");
            }
        }
    }
}

#[test]
fn gray_is_repeated_and_colours_lose_theirs() {
    let size = (50, 40);
    let gray: Vec<u8> = waves(size).chunks(3).map(|pixel| pixel[0]).collect();
    for progressive in [false, true] {
        let coding = Coding { progressive, ..PLAIN };
        let bytes = encoded(coding, &gray, size, ColorType::Luma);
        let one = decoded(&bytes, &whole(&bytes, size, 1));
        assert!(difference(&one, &gray) < 2.0);
        let three = decoded(&bytes, &whole(&bytes, size, 3));
        assert!(
            three
                .chunks(3)
                .zip(&one)
                .all(|(pixel, gray)| *pixel == [*gray; 3])
        );
        let bytes = file(coding, size);
        let luma = decoded(&bytes, &whole(&bytes, size, 1));
        let expected: Vec<u8> = waves(size)
            .chunks(3)
            .map(|pixel| {
                (0.299 * f64::from(pixel[0]) + 0.587 * f64::from(pixel[1]) + 0.114 * f64::from(pixel[2]))
                    as u8
            })
            .collect();
        assert!(difference(&luma, &expected) < 2.0);
    }
}

/// The file has what the paper keeps, as Photoshop does it.
#[test]
fn inks_become_colours() {
    let size = (24, 24);
    for (inks, expected) in [
        ([0, 0, 0, 0], [255, 255, 255]),
        ([0, 0, 0, 255], [0, 0, 0]),
        ([255, 0, 0, 0], [0, 255, 255]),
        ([0, 215, 0, 0], [255, 40, 255]),
        ([55, 155, 205, 127], [100, 50, 25]),
    ] {
        for colours in [ColorType::Cmyk, ColorType::CmykAsYcck] {
            let pixels = inks.repeat(size.0 * size.1);
            let bytes = encoded(PLAIN, &pixels, size, colours);
            let decoded_pixels = decoded(&bytes, &whole(&bytes, (12, 10), 3));
            for pixel in decoded_pixels.chunks(3) {
                for (value, expected) in pixel.iter().zip(expected) {
                    assert!(
                        value.abs_diff(expected) <= 4,
                        "{pixel:?} of {inks:?} as {colours:?}"
                    );
                }
            }
            let luma =
                (299 * u32::from(expected[0]) + 587 * u32::from(expected[1]) + 114 * u32::from(expected[2]))
                    / 1000;
            for gray in decoded(&bytes, &whole(&bytes, (12, 10), 1)) {
                assert!(u32::from(gray).abs_diff(luma) <= 4, "{gray} of {inks:?}");
            }
        }
    }
}

#[test]
fn pictures_of_one_size_allocate_once() {
    let bytes = file(PLAIN, (300, 200));
    let target = whole(&bytes, (50, 50), 3);
    let mut decoder = Decoder::default();
    assert_eq!(decoder.held_bytes(), 0);
    let first = try_decode(&mut decoder, &bytes, &target).unwrap();
    let held = decoder.held_bytes();
    // Another, smaller one in between, and one that is cut off.
    let small = file(
        Coding {
            optimized: true,
            ..PLAIN
        },
        (100, 90),
    );
    try_decode(&mut decoder, &small, &whole(&small, (10, 10), 1)).unwrap();
    try_decode(&mut decoder, &bytes[..bytes.len() / 2], &target).unwrap_err();
    assert_eq!(try_decode(&mut decoder, &bytes, &target).unwrap(), first);
    assert_eq!(decoder.held_bytes(), held);
    decoder.release();
    assert_eq!(decoder.held_bytes(), 0);
}

/// Pillow's progressive files refine coefficients bit by bit; the same picture, told once, has the same coefficients.
#[test]
fn refined_coefficients_are_those_of_a_plain_file() {
    for sample in samples::all() {
        for out in [sample.size, (8, 8), (5, 3), (2, 2), (50, 60)] {
            for channels in [1, 3] {
                let plain = decoded(&sample.plain, &whole(&sample.plain, out, channels));
                let refined = decoded(&sample.progressive, &whole(&sample.progressive, out, channels));
                assert!(refined == plain, "{} to {out:?}", sample.name);
            }
        }
        let n = if sample.channels == 1 { 1 } else { 3 };
        let pixels = decoded(&sample.plain, &whole(&sample.plain, sample.size, n));
        let difference = difference(&pixels, &sample.pixels);
        assert!(difference < 0.6, "{difference} from Pillow's: {}", sample.name);
    }
}
