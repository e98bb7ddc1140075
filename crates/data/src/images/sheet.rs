//! Contact sheets: many samples on one picture, each with a line of text.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use font8x8::UnicodeFonts;
use tidegate_memory::{Grant, Ledger};

use super::form::ImageForm;
use crate::Result;

/// Samples smaller than this are shown larger, pixel by pixel.
const LEAST_TILE: usize = 96;
/// Pixels between tiles, above a text, and from one line of it to the next.
const GAP: usize = 8;
const ABOVE: usize = 4;
const LINE: usize = 10;
const LETTER: usize = 8;
const PAPER: u8 = 250;
const INK: u8 = 40;

/// A sheet being filled.
pub struct Sheet {
    form: ImageForm,
    columns: usize,
    /// Lines of a caption.
    lines: usize,
    /// How much larger samples are shown.
    zoom: usize,
    width: usize,
    height: usize,
    pixels: Vec<u8>,
    #[expect(dead_code, reason = "held for its drop")]
    grant: Grant,
}

impl Sheet {
    /// A sheet for so many samples, each with so many lines of text.
    pub fn new(n: usize, columns: usize, lines: usize, form: ImageForm, ledger: &Ledger) -> Result<Sheet> {
        let zoom = LEAST_TILE.div_ceil(form.height.min(form.width)).max(1);
        let rows = n.div_ceil(columns.max(1)).max(1);
        let width = GAP + columns * (form.width * zoom + GAP);
        let height = GAP + rows * (form.height * zoom + ABOVE + lines * LINE + GAP);
        let grant = ledger.holder("sheet").try_grant((width * height * 3) as u64)?;
        Ok(Sheet {
            form,
            columns,
            lines,
            zoom,
            width,
            height,
            pixels: vec![PAPER; width * height * 3],
            grant,
        })
    }

    /// Puts a sample at a place, counted row by row, with a caption below; lines that are too long are cut.
    pub fn put(&mut self, place: usize, sample: &[u8], caption: &str) {
        let (tile_width, tile_height) = (self.form.width * self.zoom, self.form.height * self.zoom);
        let left = GAP + place % self.columns * (tile_width + GAP);
        let top = GAP + place / self.columns * (tile_height + ABOVE + self.lines * LINE + GAP);
        let channels = self.form.channels;
        for y in 0..tile_height {
            let row = y / self.zoom * self.form.width * channels;
            for x in 0..tile_width {
                let from = &sample[row + x / self.zoom * channels..][..channels];
                let into = self.pixel(left + x, top + y);
                match from {
                    [red, green, blue] => into.copy_from_slice(&[*red, *green, *blue]),
                    gray => into.fill(gray[0]),
                }
            }
        }
        let most = tile_width / LETTER;
        for (line, text) in caption.lines().take(self.lines).enumerate() {
            let shown: Vec<char> = match text.chars().count() > most {
                true => text.chars().take(most.saturating_sub(1)).chain(['…']).collect(),
                false => text.chars().collect(),
            };
            for (i, letter) in shown.into_iter().enumerate() {
                self.letter(left + i * LETTER, top + tile_height + ABOVE + line * LINE, letter);
            }
        }
    }

    fn letter(&mut self, left: usize, top: usize, letter: char) {
        let known = |letter: char| {
            font8x8::BASIC_FONTS
                .get(letter)
                .or_else(|| font8x8::LATIN_FONTS.get(letter))
        };
        let glyph = match letter {
            '…' => Some([0, 0, 0, 0, 0, 0, 0b0101_0101, 0]),
            letter => known(letter).or_else(|| known('?')),
        };
        for (y, row) in glyph.unwrap_or_default().into_iter().enumerate() {
            for x in (0..LETTER).filter(|x| row >> x & 1 == 1) {
                self.pixel(left + x, top + y).fill(INK);
            }
        }
    }

    fn pixel(&mut self, x: usize, y: usize) -> &mut [u8] {
        let at = (y * self.width + x) * 3;
        &mut self.pixels[at..at + 3]
    }

    /// Writes the sheet as a PNG, under its name once it is whole.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let beside = path.with_file_name(name);
        let written = self
            .write_to(&beside)
            .and_then(|()| std::fs::rename(&beside, path));
        if written.is_err() {
            let _ = std::fs::remove_file(&beside);
        }
        written
    }

    fn write_to(&self, path: &Path) -> io::Result<()> {
        let out = BufWriter::new(File::create(path)?);
        let mut encoder = png::Encoder::new(out, self.width as u32, self.height as u32);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_compression(png::Compression::Fast);
        // A stream: all at once, it would be compressed in memory.
        let mut writer = encoder.write_header()?.into_stream_writer()?;
        writer.write_all(&self.pixels)?;
        Ok(writer.finish()?)
    }
}
