//! Logs, scripts and notebooks that are damaged in any way: nothing that reads them falls over.

use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tidegate_runs::Stream;
use tidegate_watch::Exit;
use tidegate_watch::why::{
    Case, KernelLog, LogLine, Notebook, cell_of, explain_exit, findings, judge, judge_told, kernel_events,
};

/// Cuts, doubles, moves and overwrites: so many pieces of a text, each given by parts of a million.
fn damage(text: &str, steps: &[(u32, u32, u8, char)]) -> String {
    let mut letters: Vec<char> = text.chars().collect();
    for (from, length, how, letter) in steps {
        let size = letters.len();
        let from = (*from as usize * size / 1_000_000).min(size);
        let to = (from + *length as usize * size / 4_000_000 + 1).min(size);
        match how % 4 {
            0 => drop(letters.drain(from..to)),
            1 => {
                let piece = letters[from..to].to_vec();
                letters.splice(from..from, piece);
            }
            2 => letters[from..to].reverse(),
            _ => letters.insert(from, *letter),
        }
    }
    letters.into_iter().collect()
}

fn steps() -> impl Strategy<Value = Vec<(u32, u32, u8, char)>> {
    let letter = prop_oneof![
        any::<char>(),
        prop::sample::select("()[]{}'\"\\\n\t:=,#".chars().collect::<Vec<_>>())
    ];
    prop::collection::vec((0..1_000_000u32, 0..1_000_000u32, any::<u8>(), letter), 0..12)
}

/// Programs of the corpus: scripts, and by their texts also logs of a kind.
fn programs() -> Vec<(PathBuf, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../corpus/programs");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "py"))
        .collect();
    files.sort();
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).unwrap();
            (path, text)
        })
        .collect()
}

const LOG: &str = r#"epoch 1 loss: 0.71
Process SpawnProcess-1:
Traceback (most recent call last):
  File "/home/ada/train.py", line 12, in <module>
    table = np.ones((100_000, 100_000))
            ^^^^^^^^^^^^^^^^^^^^^^^^^^^
numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array with shape (100000, 100000) and data type float64

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/home/ada/train.py", line 14, in <module>
    raise RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB")
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.69 GiB of which 1.12 GiB is free.
thread 'main' panicked at src/main.rs:4:5:
index out of bounds: the len is 3 but the index is 7
slurmstepd: error: Detected 1 oom_kill event in StepId=77.0. Some of the step tasks have been OOM Killed.
run.sh: line 3:  4242 Killed                  python train.py
"#;

const KERNEL: &str = "6,1201,88123456,-;oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/tidegate-a,task_memcg=/tidegate-a,task=python3,pid=4242,uid=0
3,1202,88123457,-;Memory cgroup out of memory: Killed process 4242 (python3) total-vm:204800kB, anon-rss:98304kB, file-rss:4096kB, shmem-rss:0kB, UID:0 pgtables:400kB oom_score_adj:0
[   77.123456] a.out[4243]: segfault at 0 ip 000055d0 sp 00007ffd error 4 in a.out[55d0+1000] likely on CPU 1 (core 1, socket 0)
<4>[ 78.1] mce: [Hardware Error]: Machine check events logged
EDAC MC0: 1 UE memory read error on CPU_SrcID#0_MC#0_Chan#0_DIMM#0
";

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn damaged_logs_are_judged(
        log in steps(), kernel in steps(), streams: u64, exit in prop_oneof![
            any::<i32>().prop_map(Exit::Code), any::<i32>().prop_map(Exit::Signal), Just(Exit::Unknown)],
        command in prop::collection::vec("[ -~]{0,12}", 0..4), apart: bool,
    ) {
        let text = damage(LOG, &log);
        let line = |(number, text): (u64, &str)| LogLine {
            number,
            time_ms: Some((number as i64) << 9),
            stream: if streams >> (number % 64) & 1 == 0 { Stream::Err } else { Stream::Out },
            text: text.into(),
        };
        let mut case = Case { log: (1..).zip(text.lines()).map(line).collect(), ..Case::default() };
        case.facts.kernel = KernelLog {
            lines: damage(KERNEL, &kernel).lines().map(Into::into).collect(),
            ..KernelLog::default()
        };
        for event in kernel_events(&case.facts.kernel) {
            prop_assert!(event.line < case.facts.kernel.lines.len());
        }
        (case.facts.exit, case.facts.command, case.facts.streams_apart) = (Some(exit), command, apart);
        case.facts.pid = Some(4242);
        let verdict = judge(&case);
        prop_assert!(!verdict.sentence.is_empty());
    }

    #[test]
    fn damaged_words_for_an_exit_are_judged(
        words in prop::sample::select(vec!["OUT_OF_MEMORY", "0:125", "signal 9 (SIGKILL)", "exit code 137", "-11"]),
        steps in steps(),
    ) {
        let text = damage(words, &steps);
        if let Some((exit, told)) = explain_exit(&text) {
            let mut case = Case::default();
            case.facts.exit = Some(exit);
            judge_told(&case, told);
        }
    }

    #[test]
    fn damaged_scripts_and_notebooks_are_looked_through(which: prop::sample::Index, steps in steps()) {
        let programs = programs();
        let (path, text) = &programs[which.index(programs.len())];
        findings(&damage(text, &steps), path);
        let cell = serde_json::json!({
            "cell_type": "code", "execution_count": 1, "metadata": {}, "outputs": [], "source": text,
        });
        let whole = serde_json::json!({ "cells": [cell, cell], "metadata": {}, "nbformat": 4 }).to_string();
        let json = damage(&whole, &steps);
        if let Some(notebook) = Notebook::parse(&json) {
            cell_of(&notebook, "/tmp/ipykernel_7/77.py");
        }
        findings(&json, Path::new("train.ipynb"));
    }
}
