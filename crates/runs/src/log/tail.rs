//! The end of a log.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;

use crate::error::{Error, Result};

/// [`tail`] never reads more than this, whatever the file holds.
const TAIL_LIMIT: u64 = 4 * 1024 * 1024;

/// The last `n` lines of a file, oldest first, without reading the whole of it.
pub fn tail(path: &Path, n: usize) -> Result<Vec<String>> {
    let read = || -> io::Result<Vec<u8>> {
        let mut file = File::open(path)?;
        let length = file.metadata()?.len();
        let mut window = 16 * 1024;
        loop {
            let start = length.saturating_sub(window);
            file.seek(SeekFrom::Start(start))?;
            let mut bytes = Vec::new();
            // The file may be growing: `take` keeps the bound.
            (&mut file).take(length - start).read_to_end(&mut bytes)?;
            // The newline that ends the last line does not count, and the first line of the window is
            // whole only if one more newline stands before it.
            let newlines = bytes.iter().rev().skip(1).filter(|&&byte| byte == b'\n').count();
            if start == 0 || newlines >= n || window >= TAIL_LIMIT {
                return Ok(bytes);
            }
            window *= 4;
        }
    };
    let bytes = read().map_err(|source| Error::Io {
        action: "read",
        path: path.to_path_buf(),
        source,
    })?;
    let text = bytes.strip_suffix(b"\n").unwrap_or(&bytes);
    if text.is_empty() || n == 0 {
        return Ok(Vec::new());
    }
    let mut lines: Vec<String> = text
        .rsplit(|&byte| byte == b'\n')
        .take(n)
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .collect();
    lines.reverse();
    Ok(lines)
}
