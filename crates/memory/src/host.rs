//! Where the machine is read from: its own `/proc` and `/sys`, or a recorded copy of another machine's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// A machine to read: the one we run on, or a recorded tree of files with its environment.
///
/// Everything in this crate that looks at a machine takes a `Host`, so each layout we know (a container, a
/// pod, a batch job) can be tested anywhere from a folder holding its `proc` and `sys`.
#[derive(Debug, Clone)]
pub struct Host {
    root: PathBuf,
    env: BTreeMap<String, String>,
    live: bool,
}

impl Host {
    /// The machine this process runs on, with the environment as it is now.
    pub fn live() -> Host {
        // Only Slurm's variables are ever asked for; text that is not Unicode could not be a number anyway.
        let env = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
            .filter(|(name, _)| name.starts_with("SLURM_"))
            .collect();
        Host {
            root: PathBuf::from("/"),
            env,
            live: true,
        }
    }

    /// A recorded machine: a folder holding `proc` and `sys`, and the environment variables of its process.
    pub fn recorded<K, V>(root: impl Into<PathBuf>, env: impl IntoIterator<Item = (K, V)>) -> Host
    where
        K: Into<String>,
        V: Into<String>,
    {
        let env = env
            .into_iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect();
        Host {
            root: root.into(),
            env,
            live: false,
        }
    }

    pub fn is_live(&self) -> bool {
        self.live
    }

    pub(crate) fn env(&self, name: &str) -> Option<&str> {
        self.env.get(name).map(String::as_str)
    }

    /// Where `path`, absolute as the machine itself sees it or relative to its root, is found from here.
    pub(crate) fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    pub(crate) fn read(&self, path: impl AsRef<Path>) -> io::Result<String> {
        read(&self.path(path))
    }
}

/// Reads a kernel file. They claim a size of zero, so start with room for all but the longest: one read,
/// one allocation.
pub(crate) fn read(path: &Path) -> io::Result<String> {
    let mut bytes = Vec::with_capacity(4096);
    File::open(path)?.read_to_end(&mut bytes)?;
    // A process can name itself in any bytes; one bad name must not hide its memory.
    Ok(String::from_utf8(bytes)
        .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()))
}

/// Why a file could not be read, short enough for a list of bounds.
pub(crate) fn why(error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => "no such file".to_owned(),
        io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
        _ => error.to_string(),
    }
}
