//! Sizes out of messages, in bytes, as the program that printed them means them.

/// What `GB` means. Nearly everybody who writes `GB` divides by 1024 three times; `GiB` is never in doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unit {
    /// `GB`, `Gb` and `G` are 1024³ bytes: PyTorch, R, Ray, Paddle, YARN, Slurm.
    Binary,
    /// `GB` is 1000³ bytes: Dask.
    Decimal,
    /// A bare number is kibibytes: Slurm's old accounting.
    Kibibytes,
}

/// The size at the beginning of a text: `7.45 GiB`, `25,600,000 bytes`, `184. MiB`, `0x10000 bytes`, `2172846080 failed`.
pub(super) fn size_at(text: &str, unit: Unit) -> Option<u64> {
    let text = text.trim_start();
    if let Some(hex) = text.strip_prefix("0x") {
        let digits = hex.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(hex.len());
        return u64::from_str_radix(&hex[..digits], 16).ok();
    }
    let end = number_end(text);
    let number = text[..end].replace(',', "");
    let word = text[end..].trim_start_matches(' ');
    let word = &word[..word
        .find(|c: char| !c.is_ascii_alphabetic())
        .unwrap_or(word.len())];
    match factor(word, unit) {
        // A whole number of bytes is exact; through a float it would not be.
        Some(1) => number.trim_end_matches('.').parse().ok(),
        Some(factor) => {
            let bytes = number.trim_end_matches('.').parse::<f64>().ok()? * factor as f64;
            (bytes < 18e18).then_some(bytes.round() as u64)
        }
        None => {
            let count: u64 = number.parse().ok()?;
            match unit {
                Unit::Kibibytes => count.checked_mul(1024),
                _ => Some(count),
            }
        }
    }
}

/// The size at the end of a text: of `(GPU 0; 15.78 GiB` it is `15.78 GiB`.
pub(super) fn size_before(text: &str, unit: Unit) -> Option<u64> {
    let text = text.trim_end_matches([' ', ',', ';', '(']);
    let word = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let number = word.trim_end_matches(' ');
    let start = number
        .trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == ',')
        .len();
    size_at(text[start..].trim_start_matches([',', '.']), unit)
}

fn number_end(text: &str) -> usize {
    let bytes = text.as_bytes();
    let mut end = 0;
    let mut point = false;
    while let Some(&byte) = bytes.get(end) {
        match byte {
            b'0'..=b'9' => {}
            b'.' if !point => point = true,
            // A comma between groups of three digits belongs to the number, any other one ends it.
            b',' if !point
                && end > 0
                && bytes
                    .get(end + 1..end + 4)
                    .is_some_and(|group| group.iter().all(u8::is_ascii_digit))
                && !bytes.get(end + 4).is_some_and(u8::is_ascii_digit) => {}
            _ => break,
        }
        end += 1;
    }
    end
}

fn factor(word: &str, unit: Unit) -> Option<u64> {
    let mut letters = word.chars();
    let power = match letters.next()?.to_ascii_lowercase() {
        'b' if matches!(word, "B" | "b" | "bytes" | "byte" | "Bytes" | "Byte") => return Some(1),
        'k' => 1,
        'm' => 2,
        'g' => 3,
        't' => 4,
        'p' => 5,
        _ => return None,
    };
    match letters.as_str() {
        "iB" | "i" | "ib" => Some(1 << (10 * power)),
        "B" | "b" | "" => Some(match unit {
            Unit::Decimal => 1000u64.pow(power),
            Unit::Binary | Unit::Kibibytes => 1 << (10 * power),
        }),
        _ => None,
    }
}

/// The bytes of an array from its shape and its type: `shape[64,2016,9,9] and type float`, `shape (1000, 3) and data type
/// float64`.
pub(super) fn shape_bytes(text: &str) -> Option<u64> {
    let rest = &text[text.find("shape")? + 5..];
    let open = rest.find(['[', '('])?;
    let close = open + rest[open..].find([']', ')'])?;
    let mut elements = 1u64;
    for number in rest[open + 1..close]
        .split(',')
        .map(str::trim)
        .filter(|number| !number.is_empty())
    {
        elements = elements.checked_mul(number.parse().ok()?)?;
    }
    let name = rest[close..].split_once("type ")?.1;
    let name = &name[..name.find([' ', '.', ',', '\n']).unwrap_or(name.len())];
    elements.checked_mul(element_bytes(name)?)
}

