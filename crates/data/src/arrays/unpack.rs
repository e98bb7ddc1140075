//! Compressed arrays, which cannot be read at any place: unpacked once, into memory or into a plain file.
//!
//! The file holds the values alone, in the order of bytes of the machine, and behind them what they must come to. It is
//! written beside, synced and renamed, found again by what it was unpacked from, and checked before it is used.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use tidegate_memory::Holder;
use twox_hash::XxHash3_64;

use super::element::{Element, swap_bytes};
use super::half::{narrow_in_place, write_halves};
use super::problem::ArrayProblem;
use super::samples::{PIECE, Shard};
use crate::input::Text;
use crate::pack::{ARRAY, WRITE_BEHIND_BYTES, WriteBehind};
use crate::{Input, Result};

/// What unpacking into a file takes beside the decompressor: a piece, and what is on its way to the disk.
pub(crate) const UNPACK_BYTES: u64 = PIECE as u64 + WRITE_BEHIND_BYTES;

/// Says what stands behind the values; to be changed with the format.
const MARK: &[u8; 8] = b"tgarray1";
const TRAILER: usize = 32;
/// Read at once on the way into memory as halves.
const NARROWED: usize = 32 << 10;

/// Takes the values of a shard in pieces, in the order of bytes of the machine.
fn each_piece(
    shard: &Shard,
    holder: &Holder,
    piece: &mut [u8],
    mut take: impl FnMut(&mut [u8]) -> Result<()>,
) -> Result<()> {
    let mut text = shard.input.text(holder)?;
    text.skip(shard.header.data_at)?;
    let (bytes, mut left) = (shard.header.data_bytes(), shard.header.data_bytes());
    // A piece holds a whole number of values, whatever their width.
    while left > 0 {
        let step = left.min(piece.len() as u64) as usize;
        let filled = text.fill(&mut piece[..step])?;
        if filled < step {
            let found = shard.header.data_at + (bytes - left) + filled as u64;
            return Err(shard.header.truncated(&shard.input, found).into());
        }
        if shard.header.big_endian {
            swap_bytes(&mut piece[..step], shard.header.holds.bytes());
        }
        take(&mut piece[..step])?;
        left -= step as u64;
    }
    finish(shard, &mut text)
}

/// The values of a shard in memory, as they are or as halves.
pub(crate) fn into_memory(shard: &Shard, element: Element, holder: &Holder, into: &mut [u8]) -> Result<()> {
    if let Some(holds) = shard.narrowed(element) {
        let (mut piece, mut first, mut rest) = ([0; NARROWED], 0, into);
        return each_piece(shard, holder, &mut piece, |bytes| {
            let n = bytes.len() / holds.bytes();
            let (now, later) = std::mem::take(&mut rest).split_at_mut(n * element.bytes());
            rest = later;
            write_halves(holds, bytes, now)
                .map_err(|(place, value)| shard.beyond_half(first + place as u64, value))?;
            first += n as u64;
            Ok(())
        });
    }
    let mut text = shard.input.text(holder)?;
    text.skip(shard.header.data_at)?;
    let mut found = shard.header.data_at;
    for piece in into.chunks_mut(PIECE) {
        let filled = text.fill(piece)?;
        found += filled as u64;
        if filled < piece.len() {
            return Err(shard.header.truncated(&shard.input, found).into());
        }
    }
    if shard.header.big_endian {
        swap_bytes(into, shard.header.holds.bytes());
    }
    finish(shard, &mut text)
}

/// Reads to the very end of what is compressed, where the checksums stand.
fn finish(shard: &Shard, text: &mut Text) -> Result<()> {
    let mut scrap = [0; 4 << 10];
    while shard.is_packed() && text.fill(&mut scrap)? > 0 {}
    Ok(())
}

