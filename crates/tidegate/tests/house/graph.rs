//! The direction of the dependencies, as the design draws it, over what cargo really resolves.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;
use std::sync::LazyLock;

use serde::Deserialize;

use crate::{files, none_of, read, root};

/// For each crate of ours, the crates of ours that it may use. Those that do not exist yet are drawn in, so
/// that they come into the world in their place.
const MAY_USE: [(&str, &[&str]); 8] = [
    ("tidegate-memory", &[]),
    ("tidegate-runs", &[]),
    ("tidegate-data", &["tidegate-memory"]),
    ("tidegate-train", &["tidegate-memory", "tidegate-data"]),
    ("tidegate-watch", &["tidegate-memory", "tidegate-runs"]),
    ("tidegate-page", &["tidegate-memory", "tidegate-runs"]),
    (
        "tidegate",
        &[
            "tidegate-memory",
            "tidegate-data",
            "tidegate-train",
            "tidegate-runs",
            "tidegate-watch",
            "tidegate-page",
        ],
    ),
    ("tidegate-python", &["tidegate"]),
];

/// Crates that speak HTTP, as client or server.
const HTTP: [&str; 19] = [
    "actix-web",
    "attohttpc",
    "axum",
    "curl",
    "h2",
    "http",
    "hyper",
    "hyper-util",
    "isahc",
    "minreq",
    "poem",
    "reqwest",
    "rocket",
    "tiny_http",
    "tonic",
    "tower-http",
    "tungstenite",
    "ureq",
    "warp",
];

/// What cargo says about this workspace on this machine's platform.
pub(crate) static METADATA: LazyLock<Metadata> = LazyLock::new(metadata);

#[derive(Deserialize)]
pub(crate) struct Metadata {
    pub(crate) packages: Vec<Package>,
    workspace_members: Vec<String>,
    resolve: Resolve,
}

#[derive(Deserialize)]
pub(crate) struct Package {
    id: String,
    pub(crate) name: String,
    pub(crate) version: String,
    pub(crate) license: Option<String>,
    manifest_path: std::path::PathBuf,
    dependencies: Vec<Dependency>,
}

/// A dependency as the manifest names it.
#[derive(Deserialize)]
struct Dependency {
    name: String,
    rename: Option<String>,
    kind: Option<String>,
}

#[derive(Deserialize)]
struct Resolve {
    nodes: Vec<Node>,
}

#[derive(Deserialize)]
struct Node {
    id: String,
    deps: Vec<NodeDependency>,
}

#[derive(Deserialize)]
struct NodeDependency {
    pkg: String,
    dep_kinds: Vec<DependencyKind>,
}

#[derive(Deserialize)]
struct DependencyKind {
    kind: Option<String>,
}

/// The platform has to be named: cargo would otherwise want the sources of every other platform's packages,
/// which a build does not download.
fn metadata() -> Metadata {
    let run = |arguments: &[&str]| {
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let output = Command::new(cargo)
            .args(arguments)
            .current_dir(root())
            .output()
            .expect("cargo starts");
        assert!(
            output.status.success(),
            "cargo {}: {}",
            arguments.join(" "),
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    };
    let version = String::from_utf8(run(&["-vV"])).expect("cargo speaks UTF-8");
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let host = host.expect("cargo -vV names its host");
    let arguments = ["metadata", "--format-version", "1", "--offline", "--locked"];
    let text = run(&[&arguments[..], &["--filter-platform", host]].concat());
    serde_json::from_slice(&text).expect("cargo metadata as documented")
}

impl Metadata {
    /// The packages of this workspace.
    fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages
            .iter()
            .filter(|package| self.workspace_members.contains(&package.id))
    }

    /// Names of what is linked into a package directly: normal dependencies, without those of tests and
    /// build scripts.
    fn links(&self) -> BTreeMap<&str, BTreeSet<&str>> {
        let names: BTreeMap<&str, &str> = self
            .packages
            .iter()
            .map(|package| (package.id.as_str(), package.name.as_str()))
            .collect();
        let mut links = BTreeMap::<&str, BTreeSet<&str>>::new();
        for node in &self.resolve.nodes {
            let normal = node
                .deps
                .iter()
                .filter(|dependency| dependency.dep_kinds.iter().any(|kind| kind.kind.is_none()))
                .map(|dependency| names[dependency.pkg.as_str()]);
            // Two versions of a package are one name here: what matters is who knows it at all.
            links.entry(names[node.id.as_str()]).or_default().extend(normal);
        }
        links
    }

    /// The shortest way from a package to the first of `wanted`, not going through any of `doors`.
    fn way<'a>(&'a self, from: &'a str, wanted: &[&str], doors: &[&str]) -> Option<Vec<&'a str>> {
        let links = self.links();
        let mut seen = BTreeSet::from([from]);
        let mut ways = std::collections::VecDeque::from([vec![from]]);
        while let Some(way) = ways.pop_front() {
            let last = way[way.len() - 1];
            for &next in links.get(last).into_iter().flatten() {
                let longer = [way.as_slice(), &[next]].concat();
                if wanted.contains(&next) {
                    return Some(longer);
                }
                if !doors.contains(&next) && seen.insert(next) {
                    ways.push_back(longer);
                }
            }
        }
        None
    }
}

