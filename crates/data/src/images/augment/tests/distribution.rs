//! What is drawn, how often, and what it does not depend on.

use super::super::colour::Tint;
use super::super::pose::Pose;
use super::*;

const N: u64 = 20_000;

fn poses(text: &str) -> Vec<Pose> {
    let augment = augment(text);
    (0..N).map(|sample| Pose::draw(&augment, key(sample))).collect()
}

/// Ten parts of the range are equally full, and nothing is outside.
fn check_uniform(what: &str, values: impl Iterator<Item = f64>, low: f64, high: f64) {
    let mut counts = [0i64; 10];
    for value in values {
        assert!((low..=high).contains(&value), "{what}: {value}");
        let part = (value - low) / (high - low) * 10.0;
        counts[(part as usize).min(9)] += 1;
    }
    // Five deviations of a count.
    let expected = N as i64 / 10;
    assert!(
        counts.iter().all(|n| (n - expected).abs() < 220),
        "{what}: {counts:?}"
    );
}

#[test]
fn ranges_are_drawn_from_evenly() {
    let poses = poses("rotation=20,shift=0.1:0.3,shear=5,zoom=0.8:1.4,crop=0.5:0.9");
    let values = |of: fn(&Pose) -> f64| poses.iter().map(of);
    check_uniform("rotation", values(|pose| pose.rotation), -20.0, 20.0);
    check_uniform("shift of x", values(|pose| pose.shift[0]), -0.1, 0.1);
    check_uniform("shift of y", values(|pose| pose.shift[1]), -0.3, 0.3);
    check_uniform("shear", values(|pose| pose.shear), -5.0, 5.0);
    check_uniform("zoom of x", values(|pose| pose.zoom[0]), 0.8, 1.4);
    check_uniform("zoom of y", values(|pose| pose.zoom[1]), 0.8, 1.4);
    let crops = || poses.iter().filter_map(|pose| pose.crop);
    check_uniform("area", crops().map(|crop| crop.height * crop.width), 0.5, 0.9);
    for crop in crops() {
        assert!((0.749..1.334).contains(&(crop.width / crop.height)), "{crop:?}");
        assert!(crop.top >= 0.0 && crop.left >= 0.0, "{crop:?}");
        assert!(
            crop.top + crop.height < 1.0 + 1e-12 && crop.left + crop.width < 1.0 + 1e-12,
            "{crop:?}"
        );
    }
}

#[test]
fn colours_are_drawn_from_evenly() {
    let augment = augment("brightness=0.3,contrast=0.5:2,saturation=0:1,hue=0.1");
    let tints: Vec<Tint> = (0..N).map(|sample| Tint::draw(&augment, key(sample))).collect();
    let values = |of: fn(&Tint) -> f64| tints.iter().map(of);
    check_uniform("brightness", values(|tint| tint.brightness), 0.7, 1.3);
    check_uniform("contrast", values(|tint| tint.contrast), 0.5, 2.0);
    check_uniform("saturation", values(|tint| tint.saturation), 0.0, 1.0);
    check_uniform("hue", values(|tint| tint.hue), -0.1, 0.1);
}

#[test]
fn half_of_the_samples_are_flipped_and_independently() {
    let mut counts = [0i64; 4];
    for pose in poses("flip,vertical-flip") {
        counts[usize::from(pose.flip_x) + 2 * usize::from(pose.flip_y)] += 1;
    }
    let quarter = N as i64 / 4;
    assert!(counts.iter().all(|n| (n - quarter).abs() < 300), "{counts:?}");
}

#[test]
fn as_many_are_erased_as_was_asked_and_as_much() {
    for size in [(30, 40), (100, 5), (1, 1), (1, 50)] {
        let drawn: Vec<Rectangle> = (0..N)
            .filter_map(|sample| Rectangle::to_erase(0.25, size, key(sample)))
            .collect();
        assert!(drawn.len().abs_diff(N as usize / 4) < 300, "{}", drawn.len());
        for rectangle in &drawn {
            assert!(rectangle.height >= 1 && rectangle.top + rectangle.height <= size.0);
            assert!(rectangle.width >= 1 && rectangle.left + rectangle.width <= size.1);
        }
        if size == (30, 40) {
            let areas = drawn
                .iter()
                .map(|rectangle| (rectangle.height * rectangle.width) as f64 / 1_200.0);
            let mean = areas.sum::<f64>() / drawn.len() as f64;
            assert!((mean - 0.175).abs() < 0.005, "{mean}");
        }
    }
}

