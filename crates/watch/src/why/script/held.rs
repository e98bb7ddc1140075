//! What a value is, as far as its origin tells: a frame, an array, a tensor, a model.

use super::names::Bound;
use super::origin::{Reading, method, positional};
use super::tree::Node;

/// What a value is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Held {
    /// A table of pandas or Polars, or a column of one.
    Frame,
    Array,
    /// Made by a network: it may hold the graph that made it.
    Tensor,
    /// What a criterion returned: it holds the graph of the whole step.
    Loss,
    /// What a loader or a dataset gives: tensors without a graph.
    Batch,
    Image,
    Sparse,
    /// A reader that gives frames piece by piece.
    Pieces,
    Loader,
    /// A dataset of PyTorch or TensorFlow.
    Dataset,
    /// A dataset of Hugging Face: mapped from disk.
    MappedDataset,
    TorchModel,
    KerasModel,
    Criterion,
    Estimator,
    /// An estimator that makes sparse matrices.
    SparseMaker,
    File,
    List,
    Dict,
    Generator,
}

impl Held {
    /// Whether keeping many of it fills memory.
    pub(super) fn is_large(self) -> bool {
        use Held::{Array, Batch, Frame, Image, Loss, Sparse, Tensor};
        matches!(self, Frame | Array | Tensor | Loss | Batch | Image | Sparse)
    }
}

/// What is small whatever it was made of.
const REDUCTIONS: [&str; 31] = [
    "all",
    "any",
    "argmax",
    "argmin",
    "backward",
    "columns",
    "corr",
    "count",
    "describe",
    "dim",
    "dtype",
    "dtypes",
    "empty",
    "index",
    "info",
    "item",
    "iterrows",
    "itertuples",
    "max",
    "mean",
    "median",
    "min",
    "ndim",
    "nunique",
    "quantile",
    "shape",
    "size",
    "std",
    "sum",
    "unique",
    "var",
];

/// Functions of NumPy that return arrays as large as what they are given.
const ARRAY_FUNCTIONS: [&str; 38] = [
    "abs",
    "append",
    "arange",
    "array",
    "asarray",
    "concatenate",
    "copy",
    "dstack",
    "empty",
    "empty_like",
    "exp",
    "expand_dims",
    "full",
    "full_like",
    "fromfile",
    "genfromtxt",
    "hstack",
    "linspace",
    "load",
    "loadtxt",
    "log",
    "memmap",
    "ones",
    "ones_like",
    "pad",
    "repeat",
    "reshape",
    "resize",
    "sqrt",
    "squeeze",
    "stack",
    "tile",
    "transpose",
    "vstack",
    "where",
    "zeros",
    "zeros_like",
    "fromstring",
];

/// Functions of NumPy that draw whole arrays.
const DRAWN: [&str; 6] = [
    "permutation",
    "rand",
    "randn",
    "random",
    "random_sample",
    "standard_normal",
];

/// Functions of PyTorch whose results remember what they were made of.
const TENSOR_FUNCTIONS: [&str; 11] = [
    "cat", "concat", "einsum", "exp", "log", "matmul", "relu", "sigmoid", "softmax", "stack", "tanh",
];

/// Functions of PyTorch that make tensors of nothing.
const NEW_TENSORS: [&str; 13] = [
    "arange",
    "as_tensor",
    "empty",
    "from_numpy",
    "full",
    "ones",
    "ones_like",
    "rand",
    "rand_like",
    "randn",
    "tensor",
    "zeros",
    "zeros_like",
];

/// Functions that read an image from a file or make another one of it.
const IMAGE_FUNCTIONS: [&str; 17] = [
    "PIL.Image.open",
    "cv2.cvtColor",
    "cv2.imread",
    "cv2.resize",
    "imageio.imread",
    "imageio.v2.imread",
    "imageio.v3.imread",
    "keras.preprocessing.image.img_to_array",
    "keras.preprocessing.image.load_img",
    "keras.utils.img_to_array",
    "keras.utils.load_img",
    "matplotlib.image.imread",
    "matplotlib.pyplot.imread",
    "nibabel.load",
    "pydicom.dcmread",
    "skimage.io.imread",
    "torchvision.io.read_image",
];

/// Libraries whose objects are not networks, whatever they are called.
const OTHER_LIBRARIES: [&str; 11] = [
    "builtins",
    "catboost",
    "gensim",
    "lightgbm",
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "spacy",
    "statsmodels",
    "xgboost",
];

/// Beginnings of names of functions.
const VERBS: [&str; 9] = [
    "build", "create", "get", "init", "load", "make", "prepare", "save", "wrap",
];

