//! The resizer beside a slow one that does what the words say.

use proptest::prelude::*;

use super::*;

/// Every output pixel by itself, in floats.
fn reference(geometry: &Geometry, source: &[u8]) -> Vec<f64> {
    let triangle = |axis: &Axis, out: usize| -> Vec<f64> {
        let scale = axis.length / axis.out as f64;
        let support = scale.max(1.0);
        let centre = axis.from + (out as f64 + 0.5) * scale;
        let weights: Vec<f64> = (0..axis.source)
            .map(|pixel| (1.0 - (pixel as f64 + 0.5 - centre).abs() / support).max(0.0))
            .collect();
        let total: f64 = weights.iter().sum();
        weights.iter().map(|weight| weight / total).collect()
    };
    let mut pixels = Vec::new();
    for y in 0..geometry.height {
        let down = triangle(&geometry.down(), y);
        for x in 0..geometry.width {
            let across = triangle(&geometry.across(), x);
            for channel in 0..geometry.channels {
                let mut sum = 0.0;
                for (row, down) in down.iter().enumerate().filter(|(_, weight)| **weight > 0.0) {
                    for (column, across) in across.iter().enumerate() {
                        let at = (row * geometry.source_width + column) * geometry.channels + channel;
                        sum += down * across * f64::from(source[at]);
                    }
                }
                pixels.push(sum);
            }
        }
    }
    pixels
}

/// Pushes so many rows at a time.
fn resized(resizer: &mut Resizer, geometry: &Geometry, source: &[u8], at_once: usize) -> Vec<u8> {
    resizer.reset(geometry);
    let stride = geometry.width * geometry.channels;
    let mut out = vec![0; stride * geometry.height];
    let source_stride = geometry.source_width * geometry.channels;
    for bytes in source.chunks(source_stride * at_once) {
        let rows = Rows {
            bytes,
            stride: source_stride,
            n: bytes.len() / source_stride,
        };
        let mut canvas = Canvas {
            bytes: &mut out,
            stride,
        };
        resizer.push(rows, &mut canvas);
    }
    assert!(resizer.is_done());
    out
}

fn noise(geometry: &Geometry) -> Vec<u8> {
    let n = geometry.source_width * geometry.source_height * geometry.channels;
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 30) as u8
    })
    .take(n)
    .collect()
}

fn whole(source: (usize, usize), out: (usize, usize), channels: usize) -> Geometry {
    Geometry {
        source_width: source.0,
        source_height: source.1,
        rectangle: Rectangle::whole(source.0 as u32, source.1 as u32),
        width: out.0,
        height: out.1,
        channels,
    }
}

/// Held against the reference, in any number of rows at a time, with vectors and without.
fn check(geometry: &Geometry) {
    let source = noise(geometry);
    let expected = reference(geometry, &source);
    let mut resizer = Resizer::default();
    let out = resized(&mut resizer, geometry, &source, 1);
    for (at, (pixel, expected)) in out.iter().zip(&expected).enumerate() {
        let difference = (f64::from(*pixel) - expected).abs();
        // Half for the rounding, and what weights of 14 bits are wrong.
        assert!(
            difference < 0.56,
            "{pixel} instead of {expected} at {at}: {geometry:?}"
        );
    }
    assert!(resizer.held_bytes() <= geometry.bytes_needed());
    for at_once in [2, 3, 8, 1_000] {
        assert_eq!(
            resized(&mut resizer, geometry, &source, at_once),
            out,
            "{at_once} rows at a time"
        );
    }
    let mut portable = Resizer::with_kernels(Kernels::Portable);
    assert_eq!(
        resized(&mut portable, geometry, &source, 8),
        out,
        "without vectors"
    );
}

#[test]
fn pixels_are_those_of_the_reference() {
    for channels in 1..=4 {
        check(&whole((50, 37), (15, 15), channels));
        check(&whole((33, 20), (32, 19), channels));
        check(&whole((9, 7), (40, 31), channels));
        check(&whole((40, 6), (9, 25), channels));
        check(&whole((6, 40), (25, 9), channels));
    }
    check(&whole((250, 188), (150, 150), 1));
    check(&whole((1, 1), (5, 3), 1));
    check(&whole((300, 200), (1, 1), 3));
    check(&whole((64, 64), (32, 32), 1));
}

