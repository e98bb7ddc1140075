//! The truth about a program of the corpus: the comment lines that it begins with. What each means is told in
//! `corpus/header.py`.

use std::fs;
use std::path::{Path, PathBuf};

const PACKAGES: [&str; 5] = ["numpy", "pandas", "scipy", "scikit-learn", "torch"];
const SOURCES: [&str; 5] = ["py", "sh", "c", "cpp", "rs"];

#[derive(Debug, Default)]
pub(crate) struct Program {
    pub(crate) path: PathBuf,
    pub(crate) causes: Vec<String>,
    pub(crate) exit: i32,
    pub(crate) memory: Option<String>,
    pub(crate) pattern: Option<String>,
    pub(crate) line: Option<u64>,
    pub(crate) needs: Vec<String>,
    pub(crate) limits: Vec<(String, u64)>,
    pub(crate) after: Option<After>,
    pub(crate) slow: bool,
}

/// A signal that the program gets, so long after its first line of output.
#[derive(Debug)]
pub(crate) struct After {
    pub(crate) signal: String,
    pub(crate) seconds: f64,
    /// How far below `tidegate run` whoever gets it is: 0 is itself, 1 the program, 2 its child.
    pub(crate) depth: usize,
}

impl Program {
    pub(crate) fn name(&self) -> &str {
        self.path
            .file_name()
            .and_then(|name| name.to_str())
            .unwrap_or_default()
    }

    pub(crate) fn is(&self, extension: &str) -> bool {
        self.path.extension().is_some_and(|found| found == extension)
    }

    pub(crate) fn needs_packages(&self) -> bool {
        self.needs.iter().any(|need| PACKAGES.contains(&need.as_str()))
    }

    pub(crate) fn limit(&self, key: &str) -> Option<u64> {
        self.limits
            .iter()
            .find(|(known, _)| known == key)
            .map(|(_, limit)| *limit)
    }
}

/// All programs of a folder, by name.
pub(crate) fn read_all(folder: &Path) -> Vec<Program> {
    let entries = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| {
        let extension = path.extension().and_then(|extension| extension.to_str());
        extension.is_some_and(|extension| SOURCES.contains(&extension))
    });
    paths.sort();
    paths.into_iter().map(read).collect()
}

fn read(path: PathBuf) -> Program {
    let text = fs::read_to_string(&path).unwrap();
    let mut program = Program {
        path,
        exit: -1,
        ..Program::default()
    };
    let comments = text
        .lines()
        .map_while(|line| line.strip_prefix("# ").or_else(|| line.strip_prefix("// ")));
    for comment in comments {
        let (key, value) = comment.split_once(": ").unwrap_or((comment, ""));
        match key {
            "cause" => program.causes = value.split(" or ").map(Into::into).collect(),
            "exit" => program.exit = value.parse().unwrap(),
            "memory" => program.memory = Some(value.into()),
            "pattern" => program.pattern = Some(value.into()),
            "line" => program.line = Some(value.parse().unwrap()),
            "needs" => program.needs = value.split_whitespace().map(Into::into).collect(),
            "limit" => program.limits = value.split_whitespace().map(limit).collect(),
            "after" => program.after = Some(after(value)),
            "slow" => program.slow = true,
            "grade" | "near-miss of" => {}
            // The first line that is none of these ends the header.
            _ => break,
        }
    }
    let name = program.name();
    assert!(
        !program.causes.is_empty() && program.exit >= 0,
        "{name} does not say how it ends"
    );
    program
}

/// `as=512M`: powers of 1024, as `ulimit` and `mount` mean it.
fn limit(word: &str) -> (String, u64) {
    let (key, value) = word.split_once('=').unwrap();
    let digits = value.trim_end_matches(['K', 'M', 'G']);
    let factor = match &value[digits.len()..] {
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => 1,
    };
    (key.into(), digits.parse::<u64>().unwrap() * factor)
}

/// `kill=TERM 2s to=run`
fn after(value: &str) -> After {
    let mut words = value.split_whitespace();
    let signal = words.next().and_then(|word| word.strip_prefix("kill=")).unwrap();
    let seconds = words.next().and_then(|word| word.strip_suffix('s')).unwrap();
    After {
        signal: signal.into(),
        seconds: seconds.parse().unwrap(),
        depth: match words.next() {
            None => 1,
            Some("to=run") => 0,
            Some("to=child") => 2,
            Some(other) => panic!("{other:?} is nobody to send a signal to"),
        },
    }
}
