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
    /// Standard output, or a pipe or device by its name: what is written is gone.
    Stream {
        out: BufWriter<Box<dyn Write>>,
        name: PathBuf,
    },
    File {
        file: BufWriter<File>,
        beside: PathBuf,
        path: PathBuf,
    },
}

const BUFFER: usize = 1 << 16;

impl Destination {
    pub(super) fn open(path: Option<&Path>) -> Result<Destination> {
        let stream = |out: Box<dyn Write>, name: &Path| Destination::Stream {
            out: BufWriter::with_capacity(BUFFER, out),
            name: name.into(),
        };
        let Some(path) = path else {
            return Ok(stream(Box::new(io::stdout()), Path::new("standard output")));
        };
        let failed = |source| Error::Write {
            path: path.into(),
            source,
        };
        // A link is followed, so that the file it names is replaced and not the link.
        let path = path.canonicalize().unwrap_or_else(|_| path.into());
        if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
            let out = File::options().write(true).open(&path).map_err(failed)?;
            return Ok(stream(Box::new(out), &path));
        }
        let mut name = path.file_name().unwrap_or_default().to_os_string();
        name.push(format!(".{}.part", std::process::id()));
        let beside = path.with_file_name(name);
        let file = File::create_new(&beside).map_err(failed)?;
        Ok(Destination::File {
            file: BufWriter::with_capacity(BUFFER, file),
            beside,
            path,
        })
    }

    pub(super) fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<()> {
        let written = match self {
            Destination::Stream { out, .. } => write(out),
            Destination::File { file, .. } => write(file),
        };
        written.map_err(|source| self.failed(source))
    }

    fn failed(&self, source: io::Error) -> Error {
        let path = match self {
            Destination::Stream { name, .. } => name.clone(),
            Destination::File { path, .. } => path.clone(),
        };
        Error::Write { path, source }
    }

    pub(super) fn finish(mut self) -> Result<()> {
        let flushed = match &mut self {
            Destination::Stream { out, .. } => out.flush(),
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
