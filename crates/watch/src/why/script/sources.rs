//! Which files of Python a run was made of: the script that its command names, and what its stacks went through.

use std::fs::File;
use std::io::Read;
use std::path::{Component, Path, PathBuf};

use super::is_notebook;
use super::tree::MOST_BYTES;
use crate::why::Case;

/// More files than this nobody looks at.
const MOST_FILES: usize = 50;

/// The files to read, the script itself first. Some may not be there: a module has two places where it can be.
pub fn sources(case: &Case) -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = Vec::new();
    let named = scripts(&case.facts.command, 0);
    let in_stacks = case.stacks.frames.iter().map(|frame| frame.file.as_str());
    let in_stacks = in_stacks.filter(|file| is_users_code(file)).map(PathBuf::from);
    let notebooks = case.facts.notebooks.iter().cloned();
    for file in named.into_iter().chain(notebooks).chain(in_stacks) {
        let file = absolute(&case.facts.folder, &file);
        if !files.contains(&file) {
            files.push(file);
        }
        if files.len() == MOST_FILES {
            break;
        }
    }
    files
}

/// Reads them, up to a size; what is missing, too long or no plain file is left out.
pub fn read_sources(case: &Case) -> Vec<(PathBuf, String)> {
    let files = sources(case).into_iter();
    files
        .filter_map(|file| {
            let text = read_source(&file)?;
            Some((file, text))
        })
        .collect()
}

/// Notebooks hold pictures of what they showed, which the code in them is small beside.
const MOST_NOTEBOOK_BYTES: usize = 16 << 20;

fn read_source(file: &Path) -> Option<String> {
    let most = if is_notebook(file) {
        MOST_NOTEBOOK_BYTES
    } else {
        MOST_BYTES
    };
    // A pipe or a device of that name would keep us waiting.
    if !std::fs::metadata(file).ok()?.is_file() {
        return None;
    }
    let mut bytes = Vec::new();
    File::open(file)
        .ok()?
        .take(most as u64 + 1)
        .read_to_end(&mut bytes)
        .ok()?;
    (bytes.len() <= most).then(|| String::from_utf8_lossy(&bytes).into_owned())
}

/// A path below the folder that the command ran in, without `.` and `..` as far as the text tells.
pub(super) fn absolute(folder: &Path, file: &Path) -> PathBuf {
    let mut path = PathBuf::new();
    for part in folder.join(file).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir if path.file_name().is_some() => drop(path.pop()),
            part => path.push(part),
        }
    }
    path
}

/// Whether a file of a stack is the user's own code, not Python's or a library's.
fn is_users_code(file: &str) -> bool {
    let libraries = [
        "/site-packages/",
        "/dist-packages/",
        "/lib/python",
        "/lib64/python",
    ];
    let is_library = libraries.iter().any(|part| file.contains(part));
    file.ends_with(".py") && !file.starts_with('<') && !file.contains("/ipykernel_") && !is_library
}

/// Shells inside shells are not followed further.
const DEEPEST: u32 = 3;

/// The scripts and notebooks that a command runs.
fn scripts(command: &[String], depth: u32) -> Vec<PathBuf> {
    for (place, word) in command.iter().enumerate() {
        let program = word.rsplit('/').next().unwrap_or_default();
        let rest = &command[place + 1..];
        match program {
            "sh" | "bash" | "dash" | "zsh" if depth < DEEPEST => {
                let line = rest
                    .iter()
                    .skip_while(|word| *word != "-c" && *word != "-lc")
                    .nth(1);
                return line.map_or(Vec::new(), |line| scripts(&words(line), depth + 1));
            }
            "torchrun" | "accelerate" | "deepspeed" | "horovodrun" | "papermill" | "jupyter"
            | "jupyter-nbconvert" | "jupyter-execute" | "ipython" | "ipython3" | "kernprof" | "mprof"
            | "scalene" | "fil-profile" | "memray" => {
                return launched(rest);
            }
            _ if is_python(program) => return of_python(rest),
            // `./train.py`
            _ if is_script(word) => return vec![word.into()],
            // `nice`, `env`, `timeout 60`, `srun`, …: the interpreter comes later.
            _ => {}
        }
    }
    Vec::new()
}

fn is_python(program: &str) -> bool {
    let version = program
        .strip_prefix("python")
        .or_else(|| program.strip_prefix("pypy"));
    version.is_some_and(|version| version.chars().all(|c| c.is_ascii_digit() || c == '.'))
}

fn is_script(word: &str) -> bool {
    !word.starts_with('-') && (word.ends_with(".py") || word.ends_with(".ipynb"))
}

/// What a launcher runs: the first script among its words, or the module after `-m`.
fn launched(words: &[String]) -> Vec<PathBuf> {
    for (place, word) in words.iter().enumerate() {
        if is_script(word) {
            return vec![word.into()];
        }
        if let ("-m" | "--module", Some(module)) = (word.as_str(), words.get(place + 1)) {
            return modules(module);
        }
    }
    Vec::new()
}

/// Modules that run a script which is named after them.
const RUNNERS: [&str; 16] = [
    "IPython",
    "accelerate.commands.launch",
    "cProfile",
    "coverage",
    "debugpy",
    "deepspeed",
    "jupyter",
    "kernprof",
    "memory_profiler",
    "memray",
    "nbconvert",
    "papermill",
    "pdb",
    "scalene",
    "torch.distributed.launch",
    "torch.distributed.run",
];

/// What `python [options] script.py` or `python -m module` runs.
fn of_python(words: &[String]) -> Vec<PathBuf> {
    let mut rest = words;
    while let [word, after @ ..] = rest {
        match word.as_str() {
            "-c" | "-" => return Vec::new(),
            "-m" => {
                let [module, after @ ..] = after else {
                    return Vec::new();
                };
                return match RUNNERS.contains(&module.as_str()) {
                    true => launched(after),
                    false => modules(module),
                };
            }
            "-W" | "-X" | "--check-hash-based-pycs" => rest = after.get(1..).unwrap_or_default(),
            option if option.starts_with('-') => rest = after,
            script if is_script(script) => return vec![script.into()],
            // A script without an ending, or a folder with a `__main__.py` in it.
            script => return vec![script.into(), Path::new(script).join("__main__.py")],
        }
    }
    Vec::new()
}

/// Where a module can be: a file, or a package that is run.
fn modules(name: &str) -> Vec<PathBuf> {
    let path: PathBuf = name.split('.').collect();
    vec![path.with_extension("py"), path.join("__main__.py")]
}

/// The words of a line of shell, quotes taken off. What the shell would put in for `$NAME` is not known.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for letter in line.chars() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, letter) if letter.is_whitespace() || matches!(letter, ';' | '&' | '|') => {
                words.extend(word.take())
            }
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    words.extend(word);
    words
}