fn element_bytes(name: &str) -> Option<u64> {
    Some(match name {
        "bool" | "int8" | "uint8" => 1,
        "half" | "float16" | "bfloat16" | "int16" | "uint16" => 2,
        "float" | "float32" | "int32" | "uint32" => 4,
        "double" | "float64" | "int64" | "uint64" | "complex64" | "object" | "datetime64[ns]" => 8,
        "complex128" | "longdouble" | "float128" => 16,
        // Four bytes a character.
        name => name.strip_prefix("<U")?.parse::<u64>().ok()?.checked_mul(4)?,
    })
}

#[cfg(test)]
mod tests {
    use super::Unit::{Binary, Decimal, Kibibytes};
    use super::*;

    const GIB: f64 = 1073741824.0;

    #[test]
    fn sizes_are_read_as_they_are_meant() {
        for (text, unit, expected) in [
            ("2.00 GiB. GPU 0", Binary, Some(2 << 30)),
            ("7.45 GiB for an array", Binary, Some((7.45 * GIB).round() as u64)),
            ("184. MiB for", Binary, Some(184 << 20)),
            ("0 bytes is free", Binary, Some(0)),
            ("1006.00 MiB (", Binary, Some(1006 << 20)),
            ("2.0 Gb", Binary, Some(2 << 30)),
            ("4.00 GB -- Worker", Decimal, Some(4_000_000_000)),
            ("27.47GB / 28.80GB", Binary, Some((27.47 * GIB).round() as u64)),
            ("25,600,000 bytes (allocated", Binary, Some(25_600_000)),
            ("2172846080 failed", Binary, Some(2_172_846_080)),
            (
                "17.79G (19104890880 bytes)",
                Binary,
                Some((17.79 * GIB).round() as u64),
            ),
            ("43536Ki, which", Binary, Some(43536 << 10)),
            ("8401756kb exceeded", Binary, Some(8401756 << 10)),
            ("10240000), being killed", Kibibytes, Some(10240000 << 10)),
            ("0x10000000000 bytes", Binary, Some(1 << 40)),
            ("18446744073709551615 bytes", Binary, Some(u64::MAX)),
            ("99999999999999999999 bytes", Binary, None),
            ("3.5 apples", Binary, None),
            ("9999999999999 PiB", Binary, None),
            ("", Binary, None),
            ("GiB", Binary, None),
            ("1,2 GiB", Binary, Some(1)),
        ] {
            assert_eq!(size_at(text, unit), expected, "{text}");
        }
    }

    #[test]
    fn sizes_before_a_word() {
        for (text, expected) in [
            ("(GPU 0; 15.78 GiB ", Some((15.78 * GIB).round() as u64)),
            ("already allocated; 0 bytes ", Some(0)),
            ("; 1010.00 MiB", Some(1010 << 20)),
            ("12 GB of 25,600,000 bytes", Some(25_600_000)),
            ("none ", None),
            ("", None),
        ] {
            assert_eq!(size_before(text, Binary), expected, "{text}");
        }
    }

    #[test]
    fn arrays_have_a_size() {
        for (text, expected) in [
            (
                "tensor with shape[64,2016,9,9] and type float on /job:x",
                Some(64 * 2016 * 81 * 4),
            ),
            (
                "array with shape (1000000000,) and data type float64",
                Some(8_000_000_000),
            ),
            ("shape (10, 2) and data type <U20", Some(10 * 2 * 80)),
            (
                "tensor of shape [563354,256] and type float",
                Some(563354 * 256 * 4),
            ),
            ("shape (4294967296, 4294967296) and data type float64", None),
            ("shape (a, b) and data type float64", None),
            ("shape [3] and type unheard", None),
            ("shape", None),
        ] {
            assert_eq!(shape_bytes(text), expected, "{text}");
        }
    }
}
