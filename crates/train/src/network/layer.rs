//! Layers as data: what a job says of a network, before any shape is known.
//!
//! ```toml
//! layers = [
//!   { conv = 32, kernel = 3, activation = "relu" }, { max_pool = 2 },
//!   { residual = [{ conv = 32, padding = "same" }, "batch_norm"], activation = "relu" },
//!   "flatten", { dense = 128, activation = "relu" }, { dropout = 0.5 }, { dense = "classes" },
//! ]
//! ```

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};

/// A layer, its name and whether it learns.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    pub kind: Kind,
    /// What its weights are called by; its place in the list where there is none.
    pub name: Option<String>,
    /// Its weights stay as they are.
    pub frozen: bool,
}

impl Layer {
    pub fn new(kind: Kind) -> Layer {
        Layer {
            kind,
            name: None,
            frozen: false,
        }
    }

    pub fn named(self, name: &str) -> Layer {
        Layer {
            name: Some(name.into()),
            ..self
        }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    Dense(Dense),
    Conv(Conv),
    Depthwise(Depthwise),
    Pool(PoolKind, Pool),
    GlobalPool(PoolKind),
    Flatten,
    Reshape(Vec<usize>),
    /// The share of values that are left out.
    Dropout(f32),
    Norm(Norm),
    Activation(Activation),
    Residual(Residual),
    Embedding(Embedding),
    Sparse(Sparse),
}

/// `y = activation(x · W + b)`, over the last axis.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dense {
    #[serde(rename = "dense")]
    pub units: Units,
    #[serde(default = "yes")]
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
}

/// How many values a dense layer makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Units {
    Fixed(usize),
    /// As many as the task needs: one for each class, one for a number or one of two values.
    Outputs,
}

/// A convolution over the one or two axes before the channels.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Conv {
    #[serde(rename = "conv")]
    pub channels: usize,
    #[serde(default = "three")]
    pub kernel: Axes,
    #[serde(default = "one")]
    pub stride: Axes,
    #[serde(default)]
    pub padding: Padding,
    #[serde(default = "one")]
    pub dilation: Axes,
    #[serde(default = "one_group")]
    pub groups: usize,
    #[serde(default = "yes")]
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
}

/// A convolution of every channel by itself.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Depthwise {
    #[serde(rename = "depthwise")]
    pub kernel: Axes,
    #[serde(default = "one")]
    pub stride: Axes,
    #[serde(default)]
    pub padding: Padding,
    #[serde(default = "one")]
    pub dilation: Axes,
    /// Channels that each becomes.
    #[serde(default = "one_group")]
    pub multiplier: usize,
    #[serde(default = "yes")]
    pub bias: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PoolKind {
    Max,
    /// The mean; what is beyond the border does not count.
    Average,
}

/// The largest or the mean of the values in a window, channel by channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pool {
    #[serde(alias = "max_pool", alias = "average_pool")]
    pub size: Axes,
    /// As the size where nothing is said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stride: Option<Axes>,
    #[serde(default)]
    pub padding: Padding,
}

/// Mean 0 and deviation 1, then a scale and a shift that are learned.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Norm {
    #[serde(rename = "norm")]
    pub over: Over,
    /// Of the channels, for `group`.
    #[serde(default = "one_group")]
    pub groups: usize,
    #[serde(default = "epsilon")]
    pub epsilon: f32,
    /// How much of the running mean and deviation each batch replaces.
    #[serde(default = "momentum")]
    pub momentum: f32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
}

/// What mean and deviation are taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Over {
    /// A channel of the whole batch.
    Batch,
    /// The channels of a place.
    Layer,
    /// Some channels of a sample.
    Group,
}

/// `y = activation(main(x) + shortcut(x))`
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Residual {
    #[serde(rename = "residual")]
    pub main: Vec<Layer>,
    /// The sample as it is, where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub shortcut: Vec<Layer>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub activation: Option<Activation>,
}

