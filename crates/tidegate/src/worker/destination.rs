//! Where predictions go: standard output, or a file that appears under its name when it is whole.

mod csv;
mod parquet;

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};

use tidegate_memory::Ledger;
use tidegate_train::{Error, Prediction, Result};

use self::csv::CsvOutput;
use self::parquet::ParquetOutput;
use crate::OutputFormat;

/// What a table of predictions has beside the place of each row.
pub(super) struct Columns {
    /// The files of the source, where there are several.
    pub files: Option<Vec<String>>,
    /// What the place of a row is called, and whether it is a name rather than a number.
    pub place: &'static str,
    pub named: bool,
    /// The values of the target; none for a number.
    pub labels: Vec<String>,
    /// The names of several scores that stand for themselves: then there is no prediction beside them.
    pub several: Vec<String>,
}

impl Columns {
    /// Probabilities that are told one by one: of classes, where there are more than two.
    fn classes(&self) -> &[String] {
        match self.labels.len() {
            0..=2 => &[],
            _ => &self.labels,
        }
    }

    /// Scores of a row.
    fn n_scores(&self) -> usize {
        self.classes().len().max(self.several.len()).max(1)
    }

    /// What the names of files and values take.
    fn bytes(&self) -> u64 {
        let texts = self
            .files
            .iter()
            .flatten()
            .chain(&self.labels)
            .chain(&self.several);
        texts.map(|text| (text.len() + TEXT_BYTES) as u64).sum()
    }

    /// The names of all columns, in order.
    fn names(&self) -> Vec<String> {
        let place = self
            .files
            .is_some()
            .then_some("file")
            .into_iter()
            .chain([self.place]);
        if !self.several.is_empty() {
            return place
                .map(String::from)
                .chain(self.several.iter().cloned())
                .collect();
        }
        let score = (!self.labels.is_empty()).then_some("probability");
        let fixed = place.chain(["prediction"]).chain(score).map(String::from);
        let classes = self.classes().iter().map(|label| format!("probability_{label}"));
        fixed.chain(classes).collect()
    }
}

/// A table of predictions on its way out.
pub(super) enum Output {
    Csv(Box<CsvOutput>),
    Parquet(Box<ParquetOutput>),
}

impl Output {
    /// What an output of so many rows holds in memory, as far as that is known.
    pub(super) fn bytes(format: OutputFormat, columns: &Columns, rows: u64) -> u64 {
        BUFFER as u64
            + columns.bytes()
            + match format {
                OutputFormat::Csv => 0,
                OutputFormat::Parquet => ParquetOutput::bytes(columns, rows),
            }
    }

    pub(super) fn open(
        path: Option<&Path>,
        format: OutputFormat,
        columns: Columns,
        ledger: &Ledger,
    ) -> Result<Output> {
        let granted = ledger
            .holder(OUTPUT)
            .try_grant(Output::bytes(format, &columns, 0));
        let grant = granted.map_err(|source| Error::Memory { what: OUTPUT, source })?;
        let out = Destination::open(path)?;
        Ok(match format {
            OutputFormat::Csv => Output::Csv(Box::new(CsvOutput::new(out, columns, grant)?)),
            OutputFormat::Parquet => Output::Parquet(Box::new(ParquetOutput::new(out, columns, grant)?)),
        })
    }

    pub(super) fn write(&mut self, prediction: &Prediction) -> Result<()> {
        match self {
            Output::Csv(csv) => csv.write(prediction),
            Output::Parquet(parquet) => parquet.write(prediction),
        }
    }

    /// Writes what is left; a file appears now.
    pub(super) fn finish(self) -> Result<()> {
        match self {
            Output::Csv(csv) => csv.finish(),
            Output::Parquet(parquet) => parquet.finish(),
        }
    }
}

enum Destination {
    /// Standard output, or a pipe or device by its name: what is written is gone.
    Stream {
        out: BufWriter<Box<dyn Write + Send>>,
        name: PathBuf,
    },
    File {
        file: BufWriter<Uncached>,
        beside: PathBuf,
        path: PathBuf,
    },
}

const BUFFER: usize = 1 << 16;
/// What a text takes beside its letters.
const TEXT_BYTES: usize = 64;
/// The holder of all this.
const OUTPUT: &str = "output";

impl Destination {
    fn open(path: Option<&Path>) -> Result<Destination> {
        let stream = |out: Box<dyn Write + Send>, name: &Path| Destination::Stream {
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
            file: BufWriter::with_capacity(BUFFER, Uncached::new(file)),
            beside,
            path,
        })
    }

    /// What a person calls it.
    fn name(&self) -> &Path {
        match self {
            Destination::Stream { name, .. } => name,
            Destination::File { path, .. } => path,
        }
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write {
            path: self.name().into(),
            source,
        }
    }

    fn finish(mut self) -> Result<()> {
        let flushed = match &mut self {
            Destination::Stream { out, .. } => out.flush(),
            Destination::File { file, beside, path } => file
                .flush()
                .and_then(|()| file.get_ref().file.sync_all())
                .and_then(|()| std::fs::rename(beside, path)),
        };
        flushed.map_err(|source| self.failed(source))
    }
}

impl Write for Destination {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Destination::Stream { out, .. } => out.write(bytes),
            Destination::File { file, .. } => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Destination::Stream { out, .. } => out.flush(),
            Destination::File { file, .. } => file.flush(),
        }
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

/// A file whose pages leave the cache as it grows: they count against the line that the kernel holds.
struct Uncached {
    file: File,
    written: u64,
    /// The disk was asked to take everything up to here, and has taken everything up to there.
    asked: u64,
    dropped: u64,
}

/// Written pages that the cache may hold, twice: those being written, and those being filled.
const WINDOW: u64 = 4 << 20;

impl Uncached {
    fn new(file: File) -> Uncached {
        Uncached {
            file,
            written: 0,
            asked: 0,
            dropped: 0,
        }
    }

    /// Starts writing the window that is full, and drops the one before. Where a file system knows no such calls, its
    /// cache is left alone: the file is synced at its end.
    fn drop_pages(&mut self) {
        const WAIT: libc::c_uint = libc::SYNC_FILE_RANGE_WAIT_BEFORE
            | libc::SYNC_FILE_RANGE_WRITE
            | libc::SYNC_FILE_RANGE_WAIT_AFTER;
        let descriptor = self.file.as_raw_fd();
        let (asked, dropped) = (self.asked as libc::off64_t, self.dropped as libc::off64_t);
        let filled = (self.written - self.asked) as libc::off64_t;
        // SAFETY: plain system calls on an open descriptor; they touch no memory of ours.
        unsafe {
            libc::sync_file_range(descriptor, asked, filled, libc::SYNC_FILE_RANGE_WRITE);
            if asked > dropped {
                libc::sync_file_range(descriptor, dropped, asked - dropped, WAIT);
                libc::posix_fadvise(descriptor, dropped, asked - dropped, libc::POSIX_FADV_DONTNEED);
            }
        }
        (self.dropped, self.asked) = (self.asked, self.written);
    }
}

impl Write for Uncached {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.written += written as u64;
        if self.written - self.asked >= WINDOW {
            self.drop_pages();
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
