//! From the file of a picture to a sample: read, decoded no larger than needed, resized, turned upright.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use image::metadata::Orientation;
use image::{ImageDecoder, ImageError, Limits};

use tidegate_memory::give_freed_memory_back;

use super::fault::PictureFault;
use super::form::{Frame, Resize, is_quarter_turn, turn};
use super::jpeg;
use super::probe::{Format, HEAD_BYTES, Probe};
use super::read::{Uncached, read_whole};
use super::resize::{Canvas, Geometry, Resizer, Rows};
use super::survey::open;
use crate::guard::guarded;
use crate::meter::{Meter, Stage};

/// What a decoder of another format than JPEG takes beside its pixels: windows, tables, a buffer of the file.
const DECODER_BYTES: u64 = 640 << 10;
/// More than any memory has, and still a number to calculate with.
const MOST_BYTES: u64 = 1 << 60;
/// What a chunk of a PNG beside its pixels may take of that.
const CHUNK_BYTES: u64 = 256 << 10;
/// Read at once where a file is not read as a whole.
const BUFFER: usize = 64 << 10;

/// Memory to decode in: so much for every thread, and once for a large picture.
pub(crate) struct Room {
    pub usual: u64,
    large: Mutex<u64>,
}

impl Room {
    pub(crate) fn new(usual: u64, large: u64) -> Room {
        Room {
            usual,
            large: Mutex::new(large),
        }
    }
}

/// The size that every sample is stored in.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stored {
    pub width: usize,
    pub height: usize,
    pub channels: usize,
    pub resize: Resize,
}

impl Stored {
    fn bytes(&self) -> usize {
        self.width * self.height * self.channels
    }

    /// The room for a picture before it is turned, and what of the picture goes where in it.
    fn frame(&self, picture: (u32, u32), orientation: u8) -> ((usize, usize), Frame) {
        let size = match is_quarter_turn(orientation) {
            true => (self.height, self.width),
            false => (self.width, self.height),
        };
        (size, self.resize.frame(picture, size.0, size.1))
    }

    /// What decoding a picture takes at the most, its file included where it is read as a whole.
    pub(crate) fn bytes_to_decode(&self, probe: &Probe) -> u64 {
        // A quarter turn may make it the wider: the larger of both counts.
        let either = [1, 6].map(|orientation| self.decoding_bytes(probe, orientation));
        either[0].max(either[1])
    }

    /// What decoding the picture in a file takes.
    pub(crate) fn needs_of(&self, path: &Path) -> Result<u64, PictureFault> {
        let probe = Probe::read(&open(path)?, &mut Vec::new())?;
        Ok(self.bytes_to_decode(&probe))
    }

    fn decoding_bytes(&self, probe: &Probe, orientation: u8) -> u64 {
        let (_, frame) = self.frame((probe.width, probe.height), orientation);
        if let Some(header) = &probe.jpeg {
            let target = self.target(&frame);
            return probe.file_bytes + header.bytes_to_decode(&target);
        }
        let channels = n_channels(probe);
        let resizing = geometry(probe, &frame, channels).bytes_needed();
        let drawn = (frame.width * frame.height * channels) as u64;
        pixels_bytes(probe) + resizing + drawn + DECODER_BYTES
    }

    fn target(&self, frame: &Frame) -> jpeg::Target {
        jpeg::Target {
            rectangle: frame.source,
            width: frame.width,
            height: frame.height,
            channels: self.channels,
        }
    }
}

fn n_channels(probe: &Probe) -> usize {
    usize::from(probe.channels.clamp(1, 4))
}