/// The values of a shard, as they are or as halves, in a file of this folder: the one that is there already, or a new one.
pub(crate) fn into_file(shard: &Shard, element: Element, folder: &Path, holder: &Holder) -> Result<Input> {
    let _granted = holder.try_grant(UNPACK_BYTES)?;
    let mut piece = vec![0; PIECE];
    let narrowed = shard.narrowed(element);
    let key = key(shard, narrowed.is_some())?;
    let path = folder.join(format!("{key:016x}{ARRAY}"));
    let bytes = match narrowed {
        Some(holds) => shard.header.data_bytes() / holds.bytes() as u64 * element.bytes() as u64,
        None => shard.header.data_bytes(),
    };
    // Its checksum goes from piece to piece, as they are written.
    let at_once = narrowed.map_or(PIECE, |holds| PIECE / holds.bytes() * element.bytes());
    if is_whole(&path, key, bytes, &mut piece[..at_once]) {
        return Input::open(&path);
    }
    let failed = |source: io::Error| ArrayProblem::Unwritable {
        path: path.clone(),
        source,
    };
    fs::create_dir_all(folder).map_err(failed)?;
    sweep(folder);
    let beside = Beside::new(folder, key);
    let file = File::options()
        .create_new(true)
        .write(true)
        .open(&beside.0)
        .map_err(failed)?;
    // Tells those who sweep that it is being written.
    let _ = file.try_lock();
    let mut writer = WriteBehind::new(file);
    let (mut hash, mut first) = (key, 0);
    each_piece(shard, holder, &mut piece, |bytes| {
        let n = match narrowed {
            Some(holds) => {
                let n = narrow_in_place(holds, bytes)
                    .map_err(|(place, value)| shard.beyond_half(first + place as u64, value))?;
                first += (n / element.bytes()) as u64;
                n
            }
            None => bytes.len(),
        };
        hash = XxHash3_64::oneshot_with_seed(hash, &bytes[..n]);
        Ok(writer.write(&bytes[..n]).map_err(failed)?)
    })?;
    writer.write(&trailer(key, bytes, hash)).map_err(failed)?;
    writer.sync().map_err(failed)?;
    fs::rename(&beside.0, &path).map_err(failed)?;
    File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(failed)?;
    Input::open(&path)
}

/// Tells those who remove packs that this one is in use, for as long as the file is open.
pub(crate) fn use_shared(path: &Path) -> Option<File> {
    let file = File::open(path).ok()?;
    file.try_lock_shared().ok()?;
    Some(file)
}

/// A number made of everything that the values depend on.
fn key(shard: &Shard, narrowed: bool) -> Result<u64> {
    let checksum = shard.input.checksum().unwrap_or_default();
    let all = [
        shard.input.fingerprint()?.to_le_bytes(),
        u64::from(checksum).to_le_bytes(),
        shard.header.data_at.to_le_bytes(),
        shard.header.data_bytes().to_le_bytes(),
        (2 * shard.header.holds.bytes() as u64 + u64::from(shard.header.big_endian)).to_le_bytes(),
    ];
    let halves = narrowed.then_some(*b"inhalves");
    Ok(all
        .iter()
        .chain(&halves)
        .fold(0, |seed, number| XxHash3_64::oneshot_with_seed(seed, number)))
}

fn trailer(key: u64, bytes: u64, hash: u64) -> [u8; TRAILER] {
    let mut trailer = [0; TRAILER];
    let mut rest = &mut trailer[..];
    for number in [u64::from_le_bytes(*MARK), key, bytes, hash] {
        // It has room for all four.
        let _ = rest.write_all(&number.to_le_bytes());
    }
    trailer
}

/// Whether a file holds what was unpacked, to the last byte. Reads all of it: unpacking again takes far longer.
fn is_whole(path: &Path, key: u64, bytes: u64, piece: &mut [u8]) -> bool {
    let Ok(input) = Input::open(path) else {
        return false;
    };
    let Ok(places) = input.unchanged_places() else {
        return false;
    };
    if input.bytes() != bytes + TRAILER as u64 {
        return false;
    }
    let (mut hash, mut at) = (key, 0);
    while at < bytes {
        let step = (bytes - at).min(piece.len() as u64) as usize;
        if !places.fill_at(&mut piece[..step], at).unwrap_or(false) {
            return false;
        }
        hash = XxHash3_64::oneshot_with_seed(hash, &piece[..step]);
        at += step as u64;
    }
    let mut found = [0; TRAILER];
    places.fill_at(&mut found, bytes).unwrap_or(false) && found == trailer(key, bytes, hash)
}

/// A file that is being written, and goes unless it is renamed.
struct Beside(PathBuf);

impl Beside {
    fn new(folder: &Path, key: u64) -> Beside {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let (pid, n) = (std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        Beside(folder.join(format!("{key:016x}.new-{pid}-{n}")))
    }
}

impl Drop for Beside {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Removes what writers left that were killed: files beside that nobody has a lock on. One who just made his file and
/// did not lock it yet is known by its being empty.
fn sweep(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let beside = name.to_str().and_then(|name| name.split_once('.'));
        let is_beside = beside.is_some_and(|(key, rest)| {
            key.len() == 16 && u64::from_str_radix(key, 16).is_ok() && rest.starts_with("new-")
        });
        if !is_beside {
            continue;
        }
        let Ok(file) = File::open(entry.path()) else {
            continue;
        };
        let begun = file.metadata().is_ok_and(|metadata| metadata.len() > 0);
        if begun && file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}
