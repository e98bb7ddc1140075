//! Geometry against a slow reference in floats.

use super::super::pose::{Crop, Pose};
use super::*;

/// As `apply_affine_transform` of Keras has it: matrices over `(row, column, 1)`, from pixel of the result to place.
type Matrix = [[f64; 3]; 3];

fn product(a: Matrix, b: Matrix) -> Matrix {
    std::array::from_fn(|i| std::array::from_fn(|j| (0..3).map(|k| a[i][k] * b[k][j]).sum()))
}

fn moved(rows: f64, columns: f64) -> Matrix {
    [[1.0, 0.0, rows], [0.0, 1.0, columns], [0.0, 0.0, 1.0]]
}

fn scaled(rows: f64, columns: f64) -> Matrix {
    [[rows, 0.0, 0.0], [0.0, columns, 0.0], [0.0, 0.0, 1.0]]
}

fn reference_map(pose: &Pose, stored: (usize, usize), output: (usize, usize)) -> Matrix {
    let (height, width) = (output.0 as f64, output.1 as f64);
    let (sine, cosine) = pose.rotation.to_radians().sin_cos();
    let (shear_sine, shear_cosine) = pose.shear.to_radians().sin_cos();
    let sign = |flip: bool| if flip { -1.0 } else { 1.0 };
    let centre = ((height - 1.0) / 2.0, (width - 1.0) / 2.0);
    let steps = [
        moved(centre.0, centre.1),
        [[cosine, -sine, 0.0], [sine, cosine, 0.0], [0.0, 0.0, 1.0]],
        moved(pose.shift[1] * height, pose.shift[0] * width),
        [[1.0, -shear_sine, 0.0], [0.0, shear_cosine, 0.0], [0.0, 0.0, 1.0]],
        scaled(1.0 / pose.zoom[1], 1.0 / pose.zoom[0]),
        scaled(sign(pose.flip_y), sign(pose.flip_x)),
        moved(-centre.0, -centre.1),
    ];
    let in_output = steps.into_iter().reduce(product).unwrap();
    let Some(crop) = pose.crop else {
        return in_output;
    };
    let (stored_height, stored_width) = (stored.0 as f64, stored.1 as f64);
    let crop = [
        moved(crop.top * stored_height - 0.5, crop.left * stored_width - 0.5),
        scaled(
            crop.height * stored_height / height,
            crop.width * stored_width / width,
        ),
        moved(0.5, 0.5),
    ];
    product(crop.into_iter().reduce(product).unwrap(), in_output)
}

/// The pixel that shows at one that may be outside.
fn shown(fill: Fill, mut pixel: i64, n: i64) -> i64 {
    while !(0..n).contains(&pixel) {
        pixel = match (fill, pixel < 0) {
            (Fill::Nearest | Fill::Constant, true) => 0,
            (Fill::Nearest | Fill::Constant, false) => n - 1,
            (Fill::Wrap, true) => pixel + n,
            (Fill::Wrap, false) => pixel - n,
            (Fill::Reflect, true) => -1 - pixel,
            (Fill::Reflect, false) => 2 * n - 1 - pixel,
        };
    }
    pixel
}

/// Both ways are at most two levels apart, of 255.
fn check(pose: Pose, fill: Fill, stored: (usize, usize), output: (usize, usize), channels: usize) {
    let sample = noise(stored.0 * stored.1 * channels);
    let augment = Augment {
        fill,
        ..Augment::default()
    };
    let mut into = vec![0; output.0 * output.1 * channels];
    Sampler::new(&augment, stored, output, channels).pose(&pose, &sample, &mut into);
    let map = reference_map(&pose, stored, output);
    for (i, found) in into.iter().enumerate() {
        let (row, column, channel) = (i / channels / output.1, i / channels % output.1, i % channels);
        let [y, x] = [map[0], map[1]].map(|line| line[0] * row as f64 + line[1] * column as f64 + line[2]);
        // How far outside a sample that ends half a pixel beyond the centres of its outermost.
        let beyond = |place: f64, n: usize| (-0.5 - place).max(place - n as f64 + 0.5);
        let beyond = beyond(y, stored.0).max(beyond(x, stored.1));
        if fill == Fill::Constant && beyond.abs() < 0.01 {
            continue;
        }
        let pixel = |y: f64, x: f64| {
            let y = shown(fill, y as i64, stored.0 as i64) as usize;
            let x = shown(fill, x as i64, stored.1 as i64) as usize;
            f64::from(sample[(y * stored.1 + x) * channels + channel])
        };
        let (top, left) = (y.floor(), x.floor());
        let (down, across) = (y - top, x - left);
        let expected = match fill == Fill::Constant && beyond > 0.0 {
            true => 0.0,
            false => {
                (1.0 - down) * ((1.0 - across) * pixel(top, left) + across * pixel(top, left + 1.0))
                    + down * ((1.0 - across) * pixel(top + 1.0, left) + across * pixel(top + 1.0, left + 1.0))
            }
        };
        assert!(
            (f64::from(*found) - expected).abs() < 2.0,
            "{pose:?} {fill:?} {stored:?} → {output:?}×{channels} at {row}, {column}: {found}, not {expected}"
        );
    }
}

const FILLS: [Fill; 4] = [Fill::Nearest, Fill::Reflect, Fill::Wrap, Fill::Constant];

