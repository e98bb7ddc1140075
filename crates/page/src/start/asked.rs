//! What a person asks of a training: the fields of the form, checked, and the words of the command that they become.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use tidegate_memory::Amount;

use crate::error::{Error, Result};
use crate::query::Query;
use crate::site::Options;
use crate::start::files::allowed_data;

/// The kinds of model that can be chosen, and what they are for.
pub(crate) const MODELS: [(&str, &str); 7] = [
    ("auto", "Chosen by the data"),
    ("boost", "Boosted trees"),
    ("linear", "Linear model"),
    ("mlp", "Network of dense layers"),
    ("cnn", "Convolutional network"),
    ("resnet18", "ResNet-18"),
    ("mobilenet", "MobileNet"),
];

/// A training as it is asked for; nothing of it is believed yet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Asked {
    pub(crate) data: Option<String>,
    pub(crate) target: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) name: Option<String>,
    pub(crate) memory: Option<String>,
    pub(crate) epochs: Option<u32>,
    pub(crate) trees: Option<u32>,
}

impl Asked {
    pub(crate) fn of(query: &Query) -> Result<Asked> {
        let text = |name: &str| query.get(name).map(Into::into);
        Ok(Asked {
            data: text("data"),
            target: text("target"),
            model: text("model"),
            name: text("name").map(|name: String| name.trim().into()),
            memory: text("memory").map(|memory: String| memory.trim().into()),
            epochs: query.number("epochs")?,
            trees: query.number("trees")?,
        })
    }

    /// What a program sends as JSON.
    pub(crate) fn of_json(body: &[u8]) -> Result<Asked> {
        serde_json::from_slice(body).map_err(|error| Error::Request {
            what: format!("the body is not what is asked for: {error}"),
            hint: r#"such as {"data": "/data/flights.csv", "target": "delayed", "memory": "2GB"}"#.into(),
        })
    }

    /// The data, if they may be trained on.
    pub(crate) fn data(&self, options: &Options) -> Result<PathBuf> {
        match &self.data {
            Some(data) => allowed_data(options, data),
            None => Err(Error::Request {
                what: "there are no data to train on".into(),
                hint: "choose a file or a folder".into(),
            }),
        }
    }

    /// The words for a command about these data, its verb first. What came from outside stands behind an equals sign or
    /// behind `--`, where nothing is taken for an option. Labels may be a file of their own, tables name images, folders
    /// have links: the program, which reads them, refuses what is not below the roots.
    pub(crate) fn words(
        &self,
        verb: &str,
        options: &[&str],
        data: &Path,
        roots: &[PathBuf],
    ) -> Result<Vec<OsString>> {
        let mut words: Vec<OsString> = vec![verb.into()];
        words.extend(options.iter().map(Into::into));
        words.extend(roots.iter().map(|root| {
            let mut below = OsString::from("--below=");
            below.push(root);
            below
        }));
        let mut say = |name: &str, value: Option<&str>| {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                words.push(format!("--{name}={value}").into());
            }
        };
        say("target", self.target.as_deref());
        if let Some(model) = &self.model
            && !MODELS.iter().any(|(known, _)| known == model)
        {
            let known: Vec<&str> = MODELS.iter().map(|(name, _)| *name).collect();
            return Err(Error::Request {
                what: format!("model is {model:?}"),
                hint: format!("model is one of {}", known.join(", ")),
            });
        }
        say("model", self.model.as_deref());
        say("name", self.name.as_deref());
        let memory = self.memory.as_deref().map(check_memory).transpose()?;
        say("memory", memory);
        say("epochs", self.epochs.map(|n| n.to_string()).as_deref());
        say("trees", self.trees.map(|n| n.to_string()).as_deref());
        words.push("--".into());
        words.push(data.into());
        Ok(words)
    }
}

/// An amount of memory that the command line reads.
pub(crate) fn check_memory(text: &str) -> Result<&str> {
    let read: std::result::Result<Amount, _> = text.parse();
    read.map(|_| text).map_err(|error| Error::Request {
        what: error.to_string(),
        hint: error.hint().unwrap_or_else(|| "write 2GB, 512MB or 80%".into()),
    })
}