#[test]
fn a_part_is_taken_with_fractions_of_pixels() {
    let rectangle = |x, y, width, height| Rectangle { x, y, width, height };
    for part in [
        rectangle(3.25, 4.5, 20.5, 11.75),
        rectangle(0.0, 0.0, 12.5, 30.0),
        rectangle(39.0, 29.0, 1.0, 1.0),
        rectangle(17.1, 2.9, 3.3, 2.2),
    ] {
        for out in [(10, 10), (3, 25), (31, 2)] {
            check(&Geometry {
                rectangle: part,
                ..whole((40, 30), out, 1)
            });
        }
    }
}

#[test]
fn the_same_size_is_a_copy() {
    for channels in 1..=4 {
        let geometry = whole((31, 17), (31, 17), channels);
        let source = noise(&geometry);
        let mut resizer = Resizer::default();
        assert_eq!(resized(&mut resizer, &geometry, &source, 5), source);
        assert_eq!(resizer.held_bytes(), 0);
        assert_eq!(geometry.bytes_needed(), 0);
    }
}

#[test]
fn one_colour_stays_what_it_is() {
    for out in [(1, 1), (7, 5), (100, 3), (90, 80), (201, 202)] {
        for value in [0, 1, 127, 254, 255] {
            let geometry = whole((200, 100), out, 1);
            let out = resized(&mut Resizer::default(), &geometry, &vec![value; 200 * 100], 16);
            assert!(out.iter().all(|pixel| *pixel == value));
        }
    }
}

#[test]
fn beside_the_picture_its_border_goes_on() {
    let rectangle = Rectangle {
        x: 50.0,
        y: 1.0,
        width: 4.0,
        height: 2.0,
    };
    let geometry = Geometry {
        rectangle,
        ..whole((8, 4), (2, 2), 1)
    };
    let source: Vec<u8> = (0..32).map(|at| if at % 8 == 7 { 200 } else { 0 }).collect();
    assert_eq!(resized(&mut Resizer::default(), &geometry, &source, 4), [200; 4]);
}

/// A wide strip to a single pixel: its weights are far below a 16,384th, and still add up.
#[test]
fn the_strongest_reduction_is_a_mean() {
    let geometry = whole((60_000, 2), (1, 1), 1);
    let source: Vec<u8> = (0..120_000).map(|at| if at % 2 == 0 { 60 } else { 80 }).collect();
    let out = resized(&mut Resizer::default(), &geometry, &source, 1);
    assert!((69..=71).contains(&out[0]), "{out:?}");
}

#[test]
fn the_next_picture_of_the_same_size_allocates_nothing() {
    let geometry = whole((50, 40), (20, 10), 3);
    let mut resizer = Resizer::default();
    let source = noise(&geometry);
    let first = resized(&mut resizer, &geometry, &source, 4);
    let held = resizer.held_bytes();
    assert!(held > 0);
    resized(&mut resizer, &whole((20, 10), (5, 5), 1), &source, 4);
    assert_eq!(resized(&mut resizer, &geometry, &source, 4), first);
    assert_eq!(resizer.held_bytes(), held);
    resizer.release();
    assert_eq!(resizer.held_bytes(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn any_geometry_is_right(
        source in (1usize..40, 1usize..40),
        out in (1usize..40, 1usize..40),
        part in (0.0f64..1.0, 0.0f64..1.0, 0.01f64..1.0, 0.01f64..1.0),
        channels in 1usize..=4,
    ) {
        let (width, height) = (source.0 as f64, source.1 as f64);
        let (x, y) = (part.0 * width * 0.9, part.1 * height * 0.9);
        let rectangle = Rectangle { x, y, width: (width - x) * part.2, height: (height - y) * part.3 };
        check(&Geometry { rectangle, ..whole(source, out, channels) });
    }
}