/// In all shapes, with all fills.
fn check_everywhere(pose: Pose) {
    for (height, width, channels) in SHAPES {
        let larger = (height + 3, width + 1);
        let stored = pose.crop.map_or((height, width), |_| larger);
        for fill in FILLS {
            check(pose, fill, stored, (height, width), channels);
        }
    }
}

#[test]
fn each_option_is_what_keras_makes_of_it() {
    let still = Pose::STILL;
    for rotation in [-180.0, -90.0, -33.0, 0.01, 7.0, 90.0, 140.0] {
        check_everywhere(Pose { rotation, ..still });
    }
    for shear in [-89.0, -20.0, 5.0, 45.0] {
        check_everywhere(Pose { shear, ..still });
    }
    for shift in [[0.3, 0.0], [0.0, -0.11], [-1.0, 1.0], [0.05, 0.07]] {
        check_everywhere(Pose { shift, ..still });
    }
    for zoom in [[0.05, 0.05], [0.6, 1.5], [1.1, 1.0], [20.0, 20.0]] {
        check_everywhere(Pose { zoom, ..still });
    }
    for (top, left, height, width) in [(0.0, 0.0, 1.0, 1.0), (0.1, 0.3, 0.8, 0.5), (0.5, 0.0, 0.5, 0.7)] {
        let crop = Crop {
            top,
            left,
            height,
            width,
        };
        check_everywhere(Pose {
            crop: Some(crop),
            ..still
        });
    }
}

#[test]
fn all_together_are_one_map() {
    let augment = augment("flip,vertical-flip,rotation=60,shift=0.3:0.2,shear=30,zoom=0.5:2,crop=0.2");
    for sample in 0..60 {
        let pose = Pose::draw(&augment, key(sample));
        check_everywhere(pose);
        check_everywhere(Pose { crop: None, ..pose });
    }
}

#[test]
fn flips_are_exact() {
    for (height, width, channels) in SHAPES {
        let sample = noise(height * width * channels);
        let expected = |flip_x: bool, flip_y: bool| -> Vec<u8> {
            let byte = |i: usize| {
                let (y, x, channel) = (i / channels / width, i / channels % width, i % channels);
                let y = if flip_y { height - 1 - y } else { y };
                let x = if flip_x { width - 1 - x } else { x };
                sample[(y * width + x) * channels + channel]
            };
            (0..sample.len()).map(byte).collect()
        };
        for (flip_x, flip_y) in [(true, false), (false, true), (true, true)] {
            let text = match (flip_x, flip_y) {
                (true, true) => "flip,vertical_flip",
                (true, false) => "flip",
                _ => "vertical_flip",
            };
            let pose = |sample| Pose::draw(&augment(text), key(sample));
            let is_wanted = |sample: &u64| (pose(*sample).flip_x, pose(*sample).flip_y) == (flip_x, flip_y);
            let drawn = (0..100).find(is_wanted).unwrap();
            let found = applied(text, (height, width, channels), key(drawn));
            assert!(
                found == expected(flip_x, flip_y),
                "{text} {height}×{width}×{channels}"
            );
            // By the map, which stops short of being straight, it is the same.
            let nearly = Pose {
                rotation: 1e-12,
                ..pose(drawn)
            };
            let mut by_map = vec![0; sample.len()];
            let nothing = Augment::default();
            let mut sampler = Sampler::new(&nothing, (height, width), (height, width), channels);
            sampler.pose(&nearly, &sample, &mut by_map);
            assert!(by_map == found, "{text} {height}×{width}×{channels}");
        }
    }
}

#[test]
fn half_a_turn_is_both_flips() {
    let sizes = (7, 12);
    let sample = noise(7 * 12 * 3);
    let nothing = Augment::default();
    let mut sampler = Sampler::new(&nothing, sizes, sizes, 3);
    let [mut turned, mut flipped] = [vec![0; sample.len()], vec![0; sample.len()]];
    let turn = Pose {
        rotation: 180.0,
        ..Pose::STILL
    };
    let flips = Pose {
        flip_x: true,
        flip_y: true,
        ..Pose::STILL
    };
    sampler.pose(&turn, &sample, &mut turned);
    sampler.pose(&flips, &sample, &mut flipped);
    assert_eq!(turned, flipped);
}

#[test]
fn borders_show_what_they_are_filled_with() {
    // Two pixels to the right: what was at column c is at c + 2.
    let pose = Pose {
        shift: [-0.5, 0.0],
        ..Pose::STILL
    };
    let shown = |fill| {
        let augment = Augment {
            fill,
            ..Augment::default()
        };
        let mut into = [9; 4];
        Sampler::new(&augment, (1, 4), (1, 4), 1).pose(&pose, &[10, 20, 30, 40], &mut into);
        into
    };
    assert_eq!(shown(Fill::Nearest), [10, 10, 10, 20]);
    assert_eq!(shown(Fill::Reflect), [20, 10, 10, 20]);
    assert_eq!(shown(Fill::Wrap), [30, 40, 10, 20]);
    assert_eq!(shown(Fill::Constant), [0, 0, 10, 20]);
}

#[test]
fn a_zoom_over_one_enlarges() {
    let pose = Pose {
        zoom: [2.0, 2.0],
        ..Pose::STILL
    };
    let nothing = Augment::default();
    let mut into = [0; 8];
    Sampler::new(&nothing, (1, 8), (1, 8), 1).pose(&pose, &[0, 0, 0, 0, 200, 200, 0, 0], &mut into);
    assert_eq!(into, [0, 0, 0, 50, 150, 200, 200, 150]);
}
