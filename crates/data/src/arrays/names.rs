//! What arrays hold by the names that people give them: samples or labels, for training or for a test.

/// Words for arrays of samples, of labels, and for parts of the data.
const SAMPLES: [&str; 9] = [
    "x", "image", "images", "imgs", "data", "feature", "features", "inputs", "samples",
];
const LABELS: [&str; 7] = ["y", "label", "labels", "target", "targets", "class", "classes"];
const TRAINING: [&str; 2] = ["train", "training"];
const TEST: [&str; 3] = ["test", "testing", "t10k"];
const VALIDATION: [&str; 4] = ["val", "valid", "validation", "dev"];

/// What an array holds, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Samples,
    Labels,
    Other,
}

/// Which part of the data, by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Split {
    Training,
    Test,
    Validation,
    /// No word says.
    Whole,
}

/// A name read word by word.
#[derive(Debug, Clone, PartialEq)]
struct Name {
    role: Role,
    split: Split,
    /// Words that say neither: the number of a shard, for one. Arrays that belong together share them.
    rest: Vec<String>,
}

impl Name {
    fn read(name: &str) -> Name {
        let mut read = Name {
            role: Role::Other,
            split: Split::Whole,
            rest: Vec::new(),
        };
        for word in stem(name).split(|letter: char| !letter.is_alphanumeric()) {
            let word = word.to_lowercase();
            let is = |words: &[&str]| words.contains(&word.as_str());
            if is(&LABELS) {
                read.role = Role::Labels;
            } else if is(&SAMPLES) {
                // `image_labels` are labels.
                if read.role == Role::Other {
                    read.role = Role::Samples;
                }
            } else if let Some(split) = split(&word) {
                read.split = split;
            } else if !word.is_empty() && !is_format(&word) {
                read.rest.push(word);
            }
        }
        read
    }
}

/// The part of the data that this word stands for.
pub(crate) fn split(word: &str) -> Option<Split> {
    let word = word.to_lowercase();
    let is = |words: &[&str]| words.contains(&word.as_str());
    match () {
        () if is(&TRAINING) => Some(Split::Training),
        () if is(&TEST) => Some(Split::Test),
        () if is(&VALIDATION) => Some(Split::Validation),
        () => None,
    }
}

/// Whether this name calls an array samples.
pub(crate) fn are_samples(name: &str) -> bool {
    Name::read(name).role == Role::Samples
}

/// A name without its endings.
pub(crate) fn stem(name: &str) -> &str {
    let name = name.strip_suffix(".gz").unwrap_or(name);
    [".npy", ".npz", ".idx"]
        .iter()
        .find_map(|ending| name.strip_suffix(ending))
        .unwrap_or(name)
}

/// Whether a file of this name may be an array.
pub(crate) fn is_array_name(name: &str) -> bool {
    let plain = name.strip_suffix(".gz").unwrap_or(name).to_lowercase();
    [".npy", ".npz", ".idx", "-ubyte", ".ubyte"]
        .iter()
        .any(|ending| plain.ends_with(ending))
        || plain.contains("-idx")
        || plain.contains(".idx")
}

/// Words of the format: `idx3`, `ubyte`.
fn is_format(word: &str) -> bool {
    let axes = word.strip_prefix("idx");
    word == "ubyte" || axes.is_some_and(|axes| axes.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Which arrays are which, by their places in a list of names.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pairs {
    pub training: Pair,
    pub test: Option<Pair>,
}

/// Arrays of samples, and labels: one array for each of them, or one for all, or none.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Pair {
    pub samples: Vec<usize>,
    pub labels: Vec<usize>,
}

/// What is asked of the arrays.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Asked {
    /// Places of what was named.
    pub samples: Option<usize>,
    pub labels: Option<usize>,
    /// Whether there need to be labels.
    pub labelled: bool,
    /// Whether several arrays of samples may share one of labels.
    pub sharing: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unpaired {
    UnclearSamples,
    UnclearLabels,
    NoLabels,
}

/// Tells samples and labels apart.
pub(crate) fn pair(names: &[String], asked: Asked) -> Result<Pairs, Unpaired> {
    let read: Vec<Name> = names.iter().map(|name| Name::read(name)).collect();
    let among = Among { read: &read, asked };
    let samples = among.samples()?;
    let split = samples.first().map_or(Split::Whole, |first| read[*first].split);
    let labels = match asked.labels {
        Some(labels) => vec![labels],
        None => among.labels(&samples, split, asked.labelled)?,
    };
    let training = Pair { samples, labels };
    let test = match split {
        Split::Training | Split::Whole => [Split::Test, Split::Validation]
            .into_iter()
            .find_map(|split| among.test(split, &training)),
        Split::Test | Split::Validation => None,
    };
    Ok(Pairs { training, test })
}

struct Among<'a> {
    read: &'a [Name],
    asked: Asked,
}

