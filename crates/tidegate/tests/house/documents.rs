//! Documents that name files, commands and options name ones that exist.

use std::collections::BTreeMap;
use std::process::Command;

use crate::{files, none_of, read, root};

const DOCUMENTS: [&str; 3] = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"];
/// What the README promises to do everything on a fresh machine.
const DEMO: &str = "cargo run --release -- demo";
const TESTS: &str = "cargo test --release --workspace";
/// Words in two pages.
const TWO_PAGES: usize = 1_200;
/// Where paths in the documents start.
const FOLDERS: [&str; 6] = ["crates/", "docs/", "benches/", "python/", "fuzz/", ".ci/"];

/// What a document shows as code: whole lines of its blocks, and what stands between backticks.
struct Code {
    lines: Vec<String>,
    spans: Vec<String>,
}

impl Code {
    fn of(document: &str) -> Code {
        let mut code = Code {
            lines: Vec::new(),
            spans: Vec::new(),
        };
        let mut in_block = false;
        for line in without_comments(&read(document)).lines() {
            if line.trim_start().starts_with("```") {
                in_block = !in_block;
            } else if in_block {
                code.lines.push(line.trim().trim_start_matches("$ ").to_string());
            } else {
                let spans = line.split('`').skip(1).step_by(2);
                code.spans.extend(spans.map(str::to_string));
            }
        }
        assert!(!in_block, "{document}: a block of code is not closed");
        code
    }

    /// Everything that is run: `tidegate …` and `cargo …`.
    fn commands(&self) -> impl Iterator<Item = &str> {
        let all = self.lines.iter().chain(&self.spans);
        all.map(|text| text.split(" #").next().unwrap_or_default().trim_end())
            .filter(|text| text.starts_with("tidegate ") || text.starts_with("cargo "))
    }
}

fn without_comments(text: &str) -> String {
    let mut parts = text.split("<!--");
    let first = parts.next().unwrap_or_default().to_string();
    parts.fold(first, |text, part| {
        text + part.split_once("-->").map_or("", |(_, after)| after)
    })
}

#[test]
fn every_path_in_the_documents_exists() {
    let mut complaints = Vec::new();
    for document in DOCUMENTS {
        let code = Code::of(document);
        let words = code.lines.iter().flat_map(|line| line.split_whitespace());
        let spans = code.spans.iter().map(String::as_str);
        // A bare `name.rs` is meant in the crate that was named last.
        let mut last_crate = String::new();
        for text in spans.chain(words) {
            let path = text.trim_end_matches([',', '.', ';', ':', '/']);
            let from_root = FOLDERS.iter().any(|folder| text.starts_with(folder));
            if path.contains(char::is_whitespace) || !(from_root || path.ends_with(".rs")) {
                continue;
            }
            // `src/cli/<verb>.rs` and `crates/*` promise their folder.
            let pattern = path.find(['<', '*', '…']);
            let path = pattern.map_or(path, |at| {
                path[..at].rsplit_once('/').map_or("", |(folder, _)| folder)
            });
            let candidates = if from_root {
                let parts: Vec<&str> = path.split('/').take(2).collect();
                if parts.len() == 2 && parts[0] == "crates" {
                    last_crate = parts.join("/");
                }
                vec![path.to_string()]
            } else {
                vec![format!("{last_crate}/src/{path}"), format!("{last_crate}/{path}")]
            };
            if !candidates.iter().any(|path| root().join(path).exists()) {
                complaints.push(format!(
                    "{document} names `{text}`: there is no {}",
                    candidates[0]
                ));
            }
        }
    }
    none_of(
        complaints,
        "The code moved and the document did not: say where it is now. Paths start at the root; a bare name.rs\n\
         is looked for in the crate that the document named last.",
    );
}

#[test]
fn every_link_in_the_documents_leads_somewhere() {
    let mut complaints = Vec::new();
    for document in DOCUMENTS {
        let text = without_comments(&read(document));
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let (path, heading) = target.split_once('#').unwrap_or((target, ""));
            let outside = ["https://", "http://", "mailto:"];
            if outside.iter().any(|scheme| target.starts_with(scheme)) {
                continue;
            }
            let page = if path.is_empty() { document } else { path };
            if !root().join(page).exists() {
                complaints.push(format!("{document} links to {target}: there is no {page}"));
            } else if !heading.is_empty() && !headings(&read(page)).contains(&heading.to_string()) {
                complaints.push(format!("{document} links to {target}: no heading is called so"));
            }
        }
    }
    none_of(complaints, "Set the link right, or take it out.");
}

/// The headings as links call them.
fn headings(text: &str) -> Vec<String> {
    let lines = text.lines().filter(|line| line.starts_with('#'));
    let name = |line: &str| -> String {
        let words = line.trim_start_matches('#').trim().to_lowercase();
        let kept = words
            .chars()
            .filter(|c| c.is_alphanumeric() || " -_".contains(*c));
        kept.map(|c| if c == ' ' { '-' } else { c }).collect()
    };
    lines.map(name).collect()
}

