//! Mixing: partners, shares, and what is written.

use super::*;

fn batch(first: u64) -> BatchKey {
    BatchKey {
        seed: 4,
        epoch: 1,
        first,
    }
}

#[test]
fn a_sample_alone_is_left_as_it_is() {
    let both = augment("mixup=0.2,cutmix=1");
    assert_eq!(both.mixing(batch(0), 1, (8, 8)), None);
    assert_eq!(both.mixing(batch(0), 0, (8, 8)), None);
    assert_eq!(augment("flip").mixing(batch(0), 32, (8, 8)), None);
    assert!(both.mixes() && !augment("flip").mixes());
}

#[test]
fn every_sample_is_the_partner_of_one_other() {
    let mixup = augment("mixup=0.4");
    for n_samples in 2..40 {
        let mixing = mixup
            .mixing(batch(n_samples), n_samples as usize, (8, 8))
            .unwrap();
        let mut partners: Vec<usize> = (0..n_samples as usize).map(|i| mixing.partner(i)).collect();
        assert!(partners.iter().enumerate().all(|(i, partner)| i != *partner));
        partners.sort();
        assert!(partners.into_iter().eq(0..n_samples as usize));
    }
}

#[test]
fn half_of_the_batches_get_each_and_one_does_not_disturb_the_other() {
    let (both, mixup, cutmix) = (
        augment("mixup=0.2,cutmix=1"),
        augment("mixup=0.2"),
        augment("cutmix=1"),
    );
    let mut cut = 0;
    for first in 0..2_000 {
        let of = |augment: &Augment| augment.mixing(batch(first), 32, (20, 30)).unwrap();
        let drawn = of(&both);
        cut += usize::from(drawn.cut.is_some());
        let alone = if drawn.cut.is_some() { &cutmix } else { &mixup };
        assert_eq!(drawn, of(alone));
        assert_eq!(of(&mixup).distance, of(&cutmix).distance);
    }
    assert!((900..1_100).contains(&cut), "{cut}");
}

#[test]
fn the_share_is_the_area_that_is_left() {
    let cutmix = augment("cutmix=1");
    let mut sum = 0.0;
    for (first, (height, width)) in (0..3_000).zip([(20, 30), (1, 1), (7, 64)].into_iter().cycle()) {
        let mixing = cutmix.mixing(batch(first), 8, (height, width)).unwrap();
        let [own, partner] = [vec![1u8; height * width * 3], vec![0u8; height * width * 3]];
        let mut into = vec![9.0; own.len()];
        mixing.write([&own, &partner], (width, 3), &mut into);
        let left = into.iter().sum::<f32>() / into.len() as f32;
        assert!((left - mixing.share).abs() < 1e-5, "{mixing:?}: {left}");
        sum += if height == 20 { mixing.share } else { 0.0 };
    }
    // Half of λ, and a little more, for some of the rectangle is outside.
    assert!((0.5..0.75).contains(&(sum / 1_000.0)), "{sum}");
}

#[test]
fn blending_is_linear_in_bytes_and_in_numbers() {
    let mixing = Mixing {
        n_samples: 2,
        distance: 1,
        share: 0.75,
        cut: None,
    };
    let mut into = [0.0; 4];
    mixing.write([&[0u8, 100, 200, 255], &[100, 100, 0, 255]], (2, 1), &mut into);
    assert_eq!(into, [25.0, 100.0, 150.0, 255.0]);
    mixing.write(
        [&[0.5f32, 0.0, -1.0, 0.1], &[0.5, 1.0, 1.0, 0.1]],
        (2, 1),
        &mut into,
    );
    assert_eq!(into, [0.5, 0.25, -0.5, 0.1]);
}

#[test]
fn a_rectangle_of_the_partner_is_put_in() {
    let mixing = Mixing {
        n_samples: 2,
        distance: 1,
        share: 0.5,
        cut: Some(Rectangle {
            top: 1,
            left: 1,
            height: 1,
            width: 2,
        }),
    };
    let own: Vec<u8> = (0..9).collect();
    let mut into = [0.0; 9];
    mixing.write([&own, &[90; 9]], (3, 1), &mut into);
    assert_eq!(into, [0.0, 1.0, 2.0, 3.0, 90.0, 90.0, 6.0, 7.0, 8.0]);
}

#[test]
fn shares_are_beta_distributed() {
    let mixup = augment("mixup=0.2");
    let shares = (0..20_000).map(|first| f64::from(mixup.mixing(batch(first), 4, (1, 1)).unwrap().share));
    let squares: Vec<f64> = shares.map(|share| (share - 0.5) * (share - 0.5)).collect();
    let variance = squares.iter().sum::<f64>() / 20_000.0;
    assert!((variance - 1.0 / (4.0 * 1.4)).abs() < 0.005, "{variance}");
}
