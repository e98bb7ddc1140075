//! Every format decodes to what was drawn, held as the camera was held.

use png::{BitDepth, ColorType};
use tidegate_data::images::Resize;

use crate::draw::{Drawing, QUARTERS, png_chunk};
use crate::help::{check_quarters, decode, form, quarters};

const COLOUR: usize = 3;

/// Decodes in several sizes, in colour and in gray, and holds the quarters against what was drawn.
#[track_caller]
fn check(name: &str, bytes: &[u8], tolerance: f64) {
    check_drawn(name, bytes, &QUARTERS, tolerance);
}

#[track_caller]
fn check_drawn(name: &str, bytes: &[u8], drawn: &[[u8; 3]; 4], tolerance: f64) {
    for (height, width) in [(32, 32), (48, 64), (9, 15), (200, 100)] {
        for channels in [1, COLOUR] {
            let sample = decode(name, bytes, form(height, width, channels, Resize::Stretch));
            let sample = sample.unwrap_or_else(|fault| panic!("{name}: {fault}"));
            let found = quarters(&sample, height, width, channels);
            let what = format!("{name} as {height}×{width}×{channels}");
            check_quarters(&what, &found, drawn, tolerance);
        }
    }
}

/// Gray pictures have no colours to be held against.
fn in_gray() -> [[u8; 3]; 4] {
    QUARTERS.map(|colour| [crate::draw::gray(&colour); 3])
}

#[test]
fn jpeg() {
    // Odd sizes have blocks that are not full.
    for (width, height) in [(64, 48), (61, 47), (400, 300), (17, 90)] {
        let drawing = Drawing::quarters(width, height);
        check("1.jpg", &drawing.jpeg(), 6.0);
        check("1.jpg", &drawing.progressive_jpeg(), 6.0);
        check_drawn("1.jpg", &drawing.gray_jpeg(), &in_gray(), 4.0);
        check("1.jpg", &drawing.cmyk_jpeg(false), 8.0);
        check("1.jpg", &drawing.cmyk_jpeg(true), 12.0);
    }
}

#[test]
fn png() {
    for (width, height) in [(64, 48), (61, 47), (6, 90)] {
        let drawing = Drawing::quarters(width, height);
        let gray = drawing.gray();
        let with_alpha = |alpha: u8| gray.iter().flat_map(|gray| [*gray, alpha]).collect::<Vec<u8>>();
        let deep_gray = |bytes: &[u8]| bytes.iter().flat_map(|byte| [*byte, 0x5a]).collect::<Vec<u8>>();
        for (colour, depth, data) in [
            (ColorType::Grayscale, BitDepth::Eight, gray.clone()),
            (ColorType::Grayscale, BitDepth::Sixteen, deep_gray(&gray)),
            (ColorType::GrayscaleAlpha, BitDepth::Eight, with_alpha(128)),
            (
                ColorType::GrayscaleAlpha,
                BitDepth::Sixteen,
                deep_gray(&with_alpha(0)),
            ),
        ] {
            let bytes = drawing.png_of(colour, depth, &data);
            check_drawn(&format!("{colour:?} {depth:?}.png"), &bytes, &in_gray(), 1.0);
        }
        for (colour, depth, data) in [
            (ColorType::Rgb, BitDepth::Eight, drawing.pixels.clone()),
            (ColorType::Rgb, BitDepth::Sixteen, drawing.deep(u16::to_be_bytes)),
            // What shows through a picture is left out: its colours are there.
            (ColorType::Rgba, BitDepth::Eight, drawing.with_alpha(0)),
            (ColorType::Rgba, BitDepth::Eight, drawing.with_alpha(200)),
        ] {
            let bytes = drawing.png_of(colour, depth, &data);
            check(&format!("{colour:?} {depth:?}.png"), &bytes, 1.0);
        }
        check("palette.png", &drawing.palette_png(), 1.0);
        check("interlaced.png", &drawing.interlaced_png(), 1.0);
    }
    // One bit for each pixel.
    let halves = Drawing::new(64, 10, |x, _| if x < 32 { [255; 3] } else { [0; 3] });
    let row = [[0xff; 4], [0; 4]].concat();
    let bytes = halves.png_of(ColorType::Grayscale, BitDepth::One, &row.repeat(10));
    let sample = decode("1.png", &bytes, form(4, 4, 1, Resize::Stretch)).unwrap();
    // Each of the four is the mean of 32 columns, those in its middle counting most: an eighth is from the other half.
    assert_eq!(sample, [255, 223, 32, 0].repeat(4));
}

