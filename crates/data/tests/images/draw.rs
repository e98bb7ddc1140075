//! Pictures drawn by the tests, and files of every format.

use std::io::{Cursor, Write};

use image::codecs::{bmp, gif, tiff, webp};
use image::{ExtendedColorType, ImageEncoder};
use jpeg_encoder::{ColorType, Encoder};

/// What four quarters are painted with: upper left, upper right, lower left, lower right.
pub(crate) const QUARTERS: [[u8; 3]; 4] = [[220, 40, 30], [40, 190, 70], [30, 70, 210], [230, 210, 60]];

/// Red, green and blue of every pixel, row by row.
#[derive(Debug, Clone)]
pub(crate) struct Drawing {
    pub width: usize,
    pub height: usize,
    pub pixels: Vec<u8>,
}

impl Drawing {
    pub(crate) fn new(width: usize, height: usize, colour: impl Fn(usize, usize) -> [u8; 3]) -> Drawing {
        let places = (0..width * height).map(|i| (i % width, i / width));
        Drawing {
            width,
            height,
            pixels: places.flat_map(|(x, y)| colour(x, y)).collect(),
        }
    }

    /// Four quarters of these colours.
    pub(crate) fn of(colours: [[u8; 3]; 4], width: usize, height: usize) -> Drawing {
        Drawing::new(width, height, |x, y| {
            colours[2 * usize::from(2 * y >= height) + usize::from(2 * x >= width)]
        })
    }

    pub(crate) fn quarters(width: usize, height: usize) -> Drawing {
        Drawing::of(QUARTERS, width, height)
    }

    /// Four quarters of colours that no other number has.
    pub(crate) fn numbered(number: u64, width: usize, height: usize) -> Drawing {
        let colour = |quarter: u64| {
            let bits = (number * 4 + quarter + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            [bits >> 56, bits >> 48, bits >> 40].map(|bits| bits as u8)
        };
        Drawing::of(
            std::array::from_fn(|quarter| colour(quarter as u64)),
            width,
            height,
        )
    }

    pub(crate) fn gray(&self) -> Vec<u8> {
        self.pixels.chunks_exact(3).map(gray).collect()
    }

    /// With this as the fourth value of each pixel.
    pub(crate) fn with_alpha(&self, alpha: u8) -> Vec<u8> {
        let pixels = self.pixels.chunks_exact(3);
        pixels
            .flat_map(|pixel| [pixel[0], pixel[1], pixel[2], alpha])
            .collect()
    }

    fn size(&self) -> (u32, u32) {
        (self.width as u32, self.height as u32)
    }

    pub(crate) fn jpeg(&self) -> Vec<u8> {
        self.jpeg_with(ColorType::Rgb, &self.pixels, |_| {})
    }

    pub(crate) fn jpeg_with(
        &self,
        colour: ColorType,
        pixels: &[u8],
        set: impl FnOnce(&mut Encoder<&mut Vec<u8>>),
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes, 95);
        set(&mut encoder);
        encoder
            .encode(pixels, self.width as u16, self.height as u16, colour)
            .unwrap();
        bytes
    }

    /// What a camera writes that was held so.
    pub(crate) fn jpeg_held(&self, orientation: u8) -> Vec<u8> {
        let exif = [
            &b"Exif\0\0MM\0\x2a\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0"[..],
            &[orientation, 0, 0, 0, 0, 0, 0],
        ];
        self.jpeg_with(ColorType::Rgb, &self.pixels, |encoder| {
            encoder.add_app_segment(1, exif.concat()).unwrap();
        })
    }

    /// As gray, cyan-magenta-yellow-black, in several passes.
    pub(crate) fn gray_jpeg(&self) -> Vec<u8> {
        self.jpeg_with(ColorType::Luma, &self.gray(), |_| {})
    }

