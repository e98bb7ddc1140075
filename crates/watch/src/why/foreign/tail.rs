//! The end of a log: of a file, a pipe or the standard input.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::UNIX_EPOCH;

/// The end of a log is looked at, this much of it.
const MOST_BYTES: usize = 4 << 20;

pub(super) struct Tail {
    pub(super) bytes: Vec<u8>,
    /// When it was last written, of a file.
    pub(super) changed_ms: Option<i64>,
}

/// The end of what is there; `-` is the standard input.
pub(super) fn tail_of(path: &Path) -> io::Result<Tail> {
    if path == Path::new("-") {
        return Ok(Tail {
            bytes: last_of(io::stdin().lock(), MOST_BYTES)?,
            changed_ms: None,
        });
    }
    let mut file = File::open(path)?;
    let about = file.metadata()?;
    // Neither a pipe nor a file that the kernel makes up has a length to go by.
    if !about.is_file() || about.len() == 0 {
        return Ok(Tail {
            bytes: last_of(file, MOST_BYTES)?,
            changed_ms: None,
        });
    }
    file.seek(SeekFrom::Start(about.len().saturating_sub(MOST_BYTES as u64)))?;
    let mut bytes = Vec::new();
    file.take(MOST_BYTES as u64).read_to_end(&mut bytes)?;
    let changed = about
        .modified()
        .ok()
        .and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(Tail {
        bytes,
        changed_ms: changed.and_then(|since| i64::try_from(since.as_millis()).ok()),
    })
}

/// The last bytes of something that can only be read from its beginning.
fn last_of(mut input: impl Read, most: usize) -> io::Result<Vec<u8>> {
    let mut kept = Vec::new();
    let mut piece = vec![0; 64 << 10];
    loop {
        match input.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => kept.extend_from_slice(&piece[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        // Seldom, so that each byte is moved once.
        if kept.len() >= 2 * most {
            kept.drain(..kept.len() - most);
        }
    }
    kept.drain(..kept.len().saturating_sub(most));
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn only_the_end_is_kept() {
        let all: Vec<u8> = (0..1_000_000_u32).map(|i| (i % 251) as u8).collect();
        for most in [1, 10, 70_000, 1_000_000, 2_000_000] {
            let kept = last_of(all.as_slice(), most).unwrap();
            assert_eq!(kept, all[all.len().saturating_sub(most)..], "{most}");
        }
    }

    #[test]
    fn pipes_are_read() {
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"epoch 1\nKilled\n").unwrap();
        drop(writer);
        let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&reader));
        let tail = tail_of(Path::new(&path)).unwrap();
        assert_eq!(
            (tail.bytes.as_slice(), tail.changed_ms),
            (&b"epoch 1\nKilled\n"[..], None)
        );
    }
}
