//! The licences of everything we build with, against a short list of those that ask for no more than their
//! text to be kept.

use crate::graph::METADATA;
use crate::{none_of, read};

/// What may be in the build, and why. C sources that come inside packages were looked at by hand: SQLite (in
/// libsqlite3-sys) is in the public domain; zstd (in zstd-sys) is BSD-3-Clause or GPL-2.0 at our choice, and
/// we choose BSD.
const ALLOWED: [(&str, &str); 10] = [
    ("MIT", "our own; keep the text"),
    ("Apache-2.0", "our own; keep the text and notices, grants patents"),
    ("Apache-2.0 WITH LLVM-exception", "Apache-2.0 that asks for less"),
    (
        "BSD-3-Clause",
        "keep the text, do not advertise with the authors' names",
    ),
    ("ISC", "keep the text"),
    ("Zlib", "do not claim to have written it"),
    ("Unlicense", "public domain"),
    (
        "CC0-1.0",
        "public domain; it covers a macro that runs while arrow is built",
    ),
    ("Unicode-3.0", "keep the text; it covers tables of characters"),
    (
        "IJG",
        "keep the text; it covers an encoder that only tests use, and that is in no program",
    ),
];

#[test]
fn every_dependency_has_a_licence_we_can_keep() {
    let complaints = METADATA.packages.iter().filter_map(|package| {
        let named = package.license.as_deref();
        let kept = named.is_some_and(|licence| allows(licence) == Some(true));
        (!kept).then(|| {
            let licence = named.unwrap_or("no licence field");
            format!("{} {}: {licence}", package.name, package.version)
        })
    });
    none_of(
        complaints.collect(),
        "Find another package, or read that licence; if it asks for no more than its text to be kept, add it to\n\
         ALLOWED with the reason. `cargo tree --invert PACKAGE` says who brought it in.",
    );
}

#[test]
fn our_own_licence_is_stated_and_present() {
    let (mit, apache) = (read("LICENSE-MIT"), read("LICENSE-APACHE"));
    assert!(
        mit.contains("Permission is hereby granted, free of charge"),
        "LICENSE-MIT is not the MIT licence"
    );
    assert!(
        apache.contains("Version 2.0, January 2004"),
        "LICENSE-APACHE is not Apache 2.0"
    );
    let ours = METADATA
        .packages
        .iter()
        .filter(|package| package.name.starts_with("tidegate"));
    let other = ours.filter(|package| package.license.as_deref() != Some("MIT OR Apache-2.0"));
    none_of(
        other.map(|package| package.name.clone()).collect(),
        "Say `license.workspace = true` in its Cargo.toml.",
    );
}

#[test]
fn licence_expressions_are_read() {
    let check = |expression: &str, expected: Option<bool>| {
        assert_eq!(allows(expression), expected, "{expression}");
    };
    check("MIT", Some(true));
    check("GPL-3.0-only", Some(false));
    check("GPL-3.0-only OR MIT", Some(true));
    check("MIT/GPL-3.0-only", Some(true));
    check("MIT AND GPL-3.0-only", Some(false));
    check("(MIT OR Apache-2.0) AND Unicode-3.0", Some(true));
    check("MIT AND (GPL-3.0-only OR AGPL-3.0)", Some(false));
    // AND binds tighter than OR.
    check("MIT OR Apache-2.0 AND GPL-3.0-only", Some(true));
    check("GPL-3.0-only AND MIT OR GPL-2.0-only", Some(false));
    check("Apache-2.0 WITH LLVM-exception", Some(true));
    check("GPL-3.0-only WITH Classpath-exception-2.0", Some(false));
    check("(MIT", None);
    check("MIT OR", None);
    check("MIT Apache-2.0", None);
    check("", None);
}

/// Whether an SPDX expression can be met from the list; `None` when it cannot be read. The old `MIT/Apache-2.0`
/// means OR.
fn allows(expression: &str) -> Option<bool> {
    let text = expression
        .replace('/', " OR ")
        .replace('(', " ( ")
        .replace(')', " ) ");
    let words: Vec<&str> = text.split_whitespace().collect();
    let mut rest = words.as_slice();
    let met = any(&mut rest)?;
    rest.is_empty().then_some(met)
}

fn any(words: &mut &[&str]) -> Option<bool> {
    let mut met = all(words)?;
    while take(words, "OR") {
        met |= all(words)?;
    }
    Some(met)
}

fn all(words: &mut &[&str]) -> Option<bool> {
    let mut met = one(words)?;
    while take(words, "AND") {
        met &= one(words)?;
    }
    Some(met)
}

fn one(words: &mut &[&str]) -> Option<bool> {
    if take(words, "(") {
        let met = any(words)?;
        return take(words, ")").then_some(met);
    }
    let mut licence = next(words)?.to_string();
    if take(words, "WITH") {
        licence = format!("{licence} WITH {}", next(words)?);
    }
    Some(ALLOWED.iter().any(|(allowed, _)| *allowed == licence))
}

fn next<'a>(words: &mut &[&'a str]) -> Option<&'a str> {
    let (first, rest) = words.split_first()?;
    *words = rest;
    let operator = matches!(*first, "(" | ")" | "AND" | "OR" | "WITH");
    (!operator).then_some(first)
}

fn take(words: &mut &[&str], word: &str) -> bool {
    let found = words.first() == Some(&word);
    if found {
        *words = &words[1..];
    }
    found
}