/// What the pixels of another picture than a JPEG take while it is decoded.
fn pixels_bytes(probe: &Probe) -> u64 {
    // Sizes may be any numbers: their product has room here.
    let pixel = (n_channels(probe) * usize::from(probe.depth)) as u128;
    let row = u128::from(probe.width) * pixel;
    let whole = row * u128::from(probe.height);
    let pixels = u128::from(probe.pixels());
    let bytes = match probe.format {
        // Rows come one by one: two of them, and one as it is handed out.
        Format::Png if probe.in_order => 4 * row,
        Format::Png | Format::Bmp | Format::Jpeg => whole + 4 * row,
        // Planes of brightness and colour beside, or what a frame shows.
        Format::WebP => whole + 6 * pixels + u128::from(probe.file_bytes),
        Format::Gif => whole + 6 * pixels,
        // A strip may be all of it.
        Format::Tiff => 3 * whole + u128::from(probe.directory_bytes),
    };
    bytes.min(MOST_BYTES.into()) as u64
}

fn geometry(probe: &Probe, frame: &Frame, channels: usize) -> Geometry {
    Geometry {
        source_width: probe.width as usize,
        source_height: probe.height as usize,
        rectangle: frame.source,
        width: frame.width,
        height: frame.height,
        channels,
    }
}

/// What a thread decodes with. Its buffers stay from one picture to the next, except those of large ones.
pub(crate) struct Pictures<'a> {
    stored: Stored,
    room: &'a Room,
    head: Vec<u8>,
    file: Vec<u8>,
    jpeg: jpeg::Decoder,
    resizer: Resizer,
    /// The picture before it is resized, after, and before it is turned.
    pixels: Vec<u8>,
    drawn: Vec<u8>,
    unturned: Vec<u8>,
    /// What the buffers hold at the most, and for which picture they were used last.
    held: u64,
    last: Option<(Probe, u64)>,
}

impl<'a> Pictures<'a> {
    /// What it takes beside what a picture takes to decode.
    pub(crate) fn bytes(stored: &Stored) -> u64 {
        (HEAD_BYTES + stored.bytes()) as u64
    }

