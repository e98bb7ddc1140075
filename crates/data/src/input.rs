//! A file as a sequence of text: opened once, decompressed on the way, dropped from the page cache.

use std::fs::{File, Metadata};
use std::io::{self, BufReader, Read};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_memory::{Grant, Holder};

use crate::{Error, Result};

/// How a file is compressed, told from its first bytes rather than its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    Plain,
    Gzip,
    Zstd,
    /// A member of a zip archive.
    Deflate,
}

/// A regular file that holds text, possibly compressed, or a member of an archive.
#[derive(Debug, Clone)]
pub struct Input {
    path: PathBuf,
    compression: Compression,
    bytes: u64,
    modified: (i64, i64),
    member: Option<Member>,
}

/// Where a member of an archive stands, and what its text must come to.
#[derive(Debug, Clone)]
pub(crate) struct Member {
    pub archive: Arc<Path>,
    pub archive_bytes: u64,
    pub start: u64,
    pub text_bytes: u64,
    pub crc: u32,
}

/// Compressed input is read from disk in pieces of this size.
const RAW_BUFFER: usize = 128 << 10;

/// The working memory of a decoder apart from its window.
const DECODER_BYTES: u64 = 512 << 10;

impl Input {
    /// Opens the file far enough to know that it exists, is not empty and how it is compressed.
    pub fn open(path: &Path) -> Result<Input> {
        let unreadable = |source| match io::Error::kind(&source) {
            io::ErrorKind::NotFound => Error::NotFound { path: path.into() },
            _ => Error::Unreadable {
                path: path.into(),
                source,
            },
        };
        let metadata = std::fs::metadata(path).map_err(unreadable)?;
        if metadata.is_dir() {
            return Err(Error::Directory { path: path.into() });
        }
        if !metadata.is_file() {
            return Err(Error::NotAFile { path: path.into() });
        }
        if metadata.len() == 0 {
            return Err(Error::Empty { path: path.into() });
        }
        let file = File::open(path).map_err(unreadable)?;
        expect_single_pieces(&file);
        let mut magic = [0u8; 4];
        let read = file.read_at(&mut magic, 0).map_err(unreadable)?;
        let compression = match &magic[..read] {
            [0x1f, 0x8b, ..] => Compression::Gzip,
            [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
            _ => Compression::Plain,
        };
        Ok(Input {
            path: path.into(),
            compression,
            bytes: metadata.len(),
            modified: modified(&metadata),
            member: None,
        })
    }

    /// A member of this archive, named `name` in it, of so many bytes.
    pub(crate) fn member(&self, name: &str, compression: Compression, bytes: u64, member: Member) -> Input {
        Input {
            path: self.path.join(name),
            compression,
            bytes,
            modified: self.modified,
            member: Some(member),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether this is part of an archive.
    pub(crate) fn is_member(&self) -> bool {
        self.member.is_some()
    }

    pub fn compression(&self) -> Compression {
        self.compression
    }

    /// The size on disk.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The length of the text, where it is known before reading it.
    pub(crate) fn text_bytes(&self) -> Option<u64> {
        match (self.compression, &self.member) {
            (Compression::Plain, _) => Some(self.bytes),
            (_, Some(member)) => Some(member.text_bytes),
            _ => None,
        }
    }

    /// The checksum that an archive has of the text.
    pub(crate) fn checksum(&self) -> Option<u32> {
        self.member.as_ref().map(|member| member.crc)
    }

    /// A number that changes with the file's size, beginning and end: enough to notice that rows were added,
    /// and the same for a copy.
    pub fn fingerprint(&self) -> Result<u64> {
        const PART: u64 = 64 << 10;
        let places = self.places()?;
        let mut part = vec![0u8; PART as usize];
        let mut hash = Fnv::new();
        hash.add(&self.bytes.to_le_bytes());
        for offset in [0, self.bytes.saturating_sub(PART)] {
            let read = places.read_at(&mut part, offset)?;
            hash.add(&part[..read]);
        }
        Ok(hash.0)
    }

    /// Starts reading the text from its first byte. Refuses a file that changed since it was opened:
    /// epochs over different data would not be epochs.
    pub(crate) fn text(&self, holder: &Holder) -> Result<Text> {
        let unreadable = |source| Error::Unreadable {
            path: self.path.clone(),
            source,
        };
        let file = self.open_unchanged()?;
        let consumed = Arc::new(AtomicU64::new(0));
        let start = self.start();
        let raw = DroppingReader {
            file,
            start,
            offset: start,
            end: start + self.bytes,
            consumed: consumed.clone(),
            uncached: true,
        };
        let (source, grant) = match self.compression {
            Compression::Plain => (Source::Plain(raw), None),
            Compression::Gzip => {
                let grant = holder.try_grant(DECODER_BYTES)?;
                let buffered = BufReader::with_capacity(RAW_BUFFER, raw);
                (
                    Source::Packed(Box::new(flate2::bufread::MultiGzDecoder::new(buffered))),
                    Some(grant),
                )
            }
            Compression::Zstd => {
                let window = zstd_window(&raw.file, start).map_err(unreadable)?;
                let grant = holder
                    .try_grant(window.saturating_add(DECODER_BYTES))
                    .map_err(|source| Error::Window {
                        path: self.path.clone(),
                        window,
                        source: source.into(),
                    })?;
                let buffered = BufReader::with_capacity(RAW_BUFFER, raw);
                let mut decoder = zstd::stream::read::Decoder::with_buffer(buffered).map_err(unreadable)?;
                let log = 64 - window.saturating_sub(1).leading_zeros();
                decoder.window_log_max(log.clamp(10, 31)).map_err(unreadable)?;
                (self.packed(decoder), Some(grant))
            }
            Compression::Deflate => {
                let grant = holder.try_grant(DECODER_BYTES)?;
                let buffered = BufReader::with_capacity(RAW_BUFFER, raw);
                let decoder = flate2::bufread::DeflateDecoder::new(buffered);
                (self.packed(decoder), Some(grant))
            }
        };
        Ok(Text {
            source,
            consumed,
            grant,
            path: self.path.clone(),
            compression: self.compression,
        })
    }

    /// Opens the file, unless it changed since it was first opened.
    pub(crate) fn open_unchanged(&self) -> Result<File> {
        let unreadable = |source| Error::Unreadable {
            path: self.path.clone(),
            source,
        };
        let file = File::open(self.file()).map_err(unreadable)?;
        let metadata = file.metadata().map_err(unreadable)?;
        let known = self
            .member
            .as_ref()
            .map_or(self.bytes, |member| member.archive_bytes);
        if (metadata.len(), modified(&metadata)) != (known, self.modified) {
            return Err(Error::Changed {
                path: self.path.clone(),
            });
        }
        expect_single_pieces(&file);
        Ok(file)
    }

    /// The same, and where this input begins in it.
    pub(crate) fn open_at(&self) -> Result<(File, u64)> {
        Ok((self.open_unchanged()?, self.start()))
    }

    /// What is decompressed, held against what an archive says of it.
    fn packed(&self, decoder: impl Read + Send + 'static) -> Source {
        match &self.member {
            Some(member) => Source::Packed(Box::new(Checked {
                decoder,
                left: member.text_bytes,
                crc: flate2::Crc::new(),
                expected: member.crc,
            })),
            None => Source::Packed(Box::new(decoder)),
        }
    }

    fn file(&self) -> &Path {
        self.member.as_ref().map_or(&self.path, |member| &*member.archive)
    }

    fn start(&self) -> u64 {
        self.member.as_ref().map_or(0, |member| member.start)
    }

    /// Opens a file for looks at a few places of what stands on disk.
    pub(crate) fn places(&self) -> Result<Places> {
        let file = File::open(self.file()).map_err(|source| Error::Unreadable {
            path: self.path.clone(),
            source,
        })?;
        expect_single_pieces(&file);
        Ok(Places {
            path: self.path.clone(),
            file,
            start: self.start(),
            bytes: self.bytes,
        })
    }

    /// The same, for reading all of it: refuses a file that changed since it was opened.
    pub(crate) fn unchanged_places(&self) -> Result<Places> {
        Ok(Places {
            path: self.path.clone(),
            file: self.open_unchanged()?,
            start: self.start(),
            bytes: self.bytes,
        })
    }
}

/// A file, read here and there.
pub(crate) struct Places {
    path: PathBuf,
    file: File,
    /// Where the input starts in it, and how long it is.
    start: u64,
    bytes: u64,
}

impl Places {
    /// Reads up to `bytes.len()` bytes at an offset, leaving nothing in the page cache.
    pub(crate) fn read_at(&self, bytes: &mut [u8], offset: u64) -> Result<usize> {
        let room = self.bytes.saturating_sub(offset).min(bytes.len() as u64);
        let bytes = &mut bytes[..room as usize];
        read_uncached(&self.file, bytes, self.start + offset, &mut true).map_err(|source| Error::Unreadable {
            path: self.path.clone(),
            source,
        })
    }

    /// Fills all of `bytes`; `false` where the file ends before.
    pub(crate) fn fill_at(&self, bytes: &mut [u8], offset: u64) -> Result<bool> {
        let mut filled = 0;
        while filled < bytes.len() {
            match self.read_at(&mut bytes[filled..], offset + filled as u64)? {
                0 => return Ok(false),
                read => filled += read,
            }
        }
        Ok(true)
    }
}

/// FNV-1a, 64 bits: to notice changes, not to withstand an enemy.
struct Fnv(u64);

impl Fnv {
    fn new() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

fn modified(metadata: &Metadata) -> (i64, i64) {
    (metadata.mtime(), metadata.mtime_nsec())
}

/// The text of an [`Input`], read in sequence.
pub(crate) struct Text {
    source: Source,
    consumed: Arc<AtomicU64>,
    /// What the decompressor holds, for as long as it lives.
    #[expect(dead_code, reason = "held for its drop")]
    grant: Option<Grant>,
    path: PathBuf,
    compression: Compression,
}

enum Source {
    Plain(DroppingReader),
    Packed(Box<dyn Read + Send>),
}

impl Text {
    /// Fills `bytes` as far as the text goes; fewer bytes than asked means the end.
    pub(crate) fn fill(&mut self, bytes: &mut [u8]) -> Result<usize> {
        let mut filled = 0;
        while filled < bytes.len() {
            let read = match &mut self.source {
                Source::Plain(reader) => reader.read(&mut bytes[filled..]),
                Source::Packed(reader) => reader.read(&mut bytes[filled..]),
            };
            match read {
                Ok(0) => break,
                Ok(read) => filled += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(source) => return Err(self.broken(source)),
            }
        }
        Ok(filled)
    }

    /// Passes over the next `bytes` bytes of text: a seek in a plain file, decompression otherwise.
    pub(crate) fn skip(&mut self, bytes: u64) -> Result<()> {
        if let Source::Plain(reader) = &mut self.source {
            reader.advance(bytes);
            return Ok(());
        }
        let mut scrap = [0u8; 16 << 10];
        let mut left = bytes;
        while left > 0 {
            let step = left.min(scrap.len() as u64) as usize;
            if self.fill(&mut scrap[..step])? < step {
                return Ok(());
            }
            left -= step as u64;
        }
        Ok(())
    }

    /// Bytes of the file on disk read so far, for progress.
    pub(crate) fn consumed(&self) -> u64 {
        self.consumed.load(Ordering::Relaxed)
    }

    fn broken(&self, source: io::Error) -> Error {
        let (path, at) = (self.path.clone(), self.consumed());
        match self.compression {
            Compression::Plain => Error::Unreadable { path, source },
            Compression::Gzip => Error::Compressed {
                path,
                format: "gzip",
                at,
                source,
            },
            Compression::Zstd => Error::Compressed {
                path,
                format: "zstd",
                at,
                source,
            },
            Compression::Deflate => Error::Compressed {
                path,
                format: "zip",
                at,
                source,
            },
        }
    }
}

/// Reads a file in sequence without leaving it in the page cache, where it would count against the
/// budget and push out what others need.
struct DroppingReader {
    file: File,
    /// Where in the file reading started, where it is and where it ends.
    start: u64,
    offset: u64,
    end: u64,
    consumed: Arc<AtomicU64>,
    uncached: bool,
}

impl DroppingReader {
    fn advance(&mut self, bytes: u64) {
        self.offset = self.offset.saturating_add(bytes);
        self.consumed.store(self.offset - self.start, Ordering::Relaxed);
    }
}

impl Read for DroppingReader {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let room = self.end.saturating_sub(self.offset).min(bytes.len() as u64);
        let bytes = &mut bytes[..room as usize];
        let read = read_uncached(&self.file, bytes, self.offset, &mut self.uncached)?;
        self.advance(read as u64);
        Ok(read)
    }
}

/// Text out of an archive, which tells its length and checksum beforehand.
struct Checked<R> {
    decoder: R,
    left: u64,
    crc: flate2::Crc,
    expected: u32,
}

impl<R: Read> Read for Checked<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let read = self.decoder.read(bytes)?;
        let wrong = |what| Err(io::Error::new(io::ErrorKind::InvalidData, what));
        if read as u64 > self.left {
            return wrong("longer than the archive says");
        }
        self.left -= read as u64;
        self.crc.update(&bytes[..read]);
        if read == 0 && !bytes.is_empty() {
            if self.left > 0 {
                return wrong("shorter than the archive says");
            }
            if self.crc.sum() != self.expected {
                return wrong("its checksum does not fit");
            }
        }
        Ok(read)
    }
}

/// Tells the kernel not to read ahead: pieces are large and the pipeline is ahead already, so what the kernel
/// adds would only sit in the page cache, on our account (17 MB of it where the device reads 8 MiB ahead). To be
/// said before the first read: pages that were once read ahead ask for more when they are met again.
pub(crate) fn expect_single_pieces(file: &File) {
    // SAFETY: advice on an open descriptor touches no memory of ours.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_RANDOM) };
}

/// Drops what reading by others, SQLite for one, left of a file in the page cache.
pub(crate) fn drop_cached(file: &File) {
    // SAFETY: advice on an open descriptor touches no memory of ours.
    unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
}

/// `RWF_DONTCACHE` (Linux 6.14): pages that were not cached before are dropped once copied, and pages
/// that somebody else had cached are used and left alone.
pub(crate) const RWF_DONTCACHE: libc::c_int = 0x80;

/// Reads at an offset and leaves nothing in the page cache that was not there before. `supported` says whether the kernel
/// knows how, and learns that it does not.
pub(crate) fn read_uncached(
    file: &File,
    bytes: &mut [u8],
    offset: u64,
    supported: &mut bool,
) -> io::Result<usize> {
    if *supported {
        let part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // SAFETY: `part` describes `bytes`, which is writable and outlives the call.
        let read = unsafe { libc::preadv2(file.as_raw_fd(), &part, 1, offset as libc::off_t, RWF_DONTCACHE) };
        if read >= 0 {
            return Ok(read as usize);
        }
        let error = io::Error::last_os_error();
        match error.raw_os_error() {
            Some(libc::EOPNOTSUPP | libc::ENOSYS | libc::EINVAL) => *supported = false,
            _ => return Err(error),
        }
    }
    let read = file.read_at(bytes, offset)?;
    // SAFETY: a plain system call on an open descriptor; advice has no effect on memory we own.
    unsafe {
        libc::posix_fadvise(
            file.as_raw_fd(),
            offset as _,
            read as _,
            libc::POSIX_FADV_DONTNEED,
        )
    };
    Ok(read)
}

/// The window that the first zstd frame asks a decoder to keep (RFC 8878, 3.1.1.1).
fn zstd_window(file: &File, start: u64) -> io::Result<u64> {
    let mut header = [0u8; 18];
    let read = file.read_at(&mut header, start)?;
    if read < 6 {
        return Ok(0);
    }
    let descriptor = header[4];
    let single_segment = descriptor & 0x20 != 0;
    if !single_segment {
        let (exponent, mantissa) = (u64::from(header[5] >> 3), u64::from(header[5] & 7));
        let base = 1u64 << (10 + exponent);
        return Ok(base + base / 8 * mantissa);
    }
    let dictionary_bytes = [0, 1, 2, 4][usize::from(descriptor & 3)];
    let start = 5 + dictionary_bytes;
    let size_bytes = [1, 2, 4, 8][usize::from(descriptor >> 6)];
    let mut size = [0u8; 8];
    size[..size_bytes].copy_from_slice(&header[start..start + size_bytes]);
    Ok(u64::from_le_bytes(size).saturating_add(if size_bytes == 2 { 256 } else { 0 }))
}