    pub(crate) fn cmyk_jpeg(&self, as_ycck: bool) -> Vec<u8> {
        let pixels: Vec<u8> = self.pixels.chunks_exact(3).flat_map(inks).collect();
        let colour = match as_ycck {
            true => ColorType::CmykAsYcck,
            false => ColorType::Cmyk,
        };
        self.jpeg_with(colour, &pixels, |_| {})
    }

    pub(crate) fn progressive_jpeg(&self) -> Vec<u8> {
        self.jpeg_with(ColorType::Rgb, &self.pixels, |encoder| {
            encoder.set_progressive(true)
        })
    }

    pub(crate) fn png(&self) -> Vec<u8> {
        self.png_of(png::ColorType::Rgb, png::BitDepth::Eight, &self.pixels)
    }

    pub(crate) fn png_of(&self, colour: png::ColorType, depth: png::BitDepth, data: &[u8]) -> Vec<u8> {
        self.png_with(data, |encoder| {
            encoder.set_color(colour);
            encoder.set_depth(depth);
        })
    }

    pub(crate) fn png_with(
        &self,
        data: &[u8],
        set: impl FnOnce(&mut png::Encoder<'static, &mut Vec<u8>>),
    ) -> Vec<u8> {
        let mut bytes = Vec::new();
        let (width, height) = self.size();
        let mut encoder = png::Encoder::new(&mut bytes, width, height);
        encoder.set_compression(png::Compression::Fast);
        set(&mut encoder);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(data).unwrap();
        writer.finish().unwrap();
        bytes
    }

    /// A palette of the four colours, two pixels in a byte.
    pub(crate) fn palette_png(&self) -> Vec<u8> {
        let mut palette: Vec<[u8; 3]> = Vec::new();
        let mut rows = Vec::new();
        for row in self.pixels.chunks_exact(3 * self.width) {
            let mut index = |pixel: &[u8]| {
                let pixel = [pixel[0], pixel[1], pixel[2]];
                let place = palette.iter().position(|colour| *colour == pixel);
                place.unwrap_or_else(|| {
                    palette.push(pixel);
                    palette.len() - 1
                }) as u8
            };
            let indices: Vec<u8> = row.chunks_exact(3).map(&mut index).collect();
            rows.extend(
                indices
                    .chunks(2)
                    .map(|two| two[0] << 4 | two.get(1).unwrap_or(&0)),
            );
        }
        self.png_with(&rows, |encoder| {
            encoder.set_color(png::ColorType::Indexed);
            encoder.set_depth(png::BitDepth::Four);
            encoder.set_palette(palette.concat());
        })
    }

    /// In seven passes, each with more of the pixels.
    pub(crate) fn interlaced_png(&self) -> Vec<u8> {
        const PASSES: [(usize, usize, usize, usize); 7] = [
            (0, 0, 8, 8),
            (4, 0, 8, 8),
            (0, 4, 4, 8),
            (2, 0, 4, 4),
            (0, 2, 2, 4),
            (1, 0, 2, 2),
            (0, 1, 1, 2),
        ];
        let mut data = Vec::new();
        for (left, top, across, down) in PASSES {
            for y in (top..self.height).step_by(down) {
                let columns = (left..self.width).step_by(across);
                if columns.len() > 0 {
                    // No filter.
                    data.push(0);
                }
                data.extend(columns.flat_map(|x| &self.pixels[(y * self.width + x) * 3..][..3]));
            }
        }
        let mut header = Vec::new();
        header.extend((self.width as u32).to_be_bytes());
        header.extend((self.height as u32).to_be_bytes());
        header.extend([8, 2, 0, 0, 1]);
        let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::fast());
        zlib.write_all(&data).unwrap();
        let chunks = [
            png_chunk(b"IHDR", &header),
            png_chunk(b"IDAT", &zlib.finish().unwrap()),
            png_chunk(b"IEND", &[]),
        ];
        [&b"\x89PNG\r\n\x1a\n"[..], &chunks.concat()].concat()
    }