    pub(crate) fn new(stored: Stored, room: &'a Room) -> Pictures<'a> {
        Pictures {
            stored,
            room,
            head: Vec::with_capacity(HEAD_BYTES),
            file: Vec::new(),
            jpeg: jpeg::Decoder::default(),
            resizer: Resizer::default(),
            pixels: Vec::new(),
            drawn: Vec::new(),
            unturned: Vec::new(),
            held: 0,
            last: None,
        }
    }

    /// Makes a sample of the picture in a file.
    pub(crate) fn read(&mut self, path: &Path, into: &mut [u8], meter: &Meter) -> Result<(), PictureFault> {
        let (file, probe) = meter.time(Stage::Read, || {
            let file = open(path)?;
            let probe = Probe::read(&file, &mut self.head)?;
            Ok::<_, PictureFault>((file, probe))
        })?;
        let (needs, room) = (self.stored.bytes_to_decode(&probe), self.room);
        if needs <= room.usual {
            self.make_room(&probe, needs);
            return self.decode(file, &probe, into, meter);
        }
        let large = room.large.lock().unwrap_or_else(PoisonError::into_inner);
        if needs > *large {
            return Err(PictureFault::TooLarge {
                width: probe.width,
                height: probe.height,
                needs,
                room: (*large).max(room.usual),
            });
        }
        let decoded = self.decode(file, &probe, into, meter);
        self.release();
        // The next one needs the room, wherever the allocator would keep it.
        give_freed_memory_back();
        decoded
    }

    fn decode(
        &mut self,
        file: File,
        probe: &Probe,
        into: &mut [u8],
        meter: &Meter,
    ) -> Result<(), PictureFault> {
        match &probe.jpeg {
            Some(header) => {
                meter.time(Stage::Read, || {
                    read_whole(&file, probe.file_bytes, &mut self.file)
                })?;
                meter.time(Stage::Decode, || self.decode_jpeg(header, into))
            }
            None => meter.time(Stage::Decode, || {
                let decoded = guarded(|| self.decode_other(file, probe, into));
                decoded.unwrap_or_else(|| {
                    // Half a picture may be left in them.
                    self.release();
                    Err(PictureFault::Broken {
                        format: probe.format.name(),
                        what: "its values contradict each other".into(),
                    })
                })
            }),
        }
    }

    /// Gives buffers back where those of pictures before, and what this one needs beside, would be more than there is room
    /// for.
    fn make_room(&mut self, probe: &Probe, needs: u64) {
        // The same buffers do for a picture like the last one; its file alone may be longer.
        let alike = Probe {
            file_bytes: 0,
            ..probe.clone()
        };
        let more = match &self.last {
            Some((last, needed)) if *last == alike => needs.saturating_sub(*needed),
            _ => needs,
        };
        if self.held + more > self.room.usual {
            self.release();
            self.held = needs;
        } else {
            self.held += more;
        }
        let needed = match self.last.take() {
            Some((last, needed)) if last == alike => needed.max(needs),
            _ => needs,
        };
        self.last = Some((alike, needed));
    }

    fn release(&mut self) {
        (self.held, self.last) = (0, None);
        (self.file, self.pixels, self.drawn) = (Vec::new(), Vec::new(), Vec::new());
        self.jpeg.release();
        self.resizer.release();
    }

    fn decode_jpeg(&mut self, header: &jpeg::Header, into: &mut [u8]) -> Result<(), PictureFault> {
        // It may be another file by now than the one that there was room for.
        if jpeg::header(&self.file)? != *header {
            return Err(contradicts(Format::Jpeg));
        }
        let stored = self.stored;
        let (size, frame) = stored.frame((header.width, header.height), header.orientation);
        let target = stored.target(&frame);
        let (jpeg, file) = (&mut self.jpeg, &self.file);
        upright(
            &stored,
            size,
            &frame,
            header.orientation,
            &mut self.unturned,
            into,
            |at, stride| Ok(jpeg.decode(file, &target, Canvas { bytes: at, stride })?),
        )
    }

    fn decode_other(&mut self, file: File, probe: &Probe, into: &mut [u8]) -> Result<(), PictureFault> {
        let limits = match probe.format {
            Format::Png => pixels_bytes(probe) + CHUNK_BYTES,
            _ => pixels_bytes(probe) + DECODER_BYTES,
        };
        let reader = BufReader::with_capacity(BUFFER, Uncached::new(file));
        let broken = |error: ImageError| broken(probe.format, error);
        match probe.format {
            Format::Png => self.decode_png(reader, probe, limits, into),
            Format::WebP => {
                let decoder = image::codecs::webp::WebPDecoder::new(reader).map_err(broken)?;
                self.decode_whole(decoder, probe, limits, into)
            }
            Format::Bmp => {
                let decoder = image::codecs::bmp::BmpDecoder::new(reader).map_err(broken)?;
                self.decode_whole(decoder, probe, limits, into)
            }
            Format::Gif => {
                let decoder = image::codecs::gif::GifDecoder::new(reader).map_err(broken)?;
                self.decode_whole(decoder, probe, limits, into)
            }
            Format::Tiff | Format::Jpeg => {
                let decoder = image::codecs::tiff::TiffDecoder::new(reader).map_err(broken)?;
                self.decode_whole(decoder, probe, limits, into)
            }
        }
    }

    /// Decodes all of a picture, then resizes it.
    fn decode_whole(
        &mut self,
        mut decoder: impl ImageDecoder,
        probe: &Probe,
        limits: u64,
        into: &mut [u8],
    ) -> Result<(), PictureFault> {
        let broken = |error: ImageError| broken(probe.format, error);
        let mut allowed = Limits::default();
        allowed.max_alloc = Some(limits);
        decoder.set_limits(allowed).map_err(broken)?;
        let orientation = decoder
            .orientation()
            .map_or(1, |orientation| orientation.to_exif());
        let colour = decoder.color_type();
        let n_channels = usize::from(colour.channel_count());
        let depth = usize::from(colour.bytes_per_pixel()) / n_channels.max(1);
        let expected = probe.pixels() * u64::from(colour.bytes_per_pixel());
        if decoder.dimensions() != (probe.width, probe.height)
            || decoder.total_bytes() != expected
            || n_channels > usize::from(probe.channels)
        {
            return Err(contradicts(probe.format));
        }
        if depth > 2 {
            return Err(PictureFault::Unsupported {
                format: probe.format.name(),
                what: format!("{colour:?}"),
            });
        }
        self.pixels.clear();
        self.pixels.resize(expected as usize, 0);
        decoder.read_image(&mut self.pixels).map_err(broken)?;
        if depth == 2 {
            keep_high_bytes(&mut self.pixels);
        }
        let pixels = std::mem::take(&mut self.pixels);
        let stride = probe.width as usize * n_channels;
        let mut sketch = self.sketch(probe, n_channels, orientation);
        sketch.push(Rows {
            bytes: &pixels,
            stride,
            n: probe.height as usize,
        });
        sketch.finish(into)?;
        self.pixels = pixels;
        Ok(())
    }

    /// Decodes a PNG row by row where they come in order.
    fn decode_png(
        &mut self,
        reader: BufReader<Uncached>,
        probe: &Probe,
        limits: u64,
        into: &mut [u8],
    ) -> Result<(), PictureFault> {
        let broken = |error: png::DecodingError| PictureFault::Broken {
            format: probe.format.name(),
            what: error.to_string(),
        };
        let bytes = usize::try_from(limits).unwrap_or(usize::MAX);
        let mut decoder = png::Decoder::new_with_limits(reader, png::Limits { bytes });
        decoder.set_ignore_text_chunk(true);
        decoder.set_ignore_iccp_chunk(true);
        decoder.set_transformations(png::Transformations::EXPAND | png::Transformations::STRIP_16);
        let mut reader = decoder.read_info().map_err(broken)?;
        let info = reader.info();
        if (info.width, info.height) != (probe.width, probe.height) {
            return Err(contradicts(probe.format));
        }
        let orientation = info
            .exif_metadata
            .as_deref()
            .and_then(Orientation::from_exif_chunk)
            .map_or(1, Orientation::to_exif);
        let (colour, _) = reader.output_color_type();
        let n_channels = colour.samples();
        if n_channels > usize::from(probe.channels) {
            return Err(contradicts(probe.format));
        }
        let mut pixels = std::mem::take(&mut self.pixels);
        let stride = probe.width as usize * n_channels;
        let mut sketch = self.sketch(probe, n_channels, orientation);
        if probe.in_order {
            pixels.clear();
            pixels.resize(stride, 0);
            while reader.read_row(&mut pixels).map_err(broken)?.is_some() {
                sketch.push(Rows {
                    bytes: &pixels,
                    stride,
                    n: 1,
                });
            }
        } else {
            pixels.clear();
            pixels.resize(stride * probe.height as usize, 0);
            reader.next_frame(&mut pixels).map_err(broken)?;
            sketch.push(Rows {
                bytes: &pixels,
                stride,
                n: probe.height as usize,
            });
        }
        let finished = sketch.finish(into);
        self.pixels = pixels;
        finished
    }

    /// Begins a picture whose rows come decoded.
    fn sketch(&mut self, probe: &Probe, channels: usize, orientation: u8) -> Sketch<'_> {
        let (size, frame) = self.stored.frame((probe.width, probe.height), orientation);
        self.resizer.reset(&geometry(probe, &frame, channels));
        self.drawn.clear();
        self.drawn.resize(frame.width * frame.height * channels, 0);
        Sketch {
            stored: self.stored,
            format: probe.format,
            resizer: &mut self.resizer,
            drawn: &mut self.drawn,
            unturned: &mut self.unturned,
            size,
            frame,
            channels,
            orientation,
        }
    }
}