/// What `tidegate … --help` prints.
fn help(verb: Option<&str>) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_tidegate"))
        .args(verb)
        .arg("--help")
        .output()
        .expect("tidegate starts");
    String::from_utf8(output.stdout).expect("help is UTF-8")
}

/// The verbs that `--help` lists, each with its own help.
fn verbs() -> BTreeMap<String, String> {
    let help_text = help(None);
    let listed = help_text
        .split("Commands:\n")
        .nth(1)
        .expect("help lists commands");
    let listed = listed.lines().take_while(|line| !line.is_empty());
    let names = listed.filter_map(|line| line.split_whitespace().next());
    names
        .filter(|name| *name != "help")
        .map(|name| (name.to_string(), help(Some(name))))
        .collect()
}

#[test]
fn every_command_in_the_documents_works() {
    let verbs = verbs();
    let mut complaints = Vec::new();
    for document in DOCUMENTS {
        for command in Code::of(document).commands().map(str::to_string) {
            let words = match command.split_once(" -- ") {
                Some((cargo, ours)) if cargo.starts_with("cargo run") => ours,
                _ if command.starts_with("cargo ") => continue,
                _ => command.trim_start_matches("tidegate "),
            };
            // What follows `--` is a command of somebody else's.
            let mut words = words
                .split_whitespace()
                .take_while(|word| !["|", "--"].contains(word));
            let verb = words.next().unwrap_or_default();
            let Some(help) = verbs.get(verb) else {
                if !verb.starts_with('-') {
                    complaints.push(format!("{document}: `{command}`: there is no verb {verb:?}"));
                }
                continue;
            };
            let unknown = words
                .map(|word| {
                    word.trim_matches(['[', ']'])
                        .split('=')
                        .next()
                        .unwrap_or_default()
                })
                .filter(|word| word.starts_with("--") && !help.contains(&format!("{word} ")));
            complaints.extend(
                unknown.map(|option| format!("{document}: `{command}`: {verb} has no option {option}")),
            );
        }
    }
    none_of(
        complaints,
        "Write the command as `tidegate --help` and `tidegate VERB --help` have it.",
    );
}

#[test]
fn the_readme_shows_every_verb() {
    let code = Code::of("README.md");
    let shown = |verb: &str| {
        code.commands()
            .any(|command| command.split_whitespace().nth(1) == Some(verb))
    };
    let missing = verbs().into_keys().filter(|verb| !shown(verb));
    none_of(
        missing.collect(),
        "Give the verb a line with an example in the README's table of commands.",
    );
}

#[test]
fn the_readme_has_the_two_commands_and_ci_runs_the_same_tests() {
    for command in [DEMO, TESTS] {
        assert!(
            Code::of("README.md").lines.iter().any(|line| line == command),
            "README.md must show `{command}` on a line of its own"
        );
    }
    assert!(
        Code::of("CONTRIBUTING.md")
            .commands()
            .any(|command| command == TESTS),
        "CONTRIBUTING.md must name the test command of the README, `{TESTS}`"
    );
    let script = read(".ci/run");
    let mut steps = script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.find("cargo ").map(|at| &line[at..]));
    assert_eq!(
        steps.next(),
        Some(TESTS),
        ".ci/run must begin with the test command of the README, so that both mean the same"
    );
}

#[test]
fn the_job_files_of_the_readme_can_be_read() {
    let text = read("README.md");
    let jobs: Vec<&str> = text
        .split("```toml\n")
        .skip(1)
        .filter_map(|rest| rest.split("```").next())
        .collect();
    assert!(!jobs.is_empty(), "README.md must show a job file in a toml block");
    let folder = tempfile::tempdir().expect("a temporary folder");
    for job in jobs {
        let path = folder.path().join("job.toml");
        std::fs::write(&path, job).expect("the temporary folder is ours");
        if let Err(error) = tidegate::Job::read(&path) {
            panic!(
                "README.md: {}\n{job}\nWrite the job as this version reads it.",
                error.message()
            );
        }
    }
}

#[test]
fn the_architecture_is_short_and_complete() {
    let text = read("ARCHITECTURE.md");
    let words = text.split_whitespace().count();
    assert!(
        words <= TWO_PAGES,
        "ARCHITECTURE.md has {words} words, two pages are {TWO_PAGES}: move details into the crates' lib.rs"
    );
    let manifests = files("crates", "Cargo.toml");
    let folders = manifests.iter().filter_map(|path| path.parent()?.to_str());
    let missing = folders.filter(|folder| !text.contains(&format!("`{folder}`")));
    none_of(
        missing.map(str::to_string).collect(),
        "Give the crate its paragraph in the code map of ARCHITECTURE.md.",
    );
}