impl Among<'_> {
    fn places(&self, wanted: impl Fn(&Name) -> bool) -> Vec<usize> {
        let labels = self.asked.labels;
        let places = (0..self.read.len()).filter(|place| Some(*place) != labels);
        places.filter(|place| wanted(&self.read[*place])).collect()
    }

    /// The arrays of samples.
    fn samples(&self) -> Result<Vec<usize>, Unpaired> {
        if let Some(samples) = self.asked.samples {
            return Ok(vec![samples]);
        }
        let labels = self.asked.labels.map(|labels| &self.read[labels]);
        // Of the part that labels were named for, or of the training part.
        let splits = match labels {
            Some(Name { split, .. }) if *split != Split::Whole => vec![*split],
            _ => vec![Split::Training, Split::Whole, Split::Test, Split::Validation],
        };
        for role in [Role::Samples, Role::Other] {
            for split in &splits {
                let found = self.places(|name| name.role == role && name.split == *split);
                if found.is_empty() {
                    continue;
                }
                return self.shards(found, labels);
            }
        }
        match self.places(|_| true).as_slice() {
            [only] => Ok(vec![*only]),
            _ => Err(Unpaired::UnclearSamples),
        }
    }

    /// Several arrays are the shards of one where their names tell them apart.
    fn shards(&self, found: Vec<usize>, labels: Option<&Name>) -> Result<Vec<usize>, Unpaired> {
        if found.len() == 1 {
            return Ok(found);
        }
        // Labels that were named belong to the samples of the same name.
        let same = |place: &usize| labels.is_some_and(|labels| labels.rest == self.read[*place].rest);
        let mut mates = found.iter().copied().filter(same);
        if let (Some(mate), None) = (mates.next(), mates.next()) {
            return Ok(vec![mate]);
        }
        let mut rests: Vec<&Vec<String>> = found.iter().map(|place| &self.read[*place].rest).collect();
        rests.sort();
        let distinct = rests.windows(2).all(|pair| pair[0] != pair[1]);
        let shared = self.asked.sharing || (self.asked.labelled && self.asked.labels.is_none());
        match distinct && shared {
            true => Ok(found),
            false => Err(Unpaired::UnclearSamples),
        }
    }

    /// The labels of these samples.
    fn labels(&self, samples: &[usize], split: Split, labelled: bool) -> Result<Vec<usize>, Unpaired> {
        if !labelled {
            return Ok(Vec::new());
        }
        let labels = self.places(|name| name.role == Role::Labels && name.split == split);
        let labels: Vec<usize> = labels
            .into_iter()
            .filter(|place| !samples.contains(place))
            .collect();
        let mates = |sample: &usize| {
            let rest = &self.read[*sample].rest;
            let mates = labels
                .iter()
                .copied()
                .filter(move |label| self.read[*label].rest == *rest);
            mates.collect::<Vec<usize>>()
        };
        let mates: Vec<Vec<usize>> = samples.iter().map(mates).collect();
        if mates.iter().all(|mates| mates.len() == 1) {
            return Ok(mates.into_iter().flatten().collect());
        }
        if mates.iter().any(|mates| mates.len() > 1) {
            return Err(Unpaired::UnclearLabels);
        }
        let others = self.places(|name| name.role != Role::Labels && name.split == split);
        match labels.as_slice() {
            [] => Err(Unpaired::NoLabels),
            // One for all of them: for the only array there is, or for the files of a folder.
            [only] if self.asked.sharing || others.len() <= 1 => Ok(vec![*only]),
            _ => Err(Unpaired::UnclearLabels),
        }
    }

    /// The arrays of another part, where they are clear.
    fn test(&self, split: Split, training: &Pair) -> Option<Pair> {
        let first = &self.read[*training.samples.first()?];
        let mut samples = self.places(|name| name.role == first.role && name.split == split);
        samples.retain(|place| !training.labels.contains(place));
        if training.samples.len() == 1 && samples.len() > 1 {
            samples.retain(|place| self.read[*place].rest == first.rest);
        }
        if samples.is_empty() || (samples.len() > 1 && training.samples.len() == 1) {
            return None;
        }
        let labels = self.labels(&samples, split, !training.labels.is_empty()).ok()?;
        Some(Pair { samples, labels })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(names: &[&str], asked: Asked) -> Result<Pairs, Unpaired> {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        pair(&names, asked)
    }

    const FREELY: Asked = Asked {
        samples: None,
        labels: None,
        labelled: true,
        sharing: false,
    };

    #[test]
    fn usual_names_are_understood() {
        let check = |names: &[&str], samples: usize, labels: usize, test: Option<(usize, usize)>| {
            let pairs = find(names, FREELY).unwrap_or_else(|error| panic!("{names:?}: {error:?}"));
            assert_eq!(
                (pairs.training.samples, pairs.training.labels),
                (vec![samples], vec![labels])
            );
            let expected = test.map(|(samples, labels)| (vec![samples], vec![labels]));
            assert_eq!(
                pairs.test.map(|test| (test.samples, test.labels)),
                expected,
                "{names:?}"
            );
        };
        check(&["x.npy", "y.npy"], 0, 1, None);
        check(&["X", "y"], 0, 1, None);
        check(&["labels", "data"], 1, 0, None);
        check(&["images.npy", "labels.npy"], 0, 1, None);
        check(&["X_train.npy", "y_train.npy"], 0, 1, None);
        check(&["x_test", "x_train", "y_train", "y_test"], 1, 2, Some((0, 3)));
        check(&["x", "x_test", "y", "y_test"], 0, 2, Some((1, 3)));
        check(
            &[
                "t10k-images-idx3-ubyte.gz",
                "t10k-labels-idx1-ubyte.gz",
                "train-images-idx3-ubyte.gz",
                "train-labels-idx1-ubyte.gz",
            ],
            2,
            3,
            Some((0, 1)),
        );
        check(
            &[
                "train_images",
                "val_images",
                "test_images",
                "train_labels",
                "val_labels",
                "test_labels",
            ],
            0,
            3,
            Some((2, 5)),
        );
        check(&["cats", "cats_labels"], 0, 1, None);
        check(&["spectra", "labels"], 0, 1, None);
        check(&["images", "masks", "labels"], 0, 2, None);
        check(&["image_labels", "images"], 1, 0, None);
        check(&["t10k-images.idx3-ubyte", "t10k-labels.idx1-ubyte"], 0, 1, None);
    }

    #[test]
    fn shards_find_their_labels() {
        let pairs = find(&["x_000.npy", "x_001.npy", "y_000.npy", "y_001.npy"], FREELY).unwrap();
        assert_eq!(
            pairs.training,
            Pair {
                samples: vec![0, 1],
                labels: vec![2, 3]
            }
        );
        let sharing = Asked {
            sharing: true,
            ..FREELY
        };
        let pairs = find(&["0001.npy", "0002.npy", "0003.npy", "labels.npy"], sharing).unwrap();
        assert_eq!(
            pairs.training,
            Pair {
                samples: vec![0, 1, 2],
                labels: vec![3]
            }
        );
    }

    #[test]
    fn what_was_named_is_taken() {
        let named = |samples, labels| Asked {
            samples,
            labels,
            ..FREELY
        };
        let check = |names: &[&str], asked, samples: usize, labels: usize| {
            let pairs = find(names, asked).unwrap();
            assert_eq!(
                (pairs.training.samples, pairs.training.labels),
                (vec![samples], vec![labels])
            );
        };
        check(&["arr_0", "arr_1"], named(None, Some(1)), 0, 1);
        check(&["age", "sex", "x"], named(None, Some(0)), 2, 0);
        check(
            &["x_train", "x_test", "y_train", "y_test"],
            named(None, Some(3)),
            1,
            3,
        );
        check(
            &["x_train", "x_test", "fine_train", "fine_test"],
            named(None, Some(2)),
            0,
            2,
        );
        check(&["a", "b", "c"], named(Some(1), Some(2)), 1, 2);
        check(
            &["x_train", "x_test", "y_train", "y_test"],
            named(Some(1), None),
            1,
            3,
        );
    }

    #[test]
    fn what_is_not_clear_is_not_guessed() {
        let check = |names: &[&str], expected| assert_eq!(find(names, FREELY), Err(expected), "{names:?}");
        check(&["x", "data", "y"], Unpaired::UnclearSamples);
        check(&["x"], Unpaired::NoLabels);
        check(&["x", "y", "labels"], Unpaired::UnclearLabels);
        check(&["arr_0", "arr_1"], Unpaired::NoLabels);
        let alone = Asked {
            labelled: false,
            ..FREELY
        };
        assert_eq!(find(&["arr_0", "arr_1"], alone), Err(Unpaired::UnclearSamples));
        check(&["y"], Unpaired::NoLabels);
    }
}