    pub(crate) fn webp(&self) -> Vec<u8> {
        self.encoded(|out| {
            webp::WebPEncoder::new_lossless(out).write_image(
                &self.pixels,
                self.size().0,
                self.size().1,
                ExtendedColorType::Rgb8,
            )
        })
    }

    pub(crate) fn bmp(&self) -> Vec<u8> {
        self.encoded(|out| {
            bmp::BmpEncoder::new(out).write_image(
                &self.pixels,
                self.size().0,
                self.size().1,
                ExtendedColorType::Rgb8,
            )
        })
    }

    /// This picture first, then a black one.
    pub(crate) fn gif(&self) -> Vec<u8> {
        let mut out = Vec::new();
        let mut encoder = gif::GifEncoder::new(&mut out);
        let (width, height) = self.size();
        for pixels in [&self.pixels, &vec![0; self.pixels.len()]] {
            encoder
                .encode(pixels, width, height, ExtendedColorType::Rgb8)
                .unwrap();
        }
        drop(encoder);
        out
    }

    pub(crate) fn tiff(&self) -> Vec<u8> {
        self.encoded(|out| {
            tiff::TiffEncoder::new(out).write_image(
                &self.pixels,
                self.size().0,
                self.size().1,
                ExtendedColorType::Rgb8,
            )
        })
    }

    /// Whose pixels are said to stand behind its end.
    pub(crate) fn tiff_without_strips(&self) -> Vec<u8> {
        const STRIPS: u16 = 273;
        // One strip stands in the entry itself, more in a list elsewhere.
        self.tiff_with(STRIPS, 8, &0x00ff_ffff_u32.to_le_bytes())
    }

    /// With other bytes at a place of an entry of its directory.
    pub(crate) fn tiff_with(&self, tag: u16, at: usize, other: &[u8]) -> Vec<u8> {
        let mut bytes = self.tiff();
        let (_, entry) = tiff_entries(&bytes).find(|(found, _)| *found == tag).unwrap();
        bytes[entry + at..entry + at + other.len()].copy_from_slice(other);
        bytes
    }

    /// With two bytes for each value.
    pub(crate) fn deep_tiff(&self) -> Vec<u8> {
        let pixels = self.deep(u16::to_ne_bytes);
        self.encoded(|out| {
            tiff::TiffEncoder::new(out).write_image(
                &pixels,
                self.size().0,
                self.size().1,
                ExtendedColorType::Rgb16,
            )
        })
    }

    /// Values of two bytes; the second is another one, that must not show.
    pub(crate) fn deep(&self, bytes: fn(u16) -> [u8; 2]) -> Vec<u8> {
        let values = self.pixels.iter().map(|value| u16::from(*value) << 8 | 0x5a);
        values.flat_map(bytes).collect()
    }

    fn encoded(&self, encode: impl FnOnce(&mut Cursor<Vec<u8>>) -> image::ImageResult<()>) -> Vec<u8> {
        let mut out = Cursor::new(Vec::new());
        encode(&mut out).unwrap();
        out.into_inner()
    }
}

/// Rec. 601, as everybody has it.
pub(crate) fn gray(pixel: &[u8]) -> u8 {
    let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(f64::from);
    (0.299 * red + 0.587 * green + 0.114 * blue).round() as u8
}

/// Cyan, magenta, yellow and black of a pixel.
fn inks(pixel: &[u8]) -> [u8; 4] {
    let most = pixel.iter().copied().max().unwrap_or(0);
    let ink = |value: u8| match most {
        0 => 0,
        most => 255 - (u32::from(value) * 255 / u32::from(most)) as u8,
    };
    [ink(pixel[0]), ink(pixel[1]), ink(pixel[2]), 255 - most]
}

pub(crate) fn png_chunk(name: &[u8; 4], body: &[u8]) -> Vec<u8> {
    let named = [&name[..], body].concat();
    let length = (body.len() as u32).to_be_bytes();
    [&length[..], &named, &crc32fast::hash(&named).to_be_bytes()].concat()
}

