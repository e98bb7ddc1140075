//! What augmentation promises, at its surface.

mod colours;
mod distribution;
mod geometry;
mod mixing;
mod options;

use super::*;
use crate::sketch::hash::mix;

/// Bytes without any order: the hardest edges there are.
fn noise(n: usize) -> Vec<u8> {
    (0..n as u64).map(|i| (mix(i) >> 20) as u8).collect()
}

fn key(sample: u64) -> SampleKey {
    SampleKey {
        seed: 11,
        epoch: 2,
        sample,
    }
}

fn augment(text: &str) -> Augment {
    Augment::parse(text).unwrap()
}

/// Noise as augmentation makes it, for outputs of this height, width and channels.
fn applied(text: &str, (height, width, channels): (usize, usize, usize), key: SampleKey) -> Vec<u8> {
    let augment = augment(text);
    let stored = augment.stored_size(height, width);
    let sample = noise(stored.0 * stored.1 * channels);
    let mut sampler = Sampler::new(&augment, stored, (height, width), channels);
    let mut into = vec![0; height * width * channels];
    sampler.apply(key, &sample, &mut into);
    let mut plain = vec![0; into.len()];
    sampler.plainly().apply(key, &sample, &mut plain);
    assert!(
        into == plain,
        "{text}, {height}×{width}×{channels}: vectors differ"
    );
    into
}

/// Heights, widths and channels: single pixels and lines, narrower than a vector, and as photographs are.
const SHAPES: [(usize, usize, usize); 14] = [
    (1, 1, 1),
    (1, 1, 3),
    (1, 9, 3),
    (9, 1, 3),
    (1, 17, 1),
    (2, 2, 1),
    (2, 3, 3),
    (3, 2, 3),
    (5, 8, 3),
    (7, 12, 1),
    (16, 16, 3),
    (40, 25, 3),
    (31, 64, 1),
    (150, 150, 3),
];

const EVERYTHING: &str = "flip,vertical-flip,rotation=35,shift=0.2:0.1,shear=15,zoom=0.7:1.4,crop=0.3,brightness=0.3,\
                          contrast=0.3,saturation=0.4,hue=0.1,erase=0.5";

#[test]
fn vectors_change_nothing_and_the_same_key_draws_the_same() {
    for shape in SHAPES {
        for fill in ["nearest", "reflect", "wrap", "constant"] {
            let text = format!("{EVERYTHING},fill={fill}");
            let alone = format!("rotation=180,zoom=0.3:2,fill={fill}");
            for sample in 0..20 {
                assert_eq!(
                    applied(&text, shape, key(sample)),
                    applied(&text, shape, key(sample))
                );
                applied(&alone, shape, key(sample));
            }
        }
    }
}

#[test]
fn the_bytes_never_change() {
    // What other machines and versions make of the same key: a run that is repeated sees the same samples.
    let sums = ["nearest", "reflect", "wrap", "constant"].map(|fill| {
        let bytes = applied(&format!("{EVERYTHING},fill={fill}"), (40, 25, 3), key(1));
        bytes
            .iter()
            .fold(0, |sum, byte| mix(sum ^ u64::from(*byte)) & 0xffff_ffff)
    });
    assert_eq!(sums, [2253863765, 975714852, 1248152271, 3528992075]);
}

#[test]
fn another_epoch_seed_or_sample_is_another_view() {
    let shape = (40, 25, 3);
    let text = "rotation=20,crop=0.5,brightness=0.2";
    let first = applied(text, shape, key(1));
    let others = [
        SampleKey { epoch: 3, ..key(1) },
        SampleKey { seed: 12, ..key(1) },
        key(2),
    ];
    for other in others {
        assert_ne!(first, applied(text, shape, other));
    }
}

#[test]
fn nothing_leaves_a_sample_as_it_is() {
    for shape in SHAPES {
        let sample = noise(shape.0 * shape.1 * shape.2);
        for text in [
            "fill=wrap",
            "rotation=0,shift=0,zoom=0,brightness=0,hue=0,erase=0",
        ] {
            assert_eq!(applied(text, shape, key(1)), sample, "{text} {shape:?}");
        }
    }
}

#[test]
fn to_judge_by_the_centre_is_taken() {
    let augment = augment("crop=0.5,flip,hue=0.1");
    let sampler = Sampler::new(&augment, (6, 5), (3, 4), 1);
    let stored: Vec<u8> = (0..30).collect();
    let mut into = [0; 12];
    sampler.centre(&stored, &mut into);
    assert_eq!(into, [5, 6, 7, 8, 10, 11, 12, 13, 15, 16, 17, 18]);
    let mut whole = vec![0; 30];
    Sampler::new(&augment, (6, 5), (6, 5), 1).centre(&stored, &mut whole);
    assert_eq!(whole, stored);
}

#[test]
fn a_sampler_holds_what_it_says() {
    let small = Sampler::bytes_needed(1);
    assert_eq!(Sampler::bytes_needed(151) - small, 150 * 12);
    assert!((100..2_000).contains(&small), "{small}");
}