/// Whole numbers below `tokens`, each made into a vector of its own.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Embedding {
    #[serde(rename = "embedding")]
    pub width: usize,
    pub tokens: usize,
}

/// The columns of a table: dense values pass, and sparse ones become the sum of a vector for each. Of one place among
/// very many, a step changes only those that its rows have.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sparse {
    /// Of the vectors.
    #[serde(rename = "sparse")]
    pub width: usize,
    /// Places that sparse values may have; the table says how many.
    #[serde(default)]
    pub places: usize,
    /// Sparse values of a row, at the most; the table says how many.
    #[serde(default)]
    pub pairs: usize,
}

/// One value for each axis, or one for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Axes {
    All(usize),
    Each([usize; 2]),
}

impl Axes {
    /// For rows and columns; a sequence has columns only.
    pub(crate) fn of(self, two: bool) -> [usize; 2] {
        match self {
            Axes::All(n) if two => [n, n],
            Axes::All(n) => [1, n],
            Axes::Each(each) => each,
        }
    }
}

/// What is around an image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Padding {
    /// Nothing: the output is smaller.
    #[default]
    Valid,
    /// As many zeros as give one output for every `stride` of the input.
    Same,
    /// So many on both sides.
    Zeros(Axes),
}

/// A function of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    Relu,
    Relu6,
    LeakyRelu,
    Elu,
    Gelu,
    GeluTanh,
    Silu,
    Sigmoid,
    Tanh,
    Softplus,
    HardSwish,
}

impl Activation {
    const ALL: [(&'static str, Activation); 11] = [
        ("relu", Activation::Relu),
        ("relu6", Activation::Relu6),
        ("leaky_relu", Activation::LeakyRelu),
        ("elu", Activation::Elu),
        ("gelu", Activation::Gelu),
        ("gelu_tanh", Activation::GeluTanh),
        ("silu", Activation::Silu),
        ("sigmoid", Activation::Sigmoid),
        ("tanh", Activation::Tanh),
        ("softplus", Activation::Softplus),
        ("hard_swish", Activation::HardSwish),
    ];

    fn named(name: &str) -> Option<Activation> {
        let named = Activation::ALL.iter().find(|(known, _)| *known == name);
        named.map(|(_, activation)| *activation)
    }
}

fn yes() -> bool {
    true
}

fn one() -> Axes {
    Axes::All(1)
}

fn three() -> Axes {
    Axes::All(3)
}

fn one_group() -> usize {
    1
}

fn epsilon() -> f32 {
    1e-5
}

fn momentum() -> f32 {
    0.1
}

impl Norm {
    pub fn new(over: Over) -> Norm {
        Norm {
            over,
            groups: one_group(),
            epsilon: epsilon(),
            momentum: momentum(),
            activation: None,
        }
    }
}

impl<'de> Deserialize<'de> for Layer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Layer, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) => of_word(&word).map(Layer::new).map_err(D::Error::custom),
            Value::Object(fields) => of_fields(fields).map_err(D::Error::custom),
            other => Err(D::Error::custom(format!(
                "a layer is a word or a table, not {other}"
            ))),
        }
    }
}

const KINDS: &str = "dense, conv, depthwise, max_pool, average_pool, global_max_pool, global_average_pool, flatten, \
                     reshape, dropout, norm, batch_norm, layer_norm, activation, residual, embedding, sparse";

fn of_word(word: &str) -> Result<Kind, String> {
    Ok(match word {
        "flatten" => Kind::Flatten,
        "global_average_pool" => Kind::GlobalPool(PoolKind::Average),
        "global_max_pool" => Kind::GlobalPool(PoolKind::Max),
        "batch_norm" => Kind::Norm(Norm::new(Over::Batch)),
        "layer_norm" => Kind::Norm(Norm::new(Over::Layer)),
        _ => match Activation::named(word) {
            Some(activation) => Kind::Activation(activation),
            None => return Err(format!("unknown layer {word:?}; there are {KINDS}")),
        },
    })
}

