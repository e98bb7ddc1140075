//! The names and values of an address or a form, in their order, a name as often as it comes.

use axum::http::Uri;

use crate::error::{Error, Result};

/// A text as a value of an address.
pub(crate) fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

/// What stands behind the `?`, or in the body of a form.
#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    pairs: Vec<(String, String)>,
}

impl Query {
    pub(crate) fn of(uri: &Uri) -> Query {
        Query::parse(uri.query().unwrap_or_default().as_bytes())
    }

    pub(crate) fn parse(text: &[u8]) -> Query {
        Query {
            pairs: form_urlencoded::parse(text).into_owned().collect(),
        }
    }

    /// The first value of a name that is not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        let named = self.pairs.iter().filter(|(key, _)| key == name);
        named
            .map(|(_, value)| value.as_str())
            .find(|value| !value.is_empty())
    }

    /// Every value of a name.
    pub(crate) fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.pairs
            .iter()
            .filter(move |(key, _)| key == name)
            .map(|(_, value)| value.as_str())
    }

    /// A number, or a word on what is wrong with it.
    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Result<Option<T>> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        text.parse().map(Some).map_err(|_| Error::Request {
            what: format!("{name} is {text:?}"),
            hint: format!("{name} is a number"),
        })
    }

    /// A word of a few.
    pub(crate) fn word<T>(
        &self,
        name: &str,
        parse: impl Fn(&str) -> Option<T>,
        known: &str,
    ) -> Result<Option<T>> {
        let Some(text) = self.get(name) else {
            return Ok(None);
        };
        parse(text).map(Some).ok_or_else(|| Error::Request {
            what: format!("{name} is {text:?}"),
            hint: format!("{name} is one of {known}"),
        })
    }

    /// The same without a name, encoded.
    pub(crate) fn without(&self, name: &str) -> String {
        let kept = self.pairs.iter().filter(|(key, _)| key != name);
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .finish()
    }

    /// The same with another value of a name, encoded.
    pub(crate) fn with(&self, name: &str, value: &str) -> String {
        let kept = self
            .pairs
            .iter()
            .filter(|(key, value)| key != name && !value.is_empty());
        form_urlencoded::Serializer::new(String::new())
            .extend_pairs(kept)
            .append_pair(name, value)
            .finish()
    }
}
