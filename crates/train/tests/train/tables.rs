//! Seeded tables, by the formulas of `reference.py`.

use std::fmt::Write;

pub(crate) fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

pub(crate) fn uniform(seed: u64, i: usize) -> f64 {
    (mix((seed << 32).wrapping_add(i as u64)) >> 11) as f64 * 2f64.powi(-53)
}

pub(crate) fn normal(seed: u64, i: usize) -> f64 {
    let total: f64 = (0..4).map(|k| uniform(seed, i * 4 + k)).sum();
    (total - 2.0) * 3f64.sqrt()
}

fn weight(j: usize) -> f64 {
    ((j * 7 % 5) as f64 - 2.0) / 2.0
}

/// What the target is.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    Number,
    Two,
}

impl Kind {
    /// The name of a table in `expected.txt`.
    pub(crate) fn name(self, table: &str) -> String {
        format!("{table}_{}", if self == Kind::Two { "two" } else { "number" })
    }
}

fn grid(seed: u64, rows: usize, columns: usize) -> Vec<Vec<f64>> {
    let cell = |row, j| normal(seed, row * columns + j);
    (0..rows)
        .map(|row| (0..columns).map(|j| cell(row, j)).collect())
        .collect()
}

fn target(seed: u64, row: usize, g: &[f64], kind: Kind) -> f64 {
    let margin: f64 = g.iter().enumerate().map(|(j, g)| weight(j) * g).sum();
    match kind {
        Kind::Two => f64::from(u8::from(uniform(seed + 2, row) < 1.0 / (1.0 + (-margin).exp()))),
        Kind::Number => margin + 0.5 * normal(seed + 1, row),
    }
}

/// Rows of values and a target as CSV with six decimals.
fn csv(rows: impl IntoIterator<Item = (Vec<f64>, f64)>) -> String {
    written(rows, |text, x| write!(text, "{x:.6},").unwrap())
}

fn written(rows: impl IntoIterator<Item = (Vec<f64>, f64)>, cell: impl Fn(&mut String, f64)) -> String {
    let mut text = String::new();
    for (row, y) in rows {
        if text.is_empty() {
            (0..row.len()).for_each(|j| write!(text, "x{j},").unwrap());
            text.push_str("y\n");
        }
        row.iter().for_each(|&x| cell(&mut text, x));
        writeln!(text, "{y}").unwrap();
    }
    text
}

/// The cells of a grid, turned into columns by `columns`, with their targets.
fn made(
    seed: u64,
    rows: usize,
    width: usize,
    kind: Kind,
    columns: impl Fn(&[f64]) -> Vec<f64>,
) -> Vec<(Vec<f64>, f64)> {
    let grid = grid(seed, rows, width).into_iter().enumerate();
    grid.map(|(row, g)| (columns(&g), target(seed, row, &g, kind)))
        .collect()
}

pub(crate) fn plain(kind: Kind) -> String {
    plain_rows(kind, 3000)
}

pub(crate) fn plain_rows(kind: Kind, rows: usize) -> String {
    let shifted = |g: &[f64]| (0..5).map(|j| 10.0 * j as f64 + (j + 1) as f64 * g[j]).collect();
    csv(made(10, rows, 5, kind, shifted))
}

pub(crate) fn by_target(kind: Kind) -> String {
    let mut rows = made(20, 60_000, 4, kind, <[f64]>::to_vec);
    rows.sort_by(|a, b| a.1.total_cmp(&b.1));
    csv(rows)
}

pub(crate) fn separable() -> String {
    let rows = grid(30, 3000, 3).into_iter();
    csv(rows.map(|g| {
        let y = f64::from(u8::from(g[0] - g[2] > 0.0));
        (g, y)
    }))
}

pub(crate) fn collinear(kind: Kind) -> String {
    csv(made(40, 3000, 3, kind, |g| {
        vec![g[0], g[1], g[0], g[0] + g[1], g[2]]
    }))
}

pub(crate) fn constant(kind: Kind) -> String {
    csv(made(50, 3000, 3, kind, |g| vec![g[0], g[1], g[2], 7.0]))
}

/// Units from 1e-9 to 1e9, and a large offset.
pub(crate) fn extreme(kind: Kind) -> String {
    let rows = made(60, 3000, 4, kind, |g| {
        vec![g[0] * 1e-9, g[1] * 1e9, g[2], 1e6 + g[3]]
    });
    written(rows, |text, x| write!(text, "{x:e},").unwrap())
}

/// Every third column goes along with its neighbour.
pub(crate) fn wide(columns: usize, rows: usize, kind: Kind) -> String {
    let row = |row: usize| {
        let g = |j: usize| (uniform(70 + columns as u64, row * columns + j) * 2.0 - 1.0) * 3f64.sqrt();
        let g: Vec<f64> = (0..columns).map(g).collect();
        let together = |j: usize| {
            if j % 3 == 2 {
                0.8 * g[j - 1] + 0.6 * g[j]
            } else {
                g[j]
            }
        };
        let margin: f64 = g.iter().enumerate().map(|(j, g)| weight(j) * g).sum();
        let margin = margin / (columns as f64).sqrt() * 2.0;
        let y = match kind {
            Kind::Two => f64::from(u8::from(uniform(5, row) < 1.0 / (1.0 + (-margin).exp()))),
            Kind::Number => margin + 0.5 * normal(6, row),
        };
        ((0..columns).map(together).collect(), y)
    };
    // Two decimals; formatting floats would take longer than the training.
    written((0..rows).map(row), |text, x| {
        let hundredths = (x * 100.0).round() as i64;
        let sign = if hundredths < 0 { "-" } else { "" };
        let (whole, rest) = (hundredths.abs() / 100, hundredths.abs() % 100);
        write!(text, "{sign}{whole}.{rest:02},").unwrap();
    })
}

/// Rows around the corners of a square, the third class rare, and columns that say nothing.
pub(crate) fn blobs(rows: usize, noise: usize, class: impl Fn(usize) -> String) -> String {
    let mut text = String::new();
    (0..3 + noise).for_each(|j| write!(text, "x{j},").unwrap());
    text.push_str("y\n");
    for row in 0..rows {
        let y = match uniform(80, row) {
            u if u < 0.4 => 0,
            u if u < 0.7 => 1,
            u if u < 0.75 => 2,
            _ => 3,
        };
        let g = |j: usize| normal(81, row * 3 + j);
        let (a, b) = (g(0) + 1.5 * (y % 2) as f64, g(1) + 1.5 * (y / 2) as f64);
        write!(text, "{a:.6},{b:.6},{:.6},", g(2)).unwrap();
        (0..noise).for_each(|j| write!(text, "{:.6},", normal(82, row * noise + j)).unwrap());
        writeln!(text, "{}", class(y)).unwrap();
    }
    text
}

/// The values of the classes of [`blobs`], in their order.
pub(crate) const LETTERS: [&str; 4] = ["a", "b", "c", "d"];

pub(crate) fn lettered(rows: usize, noise: usize) -> String {
    blobs(rows, noise, |class| LETTERS[class].to_string())
}
