//! The members of a zip archive as inputs: found by its directory, decompressed where they stand.

use std::io;
use std::path::Path;
use std::sync::Arc;

use rawzip::{CompressionMethod, ReaderAt, ZipArchiveEntryWayfinder, ZipLocator};
use tidegate_memory::{Grant, Holder};

use super::listing::{is_data, is_hidden};
use crate::input::{Member, Places};
use crate::{Compression, Error, Input, Result};

/// Larger than any entry of a directory can be: 46 bytes, a name, extra fields and a comment of 64 KiB each.
const BUFFER_BYTES: usize = 256 << 10;
/// What a member takes beside the letters of its name.
const MEMBER_BYTES: u64 = 512;
/// Names that a message about an archive without tables shows.
const SHOWN: usize = 4;

/// The members that hold tables, in the order of their names; room for the list is taken from `grant`.
pub(super) fn members(archive: &Input, holder: &Holder, grant: &mut Grant) -> Result<Vec<Input>> {
    members_of(archive, is_data, holder, grant)
}

/// The members whose names are wanted, in the order of their names. One alone is taken whatever its name.
pub(crate) fn members_of(
    archive: &Input,
    is_wanted: impl Fn(&Path) -> bool,
    holder: &Holder,
    grant: &mut Grant,
) -> Result<Vec<Input>> {
    let _granted = holder.try_grant(BUFFER_BYTES as u64)?;
    let mut buffer = vec![0; BUFFER_BYTES];
    let broken = |error: rawzip::Error| Error::Archive {
        path: archive.path().into(),
        source: io::Error::new(io::ErrorKind::InvalidData, error),
    };
    let places = Bytes(archive.places()?);
    let directory = ZipLocator::new()
        .locate_in_reader(&places, &mut buffer, archive.bytes())
        .map_err(|(_, error)| broken(error))?;
    let (mut members, mut others, mut n_others) = (Vec::new(), Vec::new(), 0);
    let mut entries = directory.entries(&mut buffer);
    while let Some(entry) = entries.next_entry().map_err(broken)? {
        let found = Entry {
            name: String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned(),
            wayfinder: entry.wayfinder(),
            method: entry.compression_method(),
            header: entry.local_header_offset(),
            crc: entry.crc32(),
        };
        let at = Path::new(&found.name);
        if entry.is_dir() || is_beside(at) || entry.uncompressed_size_hint() == 0 {
            continue;
        }
        if is_wanted(at) {
            grant.try_grow(MEMBER_BYTES + 2 * found.name.len() as u64)?;
            members.push(found);
        } else {
            n_others += 1;
            if others.len() < SHOWN {
                others.push(found);
            }
        }
    }
    // One file alone is what the archive was made for, whatever its name.
    if members.is_empty() && n_others == 1 {
        members.append(&mut others);
    }
    if members.is_empty() {
        return Err(Error::NoTables {
            path: archive.path().into(),
            members: n_others,
            first: others.into_iter().map(|entry| entry.name).collect(),
        });
    }
    members.sort_by(|a, b| a.name.cmp(&b.name));
    let path: Arc<Path> = archive.path().into();
    let input = |entry: Entry| {
        let found = directory.get_entry(entry.wayfinder).map_err(broken)?;
        let (start, end) = found.compressed_data_range();
        let mut flags = [0u8; 2];
        places.0.read_at(&mut flags, entry.header.saturating_add(6))?;
        let compression = match entry.method {
            _ if end > archive.bytes() => Err("stands beyond the end of the archive".into()),
            _ if flags[0] & 1 == 1 => Err("is encrypted".into()),
            CompressionMethod::Store if end - start != entry.wayfinder.uncompressed_size_hint() => {
                Err("has two lengths".into())
            }
            CompressionMethod::Store => Ok(Compression::Plain),
            CompressionMethod::Deflate => Ok(Compression::Deflate),
            CompressionMethod::Zstd => Ok(Compression::Zstd),
            other => Err(format!("is compressed with {other:?}")),
        };
        let compression = compression.map_err(|what| Error::Member {
            path: archive.path().join(&entry.name),
            what,
        })?;
        let member = Member {
            archive: path.clone(),
            archive_bytes: archive.bytes(),
            start,
            text_bytes: entry.wayfinder.uncompressed_size_hint(),
            crc: entry.crc,
        };
        Ok(archive.member(&entry.name, compression, end - start, member))
    };
    members.into_iter().map(input).collect()
}

/// What the directory says of a member.
struct Entry {
    name: String,
    wayfinder: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    /// Where the member's own header stands.
    header: u64,
    crc: u32,
}

/// Hidden files, and what macOS puts beside each file.
fn is_beside(path: &Path) -> bool {
    is_hidden(path) || path.components().any(|part| part.as_os_str() == "__MACOSX")
}

/// The bytes of an archive, read without leaving them in the page cache.
struct Bytes(Places);

impl ReaderAt for Bytes {
    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        self.0.read_at(bytes, offset).map_err(io::Error::other)
    }
}
