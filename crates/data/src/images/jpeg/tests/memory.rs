//! What a picture takes is known from its header.

use super::*;

/// Decodes, and holds what that took against what the header said.
fn check(bytes: &[u8], target: &Target) {
    let told = header(bytes).unwrap().bytes_to_decode(target);
    let mut out = vec![0; target.width * target.height * target.channels];
    let mut decoder = Decoder::default();
    let (decoded, taken) = counting::peak(|| {
        let canvas = Canvas {
            bytes: &mut out,
            stride: target.width * target.channels,
        };
        decoder.decode(bytes, target, canvas)
    });
    decoded.unwrap();
    assert_eq!(decoder.held_bytes(), taken);
    assert!(taken <= told, "{taken} bytes instead of {told}");
    if taken > 1 << 20 {
        assert!(
            told as f64 <= 1.3 * taken as f64,
            "{told} bytes are told and {taken} taken"
        );
    }
}

#[test]
fn the_header_tells_how_much() {
    for size in [(1, 1), (40, 30), (900, 400), (100, 700)] {
        for (progressive, optimized) in [(false, false), (false, true), (true, false)] {
            for sampling in [
                SamplingFactor::F_1_1,
                SamplingFactor::F_2_2,
                SamplingFactor::F_4_1,
            ] {
                let coding = Coding {
                    progressive,
                    optimized,
                    sampling,
                    ..PLAIN
                };
                let bytes = file(coding, size);
                for out in [size, (150, 150), (1, 1), (700, 700)] {
                    for channels in [1, 3] {
                        let target = whole(&bytes, out, channels);
                        check(&bytes, &target);
                        let rectangle = Rectangle {
                            x: size.0 as f64 * 0.3,
                            y: size.1 as f64 * 0.6,
                            width: size.0 as f64 * 0.5,
                            height: size.1 as f64 * 0.2,
                        };
                        check(&bytes, &Target { rectangle, ..target });
                    }
                }
            }
        }
    }
}

/// Its pixels would be 1.2 GB.
#[test]
fn a_huge_photo_takes_a_few_megabytes() {
    let mut bytes = file(PLAIN, (16, 16));
    let size = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap() + 5;
    bytes[size..size + 4].copy_from_slice(&[20_000u16.to_be_bytes(), 20_000u16.to_be_bytes()].concat());
    let target = whole(&bytes, (224, 224), 3);
    let told = header(&bytes).unwrap().bytes_to_decode(&target);
    assert!(told < 2 << 20, "{told}");
}