/// A picture whose rows are being resized as they come.
struct Sketch<'a> {
    stored: Stored,
    format: Format,
    resizer: &'a mut Resizer,
    drawn: &'a mut Vec<u8>,
    unturned: &'a mut Vec<u8>,
    size: (usize, usize),
    frame: Frame,
    channels: usize,
    orientation: u8,
}

impl Sketch<'_> {
    fn push(&mut self, rows: Rows<'_>) {
        let mut canvas = Canvas {
            bytes: self.drawn,
            stride: self.frame.width * self.channels,
        };
        self.resizer.push(rows, &mut canvas);
    }

    fn finish(self, into: &mut [u8]) -> Result<(), PictureFault> {
        if !self.resizer.is_done() {
            return Err(PictureFault::Broken {
                format: self.format.name(),
                what: "it ends too early".into(),
            });
        }
        let (frame, channels, stored) = (self.frame, self.channels, self.stored);
        let drawn = &*self.drawn;
        upright(
            &stored,
            self.size,
            &frame,
            self.orientation,
            self.unturned,
            into,
            |at, stride| {
                let rows = drawn.chunks_exact(frame.width * channels);
                for (from, into) in rows.zip(at.chunks_mut(stride)) {
                    recolour(
                        from,
                        channels,
                        &mut into[..frame.width * stored.channels],
                        stored.channels,
                    );
                }
                Ok(())
            },
        )
    }
}

