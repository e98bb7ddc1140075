//! Remedies from the code, over small scripts: what is found in them, what is not, and what the changed lines do.
//!
//! The scripts are in `script/*.txt`, one file for each subject:
//!
//! ```text
//! == what is special about it
//! the script
//! -> kind line
//! the lines that would take the place of what is there
//! $ the command that does the job, if there is one
//! ```
//!
//! A script without an arrow has no findings at all: most of them are near misses.

use std::path::Path;

use tidegate_watch::why::{Finding, FindingKind, findings};

/// A script and what is to be found in it.
pub(crate) struct Example {
    file: String,
    title: String,
    pub(crate) source: String,
    /// As [`told`] writes them.
    expected: Vec<String>,
}

pub(crate) fn examples() -> Vec<Example> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/watch/script");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of scripts")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "txt"))
        .collect();
    paths.sort();
    let mut examples = Vec::new();
    for path in paths {
        let text = std::fs::read_to_string(&path).expect("a readable file");
        let file = path.file_name().expect("a name").to_string_lossy().into_owned();
        for part in format!("\n{text}").split("\n== ").skip(1) {
            let (title, body) = part.split_once('\n').expect("a title and a script");
            let mut pieces = body.split("\n-> ");
            let source = format!("{}\n", pieces.next().unwrap_or_default().trim_end());
            examples.push(Example {
                file: file.clone(),
                title: title.to_string(),
                source,
                expected: pieces.map(|piece| piece.trim_end().to_string()).collect(),
            });
        }
    }
    examples
}

/// A finding as the files of scripts write it.
fn told(finding: &Finding) -> String {
    let mut text = format!("{} {}\n{}", finding.kind.as_str(), finding.line, finding.after);
    if let Some(command) = &finding.command {
        text.push_str(&format!("\n$ {command}"));
    }
    text
}

fn found(source: &str) -> Vec<Finding> {
    findings(source, Path::new("train.py"))
}

#[test]
fn each_script_has_its_findings_and_no_others() {
    let mut wrong = String::new();
    for example in examples() {
        let told: Vec<String> = found(&example.source).iter().map(told).collect();
        if told != example.expected {
            let (file, title, source) = (&example.file, &example.title, &example.source);
            wrong.push_str(&format!("\n{file}\n== {title}\n{source}"));
            wrong.extend(told.iter().map(|text| format!("-> {text}\n")));
        }
    }
    assert!(
        wrong.is_empty(),
        "these scripts have other findings now:\n{wrong}"
    );
}

/// The script with a finding's lines in the place of what was there.
fn changed(source: &str, finding: &Finding) -> String {
    let lines: Vec<&str> = source.lines().collect();
    let (first, last) = (finding.change.first, finding.change.last);
    let (above, below) = (&lines[..first as usize - 1], &lines[last as usize..]);
    assert_eq!(
        lines[first as usize - 1..last as usize].join("\n"),
        finding.before,
        "`before` is what stands there"
    );
    let after = [finding.after.as_str()];
    above
        .iter()
        .chain(&after)
        .chain(below)
        .map(|line| format!("{line}\n"))
        .collect()
}

fn is_python(source: &str) -> bool {
    let mut parser = tree_sitter::Parser::new();
    parser
        .set_language(&tree_sitter_python::LANGUAGE.into())
        .expect("the grammar fits the parser");
    let tree = parser.parse(source, None).expect("a tree");
    !tree.root_node().has_error()
}

#[test]
fn every_change_is_python_and_ends_its_finding() {
    let count =
        |source: &str, kind: FindingKind| found(source).iter().filter(|found| found.kind == kind).count();
    for example in examples() {
        for finding in found(&example.source) {
            let after = changed(&example.source, &finding);
            let shown = || format!("{}: {}, {}\n{after}", example.file, example.title, told(&finding));
            assert!(
                is_python(&after) || !is_python(&example.source),
                "no Python any more: {}",
                shown()
            );
            // Halving goes on until a single row is left.
            if finding.kind == FindingKind::BatchSize {
                assert!(
                    found(&after).iter().all(|found| told(found) != told(&finding)),
                    "{}",
                    shown()
                );
                continue;
            }
            let (before, now) = (count(&example.source, finding.kind), count(&after, finding.kind));
            assert!(now < before, "still found: {}", shown());
        }
    }
}

#[test]
fn every_kind_has_an_example_and_near_misses() {
    let examples = examples();
    for kind in FindingKind::ALL {
        let is_of = |text: &String| text.split(' ').next() == Some(kind.as_str());
        let number = examples
            .iter()
            .filter(|example| example.expected.iter().any(is_of))
            .count();
        assert!(number > 0, "no script has {}", kind.as_str());
    }
    assert_eq!(
        FindingKind::ALL.len(),
        FindingKind::ALL
            .iter()
            .map(|kind| kind.as_str())
            .collect::<std::collections::HashSet<_>>()
            .len()
    );
}

/// Processor time of this thread: other tests run beside this one.
fn processor_time() -> std::time::Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the clock exists on every Linux, and `time` is ours to write to.
    let code = unsafe { libc::clock_gettime(libc::CLOCK_THREAD_CPUTIME_ID, &mut time) };
    assert_eq!(code, 0);
    std::time::Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// Whoever wrote a script that long still gets an answer.