#[test]
fn what_is_erased_has_the_mean_colour() {
    let (height, width) = (20, 30);
    let sample = noise(height * width * 3);
    let erased = applied("erase=1", (height, width, 3), key(4));
    let rectangle = Rectangle::to_erase(1.0, (height, width), key(4)).unwrap();
    let mean = |channel: usize| {
        let bytes = sample.iter().skip(channel).step_by(3);
        let sum: f64 = bytes.map(|byte| f64::from(*byte)).sum();
        (sum / (height * width) as f64).round() as u8
    };
    let colour: Vec<u8> = (0..3).map(mean).collect();
    for (i, (found, before)) in erased.chunks(3).zip(sample.chunks(3)).enumerate() {
        let (row, column) = (i / width, i % width);
        let inside = (rectangle.top..rectangle.top + rectangle.height).contains(&row)
            && (rectangle.left..rectangle.left + rectangle.width).contains(&column);
        assert_eq!(found, if inside { &colour } else { before });
    }
}

#[test]
fn options_do_not_disturb_each_other() {
    let parts = [
        "flip",
        "vertical_flip",
        "rotation=20",
        "shift=0.1",
        "shear=5",
        "zoom=0.2",
        "crop=0.5",
        "brightness=0.2",
        "contrast=0.2",
        "saturation=0.2",
        "hue=0.1",
        "erase=0.5",
    ];
    let all = augment(&parts.join(","));
    for part in parts {
        let alone = augment(part);
        for sample in 0..50 {
            let (pose, with_all) = (Pose::draw(&alone, key(sample)), Pose::draw(&all, key(sample)));
            // What the option left as it is may be anything with all of them.
            let still = Pose::STILL;
            assert!(pose.flip_x == with_all.flip_x || part != "flip");
            assert!(pose.flip_y == with_all.flip_y || part != "vertical_flip");
            assert!(pose.rotation == with_all.rotation || pose.rotation == still.rotation);
            assert!(pose.shift == with_all.shift || pose.shift == still.shift);
            assert!(pose.shear == with_all.shear || pose.shear == still.shear);
            assert!(pose.zoom == with_all.zoom || pose.zoom == still.zoom);
            assert!(pose.crop == with_all.crop || pose.crop == still.crop);
            let (tint, with_all) = (Tint::draw(&alone, key(sample)), Tint::draw(&all, key(sample)));
            assert!(tint.brightness == with_all.brightness || tint.brightness == 1.0);
            assert!(tint.contrast == with_all.contrast || tint.contrast == 1.0);
            assert!(tint.saturation == with_all.saturation || tint.saturation == 1.0);
            assert!(tint.hue == with_all.hue || tint.hue == 0.0);
        }
    }
}

#[test]
fn streams_are_not_alike() {
    // Were two streams the same, their draws would rise and fall together.
    let poses = poses("rotation=1,shear=1,shift=1");
    let correlation = |a: fn(&Pose) -> f64, b: fn(&Pose) -> f64| {
        let products = poses.iter().map(|pose| a(pose) * b(pose));
        3.0 * products.sum::<f64>() / N as f64
    };
    assert!(correlation(|pose| pose.rotation, |pose| pose.shear).abs() < 0.03);
    assert!(correlation(|pose| pose.rotation, |pose| pose.shift[0]).abs() < 0.03);
    assert!(correlation(|pose| pose.shift[0], |pose| pose.shift[1]).abs() < 0.03);
    assert!((correlation(|pose| pose.shear, |pose| pose.shear) - 1.0).abs() < 0.05);
}
