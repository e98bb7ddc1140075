//! What a run was started with: versions, the machine, and the variables that matter to memory and training.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tidegate_memory::{Host, meminfo};

use crate::job::Job;

/// What cannot be read is null: unavailable.
#[derive(Debug, Serialize)]
pub(crate) struct Environment {
    tidegate: &'static str,
    kernel: Option<String>,
    host: Option<String>,
    folder: Option<PathBuf>,
    machine: Machine,
    variables: BTreeMap<String, String>,
    /// Of a command that Python runs.
    python: Option<Python>,
}

#[derive(Debug, Serialize)]
struct Machine {
    cores: Option<u64>,
    /// Those that this program may use.
    usable_cores: Option<usize>,
    memory_bytes: Option<u64>,
    processor: Option<String>,
}

#[derive(Debug, PartialEq, Eq, Serialize)]
struct Python {
    interpreter: PathBuf,
    version: Option<String>,
}

/// Variables that decide how much memory is taken, by how many threads, on which devices, under whose limits.
const NAMES: [&str; 17] = [
    "CONDA_DEFAULT_ENV",
    "CUDA_VISIBLE_DEVICES",
    "HIP_VISIBLE_DEVICES",
    "KUBERNETES_SERVICE_HOST",
    "LD_PRELOAD",
    "LOCAL_RANK",
    "MKL_NUM_THREADS",
    "NUMEXPR_MAX_THREADS",
    "NVIDIA_VISIBLE_DEVICES",
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "RANK",
    "RAYON_NUM_THREADS",
    "ROCR_VISIBLE_DEVICES",
    "SLURM_JOB_ID",
    "VIRTUAL_ENV",
    "WORLD_SIZE",
];
/// Of `TF_` only TensorFlow's: others are Terraform's, `TF_VAR_…` with passwords among them.
const PREFIXES: [&str; 16] = [
    "MALLOC_",
    "PYTHON",
    "SLURM_CPUS",
    "SLURM_MEM",
    "TF_CONFIG",
    "TF_CPP_",
    "TF_CUD",
    "TF_DETERMINISTIC_",
    "TF_ENABLE_",
    "TF_FORCE_",
    "TF_GPU_",
    "TF_NUM_",
    "TF_USE_",
    "TF_XLA_",
    "TIDEGATE_",
    "XLA_",
];
const SECRETS: [&str; 7] = ["TOKEN", "KEY", "PASSW", "SECRET", "CREDENTIAL", "AUTH", "COOKIE"];
/// Longer values are lists that nobody reads.
const LONGEST_VALUE: usize = 2000;

impl Environment {
    /// As it is for this job, without running anything.
    pub(crate) fn of(host: &Host, job: &Job<'_>) -> Environment {
        let mut variables: BTreeMap<String, OsString> = BTreeMap::new();
        let all = std::env::vars_os().chain(job.envs.iter().cloned());
        variables.extend(all.filter_map(|(name, value)| Some((name.into_string().ok()?, value))));
        let path = variables.get("PATH").cloned().unwrap_or_default();
        let (cores, processor) = processors();
        Environment {
            tidegate: env!("CARGO_PKG_VERSION"),
            kernel: line_of("/proc/sys/kernel/osrelease"),
            host: line_of("/proc/sys/kernel/hostname"),
            folder: std::env::current_dir().ok(),
            machine: Machine {
                cores,
                usable_cores: std::thread::available_parallelism().ok().map(usize::from),
                memory_bytes: meminfo(host).total,
                processor,
            },
            variables: variables
                .into_iter()
                .filter(|(name, _)| is_told(name))
                .map(|(name, value)| (name, told(&value.to_string_lossy())))
                .collect(),
            python: interpreter(&job.program, &path).map(|interpreter| Python {
                version: version(&interpreter),
                interpreter,
            }),
        }
    }
}