/// Methods of a mapped dataset that give another one.
const MAPPING: [&str; 16] = [
    "cast",
    "cast_column",
    "filter",
    "flatten",
    "map",
    "remove_columns",
    "rename_column",
    "rename_columns",
    "select",
    "select_columns",
    "set_format",
    "shuffle",
    "skip",
    "sort",
    "train_test_split",
    "with_format",
];

impl<'s> Reading<'s> {
    /// What a value is; `None` where the script does not tell, or it is something small.
    pub(super) fn held(&self, node: Node<'s>) -> Option<Held> {
        if let Some(known) = self.values.borrow().get(&node.id()) {
            return *known;
        }
        // Whoever comes here again on the way is in a circle.
        self.values.borrow_mut().insert(node.id(), None);
        let origin = self.origin(node);
        let told = origin.as_deref().and_then(|origin| self.of_origin(origin));
        let held = match told {
            // `np.array(Image.open(path))` is an image still.
            Some(Held::Array) if node.kind() == "call" => {
                let first = positional(node).first().and_then(|first| self.held(*first));
                first.filter(|first| *first == Held::Image).or(told)
            }
            Some(told) => Some(told),
            None => self.by_its_parts(node, origin.as_deref()),
        };
        self.values.borrow_mut().insert(node.id(), held);
        held
    }

    /// What a value is by what it was made of, down to what everybody calls it.
    fn by_its_parts(&self, node: Node<'s>, origin: Option<&str>) -> Option<Held> {
        match node.kind() {
            "identifier" => {
                let made = match self.names.bound(node.text(), node) {
                    Some(Bound::Value(value) | Bound::Opened(value)) => self.held(*value),
                    Some(Bound::Item(value) | Bound::Part(value, _)) => self.held(*value).and_then(item),
                    _ => None,
                };
                made.or_else(|| self.by_its_name(node, node, origin))
            }
            "attribute" if node.field("object")?.text() == "self" => {
                self.by_its_name(node, node.field("attribute")?, origin)
            }
            "attribute" => of_attribute(self.held(node.field("object")?)?, node.field("attribute")?.text()),
            "call" => match method(node) {
                Some((object, name)) if object.text() != "self" => of_attribute(self.held(object)?, name),
                _ => result(self.held(node.field("function")?)?),
            },
            "subscript" => item(self.held(node.field("value")?)?),
            "parenthesized_expression" => self.held(node.child(0)?),
            "binary_operator" => {
                let left = self.held(node.field("left")?);
                left.or_else(|| self.held(node.field("right")?))
            }
            _ => None,
        }
    }

    fn of_origin(&self, origin: &str) -> Option<Held> {
        if origin == ".generator" {
            return Some(Held::Generator);
        }
        let made = origin.find(['(', '[']).unwrap_or(origin.len());
        let (path, rest) = origin.split_at(made);
        let (mut held, mut rest) = match rest.strip_prefix("(pieces)") {
            Some(rest) => (Held::Pieces, rest),
            None => (self.made_by(path)?, rest.strip_prefix("()")?),
        };
        while !rest.is_empty() {
            if let Some(after) = rest.strip_prefix("[]") {
                (held, rest) = (item(held)?, after);
            } else if let Some(after) = rest.strip_prefix("()") {
                (held, rest) = (result(held)?, after);
            } else {
                let name = rest.trim_start_matches('.');
                let end = name.find(['(', '[', '.']).unwrap_or(name.len());
                let (name, after) = name.split_at(end);
                held = of_attribute(held, name)?;
                // What is called after `.module` is the model in it; all others are methods.
                rest = match name {
                    "module" => after,
                    _ => after.strip_prefix("()").unwrap_or(after),
                };
            }
        }
        Some(held)
    }