/// Fails when one of `from` reaches one of `wanted`, with the way it does.
#[track_caller]
fn never_reaches(from: &[&str], wanted: &[&str], doors: &[&str], remedy: &str) {
    let ways = from
        .iter()
        .filter_map(|from| METADATA.way(from, wanted, doors))
        .map(|way| way.join(" → "));
    none_of(ways.collect(), remedy);
}

fn member_names() -> Vec<&'static str> {
    METADATA.members().map(|package| package.name.as_str()).collect()
}

#[test]
fn dependencies_point_one_way() {
    let (names, links) = (member_names(), METADATA.links());
    let mut complaints = Vec::new();
    for &name in &names {
        let Some((_, may_use)) = MAY_USE.iter().find(|(member, _)| *member == name) else {
            complaints.push(format!("{name} has no place in the graph"));
            continue;
        };
        let used = links[name].iter().filter(|used| names.contains(used));
        let wrong = used.filter(|used| !may_use.contains(used));
        complaints.extend(wrong.map(|used| format!("{name} uses {used}")));
    }
    none_of(
        complaints,
        "The graph is memory ← data ← train, and memory, runs ← watch, all of them ← tidegate. Move what is\n\
         needed down to a crate that both may use, or pass it in as plain data or a closure. A new crate is\n\
         argued in ARCHITECTURE.md and then added to MAY_USE.",
    );
}

#[test]
fn memory_and_runs_stand_alone() {
    for name in ["tidegate-memory", "tidegate-runs"] {
        let others: Vec<&str> = member_names()
            .into_iter()
            .filter(|other| *other != name)
            .collect();
        never_reaches(
            &[name],
            &others,
            &[],
            "memory and runs are the bottom: everything may use them because they use none of ours.",
        );
    }
}

#[test]
fn a_trainer_knows_no_runs() {
    never_reaches(
        &["tidegate-train", "tidegate-data"],
        &["tidegate-runs", "tidegate-watch"],
        &[],
        "A trainer tells what happens through its Sink of events; the worker in crates/tidegate passes them on.",
    );
}

#[test]
fn the_supervisor_links_no_trainer_and_no_reader() {
    never_reaches(
        &["tidegate-watch"],
        &["tidegate-train", "tidegate-data", "tidegate"],
        &[],
        "The supervisor must stay small and outlive the crash of what it watches: let the worker say it as an\n\
         event instead.",
    );
}

#[test]
fn only_the_page_speaks_http() {
    let others: Vec<&str> = member_names()
        .into_iter()
        .filter(|name| *name != "tidegate-page")
        .collect();
    never_reaches(
        &others,
        &HTTP,
        &["tidegate-page"],
        "Only crates/page may know HTTP. Without a page there is no server and no download: find a crate or a\n\
         feature that does without.",
    );
}

#[test]
fn only_the_bindings_know_python() {
    let others: Vec<&str> = member_names()
        .into_iter()
        .filter(|name| *name != "tidegate-python")
        .collect();
    never_reaches(
        &others,
        &["pyo3", "pyo3-ffi"],
        &[],
        "Only python/ may know PyO3: give the verb a plain Rust signature in crates/tidegate and bind it there.",
    );
}

#[test]
fn every_dependency_is_used() {
    let mut complaints = Vec::new();
    for package in METADATA.members() {
        let folder = package.manifest_path.parent().expect("a manifest has a folder");
        let folder = folder.strip_prefix(root()).expect("members are below the root");
        let folder = folder.to_str().expect("our folders have plain names");
        let text = |part: &str| -> String {
            let part = format!("{folder}/{part}");
            if !root().join(&part).is_dir() {
                return String::new();
            }
            files(&part, ".rs").iter().map(read).collect()
        };
        let (src, tests) = (text("src"), text("tests"));
        for dependency in &package.dependencies {
            let name = dependency.rename.as_ref().unwrap_or(&dependency.name);
            let word = name.replace('-', "_");
            let (place, used) = match dependency.kind.as_deref() {
                None => ("src", mentions(&src, &word)),
                Some("dev") => ("src or tests", mentions(&src, &word) || mentions(&tests, &word)),
                Some(_) => continue,
            };
            if !used {
                complaints.push(format!("{folder} does not mention {name} in {place}"));
            }
        }
    }
    none_of(
        complaints,
        "Take it out of that Cargo.toml, and out of [workspace.dependencies] if nobody else uses it.",
    );
}

/// Whether `text` holds `word` as a word of its own.
fn mentions(text: &str, word: &str) -> bool {
    let part_of_word = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(part_of_word) && !text[at + word.len()..].starts_with(part_of_word)
    })
}
