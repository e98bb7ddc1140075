//! What the beginning of a file tells.

use super::*;

#[test]
fn a_prefix_is_enough_once_it_holds_the_frame() {
    for progressive in [false, true] {
        let bytes = file(Coding { progressive, ..PLAIN }, (60, 40));
        let whole = header(&bytes).unwrap();
        assert_eq!((whole.width, whole.height, whole.n_components), (60, 40, 3));
        assert_eq!((whole.progressive, whole.orientation), (progressive, 1));
        let enough = (0..bytes.len())
            .find(|end| header(&bytes[..*end]).is_ok())
            .unwrap();
        for end in 0..bytes.len() {
            match end < enough {
                true => assert_eq!(header(&bytes[..end]), Err(Fault::Short)),
                false => assert_eq!(header(&bytes[..end]).as_ref(), Ok(&whole)),
            }
        }
        assert!(enough < 100, "{enough}");
    }
}

#[test]
fn other_files_are_told_apart() {
    for bytes in [&b"\x89PNG\r\n\x1a\n"[..], b"GIF89a", b"\xff\xe0", b"x", &[0; 100]] {
        assert_eq!(header(bytes), Err(Fault::Foreign));
    }
    for bytes in [&b""[..], b"\xff", b"\xff\xd8", b"\xff\xd8\xff"] {
        assert_eq!(header(bytes), Err(Fault::Short));
    }
}

/// A frame header alone.
fn frame(marker: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16 + 2).to_be_bytes();
    [&[0xff, 0xd8, 0xff, marker][..], &length, body].concat()
}

const BODY: [u8; 15] = [8, 0, 40, 0, 60, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1];

#[test]
fn what_is_not_supported_has_a_name() {
    let changed = |at: usize, value: u8| {
        let mut body = BODY;
        body[at] = value;
        frame(0xc0, &body)
    };
    for (bytes, expected) in [
        (frame(0xc3, &BODY), "unsupported: lossless coding"),
        (frame(0xc6, &BODY), "unsupported: hierarchical coding"),
        (frame(0xc9, &BODY), "unsupported: arithmetic coding"),
        (frame(0xcf, &BODY), "unsupported: arithmetic coding"),
        (changed(0, 12), "unsupported: 12 bits a sample"),
        (
            changed(2, 0),
            "unsupported: a height that is told after the picture",
        ),
        (changed(4, 0), "0×40 pixels"),
        (changed(5, 2), "unsupported: neither 1, 3 nor 4 components"),
        (changed(5, 0), "broken at byte 6: no components"),
        (
            changed(5, 4),
            "broken at byte 6: a frame header that is too short",
        ),
        (
            changed(7, 0x52),
            "broken at byte 6: sampling or table of a component out of range",
        ),
        (
            changed(8, 4),
            "broken at byte 6: sampling or table of a component out of range",
        ),
        (frame(0xda, &BODY), "broken at byte 6: no frame header"),
        (
            frame(0xc0, &BODY[..4]),
            "broken at byte 6: a frame header that is too short",
        ),
    ] {
        assert_eq!(header(&bytes).unwrap_err().to_string(), expected);
    }
    for marker in [0xc0, 0xc1, 0xc2] {
        assert_eq!(header(&frame(marker, &BODY)).unwrap().progressive, marker == 0xc2);
    }
}

/// An Exif segment with an orientation behind another entry.
fn exif(little: bool, orientation: u16) -> Vec<u8> {
    let short = |value: u16| match little {
        true => value.to_le_bytes(),
        false => value.to_be_bytes(),
    };
    let long = |value: u32| match little {
        true => value.to_le_bytes(),
        false => value.to_be_bytes(),
    };
    let mut body = b"Exif\0\0".to_vec();
    body.extend_from_slice(if little { b"II" } else { b"MM" });
    body.extend_from_slice(&short(42));
    body.extend_from_slice(&long(10));
    body.extend_from_slice(&[0; 2]);
    body.extend_from_slice(&short(2));
    for (tag, value) in [(0x0100, 60), (0x0112, orientation)] {
        body.extend_from_slice(&short(tag));
        body.extend_from_slice(&short(3));
        body.extend_from_slice(&long(1));
        body.extend_from_slice(&short(value));
        body.extend_from_slice(&[0; 2]);
    }
    body
}

fn with_exif(body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u16 + 2).to_be_bytes();
    [
        &[0xff, 0xd8, 0xff, 0xe1][..],
        &length,
        body,
        &frame(0xc0, &BODY)[2..],
    ]
    .concat()
}

#[test]
fn orientations_are_told_in_either_order_of_bytes() {
    for little in [false, true] {
        for orientation in 1..=8 {
            let bytes = with_exif(&exif(little, orientation));
            assert_eq!(u16::from(header(&bytes).unwrap().orientation), orientation);
        }
        for orientation in [0, 9, 0x0600, u16::MAX] {
            assert_eq!(
                header(&with_exif(&exif(little, orientation)))
                    .unwrap()
                    .orientation,
                1
            );
        }
        // Cut off anywhere, or with any byte another.
        let whole = exif(little, 6);
        for at in 0..whole.len() {
            let cut = header(&with_exif(&whole[..at])).unwrap().orientation;
            assert!(cut == 1 || at + 2 >= whole.len());
            for value in [0, 0x7f, 0xff] {
                let mut changed = whole.clone();
                changed[at] = value;
                assert!((1..=8).contains(&header(&with_exif(&changed)).unwrap().orientation));
            }
        }
    }
}

/// A picture of one component has the same units, whatever sampling it tells.
#[test]
fn the_sampling_of_a_single_component_means_nothing() {
    let gray: Vec<u8> = waves((50, 40)).chunks(3).map(|pixel| pixel[1]).collect();
    let bytes = encoded(PLAIN, &gray, (50, 40), ColorType::Luma);
    let target = whole(&bytes, (20, 30), 1);
    let expected = decoded(&bytes, &target);
    let frame = bytes.windows(2).position(|pair| pair == [0xff, 0xc0]).unwrap();
    for sampling in [0x11, 0x21, 0x33, 0x42, 0x14] {
        let mut changed = bytes.clone();
        changed[frame + 11] = sampling;
        assert!(decoded(&changed, &target) == expected, "{sampling:x}");
    }
}