#[test]
fn long_scripts_take_no_square_of_their_lines() {
    let examples = examples();
    let long = |source: &str, lines: usize| source.repeat(lines / source.lines().count().max(1) + 1);
    let all: String = examples.iter().map(|example| example.source.as_str()).collect();
    let append = "    kept.append(np.load(name))\n";
    let step = "    loss = criterion(model(x))\n    total += loss\n    loss.backward()\n";
    type Long<'a> = (String, usize, Box<dyn Fn(usize) -> String + 'a>);
    let mut scripts: Vec<Long> = vec![("all of them".into(), 20_000, Box::new(|lines| long(&all, lines)))];
    // Each for itself shows what takes the square of its lines.
    scripts.extend(examples.iter().map(|example| -> Long {
        let name = format!("{}: {}", example.file, example.title);
        (name, 2_000, Box::new(|lines| long(&example.source, lines)))
    }));
    // And so does one loop around them all.
    let around = |head: &'static str, body: &'static str| move |lines| format!("{head}{}", long(body, lines));
    let appended = around("import numpy as np\nfor name in names:\n", append);
    scripts.push(("a long loop".into(), 20_000, Box::new(appended)));
    let stepped = around("import torch\nfor x in loader:\n", step);
    scripts.push(("a long step".into(), 20_000, Box::new(stepped)));
    let took = |source: &str| {
        let start = processor_time();
        let number = found(source).len();
        (number, (processor_time() - start).as_secs_f64())
    };
    for (name, lines, script) in scripts {
        let (_, quarter) = took(&script(lines / 4));
        let (number, whole) = took(&script(lines));
        // Four times as long: the square would be sixteen times. Some milliseconds may be anything.
        assert!(
            whole < 8.0 * quarter + 0.05,
            "{name}: {number} findings in {whole} s, a quarter of it in {quarter} s"
        );
        assert!(whole < 3.0, "{name}: {number} findings in {whole} s");
    }
}

/// Whatever stands in a file: findings have lines of it, and nothing panics.
fn check_any(source: &str) {
    let plain = source
        .trim_start_matches('\u{feff}')
        .replace("\r\n", "\n")
        .replace('\r', "\n");
    let lines: Vec<&str> = plain.split('\n').collect();
    for finding in found(source) {
        assert!(1 <= finding.line && finding.line <= finding.end_line);
        assert!(finding.end_line as usize <= lines.len());
        let (first, last) = (finding.change.first as usize, finding.change.last as usize);
        assert_eq!(lines[first - 1..last].join("\n"), finding.before);
        assert_ne!(finding.before, finding.after);
    }
}

#[test]
fn line_ends_and_marks_of_other_systems_change_nothing() {
    for example in examples() {
        let told: Vec<String> = found(&example.source).iter().map(told).collect();
        for source in [
            example.source.replace('\n', "\r\n"),
            example.source.replace('\n', "\r"),
            format!("\u{feff}{}", example.source),
        ] {
            let now: Vec<String> = found(&source).iter().map(self::told).collect();
            assert_eq!(now, told, "{}: {}", example.file, example.title);
            check_any(&source);
        }
    }
}

#[test]
fn broken_scripts_are_still_read() {
    let check = |source: &str, kinds: &[&str]| {
        let found: Vec<&str> = found(source)
            .iter()
            .map(|finding| finding.kind.as_str())
            .collect();
        assert_eq!(found, kinds, "{source}");
        check_any(source);
    };
    check(
        "import pandas as pd\ndf = pd.read_csv('a.csv')\nprint df\n",
        &["whole_table"],
    );
    check(
        "import pandas as pd\ndf = pd.read_csv('a.csv')\nif df.empty\n    x =\n",
        &["whole_table"],
    );
    check(
        "import numpy as np\nfor x in y:\nz = np.load('x.npy')\n)\n",
        &["whole_array"],
    );
    check(
        "import pandas as pd\ndef f(:\n    pass\ndf = pd.read_csv('a.csv')\n",
        &["whole_table"],
    );
    check("", &[]);
    check("\0\0\0", &[]);
    check(&"(".repeat(100_000), &[]);
    check(&"[".repeat(50_000), &[]);
    check(&format!("x = {}1{}", "(".repeat(20_000), ")".repeat(20_000)), &[]);
    check(&"if x:\n ".repeat(2_000), &[]);
    check(&"a.".repeat(100_000), &[]);
    check(&"x = x.copy()\n".repeat(5_000), &[]);
    check(&"é".repeat(2 << 20), &[]);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_panic(source in "\\PC*") {
        check_any(&source);
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(proptest::prelude::any::<u8>(), 0..2_000)) {
        check_any(&String::from_utf8_lossy(&bytes));
    }

    /// Lines of real scripts in any order, indented anyhow and cut off anywhere.
    #[test]
    fn no_mixture_of_scripts_makes_it_panic(
        lines in proptest::collection::vec((0..5_000_usize, 0..12_usize, 0..200_usize), 1..40),
        line_end in proptest::sample::select(vec!["\n", "\r\n", "; ", "\n\t", " \\\n"]),
    ) {
        static LINES: std::sync::LazyLock<Vec<String>> = std::sync::LazyLock::new(|| {
            examples().iter().flat_map(|example| example.source.lines().map(str::to_string).collect::<Vec<_>>()).collect()
        });
        let mut source = String::new();
        for (place, indent, cut) in lines {
            let line = &LINES[place % LINES.len()];
            source.push_str(&" ".repeat(indent));
            source.extend(line.chars().take(if cut < 150 { 200 } else { cut - 150 }));
            source.push_str(line_end);
        }
        check_any(&source);
    }
}
