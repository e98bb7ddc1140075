//! Jupyter notebooks: their cells as Python, and the cell that a stack's file name stands for.

use std::path::Path;

use serde::Deserialize;

/// The cells of code of a notebook, in their order.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notebook {
    pub cells: Vec<String>,
}

/// As `nbformat` 4 writes it, and 3 with its sheets.
#[derive(Deserialize)]
struct Document {
    #[serde(default)]
    cells: Vec<DocumentCell>,
    #[serde(default)]
    worksheets: Vec<Sheet>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Deserialize)]
struct Sheet {
    #[serde(default)]
    cells: Vec<DocumentCell>,
}

#[derive(Deserialize)]
struct DocumentCell {
    #[serde(default)]
    cell_type: String,
    #[serde(default, alias = "input")]
    source: Option<Text>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Text {
    Whole(String),
    Lines(Vec<String>),
}

#[derive(Deserialize, Default)]
struct Metadata {
    #[serde(default)]
    language_info: Language,
    #[serde(default)]
    kernelspec: Language,
}

#[derive(Deserialize, Default)]
struct Language {
    /// What `language_info` calls the language, and `kernelspec` the kernel.
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    language: Option<String>,
}

impl Notebook {
    /// `None` where it is no notebook, or one of another language.
    pub fn parse(json: &str) -> Option<Notebook> {
        let document: Document = serde_json::from_str(json.trim_start_matches('\u{feff}')).ok()?;
        let language = document
            .metadata
            .language_info
            .name
            .or(document.metadata.kernelspec.language);
        if language.is_some_and(|language| !language.to_lowercase().contains("python")) {
            return None;
        }
        let sheets = document.worksheets.into_iter().flat_map(|sheet| sheet.cells);
        let cells = document.cells.into_iter().chain(sheets);
        let code = cells
            .filter(|cell| cell.cell_type == "code")
            .map(|cell| match cell.source {
                Some(Text::Whole(text)) => text,
                Some(Text::Lines(lines)) => lines.concat(),
                None => String::new(),
            });
        Some(Notebook {
            cells: code.collect(),
        })
    }
}

/// The cell, from 1, that a kernel's name for its code stands for: `/tmp/ipykernel_77/1234567890.py` is named for what
/// the cell says, `<ipython-input-3-…>` of older kernels for when it was run.
pub fn cell_of(notebook: &Notebook, file: &str) -> Option<u32> {
    if let Some(rest) = file.strip_prefix("<ipython-input-") {
        let turn: usize = rest.split('-').next()?.parse().ok()?;
        // Run from top to bottom, as tools do; cells without anything in them are not run.
        let mut run = (1..)
            .zip(&notebook.cells)
            .filter(|(_, cell)| !cell.trim().is_empty());
        return run.nth(turn.checked_sub(1)?).map(|(number, _)| number);
    }
    let path = Path::new(file);
    let folder = path.parent()?.file_name()?.to_str()?;
    if !folder.starts_with("ipykernel_") || path.extension()? != "py" {
        return None;
    }
    let name: u32 = path.file_stem()?.to_str()?.parse().ok()?;
    let mut numbered = (1..).zip(&notebook.cells);
    let is_named = |cell: &str| murmur2(cell.as_bytes(), SEED) == name;
    // Some front ends send the cell without its last line end.
    let found = numbered.find(|(_, cell)| is_named(cell) || is_named(cell.trim_end_matches('\n')));
    found.map(|(number, _)| number)
}

/// `get_tmp_hash_seed` of `ipykernel/compiler.py`.
const SEED: u32 = 0xC70F_6907;

/// MurmurHash2 for 32 bits, as `murmur2_x86` of `ipykernel/compiler.py` computes it.
fn murmur2(bytes: &[u8], seed: u32) -> u32 {
    const FACTOR: u32 = 0x5BD1_E995;
    let mut hash = seed ^ bytes.len() as u32;
    let (whole, rest) = bytes.as_chunks::<4>();
    for chunk in whole {
        let mut part = u32::from_le_bytes(*chunk).wrapping_mul(FACTOR);
        part ^= part >> 24;
        hash = hash.wrapping_mul(FACTOR) ^ part.wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let last = rest
            .iter()
            .rev()
            .fold(0, |part: u32, byte| part << 8 | u32::from(*byte));
        hash = (hash ^ last).wrapping_mul(FACTOR);
    }
    hash ^= hash >> 13;
    hash = hash.wrapping_mul(FACTOR);
    hash ^ hash >> 15
}

/// Magics that run the rest of their line, or of their cell, as Python.
const PYTHON_MAGICS: [&str; 7] = ["time", "timeit", "memit", "mprun", "lprun", "prun", "capture"];

/// A cell as plain Python with the same lines; `None` where it is in another language.
pub(super) fn python_of(cell: &str) -> Option<String> {
    let cell = cell.replace("\r\n", "\n").replace('\r', "\n");
    let name = |magic: &str| -> String {
        magic
            .chars()
            .take_while(|c| c.is_alphanumeric() || *c == '_')
            .collect()
    };
    let mut lines: Vec<String> = Vec::new();
    let mut goes_on = false;
    for line in cell.split('\n') {
        let text = line.trim_start();
        let indent = &line[..line.len() - text.len()];
        let is_first = lines.iter().all(|line| line.trim().is_empty());
        let magic = text
            .strip_prefix('%')
            .filter(|rest| rest.starts_with(|c: char| c.is_alphabetic()));
        let is_shell = text.starts_with('!') || text.starts_with('?');
        let python = match (text.strip_prefix("%%"), magic) {
            (Some(magic), _) if is_first && !PYTHON_MAGICS.contains(&name(magic).as_str()) => return None,
            (Some(_), _) => None,
            (None, Some(magic)) => {
                let rest = magic[name(magic).len()..].trim_start();
                let runs = PYTHON_MAGICS.contains(&name(magic).as_str())
                    && !rest.is_empty()
                    && !rest.starts_with('-');
                runs.then(|| format!("{indent}{rest}"))
            }
            (None, None) if is_shell || goes_on => None,
            (None, None) => {
                lines.push(line.to_string());
                continue;
            }
        };
        // A shell's line goes on after a backslash.
        goes_on = python.is_none() && text.ends_with('\\');
        lines.push(python.unwrap_or_else(|| format!("{indent}pass  # {}", text.trim_end_matches('\\'))));
    }
    Some(lines.join("\n"))
}
