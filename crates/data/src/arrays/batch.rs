//! A batch of samples on its way to a model, and how it is put together.

use super::element::Element;
use super::samples::Mapped;
use super::source::ArraySource;
use crate::images::augment::Mixing;

/// Samples that belong together, where they stand, and their labels.
pub struct SampleBatch<'a> {
    stands: Stands<'a>,
    places: &'a [Place],
    samples: &'a [u64],
    targets: &'a [f32],
    element: Element,
    sample_len: usize,
    sample_bytes: usize,
    first: u64,
    cursor: u64,
    mixing: Option<Mixing>,
    /// Values of a row of a sample, and of a place in it.
    rows: (usize, usize),
}

impl SampleBatch<'_> {
    pub fn n_samples(&self) -> usize {
        self.samples.len()
    }

    /// Which samples they are: their places in the arrays.
    pub fn samples(&self) -> &[u64] {
        self.samples
    }

    /// The position in the epoch of its first sample.
    pub fn first(&self) -> u64 {
        self.first
    }

    /// How samples are mixed with each other, and so must their labels be.
    pub fn mixing(&self) -> Option<&Mixing> {
        self.mixing.as_ref()
    }

    /// Samples of this epoch that are used once this batch is: where another feed goes on.
    pub fn cursor(&self) -> u64 {
        self.cursor
    }

    /// Labels, one after another: the index of a class, a number, or a row of several. Empty where there are none.
    pub fn targets(&self) -> &[f32] {
        self.targets
    }

    /// Writes the numbers of all samples, one sample after another, as they stand: nothing is scaled.
    pub fn write_inputs(&self, into: &mut [f32]) {
        if let Some(mixing) = &self.mixing {
            for (place, into) in into
                .chunks_mut(self.sample_len)
                .take(self.samples.len())
                .enumerate()
            {
                let both = [place, mixing.partner(place)].map(|place| self.sample_bytes(place));
                mixing.write(both, self.rows, into);
            }
            return;
        }
        for (place, into) in self.places.iter().zip(into.chunks_mut(self.sample_len)) {
            self.element
                .write_f32(self.stands.bytes(place, self.sample_bytes), into);
        }
    }

    /// Writes the numbers of all samples times a factor. Of bytes that is one pass.
    pub fn write_inputs_times(&self, factor: f32, into: &mut [f32]) {
        if self.element != Element::U8 || self.mixing.is_some() {
            self.write_inputs(into);
            into.iter_mut().for_each(|value| *value *= factor);
            return;
        }
        for (place, into) in self.places.iter().zip(into.chunks_mut(self.sample_len)) {
            for (into, byte) in into.iter_mut().zip(self.stands.bytes(place, self.sample_bytes)) {
                *into = f32::from(*byte) * factor;
            }
        }
    }

    /// The bytes of one sample, numbers in the order of bytes of the machine.
    pub fn sample_bytes(&self, place: usize) -> &[u8] {
        let place = self.places.get(place);
        place.map_or(&[], |place| self.stands.bytes(place, self.sample_bytes))
    }
}

/// Where a sample of a batch stands.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// A map, where files are mapped, or [`CARRIED`].
    pub base: u32,
    pub at: usize,
}

/// The base of samples that were left over and put aside for the next batch.
pub(crate) const CARRIED: u32 = u32::MAX;

/// Memory that samples of a batch stand in.
#[derive(Clone, Copy)]
pub(crate) struct Stands<'a> {
    pub base: Base<'a>,
    pub carried: &'a [u8],
}

#[derive(Clone, Copy)]
pub(crate) enum Base<'a> {
    One(&'a [u8]),
    Maps(&'a [Mapped]),
}

impl<'a> Stands<'a> {
    pub(crate) fn bytes(&self, place: &Place, sample_bytes: usize) -> &'a [u8] {
        let base = match (place.base, self.base) {
            (CARRIED, _) => self.carried,
            (_, Base::One(bytes)) => bytes,
            (map, Base::Maps(maps)) => maps.get(map as usize).map_or(&[][..], Mapped::values),
        };
        base.get(place.at..place.at + sample_bytes).unwrap_or_default()
    }
}