    /// What calling a function or a class gives.
    fn made_by(&self, path: &str) -> Option<Held> {
        let last = path.rsplit('.').next()?;
        let is_class = last.starts_with(|c: char| c.is_ascii_uppercase());
        if IMAGE_FUNCTIONS.contains(&path) {
            return Some(Held::Image);
        }
        if let Some(own) = path.strip_prefix('.') {
            return self.made_by_own(own);
        }
        let (library, rest) = path.split_once('.').unwrap_or((path, ""));
        match library {
            "pandas" if last.starts_with("read_") => Some(Held::Frame),
            "pandas"
                if [
                    "DataFrame",
                    "Series",
                    "concat",
                    "merge",
                    "get_dummies",
                    "json_normalize",
                ]
                .contains(&rest) =>
            {
                Some(Held::Frame)
            }
            "polars" if last.starts_with("read_") || ["DataFrame", "concat"].contains(&rest) => {
                Some(Held::Frame)
            }
            "numpy" if ARRAY_FUNCTIONS.contains(&rest) => Some(Held::Array),
            "numpy" if rest.starts_with("random.") && DRAWN.contains(&last) => Some(Held::Array),
            "scipy" if rest.starts_with("sparse.") => Some(Held::Sparse),
            "torch" if rest == "utils.data.DataLoader" => Some(Held::Loader),
            "torch" if rest.starts_with("utils.data.") && is_class => Some(Held::Dataset),
            "torch"
                if rest.starts_with("nn.functional.")
                    && (last.contains("loss") || last.contains("entropy")) =>
            {
                Some(Held::Loss)
            }
            "torch" if rest.starts_with("nn.functional.") || TENSOR_FUNCTIONS.contains(&rest) => {
                Some(Held::Tensor)
            }
            "torch" if NEW_TENSORS.contains(&rest) => Some(Held::Batch),
            "torch" if rest.starts_with("nn.") && last.ends_with("Loss") => Some(Held::Criterion),
            "torch" if (rest.starts_with("nn.") && is_class) || rest == "hub.load" => Some(Held::TorchModel),
            "torchvision" if rest.starts_with("models.") => Some(Held::TorchModel),
            "torchvision" if rest.starts_with("datasets.") => Some(Held::Dataset),
            "transformers" if rest.contains("Model") && last == "from_pretrained" => Some(Held::TorchModel),
            "datasets" if ["load_dataset", "load_from_disk", "Dataset.from_csv"].contains(&rest) => {
                Some(Held::MappedDataset)
            }
            "tensorflow" if rest.starts_with("data.Dataset") => Some(Held::Dataset),
            "keras" if ["Sequential", "Model", "load_model", "clone_model"].contains(&last) => {
                Some(Held::KerasModel)
            }
            "keras" if rest.starts_with("applications.") && is_class => Some(Held::KerasModel),
            "sklearn" if rest.starts_with("feature_extraction.") && is_class => Some(Held::SparseMaker),
            "sklearn" if last == "OneHotEncoder" => Some(Held::SparseMaker),
            "sklearn" | "xgboost" | "lightgbm" | "catboost" if is_class => Some(Held::Estimator),
            "sklearn" if last == "make_pipeline" => Some(Held::Estimator),
            "builtins" | "gzip" | "bz2" | "lzma" | "io" | "codecs" if last == "open" => Some(Held::File),
            "builtins" if rest == "list" || rest == "sorted" => Some(Held::List),
            "builtins" if rest == "dict" => Some(Held::Dict),
            "collections" if ["defaultdict", "OrderedDict", "Counter"].contains(&rest) => Some(Held::Dict),
            _ => None,
        }
    }

    /// What a class of the script makes, by the classes that it is made from.
    fn made_by_own(&self, name: &str) -> Option<Held> {
        let mut name = name.to_string();
        // A class of a class of a class is still followed; circles are not.
        for _ in 0..4 {
            let Some(Bound::Definition(class)) = self.names.bound(&name, self.script.root()) else {
                return None;
            };
            let bases: Vec<_> = class
                .field("superclasses")
                .into_iter()
                .flat_map(Node::children)
                .filter_map(|base| self.origin(base))
                .collect();
            let ends_in = |endings: &[&str]| {
                bases
                    .iter()
                    .any(|base| endings.iter().any(|end| base.ends_with(end)))
            };
            if ends_in(&["torch.nn.Module", "LightningModule", "nn.Sequential"]) {
                return match name.ends_with("Loss") {
                    true => Some(Held::Criterion),
                    false => Some(Held::TorchModel),
                };
            }
            if ends_in(&["keras.Model", "keras.models.Model", "keras.Sequential"]) {
                return Some(Held::KerasModel);
            }
            if ends_in(&[
                "utils.data.Dataset",
                "utils.data.IterableDataset",
                "keras.utils.Sequence",
            ]) {
                return Some(Held::Dataset);
            }
            name = bases.iter().find_map(|base| base.strip_prefix('.'))?.to_string();
        }
        None
    }

