//! Decodes JPEGs at half their size by libjpeg-turbo, resizes, flips, and fills batches of float32 on two threads.
//!
//! ```text
//! turbo FOLDER [EPOCHS]
//! ```
//!
//! It prints the images per second of each epoch as one line of JSON. What a pipeline does besides is left out on
//! purpose: the order is drawn once, no batch is handed to anybody, and a file that cannot be decoded ends it.

use std::error::Error;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use fast_image_resize::images::{Image, ImageRef};
use fast_image_resize::{FilterType, PixelType, ResizeAlg, ResizeOptions, Resizer};
use turbojpeg::{Decompressor, PixelFormat, ScalingFactor};

const SIDE: usize = 150;
const PIXELS: usize = SIDE * SIDE * 3;
const BATCH: usize = 32;
const THREADS: usize = 2;

type Outcome<T> = Result<T, Box<dyn Error + Send + Sync>>;

fn main() -> Outcome<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder of images")?;
    let epochs: usize = arguments.next().map_or(Ok(3), |epochs| epochs.parse())?;
    let mut files = files(Path::new(&folder))?;
    shuffle(&mut files, &mut Random(88_172_645_463_325_252));
    let mut rates = Vec::new();
    for epoch in 0..epochs {
        let (began, next) = (Instant::now(), AtomicUsize::new(0));
        thread::scope(|scope| {
            let worker = |thread: usize| {
                let random = Random(0x9E37_79B9_7F4A_7C15 ^ ((epoch * THREADS + thread + 1) as u64) << 20);
                let (files, next) = (&files, &next);
                scope.spawn(move || work(files, next, random))
            };
            let workers: Vec<_> = (0..THREADS).map(worker).collect();
            workers
                .into_iter()
                .try_for_each(|worker| worker.join().expect("a worker does not panic"))
        })?;
        rates.push(files.len() as f64 / began.elapsed().as_secs_f64());
    }
    println!(
        "{{\"rates\": {rates:?}, \"images\": {}, \"version\": \"libjpeg-turbo by turbojpeg\"}}",
        files.len()
    );
    Ok(())
}

/// The files in the class folders, in order.
fn files(folder: &Path) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for class in fs::read_dir(folder)? {
        for file in fs::read_dir(class?.path())? {
            files.push(file?.path());
        }
    }
    files.sort();
    Ok(files)
}

fn shuffle(files: &mut [PathBuf], random: &mut Random) {
    for last in (1..files.len()).rev() {
        files.swap(last, (random.next() % (last as u64 + 1)) as usize);
    }
}

/// Fills batches until none is left.
fn work(files: &[PathBuf], next: &AtomicUsize, mut random: Random) -> Outcome<()> {
    let mut decompressor = Decompressor::new()?;
    decompressor.set_scaling_factor(ScalingFactor::ONE_HALF)?;
    let mut resizer = Resizer::new();
    // A convolution's support grows with the scale: antialiased.
    let bilinear = ResizeOptions::new()
        .resize_alg(ResizeAlg::Convolution(FilterType::Bilinear))
        .use_alpha(false);
    let mut small = Image::new(SIDE as u32, SIDE as u32, PixelType::U8x3);
    let (mut bytes, mut pixels, mut batch) = (Vec::new(), Vec::new(), vec![0.0; BATCH * PIXELS]);
    loop {
        let first = next.fetch_add(BATCH, Ordering::Relaxed);
        if first >= files.len() {
            return Ok(());
        }
        let files = &files[first..files.len().min(first + BATCH)];
        for (file, sample) in files.iter().zip(batch.chunks_exact_mut(PIXELS)) {
            bytes.clear();
            File::open(file)?.read_to_end(&mut bytes)?;
            let half = decompressor.read_header(&bytes)?.scaled(ScalingFactor::ONE_HALF);
            pixels.resize(half.width * half.height * 3, 0);
            let into = turbojpeg::Image {
                pixels: &mut pixels[..],
                width: half.width,
                pitch: half.width * 3,
                height: half.height,
                format: PixelFormat::RGB,
            };
            decompressor.decompress(&bytes, into)?;
            let decoded = ImageRef::new(half.width as u32, half.height as u32, &pixels, PixelType::U8x3)?;
            resizer.resize(&decoded, &mut small, &bilinear)?;
            fill(small.buffer(), sample, random.next() >> 63 == 1);
        }
        std::hint::black_box(&batch);
    }
}

/// The pixels as numbers from 0 to 1, turned left to right where asked.
fn fill(pixels: &[u8], sample: &mut [f32], flip: bool) {
    const SHARE: f32 = 1.0 / 255.0;
    if !flip {
        for (value, pixel) in sample.iter_mut().zip(pixels) {
            *value = f32::from(*pixel) * SHARE;
        }
        return;
    }
    let rows = pixels.chunks_exact(SIDE * 3);
    for (values, row) in sample.chunks_exact_mut(SIDE * 3).zip(rows) {
        for (value, pixel) in values.chunks_exact_mut(3).zip(row.chunks_exact(3).rev()) {
            for channel in 0..3 {
                value[channel] = f32::from(pixel[channel]) * SHARE;
            }
        }
    }
}

/// Marsaglia's xorshift.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }
}
