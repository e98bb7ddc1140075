//! A table made up for demonstrations and benchmarks: seeded, streamed, of any size.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::atomic::Ordering;

use tidegate_watch::stop_flag;

use crate::{Error, Result};

/// Numeric columns of the made-up table.
const COLUMNS: usize = 12;

/// Writes rows of twelve numbers, some missing, and a 0/1 target that depends on them with some noise.
struct TableWriter {
    random: Random,
    weights: [f64; COLUMNS],
    line: Vec<u8>,
}

impl TableWriter {
    fn new(seed: u64) -> TableWriter {
        let mut random = Random(seed);
        let weights = std::array::from_fn(|_| random.normal() * 0.5);
        TableWriter {
            random,
            weights,
            line: Vec::with_capacity(256),
        }
    }

    fn header() -> String {
        let names: Vec<String> = (0..COLUMNS).map(|i| format!("x{i}")).collect();
        format!("{},y\n", names.join(","))
    }

    /// Writes one row.
    fn row(&mut self, out: &mut impl Write) -> io::Result<()> {
        self.line.clear();
        let mut margin = 0.3;
        for (column, weight) in self.weights.iter().enumerate() {
            let value = self.random.normal();
            margin += weight * value;
            // The last two columns miss one value in twenty; two others have units of their own.
            let missing = column >= COLUMNS - 2 && self.random.uniform() < 0.05;
            let written = match column {
                3 => value * 250.0 + 1_000.0,
                7 => value * 0.01,
                _ => value,
            };
            if !missing {
                decimal(&mut self.line, written);
            }
            self.line.push(b',');
        }
        let positive = self.random.uniform() < 1.0 / (1.0 + (-margin).exp());
        self.line
            .extend_from_slice(if positive { b"1\n" } else { b"0\n" });
        out.write_all(&self.line)
    }
}

/// Writes a made-up table of at least `bytes` bytes; `progress` hears how many there are. Ctrl-C takes back what
/// was written.
pub fn write_table(path: &Path, bytes: u64, seed: u64, mut progress: impl FnMut(u64)) -> Result<u64> {
    let stop = stop_flag().map_err(|source| Error::Io {
        path: path.into(),
        what: "writing it could not be stopped",
        source,
    })?;
    let failed = |source| Error::Io {
        path: path.into(),
        what: "cannot be written",
        source,
    };
    let file = File::create(path).map_err(failed)?;
    let mut out = Counting {
        out: BufWriter::with_capacity(1 << 18, file),
        bytes: 0,
    };
    let mut writer = TableWriter::new(seed);
    let mut rows = 0u64;
    let written = (|| {
        out.write_all(TableWriter::header().as_bytes())?;
        while out.bytes < bytes {
            writer.row(&mut out)?;
            rows += 1;
            if rows.is_multiple_of(1 << 16) {
                progress(out.bytes);
                if stop.load(Ordering::Relaxed) {
                    return Err(io::ErrorKind::Interrupted.into());
                }
            }
        }
        out.flush()
    })();
    if let Err(source) = written {
        // Half a table is worth nothing, least of all on a full disk.
        let _ = std::fs::remove_file(path);
        if source.kind() == io::ErrorKind::Interrupted {
            let message = "interrupted; the table was taken back".into();
            return Err(Error::Ended {
                message,
                hint: None,
                exit_code: 130,
                run: None,
                least: None,
            });
        }
        return Err(failed(source));
    }
    Ok(rows)
}

struct Counting<W> {
    out: W,
    bytes: u64,
}

impl<W: Write> Write for Counting<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.out.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }
    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// Appends a number with five decimals; twenty times faster than formatting, which would take longer than
/// training.
fn decimal(line: &mut Vec<u8>, value: f64) {
    let scaled = (value * 100_000.0).round() as i64;
    if scaled < 0 {
        line.push(b'-');
    }
    let mut rest = scaled.unsigned_abs();
    let mut digits = [0u8; 24];
    let mut at = digits.len();
    for decimals in 0.. {
        if decimals == 5 {
            at -= 1;
            digits[at] = b'.';
        }
        if decimals > 5 && rest == 0 {
            break;
        }
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    line.extend_from_slice(&digits[at..]);
}

/// SplitMix64: small, seedable, good enough to make data up.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    fn uniform(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// The sum of eight 16-bit uniforms: bell-shaped, mean 0, deviation 1.
    fn normal(&mut self) -> f64 {
        let (a, b) = (self.next(), self.next());
        let sum: u64 = (0..4)
            .map(|i| ((a >> (16 * i)) & 0xffff) + ((b >> (16 * i)) & 0xffff))
            .sum();
        (sum as f64 / 65_536.0 - 4.0) * (12.0f64 / 8.0).sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_with_five_decimals() {
        for (value, expected) in [
            (0.0, "0.00000"),
            (-1.5, "-1.50000"),
            (1234.567891, "1234.56789"),
            (-0.000004, "0.00000"),
            (0.00001, "0.00001"),
        ] {
            let mut line = Vec::new();
            decimal(&mut line, value);
            assert_eq!(String::from_utf8(line).unwrap(), expected);
        }
    }

    #[test]
    fn the_same_seed_writes_the_same_table() {
        let folder = tempfile::tempdir().unwrap();
        let (a, b) = (folder.path().join("a"), folder.path().join("b"));
        let rows = write_table(&a, 100_000, 7, |_| ()).unwrap();
        write_table(&b, 100_000, 7, |_| ()).unwrap();
        let text = std::fs::read_to_string(&a).unwrap();
        assert_eq!(text, std::fs::read_to_string(&b).unwrap());
        assert_eq!(text.lines().count() as u64, rows + 1);
        assert!(text.len() >= 100_000);
    }
}
