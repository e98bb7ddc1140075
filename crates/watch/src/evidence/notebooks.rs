//! The notebooks whose kernels a job started: their code has no file of its own, and a server's command names none.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

/// How often a process is looked at before it is none: at first it is a copy of its parent.
const LOOKS: u8 = 5;

#[derive(Debug, Default)]
pub(crate) struct Notebooks {
    /// How often each process was looked at.
    looked: HashMap<(i32, u64), u8>,
    found: Vec<PathBuf>,
}

impl Notebooks {
    /// Looks at processes, by their number and start; returns all notebooks so far if there is a new one.
    pub(crate) fn look(&mut self, living: impl Iterator<Item = (i32, u64)>) -> Option<&[PathBuf]> {
        let mut looked = HashMap::new();
        let known = self.found.len();
        for process in living {
            let mut looks = self.looked.get(&process).copied().unwrap_or(0);
            if looks < LOOKS
                && is_kernel(process.0)
                && let Some(environment) = environment_of(process.0)
            {
                let new = notebook_of(process.0, &environment);
                self.found.extend(new.filter(|file| !self.found.contains(file)));
                looks = LOOKS;
            }
            looked.insert(process, (looks + 1).min(LOOKS));
        }
        self.looked = looked;
        (self.found.len() > known).then_some(&self.found)
    }
}

fn is_kernel(pid: i32) -> bool {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    command
        .split(|byte| *byte == 0)
        .any(|word| word.windows(9).any(|part| part == b"ipykernel"))
}

/// A process that is just being started has none yet.
fn environment_of(pid: i32) -> Option<Vec<u8>> {
    let environment = std::fs::read(format!("/proc/{pid}/environ")).ok()?;
    (!environment.is_empty()).then_some(environment)
}

/// Jupyter's server tells a kernel which notebook it is for.
fn notebook_of(pid: i32, environment: &[u8]) -> Option<PathBuf> {
    let mut variables = environment.split(|byte| *byte == 0);
    let file = variables.find_map(|variable| variable.strip_prefix(b"JPY_SESSION_NAME="))?;
    let file = PathBuf::from(OsString::from_vec(file.to_vec()));
    let folder = std::fs::read_link(format!("/proc/{pid}/cwd")).unwrap_or_default();
    let named = folder.join(&file);
    // A kernel runs in its notebook's folder, and some servers tell the whole way from their own.
    let beside = file.file_name().map(|name| folder.join(name));
    match named.exists() {
        true => Some(named),
        false => beside.filter(|file| file.exists()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::process::{Command, Stdio};

    #[test]
    fn a_kernel_tells_its_notebook_and_other_processes_do_not() {
        let folder = tempfile::tempdir().unwrap();
        let notebook = folder.path().join("train.ipynb");
        std::fs::write(&notebook, "{}").unwrap();
        let sleep = |name: &str| {
            let mut command = Command::new("sh");
            command
                .args(["-c", "echo started; read line", name])
                .env("JPY_SESSION_NAME", "work/train.ipynb")
                .current_dir(folder.path())
                .stdin(Stdio::piped())
                .stdout(Stdio::piped());
            let mut child = command.spawn().unwrap();
            let mut started = [0; "started".len()];
            child.stdout.as_mut().unwrap().read_exact(&mut started).unwrap();
            child
        };
        let mut children = [sleep("ipykernel_launcher"), sleep("loader")];
        let mut notebooks = Notebooks::default();
        let mut told = 0;
        for _ in 0..LOOKS {
            let living = children.iter().map(|child| (child.id().cast_signed(), 1));
            told += usize::from(notebooks.look(living).is_some());
        }
        children.iter_mut().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let folder = folder.path().canonicalize().unwrap();
        assert_eq!(notebooks.found, [folder.join("train.ipynb")]);
        assert_eq!(told, 1);
        assert_eq!(notebooks.look(std::iter::empty()), None);
        assert!(notebooks.looked.is_empty(), "the dead are forgotten");
    }
}
