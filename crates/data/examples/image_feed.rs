//! Feeds images as batches of float32 and says how fast: the measure of `benches/images`.
//!
//! ```text
//! image_feed FOLDER [--size 150] [--batch 32] [--epochs 3] [--threads 2] [--memory 64] [--augment flip] [--pack FOLDER]
//! ```

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use tidegate_data::Error;
use tidegate_data::arrays::{FeedOptions, Keep, Order, Part};
use tidegate_data::images::{Augment, ImageOptions, open};
use tidegate_data::pack::PackStore;
use tidegate_memory::Ledger;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().ok_or("name a folder of images")?;
    let mut options: HashMap<String, String> = HashMap::new();
    while let Some(name) = arguments.next() {
        options.insert(name, arguments.next().ok_or("every option has a value")?);
    }
    let get = |name: &str, usual: &str| options.get(name).cloned().unwrap_or_else(|| usual.into());
    let (size, batch): (usize, usize) = (get("--size", "150").parse()?, get("--batch", "32").parse()?);
    let (epochs, threads): (u64, usize) = (get("--epochs", "3").parse()?, get("--threads", "2").parse()?);
    let megabytes: u64 = get("--memory", "64").parse()?;
    let ledger = Ledger::new(megabytes * 1_000_000);
    let images = ImageOptions {
        size: Some((size, size)),
        augment: Augment::parse(&get("--augment", "flip"))?,
        threads,
        ..ImageOptions::default()
    };
    let began = Instant::now();
    let opened = open(Path::new(&folder), &images, &ledger, &mut |_, _| {
        ControlFlow::Continue(())
    })?;
    let mut source = opened.ok_or("stopped")?.training;
    println!(
        "opened {} images in {:.2} s",
        source.n_samples(),
        began.elapsed().as_secs_f64()
    );
    if let Some(packs) = options.get("--pack") {
        let began = Instant::now();
        let packed = source.pack_images(&PackStore::at(Path::new(packs)), threads, &ledger, &mut |_| {
            ControlFlow::Continue(())
        })?;
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "{packed:?} in {seconds:.2} s: {:.0} images/s",
            source.n_samples() as f64 / seconds
        );
        let keep = Keep {
            memory: ledger.free() * 3 / 4,
            ..Keep::default()
        };
        println!("kept: {:?}", source.keep(&keep, &ledger)?);
    }
    for epoch in 0..epochs {
        let feed = FeedOptions {
            batch,
            order: Order::Shuffled { seed: 7, epoch },
            start: 0,
            part: Part::All,
            prefetch: source.good_prefetch(batch, threads).min(ledger.free() / 2),
            threads,
        };
        let (began, before) = (Instant::now(), source.feed_times());
        let (mut n, mut sum) = (0, 0.0);
        source.feed_images(&feed, 1.0 / 255.0, &ledger, |batch| {
            n += batch.present.iter().filter(|present| **present).count();
            sum += batch.values[12_345 % batch.values.len()];
            Ok::<_, Error>(ControlFlow::Continue(()))
        })?;
        let seconds = began.elapsed().as_secs_f64();
        println!(
            "epoch {epoch}: {n} images, {:.0} images/s, {:?}, check {sum:.3}",
            n as f64 / seconds,
            source.feed_times().since(&before)
        );
    }
    Ok(())
}
