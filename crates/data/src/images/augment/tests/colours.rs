//! Colours against a slow reference in floats, one step after the other.

use super::super::colour::Tint;
use super::*;

fn gray([red, green, blue]: [f64; 3]) -> f64 {
    0.299 * red + 0.587 * green + 0.114 * blue
}

/// The steps as they are told, in floats; only the last holds them between 0 and 255.
fn reference(tint: &Tint, sample: &[u8]) -> Vec<f64> {
    let pixels: Vec<[f64; 3]> = sample
        .chunks(3)
        .map(|pixel| [pixel[0], pixel[1], pixel[2]].map(|byte| tint.brightness * f64::from(byte)))
        .collect();
    let mean = pixels.iter().map(|pixel| gray(*pixel)).sum::<f64>() / pixels.len() as f64;
    let (sine, cosine) = (360.0 * tint.hue).to_radians().sin_cos();
    let changed = pixels.iter().flat_map(|pixel| {
        let pixel = pixel.map(|x| mean + tint.contrast * (x - mean));
        let y = gray(pixel);
        let [red, green, blue] = pixel.map(|x| y + tint.saturation * (x - y));
        let i = 0.595716 * red - 0.274453 * green - 0.321263 * blue;
        let q = 0.211456 * red - 0.522591 * green + 0.311135 * blue;
        let (i, q) = (cosine * i - sine * q, sine * i + cosine * q);
        [
            y + 0.95629572 * i + 0.62102442 * q,
            y - 0.2721221 * i - 0.6473806 * q,
            y - 1.10698902 * i + 1.704615 * q,
        ]
    });
    changed.map(|x| x.clamp(0.0, 255.0)).collect()
}

fn check(tint: Tint, sample: &[u8], channels: usize) {
    let [mut found, mut plain] = [sample.to_vec(), sample.to_vec()];
    tint.apply(channels, vectors::are_present(), &mut found);
    tint.apply(channels, false, &mut plain);
    assert!(found == plain, "{tint:?}: vectors differ");
    let expected = match channels {
        3 => reference(&tint, sample),
        // Gray is the same thrice, and has no hue.
        _ => {
            let thrice: Vec<u8> = sample.iter().flat_map(|byte| [*byte; 3]).collect();
            reference(&tint, &thrice).into_iter().step_by(3).collect()
        }
    };
    // Large factors leave fewer bits for fractions.
    let factor = tint.brightness * tint.contrast * tint.saturation.max(1.0);
    let most = 0.55 + 0.02 * factor;
    for (i, (found, expected)) in found.iter().zip(expected).enumerate() {
        let difference = (f64::from(*found) - expected).abs();
        assert!(difference < most, "{tint:?} at {i}: {found}, not {expected}");
    }
}

#[test]
fn each_colour_option_is_its_formula() {
    let none = Tint::NONE;
    let mut tints = Vec::new();
    for factor in [0.0, 0.5, 0.8, 1.2, 2.0, 5.0] {
        tints.extend([
            Tint {
                brightness: factor,
                ..none
            },
            Tint {
                contrast: factor,
                ..none
            },
            Tint {
                saturation: factor,
                ..none
            },
        ]);
    }
    tints.extend([-0.5, -0.1, 0.03, 0.25].map(|hue| Tint { hue, ..none }));
    for tint in tints {
        for n_pixels in [1, 2, 7, 8, 9, 17, 600] {
            check(tint, &noise(3 * n_pixels), 3);
            check(tint, &noise(n_pixels), 1);
        }
    }
}

#[test]
fn colour_options_together_are_one_matrix() {
    let augment = augment("brightness=0:2,contrast=0:2,saturation=0:2,hue=0.5");
    let sample = noise(50 * 40 * 3);
    for i in 0..60 {
        let tint = Tint::draw(&augment, key(i));
        check(tint, &sample, 3);
        check(tint, &sample, 1);
    }
    let loudest = Tint {
        brightness: 5.0,
        contrast: 5.0,
        saturation: 5.0,
        hue: 0.4,
    };
    check(loudest, &sample, 3);
}

#[test]
fn gray_stays_gray() {
    let augment = augment("saturation=0.9,hue=0.5");
    let mut sample: Vec<u8> = (0..=255).flat_map(|level| [level; 3]).collect();
    let before = sample.clone();
    for i in 0..20 {
        Tint::draw(&augment, key(i)).apply(3, vectors::are_present(), &mut sample);
    }
    assert_eq!(sample, before);
    let alone = noise(600);
    assert_eq!(applied("saturation=0.9,hue=0.5", (20, 30, 1), key(1)), alone);
}
