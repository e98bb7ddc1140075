//! The corpus of programs whose end is known (`corpus/`), against what `tidegate why` says of them.
//!
//! Here run those that need no Python packages and take no more than a few seconds; `corpus/run` runs them all, and prints
//! true against named causes.

mod header;
mod watched;

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use header::{Program, read_all};
use watched::{Tools, Unwatched, Watched, watch};

/// Most programs wait, for memory to be given or for a signal, more than they compute.
const AT_ONCE: usize = 4;
/// The part of all causes that must be named right.
const NAMED_RIGHT: f64 = 0.95;
/// Named for a program that no lack of memory ended, these are what nobody forgives.
const OOM: [&str; 5] = ["host_oom", "cgroup_oom", "child_oom", "oom_daemon", "line"];
const KILLED: i32 = 128 + libc::SIGKILL;

/// What was wrong about the answers, by how bad that is.
#[derive(Default)]
struct Findings {
    judged: usize,
    named_wrong: Vec<String>,
    /// These are never let pass: an OOM kill that was none, a wrong verdict called proven, a leak that is none, an exit
    /// status that was not passed on, something left behind.
    grave: Vec<String>,
    /// Growing lines and patterns that were not seen.
    missed: Vec<String>,
}

#[test]
fn programs_are_explained_as_they_say_themselves() {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../corpus")
        .canonicalize()
        .unwrap();
    let programs: Vec<Program> = read_all(&corpus.join("programs"))
        .into_iter()
        .filter(|program| !program.slow && !program.needs_packages())
        .collect();
    assert!(programs.len() > 75, "only {} programs were found", programs.len());
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("corpus");
    std::fs::create_dir_all(&scratch).unwrap();
    let tools = Tools {
        corpus,
        python: python(),
        scratch,
    };
    let (next, findings) = (AtomicUsize::new(0), Mutex::new(Findings::default()));
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                while let Some(program) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let seen = watch(&tools, program);
                    let mut findings = findings.lock().unwrap();
                    match seen {
                        Ok(seen) => judge(program, &seen, &mut findings),
                        Err(Unwatched::Lacking(what)) => {
                            eprintln!("skipped: {}: there is no {what}", program.name());
                        }
                        Err(Unwatched::Broken(why)) => {
                            findings.grave.push(format!("{}: {why}", program.name()));
                        }
                    }
                }
            });
        }
    });
    let findings = findings.into_inner().unwrap();
    let right = 1.0 - findings.named_wrong.len() as f64 / findings.judged.max(1) as f64;
    let told = format!(
        "of {} programs {:.1}% are named right; not these:\n  {}\nnever to be let pass:\n  {}\nnot seen:\n  {}\n",
        findings.judged,
        right * 100.0,
        findings.named_wrong.join("\n  "),
        findings.grave.join("\n  "),
        findings.missed.join("\n  "),
    );
    assert!(findings.judged > 0, "nothing could be run here");
    assert!(right >= NAMED_RIGHT && findings.grave.is_empty(), "{told}");
    eprintln!("{told}");
}

/// The interpreter, past the scripts that choose one.
fn python() -> Option<PathBuf> {
    let mut command = Command::new("python3");
    let told = command
        .args(["-c", "import sys; print(sys.executable)"])
        .output()
        .ok()?;
    let path = String::from_utf8(told.stdout).ok()?;
    told.status.success().then(|| PathBuf::from(path.trim()))
}

fn judge(program: &Program, seen: &Watched, findings: &mut Findings) {
    let name = program.name();
    let is_true = |cause: &str| program.causes.iter().any(|true_cause| true_cause == cause);
    let ended_by_oom = OOM.iter().any(|cause| is_true(cause));
    let containment = seen.run["containment"].as_str().unwrap_or_default();
    if ended_by_oom && program.memory.is_some() && containment.starts_with("watched") {
        eprintln!("skipped: {name}: the kernel does not hold the limit here ({containment})");
        return;
    }
    findings.judged += 1;
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (cause, grade) = (text(&seen.verdict["cause"]), text(&seen.verdict["grade"]));
    // The kernel killed a child, and then the parent before the child's memory was back.
    let parent_too = is_true("child_oom") && seen.run["oom_kills"].as_u64() > Some(1) && seen.exit == KILLED;
    if !(is_true(&cause) || parent_too && cause == "cgroup_oom") {
        let sentence = text(&seen.verdict["sentence"]);
        let wrong = format!(
            "{name}: {cause} ({grade}), not {}: {sentence}",
            program.causes.join(" or ")
        );
        if grade == "proven" || (OOM.contains(&cause.as_str()) && !ended_by_oom) {
            findings.grave.push(wrong.clone());
        }
        findings.named_wrong.push(wrong);
    }
    if seen.exit != program.exit && !parent_too {
        findings
            .grave
            .push(format!("{name}: exit {}, not {}", seen.exit, program.exit));
    }
    if !seen.left.is_empty() {
        findings
            .grave
            .push(format!("{name}: left behind: {}", seen.left.join(", ")));
    }
    let pattern = text(&seen.verdict["pattern"]["kind"]);
    match program
        .pattern
        .as_deref()
        .map(|wanted| wanted.strip_prefix("not ").ok_or(wanted))
    {
        Some(Ok(unwanted)) if pattern == unwanted => {
            findings.grave.push(format!("{name}: pattern {pattern}"))
        }
        Some(Err(wanted)) if pattern != wanted => {
            findings
                .missed
                .push(format!("{name}: pattern {pattern:?}, not {wanted}"));
        }
        _ => {}
    }
    let grew = grew(&seen.verdict, name);
    if program.line.is_some() && grew != program.line {
        findings
            .missed
            .push(format!("{name}: grew at line {grew:?}, not {:?}", program.line));
    }
}

/// The line of the program where memory grew most, or from where it called what grew.
fn grew(verdict: &Value, name: &str) -> Option<u64> {
    let first = &verdict["growth"][0];
    let within = first["within"].as_array().into_iter().flatten().rev();
    let mut places = std::iter::once(&first["place"]).chain(within);
    let own = places.find(|place| {
        let file = place["file"].as_str().unwrap_or_default();
        Path::new(file).file_name().is_some_and(|file| file == name)
    });
    own?["line"].as_u64()
}
