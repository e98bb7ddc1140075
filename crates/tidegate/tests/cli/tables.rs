//! Made-up tables, the same each time.

use std::io::Write;

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// Between -1 and 1.
    pub(crate) fn number(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    }
}

/// A table as rows of fields, to be written in any dialect.
pub(crate) struct Rows {
    pub(crate) header: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Rows {
    /// `a,b,c,y` with a target that is 1 where `a - b` and some noise is positive.
    pub(crate) fn binary(n: usize) -> Rows {
        Rows::made(n, |margin| u8::from(margin > 0.0).to_string())
    }

    /// The same columns with a number as the target.
    pub(crate) fn regression(n: usize) -> Rows {
        Rows::made(n, |margin| format!("{:.4}", 10.0 + 3.0 * margin))
    }

    fn made(n: usize, target: impl Fn(f64) -> String) -> Rows {
        let mut random = Random(7);
        let row = |_| {
            let (a, b, c) = (random.number(), random.number(), random.number());
            let y = target(a - b + 0.5 * random.number());
            vec![
                format!("{a:.4}"),
                format!("{b:.4}"),
                format!("{:.2}", 50.0 + 20.0 * c),
                y,
            ]
        };
        Rows {
            header: ["a", "b", "c", "y"].map(String::from).to_vec(),
            rows: (0..n).map(row).collect(),
        }
    }

    /// In the plainest dialect.
    pub(crate) fn csv(&self) -> String {
        self.write(",", "\n", |field| field.to_string())
    }

    pub(crate) fn write(&self, separator: &str, line_end: &str, field: impl Fn(&str) -> String) -> String {
        let mut text = String::new();
        for row in std::iter::once(&self.header).chain(&self.rows) {
            let fields: Vec<String> = row.iter().map(|value| field(value)).collect();
            text.push_str(&fields.join(separator));
            text.push_str(line_end);
        }
        text
    }

    /// The rows without their header.
    pub(crate) fn headless(&self) -> String {
        let csv = self.csv();
        csv[csv.find('\n').unwrap() + 1..].to_string()
    }
}

/// Two hundred rows, 0 or 1.
pub(crate) fn binary() -> String {
    Rows::binary(200).csv()
}

pub(crate) fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

pub(crate) fn zstd(text: &str) -> Vec<u8> {
    zstd::encode_all(text.as_bytes(), 1).unwrap()
}