/// A gray JPEG of any size that is all of one shade: `pixels` more cost six bits for every 64 of them.
pub(crate) fn flat_jpeg(width: u16, height: u16) -> Vec<u8> {
    let mut bytes = vec![0xff, 0xd8];
    let mut segment = |marker: u8, body: &[u8]| {
        bytes.extend([0xff, marker]);
        bytes.extend((body.len() as u16 + 2).to_be_bytes());
        bytes.extend(body);
    };
    segment(0xdb, &[&[0][..], &[16; 64]].concat());
    let size = [height.to_be_bytes(), width.to_be_bytes()].concat();
    segment(0xc0, &[&[8][..], &size, &[1, 1, 0x11, 0]].concat());
    // One code each: no difference of the mean, and no details. They are 00 and 1010, as in most files.
    segment(0xc4, &[&[0x00, 0, 1][..], &[0; 14], &[0]].concat());
    let mut details = vec![0x10];
    details.extend([0, 2, 1, 3]);
    details.extend([0; 12]);
    details.extend([0x01, 0x02, 0x03, 0x00, 0x04, 0x11]);
    segment(0xc4, &details);
    segment(0xda, &[1, 1, 0, 0, 63, 0]);
    let blocks = usize::from(width).div_ceil(8) * usize::from(height).div_ceil(8);
    bytes.extend([0x28, 0xa2, 0x8a].repeat(blocks.div_ceil(4)));
    bytes.extend([0xff, 0xd9]);
    bytes
}

/// The entries of the directory of a TIFF: what each tells, and where it stands.
fn tiff_entries(bytes: &[u8]) -> impl Iterator<Item = (u16, usize)> {
    let at = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    let n = usize::from(u16::from_le_bytes(bytes[at..at + 2].try_into().unwrap()));
    (0..n)
        .map(move |i| at + 2 + 12 * i)
        .map(|entry| (u16::from_le_bytes([bytes[entry], bytes[entry + 1]]), entry))
}

/// The header of a picture of this size and format, with nothing behind it.
pub(crate) fn promise(format: &str, side: u32) -> Vec<u8> {
    let small = Drawing::quarters(16, 16);
    let mut bytes = match format {
        "jpg" => small.jpeg(),
        "png" => small.png(),
        "bmp" => small.bmp(),
        "gif" => small.gif(),
        "tif" => small.tiff(),
        _ => small.webp(),
    };
    let put =
        |bytes: &mut Vec<u8>, at: usize, value: &[u8]| bytes[at..at + value.len()].copy_from_slice(value);
    match format {
        "jpg" => {
            let frame = bytes.windows(2).position(|two| two == [0xff, 0xc0]).unwrap();
            let side = (side as u16).to_be_bytes();
            put(&mut bytes, frame + 5, &[side, side].concat());
        }
        "png" => {
            let mut header = [side.to_be_bytes(), side.to_be_bytes()].concat();
            header.extend([8, 2, 0, 0, 0]);
            let chunk = png_chunk(b"IHDR", &header);
            put(&mut bytes, 8, &chunk);
        }
        "bmp" => put(&mut bytes, 18, &[side.to_le_bytes(), side.to_le_bytes()].concat()),
        "gif" => {
            let side = (side as u16).to_le_bytes();
            put(&mut bytes, 6, &[side, side].concat());
        }
        "tif" => {
            let sides: Vec<usize> = tiff_entries(&bytes)
                .filter(|(tag, _)| matches!(tag, 256 | 257))
                .map(|(_, entry)| entry)
                .collect();
            for entry in sides {
                put(&mut bytes, entry + 2, &[4, 0]);
                put(&mut bytes, entry + 8, &side.to_le_bytes());
            }
        }
        _ => {
            // Fourteen bits each, less one.
            let most = side.min(1 << 14) - 1;
            put(&mut bytes, 21, &(most | most << 14).to_le_bytes());
        }
    }
    bytes
}
