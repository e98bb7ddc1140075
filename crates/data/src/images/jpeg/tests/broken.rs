//! Files that are cut off, broken or not made for us.

use super::*;

/// Where a marker stands.
fn find(bytes: &[u8], marker: u8) -> usize {
    let pair = [0xff, marker];
    bytes.windows(2).position(|two| two == pair).unwrap()
}

fn fault(bytes: &[u8]) -> Fault {
    let target = Target {
        rectangle: Rectangle::whole(60, 40),
        width: 20,
        height: 20,
        channels: 3,
    };
    try_decode(&mut Decoder::default(), bytes, &target).unwrap_err()
}

#[test]
fn what_is_cut_off_says_how_much_is_there() {
    let sequential = file(PLAIN, (60, 40));
    let codings = [
        (false, false, 0),
        (false, false, 2),
        (false, true, 0),
        (true, false, 0),
    ];
    for (progressive, optimized, interval) in codings {
        let coding = Coding {
            progressive,
            optimized,
            interval,
            ..PLAIN
        };
        let bytes = file(coding, (60, 40));
        let mut last = 0;
        for end in 0..bytes.len() - 2 {
            match fault(&bytes[..end]) {
                Fault::Truncated { percent } => {
                    assert!(percent >= last, "{percent} % after {last} %, {coding:?}");
                    last = percent;
                }
                other => panic!("{other} at {end} of {}, {coding:?}", bytes.len()),
            }
        }
        assert!(last >= 50, "{last} %, {coding:?}");
    }
    let middle = find(&sequential, 0xda) + (sequential.len() - find(&sequential, 0xda)) / 2;
    let Fault::Truncated { percent } = fault(&sequential[..middle]) else {
        panic!("is not cut off");
    };
    assert!((25..75).contains(&percent), "{percent}");
    assert_eq!(
        fault(&sequential[..10]).to_string(),
        "ends too early: 0% of the picture is there"
    );
}

#[test]
fn the_end_may_be_missing_or_followed_by_anything() {
    for progressive in [false, true] {
        let bytes = file(Coding { progressive, ..PLAIN }, (60, 40));
        let target = whole(&bytes, (30, 20), 3);
        let expected = decoded(&bytes, &target);
        assert!(decoded(&bytes[..bytes.len() - 2], &target) == expected);
        assert!(decoded(&bytes[..bytes.len() - 1], &target) == expected);
        let more = [&bytes[..], b"anything\xff\xd8\xff\xda"].concat();
        assert!(decoded(&more, &target) == expected);
    }
}

#[test]
fn markers_may_stand_behind_fill_bytes() {
    for interval in [0, 3] {
        let bytes = file(Coding { interval, ..PLAIN }, (60, 40));
        let target = whole(&bytes, (60, 40), 3);
        let mut filled = Vec::new();
        for (at, byte) in bytes.iter().enumerate() {
            let is_marker =
                *byte == 0xff && at > 0 && bytes.get(at + 1).is_some_and(|next| ![0, 0xff].contains(next));
            let within = at > find(&bytes, 0xda) || [0xdb, 0xc4].contains(bytes.get(at + 1).unwrap_or(&0));
            if is_marker && within {
                filled.extend_from_slice(&[0xff; 3]);
            }
            filled.push(*byte);
        }
        assert!(filled.len() > bytes.len());
        assert!(decoded(&filled, &target) == decoded(&bytes, &target));
    }
}

#[test]
fn restart_markers_have_an_order() {
    let mut bytes = file(Coding { interval: 2, ..PLAIN }, (60, 40));
    let second = find(&bytes, 0xd1);
    bytes[second + 1] = 0xd5;
    let what = "a restart marker out of order";
    let at = second + 2;
    assert_eq!(fault(&bytes), Fault::Broken { at, what });
}

/// The tables of the picture before are not its own.
#[test]
fn a_file_without_tables_is_broken() {
    let bytes = file(PLAIN, (60, 40));
    let mut bare = bytes.clone();
    while let Some(at) = bare.windows(2).position(|pair| pair == [0xff, 0xc4]) {
        let length = usize::from(u16::from_be_bytes([bare[at + 2], bare[at + 3]]));
        bare.drain(at..at + 2 + length);
    }
    let target = whole(&bytes, (20, 20), 3);
    let mut decoder = Decoder::default();
    try_decode(&mut decoder, &bytes, &target).unwrap();
    let fault = try_decode(&mut decoder, &bare, &target).unwrap_err();
    assert!(fault.to_string().ends_with("no Huffman table"), "{fault}");
}

