//! Sources whose samples are images: each a file of its own, decoded on the way or packed.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use tidegate_memory::Ledger;

use super::element::Element;
use super::feed::FeedOptions;
use super::labels::Labelled;
use super::order::Order;
use super::pressed::Pressed;
use super::samples::{Samples, Store};
use super::source::{ArraySource, Part};
use crate::images::{BadFiles, Images, PackNeeds, PackedImages, ValueBatch};
use crate::meter::Meter;
use crate::pack::{PackOptions, PackStore};
use crate::{Error, Result};

impl ArraySource {
    /// Pictures of one size as bytes of height, width and channels.
    pub(crate) fn of_images(
        images: Images,
        labelled: Option<Labelled>,
        path: &Path,
        ledger: &Ledger,
    ) -> Result<ArraySource> {
        let form = images.form;
        Ok(ArraySource {
            mark: images.fingerprint,
            meter: Meter::default(),
            pressed: Pressed::default(),
            samples: Samples {
                shards: Vec::new(),
                n_samples: images.n_samples(),
                shape: vec![form.height, form.width, form.channels],
                labels: 0,
                element: Element::U8,
                store: Store::Images(Box::new(images)),
                file: None,
                listed: ledger.holder("arrays").try_grant(0)?,
            },
            labelled,
            label_inputs: Vec::new(),
            test: None,
            path: path.into(),
        })
    }

    pub(crate) fn images(&self) -> Option<&Images> {
        match &self.samples.store {
            Store::Images(images) => Some(images),
            _ => None,
        }
    }

    /// The file of a sample, where each is a file of its own.
    pub fn file(&self, sample: u64) -> Option<PathBuf> {
        let images = self.images()?;
        (sample < images.n_samples()).then(|| images.list.path(sample as usize))
    }

    /// Files that turned out to be no images while they were read.
    pub fn bad_files(&self) -> BadFiles {
        self.images().map(Images::bad_files).unwrap_or_default()
    }

    /// Whether samples are images that are decoded whenever they are met: what is none is found on the way.
    pub fn is_decoded(&self) -> bool {
        self.images().is_some_and(Images::decodes)
    }

    /// How many samples of a part turned out to be no images so far.
    pub fn n_bad(&self, part: Part) -> u64 {
        self.images().map_or(0, |images| images.n_bad(part))
    }

    /// Hands out images in order as numbers, bytes times `factor`, which the threads that bring them make; otherwise like
    /// [`ArraySource::feed`], but that nothing is mixed. There is nothing to hand out of other samples.
    pub fn feed_images<E: From<Error>>(
        &self,
        options: &FeedOptions,
        factor: f32,
        ledger: &Ledger,
        take: impl FnMut(&ValueBatch<'_>) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        match self.images() {
            Some(images) => {
                let batch = self.batch_size(options.batch) as usize;
                images.feed_values(self, options, batch, factor, ledger, take)
            }
            None => Ok(()),
        }
    }

    /// Writes one image as the network sees it: at a moment of a training, or as it is judged by. `false` if its file is no
    /// image, or samples are none.
    pub fn show_image(&self, sample: u64, order: Order, ledger: &Ledger, into: &mut [u8]) -> Result<bool> {
        self.images()
            .map_or(Ok(false), |images| images.show(sample, order, ledger, into))
    }

    /// Decodes all images once into a pack, or takes the one that is there. `progress` is told how many are done.
    pub fn pack_images(
        &mut self,
        store: &PackStore,
        threads: usize,
        ledger: &Ledger,
        progress: &mut dyn FnMut(u64) -> ControlFlow<()>,
    ) -> Result<PackedImages> {
        let options = self.image_pack(store);
        match (&mut self.samples.store, options) {
            (Store::Images(images), Some(options)) => images.build_pack(&options, threads, ledger, progress),
            _ => Ok(PackedImages::Found),
        }
    }

    /// Takes the pack of these images if it is there. If not, it is reckoned with from now on: what feeding and keeping take
    /// is told as it will be once it is built, and here is what building it takes.
    pub fn foresee_pack(
        &mut self,
        store: &PackStore,
        threads: usize,
        ledger: &Ledger,
    ) -> Result<Option<PackNeeds>> {
        let options = self.image_pack(store);
        let (Store::Images(images), Some(options)) = (&mut self.samples.store, options) else {
            return Ok(None);
        };
        if images.find_pack(&options, ledger)? {
            return Ok(None);
        }
        let needs = images.pack_needs(threads, ledger.free());
        images.foreseen = true;
        Ok(Some(needs))
    }

    /// From now on feeds begin with the images that take the most to decode, and a pack that is not there is not reckoned
    /// with any more.
    pub fn rehearse(&mut self) {
        if let Store::Images(images) = &mut self.samples.store {
            (images.foreseen, images.rehearsed) = (false, true);
        }
    }

    /// What the pack of these images takes on disk; nothing of other samples.
    pub fn packed_bytes(&self) -> u64 {
        self.images().map_or(0, Images::packed_bytes)
    }

    fn image_pack(&self, store: &PackStore) -> Option<PackOptions> {
        let images = self.images()?;
        let (path, form) = (self.path().display(), images.form);
        Some(PackOptions {
            store: store.clone(),
            key: images.pack_key(),
            description: format!("{path}, images of {}×{}", form.height, form.width),
            n_rows: self.n_samples(),
        })
    }
}