fn is_told(name: &str) -> bool {
    let of_torch = name.starts_with("PYTORCH_") && name.ends_with("ALLOC_CONF");
    let known = NAMES.contains(&name) || PREFIXES.iter().any(|prefix| name.starts_with(prefix)) || of_torch;
    let upper = name.to_ascii_uppercase();
    known && !SECRETS.iter().any(|secret| upper.contains(secret))
}

/// A value, cut, and without the names and passwords of addresses.
fn told(value: &str) -> String {
    let mut out = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once("://") {
        let end = after.find(['/', ' ', ',', ';']).unwrap_or(after.len());
        out.push_str(before);
        out.push_str("://");
        rest = match after[..end].rfind('@') {
            Some(at) => {
                out.push_str("***");
                &after[at..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out.chars().take(LONGEST_VALUE).collect()
}

fn line_of(path: &str) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    Some(text.trim().to_string()).filter(|text| !text.is_empty())
}

/// How many there are, and what the first one is called.
fn processors() -> (Option<u64>, Option<String>) {
    let Ok(file) = File::open("/proc/cpuinfo") else {
        return (None, None);
    };
    let (mut count, mut name) = (0, None);
    for line in BufReader::new(file).lines().map_while(Result::ok) {
        match line
            .split_once(':')
            .map(|(key, value)| (key.trim(), value.trim()))
        {
            Some(("processor", _)) => count += 1,
            Some(("model name", value)) if name.is_none() => name = Some(value.to_string()),
            _ => {}
        }
    }
    (Some(count).filter(|count| *count > 0), name)
}

/// The Python that runs a program: itself, or the one that its first line names.
fn interpreter(program: &Path, path: &OsString) -> Option<PathBuf> {
    let is_python = |file: &Path| {
        let name = file.file_name().map(|name| name.to_string_lossy().into_owned());
        name.is_some_and(|name| name.starts_with("python"))
    };
    let program = find(program, path)?;
    if is_python(&program) {
        return Some(program);
    }
    let words = first_line(&program)?;
    let mut words = words.split_whitespace().map(Path::new);
    let first = words.next()?;
    let named = match first.file_name()? == "env" {
        true => words.find(|word| !word.to_string_lossy().starts_with('-'))?,
        false => first,
    };
    is_python(named).then(|| find(named, path))?
}

/// What stands behind `#!`, in words.
pub(crate) fn first_line(program: &Path) -> Option<String> {
    let mut first = [0; 256];
    let length = File::open(program).ok()?.read(&mut first).ok()?;
    let text = String::from_utf8_lossy(&first[..length]).into_owned();
    Some(text.strip_prefix("#!")?.lines().next()?.to_string())
}

/// Where a shell would find it.
fn find(program: &Path, path: &OsString) -> Option<PathBuf> {
    if program.to_string_lossy().contains('/') {
        return program.exists().then(|| program.into());
    }
    let mut places = std::env::split_paths(path).map(|folder| folder.join(program));
    places.find(|place| place.is_file())
}

/// The version of a Python, from the file of its virtual environment, or from its path.
fn version(interpreter: &Path) -> Option<String> {
    let of_environment = || {
        let file = interpreter.parent()?.parent()?.join("pyvenv.cfg");
        let text = std::fs::read_to_string(file).ok()?;
        text.lines().find_map(|line| {
            let (key, value) = line.split_once('=')?;
            matches!(key.trim(), "version" | "version_info").then(|| numbers(value.trim()))?
        })
    };
    let of_path = || {
        let path = std::fs::canonicalize(interpreter).ok()?;
        let parts: Vec<String> = path
            .iter()
            .rev()
            .map(|part| part.to_string_lossy().into_owned())
            .collect();
        // `…/versions/3.11.4/bin/python3.11` says more by its folder.
        let name = numbers(parts.first()?.trim_start_matches("python"));
        let folder = parts
            .iter()
            .skip(1)
            .find_map(|part| numbers(part).filter(|version| *version == **part));
        folder
            .filter(|folder| name.as_ref().is_none_or(|name| folder.starts_with(name.as_str())))
            .or(name)
    };
    of_environment().or_else(of_path)
}

/// `3.11.2` of `3.11.2.final.0`; at least two numbers.
fn numbers(text: &str) -> Option<String> {
    let parts: Vec<&str> = text
        .split('.')
        .take(3)
        .take_while(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
        .collect();
    (parts.len() >= 2).then(|| parts.join("."))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_matters_is_told_and_secrets_are_not() {
        for name in [
            "OMP_NUM_THREADS",
            "MALLOC_ARENA_MAX",
            "PYTORCH_CUDA_ALLOC_CONF",
            "PYTORCH_ALLOC_CONF",
            "PYTHONPATH",
            "TF_CUDNN_USE_AUTOTUNE",
            "SLURM_MEM_PER_NODE",
            "TF_FORCE_GPU_ALLOW_GROWTH",
            "TIDEGATE_HOME",
        ] {
            assert!(is_told(name), "{name}");
        }
        for name in [
            "HOME",
            "AWS_SECRET_ACCESS_KEY",
            "TF_CONFIG_TOKEN",
            "TF_VAR_database",
            "PYTHON_KEYRING_BACKEND",
            "TIDEGATE_PASSWORD",
            "PYTHON_auth",
            "KUBERNETES_PORT",
            "SLURM_JOB_USER",
            "PYTORCH_VERSION",
        ] {
            assert!(!is_told(name), "{name}");
        }
    }

    #[test]
    fn addresses_lose_their_passwords() {
        for (value, expected) in [
            ("1", "1"),
            ("/a:/b", "/a:/b"),
            ("https://ada:pass@host/x", "https://***@host/x"),
            (
                "postgres://ada:p@ss@host:5432/x,s3://bucket/a@b",
                "postgres://***@host:5432/x,s3://bucket/a@b",
            ),
            ("http://token@host", "http://***@host"),
            ("://", "://"),
        ] {
            assert_eq!(told(value), expected);
        }
        assert_eq!(told(&"x".repeat(9999)).len(), LONGEST_VALUE);
    }

    #[test]
    fn an_interpreter_is_found_and_its_version_read() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path();
        let write = |path: &str, text: &str| {
            std::fs::create_dir_all(root.join(path).parent().unwrap()).unwrap();
            std::fs::write(root.join(path), text).unwrap();
        };
        write("usr/bin/python3.11", "");
        write("versions/3.12.4/bin/python3.12", "");
        std::os::unix::fs::symlink("python3.12", root.join("versions/3.12.4/bin/python3")).unwrap();
        write("venv/bin/python", "");
        write(
            "venv/pyvenv.cfg",
            "home = /usr/bin\nversion_info = 3.10.2.final.0\n",
        );
        write(
            "bin/tool",
            &format!("#!{}/venv/bin/python -u\nimport x\n", root.display()),
        );
        write("bin/through", "#!/usr/bin/env -S python3.11\n");
        write("bin/shell", "#!/bin/sh\n");
        let path = std::env::join_paths([root.join("bin"), root.join("usr/bin")]).unwrap();
        let check = |program: &Path, expected: Option<(&str, Option<&str>)>| {
            let found = interpreter(program, &path);
            let told = found.as_ref().map(|found| (found.clone(), version(found)));
            let expected = expected.map(|(file, version)| (root.join(file), version.map(str::to_string)));
            assert_eq!(told, expected, "{}", program.display());
        };
        check(
            Path::new("python3.11"),
            Some(("usr/bin/python3.11", Some("3.11"))),
        );
        check(
            &root.join("versions/3.12.4/bin/python3"),
            Some(("versions/3.12.4/bin/python3", Some("3.12.4"))),
        );
        check(Path::new("tool"), Some(("venv/bin/python", Some("3.10.2"))));
        check(Path::new("through"), Some(("usr/bin/python3.11", Some("3.11"))));
        check(Path::new("shell"), None);
        check(Path::new("python9"), None);
        check(&root.join("bin/python"), None);
    }
}