fn of_fields(mut fields: Map<String, Value>) -> Result<Layer, String> {
    let mut take = |key: &str| fields.remove(key);
    let name = match take("name") {
        Some(Value::String(name)) => Some(name),
        Some(other) => return Err(format!("the name of a layer is a text, not {other}")),
        None => None,
    };
    let frozen = match take("frozen") {
        Some(Value::Bool(frozen)) => frozen,
        Some(other) => return Err(format!("frozen is true or false, not {other}")),
        None => false,
    };
    let has = |key: &str| fields.contains_key(key);
    let kind = if has("dense") {
        Kind::Dense(read("dense", fields)?)
    } else if has("conv") {
        Kind::Conv(read("conv", fields)?)
    } else if has("depthwise") {
        Kind::Depthwise(read("depthwise", fields)?)
    } else if has("max_pool") {
        Kind::Pool(PoolKind::Max, read("max_pool", fields)?)
    } else if has("average_pool") {
        Kind::Pool(PoolKind::Average, read("average_pool", fields)?)
    } else if has("norm") {
        Kind::Norm(read("norm", fields)?)
    } else if has("residual") {
        Kind::Residual(read("residual", fields)?)
    } else if has("embedding") {
        Kind::Embedding(read("embedding", fields)?)
    } else if has("sparse") {
        Kind::Sparse(read("sparse", fields)?)
    } else if has("reshape") {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Reshape {
            reshape: Vec<usize>,
        }
        Kind::Reshape(read::<Reshape>("reshape", fields)?.reshape)
    } else if has("dropout") {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Dropout {
            dropout: f32,
        }
        Kind::Dropout(read::<Dropout>("dropout", fields)?.dropout)
    } else if has("activation") {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Alone {
            activation: Activation,
        }
        Kind::Activation(read::<Alone>("activation", fields)?.activation)
    } else if let Some(key) = fields.keys().next().filter(|_| fields.len() == 1) {
        // `{ flatten = true }`
        of_word(key)?
    } else {
        let keys: Vec<&str> = fields.keys().map(String::as_str).collect();
        return Err(format!(
            "a layer with {} is none that is known; there are {KINDS}",
            keys.join(", ")
        ));
    };
    Ok(Layer { kind, name, frozen })
}

fn read<T: DeserializeOwned>(kind: &str, fields: Map<String, Value>) -> Result<T, String> {
    serde_json::from_value(Value::Object(fields)).map_err(|error| format!("{kind}: {error}"))
}

impl Serialize for Layer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let plain = |value: serde_json::Result<Value>| value.expect("layers are plain data");
        let mut value = match &self.kind {
            Kind::Dense(dense) => plain(serde_json::to_value(dense)),
            Kind::Conv(conv) => plain(serde_json::to_value(conv)),
            Kind::Depthwise(depthwise) => plain(serde_json::to_value(depthwise)),
            Kind::Pool(kind, pool) => {
                let mut value = plain(serde_json::to_value(pool));
                let key = match kind {
                    PoolKind::Max => "max_pool",
                    PoolKind::Average => "average_pool",
                };
                value[key] = value["size"].take();
                value.as_object_mut().expect("a table").remove("size");
                value
            }
            Kind::GlobalPool(PoolKind::Max) => serde_json::json!({ "global_max_pool": true }),
            Kind::GlobalPool(PoolKind::Average) => serde_json::json!({ "global_average_pool": true }),
            Kind::Flatten => serde_json::json!({ "flatten": true }),
            Kind::Reshape(shape) => serde_json::json!({ "reshape": shape }),
            Kind::Dropout(share) => serde_json::json!({ "dropout": share }),
            Kind::Norm(norm) => plain(serde_json::to_value(norm)),
            Kind::Activation(activation) => serde_json::json!({ "activation": activation }),
            Kind::Residual(residual) => plain(serde_json::to_value(residual)),
            Kind::Embedding(embedding) => plain(serde_json::to_value(embedding)),
            Kind::Sparse(sparse) => plain(serde_json::to_value(sparse)),
        };
        if let Some(name) = &self.name {
            value["name"] = Value::String(name.clone());
        }
        if self.frozen {
            value["frozen"] = Value::Bool(true);
        }
        value.serialize(serializer)
    }
}