/// A batch being put together. It has room for all that it can hold from the start.
pub(crate) struct Assembly<'a> {
    source: &'a ArraySource,
    /// Samples of a full batch.
    size: usize,
    samples: Vec<u64>,
    places: Vec<Place>,
    targets: Vec<f32>,
    /// Where the batch begins and ends in the epoch.
    pub first: u64,
    pub cursor: u64,
    pub mixing: Option<Mixing>,
}

impl<'a> Assembly<'a> {
    /// What it takes for each sample of a batch.
    pub(crate) fn bytes_per_sample(source: &ArraySource) -> u64 {
        let width = source.labels().map_or(0, |labels| labels.width());
        (size_of::<u64>() + size_of::<Place>() + width * size_of::<f32>()) as u64
    }

    pub(crate) fn new(source: &'a ArraySource, size: usize, cursor: u64) -> Assembly<'a> {
        let width = source.labels().map_or(0, |labels| labels.width());
        Assembly {
            source,
            size,
            samples: Vec::with_capacity(size),
            places: Vec::with_capacity(size),
            targets: Vec::with_capacity(size * width),
            first: cursor,
            cursor,
            mixing: None,
        }
    }

    /// Adds a sample that stands at this place; whether the batch is full then.
    pub(crate) fn push(&mut self, sample: u64, place: Place) -> bool {
        self.samples.push(sample);
        self.places.push(place);
        self.targets.extend_from_slice(self.source.target(sample));
        self.cursor += 1;
        self.samples.len() >= self.size
    }

    /// A sample that there is not after all.
    pub(crate) fn pass_over(&mut self) {
        self.cursor += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.samples.len()
    }

    pub(crate) fn batch<'b>(&'b mut self, stands: Stands<'b>) -> SampleBatch<'b> {
        let (samples, sample_len) = (&self.source.samples, self.source.sample_len());
        let sample_bytes = samples.sample_bytes() as usize;
        if samples.labels > 0 {
            // They stand behind each sample.
            self.targets.resize(self.places.len() * samples.labels, 0.0);
            let into = self.targets.chunks_exact_mut(samples.labels);
            for (place, into) in self.places.iter().zip(into) {
                let bytes = stands.bytes(place, sample_bytes);
                let labels = bytes.get(sample_len * samples.element.bytes()..);
                samples.element.write_f32(labels.unwrap_or_default(), into);
            }
        }
        SampleBatch {
            stands,
            places: &self.places,
            samples: &self.samples,
            targets: &self.targets,
            element: self.source.element(),
            sample_len,
            sample_bytes,
            first: self.first,
            cursor: self.cursor,
            mixing: self.mixing,
            rows: match samples.shape.as_slice() {
                [_, width, channels] => (*width, *channels),
                _ => (sample_len, 1),
            },
        }
    }

    pub(crate) fn clear(&mut self) {
        self.first = self.cursor;
        self.mixing = None;
        self.samples.clear();
        self.places.clear();
        self.targets.clear();
    }

    /// Puts aside what is left over, for what it stands in is about to go.
    pub(crate) fn carry(&mut self, base: Base<'_>, carried: &mut [u8]) {
        let sample_bytes = self.source.samples.sample_bytes() as usize;
        let aside = carried.chunks_exact_mut(sample_bytes).enumerate();
        for (place, (i, aside)) in self.places.iter_mut().zip(aside) {
            if place.base != CARRIED {
                let stands = Stands { base, carried: &[] };
                aside.copy_from_slice(stands.bytes(place, sample_bytes));
                *place = Place {
                    base: CARRIED,
                    at: i * sample_bytes,
                };
            }
        }
    }
}
