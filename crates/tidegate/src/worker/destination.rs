//! Where predictions go: standard output, or a file that appears under its name when it is whole.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use tidegate_train::{Error, Result};

/// A label as a CSV field.
pub(super) fn quoted(label: &str) -> Cow<'_, str> {
    if label.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", label.replace('"', "\"\"")).into()
    } else {
        label.into()
    }
}

pub(super) enum Destination {
    Stdout(BufWriter<io::Stdout>),
    File {
        file: BufWriter<File>,
        beside: PathBuf,
        path: PathBuf,
    },
}

impl Destination {
    pub(super) fn open(path: Option<&Path>) -> Result<Destination> {
        let Some(path) = path else {
            return Ok(Destination::Stdout(BufWriter::with_capacity(
                1 << 16,
                io::stdout(),
            )));
        };
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(".part");
        let beside = path.with_file_name(name);
        let file = File::create(&beside).map_err(|source| Error::Write {
            path: path.into(),
            source,
        })?;
        Ok(Destination::File {
            file: BufWriter::with_capacity(1 << 16, file),
            beside,
            path: path.into(),
        })
    }

    pub(super) fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let written = match self {
            Destination::Stdout(out) => write(out),
            Destination::File { file, .. } => write(file),
        };
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = match self {
            Destination::Stdout(_) => "standard output".into(),
            Destination::File { path, .. } => path.clone(),
        };
        Error::Write { path, source }
    }

    pub(super) fn finish(mut self) -> Result<()> {
        let flushed = match &mut self {
            Destination::Stdout(out) => out.flush(),
            Destination::File { file, beside, path } => file
                .flush()
                .and_then(|()| file.get_ref().sync_all())
                .and_then(|()| std::fs::rename(beside, path)),
        };
        flushed.map_err(|source| self.failed(source))
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        if let Destination::File { beside, .. } = self {
            // Half a file is worth nothing; after a rename there is none.
            let _ = std::fs::remove_file(beside);
        }
    }
}
