//! Whether an answer is as a schema of OpenAPI 3.1 says: the part of JSON Schema that `openapi.json` is written in. A word
//! that is not known here is a mistake in the file: nothing in it goes unchecked.

use serde_json::Value;

/// Words that say something to people alone.
const REMARKS: [&str; 4] = ["description", "title", "examples", "format"];

/// What is wrong with a value, each with the place where it was found.
pub(crate) fn complaints(file: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let mut check = Check {
        file,
        complaints: Vec::new(),
    };
    check.value(schema, value, "$");
    check.complaints
}

struct Check<'a> {
    file: &'a Value,
    complaints: Vec<String>,
}

impl Check<'_> {
    fn value(&mut self, schema: &Value, value: &Value, at: &str) {
        if schema == &Value::Bool(true) {
            return;
        }
        let words = schema
            .as_object()
            .unwrap_or_else(|| panic!("{at}: {schema} is no schema"));
        for (word, said) in words {
            match word.as_str() {
                "$ref" => self.value(resolve(self.file, said), value, at),
                "type" => self.kind(said, value, at),
                "const" => self.demand(said == value, at, || format!("{value} is not {said}")),
                "enum" => {
                    let known = said.as_array().unwrap();
                    self.demand(known.contains(value), at, || format!("{value} is none of {said}"));
                }
                "minimum" => {
                    let is_less = value.as_f64() < said.as_f64();
                    self.demand(!value.is_number() || !is_less, at, || {
                        format!("{value} is less than {said}")
                    });
                }
                "oneOf" => self.one_of(said.as_array().unwrap(), value, at),
                "allOf" => said
                    .as_array()
                    .unwrap()
                    .iter()
                    .for_each(|schema| self.value(schema, value, at)),
                "items" => {
                    for (i, item) in value.as_array().into_iter().flatten().enumerate() {
                        self.value(said, item, &format!("{at}[{i}]"));
                    }
                }
                "prefixItems" => {
                    for (i, (schema, item)) in said
                        .as_array()
                        .unwrap()
                        .iter()
                        .zip(value.as_array().into_iter().flatten())
                        .enumerate()
                    {
                        self.value(schema, item, &format!("{at}[{i}]"));
                    }
                }
                "minItems" | "maxItems" => {
                    let (count, limit) = (value.as_array().map(Vec::len), said.as_u64().unwrap() as usize);
                    let fits = count.is_none_or(|count| {
                        if word == "minItems" {
                            count >= limit
                        } else {
                            count <= limit
                        }
                    });
                    self.demand(fits, at, || format!("{count:?} items, {word} is {limit}"));
                }
                "required" => {
                    for name in said.as_array().unwrap().iter().map(|name| name.as_str().unwrap()) {
                        let is_there = !value.is_object() || value.get(name).is_some();
                        self.demand(is_there, at, || format!("{name} is missing"));
                    }
                }
                "properties" => {
                    for (name, schema) in said.as_object().unwrap() {
                        if let Some(value) = value.get(name) {
                            self.value(schema, value, &format!("{at}.{name}"));
                        }
                    }
                }
                "additionalProperties" => self.others(words.get("properties"), said, value, at),
                remark if REMARKS.contains(&remark) => {}
                other => panic!("{at}: openapi.json says {other:?}, which nobody checks"),
            }
        }
    }

    /// Properties that have no schema of their own.
    fn others(&mut self, known: Option<&Value>, said: &Value, value: &Value, at: &str) {
        for (name, value) in value.as_object().into_iter().flatten() {
            if known.is_some_and(|known| known.get(name).is_some()) {
                continue;
            }
            match said {
                Value::Bool(false) => self.demand(false, at, || format!("{name} is not described")),
                schema => self.value(schema, value, &format!("{at}.{name}")),
            }
        }
    }

    fn one_of(&mut self, schemas: &[Value], value: &Value, at: &str) {
        let found: Vec<Vec<String>> = schemas
            .iter()
            .map(|schema| complaints(self.file, schema, value))
            .collect();
        let fitting = found.iter().filter(|complaints| complaints.is_empty()).count();
        self.demand(fitting == 1, at, || {
            let of_each: Vec<String> = found.iter().map(|complaints| complaints.join("; ")).collect();
            format!(
                "{fitting} of {} schemas fit: {}",
                schemas.len(),
                of_each.join(" | ")
            )
        });
    }

    fn kind(&mut self, said: &Value, value: &Value, at: &str) {
        let is = |kind: &Value| match kind.as_str().unwrap() {
            "null" => value.is_null(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "string" => value.is_string(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{at}: there is no type {other:?}"),
        };
        let fits = match said {
            Value::Array(kinds) => kinds.iter().any(is),
            kind => is(kind),
        };
        self.demand(fits, at, || format!("{} is no {said}", shortened(value)));
    }

    fn demand(&mut self, is_so: bool, at: &str, complaint: impl FnOnce() -> String) {
        if !is_so {
            self.complaints.push(format!("{at}: {}", complaint()));
        }
    }
}

/// What `{"$ref": "#/components/…"}` names, or the value itself.
pub(crate) fn resolve<'a>(file: &'a Value, reference: &Value) -> &'a Value {
    let path = reference
        .as_str()
        .and_then(|path| path.strip_prefix('#'))
        .unwrap();
    file.pointer(path)
        .unwrap_or_else(|| panic!("openapi.json has no {path}"))
}

fn shortened(value: &Value) -> String {
    value.to_string().chars().take(80).collect()
}

#[test]
fn schemas_are_held() {
    let file =
        serde_json::json!({"components": {"schemas": {"Size": {"type": ["integer", "null"], "minimum": 0}}}});
    let schema = serde_json::json!({
        "type": "object",
        "required": ["name", "sizes"],
        "properties": {
            "name": {"type": "string", "enum": ["a", "b"]},
            "sizes": {"type": "array", "items": {"$ref": "#/components/schemas/Size"}, "minItems": 1},
            "what": {"oneOf": [{"type": "string"}, {"type": "integer"}]}
        },
        "additionalProperties": false
    });
    let check = |text: &str, expected: &[&str]| {
        let value = serde_json::from_str(text).unwrap();
        assert_eq!(complaints(&file, &schema, &value), expected, "{text}");
    };
    check(r#"{"name": "a", "sizes": [1, null]}"#, &[]);
    check(r#"{"name": "a", "sizes": [1], "what": 3}"#, &[]);
    check(
        r#"{"name": "c", "sizes": [1]}"#,
        &[r#"$.name: "c" is none of ["a","b"]"#],
    );
    check(r#"{"name": "a"}"#, &["$: sizes is missing"]);
    check(
        r#"{"name": "a", "sizes": [-1]}"#,
        &["$.sizes[0]: -1 is less than 0"],
    );
    check(
        r#"{"name": "a", "sizes": [1.5]}"#,
        &[r#"$.sizes[0]: 1.5 is no ["integer","null"]"#],
    );
    check(
        r#"{"name": "a", "sizes": []}"#,
        &["$.sizes: Some(0) items, minItems is 1"],
    );
    check(
        r#"{"name": "a", "sizes": [1], "more": 1}"#,
        &["$: more is not described"],
    );
    check(r#"[]"#, &[r#"$: [] is no "object""#]);
    check(
        r#"{"name": "a", "sizes": [1], "what": true}"#,
        &[r#"$.what: 0 of 2 schemas fit: $: true is no "string" | $: true is no "integer""#],
    );
}
