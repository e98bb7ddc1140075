//! The keys of a job file and what they are set to, as far as comparing jobs needs it.
//!
//! This is no reader of TOML: job files are written by this program, a key to a line, tables with their names above. Values
//! are compared and shown as they stand.

/// Every key with the tables that it is in, `train.seed`, and its value, in their order.
pub(crate) fn keys(text: &str) -> Vec<(String, String)> {
    let mut keys: Vec<(String, String)> = Vec::new();
    let mut table = String::new();
    let mut depth = 0i32;
    for line in text.lines() {
        let trimmed = line.trim();
        if depth > 0 {
            // The rest of a value of several lines.
            if let Some((_, value)) = keys.last_mut() {
                value.push(' ');
                value.push_str(trimmed);
            }
            depth += opened(trimmed);
            continue;
        }
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if let Some(name) = trimmed.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = name.trim_matches(['[', ']']).trim().to_string() + ".";
            continue;
        }
        let (key, value) = trimmed.split_once('=').unwrap_or((trimmed, ""));
        let value = value.trim();
        depth = opened(value).max(0);
        keys.push((format!("{table}{}", key.trim()), value.to_string()));
    }
    keys
}

/// The value of a key as a word: without its quotes.
pub(crate) fn value<'k>(keys: &'k [(String, String)], name: &str) -> Option<&'k str> {
    let (_, value) = keys.iter().find(|(key, _)| key == name)?;
    Some(value.trim_matches('"'))
}

/// How many brackets are opened and not closed, outside of texts.
fn opened(text: &str) -> i32 {
    let (mut depth, mut quote, mut escaped) = (0, None, false);
    for c in text.chars() {
        match (quote, c) {
            _ if escaped => escaped = false,
            (Some('"'), '\\') => escaped = true,
            (Some(open), c) if c == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '#') => break,
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            _ => {}
        }
    }
    depth
}

/// One key of several jobs.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub(crate) struct Compared {
    pub(crate) key: String,
    /// Of each job; `null` where it does not have the key.
    pub(crate) values: Vec<Option<String>>,
    pub(crate) differs: bool,
}

/// The keys of all jobs, in the order of the first that has them.
pub(crate) fn compare(jobs: &[Option<String>]) -> Vec<Compared> {
    let all: Vec<Vec<(String, String)>> = jobs
        .iter()
        .map(|job| job.as_deref().map(keys).unwrap_or_default())
        .collect();
    let mut order: Vec<&str> = Vec::new();
    for (key, _) in all.iter().flatten() {
        if !order.contains(&key.as_str()) {
            order.push(key);
        }
    }
    let of = |key: &str| -> Vec<Option<String>> {
        let find = |keys: &Vec<(String, String)>| {
            keys.iter()
                .find(|(name, _)| name == key)
                .map(|(_, value)| value.clone())
        };
        all.iter().map(find).collect()
    };
    order
        .into_iter()
        .map(|key| {
            let values = of(key);
            Compared {
                key: key.into(),
                differs: values.iter().any(|value| *value != values[0]),
                values,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: &str = "memory = \"64MB\"\n\n[data]\npath = [\n    \"a [b.csv\",\n    \"c.csv\",\n]\ntarget = \"y\"\n\n[train]\nseed = 7\n";

    #[test]
    fn keys_have_their_tables() {
        let keys = keys(JOB);
        let of = |name| value(&keys, name);
        assert_eq!(of("memory"), Some("64MB"));
        assert_eq!(of("data.path"), Some("[ \"a [b.csv\", \"c.csv\", ]"));
        assert_eq!(of("data.target"), Some("y"));
        assert_eq!(of("train.seed"), Some("7"));
        assert_eq!(keys.len(), 4);
    }

    #[test]
    fn what_is_no_job_is_taken_as_it_is() {
        for text in ["", "[", "]]]\n=", "a = [\n[\n", "\"", "= =\n[x\n]", "\u{0}=\u{1}"] {
            keys(text);
        }
    }

    #[test]
    fn jobs_differ_by_key() {
        let other = JOB.replace("seed = 7", "seed = 8\nepochs = 3");
        let compared = compare(&[Some(JOB.into()), Some(other), None]);
        let differing = compare(&[Some(JOB.into()), Some(JOB.into())]);
        assert!(differing.iter().all(|one| !one.differs));
        let seed = compared.iter().find(|one| one.key == "train.seed").unwrap();
        assert!(seed.differs);
        assert_eq!(seed.values, [Some("7".into()), Some("8".into()), None]);
        let epochs = compared.iter().find(|one| one.key == "train.epochs").unwrap();
        assert_eq!(epochs.values[0], None);
    }
}