/// Draws a picture into its place in a sample, by `draw`, which is given where it begins and how far it is from one row to
/// the next; then turns it as the camera was held.
fn upright(
    stored: &Stored,
    (width, height): (usize, usize),
    frame: &Frame,
    orientation: u8,
    unturned: &mut Vec<u8>,
    into: &mut [u8],
    draw: impl FnOnce(&mut [u8], usize) -> Result<(), PictureFault>,
) -> Result<(), PictureFault> {
    let channels = stored.channels;
    let stride = width * channels;
    let at = frame.y * stride + frame.x * channels;
    let is_turned = orientation > 1;
    let canvas = match is_turned {
        true => {
            unturned.resize(height * stride, 0);
            &mut unturned[..]
        }
        false => &mut *into,
    };
    if (frame.width, frame.height) != (width, height) {
        canvas.fill(0);
    }
    draw(&mut canvas[at..], stride)?;
    if is_turned {
        turn(unturned, (width, height), channels, orientation, into);
    }
    Ok(())
}

/// From so many channels to one or three. Alpha is left out, as Pillow does.
fn recolour(from: &[u8], channels: usize, into: &mut [u8], wanted: usize) {
    let pixels = from.chunks_exact(channels);
    match (channels, wanted) {
        (1, 1) | (3, 3) => into.copy_from_slice(from),
        (1 | 2, _) => {
            for (pixel, into) in pixels.zip(into.chunks_exact_mut(wanted)) {
                into.fill(pixel[0]);
            }
        }
        (_, 1) => {
            for (pixel, into) in pixels.zip(into) {
                let [red, green, blue] = [pixel[0], pixel[1], pixel[2]].map(u32::from);
                // Rec. 601 in 65536ths, as JPEG has it.
                *into = ((19_595 * red + 38_470 * green + 7_471 * blue + 32_768) >> 16) as u8;
            }
        }
        _ => {
            for (pixel, into) in pixels.zip(into.chunks_exact_mut(3)) {
                into.copy_from_slice(&pixel[..3]);
            }
        }
    }
}

/// Of values of two bytes, in the order of the machine, the more significant one.
fn keep_high_bytes(pixels: &mut Vec<u8>) {
    let high = usize::from(cfg!(target_endian = "little"));
    for i in 0..pixels.len() / 2 {
        pixels[i] = pixels[2 * i + high];
    }
    pixels.truncate(pixels.len() / 2);
}

fn contradicts(format: Format) -> PictureFault {
    PictureFault::Broken {
        format: format.name(),
        what: "its headers contradict each other".into(),
    }
}

fn broken(format: Format, error: ImageError) -> PictureFault {
    let format = format.name();
    match error {
        ImageError::Unsupported(error) => PictureFault::Unsupported {
            format,
            what: error.to_string(),
        },
        error => PictureFault::Broken {
            format,
            what: error.to_string(),
        },
    }
}