    /// What everybody calls `model`, `loader` or `df`, where the script does not tell what it is.
    fn by_its_name(&self, node: Node<'s>, name: Node<'s>, origin: Option<&str>) -> Option<Held> {
        let library = origin
            .and_then(|origin| origin.split('.').next())
            .unwrap_or_default();
        let is_import = matches!(
            self.names.bound(name.text(), node),
            Some(Bound::Import(_) | Bound::Definition(_))
        );
        let name = name.text();
        // `build_model` makes one, and is none.
        let is_verb = name
            .trim_start_matches('_')
            .split_once('_')
            .is_some_and(|(first, _)| VERBS.contains(&first));
        if OTHER_LIBRARIES.contains(&library) || is_import || is_verb || self.defines(name) {
            return None;
        }
        let is = |names: &[&str]| {
            names.iter().any(|whole| {
                let rest = name.strip_suffix(whole);
                rest.is_some_and(|rest| rest.is_empty() || rest.ends_with('_'))
            })
        };
        let (torch, keras) = (self.names.imports("torch"), self.uses_keras());
        match () {
            () if torch && is(&["loader", "dataloader", "dl"]) => Some(Held::Loader),
            () if torch && is(&["criterion", "loss_fn", "loss_func", "loss_function"]) => {
                Some(Held::Criterion)
            }
            () if torch && !keras && is(&["model", "net", "network", "backbone", "encoder", "decoder"]) => {
                Some(Held::TorchModel)
            }
            () if keras && !torch && is(&["model"]) => Some(Held::KerasModel),
            () if self.names.imports("pandas") && (is(&["df", "dataframe"]) || name.starts_with("df_")) => {
                Some(Held::Frame)
            }
            () => None,
        }
    }

    pub(super) fn uses_keras(&self) -> bool {
        self.names.imports("keras") || self.names.imports("tensorflow")
    }
}

/// What one of them is.
fn item(held: Held) -> Option<Held> {
    match held {
        Held::Frame | Held::Pieces => Some(Held::Frame),
        Held::Loader | Held::Dataset | Held::Batch => Some(Held::Batch),
        Held::Tensor => Some(Held::Tensor),
        Held::Loss => Some(Held::Loss),
        Held::Image => Some(Held::Image),
        Held::Sparse => Some(Held::Sparse),
        Held::TorchModel => Some(Held::TorchModel),
        Held::MappedDataset => Some(Held::MappedDataset),
        _ => None,
    }
}

/// What calling it gives.
fn result(held: Held) -> Option<Held> {
    match held {
        Held::TorchModel | Held::KerasModel => Some(Held::Tensor),
        Held::Criterion => Some(Held::Loss),
        _ => None,
    }
}

/// What an attribute of it is, or what a method of it returns.
fn of_attribute(held: Held, name: &str) -> Option<Held> {
    match (held, name) {
        (Held::Loss, "mean" | "sum" | "view" | "reshape" | "to" | "cpu" | "float") => Some(Held::Loss),
        (Held::Tensor, "mean" | "sum" | "max" | "min") => Some(Held::Tensor),
        (Held::Tensor, "loss") => Some(Held::Loss),
        (Held::Loss, _) => None,
        (Held::Frame | Held::Array | Held::Tensor | Held::Batch | Held::Image | Held::Sparse, name)
            if REDUCTIONS.contains(&name) =>
        {
            None
        }
        (Held::Frame, "values" | "to_numpy") => Some(Held::Array),
        (Held::Frame | Held::Array | Held::Tensor | Held::Batch, "tolist" | "to_list") => Some(Held::List),
        (Held::Frame, "to_dict") => Some(Held::Dict),
        (Held::Tensor | Held::Batch, "numpy") => Some(Held::Array),
        (Held::Sparse, "toarray" | "todense") => Some(Held::Array),
        (Held::MappedDataset, "to_pandas" | "to_polars") => Some(Held::Frame),
        (Held::MappedDataset, name) => MAPPING.contains(&name).then_some(Held::MappedDataset),
        // A few, and not all.
        (Held::Dataset, "take" | "element_spec" | "cardinality") => None,
        (Held::TorchModel, "forward") => Some(Held::Tensor),
        (
            Held::TorchModel,
            "to" | "cuda" | "cpu" | "eval" | "train" | "half" | "float" | "double" | "module",
        ) => Some(Held::TorchModel),
        (Held::Criterion, "to" | "cuda") => Some(Held::Criterion),
        (Held::KerasModel, "predict" | "predict_on_batch") => Some(Held::Array),
        (Held::Estimator | Held::SparseMaker, "fit") => Some(held),
        (Held::Estimator, "predict" | "predict_proba" | "transform" | "fit_transform") => Some(Held::Array),
        (Held::SparseMaker, "transform" | "fit_transform") => Some(Held::Sparse),
        (
            Held::Frame
            | Held::Array
            | Held::Tensor
            | Held::Batch
            | Held::Image
            | Held::Sparse
            | Held::Dataset,
            _,
        ) => Some(held),
        _ => None,
    }
}