#[test]
fn a_palette_with_alpha() {
    let drawing = Drawing::quarters(20, 20);
    let whole = drawing.palette_png();
    let at = whole.windows(4).position(|name| name == b"IDAT").unwrap() - 4;
    let alpha = png_chunk(b"tRNS", &[0, 128]);
    check("1.png", &[&whole[..at], &alpha, &whole[at..]].concat(), 1.0);
}

#[test]
fn webp_bmp_gif_and_tiff() {
    for (width, height) in [(64, 48), (61, 47)] {
        let drawing = Drawing::quarters(width, height);
        check("1.webp", &drawing.webp(), 1.0);
        check("1.bmp", &drawing.bmp(), 1.0);
        // Of an animation, the first picture.
        check("1.gif", &drawing.gif(), 4.0);
        check("8.tif", &drawing.tiff(), 1.0);
        check("16.tif", &drawing.deep_tiff(), 1.0);
    }
}

#[test]
fn what_a_file_is_says_its_beginning_not_its_name() {
    let drawing = Drawing::quarters(30, 30);
    check("1.png", &drawing.jpeg(), 6.0);
    check("1.jpg", &drawing.bmp(), 1.0);
    check("1.gif", &drawing.webp(), 1.0);
}

/// What each orientation means, as the Exif standard has it: which side of the picture is the first row of the file, and
/// which is its first column.
#[test]
fn pictures_stand_as_the_camera_was_held() {
    let [upper_left, upper_right, lower_left, lower_right] = QUARTERS;
    let stored = [
        [upper_left, upper_right, lower_left, lower_right],
        [upper_right, upper_left, lower_right, lower_left],
        [lower_right, lower_left, upper_right, upper_left],
        [lower_left, lower_right, upper_left, upper_right],
        [upper_left, lower_left, upper_right, lower_right],
        [upper_right, lower_right, upper_left, lower_left],
        [lower_right, upper_right, lower_left, upper_left],
        [lower_left, upper_left, lower_right, upper_right],
    ];
    for (orientation, quarters) in (1..=8).zip(stored) {
        let drawing = Drawing::of(quarters, 80, 48);
        check(
            &format!("{orientation}.jpg"),
            &drawing.jpeg_held(orientation),
            6.0,
        );
        // Bars are beside what stands upright: a quarter turn has made it 48 wide and 80 high.
        let sample = decode(
            "1.jpg",
            &drawing.jpeg_held(orientation),
            form(40, 40, 3, Resize::Fit),
        )
        .unwrap();
        let (row, column) = (&sample[20 * 120..21 * 120], 60);
        let above = &sample[column..column + 3];
        match orientation {
            5..=8 => assert!(row[..3] == [0; 3] && above != [0; 3], "{orientation}"),
            _ => assert!(row[..3] != [0; 3] && above == [0; 3], "{orientation}"),
        }
    }
    // What is no orientation is none.
    for orientation in [0, 9, 255] {
        check("1.jpg", &Drawing::quarters(80, 48).jpeg_held(orientation), 6.0);
    }
}

#[test]
fn what_stands_before_a_picture_may_be_long() {
    let drawing = Drawing::quarters(40, 40);
    let noted = |n: usize| {
        drawing.jpeg_with(jpeg_encoder::ColorType::Rgb, &drawing.pixels, |encoder| {
            for _ in 0..n {
                encoder.add_app_segment(9, vec![0xff; 60_000]).unwrap();
            }
        })
    };
    for n in [1, 8, 40, 80] {
        check(&format!("{n}.jpg"), &noted(n), 6.0);
    }
    // What no segment tells the length of is looked through, up to 4 MB.
    let plain = drawing.jpeg();
    let padded = |n: usize| [&plain[..2], &vec![0; n], &plain[2..]].concat();
    check("padded.jpg", &padded(3 << 20), 6.0);
    let fault = decode("1.jpg", &padded(5 << 20), form(8, 8, 3, Resize::Stretch)).unwrap_err();
    assert!(fault.contains("ends within its header"), "{fault}");
    // Texts and profiles of a PNG are passed over.
    let whole = drawing.png();
    for (name, n) in [
        (b"tEXt", 3 << 20),
        (b"iTXt", 3 << 20),
        (b"zTXt", 3 << 20),
        (b"iCCP", 3 << 20),
        // What a camera tells is as long as a segment of a JPEG at the most.
        (b"eXIf", 65_000),
    ] {
        let body = [&b"note\0"[..], &vec![b'x'; n]].concat();
        let noted = [&whole[..33], &png_chunk(name, &body), &whole[33..]].concat();
        check(&format!("{}.png", name.escape_ascii()), &noted, 1.0);
    }
}