impl Serialize for Units {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Units::Fixed(n) => n.serialize(serializer),
            Units::Outputs => "classes".serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Units {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Units, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "classes" || word == "outputs" => Ok(Units::Outputs),
            Value::Number(n) if n.as_u64().is_some_and(|n| n > 0) => {
                Ok(Units::Fixed(n.as_u64().unwrap_or_default() as usize))
            }
            other => Err(D::Error::custom(format!(
                "{other} is not a number of units; give one above 0, or \"classes\""
            ))),
        }
    }
}

impl Serialize for Padding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Padding::Valid => "valid".serialize(serializer),
            Padding::Same => "same".serialize(serializer),
            Padding::Zeros(axes) => axes.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Padding {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Padding, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(word) if word == "valid" => Ok(Padding::Valid),
            Value::String(word) if word == "same" => Ok(Padding::Same),
            other => match serde_json::from_value(other.clone()) {
                Ok(axes) => Ok(Padding::Zeros(axes)),
                Err(_) => Err(D::Error::custom(format!(
                    "{other} is not a padding; give \"valid\", \"same\", a number or two"
                ))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Job {
        layers: Vec<Layer>,
    }

    #[test]
    fn layers_come_back_from_their_text() {
        let text = r#"layers = [
            { conv = 32, kernel = [3, 5], stride = 2, padding = "same", activation = "relu", name = "stem" },
            { depthwise = 3, padding = 1 }, { max_pool = 2 }, { average_pool = [2, 1], stride = 1, padding = [1, 0] },
            { norm = "batch", activation = "gelu" }, "layer_norm", { norm = "group", groups = 4 },
            { residual = [{ conv = 8, groups = 2, bias = false }, "relu"], shortcut = ["batch_norm"], activation = "tanh" },
            "global_average_pool", { reshape = [2, 4] }, "flatten", { dropout = 0.5 }, "silu",
            { embedding = 5, tokens = 100 }, { sparse = 64 }, { sparse = 8, places = 1000, pairs = 3 },
            { dense = 128, frozen = true }, { dense = "classes" },
        ]"#;
        let job: Job = toml::from_str(text).unwrap();
        assert_eq!(job.layers.len(), 18);
        assert!(job.layers[16].frozen && job.layers[0].name.as_deref() == Some("stem"));
        let again: Job = toml::from_str(&toml::to_string(&job).unwrap()).unwrap();
        assert_eq!(again, job);
        let json: Vec<Layer> = serde_json::from_str(&serde_json::to_string(&job.layers).unwrap()).unwrap();
        assert_eq!(json, job.layers);
    }

    #[test]
    fn what_is_no_layer_says_what_there_is() {
        let error = |text: &str| serde_json::from_str::<Layer>(text).unwrap_err().to_string();
        assert!(
            error(r#""convolution""#).starts_with("unknown layer \"convolution\"; there are dense, conv")
        );
        assert!(error(r#"{"dense": 3, "kernel": 2}"#).starts_with("dense: unknown field `kernel`"));
        assert!(error(r#"{"dense": 0}"#).contains("0 is not a number of units"));
        assert!(error(r#"{"conv": 3, "padding": "full"}"#).contains("\"full\" is not a padding"));
        assert!(error(r#"{"activation": "rellu"}"#).contains("unknown variant `rellu`"));
        assert!(error(r#"{"width": 3, "height": 2}"#).starts_with("a layer with height, width is none"));
        assert!(error("3").contains("a layer is a word or a table, not 3"));
    }
}
