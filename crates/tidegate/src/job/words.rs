//! What a job says by a word: how numbers are kept; or by a table whose `kind` is that word: optimizers, schedules, losses.

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use tidegate_train::network::{Loss, Moments, Precision, Recompute, Rule, Schedule};

/// Something that goes by a word, and has settings.
///
/// ```
/// use tidegate::Worded;
/// use tidegate_train::network::Rule;
///
/// assert_eq!(Rule::named("adam"), Ok(Rule::default()));
/// let wrong = Rule::named("adamm").unwrap_err();
/// assert_eq!(wrong, "unknown optimizer \"adamm\"; there are sgd, adam, adamw, rmsprop");
/// ```
pub trait Worded: PartialEq + Serialize + Sized {
    /// The key of a job that it stands under.
    const NOUN: &'static str;
    const WORDS: &'static [&'static str];

    /// Out of a word or a table.
    fn of_value(value: Value) -> Result<Self, String>;

    /// What a word alone stands for.
    fn named(word: &str) -> Result<Self, String> {
        Self::of_value(Value::String(word.into()))
    }

    /// The word that says it all, if there is one.
    fn word(&self) -> Option<&'static str> {
        let stands = |word: &&&str| Self::named(word).is_ok_and(|named| named == *self);
        Self::WORDS.iter().find(stands).copied()
    }
}

impl Worded for Rule {
    const NOUN: &'static str = "optimizer";
    const WORDS: &'static [&'static str] = &["sgd", "adam", "adamw", "rmsprop"];

    fn of_value(value: Value) -> Result<Rule, String> {
        tagged::<Rule, Rule>(value)
    }
}

impl Worded for Loss {
    const NOUN: &'static str = "loss";
    const WORDS: &'static [&'static str] = &["cross_entropy", "binary", "mse", "mae", "huber"];

    fn of_value(value: Value) -> Result<Loss, String> {
        tagged::<Loss, Loss>(value)
    }
}

/// The course of the learning rate, as it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
#[serde(untagged)]
pub enum ScheduleChoice {
    /// `step` and no more: a tenth of the rate after every third of the epochs.
    Thirds,
    Given(Schedule),
}

impl Default for ScheduleChoice {
    fn default() -> ScheduleChoice {
        ScheduleChoice::Given(Schedule::default())
    }
}

impl ScheduleChoice {
    /// With its numbers, for a training of so many epochs after the warm-up.
    pub fn over(self, epochs: f64) -> Schedule {
        match self {
            ScheduleChoice::Thirds => Schedule::Step {
                epochs: epochs / 3.0,
                factor: 0.1,
            },
            ScheduleChoice::Given(schedule) => schedule,
        }
    }
}

impl Worded for ScheduleChoice {
    const NOUN: &'static str = "schedule";
    const WORDS: &'static [&'static str] = &["constant", "cosine", "step", "one_cycle"];

    fn of_value(value: Value) -> Result<ScheduleChoice, String> {
        match value {
            Value::String(word) if word == "step" => Ok(ScheduleChoice::Thirds),
            value => tagged::<ScheduleChoice, Schedule>(value).map(ScheduleChoice::Given),
        }
    }
}

/// Something that the plan chooses, unless it is given.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Auto<T> {
    #[default]
    Auto,
    Given(T),
}

impl<T> Auto<T> {
    pub fn given(self) -> Option<T> {
        match self {
            Auto::Auto => None,
            Auto::Given(value) => Some(value),
        }
    }
}

/// An enum without settings that a plan may choose.
trait Knob: DeserializeOwned {
    const NOUN: &'static str;
    const WORDS: &'static [&'static str];
}

impl Knob for Moments {
    const NOUN: &'static str = "moments";
    const WORDS: &'static [&'static str] = &["auto", "f32", "bf16", "8bit"];
}

impl Knob for Precision {
    const NOUN: &'static str = "precision";
    const WORDS: &'static [&'static str] = &["auto", "f32", "bf16", "f16"];
}

impl Knob for Recompute {
    const NOUN: &'static str = "recompute";
    const WORDS: &'static [&'static str] = &["auto", "none", "cheap", "most"];
}

impl<T: Knob + PartialEq + Serialize> Worded for Auto<T> {
    const NOUN: &'static str = T::NOUN;
    const WORDS: &'static [&'static str] = T::WORDS;

    fn of_value(value: Value) -> Result<Auto<T>, String> {
        match value {
            Value::String(word) if word == "auto" => Ok(Auto::Auto),
            value => {
                let unknown = format!("unknown {} {value}; there are {}", T::NOUN, T::WORDS.join(", "));
                serde_json::from_value(value)
                    .map(Auto::Given)
                    .map_err(|_| unknown)
            }
        }
    }
}

/// Reads `T`, an enum that its `kind` tells apart, with the words of `W`.
fn tagged<W: Worded, T: DeserializeOwned + Serialize>(value: Value) -> Result<T, String> {
    let noun = W::NOUN;
    let there_are = || format!("there are {}", W::WORDS.join(", "));
    let fields = match value {
        Value::String(word) => Map::from_iter([("kind".to_string(), Value::String(word))]),
        Value::Object(fields) => fields,
        other => return Err(format!("{noun} is a word or a table, not {other}")),
    };
    let kind = match fields.get("kind") {
        Some(Value::String(kind)) if W::WORDS.contains(&kind.as_str()) => kind.clone(),
        Some(kind) => return Err(format!("unknown {noun} {kind}; {}", there_are())),
        None => return Err(format!("{noun} has no kind; {}", there_are())),
    };
    let keys: Vec<String> = fields.keys().filter(|key| *key != "kind").cloned().collect();
    let read: T =
        serde_json::from_value(Value::Object(fields)).map_err(|error| format!("{noun}: {error}"))?;
    // Of a kind without settings serde would take any.
    let settings = serde_json::to_value(&read).ok();
    let settings = settings.as_ref().and_then(Value::as_object).map_or(0, Map::len);
    match keys.first() {
        Some(key) if settings <= 1 => Err(format!("{noun}: {kind} has no {key}")),
        _ => Ok(read),
    }
}

pub(super) fn read<'de, D: Deserializer<'de>, T: Worded>(deserializer: D) -> Result<T, D::Error> {
    T::of_value(Value::deserialize(deserializer)?).map_err(D::Error::custom)
}

pub(super) fn read_some<'de, D: Deserializer<'de>, T: Worded>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    read(deserializer).map(Some)
}

/// A word is enough where it says it all.
pub(super) fn write<S: Serializer, T: Worded>(value: &T, serializer: S) -> Result<S::Ok, S::Error> {
    match value.word() {
        Some(word) => word.serialize(serializer),
        None => value.serialize(serializer),
    }
}

pub(super) fn write_some<S: Serializer, T: Worded>(
    value: &Option<T>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => write(value, serializer),
        None => serializer.serialize_none(),
    }
}