#[test]
fn wide_quantization_tables_are_read() {
    let bytes = file(PLAIN, (60, 40));
    let mut wide = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if bytes[at..].starts_with(&[0xff, 0xdb, 0, 67]) {
            wide.extend_from_slice(&[0xff, 0xdb, 0, 131, 0x10 | bytes[at + 4]]);
            wide.extend(bytes[at + 5..at + 69].iter().flat_map(|factor| [0, *factor]));
            at += 69;
        } else {
            wide.push(bytes[at]);
            at += 1;
        }
    }
    assert_eq!(wide.len(), bytes.len() + 128);
    let target = whole(&bytes, (60, 40), 3);
    assert!(decoded(&wide, &target) == decoded(&bytes, &target));
}

/// With Adobe's word for it, or by their names, three components are red, green and blue as they are.
#[test]
fn colours_may_be_told_as_they_are() {
    let coding = Coding {
        sampling: SamplingFactor::F_1_1,
        ..PLAIN
    };
    let bytes = file(coding, (60, 40));
    let luma = decoded(&bytes, &whole(&bytes, (60, 40), 1));
    let behind = 4 + usize::from(u16::from_be_bytes([bytes[4], bytes[5]])) - 2 + 2;
    let adobe = [
        &[0xff, 0xd8, 0xff, 0xee, 0, 14][..],
        b"Adobe\0\0\0\0\0\0\0",
        &bytes[behind..],
    ]
    .concat();
    let mut named = [&[0xff, 0xd8][..], &bytes[behind..]].concat();
    let (frame, scan) = (find(&named, 0xc0), find(&named, 0xda));
    for (index, name) in b"RGB".iter().enumerate() {
        named[frame + 10 + 3 * index] = *name;
        named[scan + 5 + 2 * index] = *name;
    }
    for bytes in [adobe, named] {
        let pixels = decoded(&bytes, &whole(&bytes, (60, 40), 3));
        let red: Vec<u8> = pixels.chunks(3).map(|pixel| pixel[0]).collect();
        assert_eq!(red, luma);
        assert!(decoded(&bytes, &whole(&bytes, (60, 40), 1)) != luma);
    }
}

/// Whatever the bytes are: an answer, no more memory than the header says, and nothing of the pictures before.
#[test]
fn no_bytes_do_harm() {
    let codings = [
        PLAIN,
        Coding { interval: 2, ..PLAIN },
        Coding {
            optimized: true,
            ..PLAIN
        },
        Coding {
            progressive: true,
            ..PLAIN
        },
        Coding {
            progressive: true,
            interval: 3,
            sampling: SamplingFactor::F_4_2,
            ..PLAIN
        },
    ];
    let mut files: Vec<Vec<u8>> = codings.map(|coding| file(coding, (60, 40))).into();
    files.push(encoded(PLAIN, &[100; 4 * 400], (20, 20), ColorType::Cmyk));
    files.extend(
        samples::all()
            .into_iter()
            .flat_map(|sample| [sample.plain, sample.progressive]),
    );
    let mut state = 0x0123_4567_89ab_cdef_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 16) as usize % below
    };
    let (mut n_whole, mut n_faults) = (0, 0);
    let mut used = Decoder::default();
    for round in 0..1_500 {
        for file in &files {
            let mut bytes = file.clone();
            for _ in 0..1 + random(4) {
                let at = random(bytes.len());
                match random(8) {
                    0 => bytes[at] = 0xff,
                    1 => bytes.truncate(at.max(1)),
                    2 => bytes.insert(at, random(256) as u8),
                    3 => drop(bytes.remove(at)),
                    4 => bytes[at] ^= 1 << random(8),
                    _ => bytes[at] = random(256) as u8,
                }
                bytes.push(0);
            }
            let target = Target {
                rectangle: Rectangle {
                    x: 3.0,
                    y: 2.5,
                    width: 40.0,
                    height: 30.0,
                },
                width: 1 + round % 50,
                height: 17,
                channels: if round % 3 == 0 { 1 } else { 3 },
            };
            let told = header(&bytes).map_or(0, |header| header.bytes_to_decode(&target));
            if told > 64 << 20 {
                continue;
            }
            let stride = target.width * target.channels;
            let mut out = vec![0; stride * target.height];
            let kernels = [Kernels::Portable, Kernels::default()][round % 2];
            let (decoded, taken) = counting::peak(|| {
                let bytes_out = &mut out[..];
                let canvas = Canvas {
                    bytes: bytes_out,
                    stride,
                };
                Decoder::with_kernels(kernels).decode(&bytes, &target, canvas)
            });
            assert!(taken <= told, "{taken} bytes instead of {told}");
            let mut again = vec![0; out.len()];
            let canvas = Canvas {
                bytes: &mut again,
                stride,
            };
            assert_eq!(used.decode(&bytes, &target, canvas), decoded);
            assert!(decoded.is_err() || again == out, "a picture of its own");
            match decoded {
                Ok(()) => n_whole += 1,
                Err(_) => n_faults += 1,
            }
        }
    }
    assert!(n_whole > 1_000 && n_faults > 1_000, "{n_whole}, {n_faults}");
}
