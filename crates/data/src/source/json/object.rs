//! Walking one JSON object value by value, without building a tree of it.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

/// Objects inside objects become columns, `a.b.c`, as deep as this; what is deeper is passed over.
const DEPTH: usize = 8;

/// A value that is no object.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Value<'v> {
    Null,
    Boolean(bool),
    Integer(i64),
    /// Beyond what an `i64` holds.
    Unsigned(u64),
    Float(f64),
    Text(&'v str),
    /// A list has no place in a table: it is told and passed over.
    List,
}

/// Receives the values of an object by their keys.
pub(super) trait Sink {
    /// What it refuses makes the line a bad one.
    fn value(&mut self, key: &str, value: Value) -> Result<(), String>;
}

/// Walks the object that is all of `line`. `key` is scratch for the names of nested values.
pub(super) fn walk<S: Sink>(line: &[u8], key: &mut String, sink: &mut S) -> Result<(), serde_json::Error> {
    key.clear();
    let mut json = serde_json::Deserializer::from_slice(line);
    json.deserialize_map(Object { key, depth: 0, sink })?;
    json.end()
}

struct Object<'w, S> {
    /// The name of the object, as its values' names begin.
    key: &'w mut String,
    depth: usize,
    sink: &'w mut S,
}

impl<'de, S: Sink> Visitor<'de> for Object<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        if self.depth > 0 {
            self.key.push('.');
        }
        let prefix = self.key.len();
        while map
            .next_key_seed(Key {
                key: self.key,
                prefix,
            })?
            .is_some()
        {
            map.next_value_seed(Cell(Object {
                key: self.key,
                depth: self.depth,
                sink: self.sink,
            }))?;
        }
        Ok(())
    }
}

/// Puts a key behind the name of its object.
struct Key<'w> {
    key: &'w mut String,
    prefix: usize,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a key")
    }

    fn visit_str<E: Error>(self, key: &str) -> Result<(), E> {
        self.key.truncate(self.prefix);
        self.key.push_str(key);
        Ok(())
    }
}

/// A value of an object.
struct Cell<'w, S>(Object<'w, S>);

impl<'de, S: Sink> DeserializeSeed<'de> for Cell<'_, S> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<S: Sink> Cell<'_, S> {
    fn send<E: Error>(self, value: Value) -> Result<(), E> {
        let Object { key, sink, .. } = self.0;
        sink.value(key, value).map_err(E::custom)
    }
}

impl<'de, S: Sink> Visitor<'de> for Cell<'_, S> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.send(Value::Null)
    }

    fn visit_bool<E: Error>(self, value: bool) -> Result<(), E> {
        self.send(Value::Boolean(value))
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.send(Value::Integer(value))
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.send(i64::try_from(value).map_or(Value::Unsigned(value), Value::Integer))
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.send(Value::Float(value))
    }

    fn visit_str<E: Error>(self, value: &str) -> Result<(), E> {
        self.send(Value::Text(value))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let Object { key, depth, sink } = self.0;
        if depth + 1 == DEPTH {
            while map.next_entry::<IgnoredAny, IgnoredAny>()?.is_some() {}
            return Ok(());
        }
        let depth = depth + 1;
        Object { key, depth, sink }.visit_map(map)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element::<IgnoredAny>()?.is_some() {}
        self.send(Value::List)
    }
}
